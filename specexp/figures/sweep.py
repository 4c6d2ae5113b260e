"""The figures of a sweep: tokens per step and speedup over its cells, side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specexp.figures.points import (
    Floats,
    draw_best,
    draw_plain_decoding,
    draw_points,
    draw_reference,
    number,
    points,
    whiskers,
)
from specexp.figures.series import (
    Cell,
    Interval,
    Line,
    axis_key,
    gather,
    labelled,
    line_keys,
    lines,
    over_replicates,
    written,
)
from specexp.figures.style import (
    COLUMN,
    DOUBLE,
    DPI,
    SKY,
    house_style,
    legend_above,
    legend_beside,
    save,
    sheet,
    write_note,
)

METRICS = {"tokens_per_step": "tokens per step", "speedup": "speedup (×)"}
INCHES_PER_DIGIT = 0.055
AXIS_LABELS = {
    "gamma": "draft length γ (tokens)",
    "gamma_max": "longest draft length γ_max (tokens)",
    "draft.sigma": "noise of the draft's logits σ",
    "draft.alpha": "acceptance α of the draft",
    "steps": "steps",
    "target.vocab": "vocabulary V (tokens)",
    "cost.target_ms": "target's time for a call (ms)",
    "cost.draft_ms": "draft's time for a token (ms)",
    "cost.ratio": "draft's time over target's time",
}


class Sweep(NamedTuple):
    """A sweep's cells that are done, its swept keys in the order given, and the note under its figures."""

    rows: list[Cell]
    swept: Mapping[str, Sequence[Any]]
    note: list[str]


def draw_sweep(
    rows: Sequence[Cell],
    swept: Mapping[str, Sequence[Any]],
    folder: Path,
    formats: Sequence[str],
    provenance: Mapping[str, str],
    fixed: Mapping[str, Any],
) -> list[Path]:
    """Draws a sweep's figures into ``folder``, one file for each of ``formats``, and returns their paths.

    ``rows`` are sweep.csv's, of which those with status ``done`` are drawn; ``swept`` are the swept keys with their
    values and ``fixed`` what all cells share (dotted keys), both from sweep.json. No file comes back where nothing was
    swept or no cell is done. ``provenance`` goes into each file's metadata.
    """
    done = [row for row in rows if row.get("status") == "done"]
    if not (formats and swept and done):
        return []
    sweep = Sweep(done, swept, what_was_swept(rows, done, swept, fixed))
    written_paths: list[Path] = []
    with house_style():
        for metric in METRICS:
            figure = comparison(sweep, metric)
            if figure is not None:
                write_note(figure, sweep.note)
                written_paths += save(figure, folder / metric, formats, provenance)
    return written_paths


def what_was_swept(
    rows: Sequence[Cell], done: Sequence[Cell], swept: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]
) -> list[str]:
    """What all cells share, N, what the bars are, and how many cells are missing."""
    shared = {group: fixed.get(f"{group}.name", fixed.get(group)) for group in ("target", "draft", "rule")}
    members = [f"{member} {group}" for group, member in shared.items() if isinstance(member, str)]
    members += [f"γ = {fixed['gamma']}"] if "gamma" in fixed else []
    steps = sorted({n for row in done if (n := number(row.get("steps", fixed.get("steps"))))})
    counted = " to ".join(f"{n:,.0f}" for n in dict.fromkeys([*steps[:1], *steps[-1:]]))
    seeds = len(set(map(written, swept.get("seed", [])))) if len(swept) > 1 else 0
    bars = f"mean of {seeds} seeds, 95 % intervals over seeds" if seeds > 1 else "95 % intervals"
    missing = f"{len(rows) - len(done)} of {len(rows)} cells not done" if len(rows) > len(done) else ""
    return [", ".join(members), f"N = {counted} steps a cell" if counted else "", bars, missing]


def comparison(sweep: Sweep, metric: str) -> Figure | None:
    """One metric over all cells: lines where a number was swept, else bars by name."""
    axis = axis_key(sweep.swept)
    if axis is not None:
        found = lines(sweep.rows, sweep.swept, axis, metric)
        return line_figure(found, axis, metric) if found else None
    keys = line_keys(sweep.swept, axis)
    bars = [(labelled(keys, names), value) for names, value in gather(sweep.rows, keys, metric).items()]
    replicates = keys == ["seed"]
    if replicates and len(bars) > 1:
        bars.append(("mean over seeds", over_replicates([value for _, value in bars])))
    return bar_figure(bars, metric, best=not replicates) if bars else None


def line_figure(found: Sequence[Line], axis: str, metric: str) -> Figure:
    """A line a combination; the legend stands beside the panel where there are several."""
    several = len(found) > 1
    figure, (axes,) = sheet(DOUBLE if several else COLUMN, max(2.7, 0.15 * len(found) + 0.9))
    for line in found:
        draw_points(axes, line.points, line.label or "this sweep", **line.look)
    label_axis(axes, axis, np.unique(np.concatenate([line.points.x for line in found])))
    axes.set_ylabel(METRICS[metric])
    if metric == "speedup":
        draw_plain_decoding(axes)
        mark_best(axes, found, axis)
    elif axis == "gamma":
        gammas = range(int(axes.dataLim.x0), int(axes.dataLim.x1) + 1)
        draw_reference(axes, gammas, top=1.5 * axes.dataLim.y1)
    if several:
        legend_beside(figure, axes, 1 + len(found) // 40)
    else:
        legend_above(axes, 2)
    return figure


def mark_best(axes: Axes, found: Sequence[Line], axis: str) -> None:
    """The star on the highest of all points."""
    line = max(found, key=lambda line: line.points.value.max())
    best = int(line.points.value.argmax())
    x, y = float(line.points.x[best]), float(line.points.value[best])
    draw_best(axes, x, y, f"best: γ = {x:g}, {y:.2f} ×" if axis == "gamma" else f"best: {y:.2f} × at {x:g}")


def label_axis(axes: Axes, axis: str, values: Floats) -> None:
    """Ticks exactly at the swept values, on a logarithmic axis where they span much; crowded ones go unnamed."""
    if values[0] > 0 and values[-1] >= 32 * values[0]:
        axes.set_xscale("log")
    axes.set_xlabel(AXIS_LABELS.get(axis, axis))
    axes.set_xticks(values, named_where_room(axes, values))
    axes.set_xticks([], minor=True)


def named_where_room(axes: Axes, values: Floats) -> list[str]:
    """The values' names, empty where a name would touch the one before it."""
    places = axes.transData.transform(np.column_stack([values, np.ones_like(values)]))[:, 0] / DPI  # inches
    names, free = [], -np.inf
    for place, value in zip(places, values, strict=True):
        half = 0.5 * INCHES_PER_DIGIT * len(written(value))
        fits = place - half > free
        names.append(written(value) if fits else "")
        free = place + half + INCHES_PER_DIGIT / 2 if fits else free
    return names


def bar_figure(bars: Sequence[tuple[str, Interval]], metric: str, best: bool) -> Figure:
    """A bar a name, from top to bottom in the sweep's order; ``best`` asks for a star on the highest speedup."""
    figure, (axes,) = sheet(COLUMN if max(len(label) for label, _ in bars) < 30 else DOUBLE, 0.2 * len(bars) + 1.1)
    heights = points([(place, *value) for place, (_, value) in enumerate(bars)])
    assert heights is not None
    axes.barh(heights.x, heights.value, 0.6, xerr=heights.reach, color=SKY, **whiskers(heights))
    axes.set_yticks(heights.x, [label for label, _ in bars])
    axes.invert_yaxis()
    axes.set_xlabel(METRICS[metric])
    axes.grid(visible=False, axis="y")
    if metric == "speedup":
        draw_plain_decoding(axes, upright=True)
        if best:
            place = int(heights.value.argmax())
            draw_best(axes, heights.value[place], place, f"best: {heights.value[place]:.2f} ×")
        legend_above(axes, 2)
    return figure
