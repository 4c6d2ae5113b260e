"""What MLflow is told of a folder: pure functions of its files, so that telling it again tells it the same."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from specexp import store
from specexp.rows import TOKENS_PER_STEP, CurveRow
from specexp.store.sweeps import flatten
from specexp.tracking import wording

LONGEST_HISTORY = 200  # a thousand points cost a tenth of a second, and no chart shows more
LONGEST_PARAM = 500  # a long list is in config.yaml
END_STATES = {"done": "FINISHED", "failed": "FAILED", "killed": "KILLED"}


class Point(NamedTuple):
    """One value of a metric; `step` is the curve's x, 0 for a plain number."""

    key: str
    value: float
    step: int


class Content(NamedTuple):
    """An MLflow run: `identity` are the tags by which an earlier run of the same folder is found."""

    identity: dict[str, str]
    tags: dict[str, str]
    params: dict[str, str]
    points: list[Point]
    end_state: str
    started_ms: int
    ended_ms: int
    artifacts: list[Path]


def of_folder(folder: store.Folder, status: str) -> Content:
    """What is told of a single run or a sweep's cell."""
    record, metrics = folder.run, folder.metrics or {}
    measured = [Point(key, float(value), 0) for key, value in metrics.items() if _is_number(value)]
    known = {point.key for point in measured}
    knobs = [Point(k, float(v), 0) for k, v in flatten(folder.config) if _is_number(v) and k not in known]
    words = {key: value for key, value in metrics.items() if isinstance(value, str)}
    named = {"mlflow.runName": wording.name(folder), "mlflow.runColor": wording.color(folder)}
    note = {"mlflow.note.content": wording.note(folder, status)}
    return Content(
        identity=_identity(folder.path, record),
        tags=_tags(record, status) | words | named | note,
        params={key: wording.plain(value) for key, value in flatten(folder.config) if _is_param(value)},
        points=[*measured, *knobs, *histories(folder.curves)],
        end_state=END_STATES[status],
        started_ms=_started_ms(record),
        ended_ms=_ended_ms(record),
        artifacts=_artifacts(folder.path),
    )


def of_sweep(sweep: store.Sweep, status: str) -> Content:
    """What is told of a sweep as a whole, in its summary run: the table, the figures, the best cell, the counts."""
    counts = {
        state: sum(row["status"] == state for row in sweep.rows) for state in ("done", "failed", "skipped", "killed")
    }
    state = "killed" if status == "killed" else "failed" if counts["failed"] else "done"
    named = {"mlflow.runName": wording.sweep_name(sweep), "mlflow.runColor": wording.SUMMARY_COLOR}
    note = {"mlflow.note.content": wording.sweep_note(sweep)}
    summary: dict[str, Any] = {f"cells_{key}": count for key, count in counts.items()} | best_cell(sweep.rows)
    return Content(
        identity=_identity(sweep.path, sweep.run),
        tags=_tags(sweep.run, state) | named | note,
        params={key: wording.plain(v) for key, v in sweep.content.get("fixed", {}).items() if _is_param(v)},
        points=[Point(key, float(value), 0) for key, value in summary.items() if _is_number(value)],
        end_state=END_STATES[state],
        started_ms=_started_ms(sweep.run),
        ended_ms=_ended_ms(sweep.run),
        artifacts=_artifacts(sweep.path),
    )


def best_cell(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """{speedup_best, gamma_best} over the cells' own speedups; empty where no cell has one."""
    able = [row for row in rows if _is_number(row.get("speedup"))]
    if not able:
        return {}
    best = max(able, key=lambda row: float(row["speedup"]))
    return {"speedup_best": best["speedup"], "gamma_best": best.get("gamma")}


def histories(curves: Sequence[CurveRow]) -> Iterator[Point]:
    """Yields each curve as a stepped metric: by the best way there is to know it, thinned to 200 points."""
    for curve in dict.fromkeys(row.curve for row in curves):
        rows = [row for row in curves if row.curve == curve and row.value is not None and row.x == int(row.x)]
        best = next((kind for kind in TOKENS_PER_STEP if any(row.kind == kind for row in rows)), None)
        for row in _thinned([row for row in rows if row.kind == best]):
            yield Point(curve, float(row.value or 0.0), int(row.x))


def _thinned(rows: list[CurveRow]) -> list[CurveRow]:
    last, kept = len(rows) - 1, min(len(rows), LONGEST_HISTORY)
    return [rows[round(i * last / max(kept - 1, 1))] for i in range(kept)]


def _identity(path: Path, record: Mapping[str, Any]) -> dict[str, str]:
    """A cell is known by its sweep and digest, a single run by its folder, a sweep by its name."""
    kind = str(record["kind"])
    if kind == "run":
        return {"specexp.kind": kind, "specexp.folder": path.name}
    sweep = {"specexp.kind": kind, "specexp.sweep": str(record["sweep"])}
    return sweep if kind == "sweep" else sweep | {"specexp.digest": str(record["digest"])}


def _tags(record: Mapping[str, Any], status: str) -> dict[str, str]:
    git = record.get("git") or {}
    tags = {
        "specexp.digest": record["digest"],
        "specexp.status": status,
        "specexp.started": record["started"],
        "specexp.version": (record.get("versions") or {}).get("specexp"),
        "mlflow.source.name": "python -m specexp",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": git.get("commit"),
        "mlflow.source.git.branch": git.get("branch"),
        "mlflow.source.git.dirty": str(git["dirty"]).lower() if "dirty" in git else None,
    }
    return {key: str(value) for key, value in tags.items() if value is not None}


def _artifacts(path: Path) -> list[Path]:
    """The folder's files; not run.json, which is written again once the MLflow run has its id."""
    return sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != "." and file.name != "run.json")


def _started_ms(record: Mapping[str, Any]) -> int:
    return round(datetime.fromisoformat(record["started"]).timestamp() * 1000)


def _ended_ms(record: Mapping[str, Any]) -> int:
    return _started_ms(record) + round(1000 * (record.get("seconds") or 0))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_param(value: Any) -> bool:
    return value is not None and len(wording.plain(value)) <= LONGEST_PARAM
