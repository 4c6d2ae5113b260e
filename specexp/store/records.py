"""Reading a run's folder back: its config, its record, its curves, its metrics, and how it really ended.

Folders of older and later versions are read too: unknown keys are kept, and only what every version wrote is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from specexp.errors import UserError
from specexp.rows import CurveRow
from specexp.store import files, provenance

NEEDED = ("digest", "kind", "status", "started")


@dataclass(frozen=True)
class Folder:
    """A run's or cell's folder as read; `metrics` is None until the run is finished."""

    path: Path
    config: dict[str, Any]
    run: dict[str, Any]
    metrics: dict[str, Any] | None
    curves: list[CurveRow]


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder as read: sweep.json, run.json, and sweep.csv with its cells as numbers where they are some."""

    path: Path
    content: dict[str, Any]
    run: dict[str, Any]
    header: list[str]
    rows: list[dict[str, Any]]

    @property
    def swept(self) -> list[str]:
        """The swept keys in the order they were given."""
        return [key for key in self.header if key in self.content["swept"]]


def read_folder(folder: Path) -> Folder:
    """Reads a run's or cell's folder; UserError naming the file that is missing or damaged."""
    metrics, curves = folder / "metrics.json", folder / "curves.csv"
    return Folder(
        path=folder,
        config=read_config(folder),
        run=read_run(folder),
        metrics=files.read_json(metrics) if metrics.exists() else None,
        curves=_read_curves(curves) if curves.exists() else [],
    )


def read_run(folder: Path) -> dict[str, Any]:
    """Reads run.json alone."""
    return files.read_json(folder / "run.json", NEEDED)


def read_config(folder: Path) -> dict[str, Any]:
    """Reads config.yaml alone."""
    path = folder / "config.yaml"
    try:
        content = yaml.safe_load(files.read_text(path))
    except yaml.YAMLError as error:
        raise files.damaged(path, "not YAML") from error
    if not isinstance(content, dict):
        raise files.damaged(path, "not a mapping")
    return content


def _read_curves(path: Path) -> list[CurveRow]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    rows = files.read_csv(path, CurveRow._fields)
    try:
        return [
            CurveRow(row["curve"], float(row["x"]), row["kind"], *(number(row[key]) for key in CurveRow._fields[3:]))
            for row in rows
        ]
    except ValueError as error:
        raise files.damaged(path, "a cell that is not a number") from error


def read_sweep(folder: Path) -> Sweep:
    """Reads a sweep's own folder (not its cells'); UserError naming the file that is missing or damaged."""
    content = files.read_json(folder / "sweep.json", ("name", "swept", "cells"))
    texts = files.read_csv(folder / "sweep.csv", ("cell", "status", "reason"))
    header = list(texts[0]) if texts else ["cell", "status", "reason"]
    rows = [{key: _parsed(key, text) for key, text in row.items()} for row in texts]
    return Sweep(path=folder, content=content, run=read_run(folder), header=header, rows=rows)


def _parsed(column: str, text: str) -> Any:
    return (text or None) if column in ("cell", "status", "reason") else files.parse_cell(text)


def status(folder: Folder) -> str:
    """running, done, failed, skipped or killed: what files and processes say, whatever was written last.

    metrics.json makes a run done; work without it whose process is gone is killed.
    """
    if folder.metrics is not None:
        return "done"
    recorded = folder.run["status"]
    return status_of(folder.run | {"status": "running"} if recorded == "done" else folder.run)


def status_of(record: Mapping[str, Any]) -> str:
    """The status in a run.json, save that `running` is killed where its process is gone."""
    recorded: str = record["status"]
    return "killed" if recorded == "running" and not is_at_work(record) else recorded


def is_at_work(record: Mapping[str, Any]) -> bool:
    """Whether the process of a run.json still lives; of another host nobody can tell, so it is believed to."""
    if record.get("host") != provenance.host():
        return record.get("host") is not None
    pid = record.get("pid")
    return isinstance(pid, int) and provenance.is_alive(pid, record["started"])


def is_busy(folder: Path, but: int) -> bool:
    """Whether a process other than `but` is at work in the folder; a damaged record is no one's work."""
    try:
        record = read_run(folder)
    except UserError:
        return False
    return record.get("pid") != but and record["status"] == "running" and is_at_work(record)
