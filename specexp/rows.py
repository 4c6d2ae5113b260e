"""What metrics makes, the store writes, figures draw and MLflow logs: the metrics, a row of curves.csv, and the three
ways to know a number."""

from typing import NamedTuple

Metrics = dict[str, float | int | str | None]  # metrics.json: a word only where the name ends in _source

# The ways to know tokens per step, the best first, and the metric that each is.
TOKENS_PER_STEP = {
    "exact": "tokens_per_step_exact",
    "expected": "tokens_per_step_expected",
    "sampled": "tokens_per_step",
}


class CurveRow(NamedTuple):
    """``kind`` is exact, expected, sampled or closed_form; null bounds where there is no noise."""

    curve: str
    x: float
    kind: str
    value: float | None
    low: float | None
    high: float | None
