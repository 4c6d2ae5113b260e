"""A finished run's tables as its figures read them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from specexp.figures.caption import dotted, how_drafted
from specexp.figures.exactness import INTERVALS
from specexp.figures.points import Points, interval, is_of_one_draft, number, points
from specexp.rows import TOKENS_PER_STEP

if TYPE_CHECKING:
    from specexp.rows import CurveRow

KINDS = tuple(reversed(TOKENS_PER_STEP))  # the three ways to know a number, as a person would meet them


class Run(NamedTuple):
    """A finished run's three tables; ``curves[name][kind]`` are the points of curves.csv."""

    metrics: Mapping[str, float | int | str | None]
    curves: Mapping[str, Mapping[str, Points]]
    config: Mapping[str, Any]

    @property
    def gamma(self) -> int:
        return int(self.config["gamma"])

    @property
    def alpha(self) -> float | None:
        return number(self.metrics.get("alpha"))

    @property
    def positions_alike(self) -> float | None:
        """Alpha where the closed form speaks of this run (token rule, one path, fixed gamma), else None."""
        return None if self.metrics.get("tokens_per_step_closed_form") is None else self.alpha

    @property
    def one_draft(self) -> bool:
        """Whether a step drafts one path."""
        return is_of_one_draft(self.metrics, self.gamma)

    def tokens_per_step(self) -> tuple[str, tuple[float, float | None, float | None]] | None:
        """How it is known, and the number with its interval: counted where steps were counted, else the next way."""
        for kind in KINDS:
            value, low, high = interval(self.metrics, TOKENS_PER_STEP[kind])
            if value is not None:
                return kind, (value, low, high)
        return None

    def is_exact(self, curves: str) -> bool:
        """Whether the curves of that name's beginning, ``by_gamma``, are exact, the closed form beside them apart."""
        kinds = {kind for name, found in self.curves.items() if name.startswith(f"{curves}/") for kind in found}
        return "exact" in kinds and kinds <= {"exact", "closed_form"}

    def throughput(self) -> tuple[str, float]:
        """The unit of the throughput bars, and how much of it the target alone does."""
        cost = self.config.get("cost") or {}
        if cost.get("name") == "milliseconds" and cost.get("target_ms"):
            return "tokens per second", 1000.0 / float(cost["target_ms"])
        return "speed relative to plain decoding", 1.0


def by_name_and_kind(curves: Iterable["CurveRow"]) -> dict[str, dict[str, Points]]:
    """The rows of curves.csv as points, by the curve's name and by how they are known."""
    rows: dict[str, dict[str, list[Sequence[float | None]]]] = defaultdict(lambda: defaultdict(list))
    for curve, x, kind, value, low, high in curves:
        rows[curve][kind].append((x, value, low, high))
    drawn = {curve: {kind: points(found) for kind, found in kinds.items()} for curve, kinds in rows.items()}
    return {curve: {kind: p for kind, p in kinds.items() if p is not None} for curve, kinds in drawn.items()}


def what_was_run(run: Run) -> list[str]:
    """The members, how they draft, N and what the bars are."""
    members = [f"{run.config[group]['name']} {group}" for group in ("target", "draft", "rule") if group in run.config]
    steps = number(run.metrics.get("steps")) or number(run.config.get("steps"))
    requests = number(run.metrics.get("requests")) or 1
    streams = f" in {requests:,.0f} requests" if requests > 1 else ""
    counted = f"N = {steps:,.0f} steps{streams}" if steps else ""
    return [", ".join([*members, f"γ = {run.gamma}", *how_drafted(dotted(run.config))]), counted, INTERVALS]
