"""The commands that run nothing anew: report, ui, sync."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from specexp import report as reporting
from specexp import store
from specexp.app import composition
from specexp.app.bookkeeping import Bookkeeper
from specexp.errors import UserError

if TYPE_CHECKING:
    from specexp.tracking import Settings


def report(words: Sequence[str]) -> int:
    """``report FOLDER...``: figures and tables again, from files."""
    return reporting.command(words)


def ui(words: Sequence[str]) -> int:
    """``ui [port=N] [tracking.uri=...]``: the MLflow UI on the store that runs with these words are in."""
    from specexp import tracking

    ports = [word.partition("=")[2] for word in words if word.startswith("port=")]
    if ports and not ports[-1].isdecimal():
        raise UserError(f"port={ports[-1]}: a port is a whole number, e.g. port=5001")
    root, settings = _store([word for word in words if not word.startswith("port=")])
    tracking.ui(root, settings, int(ports[-1]) if ports else None)
    return 0


def sync(words: Sequence[str]) -> int:
    """``sync [tracking.uri=...]``: MLflow told of every finished folder that it does not know yet."""
    from specexp import tracking
    from specexp.app import console

    root, settings = _store(words)
    for sweep in store.scan(root).sweeps:
        with suppress(UserError):  # a damaged one is told by sync itself
            if store.read_run(sweep)["status"] == "running" and store.status_of(store.read_run(sweep)) == "killed":
                store.refresh_sweep(sweep)
    done = tracking.sync(root, settings)
    print(f"MLflow: {done.made} runs logged, {done.kept} there already, {done.closed} left open by dead processes")
    for line in done.damaged:
        console.complain(line)
    return 1 if done.damaged else 0


def _store(words: Sequence[str]) -> tuple[Path, "Settings"]:
    """The outputs folder and the store that runs with these words go to."""
    with composition.hydra() as hydra:
        keeper = Bookkeeper(composition.compose(hydra, list(words)), store.outputs_root())
    if keeper.settings is None:
        raise UserError("tracking=none: there is no MLflow store then; take tracking=local or tracking=server")
    return keeper.root, keeper.settings
