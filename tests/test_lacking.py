"""Sweeps over members whose keys differ: a key goes to the cells that have it; cells that become the same are one."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig

from specexp import metrics
from specexp.__main__ import main
from specexp.app import launch
from specexp.tracking import wording

QUICK = ["steps=50", "gamma_max=2", "figures=none", "tracking=none"]
RULES = ["rule=token,lenient", "rule.lenience=0.3,0.5,0.7"]


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of each cell that a launcher ran."""
    found: list[str] = []
    run = launch.run_cell

    def watched(cfg: Any) -> Any:
        words = HydraConfig.get().overrides.task
        found.append(" ".join(word for word in words if word.startswith(("rule", "gamma="))))
        return run(cfg)

    monkeypatch.setattr(launch, "run_cell", watched)
    return found


def rows(sweep: Path, *columns: str) -> list[tuple[str, ...]]:
    with (sweep / "sweep.csv").open(encoding="utf-8") as file:
        return [tuple(row[column] for column in columns) for row in csv.DictReader(file)]


def test_a_key_goes_to_the_cells_that_have_it_and_equal_cells_run_once(outputs: Path, launched: list[str]) -> None:
    assert main([*QUICK, "-m", *RULES, "gamma=2,1", "sweep=s"]) == 0
    sweep = outputs / "sweeps" / "s"
    expected = [("token", ""), ("lenient", "0.3"), ("lenient", "0.5"), ("lenient", "0.7")]
    found = rows(sweep, "rule", "rule.lenience", "gamma", "status")
    assert found == [(*cell, gamma, "done") for cell in expected for gamma in ("2", "1")]
    assert launched[:3] == ["rule=token gamma=2", "rule=token gamma=1", "rule=lenient rule.lenience=0.3 gamma=2"]
    assert len(launched) == 8
    content = json.loads((sweep / "sweep.json").read_text(encoding="utf-8"))
    assert content["swept"]["rule.lenience"] == [None, 0.3, 0.5, 0.7]
    assert len(content["cells"]) == 8


def test_a_cell_is_the_one_that_a_sweep_of_its_member_alone_has(outputs: Path) -> None:
    assert main([*QUICK, "-m", *RULES, "sweep=both"]) == 0
    assert main([*QUICK, "-m", "rule=token", "sweep=alone"]) == 0
    (alone,) = rows(outputs / "sweeps" / "alone", "cell")
    assert rows(outputs / "sweeps" / "both", "cell")[0] == alone
    pair = [outputs / "sweeps" / sweep / alone[0] / "metrics.json" for sweep in ("both", "alone")]
    assert pair[0].read_bytes() == pair[1].read_bytes()
    other = outputs / "sweeps" / "both" / rows(outputs / "sweeps" / "both", "cell")[1][0]  # the negative control
    assert (other / "metrics.json").read_bytes() != pair[0].read_bytes()


@pytest.mark.parametrize("batch", ["null", "1"])
def test_a_cell_asked_for_twice_runs_once_in_whatever_batch_it_is(
    outputs: Path, launched: list[str], batch: str
) -> None:
    assert main([*QUICK, "-m", "gamma=1,1,2,1", "sweep=s", f"hydra.sweeper.max_batch_size={batch}"]) == 0
    assert launched == ["gamma=1", "gamma=2"]
    assert rows(outputs / "sweeps" / "s", "gamma") == [("1",), ("2",)]


def test_a_fixed_key_goes_to_its_members_too_of_every_group(outputs: Path) -> None:
    words = ["draft=alpha,noise", "draft.alpha=0.5", "draft.sigma=0.1,0.2", "cost=ratio,milliseconds", "cost.ratio=0.2"]
    assert main([*QUICK, "-m", *words, "sweep=s"]) == 0
    found = rows(outputs / "sweeps" / "s", "draft", "draft.alpha", "draft.sigma", "cost", "cost.ratio")
    drafts = [("alpha", "0.5", ""), ("noise", "", "0.1"), ("noise", "", "0.2")]
    assert found == [(*draft, *cost) for draft in drafts for cost in (("ratio", "0.2"), ("milliseconds", ""))]


def preset(folder: Path, name: str, text: str) -> list[str]:
    path = folder / "mine" / "experiment" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# @package _global_\n{text}", encoding="utf-8")
    return ["--config-dir", str(folder / "mine")]


def test_a_presets_own_sweep_does_the_same_and_its_members_are_the_sweeps(outputs: Path, tmp_path: Path) -> None:
    params = "{rule: 'token,lenient', rule.lenience: '0.3,0.5', rule.residual: lenient}"
    where = preset(tmp_path, "mine", f"hydra: {{mode: MULTIRUN, sweeper: {{params: {params}}}}}\n")
    assert main([*QUICK, *where, "experiment=mine", "sweep=s"]) == 0
    expected = [("token", "", ""), ("lenient", "0.3", "lenient"), ("lenient", "0.5", "lenient")]
    assert rows(outputs / "sweeps" / "s", "rule", "rule.lenience", "rule.residual") == expected
    preset(tmp_path, "lenient", "defaults: [override /rule: lenient]\n")
    assert main([*QUICK, *where, "-m", "experiment=lenient", "rule.lenience=0.3,0.5", "sweep=fixed"]) == 0
    assert rows(outputs / "sweeps" / "fixed", "rule.lenience") == [("0.3",), ("0.5",)]
    words = ["experiment=lenient", "rule=token,block", "draft=noise,alpha", "rule.lenience=0.3"]
    assert main([*QUICK, *where, "-m", *words]) == 2  # the negative control: the preset's rule is not the sweep's


def test_members_that_a_presets_points_choose_are_the_sweeps_too(outputs: Path, tmp_path: Path) -> None:
    for rule in ("token", "lenient"):
        where = preset(tmp_path, f"points/{rule}", f"defaults: [override /rule: {rule}]\n")
    words = ["+experiment/points=token,lenient", "rule.lenience=0.3,0.5", "sweep=s"]
    assert main([*QUICK, *where, "-m", *words]) == 0
    assert rows(outputs / "sweeps" / "s", "rule", "rule.lenience") == [
        ("token", ""),
        ("lenient", "0.3"),
        ("lenient", "0.5"),
    ]


def test_seeds_replicate_each_cell(outputs: Path) -> None:
    assert main([*QUICK, "-m", *RULES[:1], "rule.lenience=0.3,0.5", "seed=0,1", "sweep=s"]) == 0
    with (outputs / "sweeps" / "s" / "replicates.csv").open(encoding="utf-8") as file:
        means = list(csv.DictReader(file))
    found = [(row["rule"], row["rule.lenience"], row["seeds"]) for row in means]
    assert found == [("token", "", "2"), ("lenient", "0.3", "2"), ("lenient", "0.5", "2")]


def test_a_cell_that_is_not_done_is_named_by_the_keys_that_it_has(
    outputs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "measure", lambda experiment, progress=None: 1 / 0)
    assert main([*QUICK, "-m", *RULES[:1], "rule.lenience=0.3,0.5", "sweep=s"]) == 1
    lines = capsys.readouterr().err.splitlines()
    named = ["rule=token", "rule=lenient rule.lenience=0.3", "rule=lenient rule.lenience=0.5"]
    assert [line.partition(": Zero")[0] for line in lines] == [f"specexp: failed: {name}" for name in named]


def test_mlflow_names_the_values_that_were_given(tmp_path: Path) -> None:
    swept = {"rule": ["token", "lenient"], "rule.lenience": [None, 0.3], "requests": [None, 64]}
    sweep: Any = SimpleNamespace(content={"name": "s", "swept": swept})
    assert wording.sweep_name(sweep) == "sweep rule=token,lenient rule.lenience=0.3 requests=null,64 · s"


def test_the_comparison_is_drawn_with_a_line_for_each_member_and_its_own_keys(outputs: Path) -> None:
    assert main([*QUICK, "-m", *RULES, "gamma=1,2", "sweep=s"]) == 0
    assert main(["report", str(outputs / "sweeps" / "s")]) == 0
    drawn = (outputs / "sweeps" / "s" / "speedup.svg").read_text(encoding="utf-8")
    labels = ["rule=token", *(f"rule=lenient rule.lenience={value}" for value in ("0.3", "0.5", "0.7"))]
    assert all(f"<!-- {label} -->" in drawn for label in labels)
    assert "null" not in drawn
