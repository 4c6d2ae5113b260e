"""What a step costs, in the time of one plain step of the target.

A cost model answers one question: how long does a step take that drafts so many tokens and verifies so many positions
in one pass of the target? Without a draft nothing is drafted and it is a plain step.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

from specexp.rounds import Work
from specexp.values import Range


class Cost(Protocol):
    def step(self, work: Work) -> float:
        """Time of the step over the time of a plain target step (so ``step(Work(0, 0, 1))`` is 1)."""
        ...


@dataclass(frozen=True)
class Milliseconds:
    """``target_ms`` a pass of the target and ``draft_ms`` a drafted token: the notebook's toy model. For several
    drafts: ``batch``, a level's tokens are one pass of the drafter and cost ``draft_ms`` together; ``verify_ms``, what
    each position that a pass verifies adds to it, beyond the one of a plain step."""

    target_ms: Annotated[float, Range(0, above=True)] = 10.0
    draft_ms: Annotated[float, Range(0)] = 1.0
    batch: bool = False
    verify_ms: Annotated[float, Range(0)] = 0.0

    def step(self, work: Work) -> float:
        passes = work.levels if self.batch else work.drafted
        return (self.target_ms + passes * self.draft_ms + (work.verified - 1) * self.verify_ms) / self.target_ms


@dataclass(frozen=True)
class Ratio:
    """c = time of a drafted token over time of a target pass: a step costs gamma c + 1 (Leviathan et al. 2022,
    theorem 3.8). ``operations``: the same ratio of arithmetic operations, for what speculation costs in work. ``batch``
    and ``verify`` (over the time of a pass) as ``batch`` and ``verify_ms`` of ``milliseconds``."""

    ratio: Annotated[float, Range(0)] = 0.1
    operations: Annotated[float, Range(0)] = 0.1
    batch: bool = False
    verify: Annotated[float, Range(0)] = 0.0

    def step(self, work: Work) -> float:
        passes = work.levels if self.batch else work.drafted
        return 1 + passes * self.ratio + (work.verified - 1) * self.verify

    def operations_of_step(self, work: Work) -> float:
        """Arithmetic operations of a step over those of one target token (Leviathan et al. 2022, theorem 3.11)."""
        return work.drafted * self.operations + work.verified


@runtime_checkable
class CountsOperations(Protocol):
    """A cost model that knows the work of a step beside its time."""

    def operations_of_step(self, work: Work) -> float: ...


COSTS = {"milliseconds": Milliseconds, "ratio": Ratio}


def speedup(tokens_per_step: float, cost: Cost, work: Work) -> float:
    """Tokens per unit of time over those of plain decoding; 1 where nothing is drafted and the target decodes alone."""
    return tokens_per_step / cost.step(work)
