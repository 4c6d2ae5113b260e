"""MLflow brought up to date from the files: after a server was down, a process killed, a store thrown away."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specexp import store
from specexp.errors import UserError
from specexp.store import provenance
from specexp.tracking import runs
from specexp.tracking.connection import SYNC, Connection, clear_errors, connect
from specexp.tracking.settings import Settings


@dataclass
class Synced:
    """What `sync` did: MLflow runs made, runs that were there already, open runs of dead processes closed; and the
    folders it could not read, a line each.
    """

    made: int = 0
    kept: int = 0
    closed: int = 0
    damaged: list[str] = field(default_factory=list)


def sync(root: Path, settings: Settings) -> Synced:
    """Gives every finished folder under the root its one MLflow run, and closes the runs that dead processes left open.

    UserError if the store cannot be used; a damaged folder does not stop the others.
    """
    done, found = Synced(), store.scan(root)
    resolved = runs.prepare(settings, root)
    if resolved.kind == "none":
        return done
    for folder in (*found.runs, *found.cells):
        _sync_one(folder, resolved, runs.read_folder, done)
    for folder in found.sweeps:
        _sync_one(folder, resolved, runs.read_sweep, done)
    with clear_errors(resolved, SYNC):
        done.closed = _close_orphans(connect(resolved), runs.place_of(resolved, root.absolute()))
    return done


def _sync_one(folder: Path, settings: Settings, read: runs.Reader, done: Synced) -> None:
    try:
        read(folder)
    except UserError as error:
        done.damaged.append(str(error))
        return
    run_id, made = runs.log(folder, settings, read)
    done.made += made
    done.kept += run_id is not None and not made


def _close_orphans(connection: Connection, place: Mapping[str, str]) -> int:
    """Ends, as killed, open runs of this outputs folder whose process is gone and whose files are gone too."""
    still_open = connection.client.search_runs(
        [connection.experiment_id], filter_string="attributes.status = 'RUNNING'"
    )
    orphans = [run.info.run_id for run in still_open if _is_orphan(run.data.tags, place)]
    for run_id in orphans:
        connection.client.set_terminated(run_id, status="KILLED")
    return len(orphans)


def _is_orphan(tags: Mapping[str, str], place: Mapping[str, str]) -> bool:
    ours = place.items() <= tags.items() and tags.get("specexp.host") == provenance.host()
    return ours and not provenance.is_alive(int(tags["specexp.pid"]))
