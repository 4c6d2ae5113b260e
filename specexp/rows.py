"""A row of curves.csv: metrics makes it, the store writes it, figures draw it, MLflow logs it."""

from typing import NamedTuple


class CurveRow(NamedTuple):
    """``kind`` is exact, expected, sampled or closed_form; null bounds where there is no noise."""

    curve: str
    x: float
    kind: str
    value: float | None
    low: float | None
    high: float | None
