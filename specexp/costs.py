"""What a step costs, in the time of one plain step of the target.

A cost model answers one question: how long does a step take that drafts ``drafted`` tokens one after the other and
verifies ``verified`` positions in one pass of the target? Without a draft nothing is drafted and it is a plain step.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

from specexp.values import Range


class Cost(Protocol):
    def step(self, drafted: int, verified: int) -> float:
        """Time of the step over the time of a plain target step (so ``step(0, 1)`` is 1)."""
        ...


@dataclass(frozen=True)
class Milliseconds:
    """``target_ms`` a pass of the target, however many tokens it verifies, ``draft_ms`` a drafted token: the
    notebook's toy model."""

    target_ms: Annotated[float, Range(0, above=True)] = 10.0
    draft_ms: Annotated[float, Range(0)] = 1.0

    def step(self, drafted: int, verified: int) -> float:
        return (self.target_ms + drafted * self.draft_ms) / self.target_ms


@dataclass(frozen=True)
class Ratio:
    """c = time of a drafted token over time of a target pass: a step costs gamma c + 1 (Leviathan et al. 2022,
    theorem 3.8). ``operations``: the same ratio of arithmetic operations, for what speculation costs in work."""

    ratio: Annotated[float, Range(0)] = 0.1
    operations: Annotated[float, Range(0)] = 0.1

    def step(self, drafted: int, verified: int) -> float:
        return 1 + drafted * self.ratio

    def operations_of_step(self, drafted: int, verified: int) -> float:
        """Arithmetic operations of a step over those of one target token (Leviathan et al. 2022, theorem 3.11)."""
        return drafted * self.operations + verified


@runtime_checkable
class CountsOperations(Protocol):
    """A cost model that knows the work of a step beside its time."""

    def operations_of_step(self, drafted: int, verified: int) -> float: ...


COSTS = {"milliseconds": Milliseconds, "ratio": Ratio}


def speedup(tokens_per_step: float, cost: Cost, gamma: int, paths: int = 1) -> float:
    """Tokens per unit of time over those of plain decoding; 1 at gamma = 0, where the target decodes alone."""
    return tokens_per_step / cost.step(gamma * paths, gamma * paths + 1)
