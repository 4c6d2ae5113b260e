"""A sweep's own files: sweep.json, sweep.csv and replicates.csv, from what its cells' folders hold by now."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specexp.errors import UserError
from specexp.store import files, replicates, sweeps
from specexp.store.folders import DRAWN, clear, digest, sweep_folder, write_bytes, write_run
from specexp.store.records import is_busy, read_config, read_folder, read_sweep, status

# What a sweep leaves beside its cells' folders.
OWN_FILES = ("sweep.csv", "sweep.json", "replicates.csv", "traceback.txt", *DRAWN)
NOT_STARTED = "not started"  # the reason of a cell whose turn did not come


def begin_sweep(root: Path, sweep: str, record: Mapping[str, Any]) -> Path:
    """The folder of a sweep that begins: its run.json is `record`, an earlier sweep's own files are gone, the cells'
    folders stay. UserError while another process is at work on a sweep of this name.
    """
    folder = sweep_folder(root, sweep)
    if is_busy(folder, but=os.getpid()):
        raise UserError(f"sweep={sweep}: another process is at work on it; wait for it, or name another sweep")
    write_run(folder, record)
    clear(folder, OWN_FILES)
    return folder


def write_sweep(folder: Path, swept: Mapping[str, Sequence[Any]], configs: Sequence[Mapping[str, Any]]) -> Path:
    """Writes sweep.json, sweep.csv and, where seeds replicate, replicates.csv from the cells' configs, in sweep order,
    and from what their folders hold by now.

    `swept`: {dotted key: values as given}. A cell without a folder was never started: its row says killed.
    """
    cells = [_cell_row(folder / digest(config), dict(config)) for config in configs]
    write_bytes(folder, "sweep.json", files.json_bytes(sweeps.sweep_content(folder.name, swept, cells)))
    header, lines = sweeps.sweep_table(list(swept), cells)
    return _write_table(folder, list(swept), header, [dict(zip(header, line, strict=True)) for line in lines])


def refresh_sweep(folder: Path) -> None:
    """sweep.csv and replicates.csv again, after a sweep that was killed; a cell that never started keeps its row.

    Nothing is written where the folder of a cell that had started is gone: the table is all that is left of it.
    """
    sweep = read_sweep(folder)
    started = [cell for cell in sweep.content["cells"] if (folder / cell / "run.json").exists()]
    texts = {row["cell"]: row for row in files.read_csv(folder / "sweep.csv", ("cell", "reason"))}
    if any(row["reason"] != NOT_STARTED for cell, row in texts.items() if cell not in started):
        return
    found = [_cell_row(folder / cell, read_config(folder / cell)) for cell in started]
    header, lines = sweeps.sweep_table(sweep.swept, found)
    rows = texts | {line[0]: dict(zip(header, line, strict=True)) for line in lines}
    _write_table(folder, sweep.swept, header, [rows[cell] for cell in sweep.content["cells"]])


def _write_table(folder: Path, swept: Sequence[str], header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Path:
    _write_replicates(folder, swept, rows)
    return write_bytes(folder, "sweep.csv", files.csv_bytes(header, [[row.get(key) for key in header] for row in rows]))


def _write_replicates(folder: Path, swept: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """replicates.csv, a row for each combination that several seeds replicate; no file where none does."""
    means = replicates.summary(swept, rows)
    if not means:
        (folder / "replicates.csv").unlink(missing_ok=True)
        return
    header = list(dict.fromkeys(key for mean in means for key in mean))
    lines = [[mean.get(key) for key in header] for mean in means]
    write_bytes(folder, "replicates.csv", files.csv_bytes(header, lines))


def _cell_row(folder: Path, config: dict[str, Any]) -> sweeps.CellRow:
    if not (folder / "run.json").exists():
        return sweeps.CellRow(folder.name, config, "killed", NOT_STARTED, {})
    cell = read_folder(folder)
    return sweeps.CellRow(folder.name, config, status(cell), cell.run.get("reason"), cell.metrics or {})
