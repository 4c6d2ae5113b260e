"""What follows from the survival of a draft, P(at least i tokens kept): acceptance by position, and how many tokens a
step emits. One set of formulas for the three ways to know the survival."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specexp.build import Experiment
from specexp.rounds import Floats
from specexp.rows import CurveRow
from specexp.statistics import Estimate, Moments

Of = Callable[..., float]  # a number from the survival at a few positions


@dataclass(frozen=True)
class Survival:
    """The survival S_0 = 1, S_1, .. S_gamma as known one way: ``estimate(at, f)`` is f(S_i for i in ``at``), with its
    interval where there is noise."""

    kind: str
    gamma: int
    estimate: Callable[[Sequence[int], Of], Estimate]


def survivals(experiment: Experiment, moments: Moments) -> list[Survival]:
    """All ways that this run knows, the best first."""
    gamma, world = experiment.gamma, experiment.world
    noisy = [
        Survival("expected", gamma, _from(moments, "survive", "counted")),
        Survival("sampled", gamma, _from(moments, "kept", "steps")),
    ]
    return noisy if world is None else [Survival("exact", gamma, _certain(world.survival_by_position(gamma))), *noisy]


def _from(moments: Moments, column: str, steps: str) -> Callable[[Sequence[int], Of], Estimate]:
    def estimate(at: Sequence[int], of: Of) -> Estimate:
        def function(means: Mapping[str, float]) -> float:
            return of(*(means[f"{column}_{i}"] / means[steps] if i else 1.0 for i in at))

        return moments.select(steps, *(f"{column}_{i}" for i in at if i)).estimate(function)

    return estimate


def _certain(survival: Floats) -> Callable[[Sequence[int], Of], Estimate]:
    def estimate(at: Sequence[int], of: Of) -> Estimate:
        try:
            return Estimate(float(of(*survival[list(at)].tolist())), None, None)
        except ZeroDivisionError:
            return Estimate(None, None, None)

    return estimate


def position_rows(ways: Sequence[Survival]) -> Iterator[CurveRow]:
    """Acceptance of each drafted position: of all steps, and of those that kept every draft before it."""
    for way in ways:
        for i in range(1, way.gamma + 1):
            unconditional = way.estimate([i], lambda kept: kept)
            conditional = way.estimate([i - 1, i], lambda before, kept: kept / before)
            yield CurveRow("by_position/acceptance", i, way.kind, *unconditional)
            yield CurveRow("by_position/acceptance_conditional", i, way.kind, *conditional)


def token_rows(ways: Sequence[Survival]) -> Iterator[CurveRow]:
    """P(a step emits n tokens), n = 1..gamma+1."""
    for way in ways:
        for n in range(1, way.gamma + 1):
            yield CurveRow("by_tokens/probability", n, way.kind, *way.estimate([n - 1, n], lambda at, past: at - past))
        yield CurveRow("by_tokens/probability", way.gamma + 1, way.kind, *way.estimate([way.gamma], lambda at: at))


def closed_form_rows(alpha: float, gamma: int) -> Iterator[CurveRow]:
    """P(n tokens) under the closed form's assumption: alpha^(n-1) (1 - alpha), and alpha^gamma at n = gamma + 1."""
    survival: Floats = np.array([alpha**i for i in range(gamma + 1)])
    return token_rows([Survival("closed_form", gamma, _certain(survival))])
