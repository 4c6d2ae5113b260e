"""Telling MLflow of finished folders: the same folder told twice makes one run, a folder run anew replaces its run."""

import contextlib
import fcntl
import getpass
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specexp import store
from specexp.store import provenance
from specexp.tracking import content
from specexp.tracking.connection import SYNC, Connection, clear_errors, connect
from specexp.tracking.content import Content
from specexp.tracking.settings import Settings

if TYPE_CHECKING:
    from mlflow.entities import Run

UNFINISHED = ("RUNNING", "SCHEDULED")


Reader = Callable[[Path], Content | None]  # what to tell of a folder; None while there is nothing to tell


def prepare(settings: Settings, root: Path) -> Settings:
    """Returns the settings with their store named, after opening it: before hours of work, an unusable store is a
    UserError. Makes the embedded store and the experiment where they are not there. Does nothing for tracking=none.
    """
    resolved = settings.resolve(root)
    if resolved.kind != "none":
        connect(resolved)
    return resolved


def track(folder: Path, settings: Settings) -> str | None:
    """Logs a finished run's or cell's folder; returns the id of its MLflow run, also written to its run.json.

    None, and nothing logged, for tracking=none, a skipped cell, and one still at work. UserError if MLflow fails.
    """
    return log(folder, settings, read_folder)[0]


def track_sweep(folder: Path, settings: Settings) -> str | None:
    """Logs a sweep's own folder as its summary run, as `track` does; the cells are not looked at."""
    return log(folder, settings, read_sweep)[0]


def read_folder(path: Path) -> Content | None:
    """The content of a run's or cell's folder."""
    folder = store.read_folder(path)
    status = store.status(folder)
    return content.of_folder(folder, status) if status in content.END_STATES else None


def read_sweep(path: Path) -> Content | None:
    """The content of a sweep's own folder."""
    sweep = store.read_sweep(path)
    status = store.status_of(sweep.run)
    return content.of_sweep(sweep, status) if status in content.END_STATES else None


def log(path: Path, settings: Settings, read: Reader) -> tuple[str | None, bool]:
    """(run id, whether a run was made for it just now); (None, False) where there is nothing to log."""
    resolved = settings.resolve(store.root_of(path))
    if resolved.kind == "none":
        return None, False
    with _alone(path):  # another process that finds the folder (sync) waits, and then finds its run
        told = read(path)
        if told is None:
            return None, False
        connection = connect(resolved)
        with clear_errors(resolved, SYNC):
            run_id, made = _keep_or_make(
                connection, told, place_of(resolved, store.root_of(path)), store.read_run(path)
            )
        _write_back(path, {"uri": resolved.shown, "experiment_id": connection.experiment_id, "run_id": run_id})
    return run_id, made


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Holds the folder for this process; where the file system has no locks (some NFS), nothing is held."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def place_of(settings: Settings, root: Path) -> dict[str, str]:
    """Whose folders they are: on a server, two people's sweeps of one name and config are two."""
    return {"specexp.outputs": f"{provenance.host()}:{root}" if settings.is_server else str(root)}


def _keep_or_make(
    connection: Connection, told: Content, place: Mapping[str, str], record: Mapping[str, Any]
) -> tuple[str, bool]:
    earlier = _earlier(connection, told.identity, place, record)
    whole = [run.info.run_id for run in earlier if _is_whole(run, told)]
    for run in earlier:
        if run.info.run_id not in whole[:1]:  # of an earlier run of the folder, or cut off half-way
            connection.client.delete_run(run.info.run_id)
    return (whole[0], False) if whole else (_make(connection, told, {**place, **_worker()}), True)


def _earlier(
    connection: Connection, identity: Mapping[str, str], place: Mapping[str, str], record: Mapping[str, Any]
) -> "list[Run]":
    """The folder's runs in this experiment: known by their tags, or by the id in run.json (an outputs folder moved)."""
    client, experiment_id = connection
    words = " and ".join(f"tags.`{key}` = '{value}'" for key, value in identity.items())
    noted = (record.get("mlflow") or {}).get("run_id")
    return [
        run
        for run in client.search_runs([experiment_id], filter_string=words)
        if run.info.run_id == noted or place.items() <= run.data.tags.items()
    ]


def _is_whole(run: "Run", told: Content) -> bool:
    same = all(run.data.tags.get(key) == told.tags[key] for key in ("specexp.started", "specexp.status"))
    return same and run.info.status not in UNFINISHED


def _worker() -> dict[str, str]:
    """Who logs it, so that `sync` can tell whether a run left open is still being written."""
    tags = {"specexp.host": provenance.host(), "specexp.pid": str(os.getpid())}
    with contextlib.suppress(KeyError, OSError):  # a container's user may have no name
        tags["mlflow.user"] = getpass.getuser()
    return tags


def _make(connection: Connection, told: Content, place: Mapping[str, str]) -> str:
    client, experiment_id = connection
    tags = {**told.tags, **told.identity, **place}
    run_id = str(client.create_run(experiment_id, start_time=told.started_ms, tags=tags).info.run_id)
    try:
        _fill(connection, run_id, told)
    except BaseException:  # a Ctrl-C too: a run that is there and ended is a whole one
        with contextlib.suppress(Exception):  # where not even this can be done, `sync` mends it
            client.delete_run(run_id)
        raise
    return run_id


def _fill(connection: Connection, run_id: str, told: Content) -> None:
    from mlflow.entities import Metric, Param

    client = connection.client
    metrics = [Metric(point.key, point.value, told.ended_ms, point.step) for point in told.points]
    client.log_batch(run_id, metrics=metrics, params=[Param(key, value) for key, value in told.params.items()])
    for file in told.artifacts:
        client.log_artifact(run_id, str(file))
    client.set_terminated(run_id, status=told.end_state, end_time=told.ended_ms)


def _write_back(path: Path, pointer: dict[str, str]) -> None:
    record = store.read_run(path)
    known = record | {"mlflow": pointer}
    if store.status_of(record) != record["status"]:
        known |= {"status": "killed", "reason": "its process ended before the work did"}
    if known != record:
        store.write_run(path, known)
