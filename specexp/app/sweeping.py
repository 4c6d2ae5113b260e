"""The parent of a sweep: it lets Hydra run the cells, then gathers, draws, tracks and shows what is in their folders.

All that it says is read from files, so that a sweep that was interrupted is told as one that went through.
"""

import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from hydra._internal.hydra import Hydra
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig

from specexp import report, store
from specexp.app import cells, composition, console, lacking, launch, overrides
from specexp.app.bookkeeping import Bookkeeper
from specexp.errors import UserError
from specexp.store import sweeps
from specexp.values import shown

NEVER_SWEPT = {
    "sweep": "it names the one folder of all cells",
    "experiment": "Hydra would drop the presets' own sweeps; run them one by one",
    "figures": "it changes no number, so the cells would be the same",
    "tracking": "all cells go to one store",
}


class Sweep:
    """One sweep at work: where it goes, what was planned, who keeps its record."""

    def __init__(self, master: DictConfig, words: list[str], line: str) -> None:
        self.name = store.check_sweep_name(str(master.sweep or f"{datetime.now():%Y-%m-%d_%H-%M-%S-%f}"))
        self.root = store.outputs_root()
        self.folder = self.root / "sweeps" / self.name
        self.keeper = Bookkeeper(master, self.root)
        self.formats = report.formats(master.figures, "all")
        self.words = words
        self.line = line
        self.plan = launch.Plan(before=self.begin)
        self.record: dict[str, Any] = {}
        self.ended: set[str] = set()

    def begin(self, plan: launch.Plan) -> None:
        """All cells of a batch are composed: now the store must answer, and the sweep's folder is made. Its table
        stands before the first cell does, so that a sweep whose process is killed can be read."""
        if not plan.cells:
            raise UserError(f"-m {' '.join(self.words)}: a list of values is empty; give each key one value or more")
        if not self.record:
            self.keeper.prepare()
            digest = store.digest({"cells": list(plan.distinct())})
            record = store.new_record(digest, "sweep", self.name, self.words, self.line)
            store.begin_sweep(self.root, self.name, record)
            self.record = record
        self.write_table()

    def write_table(self) -> None:
        """sweep.json and sweep.csv of the cells planned so far, from what is in their folders by now."""
        store.write_sweep(self.folder, swept(self.plan.cells), list(self.plan.distinct().values()))

    def count(self) -> tuple[int, int]:
        """(cells ended, cells planned), from their files: they may work in other processes."""
        planned = self.plan.distinct() if self.record else {}
        for digest in planned.keys() - self.ended:
            with suppress(UserError):
                cell = store.read_run(self.folder / digest)
                if cell["status"] != "running" and cell["started"] >= self.record["started"]:
                    self.ended.add(digest)
        return len(self.ended), len(planned)


def run(hydra: Hydra, words: list[str], line: str) -> int:
    """Runs the sweep of ``words``; the exit code: 0, 1 if a cell failed, 2 if all were skipped. UserError before any
    cell starts; an interruption comes through once everything is written down."""
    master = composition.compose(hydra, words, RunMode.MULTIRUN)
    _refuse(overrides.parse([*_params(master), *words]), master, hydra)
    sweep = Sweep(master, words, line)
    try:
        with console.bar(sweep.count), cells.line_of_cells(line):
            launch.launch(hydra, [*words, f"sweep='{sweep.name}'"], sweep.plan)
    except KeyboardInterrupt as error:
        if sweep.record:
            _finish(sweep, str(error) or "interrupted")
        raise
    except Exception as error:
        if not sweep.record:
            raise
        return _launcher_failed(sweep, error)
    if not sweep.record:  # a sweeper that had nothing to launch
        sweep.begin(sweep.plan)
    return _finish(sweep, None)


def _launcher_failed(sweep: Sweep, error: Exception) -> int:
    """What the cells left behind is kept where the launcher died, of a worker killed for its memory for one."""
    trace = store.write_text(sweep.folder, "traceback.txt", traceback.format_exc())
    code = _finish(sweep, None)
    console.complain(f"{type(error).__name__}: {error}".split("\n")[0] + f" ({cells.shown(trace)})")
    return code or 1


def _params(master: DictConfig) -> list[str]:
    """A preset's own words, which those of the command line come after."""
    return [f"{key}={value}" for key, value in (master.hydra.sweeper.get("params") or {}).items()]


def _refuse(given: Sequence[Override], master: DictConfig, hydra: Hydra) -> None:
    """UserError for a sweep over what is the same for all cells, and for a key that no member of the sweep has."""
    basic = master.hydra.runtime.choices["hydra/sweeper"] == "basic"
    for override in given:
        if basic and override.is_sweep_override() and not override.is_discrete_sweep():
            raise UserError(
                f"{override.input_line}: no list of values; write {override.key_or_group}=1,2,4 or range(1,9)"
            )
        group = override.key_or_group.split(".")[0]
        if override.is_sweep_override() and group in NEVER_SWEPT:
            raise UserError(f"{override.input_line}: {group} cannot be swept ({NEVER_SWEPT[group]}); give it one value")
    loader = hydra.config_loader
    assert isinstance(loader, composition.Loader)
    lacking.refuse_keys_of_none(given, loader.chosen, loader.is_choice, loader.holders)


def swept(plan: Sequence[launch.Cell]) -> dict[str, list[Any]]:
    """The keys whose values differ between the cells, in the order given, each with its values in the order given."""
    configs = [cell.config for cell in plan]
    given = list(dict.fromkeys(line.partition("=")[0].lstrip("+") for cell in plan for line in cell.overrides))
    if any("/" in key for key in given):  # points of a preset: one choice that sets several keys
        told = [key for key in sweeps.telling(configs) if key not in given]
        given = [one for key in given for one in (told if "/" in key else [key])]
    values = {key: _distinct(sweeps.value_of(config, key) for config in configs) for key in given}
    return {key: seen for key, seen in values.items() if len(seen) > 1}


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []  # lists among them cannot be hashed
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _finish(sweep: Sweep, interruption: str | None) -> int:
    """Writes the sweep's files, draws, tracks, shows; the exit code. Interrupted there, it says where all is."""
    try:
        sweep.write_table()
        tracked = _drawn_and_kept(sweep, interruption)
    except KeyboardInterrupt:
        folder, later = cells.shown(sweep.folder), sweep.keeper.later()
        console.complain(f"the cells are in {folder}; python -m specexp report {folder} draws them{later}")
        raise
    table = store.read_sweep(sweep.folder)
    console.show_sweep(table, {"folder": cells.shown(sweep.folder), **sweep.keeper.places(sweep.name)})
    return _told(sweep, table.rows, tracked)


def _drawn_and_kept(sweep: Sweep, interruption: str | None) -> bool:
    """Whether MLflow was told; the sweep has ended, in its record, once its figures are drawn."""
    rows = store.read_sweep(sweep.folder).rows
    try:
        report.draw_sweep(sweep.folder, sweep.formats)
    except KeyboardInterrupt as error:
        _end_record(sweep, rows, interruption or str(error) or "interrupted")
        raise
    _end_record(sweep, rows, interruption)
    return sweep.keeper.keep([sweep.folder / digest for digest in sweep.plan.distinct()], sweep.folder)


def _told(sweep: Sweep, rows: Sequence[Mapping[str, Any]], tracked: bool) -> int:
    """Tells of each cell that is not done; the exit code."""
    for row in rows:
        _tell(sweep, row)
    states = {row["status"] for row in rows}
    return 2 if states == {"skipped"} else 0 if tracked and states <= {"done", "skipped"} else 1


def _end_record(sweep: Sweep, rows: Sequence[Mapping[str, Any]], interruption: str | None) -> None:
    bad = [row for row in rows if row["status"] in ("failed", "killed")]
    status = "killed" if interruption else "failed" if bad else "done"
    reason = interruption or (f"{len(bad)} of {len(rows)} cells failed" if bad else None)
    seconds = (datetime.now().astimezone() - datetime.fromisoformat(sweep.record["started"])).total_seconds()
    digest = store.digest({"cells": list(sweep.plan.distinct())})
    sweep.record |= {"digest": digest, "status": status, "reason": reason, "seconds": seconds}
    store.write_run(sweep.folder, sweep.record)


def _tell(sweep: Sweep, row: Mapping[str, Any]) -> None:
    """A line on stderr for a cell that is not done: which, why, where its traceback is."""
    if row["status"] == "done":
        return
    cell = next(cell for cell in sweep.plan.cells if cell.digest == row["cell"])
    outcome = sweep.plan.outcomes.get(cell.digest)
    reason = row["reason"] or (outcome.reason if outcome else None) or "its process died"
    trace = sweep.folder / row["cell"] / "traceback.txt"
    where = f" ({cells.shown(trace)})" if trace.exists() else ""
    values = {key: sweeps.value_of(cell.config, key) for key in swept(sweep.plan.cells)}
    words = " ".join(f"{key}={shown(value)}" for key, value in values.items() if sweeps.is_said(key, value))
    told = reason if reason.startswith(f"{words}: ") else f"{words or 'the only cell'}: {reason}"
    console.complain(f"{row['status']}: {told}{where}")
