"""MLflow's pages and MLflow's server: the links, the lean server on our store, and a server as the store."""

import itertools
import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from test_tracking import put, put_sweep, runs_of, with_package

from specexp import store, tracking
from specexp.errors import UserError
from specexp.tracking import pages
from specexp.tracking.connection import connect
from specexp.tracking.settings import Settings


@pytest.fixture(autouse=True)
def _no_store_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_links_open_on_the_charts_of_just_these_runs() -> None:
    local = tracking.links(Settings(uri="sqlite:////x/mlflow.db"), "1", ["a", "b"], "s")
    assert (
        local.compare == "http://127.0.0.1:5000/#/compare-runs?runs=%5B%22a%22%2C%22b%22%5D&experiments=%5B%221%22%5D"
        "&workflowType=machine_learning"
    )
    assert local.chart.startswith(
        "http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning&compareRunsMode=CHART&searchFilter=tags."
    )
    served = tracking.links(Settings("server", "https://me:secret@h/p"), "2")
    shown = "https://h/p/#/experiments/2/runs?workflowType=machine_learning&compareRunsMode=CHART&searchFilter="
    assert served.chart == shown  # the filter said to be empty, as MLflow would bring back the browser's last one


def test_the_port_asked_for_is_taken_or_refused_and_the_next_free_one_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        busy = held.getsockname()[1]
        with pytest.raises(UserError, match=f"port={busy}: taken"):
            pages.free_port(busy)
        monkeypatch.setattr(pages, "PORT", busy)
        assert busy < pages.free_port(None) < busy + pages.PORTS_TRIED
    assert pages.free_port(busy) == busy
    for port in (70_000, -1):
        with pytest.raises(UserError, match=f"port={port}"):
            pages.free_port(port)


def test_a_store_that_is_not_there_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing there yet"):
        tracking.ui(tmp_path, Settings())
    with pytest.raises(UserError, match="tracking=none"):
        tracking.ui(tmp_path, Settings("none"))
    assert list(tmp_path.iterdir()) == []


def test_the_server_is_lean_and_on_this_machine_only(tmp_path: Path) -> None:
    settings = Settings().resolve(tmp_path)
    words = pages.server_command(settings, 5001)
    pairs = dict(itertools.pairwise(words))
    assert (pairs["--workers"], pairs["--host"], pairs["--port"]) == ("1", "127.0.0.1", "5001")
    assert (pairs["--backend-store-uri"], pairs["--default-artifact-root"]) == (settings.uri, settings.artifacts)
    assert pages.server_environment()["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"


# --- with a real server ----------------------------------------------------------------------------------------------


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until_it_answers(process: subprocess.Popen, port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not come up in two minutes")


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    process.communicate(timeout=30)


UI = "import sys; from pathlib import Path; from specexp import tracking; "
UI += "tracking.ui(Path(sys.argv[1]), tracking.Settings(), int(sys.argv[2]))"


@pytest.mark.slow
def test_the_ui_shows_the_runs_and_their_files(tmp_path: Path) -> None:
    put_sweep(tmp_path)
    settings = tracking.prepare(Settings(), tmp_path)
    assert tracking.sync(tmp_path, settings).made == 3
    port = free()
    command = [sys.executable, "-c", UI, str(tmp_path), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=with_package(), cwd=tmp_path)
    try:
        until_it_answers(process, port)
        seen = Settings("server", f"http://127.0.0.1:{port}")
        assert {run.info.run_id for run in runs_of(seen)} == {run.info.run_id for run in runs_of(settings)}
        run = next(run for run in runs_of(seen) if run.data.tags["specexp.kind"] == "cell")
        address = f"{seen.uri}/get-artifact?path=metrics.json&run_uuid={run.info.run_id}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert json.load(answer)["alpha"] == 0.9
    finally:
        process.terminate()
        printed = process.communicate(timeout=30)[0]
    experiment_id = connect(settings).experiment_id
    assert printed.splitlines()[0] == f"MLflow: {tracking.links(settings, experiment_id, port=port).chart}"
    assert {file.name for file in tmp_path.iterdir()} <= {
        "artifacts", "mlflow.db", "mlflow.db-shm", "mlflow.db-wal", "mlflow.db.lock", "sweeps",
    }  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> tuple[list[str], str]:
    """(the command that starts a team's server, which keeps the files itself; its address)."""
    port, place = free(), tmp_path / "team"
    place.mkdir()
    keeps = ["--backend-store-uri", f"sqlite:///{place}/t.db", "--artifacts-destination", str(place / "kept")]
    return [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1", *keeps], str(port)


@pytest.mark.slow
def test_a_server_is_told_the_same_and_what_it_missed_is_synced(tmp_path: Path, server: tuple[list[str], str]) -> None:
    command, port = server
    process = subprocess.Popen(command, env=pages.server_environment())
    try:
        until_it_answers(process, int(port))
        settings = tracking.prepare(Settings("server", f"http://127.0.0.1:{port}"), tmp_path / "mine")
        folder = put(tmp_path / "mine")
        run_id = tracking.track(folder, settings)
        assert tracking.track(folder, settings) == run_id
        assert tracking.track(put(tmp_path / "theirs"), settings) != run_id
        client, _ = connect(settings)
        assert client.get_run(run_id).info.artifact_uri.startswith("mlflow-artifacts:")
        assert {file.path for file in client.list_artifacts(run_id)} == {"config.yaml", "curves.csv", "metrics.json"}
        assert len(runs_of(settings)) == 2
    finally:
        stop(process)
    missed = put(tmp_path / "mine", gamma=2)
    started = time.monotonic()
    with pytest.raises(UserError, match=r"MLflow failed.*the results are on disk.*specexp sync"):
        tracking.track(missed, settings)
    assert time.monotonic() - started < 30  # MLflow alone tries for four minutes
    assert store.status(store.read_folder(missed)) == "done"
    process = subprocess.Popen(command, env=pages.server_environment())
    try:
        until_it_answers(process, int(port))
        assert tracking.sync(tmp_path / "mine", settings) == tracking.Synced(made=1, kept=1)
    finally:
        stop(process)
