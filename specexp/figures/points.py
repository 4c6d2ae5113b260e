"""Numbers with their intervals, and the marks that show them on Axes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.ticker import MaxNLocator

from specexp.closed_form import closed_form
from specexp.figures.style import BLACK, GREY, ORANGE
from specexp.rounds import Floats

REFERENCES = {0.3: "#c4c4c4", 0.5: "#b0b0b0", 0.7: "#9c9c9c", 0.9: "#888888"}  # the notebook's four alphas, greys
CROWD = 32  # more points than this are drawn small


class Points(NamedTuple):
    """A curve's numbers, by rising x; ``low`` and ``high`` bound the 95 % interval, NaN where there is none."""

    x: Floats
    value: Floats
    low: Floats
    high: Floats

    @property
    def reach(self) -> list[list[float]] | None:
        """How far each interval reaches down and up [2, n], or None where no point has one."""
        reach = np.maximum(np.stack([self.value - self.low, self.high - self.value]), 0.0)
        return None if np.isnan(reach).all() else reach.tolist()


def number(cell: object) -> float | None:
    """The number in a table's cell, None where it is empty, a word or a truth value."""
    if cell is None or isinstance(cell, bool):
        return None
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def points(rows: Iterable[Sequence[float | None]]) -> Points | None:
    """Rows of (x, value, low, high) as a curve; a row without value is left out, and None comes back for no rows."""
    kept = sorted((row for row in rows if row[1] is not None), key=lambda row: row[0] or 0.0)
    return Points(*np.array(kept, dtype=float).T) if kept else None


def interval(table: Mapping[str, Any], key: str) -> tuple[float | None, float | None, float | None]:
    """The metric ``key`` of a table with the two ends of its interval."""
    return number(table.get(key)), number(table.get(f"{key}_low")), number(table.get(f"{key}_high"))


def words(value: float, low: float | None, high: float | None) -> str:
    """A number and its interval as text: ``4.02 [3.98, 4.06]``."""
    return f"{value:.2f}" if low is None or high is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def draw_points(axes: Axes, curve: Points, label: str, **look: Any) -> ErrorbarContainer:
    """The points with a bar for each interval."""
    if len(curve.x) > CROWD:
        look = look | {"markersize": 2.0, "capsize": 0.0}
    return axes.errorbar(curve.x, curve.value, yerr=curve.reach, label=label, **look)


def is_of_one_draft(table: Mapping[str, Any], gamma: float) -> bool:
    """Whether a step of ``gamma`` levels drafts one path."""
    return (number(table.get("drafted_per_step")) or 0) <= gamma


def draw_reference(axes: Axes, gammas: range, one_draft: bool, top: float = np.inf) -> None:
    """The closed form against gamma for a few alphas, each named at its right end; none that ends above ``top``. It is
    of one draft, which is said where what it is read against is not of ``one_draft``."""
    shown = [(alpha, shade) for alpha, shade in REFERENCES.items() if closed_form(alpha, gammas[-1]) <= top]
    for alpha, shade in shown:
        named = "closed form" + ("" if one_draft else " of one draft") if alpha == shown[-1][0] else None
        axes.plot(gammas, [closed_form(alpha, gamma) for gamma in gammas], color=shade, label=named, zorder=1)
    _name_ends(axes, [alpha for alpha, _ in shown], gammas[-1])


def _name_ends(axes: Axes, alphas: Sequence[float], gamma: int) -> None:
    """The alphas at their curves' right ends, pushed apart where the ends are closer than the letters are high."""
    bottom, top = axes.get_ylim()
    height = -np.inf
    for alpha in alphas:
        height = max(closed_form(alpha, gamma), height + 0.058 * (top - bottom))
        look: dict[str, Any] = {"va": "center", "fontsize": 7, "annotation_clip": False}
        axes.annotate(f"α = {alpha}", (gamma, height), (4, 0), textcoords="offset points", **look)


def whiskers(curve: Points) -> dict[str, Any]:
    """The look of the intervals on bars."""
    return {"ecolor": BLACK, "error_kw": {"elinewidth": 0.8, "capsize": 0.0 if len(curve.x) > CROWD else 2.0}}


def count_along(axes: Axes, first: int, last: int) -> None:
    """An x axis of whole numbers, with half a number's room at both ends."""
    room = max(0.5, 0.03 * (last - first))
    axes.set_xlim(first - room, last + room)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))


def draw_best(axes: Axes, x: float, y: float, label: str) -> None:
    """The star on the best point."""
    look: dict[str, Any] = {"markersize": 9, "color": ORANGE, "markeredgecolor": BLACK, "markeredgewidth": 0.6}
    axes.plot([x], [y], "*", label=label, zorder=5, **look)


def draw_plain_decoding(axes: Axes, upright: bool = False) -> None:
    """The line at speedup 1: the target alone."""
    line = axes.axvline if upright else axes.axhline
    line(1.0, color=GREY, linestyle=(0, (4, 2)), linewidth=0.8, zorder=1, label="plain decoding")
