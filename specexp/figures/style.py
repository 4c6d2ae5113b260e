"""The look that every figure shares, and saving it so that the same numbers give the same bytes.

A figure goes into a paper: one column (3.25 in) or two (6.75 in) wide, no letter under 7 pt, colours that colour-blind
readers tell apart (Okabe and Ito 2008, without the yellow that white paper swallows), a marker for each colour, fonts
that matplotlib ships. Only figures' own objects are made: no pyplot, no state that outlives a call.
"""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specexp.store import files

CANVASES = {"png": FigureCanvasAgg, "pdf": FigureCanvasPdf, "svg": FigureCanvasSVG}
COLUMN, DOUBLE = 3.25, 6.75  # inches: one column of a paper, and two
DPI = 150
NO_BREAK = "\N{NO-BREAK SPACE}"
LETTERS_PER_INCH = 25  # of the 7 pt note: it wraps before it is wider than the figure

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
GREY = "#767676"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("-", "--", "-.", ":")
# how a number is known: the same look in every figure of a run
CLOSED_FORM: dict[str, Any] = {"color": GREY, "linestyle": "--", "marker": "", "zorder": 2}
LOOKS: dict[str, dict[str, Any]] = {
    "sampled": {"color": VERMILLION, "linestyle": "", "marker": "s", "markerfacecolor": "white", "zorder": 3.2},
    "expected": {"color": BLUE, "linestyle": "-", "marker": "o", "zorder": 3.1},
    "exact": {"color": BLACK, "linestyle": "-", "marker": "", "zorder": 3},
    "closed_form": CLOSED_FORM,
}

RC: dict[Any, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],  # the second for letters that the first lacks
    "text.parse_math": False,  # a dollar in a file name is a dollar
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.8,
    "legend.frameon": False,
    "legend.handlelength": 1.7,
    "legend.columnspacing": 1.0,
    "pdf.fonttype": 42,  # TrueType: journals refuse Type 3
    "svg.hashsalt": "specexp",  # else the ids inside an svg are random
}


@contextmanager
def house_style() -> Iterator[None]:
    """The house's settings over matplotlib's own defaults, whatever a person's matplotlibrc says; undone at the end."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def sheet(width: float, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure, inches, and its panels from left to right."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    row = list(figure.subplots(1, panels, squeeze=False)[0])
    for axes in row:
        axes.locator_params(nbins=7)  # a fixed number: else ticks, and with them the room they need, follow the layout
    return figure, row


def write_note(figure: Figure, parts: Sequence[str]) -> None:
    """What was measured, on how many, and what the bars are: the small print under the panels, broken between parts."""
    letters = int(LETTERS_PER_INCH * figure.get_figwidth())
    whole = [part.replace(" ", NO_BREAK) if len(part) < letters else part for part in parts if part]
    text = textwrap.fill("; ".join(whole), letters).replace(NO_BREAK, " ")
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color="#404040")


def entries(axes: Axes) -> tuple[list[Artist], list[str]]:
    """The legend's handles and labels: what was measured first, then the lines it is read against."""
    found = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda entry: isinstance(entry[0], Line2D))
    return [handle for handle, _ in found], [label for _, label in found]


def legend_above(axes: Axes, columns: int) -> None:
    """A legend over the panel's top edge, where no data can be."""
    place: dict[str, Any] = {"bbox_to_anchor": (0, 1.01), "borderaxespad": 0, "borderpad": 0.2}
    axes.legend(*entries(axes), loc="lower left", ncols=columns, **place)


def legend_beside(figure: Figure, axes: Axes, columns: int) -> None:
    """A legend to the right of a figure's only panel, for more lines than fit above it."""
    figure.legend(*entries(axes), loc="outside right upper", ncols=columns)


def metadata(suffix: str, provenance: Mapping[str, str]) -> dict[str, str | None]:
    """The file's own record of where it is from, in the field that its format has, and neither date nor program."""
    told = "; ".join(f"{key}={value}" for key, value in provenance.items())
    if suffix == "pdf":
        return {"Subject": told, "CreationDate": None, "Producer": None, "Creator": None}
    if suffix == "svg":
        return {"Description": told, "Date": None, "Creator": None}
    return {"Description": told, "Software": None}


def lay_out(figure: Figure) -> None:
    """Places everything, once: no format may depend on which were written before it."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")


def save(figure: Figure, stem: Path, formats: Sequence[str], provenance: Mapping[str, str]) -> list[Path]:
    """The figure as ``stem`` with each suffix in ``formats`` (png, pdf, svg); each file appears whole or not at all.

    UserError where one cannot be written.
    """
    lay_out(figure)
    stem.parent.mkdir(parents=True, exist_ok=True)
    return [_save_one(figure, stem, suffix, provenance) for suffix in formats]


def _save_one(figure: Figure, stem: Path, suffix: str, provenance: Mapping[str, str]) -> Path:
    content = io.BytesIO()
    canvas = CANVASES[suffix](figure)  # Figure.savefig would draw everything twice
    getattr(canvas, f"print_{suffix}")(content, metadata=metadata(suffix, provenance))
    return files.write_bytes(stem.parent / f"{stem.name}.{suffix}", content.getvalue())
