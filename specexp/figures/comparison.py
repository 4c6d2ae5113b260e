"""One metric over all cells of a sweep: lines where a number was swept, else bars."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from specexp.figures.best import mark_best_bar, mark_best_point
from specexp.figures.points import (
    draw_plain_decoding,
    draw_points,
    draw_reference,
    is_of_one_draft,
    number,
    points,
    whiskers,
)
from specexp.figures.series import (
    Interval,
    Line,
    Sweep,
    axis_key,
    gather,
    labelled,
    line_keys,
    lines,
    over_replicates,
    ways,
)
from specexp.figures.style import COLUMN, DOUBLE, GREY, SKY, entries, legend_above, legend_beside, sheet
from specexp.figures.ticks import label_axis

METRICS = {"tokens_per_step": "tokens per step{}", "speedup": "speedup{} (×)"}  # {}: how it is known
ALONE = "this sweep"  # the name of an only line
FINDINGS = {  # in percent
    "closed_form_error": "relative error of the closed form",
    "gain_over_token": "gain over rule=token{}",
}


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
    figure, axes = panel(found, axis, (METRICS | FINDINGS)[metric].format(ways(sweep.rows, metric)))
    if metric == "speedup":
        draw_plain_decoding(axes)
        mark_best_point(axes, sweep.rows, sweep.swept, axis)
    elif metric in FINDINGS:
        in_percent(axes)
    elif axis == "gamma":
        gammas = range(int(axes.dataLim.x0), int(axes.dataLim.x1) + 1)
        one = all(is_of_one_draft(row, number(row.get(axis)) or 0) for row in sweep.rows)
        draw_reference(axes, gammas, one, top=1.5 * axes.dataLim.y1)
    elif sweep.gamma is not None and sweep.gamma + 1 <= 1.5 * axes.dataLim.y1:
        draw_ceiling(axes, sweep.gamma)
    legend(figure, axes, len(found))
    return figure


def panel(found: Sequence[Line], axis: str, label: str) -> tuple[Figure, Axes]:
    """A sheet with the lines on it."""
    figure, (axes,) = sheet(DOUBLE if len(found) > 1 else COLUMN, max(2.7, 0.15 * len(found) + 0.9))
    for line in found:
        draw_points(axes, line.points, line.label or ALONE, **line.look)
        axes.plot(*line.seeds, ".", color=line.look["color"], markersize=4, alpha=0.5)
    label_axis(axes, axis, np.unique(np.concatenate([line.points.x for line in found])))
    axes.set_ylabel(label)
    return figure, axes


def legend(figure: Figure, axes: Axes, count: int) -> None:
    """Beside the panel where there are several lines; none where there is nothing to tell the only one from."""
    if count > 1:
        legend_beside(figure, axes, 1 + count // 40)
    elif entries(axes)[1] != [ALONE]:
        legend_above(axes, 2)


def in_percent(axes: Axes, upright: bool = False) -> None:
    """The axis of the numbers in percent, with a line at zero; ``upright`` where it is the lower one."""
    (axes.xaxis if upright else axes.yaxis).set_major_formatter(PercentFormatter(1.0))
    (axes.axvline if upright else axes.axhline)(0.0, color=GREY, linewidth=0.8, zorder=1)


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
    elif metric in FINDINGS:
        in_percent(axes, upright=True)
    return figure
