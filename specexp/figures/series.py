"""A sweep's table as lines: which swept key is the x axis, and which cells belong to one line.

The x axis is a swept number (gamma first); each combination of the other keys is a line. A seed names no experiment:
cells that differ in nothing else are replicates, drawn as their mean with its interval.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from specexp.figures.points import Points, interval, number, points
from specexp.figures.style import DASHES, MARKERS, PALETTE
from specexp.rows import TOKENS_PER_STEP
from specexp.statistics import Moments
from specexp.values import shown

Cell = Mapping[str, str | float | None]
Interval = tuple[float, float | None, float | None]

LONGEST_NAME = 28
LONGEST_FRACTION = 8


class Line(NamedTuple):
    """One combination of the keys that are not the x axis."""

    label: str  # "rule=token draft.order=3", empty where there is but one line
    look: dict[str, Any]
    points: Points
    seeds: tuple[list[float], list[float]]  # (x, value) of each replicate, where there are several


class Sweep(NamedTuple):
    """A sweep's cells that are done, its swept keys in the order given, the note under its figures, and the draft
    length if all cells share one."""

    rows: list[Cell]
    swept: Mapping[str, Sequence[Any]]
    note: list[str]
    gamma: float | None = None


def axis_key(swept: Mapping[str, Sequence[Any]]) -> str | None:
    """The swept key whose numbers are the x axis: gamma, else the first with several, None where all are names."""
    numeric = [k for k, values in swept.items() if k != "seed" and all(number(value) is not None for value in values)]
    several = [key for key in numeric if len({number(value) for value in swept[key]}) > 1] or numeric
    return "gamma" if "gamma" in numeric else next(iter(several), None)


def line_keys(swept: Mapping[str, Sequence[Any]], axis: str | None) -> list[str]:
    """The keys that tell lines (or bars) apart, those of the rule first: a rule has one colour in all figures. A seed
    tells them apart only where nothing else was swept."""
    return rules_first(key for key in swept if key not in (axis, "seed")) if set(swept) != {"seed"} else ["seed"]


def rules_first(keys: Iterable[str]) -> list[str]:
    """The same keys, those of the rule first."""
    return sorted(keys, key=lambda key: key.split(".")[0] != "rule")


def written(value: object) -> str:
    """A swept value as it was typed."""
    as_number = None if isinstance(value, bool) else number(value)
    return shown(value) if as_number is None else f"{as_number:.12g}"


def measured(row: Cell, metric: str) -> Interval | None:
    """The cell's number with its interval; tokens a step as they are known best."""
    source = known_as(row, metric)
    key = TOKENS_PER_STEP[source] if metric == "tokens_per_step" and source else metric
    value, low, high = interval(row, key)
    return None if value is None else (value, low, high)


def known_as(row: Cell, metric: str) -> str | None:
    """The way in which the cell knows the metric (exact, expected, sampled), None where it has but one or none."""
    if metric == "tokens_per_step":
        return next((source for source, key in TOKENS_PER_STEP.items() if number(row.get(key)) is not None), None)
    source = row.get(f"{metric}_source")
    return source if isinstance(source, str) else None


def ways(rows: Sequence[Cell], metric: str) -> str:
    """``, exact or sampled``: the ways in which the cells know the metric, as part of an axis' name."""
    found = {known_as(row, metric) for row in rows if measured(row, metric) is not None}
    named = " or ".join(source for source in TOKENS_PER_STEP if source in found)
    return f", {named}" if named else ""


def over_replicates(found: Sequence[Interval]) -> Interval:
    """The mean over seeds with Student's 95 % interval; a single number keeps the interval that it has."""
    if len(found) == 1:
        return found[0]
    seeds = Moments.of(["value"], [[value] for value, _, _ in found])
    return float(seeds.means[0]), *seeds.mean("value")[1:]


def gather(rows: Sequence[Cell], keys: Sequence[str], metric: str) -> dict[tuple[str, ...], Interval]:
    """The metric for each combination of ``keys``, in the table's order, replicates together."""
    return {names: over_replicates(values) for names, values in by_combination(rows, keys, metric).items()}


def by_combination(rows: Sequence[Cell], keys: Sequence[str], metric: str) -> dict[tuple[str, ...], list[Interval]]:
    """The metric of each cell with a combination of ``keys``, in the table's order."""
    found: dict[tuple[str, ...], list[Interval]] = defaultdict(list)
    for row in rows:
        value = measured(row, metric)
        if value is not None:
            found[tuple(written(row.get(key)) for key in keys)].append(value)
    return found


def lines(
    rows: Sequence[Cell], swept: Mapping[str, Sequence[Any]], axis: str, metric: str, along: Sequence[str] = ()
) -> list[Line]:
    """The sweep's lines for one metric, coloured by the first key and marked by the others; the points of one line may
    differ in the keys ``along`` it."""
    keys = [key for key in line_keys(swept, axis) if key not in along]
    curves: dict[tuple[str, ...], list[Sequence[float | None]]] = defaultdict(list)
    seeds: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for names, values in by_combination(rows, [*keys, *along, axis], metric).items():
        line, x = names[: len(keys)], float(names[-1])
        curves[line].append((x, *over_replicates(values)))
        seeds[line] += [(x, value) for value, _, _ in values if len(values) > 1]
    combinations = [tuple(written(row.get(key)) for key in keys) for row in rows]  # of all cells: looks are no metric's
    firsts = list(dict.fromkeys(names[:1] for names in combinations))
    others = list(dict.fromkeys(names[1:] for names in combinations))
    return [
        Line(
            labelled(keys, names),
            line_look(firsts.index(names[:1]), others.index(names[1:]), len(others)),
            found,
            ([x for x, _ in seeds[names]], [value for _, value in seeds[names]]),
        )
        for names, curve in curves.items()
        if (found := points(curve)) is not None
    ]


def labelled(keys: Sequence[str], names: Sequence[str]) -> str:
    """The combination as it would be typed, ``rule=token draft.order=3``; long values (paths, vectors) are cut, and a
    key that a member lacks, or left null, is not named."""
    return " ".join(f"{key}={short(name)}" for key, name in zip(keys, names, strict=True) if name != "null")


def short(name: str) -> str:
    """A value's name with room for others: of a long text the ends, of a fraction of many digits the first three."""
    if number(name) is not None and "." in name and len(name) > LONGEST_FRACTION:
        return f"{number(name):.3g}"
    return name if len(name) <= LONGEST_NAME else f"{name[:9]}…{name[10 - LONGEST_NAME :]}"


def line_look(first: int, other: int, others: int) -> dict[str, Any]:
    """Colour by the first key; marker and dash by the others, or by the first as well where it is alone."""
    turn = first if others == 1 else other + first // len(PALETTE)
    return {
        "color": PALETTE[first % len(PALETTE)],
        "marker": MARKERS[turn % len(MARKERS)],
        "linestyle": DASHES[turn % len(DASHES)],
    }
