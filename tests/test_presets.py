"""Each preset gives the numbers it is named after, from sweep.csv; and seeds are summarised as what they are."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from specexp import build, digits, store
from specexp.__main__ import main
from specexp.app import cells, composition, configs
from specexp.figures import lossless
from specexp.store import files, replicates, sweeps

PRESETS = [entry.name for entry in configs.entries("experiment") if not entry.origin]
POINTS = [
    (folder.name, path.stem)
    for folder in sorted((configs.conf_dir() / "experiment").glob("*/"))
    for path in sorted(folder.glob("*.yaml"))
]
QUIET = ["tracking=none", "figures=none"]

# Leviathan et al. 2022, as printed. Table 1: alpha, gamma, operations, speed. Table 4: alpha, gamma, c, expected speed.
TABLE_1 = [
    (0.6, 2, 1.53, 1.96),
    (0.7, 3, 1.58, 2.53),
    (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69),
    (0.9, 2, 1.11, 2.71),
    (0.9, 10, 1.60, 6.86),
]
TABLE_4 = [
    (0.75, 7, 0.02, 3.2),
    (0.80, 7, 0.04, 3.3),
    (0.82, 7, 0.11, 2.5),
    (0.62, 7, 0.02, 2.3),
    (0.68, 5, 0.04, 2.4),
    (0.71, 3, 0.11, 2.0),
]
# Speedup for gamma = 1..8 at 10 ms and 1 ms, and the best draft length up to 16, by the closed form.
NOTEBOOK = {
    0.7: [1.545, 1.825, 1.948, 1.981, 1.961, 1.912, 1.848, 1.777],
    0.9: [1.727, 2.258, 2.645, 2.925, 3.124, 3.261, 3.350, 3.403],
}
BEST_GAMMA = {0.5: 2, 0.7: 4, 0.9: 10}


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


def run(outputs: Path, *words: str) -> list[dict[str, Any]]:
    """The rows of the sweep's table, numbers as numbers."""
    assert main([*words, *QUIET, "sweep=s"]) == 0
    return store.read_sweep(outputs / "sweeps" / "s").rows


def column(rows: list[dict[str, Any]], key: str, **where: object) -> list[Any]:
    return [row[key] for row in rows if all(row[name.replace("__", ".")] == value for name, value in where.items())]


# ---------------------------------------------------------------------------------------------------- the files


def composed(*words: str) -> dict[str, Any]:
    with composition.hydra() as hydra:
        return cells.plain(composition.compose(hydra, list(words), composition.RunMode.MULTIRUN))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_composes_builds_and_opens_with_the_command_that_runs_it(name: str) -> None:
    build.experiment(composed(f"experiment={name}"))
    (entry,) = [entry for entry in configs.entries("experiment") if entry.name == name]
    assert entry.command == f"python -m specexp experiment={name}"


@pytest.mark.parametrize(("preset", "point"), POINTS)
def test_every_point_of_a_preset_builds_and_is_run_by_it(preset: str, point: str) -> None:
    build.experiment(composed(f"experiment={preset}", f"+experiment/{preset}={point}"))
    lines = (configs.conf_dir() / "experiment" / f"{preset}.yaml").read_text(encoding="utf-8").splitlines()
    (swept,) = [line.partition(": ")[2] for line in lines if f"+experiment/{preset}:" in line]
    assert swept.split(",").count(point) == 1


def test_two_presets_at_once_are_refused_in_words(capsys: pytest.CaptureFixture[str], outputs: Path) -> None:
    assert main(["-m", "experiment=blind_check,seed_notebook"]) == 2
    assert "experiment cannot be swept (Hydra would drop the presets' own sweeps; run them one by one)" in (
        capsys.readouterr().err
    )
    assert not outputs.exists()


# ------------------------------------------------------------------------------------------- published numbers


def test_leviathan_table_1_to_the_digits_printed(outputs: Path) -> None:
    rows = run(outputs, "experiment=leviathan_table1")
    assert list(zip(column(rows, "draft.alpha"), column(rows, "gamma"), strict=True)) == [row[:2] for row in TABLE_1]
    assert [round(value, 2) for value in column(rows, "operations_factor")] == [row[2] for row in TABLE_1]
    assert [round(value, 2) for value in column(rows, "speedup")] == [row[3] for row in TABLE_1]
    assert {"expected"} == set(column(rows, "speedup_source"))


def test_leviathan_table_4_as_far_as_its_rounded_inputs_tell(outputs: Path) -> None:
    rows = run(outputs, "experiment=leviathan_table4")
    inputs = list(zip(*(column(rows, key) for key in ("draft.alpha", "gamma", "cost.ratio")), strict=True))
    assert inputs == [row[:3] for row in TABLE_4]
    printed, found = [row[3] for row in TABLE_4], column(rows, "speedup")
    assert found == pytest.approx(printed, abs=0.07)
    assert found[1:] != pytest.approx(printed[:-1], abs=0.07)  # the tolerance tells one row from the next


@pytest.mark.slow
def test_the_notebooks_first_exercise_has_its_sweet_spots(outputs: Path) -> None:
    rows = run(outputs, "experiment=seed_notebook")
    for alpha, speedups in NOTEBOOK.items():
        assert column(rows, "gamma", draft__alpha=alpha) == list(range(1, 9))
        assert column(rows, "speedup", draft__alpha=alpha) == pytest.approx(speedups, abs=0.0005)
    for alpha in (0.3, 0.5, 0.7, 0.9):
        closed = [(1 - alpha ** (gamma + 1)) / (1 - alpha) for gamma in range(1, 9)]
        assert column(rows, "tokens_per_step_expected", draft__alpha=alpha) == pytest.approx(closed, rel=1e-12)
    for alpha, best in BEST_GAMMA.items():
        assert set(column(rows, "gamma_best", draft__alpha=alpha)) == {best}


@pytest.mark.slow
def test_the_notebooks_second_exercise_rises_to_the_ceiling(outputs: Path) -> None:
    rows = run(outputs, "experiment=seed_notebook_noise")
    alpha = dict(zip(column(rows, "draft.sigma"), column(rows, "alpha"), strict=True))
    assert alpha[0.84] == pytest.approx(0.70, abs=0.005)
    assert alpha[0.3] == pytest.approx(0.889, abs=0.003)
    assert alpha[0.26] > 0.9 > alpha[0.3]
    tokens, speedups = column(rows, "tokens_per_step_expected"), column(rows, "speedup")
    assert tokens == sorted(tokens)
    assert tokens[-1] == pytest.approx(5, abs=1e-12)
    assert speedups == sorted(speedups)
    assert speedups[-1] == pytest.approx(5 / 1.4, abs=1e-12)


@pytest.mark.slow
def test_the_closed_form_errs_where_and_as_far_as_it_should(outputs: Path) -> None:
    rows = run(outputs, "experiment=closed_form_error")
    by_step = [row for row in rows if row["target.context"] == "step"]
    by_position = [row for row in rows if row["target.context"] == "position"]
    assert all(row["closed_form_error_high"] < 0 for row in by_step)  # Jensen: contexts of a step are one
    assert column(by_step, "closed_form_error", gamma=8) == pytest.approx([-0.038], abs=0.004)
    assert all(row["closed_form_error_low"] < 0 < row["closed_form_error_high"] for row in by_position)
    drawn = [row for row in rows if row["target"] == "bigram" and row["target.vocab"] == 3]
    assert min(column(drawn, "closed_form_error")) < -0.04
    assert max(column(drawn, "closed_form_error")) > 0.02
    regimes = column(rows, "closed_form_error", target="bigram", target__vocab=2)
    assert regimes == pytest.approx([0.0821, 0.1344, 0.1765], abs=1e-4)  # by the algebra, in every digit
    assert len(column(rows, "closed_form_error", target="text")) == 3


@pytest.mark.slow
def test_the_pooled_distance_is_blind_and_the_ranked_test_is_not(outputs: Path) -> None:
    rows = run(outputs, "experiment=blind_check")
    assert column(rows, "rule") == ["token"] + ["wrong"] * 7
    assert all(row["tv_distance"] < 1.5 * row["tv_noise_floor"] for row in rows)
    right, *wrong = column(rows, "lossless_pvalue")
    assert right > 0.01
    assert max(wrong) < 1e-12


def test_evidence_is_drawn_in_powers_of_ten_and_ends_somewhere() -> None:
    rows = [
        {"rule": rule, "lossless_pvalue": p, "tv_distance": 0.02, "tv_noise_floor": 0.01}
        for rule, p in (("token", 1.0), ("lenient", 1e-3), ("uniform", 0.0))
    ]
    figure = lossless.lossless_figure([*rows, {"rule": "greedy", "lossless_pvalue": None}], ["rule"])
    assert figure is not None
    pooled, ranked = figure.axes
    assert [bar.get_width() for bar in pooled.patches] == [2, 2, 2]
    assert [bar.get_width() for bar in ranked.patches] == pytest.approx([0, 3, lossless.FURTHEST])
    assert [tick.get_text() for tick in pooled.get_yticklabels()] == ["rule=token", "rule=lenient", "rule=uniform"]
    assert lossless.lossless_figure([{"rule": "token", "lossless_pvalue": None}], ["rule"]) is None


# --------------------------------------------------------------------------------------------------- replicates


def test_seeds_beside_another_key_are_summarised(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(outputs, "-m", "seed=0,1,2,3,4", "gamma=2,4", "steps=100")
    assert len(rows) == 10
    with (outputs / "sweeps" / "s" / "replicates.csv").open(encoding="utf-8") as file:
        means = [{key: files.parse_cell(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert [(row["gamma"], row["seeds"]) for row in means] == [(2, 5), (4, 5)]
    for row in means:
        values = column(rows, "speedup", gamma=row["gamma"])
        mean = sum(values) / 5
        scatter = math.sqrt(sum((value - mean) ** 2 for value in values) / 4 / 5)
        assert row["speedup"] == pytest.approx(mean, rel=1e-12)
        half_width = 2.7764451051977987 * scatter  # Student's t of 4 degrees of freedom at .975, from tables
        assert row["speedup_high"] - row["speedup"] == pytest.approx(half_width, rel=1e-6)
        assert row["speedup"] - row["speedup_low"] == pytest.approx(half_width, rel=1e-6)
    assert not any(key.startswith(("lossless_pvalue", "tv_")) for key in means[0])  # their means say nothing
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:4] for line in shown if "mean" in line] == [["5", "seeds", "2", "mean"], ["5", "seeds", "4", "mean"]]


def test_a_sweep_without_seeds_has_no_replicates_and_an_older_file_goes(outputs: Path) -> None:
    run(outputs, "-m", "seed=0,1", "steps=20")
    assert (outputs / "sweeps" / "s" / "replicates.csv").exists()
    run(outputs, "-m", "gamma=1,2", "steps=20")
    assert not (outputs / "sweeps" / "s" / "replicates.csv").exists()


def test_only_cells_that_are_done_and_differ_in_the_seed_alone_are_replicates() -> None:
    def cell(seed: int, status: str = "done", value: float | None = 1.0, **keys: object) -> dict[str, Any]:
        return {"status": status, "seed": seed, "x": value, "x_low": None, "p": 0.5, **keys}

    keys = ["rule", "seed"]
    two = [cell(0, rule="a", value=1.0), cell(1, rule="a", value=2.0), cell(2, status="failed", rule="a", value=None)]
    (mean,) = replicates.summary(keys, [*two, cell(0, rule="b")])
    assert (mean["rule"], mean["seeds"], mean["x"]) == ("a", 2, 1.5)
    assert "p" not in mean
    assert mean["x_low"] == pytest.approx(1.5 - 12.706204736432095 * 0.5)  # t of 1 degree of freedom
    assert replicates.summary(["rule"], [cell(0, rule="a"), cell(0, rule="b")]) == []
    assert replicates.summary(keys, two[1:]) == []
    assert "x" not in replicates.summary(keys, [two[0], cell(1, rule="a", value=None)])[0]


# ------------------------------------------------------------------------------------------------------- words


def test_the_fewest_keys_that_tell_points_apart() -> None:
    def world(target: dict[str, Any], draft: str, gamma: int = 4) -> dict[str, Any]:
        return {"target": target, "draft": {"name": draft}, "gamma": gamma}

    steps, positions = ({"name": "random", "vocab": 20, "context": context} for context in ("step", "position"))
    text = {"name": "text", "order": 5}
    assert sweeps.telling([world(steps, "noise"), world(text, "text")]) == ["target", "draft"]
    assert "target.context" in sweeps.telling([world(steps, "noise"), world(positions, "noise"), world(text, "text")])
    assert sweeps.telling([world(steps, "noise"), world(positions, "noise", 8)]) == ["target.context", "gamma"]
    assert sweeps.telling([world(steps, "noise")] * 2) == []


def test_an_interval_of_rounding_alone_takes_no_digits() -> None:
    assert digits.number(6.8618940391, 6.8618940391 - 1e-14, 6.8618940391 + 1e-14) == "6.862"
    assert digits.number(6.8618940391, 6.86188, 6.86190) == "6.861894"  # the negative control: an interval that is one
