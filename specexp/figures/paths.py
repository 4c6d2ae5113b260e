"""A sweep over several drafts: how often one of the first ones is kept, below the most that could be; and what the
drafts, each of them verified, bring in tokens a step."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from specexp.figures.comparison import legend, panel
from specexp.figures.exactness import of_numbers
from specexp.figures.points import Points, draw_points, number, points
from specexp.figures.series import Cell, Interval, Sweep, axis_key, gather, labelled, line_keys, lines, ways
from specexp.figures.style import DASHES, GREY

PATHS = "draft.paths"
DRAFTED = "drafted_per_step"
PAIR = ("target", "draft")  # all that the most a rule could keep depends on, beside the number of drafts
VERIFIED = "a step verifies one position more than it drafts tokens, in one pass"

Swept = Mapping[str, Sequence[Any]]


def drafts_figures(sweep: Sweep) -> Iterator[tuple[str, Figure, list[str]]]:
    """(file name, figure, note under it): ``acceptance`` and ``drafted``, where several drafts were compared."""
    rows, swept, note = sweep.rows, sweep.swept, sweep.note
    if not is_over_drafts(rows, swept):
        return
    acceptance = acceptance_figure(rows, swept)
    if acceptance is not None:
        figure, told = acceptance
        yield "acceptance", figure, [*of_numbers(note, figure, rows, "acceptance_first"), *told]
    if len({row.get(DRAFTED) for row in rows}) > 1:
        figure = drafted_figure(rows, swept)
        yield "drafted", figure, [*of_numbers(note, figure, rows, "tokens_per_step"), VERIFIED]


def is_over_drafts(rows: Sequence[Cell], swept: Swept) -> bool:
    """Whether the number of drafts differs, and not by their length alone, or a rule takes several."""
    optimum = any(number(row.get("acceptance_optimum")) is not None for row in rows)
    return PATHS in swept or optimum or (len({row.get(DRAFTED) for row in rows}) > 1 and "gamma" not in swept)


def acceptance_figure(rows: Sequence[Cell], swept: Swept) -> tuple[Figure, list[str]] | None:
    """P(a draft of the first position is kept) against the number of paths, else against what else was swept, and what
    the note says of the optimum where it is drawn; None where no number was swept."""
    axis = PATHS if len(set(swept.get(PATHS, ()))) > 1 else axis_key(swept)
    found = lines(rows, swept, axis, "acceptance_first") if axis else []
    if axis is None or not any(len(line.points.x) > 1 for line in found):
        return None
    figure, axes = panel(found, axis, f"acceptance of the first position{ways(rows, 'acceptance_first')}")
    optima = ceilings(rows, swept, axis)
    for place, (label, curve) in enumerate(optima):
        dashes = (0, (4, 2)) if place == 0 else DASHES[place % len(DASHES)]
        draw_points(axes, curve, label, color=GREY, linestyle=dashes, marker="", zorder=3)
    legend(figure, axes, len(found))
    return figure, ["the optimum is that of independent drafts"] if optima else []


def ceilings(rows: Sequence[Cell], swept: Swept, axis: str) -> list[tuple[str, Points]]:
    """The optimum along ``axis``, a curve for each pair of a target and a draft. Of cells that differ in other keys
    (their rules' steps start in different contexts, trees begin with more drafts), the highest: no cell is above it."""
    keys = line_keys(swept, axis)
    pair = [key for key in keys if key.split(".")[0] in PAIR]
    others = [key for key in keys if key not in pair]
    highest: dict[tuple[str, ...], dict[str, Interval]] = defaultdict(dict)
    for names, value in gather(rows, [*pair, *others, axis], "acceptance_optimum").items():
        group = highest[names[: len(pair)]]
        group[names[-1]] = max(value, group.get(names[-1], value), key=lambda interval: interval[0])
    curves = {group: points([(float(x), *value) for x, value in by_x.items()]) for group, by_x in highest.items()}
    drawn = {group: curve for group, curve in curves.items() if curve and len(curve.x) > 1}
    told = {group: f" {labelled(pair, group)}" if len(drawn) > 1 else "" for group in drawn}
    return [(f"optimum{told[group]}", curve) for group, curve in drawn.items()]


def drafted_figure(rows: Sequence[Cell], swept: Swept) -> Figure:
    """Tokens a step against drafted tokens a step, a line over the numbers of drafts; between unlike shapes there is
    nothing, so they are markers alone."""
    found = lines(rows, swept, DRAFTED, "tokens_per_step", along=along(swept))
    if any(key.split(".")[0] == "length" for key in swept):
        found = [line._replace(look=line.look | {"linestyle": ""}) for line in found]
    figure, axes = panel(found, DRAFTED, f"tokens per step{ways(rows, 'tokens_per_step')}")
    legend(figure, axes, len(found))
    return figure


def along(swept: Swept) -> list[str]:
    """The swept keys that say how many drafts there are, in which shape."""
    return [key for key in swept if key == PATHS or key.split(".")[0] == "length"]
