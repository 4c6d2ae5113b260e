"""The figures of a sweep: which there are, and the note under them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from specexp.figures.best import is_over_rules
from specexp.figures.caption import how_drafted
from specexp.figures.comparison import METRICS, comparison
from specexp.figures.exactness import INTERVALS, of_numbers
from specexp.figures.lossless import lossless_figure, without_test
from specexp.figures.paths import drafts_figures
from specexp.figures.plane import plane_figure, right_at_first, without_bias
from specexp.figures.points import number
from specexp.figures.series import Cell, Sweep, rules_first, written
from specexp.figures.style import house_style, save, write_note
from specexp.figures.vectors import by_coordinate

FILES = {"gain_over_token": "gain"}  # the file of a figure that has not its metric's name
NOTES = {"gain_over_token": ("gain in tokens per step at the same γ",)}
SMALL = 0.005  # an error of the closed form that is worth a figure


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
    for metric in [*METRICS, *worth_a_figure(sweep.rows)]:
        figure = comparison(sweep, metric)
        if figure is not None:
            note = of_numbers(sweep.note, figure, sweep.rows, metric)
            yield FILES.get(metric, metric), figure, [*note, *NOTES.get(metric, ())]
    yield from drafts_figures(sweep)
    if is_over_rules(sweep.swept):
        keys = rules_first(sweep.swept)
        figure = plane_figure(sweep)
        if figure is not None:
            small_print = [told(sweep.rows, keys) for told in (without_bias, right_at_first)]
            note = of_numbers(sweep.note, figure, sweep.rows, "bias", "speedup")
            yield "bias", figure, [*note, *filter(None, small_print)]
        figure = lossless_figure(sweep.rows, keys)
        if figure is not None:
            without_bars = [part for part in sweep.note if "95 %" not in part]
            yield "lossless", figure, [*without_bars, without_test(sweep.rows, keys)]


def worth_a_figure(rows: Sequence[Cell]) -> Iterator[str]:
    """The findings that a sweep has: an error of the closed form that shows, a gain over `token` of another rule."""
    if max(abs(number(row.get("closed_form_error")) or 0.0) for row in rows) >= SMALL:
        yield "closed_form_error"
    if any(row.get("gain_over_token_source") for row in rows):
        yield "gain_over_token"


def what_was_swept(
    rows: Sequence[Cell], done: Sequence[Cell], swept: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]
) -> list[str]:
    """What all cells share, N, what the bars are, and how many cells are missing, those skipped apart."""
    shared = {group: fixed.get(f"{group}.name", fixed.get(group)) for group in ("target", "draft", "rule")}
    members = [f"{member} {group}" for group, member in shared.items() if isinstance(member, str)]
    members += [f"γ = {fixed['gamma']}"] if "gamma" in fixed else []
    members += how_drafted(fixed)
    steps = sorted({n for row in done if (n := number(row.get("steps", fixed.get("steps"))))})
    counted = " to ".join(f"{n:,.0f}" for n in dict.fromkeys([*steps[:1], *steps[-1:]]))
    seeds = len(set(map(written, swept.get("seed", [])))) if len(swept) > 1 else 0
    alike = len(done) == seeds * len({tuple(written(row.get(key)) for key in swept if key != "seed") for row in done})
    over_seeds = f"mean of {seeds} seeds (dots), 95 % intervals over seeds{'' if alike else ' where there are several'}"
    bars = over_seeds if seeds > 1 else INTERVALS
    return [", ".join(members), f"N = {counted} steps a cell" if counted else "", bars, *missing(rows)]


def missing(rows: Sequence[Cell]) -> list[str]:
    """How many cells were skipped, and how many failed or were stopped; nothing of what is none."""
    skipped = sum(row.get("status") == "skipped" for row in rows)
    broken = sum(row.get("status") not in ("done", "skipped") for row in rows)
    counts = {"skipped": skipped, "not done": broken}
    return [f"{count} of {len(rows)} cells {status}" for status, count in counts.items() if count]
