"""Bias against speedup: what each rule buys, and with how much of the target's law."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specexp.figures.naming import apart
from specexp.figures.points import draw_plain_decoding, number
from specexp.figures.series import Cell, Interval, Sweep, gather, labelled, ways, written
from specexp.figures.style import DOUBLE, GREY, MARKERS, PALETTE, legend_beside, sheet
from specexp.statistics.distance import ROUNDING

ONE_WORLD = ("target", "cost")  # no rule is chosen over another by changing these


class Place(NamedTuple):
    """A cell, or the mean of its replicates, in the plane."""

    names: tuple[str, ...]
    bias: Interval
    speedup: Interval


def plane_figure(sweep: Sweep) -> Figure | None:
    """A marker a cell, coloured by its rule, with the intervals of both numbers; None where no bias is known but 0."""
    keys = [key for key in sweep.swept if key != "seed"]
    found = places(sweep.rows, keys)
    if not any(place.bias[0] for place in found):
        return None
    of_all = looks_of(keys, [tuple(written(row.get(key)) for key in keys) for row in sweep.rows])
    looks = {place.names: of_all[place.names] for place in found}
    named = sum(len({part(keys, names, of_rule) for names in looks}) for of_rule in (True, False))
    figure, (axes,) = sheet(DOUBLE, max(3.2, 0.17 * (named + 2)))  # the legend names the two lines too
    for place in found:
        (x, *x_ends), (y, *y_ends) = place.bias, place.speedup
        axes.errorbar([x], [y], xerr=reach(x, *x_ends), yerr=reach(y, *y_ends), zorder=3, **looks[place.names])
    name_looks(axes, keys, looks)
    if not any(key.split(".")[0] in ONE_WORLD for key in keys):
        draw_front(axes, found)
    draw_plain_decoding(axes)
    axes.set_xlabel(f"bias{ways(sweep.rows, 'bias')} (TV of a step's first token from the target's law)")
    axes.set_ylabel(f"speedup{ways(sweep.rows, 'speedup')} (×)")
    legend_beside(figure, axes, 1)
    return figure


def without_bias(rows: Sequence[Cell], keys: Sequence[str]) -> str:
    """The small print on the cells that are not drawn; empty where there are none."""
    unknown = [row for row in rows if number(row.get("bias")) is None]
    return f"bias not known in {len(unknown)} of {len(rows)} cells: {apart(unknown, rows, keys)}" if unknown else ""


def right_at_first(rows: Sequence[Cell], keys: Sequence[str]) -> str:
    """The small print on the cells that stand at bias 0 and whose later tokens are known not to be the target's."""
    right = [row for row in rows if (bias := number(row.get("bias"))) is not None and bias <= ROUNDING]
    later = [row for row in right if (number(row.get("tv_exact_target")) or 0.0) > ROUNDING]
    return f"biased after the first token: {apart(later, rows, keys)}" if later else ""


def places(rows: Sequence[Cell], keys: Sequence[str]) -> list[Place]:
    """All cells whose bias and speedup are known; a bias that rounding left is none."""
    both = [row for row in rows if number(row.get("bias")) is not None and number(row.get("speedup")) is not None]
    speedups = gather(both, keys, "speedup")
    return [
        Place(names, bias if bias[0] > ROUNDING else (0.0, None, None), speedups[names])
        for names, bias in gather(both, keys, "bias").items()
    ]


def front(found: Sequence[Place]) -> list[tuple[float, float]]:
    """(bias, speedup) of the cells to which none is preferable in both (Pareto), by rising bias."""
    best: list[tuple[float, float]] = []
    for bias, speedup in sorted({(place.bias[0], place.speedup[0]) for place in found}, key=lambda at: (at[0], -at[1])):
        if not best or speedup > best[-1][1]:
            best.append((bias, speedup))
    return best


def draw_front(axes: Axes, found: Sequence[Place]) -> None:
    """A thin line through the front, to the right and up: what a given bias buys at most, among what is drawn."""
    x, y = zip(*front(found), strict=True)
    axes.plot(x, y, color=GREY, linewidth=0.7, drawstyle="steps-post", zorder=1, label="Pareto front of these")


def reach(value: float, low: float | None, high: float | None) -> list[list[float]] | None:
    """How far an interval reaches down and up, [2, 1]; None where there is none."""
    return None if low is None or high is None else [[max(0.0, value - low)], [max(0.0, high - value)]]


def looks_of(keys: Sequence[str], names: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The look of each combination: colour by its rule (hollow after a round of the palette), marker by the rest, or by
    the rule too where there is nothing else."""
    rules, others = (list(dict.fromkeys(part(keys, name, of_rule) for name in names)) for of_rule in (True, False))
    looks = {}
    for name in names:
        rule, other = rules.index(part(keys, name, True)), others.index(part(keys, name, False))
        color, marker = PALETTE[rule % len(PALETTE)], MARKERS[(rule if len(others) == 1 else other) % len(MARKERS)]
        hollow = {"markerfacecolor": "white"} if rule // len(PALETTE) % 2 else {}
        looks[name] = {"color": color, "marker": marker, "linestyle": "", "markersize": 4.5, **hollow}
    return looks


def part(keys: Sequence[str], names: Sequence[str], of_rule: bool) -> str:
    """What a combination says of its rule, or of all else."""
    chosen = [(key, name) for key, name in zip(keys, names, strict=True) if (key.split(".")[0] == "rule") == of_rule]
    return labelled([key for key, _ in chosen], [name for _, name in chosen])


def name_looks(axes: Axes, keys: Sequence[str], looks: Mapping[tuple[str, ...], dict[str, Any]]) -> None:
    """A legend's entry for each rule, and for each combination of the rest where there are several."""
    others = {part(keys, names, False): look for names, look in looks.items()}
    shared = {"marker": "o"} if len(others) > 1 else {}
    for rule, look in {part(keys, names, True): look for names, look in looks.items()}.items():
        axes.plot([], [], label=rule, **look | shared)
    for other, look in others.items() if len(others) > 1 else ():
        axes.plot([], [], label=other, **look | {"color": GREY, "markerfacecolor": GREY})
