"""The command line end to end: runs, sweeps, their files, their MLflow runs, their ends."""

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import specexp
from specexp import digits, metrics, report, store, tracking
from specexp.__main__ import main
from specexp.app import console, launch, sweeping
from specexp.errors import UserError
from specexp.tracking import connection

PACKAGE = Path(specexp.__file__).parent.parent
QUICK = ["steps=50", "figures=none", "tracking=none"]


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path / "outputs"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real store for this file: its schema costs two seconds; each test has an experiment of its own."""
    return tmp_path_factory.mktemp("store") / "mlflow.db"


@pytest.fixture
def mlflow_words(database: Path, request: pytest.FixtureRequest) -> list[str]:
    return [f"tracking.uri=sqlite:///{database}", f"tracking.experiment={request.node.originalname}"]


def rows(sweep: Path) -> list[dict[str, str]]:
    with (sweep / "sweep.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def contents(folder: Path) -> dict[str, bytes]:
    """All of a folder's bytes, save run.json, which alone may differ between two runs of one config."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def mlflow_runs(database: Path, experiment: str) -> list[tuple[str, str]]:
    """(kind, status) of an experiment's runs, read from the database itself."""
    asked = (
        "select t.value, r.status from runs r join tags t on t.run_uuid = r.run_uuid and t.key = 'specexp.kind' "
        "join experiments e on e.experiment_id = r.experiment_id where e.name = ? and r.lifecycle_stage = 'active'"
    )
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute(asked, (experiment,)).fetchall())


# ---------------------------------------------------------------------------------------------------- single runs


def test_a_run_prints_its_table_and_leaves_a_whole_folder(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "gamma=3"]) == 0
    (folder,) = outputs.glob("runs/*")
    assert {path.name for path in folder.iterdir()} == {"config.yaml", "run.json", "curves.csv", "metrics.json"}
    said, found = record(folder), store.read_folder(folder)
    assert (said["status"], said["kind"], said["reason"]) == ("done", "run", None)
    assert said["overrides"] == [*QUICK, "gamma=3"]
    assert said["command"] == "python -m specexp steps=50 figures=none tracking=none gamma=3"
    assert said["digest"] == store.digest(found.config)
    assert not {"sweep", "tracking", "hydra"} & set(found.config)
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "target=random draft=noise rule=token gamma=3 steps=50 seed=0" in captured.out
    for name in ("alpha", "tokens/step", "closed form", "speedup", "best gamma", "TV distance", "lossless", "folder"):
        assert f"\n{name} " in captured.out


def test_the_same_config_gives_the_same_bytes(outputs: Path) -> None:
    for _ in range(2):
        assert main(["steps=50", "tracking=none", "figures=png"]) == 0
    one, two = outputs.glob("runs/*")
    assert contents(one) == contents(two)
    assert any(name.endswith(".png") for name in contents(one))
    assert main([*QUICK, "seed=1"]) == 0  # the negative control
    other = max(outputs.glob("runs/*"), key=lambda folder: record(folder)["started"])
    assert contents(other)["metrics.json"] != contents(one)["metrics.json"]


def test_the_tree_that_was_chosen_can_be_given(outputs: Path) -> None:
    """tree.txt of a run of sequoia, as length.path: the same numbers. Of one path there is none."""
    words = [*QUICK, "rule=recursive", "gamma=3", "gamma_max=3"]
    assert main([*words, "length=sequoia", "length.budget=6"]) == 0
    (chosen,) = (outputs / "runs").iterdir()
    assert main([*words, "length=tree", f"length.path={chosen / 'tree.txt'}"]) == 0
    (given,) = set((outputs / "runs").iterdir()) - {chosen}
    for name in ("metrics.json", "curves.csv", "tree.txt"):
        assert (given / name).read_bytes() == (chosen / name).read_bytes()
    assert main(words) == 0
    (path,) = set((outputs / "runs").iterdir()) - {chosen, given}
    assert not (path / "tree.txt").exists()


def test_metrics_json_is_written_last(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[set[str]] = []
    write = store.write_metrics

    def watched(folder: Path, found: Any) -> Path:
        there.append({path.name for path in folder.iterdir()})
        return write(folder, found)

    monkeypatch.setattr(store, "write_metrics", watched)
    assert main(["steps=50", "tracking=none", "figures=png"]) == 0
    assert {"config.yaml", "run.json", "curves.csv", "notebook.png"} <= there[0]


def test_a_lossy_rule_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "rule=lenient"]) == 0
    assert "not claimed by this rule" in capsys.readouterr().out
    assert main(QUICK) == 0
    assert "not claimed by this rule" not in capsys.readouterr().out


def test_the_best_gamma_at_the_end_asks_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "gamma=2", "gamma_max=4", "draft.sigma=0.1"]) == 0
    assert "raise gamma_max" in capsys.readouterr().out
    assert main([*QUICK, "gamma=2", "draft.sigma=3", "cost.draft_ms=20"]) == 0
    assert "do not speculate" in capsys.readouterr().out


def breaks(monkeypatch: pytest.MonkeyPatch, error: BaseException, gamma: int) -> None:
    """Makes the measuring of one gamma fail."""
    measure = metrics.measure

    def measured(experiment: Any, progress: Any = None) -> Any:
        if experiment.gamma == gamma:
            raise error
        return measure(experiment, progress)

    monkeypatch.setattr(metrics, "measure", measured)


def test_a_bug_of_ours_says_so_and_leaves_its_traceback(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    breaks(monkeypatch, ZeroDivisionError("by nought\nand more"), gamma=4)
    assert main(QUICK) == 1
    (folder,) = outputs.glob("runs/*")
    assert record(folder)["status"] == "failed"
    assert record(folder)["reason"] == "ZeroDivisionError: by nought"
    assert "ZeroDivisionError" in (folder / "traceback.txt").read_text(encoding="utf-8")
    assert not (folder / "metrics.json").exists()
    line = capsys.readouterr().err
    assert line.startswith("specexp: ZeroDivisionError: by nought; this is a bug of specexp")
    assert str(folder / "traceback.txt") in line


def test_a_users_error_found_late_leaves_no_folder(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    breaks(monkeypatch, UserError("draft.alpha=0.1: not in this context; take more"), gamma=4)
    assert main(QUICK) == 2
    assert capsys.readouterr().err == "specexp: draft.alpha=0.1: not in this context; take more\n"
    assert list(outputs.glob("runs/*")) == []


# --------------------------------------------------------------------------------------------------------- sweeps


def test_a_sweep_is_a_row_a_cell_in_the_order_given(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "-m", "rule=token,lenient", "gamma=4,2", "sweep=mine"]) == 0
    sweep = outputs / "sweeps" / "mine"
    found = rows(sweep)
    assert [(row["rule"], row["gamma"]) for row in found] == [
        ("token", "4"),
        ("token", "2"),
        ("lenient", "4"),
        ("lenient", "2"),
    ]
    assert {row["status"] for row in found} == {"done"}
    content = json.loads((sweep / "sweep.json").read_text(encoding="utf-8"))
    assert content["swept"] == {"gamma": [4, 2], "rule": ["token", "lenient"]}
    assert content["fixed"]["steps"] == 50
    assert not {"gamma", "rule.name"} & set(content["fixed"])
    for row in found:
        cell = store.read_folder(sweep / row["cell"])
        assert cell.run["kind"] == "cell"
        assert str(cell.metrics["alpha"]) == row["alpha"]
        assert "sweep=mine" in cell.run["command"]
        assert not any(word.startswith("sweep=") for word in cell.run["overrides"])
    assert record(sweep)["status"] == "done"
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:3] == ["rule", "gamma", "status"]
    assert [line.split()[:2] for line in table[1:5]] == [[row["rule"], row["gamma"]] for row in found]


def test_flags_may_stand_anywhere_and_hydra_leaves_nothing_behind(outputs: Path, tmp_path: Path) -> None:
    for number, words in enumerate((["-m", "gamma=1"], ["gamma=1", "--multirun"], ["seed=0", "-m", "gamma=1"])):
        assert main([*QUICK[:1], *words, *QUICK[1:], f"sweep=s{number}"]) == 0
    tables = {(outputs / "sweeps" / f"s{number}" / "sweep.csv").read_bytes() for number in range(3)}
    assert len(tables) == 1
    assert list((tmp_path / "here").iterdir()) == []
    assert not [path for path in outputs.rglob("*") if path.name in ("multirun.yaml", ".hydra", "specexp.log")]


def test_a_sweep_without_a_name_has_its_own_each_time(outputs: Path) -> None:
    for _ in range(2):
        assert main([*QUICK, "-m", "gamma=1"]) == 0
    assert len(list(outputs.glob("sweeps/*/sweep.csv"))) == 2


def test_a_cell_asked_for_twice_is_one(outputs: Path) -> None:
    assert main([*QUICK, "-m", "gamma=1,1,2", "sweep=s"]) == 0
    assert [row["gamma"] for row in rows(outputs / "sweeps" / "s")] == ["1", "2"]


def test_a_preset_may_be_a_sweep_itself(outputs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "two.yaml").write_text(
        "# @package _global_\ndefaults: [override /draft: alpha]\nsweep: from_preset\n"
        "hydra: {mode: MULTIRUN, sweeper: {params: {draft.alpha: '0.5,0.7', gamma: '1,2'}}}\n"
    )
    words = [*QUICK, "experiment=two", "--config-dir", str(tmp_path / "mine")]
    assert main(words) == 0
    assert len(rows(outputs / "sweeps" / "from_preset")) == 4
    assert main([*words, "gamma=3", "sweep=other"]) == 0  # the command line wins over the preset's own
    found = rows(outputs / "sweeps" / "other")
    assert [(row["draft.alpha"], "gamma" in row) for row in found] == [("0.5", False), ("0.7", False)]


def test_skipped_cells_are_no_failure_and_failed_ones_are(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "-m", "draft=noise,text", "sweep=skip"]) == 0
    assert [row["status"] for row in rows(outputs / "sweeps" / "skip")] == ["done", "skipped"]
    assert "specexp: skipped: draft=text: target=random draft=text" in capsys.readouterr().err
    several = ["rule=transport", "draft.replacement=true,false", "draft.paths=2", "sweep=words"]
    assert main([*QUICK, "-m", *several]) == 0
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("specexp: skipped: draft.replacement=false: rule=transport takes")  # as typed, and once
    assert main([*QUICK, "-m", "gamma=2,-1", "sweep=fail"]) == 1
    found = rows(outputs / "sweeps" / "fail")
    assert [(row["status"], row["reason"][:36]) for row in found] == [
        ("done", ""),
        ("failed", "gamma=-1: must be a whole number >= "),
    ]
    assert "specexp: failed: gamma=-1: must be" in capsys.readouterr().err  # the key once
    assert list((outputs / "sweeps" / "fail").rglob("traceback.txt")) == []
    assert main([*QUICK, "-m", "draft=text,bigram", "sweep=all"]) == 2


def test_a_cell_that_breaks_is_shown_with_its_traceback_and_the_sweep_goes_on(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    breaks(monkeypatch, ZeroDivisionError("by nought"), gamma=2)
    assert main([*QUICK, "-m", "gamma=1,2,3", "sweep=s"]) == 1
    found = rows(outputs / "sweeps" / "s")
    assert [row["status"] for row in found] == ["done", "failed", "done"]
    trace = outputs / "sweeps" / "s" / found[1]["cell"] / "traceback.txt"
    assert f"specexp: failed: gamma=2: ZeroDivisionError: by nought ({trace})" in capsys.readouterr().err
    assert record(outputs / "sweeps" / "s")["status"] == "failed"


def test_an_interruption_ends_the_sweep_with_every_cell_in_its_table(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    breaks(monkeypatch, KeyboardInterrupt(), gamma=2)
    assert main([*QUICK, "-m", "gamma=1,2,3", "sweep=s"]) == 130
    assert [(row["status"], row["reason"]) for row in rows(outputs / "sweeps" / "s")] == [
        ("done", ""),
        ("killed", "interrupted"),
        ("killed", "not started"),
    ]
    assert record(outputs / "sweeps" / "s")["status"] == "killed"
    assert capsys.readouterr().err.endswith("specexp: interrupted\n")


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interruption_while_drawing_says_where_the_cells_are(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "draw_sweep", interrupt)
    assert main([*QUICK, "-m", "gamma=1,2", "sweep=s"]) == 130
    sweep = outputs / "sweeps" / "s"
    assert [row["status"] for row in rows(sweep)] == ["done", "done"]
    assert record(sweep)["status"] == "killed"
    told = f"specexp: the cells are in {sweep}; python -m specexp report {sweep} draws them\n"
    assert capsys.readouterr().err == f"{told}specexp: interrupted\n"


@pytest.mark.parametrize(("words", "end"), [(["-m", "gamma=1,2", "sweep=s"], "sweeps/s"), (["gamma=1"], "runs/")])
def test_an_interruption_while_mlflow_is_told_says_what_logs_the_rest(
    words: list[str], end: str, outputs: Path, mlflow_words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(tracking, "track", interrupt)
    assert main(["steps=50", "figures=none", *mlflow_words, *words]) == 130
    captured = capsys.readouterr()
    assert f"{outputs}/{end}" in captured.err
    assert "python -m specexp sync logs the rest" in captured.err
    (ended,) = outputs.glob("sweeps/s" if "-m" in words else "runs/*")
    assert record(ended)["status"] == "done"
    assert ("tokens/step" in captured.out) == ("-m" not in words)


def test_a_sweep_takes_away_the_figures_of_an_earlier_one_of_its_name(outputs: Path) -> None:
    sweep = outputs / "sweeps" / "s"
    assert main([*QUICK, "-m", "gamma=1,2", "seed=1,2", "sweep=s"]) == 0
    assert main(["report", str(sweep)]) == 0
    cell = sweep / rows(sweep)[0]["cell"]
    before = contents(cell)
    assert (sweep / "speedup.png").exists()
    assert (sweep / "replicates.csv").exists()
    assert main([*QUICK, "-m", "draft.sigma=0.1,0.2", "sweep=s"]) == 0
    assert {path.name for path in sweep.iterdir() if path.is_file()} == {"run.json", "sweep.json", "sweep.csv"}
    assert contents(cell) == before


def test_a_launcher_that_dies_leaves_the_cells_that_were_done(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch.run_cell
    monkeypatch.setattr(launch, "run_cell", lambda cfg: run(cfg) if cfg.gamma == 1 else 1 / 0)
    assert main([*QUICK, "-m", "gamma=1,2", "sweep=s"]) == 1
    assert [row["status"] for row in rows(outputs / "sweeps" / "s")] == ["done", "killed"]
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert (outputs / "sweeps" / "s" / "traceback.txt").exists()


def test_report_draws_from_files_alone_the_same_bytes_each_time(outputs: Path, capsys: Any) -> None:
    assert main([*QUICK, "-m", "gamma=1,2", "sweep=s"]) == 0
    table = capsys.readouterr().out.splitlines()[:3]
    sweep = outputs / "sweeps" / "s"
    drawn: list[dict[str, bytes]] = []
    for _ in range(2):
        for path in [path for suffix in ("png", "pdf", "svg") for path in sweep.glob(f"*.{suffix}")]:
            path.unlink()
        assert main(["report", str(sweep)]) == 0
        assert capsys.readouterr().out.splitlines()[:3] == table
        drawn.append(contents(sweep))
    assert drawn[0] == drawn[1]
    assert {"speedup.png", "speedup.pdf", "speedup.svg", "table.tex"} <= set(drawn[0])
    cell = sweep / rows(sweep)[0]["cell"]
    assert main(["report", str(cell)]) == 0
    assert {"notebook.png", "notebook.pdf", "notebook.svg"} <= {path.name for path in cell.iterdir()}
    assert "tokens/step" in capsys.readouterr().out


# --------------------------------------------------------------------------------------------------------- MLflow


def test_runs_and_their_summary_are_in_mlflow(
    outputs: Path, database: Path, mlflow_words: list[str], request: pytest.FixtureRequest, capsys: Any
) -> None:
    words = ["steps=50", "figures=none", *mlflow_words]
    assert main([*words, "-m", "gamma=1,2,-3", "draft=noise,text", "sweep=s"]) == 1
    assert main(words) == 0
    assert mlflow_runs(database, request.node.name) == [
        ("cell", "FAILED"),
        ("cell", "FAILED"),
        ("cell", "FINISHED"),
        ("cell", "FINISHED"),
        ("run", "FINISHED"),
        ("sweep", "FAILED"),
    ]
    out = capsys.readouterr().out
    assert f"MLflow     experiment {request.node.name}, 4 runs and their summary" in out
    assert f"open with  python -m specexp ui tracking.uri=sqlite:///{database}" in out
    assert out.count("compareRunsMode=CHART") == 2
    assert out.count("/#/compare-runs?runs=") == 1


def test_a_store_of_no_use_is_an_error_before_any_work(outputs: Path, tmp_path: Path, capsys: Any) -> None:
    words = [*QUICK[:2], f"tracking.uri=sqlite:///{tmp_path}"]
    assert main(words) == 2
    assert main([*words, "-m", "gamma=1,2"]) == 2
    assert capsys.readouterr().err.count("is a folder") == 2
    assert not outputs.exists()


def test_results_are_whole_if_mlflow_fails_at_the_end_and_sync_tells_it_later(
    outputs: Path,
    database: Path,
    mlflow_words: list[str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(folder: Path, settings: Any) -> None:
        raise UserError(f"tracking.uri=...: MLflow failed (database is locked); {connection.SYNC}")

    with monkeypatch.context() as broken:
        broken.setattr(tracking, "track", refuse)
        assert main(["steps=50", "figures=none", "-m", "gamma=1,2", "sweep=s", *mlflow_words]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "database is locked" in captured.err
    assert captured.err.count("python -m specexp sync") == 1
    assert [row["status"] for row in rows(outputs / "sweeps" / "s")] == ["done", "done"]
    assert mlflow_runs(database, request.node.name) == []
    assert main(["sync", *mlflow_words]) == 0
    assert "3 runs logged, 0 there already" in capsys.readouterr().out
    assert len(mlflow_runs(database, request.node.name)) == 3


# ------------------------------------------------------------------------------------------------- real processes


def environment(outputs: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "SPECEXP_OUTPUTS": str(outputs)}


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["list"], 0), (["--cfg", "job"], 0), (["gamma=-1"], 2), (["-m", "gama=1,2"], 2), (QUICK, 0)],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_neither_mlflow_nor_matplotlib_is_imported_for_nothing(words: list[str], code: int, outputs: Path) -> None:
    script = (
        "import sys; from specexp.__main__ import main; code = main(sys.argv[1:]);"
        "heavy = {'mlflow', 'matplotlib', 'scipy.stats', 'pandas', 'rich'} & set(sys.modules);"
        "raise SystemExit(str(heavy) if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment(outputs), capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@contextlib.contextmanager
def working_sweep(outputs: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A sweep in a process of its own, whose first cell is done and whose second one is at work, for long."""
    command = [sys.executable, "-m", "specexp", "-m", "gamma=1,2", "steps=50,100000000", "figures=none", "sweep=s"]
    process = subprocess.Popen(
        [*command, *words], env=environment(outputs), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def at_work() -> bool:
        assert process.poll() is None, process.stderr and process.stderr.read()
        states = [record(path.parent)["status"] for path in (outputs / "sweeps" / "s").glob("*/run.json")]
        return "done" in states and "running" in states

    try:
        wait_for(at_work)
        yield process
    finally:
        process.kill()
        process.communicate()


def is_killed_from_the_second_cell_on(sweep: Path) -> bool:
    found = rows(sweep)
    assert [(row["gamma"], row["steps"]) for row in found] == [
        ("1", "50"),
        ("1", "100000000"),
        ("2", "50"),
        ("2", "100000000"),
    ]
    assert [row["reason"] for row in found[2:]] == ["not started", "not started"]
    return [row["status"] for row in found] == ["done", "killed", "killed", "killed"]


def test_ctrl_c_ends_the_sweep_as_killed_in_files_and_in_mlflow(
    outputs: Path, database: Path, mlflow_words: list[str], request: pytest.FixtureRequest
) -> None:
    with working_sweep(outputs, *mlflow_words) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
    assert "Traceback" not in err
    assert is_killed_from_the_second_cell_on(outputs / "sweeps" / "s")
    ends = [("cell", "FINISHED"), ("cell", "KILLED"), ("sweep", "KILLED")]
    assert mlflow_runs(database, request.node.name) == ends


def test_sigterm_ends_the_sweep_as_killed(outputs: Path) -> None:
    with working_sweep(outputs, "tracking=none") as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 143
    assert err.endswith("specexp: terminated\n")
    assert is_killed_from_the_second_cell_on(outputs / "sweeps" / "s")


def test_a_sweep_whose_process_is_killed_can_be_reported_and_synced(
    outputs: Path, database: Path, mlflow_words: list[str], request: pytest.FixtureRequest, capsys: Any
) -> None:
    sweep = outputs / "sweeps" / "s"
    with working_sweep(outputs, "tracking=none") as process:
        assert {row["reason"] for row in rows(sweep)} == {"not started"}
        assert store.scan(outputs).sweeps == [sweep]
        assert main([*QUICK, "-m", "gamma=3", "sweep=s"]) == 2  # a second sweep of its name
        line = capsys.readouterr().err
        assert line.startswith("specexp: sweep=s: another process is at work")
        assert line.count("\n") == 1
        process.kill()
        process.wait()
    assert store.status_of(store.read_run(sweep)) == "killed"
    assert main(["sync", *mlflow_words]) == 0
    ends = [("cell", "FINISHED"), ("cell", "KILLED"), ("sweep", "KILLED")]
    assert mlflow_runs(database, request.node.name) == ends
    assert is_killed_from_the_second_cell_on(sweep)
    (sweep / "sweep.csv").write_text((sweep / "sweep.csv").read_text().replace("done", "killed"))
    assert main(["report", str(sweep)]) == 0
    assert is_killed_from_the_second_cell_on(sweep)
    assert main([*QUICK, "-m", "gamma=3", "sweep=s"]) == 0  # its process is gone


@pytest.mark.slow
def test_another_launcher_gives_the_same_bytes_in_the_same_order(outputs: Path) -> None:
    words = ["steps=50", "tracking=none", "-m", "rule=token,lenient", "rule.lenience=0.3,0.5"]
    words += ["gamma=4,1", "draft=noise,text", "sweep=s"]
    assert main(words) == 0
    basic = outputs.rename(outputs.with_name("basic"))
    assert main([*words, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]) == 0
    assert contents(outputs) == contents(basic)
    assert len(rows(outputs / "sweeps" / "s")) == 12


@pytest.mark.slow
def test_sigterm_leaves_no_worker_of_another_launcher_behind(outputs: Path) -> None:
    with working_sweep(outputs, "tracking=none", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2") as process:
        workers = [record(path.parent)["pid"] for path in (outputs / "sweeps" / "s").glob("*/run.json")]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 143
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), seconds=10)
    assert "running" not in {row["status"] for row in rows(outputs / "sweeps" / "s")}


# ---------------------------------------------------------------------------------------------- numbers and words


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (None, None, None, ""),
        (4, None, None, "4"),
        (0.888054, None, None, "0.8881"),
        (4.0057, 3.9995, 4.0118, "4.006"),  # half-width .006: its first digit
        (2.8612, 2.849, 2.874, "2.861"),  # half-width .0125: two
        (1234.5, None, None, "1234"),
        (1.0, 1.0, 1.0, "1.000"),
        (0.0, None, None, "0.0"),
    ],
)
def test_digits_are_those_that_the_interval_lets_stand(
    value: float | None, low: float | None, high: float | None, shown: str
) -> None:
    assert digits.number(value, low, high) == shown


def test_points_of_a_preset_are_told_by_the_keys_that_they_set() -> None:
    cells = [
        launch.Cell((f"experiment/table={name}",), {"gamma": gamma, "draft": {"name": "alpha", "alpha": alpha}})
        for name, gamma, alpha in (("a", 2, 0.6), ("b", 3, 0.7))
    ]
    assert sweeping.swept(cells) == {"gamma": [2, 3], "draft.alpha": [0.6, 0.7]}


def test_a_terminal_that_is_too_narrow_cuts_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    cells = [f"0.8881 [0.8{number}, 0.89]" for number in range(10)]
    console._print_table([f"metric {number}" for number in range(10)], [cells])
    out = capsys.readouterr().out
    assert "…" not in out
    assert all(cell in out for cell in cells)
    assert out.count("\n") == 2


def test_plain_columns_line_up() -> None:
    assert console.text_table([["a", "bb"], ["ccc", ""]]) == "a    bb\nccc"
