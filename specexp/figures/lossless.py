"""A sweep over rules, as two checks see it: the distance of the whole stream, and the ranks in each context."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specexp.figures.naming import apart
from specexp.figures.points import number
from specexp.figures.series import Cell, labelled, written
from specexp.figures.style import BLACK, BLUE, DOUBLE, GREY, SKY, sheet
from specexp.statistics.distance import ROUNDING
from specexp.statistics.ranked import ALARM

FURTHEST = 60  # powers of ten; a smaller p-value is drawn here


def lossless_figure(rows: Sequence[Cell], keys: Sequence[str]) -> Figure | None:
    """Left TV over its noise floor, right -log10 of the ranked test's p-value, a row a cell; None where no cell has
    both."""
    tested = [row for row in rows if is_tested(row)]
    if not tested:
        return None
    figure, (pooled, ranked) = sheet(DOUBLE, 0.2 * len(tested) + 1.1, panels=2)
    places = np.arange(len(tested))
    pooled.barh(places, [distance_over_floor(row) for row in tested], 0.6, color=SKY)
    ranked.barh(places, [evidence(row) for row in tested], 0.6, color=BLUE)
    pooled.set_yticks(places, [labelled(keys, [written(row.get(key)) for key in keys]) for row in tested])
    ranked.set_yticks(places, [""] * len(places))
    pooled.set_xlabel("TV distance over its noise floor")
    ranked.set_xlabel(f"−log$_{{10}}$ p of the ranked test (≤ {FURTHEST})", parse_math=True)
    draw_threshold(pooled, 1, "a right rule's mean", GREY)
    draw_threshold(ranked, -np.log10(ALARM), f"p = {ALARM}", BLACK)
    return figure


def is_tested(row: Cell) -> bool:
    """Whether the cell has both numbers."""
    return bool(number(row.get("tv_noise_floor"))) and number(row.get("lossless_pvalue")) is not None


def without_test(rows: Sequence[Cell], keys: Sequence[str]) -> str:
    """The small print on the cells that have no row here; empty where there are none."""
    untested = [row for row in rows if not is_tested(row)]
    return f"no test in {len(untested)} of {len(rows)} cells: {apart(untested, rows, keys)}" if untested else ""


def is_lossy(row: Cell) -> bool:
    """Whether the cell's rule is known not to keep the target's law: by its bias, by every outcome summed, or by the
    ranked test."""
    biases = [number(row.get(key)) or 0.0 for key in ("bias", "tv_exact", "tv_exact_target")]
    pvalue = number(row.get("lossless_pvalue"))
    return max(biases) > ROUNDING or (pvalue is not None and pvalue < ALARM)


def draw_threshold(axes: Axes, x: float, label: str, color: str) -> None:
    """An upright line with its name on top, towards the panel's middle; rows run from top to bottom."""
    axes.axvline(x, color=color, linestyle=(0, (4, 2)), linewidth=0.8)
    look: dict[str, Any] = {"fontsize": 7, "ha": "left" if x < np.mean(axes.get_xlim()) else "right"}
    axes.annotate(label, (x, 1.0), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points", **look)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def distance_over_floor(row: Cell) -> float:
    """The pooled distance in units of what a right rule shows."""
    return (number(row.get("tv_distance")) or 0.0) / (number(row.get("tv_noise_floor")) or 1.0)


def evidence(row: Cell) -> float:
    """-log10 of the p-value, FURTHEST at most."""
    pvalue = max(number(row.get("lossless_pvalue")) or 0.0, 10.0**-FURTHEST)
    return max(0.0, -float(np.log10(pvalue)))
