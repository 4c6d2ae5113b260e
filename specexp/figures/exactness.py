"""Figures without noise: their numbers are of no sample, and their notes speak of none."""

from collections.abc import Sequence

from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from specexp.figures.series import Cell, known_as, measured

INTERVALS, EXACT = "95 % intervals", "exact numbers"
KNOWN_AS = {"closed_form_error": "tokens_per_step"}  # a number that is known as another one is


def of_numbers(note: Sequence[str], figure: Figure, rows: Sequence[Cell], *metrics: str) -> list[str]:
    """The note under a figure of these metrics of a sweep's cells."""
    found = [(row, KNOWN_AS.get(metric, metric)) for metric in metrics for row in rows if measured(row, metric)]
    return of_exact(note, figure, all(known_as(row, metric) == "exact" for row, metric in found))


def of_exact(note: Sequence[str], figure: Figure, is_exact: bool) -> list[str]:
    """The note, which says of exact numbers that they are, and neither N nor intervals; a figure that shows one beside
    them (counted numbers, a mean over seeds) keeps it."""
    if not is_exact or INTERVALS not in note or shows_intervals(figure):
        return list(note)
    return [EXACT if part == INTERVALS else part for part in note if not part.startswith("N = ")]


def shows_intervals(figure: Figure) -> bool:
    """Whether any of its numbers has one."""
    bars = [bar for axes in figure.axes for bar in axes.containers if isinstance(bar, ErrorbarContainer)]
    return any(bar.has_xerr or bar.has_yerr for bar in bars)
