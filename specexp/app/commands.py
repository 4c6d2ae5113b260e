"""The commands that run nothing anew: report, ui, sync."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from specexp import latex, store, tables
from specexp import report as drawing
from specexp.app import composition, console
from specexp.app.bookkeeping import Bookkeeper
from specexp.errors import UserError

if TYPE_CHECKING:
    from specexp.tracking import Settings

TABLE = "table.tex"  # the table that is printed, for a paper


def report(words: Sequence[str]) -> int:
    """``report FOLDER...``: figures in all formats, the table printed and as LaTeX, of runs and sweeps; exit code 0."""
    if not words:
        raise UserError("report: which folder? report outputs/sweeps/NAME, or a run's folder")
    for word in words:
        folder = Path(word)
        if (folder / "sweep.json").is_file():
            _report_sweep(folder)
        elif (folder / "run.json").is_file():
            _report_run(folder)
        else:
            raise UserError(
                f"report {word}: neither a run's folder nor a sweep's; it would hold run.json or sweep.json"
            )
    return 0


def _report_run(folder: Path) -> None:
    run = store.read_folder(folder)
    if run.metrics is None:
        raise UserError(f"report {folder}: not finished ({store.status(run)}); there is nothing to draw")
    drawn = drawing.draw_run(run.metrics, run.curves, run.config, folder, drawing.FORMATS["all"])
    store.write_text(folder, TABLE, latex.booktabs(*console.run_table(run.metrics, run.config)))
    console.show_run(run.metrics, run.config, {"folder": str(folder), **_drawn(drawn)})


def _report_sweep(folder: Path) -> None:
    store.refresh_sweep(folder)
    drawn = drawing.draw_sweep(folder, drawing.FORMATS["all"])
    sweep = store.read_sweep(folder)
    store.write_text(folder, TABLE, latex.booktabs(*tables.sweep_table(sweep, console.lossy_rules(sweep))))
    console.show_sweep(sweep, {"folder": str(folder), **_drawn(drawn)})


def _drawn(paths: Sequence[Path]) -> dict[str, str]:
    names = sorted({path.stem for path in paths})
    told = {"figures": ", ".join(names) + f" ({', '.join(drawing.FORMATS['all'])})"} if names else {}
    return told | {"table": TABLE}


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
