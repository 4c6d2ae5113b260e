"""The figures of a sweep: tokens per step and speedup over its cells, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specexp.figures.best import is_over_rules, mark_best_bar, mark_best_point
from specexp.figures.lossless import lossless_figure, without_test
from specexp.figures.paths import drafts_figures
from specexp.figures.points import (
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
    ways,
    written,
)
from specexp.figures.style import (
    COLUMN,
    DOUBLE,
    GREY,
    SKY,
    house_style,
    legend_above,
    legend_beside,
    save,
    sheet,
    write_note,
)
from specexp.figures.ticks import label_axis
from specexp.figures.vectors import by_coordinate

METRICS = {"tokens_per_step": "tokens per step{}", "speedup": "speedup{} (×)"}  # {}: how it is known
FINDINGS = {"closed_form_error": "relative error of the closed form"}
SMALL = 0.005  # an error of the closed form that is worth a figure


class Sweep(NamedTuple):
    """A sweep's cells that are done, its swept keys in the order given, the note under its figures, and the draft
    length if all cells share one."""

    rows: list[Cell]
    swept: Mapping[str, Sequence[Any]]
    note: list[str]
    gamma: float | None = None


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
    note = what_was_swept(rows, done, swept, fixed)
    sweep = Sweep(*by_coordinate(done, swept), note, number(fixed.get("gamma")))
    written_paths: list[Path] = []
    with house_style():
        for name, figure, note in figures(sweep):
            write_note(figure, note)
            written_paths += save(figure, folder / name, formats, provenance)
    return written_paths


def figures(sweep: Sweep) -> Iterator[tuple[str, Figure, list[str]]]:
    """(file name, figure, note under it) of all that the sweep has numbers for."""
    errors = [abs(number(row.get("closed_form_error")) or 0.0) for row in sweep.rows]
    for metric in [*METRICS, *(FINDINGS if max(errors) >= SMALL else ())]:
        figure = comparison(sweep, metric)
        if figure is not None:
            yield metric, figure, sweep.note
    yield from drafts_figures(sweep.rows, sweep.swept, sweep.note)
    if is_over_rules(sweep.swept):
        figure = lossless_figure(sweep.rows, list(sweep.swept))
        if figure is not None:
            without_bars = [part for part in sweep.note if "95 %" not in part]
            yield "lossless", figure, [*without_bars, without_test(sweep.rows, list(sweep.swept))]


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
    alike = len(done) == seeds * len({tuple(written(row.get(key)) for key in swept if key != "seed") for row in done})
    over_seeds = f"mean of {seeds} seeds (dots), 95 % intervals over seeds{'' if alike else ' where there are several'}"
    bars = over_seeds if seeds > 1 else "95 % intervals"
    missing = f"{len(rows) - len(done)} of {len(rows)} cells not done" if len(rows) > len(done) else ""
    return [", ".join(members), f"N = {counted} steps a cell" if counted else "", bars, missing]


def comparison(sweep: Sweep, metric: str) -> Figure | None:
    """One metric over all cells: lines where a number was swept, else, or where each has but one point, bars."""
    axis = axis_key(sweep.swept)
    if axis is not None:
        found = lines(sweep.rows, sweep.swept, axis, metric)
        if len(found) < 2 or any(len(line.points.x) > 1 for line in found):
            return line_figure(found, axis, metric, sweep) if found else None
    keys = line_keys(sweep.swept, None)
    bars = [(labelled(keys, names), value) for names, value in gather(sweep.rows, keys, metric).items()]
    replicates = keys == ["seed"]
    if replicates and len(bars) > 1:
        bars.append(("mean over seeds", over_replicates([value for _, value in bars])))
    return bar_figure(bars, metric, sweep) if bars else None


def line_figure(found: Sequence[Line], axis: str, metric: str, sweep: Sweep) -> Figure:
    """A line a combination; the legend stands beside the panel where there are several."""
    several = len(found) > 1
    figure, (axes,) = sheet(DOUBLE if several else COLUMN, max(2.7, 0.15 * len(found) + 0.9))
    for line in found:
        draw_points(axes, line.points, line.label or "this sweep", **line.look)
        axes.plot(*line.seeds, ".", color=line.look["color"], markersize=4, alpha=0.5)
    label_axis(axes, axis, np.unique(np.concatenate([line.points.x for line in found])))
    axes.set_ylabel((METRICS | FINDINGS)[metric].format(ways(sweep.rows, metric)))
    if metric == "speedup":
        draw_plain_decoding(axes)
        mark_best_point(axes, sweep.rows, sweep.swept, axis)
    elif metric in FINDINGS:
        draw_no_error(axes)
    elif axis == "gamma":
        gammas = range(int(axes.dataLim.x0), int(axes.dataLim.x1) + 1)
        draw_reference(axes, gammas, top=1.5 * axes.dataLim.y1)
    elif sweep.gamma is not None and sweep.gamma + 1 <= 1.5 * axes.dataLim.y1:
        draw_ceiling(axes, sweep.gamma)
    if several:
        legend_beside(figure, axes, 1 + len(found) // 40)
    else:
        legend_above(axes, 2)
    return figure


def draw_no_error(axes: Axes) -> None:
    """The axis in percent, with its zero."""
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)


def draw_ceiling(axes: Axes, gamma: float) -> None:
    """What a perfect draft gives: all drafted tokens and one more."""
    axes.axhline(gamma + 1, color=GREY, linestyle=(0, (4, 2)), linewidth=0.8, label=f"ceiling γ + 1 = {gamma + 1:g}")


def bar_figure(bars: Sequence[tuple[str, Interval]], metric: str, sweep: Sweep) -> Figure:
    """A bar a name, from top to bottom in the sweep's order; a star on the best speedup where not seeds were swept."""
    figure, (axes,) = sheet(COLUMN if max(len(label) for label, _ in bars) < 20 else DOUBLE, 0.2 * len(bars) + 1.1)
    heights = points([(place, *value) for place, (_, value) in enumerate(bars)])
    assert heights is not None
    axes.barh(heights.x, heights.value, 0.6, xerr=heights.reach, color=SKY, **whiskers(heights))
    axes.set_yticks(heights.x, [label for label, _ in bars])
    axes.invert_yaxis()
    axes.set_xlabel((METRICS | FINDINGS)[metric].format(ways(sweep.rows, metric)))
    axes.grid(visible=False, axis="y")
    if metric == "speedup":
        draw_plain_decoding(axes, upright=True)
        mark_best_bar(axes, sweep.rows, sweep.swept)
        legend_above(axes, 1)  # beside long names there is no room for two
    return figure
