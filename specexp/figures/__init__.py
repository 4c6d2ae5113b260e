"""Figures as functions of tables: numbers in, Axes out, the same bytes on every run.

Nothing here measures: every number drawn stands in metrics.json, curves.csv or sweep.csv, so a figure can be drawn
again from a folder alone. Importing this package imports matplotlib; callers do so only when a figure is wanted.
"""

from specexp.figures.run import draw_run
from specexp.figures.sweep import draw_sweep

__all__ = ["draw_run", "draw_sweep"]
