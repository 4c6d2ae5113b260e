"""The x axis of a sweep: its name, and ticks exactly at the swept values."""

import numpy as np
from matplotlib.axes import Axes

from specexp.figures.series import short, written
from specexp.figures.style import DPI
from specexp.rounds import Floats

INCHES_PER_DIGIT = 0.055
AXIS_LABELS = {
    "gamma": "draft length γ (tokens)",
    "gamma_max": "longest draft length γ_max (tokens)",
    "draft.sigma": "noise of the draft's logits σ",
    "draft.paths": "drafts side by side K",
    "drafted_per_step": "drafted tokens a step",
    "draft.alpha": "acceptance α of the draft",
    "steps": "steps",
    "target.vocab": "vocabulary V (tokens)",
    "cost.target_ms": "target's time for a call (ms)",
    "cost.draft_ms": "draft's time for a token (ms)",
    "cost.ratio": "draft's time over target's time",
}


def label_axis(axes: Axes, axis: str, values: Floats) -> None:
    """Ticks exactly at the swept values, on a logarithmic axis where they span much; crowded ones go unnamed."""
    if values[0] > 0 and values[-1] >= 32 * values[0]:
        axes.set_xscale("log")
    axes.set_xlabel(AXIS_LABELS.get(axis, axis))
    axes.set_xticks(values, named_where_room(axes, values))
    axes.set_xticks([], minor=True)


def named_where_room(axes: Axes, values: Floats) -> list[str]:
    """The values' names, empty where a name would touch the one before it."""
    axes.get_xlim()  # places are of limits that fit the data only once somebody asks for them
    places = axes.transData.transform(np.column_stack([values, np.ones_like(values)]))[:, 0] / DPI  # inches
    names, free = [], -np.inf
    for place, value in zip(places, values, strict=True):
        name = short(written(value))
        half = 0.5 * INCHES_PER_DIGIT * len(name)
        fits = place - half > free
        names.append(name if fits else "")
        free = place + half + INCHES_PER_DIGIT / 2 if fits else free
    return names
