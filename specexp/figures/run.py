"""The figures of one run: the notebook's two panels, acceptance by position, tokens per step, the curve over gamma."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specexp.closed_form import closed_form
from specexp.figures.exactness import of_exact
from specexp.figures.finished import KINDS, Run, by_name_and_kind, what_was_run
from specexp.figures.points import (
    count_along,
    draw_best,
    draw_plain_decoding,
    draw_points,
    draw_reference,
    interval,
    number,
    points,
    whiskers,
    words,
)
from specexp.figures.style import (
    BLACK,
    BLUE,
    CLOSED_FORM,
    COLUMN,
    DOUBLE,
    GREEN,
    LOOKS,
    SKY,
    VERMILLION,
    house_style,
    legend_above,
    save,
    sheet,
    write_note,
)

if TYPE_CHECKING:
    from specexp.rows import CurveRow


def draw_run(
    metrics: Mapping[str, float | int | str | None],
    curves: Iterable["CurveRow"],
    config: Mapping[str, Any],
    folder: Path,
    formats: Sequence[str],
    provenance: Mapping[str, str],
) -> list[Path]:
    """Draws a run's figures into ``folder``, one file for each of ``formats`` (png, pdf, svg), and returns their paths.

    ``metrics``, ``curves`` and ``config`` are the contents of metrics.json, curves.csv and config.yaml; a number that
    is null is left out, and so is a figure that has none. ``provenance`` goes into each file's metadata.
    """
    if not formats:
        return []
    run = Run(metrics, by_name_and_kind(curves), config)
    written: list[Path] = []
    with house_style():
        for name, draw in FIGURES.items():
            figure = draw(run)
            if figure is not None:
                write_note(figure, of_exact(what_was_run(run), figure, run.is_exact(CURVES.get(name, ""))))
                written += save(figure, folder / name, formats, provenance)
    return written


def notebook(run: Run) -> Figure | None:
    """The notebook's two panels: the accept curves with the run's own point, and throughput without and with drafts."""
    found, (speedup, low, high) = run.tokens_per_step(), interval(run.metrics, "speedup")
    if found is None or speedup is None:
        return None
    figure, (left, right) = sheet(DOUBLE, 2.6, panels=2)
    accept_panel(left, run, found[1])
    unit, alone = run.throughput()
    throughput_panel(right, run.gamma, alone, (speedup, low, high), unit)
    return figure


def accept_panel(axes: Axes, run: Run, found: tuple[float, float | None, float | None]) -> None:
    """Tokens a step against gamma: the closed form for a few alphas, and one run's number with its interval."""
    gamma, alpha = run.gamma, run.alpha
    own = points([(gamma, *found)])
    assert own is not None
    named = "" if alpha is None else f" (α = {alpha:.3g})"
    look = {"color": VERMILLION, "marker": "D", "markersize": 4.5, "linestyle": "", "zorder": 4}
    draw_points(axes, own, f"this run{named}: {words(*found)}", **look)
    draw_reference(axes, range(min(1, gamma), max(8, gamma) + 1), run.one_draft)
    axes.set(xlabel="draft length γ (tokens)", ylabel="tokens per step")
    count_along(axes, min(1, gamma), max(8, gamma))
    legend_above(axes, 1)


def throughput_panel(
    axes: Axes, gamma: int, alone: float, speedup: tuple[float, float | None, float | None], unit: str
) -> None:
    """Two bars: the target ``alone``, and the same times the speedup with its interval."""
    bars = points([(0, alone, None, None), (1, *(None if s is None else alone * s for s in speedup))])
    assert bars is not None
    axes.bar(bars.x, bars.value, 0.55, yerr=bars.reach, color=["#b0b0b0", SKY], **whiskers(bars))
    for x, value, top in zip(bars.x, bars.value, np.fmax(bars.value, bars.high), strict=True):
        shown = f"{value:.4g}" if alone != 1.0 else f"{value:.2f}"
        axes.annotate(shown, (x, top), (0, 3), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_xticks([0, 1], ["target only", f"speculative, γ = {gamma}"])
    axes.set(ylabel=unit, xlim=(-0.6, 1.6), ylim=(0, 1.15 * float(np.nanmax(np.fmax(bars.value, bars.high)))))
    axes.set_title(f"speedup (×): {words(*speedup)}", loc="left", fontsize=7.5)
    axes.grid(visible=False, axis="x")


def positions(run: Run) -> Figure | None:
    """Acceptance by position: kept at all, and kept given that all before it were."""
    kept = run.curves.get("by_position/acceptance", {})
    given = run.curves.get("by_position/acceptance_conditional", {})
    if not kept and not given:
        return None
    kind = next(kind for kind in KINDS if kind in {**kept, **given})
    figure, (axes,) = sheet(COLUMN, 2.6)
    for curves, label, color, marker in ((given, "given all before", BLUE, "o"), (kept, "kept", VERMILLION, "s")):
        if kind in curves:
            draw_points(axes, curves[kind], label, color=color, marker=marker, zorder=3)
    if run.positions_alike is not None:
        independent_positions(axes, run.positions_alike, run.gamma)
    axes.set(xlabel="position in the draft (tokens)", ylabel=f"probability of acceptance ({kind})", ylim=(0, 1.02))
    count_along(axes, 1, run.gamma)
    legend_above(axes, 2)
    return figure


def independent_positions(axes: Axes, alpha: float, gamma: int) -> None:
    """What acceptance would be if positions were independent: alpha at each, so alpha^i up to the i-th."""
    drafted = np.arange(1, gamma + 1)
    axes.plot(drafted, np.full(gamma, alpha), **CLOSED_FORM, label=f"closed form, α = {alpha:.3g}")
    axes.plot(drafted, alpha**drafted, **CLOSED_FORM)


def distribution(run: Run) -> Figure | None:
    """How often a step emits 1 .. gamma+1 tokens: counted, by law, and by the closed form."""
    kinds = run.curves.get("by_tokens/probability", {})
    if not kinds:
        return None
    figure, (axes,) = sheet(COLUMN, 2.6)
    if "sampled" in kinds:
        counted = kinds["sampled"]
        axes.bar(counted.x, counted.value, 0.7, yerr=counted.reach, color=SKY, label="sampled", **whiskers(counted))
    for kind, color, marker in (("expected", BLUE, "o"), ("exact", BLACK, "D"), ("closed_form", GREEN, "^")):
        if kind in kinds:
            look = {"color": color, "marker": marker, "markerfacecolor": "white", "linestyle": "", "zorder": 3}
            draw_points(axes, kinds[kind], kind.replace("_", " "), **look)
    axes.set(xlabel="tokens emitted by a step", ylabel="share of steps", ylim=(0, None))
    count_along(axes, 1, run.gamma + 1)
    axes.grid(visible=False, axis="x")
    legend_above(axes, 3)
    return figure


def gamma_curve(run: Run) -> Figure | None:
    """Tokens a step and speedup against the draft length, with the length to deploy marked."""
    tokens, speedups = (run.curves.get(f"by_gamma/{name}", {}) for name in ("tokens_per_step", "speedup"))
    if not tokens and not speedups:
        return None
    figure, (left, right) = sheet(DOUBLE, 2.6, panels=2)
    longest = int(max(curve.x[-1] for curve in (*tokens.values(), *speedups.values())))
    for axes, kinds, told in ((left, tokens, {}), (right, speedups, tokens)):
        for kind, curve in kinds.items():
            draw_points(axes, curve, "" if kind in told else kind.replace("_", " "), **LOOKS[kind])
        axes.set(xlabel="draft length γ (tokens)")
        count_along(axes, 0, longest)
    left.set(ylabel="tokens per step")
    right.set(ylabel="speedup (×)")
    if "closed_form" not in tokens and run.positions_alike is not None:
        independent = [closed_form(run.positions_alike, gamma) for gamma in range(longest + 1)]
        left.plot(independent, **CLOSED_FORM, label=f"closed form, α = {run.positions_alike:.3g}")
    draw_plain_decoding(right)
    mark_best(right, run, longest)
    for axes in (left, right):
        legend_above(axes, 3)
    return figure


def mark_best(axes: Axes, run: Run, gamma_max: int) -> None:
    """The star on gamma_best; its label says so where the best is no draft at all, or may lie beyond the curve."""
    gamma, speedup = number(run.metrics.get("gamma_best")), number(run.metrics.get("speedup_best"))
    if gamma is None or speedup is None:
        return
    advice = "\n(raise gamma_max)" if gamma == gamma_max else "\n(do not speculate)" if gamma == 0 else ""
    draw_best(axes, gamma, speedup, f"best: γ = {gamma:.0f}, {speedup:.2f} ×{advice}")


CURVES = {"positions": "by_position", "tokens_per_step": "by_tokens", "gamma_curve": "by_gamma"}  # of curves.csv
FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "notebook": notebook,
    "positions": positions,
    "tokens_per_step": distribution,
    "gamma_curve": gamma_curve,
}
