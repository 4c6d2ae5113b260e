"""The outputs folder: where results lie, and how they are written.

    <root>/runs/<date>_<time>_<id>/    <root>/sweeps/NAME/<digest>/    <root>/sweeps/NAME/   (sweep.json, sweep.csv)

A run's folder holds config.yaml (what decides the numbers), run.json (who, when, how it ended), curves.csv, tree.txt
where a tree is drafted, figures and, LAST, metrics.json: its presence means that the run is finished. Two runs of one
config differ in run.json alone.
"""

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from specexp.errors import UserError
from specexp.rows import CurveRow
from specexp.store import files, provenance
from specexp.store.records import is_busy

DRAWN = ("*.png", "*.pdf", "*.svg", "*.tex", ".*.tmp")  # figures, tables for a paper, and what a killed process left
# What a run leaves in its folder, in the order in which a re-run takes it away.
RESULTS = ("metrics.json", "curves.csv", "tree.txt", "traceback.txt", *DRAWN, "config.yaml", "run.json")


class Found(NamedTuple):
    """The folders under a root, sorted by name."""

    runs: list[Path]
    cells: list[Path]
    sweeps: list[Path]


def outputs_root() -> Path:
    """$SPECEXP_OUTPUTS or ./outputs, absolute, not made yet; UserError if it could not be made or written."""
    root = Path(os.environ.get("SPECEXP_OUTPUTS") or "outputs").expanduser().absolute()
    nearest = next(folder for folder in (root, *root.parents) if folder.exists())
    if not nearest.is_dir():
        raise UserError(f"SPECEXP_OUTPUTS={root}: {nearest} is a file; set it to a folder that you may write to")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(
            f"SPECEXP_OUTPUTS={root}: {nearest} cannot be written; set it to a folder that you may write to"
        )
    return root


def root_of(folder: Path) -> Path:
    """The outputs root in which a run's, cell's or sweep's folder lies."""
    above = folder.absolute().parent
    return above.parent if above.name in ("runs", "sweeps") else above.parent.parent


def digest(config: Mapping[str, Any]) -> str:
    """The first 12 hex digits of the SHA-256 of the config's canonical JSON; neither order nor `figures` counts."""
    decides = {key: value for key, value in config.items() if key != "figures"}
    try:
        text = json.dumps(decides, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UserError("config: a value is NaN or infinite; write a finite number") from error
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_sweep_name(name: str) -> str:
    """Returns the name; UserError unless it is of letters, digits, `.`, `_`, `-` and can name a folder."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", name) or not name.strip("."):
        raise UserError(f"sweep={name}: not a name; use up to 200 letters, digits, '.', '_' and '-'")
    return name


def new_run_folder(root: Path) -> Path:
    """A new folder for this run alone: two runs of the same second get two."""
    runs = _make(root / "runs")
    while True:
        folder = runs / f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{secrets.token_hex(3)}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise files.unwritable(folder, error) from error
        return folder


def sweep_folder(root: Path, sweep: str) -> Path:
    """The folder of a sweep, made if it is not there; what is in it stays."""
    return _make(root / "sweeps" / check_sweep_name(sweep))


def cell_folder(root: Path, sweep: str, cell: str) -> Path:
    """The folder of a sweep's cell (its digest), emptied of an earlier run: metrics.json goes first, so that a re-run
    killed at any moment never shows old numbers as finished. UserError while another process is at work in it.
    """
    folder = _make(sweep_folder(root, sweep) / cell)
    if (folder / "run.json").exists() and is_busy(folder, but=os.getpid()):
        raise UserError(f"sweep={sweep}: another process is at work in {folder}; wait for it, or name another sweep")
    clear(folder, RESULTS)
    return folder


def clear(folder: Path, patterns: Iterable[str]) -> None:
    """Takes away the folder's own files of these patterns, in their order; what lies deeper stays."""
    try:
        for pattern in patterns:
            for old in folder.glob(pattern):
                old.unlink()
    except OSError as error:
        raise files.unwritable(folder, error) from error


def _make(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.unwritable(folder, error) from error
    return folder


def scan(root: Path) -> Found:
    """All folders under the root that hold a record; none where there is no root."""
    records = {kind: sorted(path.parent for path in root.glob(f"{kind}/run.json")) for kind in ("runs/*", "sweeps/*/*")}
    sweep_folders = sorted(path.parent for path in root.glob("sweeps/*/sweep.json"))
    return Found(runs=records["runs/*"], cells=records["sweeps/*/*"], sweeps=sweep_folders)


def new_record(
    identity: str, kind: str, sweep: str | None = None, overrides: Sequence[str] = (), command: str = ""
) -> dict[str, Any]:
    """run.json while at work: `identity` is the digest, `kind` run, cell or sweep, `command` the line as typed."""
    return {
        "format": 1,
        "digest": identity,
        "kind": kind,
        "sweep": sweep,
        "overrides": list(overrides),
        "status": "running",
        "reason": None,
        "command": command,
        "git": provenance.git_facts(),
        "versions": provenance.versions(),
        "started": datetime.now().astimezone().isoformat(timespec="milliseconds"),
        "seconds": None,
        "mlflow": None,
        "host": provenance.host(),
        "pid": os.getpid(),
    }


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    """Writes config.yaml: plain data, sorted keys."""
    text: str = yaml.safe_dump(dict(config), sort_keys=True, allow_unicode=True, default_flow_style=None, width=120)
    return write_text(folder, "config.yaml", text)


def write_run(folder: Path, record: Mapping[str, Any]) -> Path:
    """Writes run.json."""
    return write_bytes(folder, "run.json", files.json_bytes(dict(record)))


def write_curves(folder: Path, rows: Iterable[CurveRow]) -> Path:
    """Writes curves.csv; None, NaN and infinity are empty cells."""
    finite = [(row.curve, _finite(row.x), row.kind, *map(_finite, row[3:])) for row in rows]
    return write_bytes(folder, "curves.csv", files.csv_bytes(CurveRow._fields, finite))


def write_metrics(folder: Path, metrics: Mapping[str, Any]) -> Path:
    """Writes metrics.json, the last of a run's files; NaN and infinity are null."""
    return write_bytes(
        folder, "metrics.json", files.json_bytes({key: _finite(value) for key, value in metrics.items()})
    )


def _finite(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value  # numpy's numbers too
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def write_text(folder: Path, name: str, text: str) -> Path:
    """Writes any other text of a run's folder, in UTF-8."""
    return write_bytes(folder, name, text.encode())


def write_bytes(folder: Path, name: str, data: bytes) -> Path:
    """Writes any other file of a run's folder, such as a figure: whole or not at all."""
    return files.write_bytes(folder / name, data)
