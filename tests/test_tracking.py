"""MLflow against a real store: what is told of a folder, told once, and every way in which it can fail."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import specexp
from specexp import store, tracking
from specexp.errors import UserError
from specexp.rows import CurveRow
from specexp.tracking import content, embedded, wording
from specexp.tracking.connection import connect
from specexp.tracking.settings import Settings

CONFIG = {
    "gamma": 4, "seed": 0, "steps": 5000, "figures": None, "rule": {"name": "token"},
    "target": {"name": "fixed", "probs": [0.4, 0.6]}, "draft": {"name": "noise", "sigma": 0.3},
    "cost": {"name": "ratio", "ratio": 0.1},
}  # fmt: skip
METRICS = {
    "alpha": 0.9, "speedup": 2.5, "speedup_source": "exact", "steps": 5056, "tv_exact": None, "tokens_per_step": 4.0,
    "tokens_per_step_low": 3.9, "tokens_per_step_high": 4.1,
}  # fmt: skip
ROWS = [
    CurveRow("by_gamma/tokens_per_step", g, kind, 1 + g * step, None, None)
    for kind, step in (("sampled", 0.7), ("exact", 0.5), ("closed_form", 0.6))
    for g in range(9)
] + [CurveRow("by_position/acceptance", x, "sampled", 0.9**x if x < 3 else None, None, None) for x in (1, 2, 3)]


def put(root: Path, kind: str = "cell", sweep: str = "s", metrics: dict | None = METRICS, **record: object) -> Path:
    """A finished folder; more of `record`, such as gamma=2, changes the config, all else run.json."""
    config = CONFIG | {"gamma": record.pop("gamma", 4)}
    digest = store.digest(config)
    folder = store.new_run_folder(root) if kind == "run" else store.cell_folder(root, sweep, digest)
    new = store.new_record(
        digest, kind, sweep if kind == "cell" else None, [f"gamma={config['gamma']}"], "specexp typed"
    )
    store.write_config(folder, config)
    store.write_curves(folder, ROWS)
    store.write_run(folder, new | {"status": "done", "seconds": 1.5} | record)
    if metrics is not None:
        store.write_metrics(folder, metrics)
    return folder


def put_sweep(root: Path, gammas: tuple[int, ...] = (1, 2), end: str = "done", **last: object) -> Path:
    """A sweep whose cells are done, save the last, of which more can be said; speedups grow with gamma."""
    for gamma in gammas:
        more = last if gamma == gammas[-1] else {}
        put(root, gamma=gamma, **{"metrics": METRICS | {"speedup": 1.0 + gamma}, **more})
    folder = store.sweep_folder(root, "s")
    store.write_run(
        folder, store.new_record("0" * 12, "sweep", "s", [], "specexp -m") | {"status": end, "seconds": 3.0}
    )
    store.write_sweep(folder, {"gamma": list(gammas)}, [CONFIG | {"gamma": gamma} for gamma in gammas])
    return folder


@pytest.fixture(autouse=True)
def _no_store_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real store for all tests (a schema costs two seconds); each test has an experiment of its own."""
    return tmp_path_factory.mktemp("store") / "mlflow.db"


@pytest.fixture
def settings(database: Path, tmp_path: Path) -> Settings:
    return tracking.prepare(Settings(uri=f"sqlite:///{database}", experiment=str(tmp_path)), tmp_path)


def runs_of(settings: Settings) -> list:
    client, experiment_id = connect(settings)
    return client.search_runs([experiment_id], order_by=["attributes.created ASC"])


def python(script: str, *words: object, **more: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=with_package(), **more)


def with_package() -> dict[str, str]:
    """An environment in which the package under test is found from any folder."""
    return os.environ | {"PYTHONPATH": str(Path(specexp.__file__).parent.parent)}


# --- which store -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "uri", "environment", "expected"),
    [
        ("local", None, None, "sqlite:///{root}/mlflow.db"),
        ("local", None, "", "sqlite:///{root}/mlflow.db"),
        ("local", None, "http://h:1/", "http://h:1"),
        ("local", "sqlite:///x.db", "http://h:1", "sqlite:///{here}/x.db"),
        ("server", "http://h:1", "http://other", "http://h:1"),
        ("server", None, "https://h", "https://h"),
        ("server", "postgresql+psycopg2://h/db", None, "postgresql+psycopg2://h/db"),
        ("none", None, "nonsense", None),
    ],
)
def test_the_uri_is_the_keys_then_the_environments_then_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, uri: str, environment: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if environment is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", environment)
    resolved = Settings(kind, uri).resolve(Path("root"))
    assert resolved.uri == (expected and expected.format(root=tmp_path / "root", here=tmp_path))
    assert resolved.resolve(Path("/elsewhere")).uri == resolved.uri


@pytest.mark.parametrize(
    ("kind", "uri"),
    [
        ("server", None),
        *(("local", uri) for uri in ("http://", "https:///p", "http://h:port", "http://[", "http://a b")),
        *(
            ("local", uri)
            for uri in ("./mlruns", "file:///x", "sqlite://", "sqlite:///", "sqlite:///:memory:", "ftp://h")
        ),
        *(("local", uri) for uri in ("sqlite:////a?b.db", "sqlite:////a%20b.db", "postgresql")),
    ],
)
def test_what_is_no_store_is_refused_in_one_line(kind: str, uri: str) -> None:
    with pytest.raises(UserError, match=r"^tracking\.uri=.*") as caught:
        Settings(kind, uri).resolve(Path("/outputs"))
    assert "\n" not in str(caught.value)
    assert not uri or f"tracking.uri={uri}: " in str(caught.value)


def test_an_experiment_without_a_name_is_refused() -> None:
    with pytest.raises(UserError, match=r"^tracking\.experiment=: no name"):
        Settings(experiment=" ").resolve(Path("/outputs"))


@pytest.mark.parametrize(
    ("kind", "key", "environment", "named", "instead"),
    [
        ("local", "http://h:1", "http://e", "tracking.uri=http://h:1", "take tracking=none, or drop tracking.uri"),
        (
            *("local", None, "http://me:pw@e", "MLFLOW_TRACKING_URI=http://e"),
            "take tracking=none, or unset MLFLOW_TRACKING_URI",
        ),
        (
            *("server", "http://h", None, "tracking.uri=http://h"),
            "take tracking=none, or take tracking=local and drop tracking.uri",
        ),
        ("local", None, None, "tracking.uri=sqlite:////outputs/mlflow.db", "or take tracking=none"),
    ],
)
def test_messages_name_where_the_uri_is_from_and_how_to_go_without(
    monkeypatch: pytest.MonkeyPatch, kind: str, key: str, environment: str, named: str, instead: str
) -> None:
    if environment:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", environment)
    resolved = Settings(kind, key).resolve(Path("/outputs"))
    assert (resolved.named, resolved.instead) == (named, instead)
    assert resolved.resolve(Path("/elsewhere")) == resolved


def test_a_bad_uri_in_the_environment_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "ftp://me:pw@h")
    with pytest.raises(UserError, match=r"^MLFLOW_TRACKING_URI=ftp://h: not a store"):
        Settings().resolve(Path("/outputs"))


def test_a_store_that_cannot_be_used_claims_no_results(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^tracking\.uri=postgresql\+foo://x/y: MLflow failed.*drop tracking\.uri$"):
        tracking.prepare(Settings(uri="postgresql+foo://x/y"), tmp_path)


def test_a_database_without_its_driver_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MySQLdb", None)
    with pytest.raises(UserError, match=r"^tracking\.uri=mysql://x/y: needs .* MySQLdb.*pip install 'mysqlclient'$"):
        tracking.prepare(Settings(uri="mysql://x/y"), tmp_path)


def test_a_password_is_not_shown() -> None:
    assert Settings(uri="https://me:secret@h:1/p").shown == "https://h:1/p"
    assert Settings(uri="sqlite:////a@b/c.db").shown == "sqlite:////a@b/c.db"


NONE = """
import sys
from pathlib import Path
from specexp import tracking
none, root = tracking.Settings("none"), Path(sys.argv[1])
assert tracking.prepare(none, root) == none
assert tracking.track(next((root / "sweeps" / "s").iterdir()), none) is None
assert tracking.sync(root, none) == tracking.Synced()
print([name for name in sys.modules if name.split(".")[0] in ("mlflow", "alembic", "sqlalchemy")])
"""


def test_tracking_none_imports_no_mlflow_and_writes_nothing(tmp_path: Path) -> None:
    put(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    done = python(NONE, tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


# --- what is told ----------------------------------------------------------------------------------------------------


def test_a_note_tells_of_several_drafts_where_there_are_numbers(tmp_path: Path) -> None:
    several = {"acceptance_first": 0.93, "acceptance_optimum": 0.99, "gain_over_token": 0.1}
    note = wording.note(store.read_folder(put(tmp_path, metrics=METRICS | several)), "done").replace(wording.GAP, "")
    rows = ["| acceptance_first | 0.9300 |", "| acceptance_optimum | 0.9900 |", "| gain_over_token | 0.1000 |"]
    assert set(rows) <= set(note.splitlines())
    plain = wording.note(store.read_folder(put(tmp_path, gamma=5)), "done")
    assert "alpha" in plain
    assert not any(key in plain for key in several)


def test_a_cell_is_told_whole(tmp_path: Path, settings: Settings) -> None:
    folder = put(tmp_path, started="2026-01-02T03:04:05+00:00")
    store.write_text(folder, "by_gamma.png", "picture")
    run_id = tracking.track(folder, settings)
    client, experiment_id = connect(settings)
    run = client.get_run(run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "gamma=4")
    assert run.info.start_time == 1767323045_000
    assert run.info.end_time == run.info.start_time + 1500
    assert run.data.params == {
        "gamma": "4", "seed": "0", "steps": "5000", "rule.name": "token", "target.name": "fixed",
        "target.probs": "[0.4, 0.6]", "draft.name": "noise", "draft.sigma": "0.3",
        "cost.name": "ratio", "cost.ratio": "0.1",
    }  # fmt: skip
    knobs = {"gamma": 4.0, "seed": 0.0, "draft.sigma": 0.3, "cost.ratio": 0.1}
    curves = {"by_gamma/tokens_per_step": 5.0, "by_position/acceptance": 0.81}
    numbers = {key: float(value) for key, value in METRICS.items() if isinstance(value, int | float)}
    assert run.data.metrics == pytest.approx(numbers | knobs | curves)  # `steps` is what was measured, not the knob
    tags = run.data.tags
    assert tags["speedup_source"] == "exact"
    assert {tags["specexp.kind"], tags["specexp.sweep"], tags["specexp.digest"]} == {"cell", "s", folder.name}
    assert tags["specexp.status"] == "done"
    assert "python -m specexp gamma=4" in tags["mlflow.note.content"]
    assert {"mlflow.user", "mlflow.source.name", "mlflow.runColor", "specexp.host", "specexp.pid"} <= set(tags)
    names = {file.path for file in client.list_artifacts(run_id)}
    assert names == {"config.yaml", "curves.csv", "metrics.json", "by_gamma.png"}
    written = store.read_run(folder)["mlflow"]
    assert written == {"uri": settings.uri, "experiment_id": experiment_id, "run_id": run_id}


def test_curves_are_histories_over_x_of_the_best_kind(tmp_path: Path, settings: Settings) -> None:
    run_id = tracking.track(put(tmp_path), settings)
    history = connect(settings).client.get_metric_history(run_id, "by_gamma/tokens_per_step")
    assert sorted((point.step, point.value) for point in history) == [(g, 1 + g * 0.5) for g in range(9)]


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rows = [CurveRow("c", x, "exact", float(x), None, None) for x in range(5001)]
    points = list(content.histories(rows))
    assert len(points) == 200
    assert (points[0].step, points[-1].step) == (0, 5000)
    assert len({point.step for point in points}) == 200
    assert all(point.step == point.value for point in points)
    assert [point.step for point in content.histories(rows[:1])] == [0]


def test_failed_and_killed_end_so_and_bring_their_traceback(tmp_path: Path, settings: Settings) -> None:
    failed = put(tmp_path, gamma=1, metrics=None, status="failed", reason="ValueError: x")
    store.write_text(failed, "traceback.txt", "Traceback")
    killed = put(tmp_path, gamma=2, metrics=None, status="killed")
    dead = put(tmp_path, gamma=3, metrics=None, status="running", pid=None)
    ids = [tracking.track(folder, settings) for folder in (failed, killed, dead)]
    client = connect(settings).client
    assert [client.get_run(run_id).info.status for run_id in ids] == ["FAILED", "KILLED", "KILLED"]
    assert "traceback.txt" in {file.path for file in client.list_artifacts(ids[0])}
    assert "ValueError: x" in client.get_run(ids[0]).data.tags["mlflow.note.content"]
    assert (store.read_run(dead)["status"], store.read_run(dead)["reason"] is None) == ("killed", False)


def test_skipped_and_running_make_no_run(tmp_path: Path, settings: Settings) -> None:
    for gamma, status in ((1, "skipped"), (2, "running")):
        assert tracking.track(put(tmp_path, gamma=gamma, metrics=None, status=status), settings) is None
    assert runs_of(settings) == []


def test_the_summary_holds_the_table_the_best_cell_and_the_counts(tmp_path: Path, settings: Settings) -> None:
    folder = put_sweep(tmp_path, (1, 2, 8, 4), metrics=None, status="failed", reason="ValueError: x | y")
    store.write_text(folder, "speedup.png", "picture")
    run = connect(settings).client.get_run(tracking.track_sweep(folder, settings))
    assert (run.info.status, run.info.run_name) == ("FAILED", "sweep gamma=1,2,8,4 · s")
    counts = {"cells_done": 3, "cells_failed": 1, "cells_skipped": 0, "cells_killed": 0}
    assert run.data.metrics == {"speedup_best": 9.0, "gamma_best": 8.0, **counts}
    lines = run.data.tags["mlflow.note.content"].replace(wording.GAP, "").replace(wording.SPACE, " ").splitlines()
    assert lines[0] == "**gamma=1,2,8,4** · 3 of 4 cells done"
    assert lines[2] == "| gamma | status | alpha | tokens_per_step | speedup | gamma_best |"
    assert lines[4:8] == [
        "| 1 | done | 0.9000 | 4.00 [3.90, 4.10] | 2.000 |  |",
        "| 2 | done | 0.9000 | 4.00 [3.90, 4.10] | 3.000 |  |",
        "| 8 | done | 0.9000 | 4.00 [3.90, 4.10] | 9.000 |  |",
        "| 4 | failed: ValueError: x \\| y |  |  |  |  |",
    ]
    assert lines[9] == "`specexp -m`"
    names = {file.path for file in connect(settings).client.list_artifacts(run.info.run_id)}
    assert names == {"speedup.png", "sweep.csv", "sweep.json"}
    assert store.read_run(folder)["mlflow"]["run_id"] == run.info.run_id


@pytest.mark.parametrize(("end", "told"), [("done", ["FINISHED"]), ("killed", ["KILLED"]), ("running", [])])
def test_the_summary_ends_as_the_sweep_did(tmp_path: Path, settings: Settings, end: str, told: list[str]) -> None:
    tracking.track_sweep(put_sweep(tmp_path, end=end), settings)
    assert [run.info.status for run in runs_of(settings)] == told


def test_names_say_what_was_swept_and_colours_differ(tmp_path: Path) -> None:
    gammas = tuple(range(1, 31))
    put_sweep(tmp_path, gammas)
    cells = [store.read_folder(tmp_path / "sweeps" / "s" / store.digest(CONFIG | {"gamma": g})) for g in gammas]
    assert len({wording.color(cell) for cell in cells}) == 30
    assert [wording.name(cell) for cell in cells[:2]] == ["gamma=1", "gamma=2"]
    cells[0].run["overrides"] = ["target=text", "gamma=1"]
    assert wording.name(cells[0]) == "gamma=1"
    run = store.read_folder(put(tmp_path, "run", overrides=[]))
    assert wording.name(run) == f"specexp {run.run['digest']}"
    run.run["overrides"] = ["target.probs=[" + "0.1," * 99 + "]"]
    assert len(wording.name(run)) == 120


# --- told once -------------------------------------------------------------------------------------------------------


def test_the_same_folder_told_again_is_the_same_run(tmp_path: Path, settings: Settings) -> None:
    folders = [put(tmp_path), put(tmp_path, "run"), put(tmp_path, "run")]
    ids = [tracking.track(folder, settings) for folder in folders]
    records = [(folder / "run.json").stat().st_mtime_ns for folder in folders]
    assert [tracking.track(folder, settings) for folder in folders] == ids
    assert {run.info.run_id for run in runs_of(settings)} == set(ids)
    assert len(set(ids)) == 3  # two single runs of one config are two
    assert [(folder / "run.json").stat().st_mtime_ns for folder in folders] == records


def test_a_run_whose_id_was_not_written_back_is_found(tmp_path: Path, settings: Settings) -> None:
    folder = put(tmp_path)
    run_id = tracking.track(folder, settings)
    store.write_run(folder, store.read_run(folder) | {"mlflow": None})
    assert tracking.track(folder, settings) == run_id
    assert store.read_run(folder)["mlflow"]["run_id"] == run_id


def test_a_cell_or_sweep_run_anew_replaces_its_run(tmp_path: Path, settings: Settings) -> None:
    old = [tracking.track(put(tmp_path), settings), tracking.track_sweep(put_sweep(tmp_path), settings)]
    time.sleep(0.002)  # `started` is in milliseconds
    new = [tracking.track(put(tmp_path), settings), tracking.track_sweep(put_sweep(tmp_path), settings)]
    assert [run.info.run_id for run in runs_of(settings)] == new
    assert {connect(settings).client.get_run(run_id).info.lifecycle_stage for run_id in old} == {"deleted"}


def test_another_outputs_folder_keeps_its_own_run(tmp_path: Path, settings: Settings) -> None:
    for place in ("one", "two"):
        tracking.track(put(tmp_path / place), settings)
    assert len(runs_of(settings)) == 2


def test_a_moved_outputs_folder_is_not_told_again(tmp_path: Path, settings: Settings) -> None:
    put_sweep(tmp_path / "one")
    assert tracking.sync(tmp_path / "one", settings).made == 3
    (tmp_path / "one").rename(tmp_path / "two")
    assert tracking.sync(tmp_path / "two", settings) == tracking.Synced(made=0, kept=3)
    assert len(runs_of(settings)) == 3


def test_two_at_once_make_one_run(tmp_path: Path, settings: Settings) -> None:
    folders = [put(tmp_path, gamma=gamma) for gamma in range(6)]
    together = [threading.Thread(target=tracking.sync, args=(tmp_path, settings)) for _ in range(3)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert len(runs_of(settings)) == len(folders)


# --- sync ------------------------------------------------------------------------------------------------------------

KILLED_HALF_WAY = """
import os, signal, sys
from pathlib import Path
from specexp import tracking
import mlflow
mlflow.MlflowClient.{at} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
tracking.track(Path(sys.argv[1]), tracking.Settings(uri=sys.argv[2], experiment=sys.argv[3]))
"""


@pytest.mark.parametrize("at", ["log_batch", "set_terminated"])
def test_sync_mends_what_a_kill_cut_off(tmp_path: Path, settings: Settings, at: str) -> None:
    folder = put(tmp_path)
    done = python(KILLED_HALF_WAY.format(at=at), folder, settings.uri, settings.experiment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [run.info.status for run in runs_of(settings)] == ["RUNNING"]
    assert tracking.sync(tmp_path, settings) == tracking.Synced(made=1)
    [run] = runs_of(settings)
    assert (run.info.status, run.data.metrics["alpha"]) == ("FINISHED", 0.9)
    assert tracking.sync(tmp_path, settings) == tracking.Synced(kept=1)


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("status", ["done", "killed"])
def test_an_interrupted_telling_leaves_no_open_run(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, end: type[BaseException], status: str
) -> None:
    folder = put(tmp_path, status=status, metrics=METRICS if status == "done" else None)
    client = type(connect(settings).client)

    def interrupted(*_: object) -> None:
        raise end

    with monkeypatch.context() as patch:
        patch.setattr(client, "log_artifact", interrupted)
        with pytest.raises(end):
            tracking.track(folder, settings)
    assert runs_of(settings) == []
    assert tracking.sync(tmp_path, settings) == tracking.Synced(made=1)
    other = put(tmp_path, gamma=2)
    with monkeypatch.context() as patch:
        patch.setattr(client, "log_artifact", interrupted)
        patch.setattr(client, "delete_run", lambda *_: json.loads("{"))
        with pytest.raises(end):  # the first error is told, where MLflow takes no more
            tracking.track(other, settings)
    assert tracking.sync(tmp_path, settings) == tracking.Synced(made=1, kept=1)


def test_sync_tells_every_finished_folder_and_names_the_damaged(tmp_path: Path, settings: Settings) -> None:
    put_sweep(tmp_path, (1, 2, 4), metrics=None, status="skipped")
    put(tmp_path, "run")
    (put(tmp_path, "run") / "metrics.json").write_text("{")
    done = tracking.sync(tmp_path, settings)
    assert (done.made, done.kept, len(done.damaged)) == (4, 0, 1)
    assert "metrics.json" in done.damaged[0]
    kinds = sorted(run.data.tags["specexp.kind"] for run in runs_of(settings))
    assert kinds == ["cell", "cell", "run", "sweep"]
    assert tracking.sync(tmp_path, settings).made == 0


def test_sync_closes_open_runs_of_dead_processes_only(tmp_path: Path, settings: Settings) -> None:
    client, experiment_id = connect(settings)
    tags = {"specexp.outputs": str(tmp_path), "specexp.host": socket.gethostname()}
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine, theirs = ({**tags, "specexp.pid": str(pid)} for pid in (ended.pid, os.getpid()))
    stay = [theirs, {**mine, "specexp.host": "elsewhere"}, {**mine, "specexp.outputs": "/elsewhere"}, {}]
    ids = [client.create_run(experiment_id, tags=one).info.run_id for one in (mine, *stay)]
    assert tracking.sync(tmp_path, settings) == tracking.Synced(closed=1)
    assert [client.get_run(run_id).info.status for run_id in ids] == ["KILLED"] + ["RUNNING"] * 4


# --- the embedded store ----------------------------------------------------------------------------------------------

FRESH = """
import logging, sys, warnings
from pathlib import Path
logging.basicConfig(level=logging.INFO)  # as Hydra does
from specexp import tracking
root = Path(sys.argv[1])
settings = tracking.prepare(tracking.Settings(), root)
tracking.track(next((root / "sweeps" / "s").iterdir()), settings)
"""


def test_a_fresh_store_is_whole_quiet_and_independent_of_the_current_folder(tmp_path: Path) -> None:
    root = tmp_path / "a b#cé'" / "outputs"
    folder = put(root)
    done = python(FRESH, root, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(file.name for file in root.iterdir()) == ["artifacts", "mlflow.db", "mlflow.db.lock", "sweeps"]
    assert [file.name for file in tmp_path.iterdir()] == ["a b#cé'"]  # no mlruns
    run_id = store.read_run(folder)["mlflow"]["run_id"]
    assert (root / "artifacts" / run_id / "artifacts" / "metrics.json").read_bytes() == (
        folder / "metrics.json"
    ).read_bytes()
    with sqlite3.connect(root / "mlflow.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        places = {uri for (uri,) in connection.execute("SELECT artifact_location FROM experiments")}
    connection.close()
    assert places == {(root / "artifacts").as_uri(), f"{(root / 'artifacts').as_uri()}/0"}


def test_a_deleted_experiment_is_said_with_its_cure(tmp_path: Path, settings: Settings) -> None:
    client, experiment_id = connect(settings)
    client.delete_experiment(experiment_id)
    connect.cache_clear()
    with pytest.raises(UserError, match=rf"tracking\.experiment=.*restore --experiment-id {experiment_id}"):
        tracking.prepare(settings, tmp_path)


def test_an_experiment_that_another_process_makes_first_is_used(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, experiment_id = connect(settings)
    answers = iter([None, client.get_experiment(experiment_id)])
    monkeypatch.setattr(type(client), "get_experiment_by_name", lambda *_: next(answers))
    connect.cache_clear()
    assert connect(settings).experiment_id == experiment_id


@pytest.fixture
def copy(settings: Settings, database: Path, tmp_path: Path) -> Path:
    """A copy of a real store, to be damaged."""
    target = tmp_path / "copy.db"
    with sqlite3.connect(database) as source, sqlite3.connect(target) as into:
        source.backup(into)
    source.close()
    into.close()
    return target


def refused(database: Path, match: str) -> None:
    before = database.read_bytes() if database.is_file() else None
    started = time.monotonic()
    with pytest.raises(UserError, match=match) as caught:
        tracking.prepare(Settings(uri=f"sqlite:///{database}"), database.parent)
    assert "\n" not in str(caught.value)
    assert "tracking.uri" in str(caught.value)
    assert time.monotonic() - started < 5  # MLflow alone tries for 102 seconds
    assert (database.read_bytes() if database.is_file() else None) == before
    assert not list(database.parent.glob(".*.tmp*")) if database.parent.is_dir() else True


def test_a_store_of_a_newer_mlflow_is_refused(copy: Path) -> None:
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    connection.close()
    refused(copy, "newer MLflow.*ffffffffffff")


def test_files_that_are_no_store_are_refused(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, whatever its name says" * 100)
    refused(tmp_path / "text.db", r"text\.db: not a store of MLflow's \(file is not a database\)")
    (tmp_path / "cut.db").write_bytes(copy.read_bytes()[:5000])
    refused(tmp_path / "cut.db", r"cut\.db: not a store")
    with sqlite3.connect(tmp_path / "alien.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    refused(tmp_path / "alien.db", r"alien\.db: not a store.*alembic_version")
    (tmp_path / "folder.db").mkdir()
    refused(tmp_path / "folder.db", "is a folder")


def test_a_place_that_cannot_be_written_is_refused_at_once() -> None:
    refused(Path("/proc/self/mlflow.db"), "cannot be written")  # nobody may, not even root
    refused(Path("/proc/self/below/mlflow.db"), r"cannot be written|cannot be made")


def test_an_empty_file_becomes_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "mlflow.db"
    made.touch()
    monkeypatch.setattr(embedded, "_make_schema", lambda file, _: sqlite3.connect(file).close())
    monkeypatch.setattr(embedded, "_write_ahead", lambda file: file.write_text("schema"))
    embedded.ensure(made, "file:///x")
    assert made.read_text() == "schema"


def test_without_write_ahead_the_store_works_as_sqlite_does(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect

    class Networked(sqlite3.Connection):
        def execute(self, words: str, *more: object) -> sqlite3.Cursor:
            if "WAL" in words:
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(words, *more)

    monkeypatch.setattr("specexp.tracking.embedded.sqlite3.connect", lambda file: real(file, factory=Networked))
    embedded._write_ahead(copy)
    monkeypatch.undo()
    connection = sqlite3.connect(copy)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.slow
@pytest.mark.usefixtures("settings")  # imports MLflow as the program does
def test_a_store_of_an_older_mlflow_is_upgraded_beside_a_copy(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from alembic import command
    from mlflow.store.db import utils
    from mlflow.store.tracking.dbmodels.initial_models import Base

    older, path = "bd07f7e963c5", tmp_path / "mlflow.db"
    engine = utils.create_sqlalchemy_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        config = utils._get_alembic_config(f"sqlite:///{path}")
        config.attributes["connection"] = connection
        command.upgrade(config, older)
    engine.dispose()
    settings = tracking.prepare(Settings(), tmp_path)
    assert tracking.track(put(tmp_path), settings)
    assert embedded._revision(tmp_path / f"mlflow.db.{older}.backup") == older
    assert embedded._revision(path) == embedded._revisions()[1]
    assert [record.name for record in caplog.records] == ["specexp.tracking.embedded"]


AT_ONCE = """
import sys
from pathlib import Path
from specexp import store, tracking
root, me = Path(sys.argv[1]), int(sys.argv[3])
sys.path.insert(0, sys.argv[2])
from test_tracking import put
tracking.track(put(root, gamma=me), tracking.Settings())
"""
MLFLOW_ALONE = """
import sys, mlflow
mlflow.MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow.db").create_run("0")
"""


def at_once(processes: int, script: str, *words: object) -> list[tuple[int, str]]:
    """(exit code, standard error) of each process; their number comes after the other words."""
    commands = [[sys.executable, "-c", script, *map(str, words), str(me)] for me in range(processes)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=with_package()) for command in commands]
    return [(process.returncode, errors) for process in started for errors in [process.communicate()[1]]]


@pytest.mark.slow
def test_eight_processes_on_a_fresh_store_at_once(tmp_path: Path) -> None:
    assert at_once(8, AT_ONCE, tmp_path, Path(__file__).parent) == [(0, "")] * 8
    assert len(runs_of(tracking.prepare(Settings(), tmp_path))) == 8


@pytest.mark.slow
def test_four_processes_on_a_fresh_store_break_mlflow_alone(tmp_path: Path) -> None:
    assert any(code != 0 for code, _ in at_once(4, MLFLOW_ALONE, tmp_path))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB, where this process may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> Path:
    left = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(bytes(left))
    return disk / "filler"


def test_a_full_disk_loses_no_result_and_is_mended_by_sync(copy: Path, small_disk: Path) -> None:
    shutil.copy(copy, small_disk / "mlflow.db")
    settings = tracking.prepare(Settings(), small_disk)
    folder = put(small_disk)
    filler = fill(small_disk)
    with pytest.raises(UserError, match=r"full|space.*specexp sync") as caught:
        tracking.track(folder, settings)
    assert "\n" not in str(caught.value)
    filler.unlink()
    assert tracking.sync(small_disk, settings).made == 1
    assert [run.info.status for run in runs_of(settings)] == ["FINISHED"]


def test_a_store_that_does_not_fit_is_not_half_made(small_disk: Path) -> None:
    filler = fill(small_disk)
    with pytest.raises(UserError, match=r"mlflow\.db.*(full|space)"):
        tracking.prepare(Settings(experiment="full"), small_disk)
    assert {file.name for file in small_disk.iterdir()} <= {filler.name, "mlflow.db.lock"}


# --- a server --------------------------------------------------------------------------------------------------------


def test_a_server_that_is_down_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound, not listening: refuses, and no other process can take the port
        held.bind(("127.0.0.1", 0))
        uri = f"http://me:secret@127.0.0.1:{held.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(UserError, match=r"tracking\.uri=http://127.*no MLflow server answers.*refused") as caught:
            tracking.prepare(Settings("server", uri), tmp_path)
    assert time.monotonic() - started < 5
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_settings_in_a_file_are_those_of_the_class(settings: Settings) -> None:
    assert json.loads(json.dumps(settings.__dict__)) == settings.__dict__
