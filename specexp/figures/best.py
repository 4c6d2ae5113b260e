"""The star on a sweep's best speedup."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from specexp.figures.lossless import is_lossy
from specexp.figures.points import draw_best
from specexp.figures.series import Cell, by_combination, gather, labelled, line_keys

Swept = Mapping[str, Sequence[Any]]


class Best(NamedTuple):
    """The cell, or mean of replicates, with the highest speedup: its values of the keys asked for, and the beginning
    of the star's label."""

    names: tuple[str, ...]
    speedup: float
    label: str


def is_over_rules(swept: Swept) -> bool:
    """Whether the sweep compares rules, or one rule's settings."""
    return any(key.split(".")[0] == "rule" for key in swept)


def best_of(rows: Sequence[Cell], swept: Swept, keys: Sequence[str]) -> Best | None:
    """The best of the combinations of ``keys``; in a sweep over rules, of those not known to be lossy."""
    speedups = gather(rows, keys, "speedup")
    lossy = by_combination([row for row in rows if is_lossy(row)], keys, "speedup") if is_over_rules(swept) else {}
    names = max((names for names in speedups if names not in lossy), key=lambda names: speedups[names][0], default=None)
    if names is None:
        return None
    return Best(names, speedups[names][0], "best of these, lossy apart" if lossy else "best of these")


def mark_best_point(axes: Axes, rows: Sequence[Cell], swept: Swept, axis: str) -> None:
    """The star on the best of all points of a sweep along ``axis``; its label says where, and on which line."""
    keys = line_keys(swept, axis)
    best = best_of(rows, swept, [*keys, axis])
    if best is None:
        return
    *line, x = best.names
    place = f" γ = {float(x):g}" if axis == "gamma" else f"\n{labelled([axis], [x])}"  # keys are long
    label = f"{best.label}:{place}, {best.speedup:.2f} ×\n{labelled(keys, line)}"
    draw_best(axes, float(x), best.speedup, label.strip())


def mark_best_bar(axes: Axes, rows: Sequence[Cell], swept: Swept) -> None:
    """The star on the best bar; seeds alone are replicates, none of them the best."""
    keys = line_keys(swept, None)
    best = best_of(rows, swept, keys) if keys != ["seed"] else None
    if best is not None:
        place = list(gather(rows, keys, "speedup")).index(best.names)
        draw_best(axes, best.speedup, place, f"{best.label}: {best.speedup:.2f} ×")
