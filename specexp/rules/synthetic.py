"""Acceptance by decree: for load tests and what-if questions, where no model is asked."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from specexp.errors import UserError
from specexp.rounds import Floats, Ints, Round, select
from specexp.values import Range


@dataclass(frozen=True)
class Synthetic:
    """The first i drafts are kept with the chance ``rates[i-1]``: UNCONDITIONAL rates by position, so they do not
    increase; positions past the list are never kept (vLLM, synthetic acceptance). Without ``rates``, ``length`` is the
    mean number of tokens a step, the token after the drafts included: L = 3.24 is [1, 1, .24, 0, ..], as in vLLM.

    What comes out is the draft's own tokens, then one of p: lossy, and of no use but for its lengths. With a draft too
    short for ``length`` each step keeps it whole.
    """

    length: Annotated[float, Range(1)] = 3.0
    rates: tuple[Any, ...] | None = None

    lossless: ClassVar[bool] = False
    prefix_stable: ClassVar[bool] = True
    max_paths: ClassVar[int] = 1

    def __post_init__(self) -> None:
        rates = () if self.rates is None else self.rates
        shown = f"rule.rates={list(rates)}"
        if not all(isinstance(rate, int | float) and not isinstance(rate, bool) and 0 <= rate <= 1 for rate in rates):
            raise UserError(f"{shown}: must be a list of chances, each from 0 to 1")
        if list(rates) != sorted(rates, reverse=True):
            raise UserError(f"{shown}: increases; must be P(the first i drafts are kept), i = 1, 2, ..")

    def survival(self, drafted: int) -> Floats:
        """[G+1]: P(at least i drafts are kept), i = 0..G."""
        after = np.arange(drafted)
        if self.rates is None:
            kept = np.clip(self.length - 1 - after, 0.0, 1.0)
        else:
            kept = np.append(np.array(self.rates, dtype=np.float64), np.zeros(drafted))[:drafted]
        return np.append(1.0, kept)

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: the survival, whatever was drafted."""
        return np.broadcast_to(self.survival(round.drafted), (len(round.lengths), round.drafted + 1))

    def stop_probs(self, round: Round) -> Floats:
        """[B, 1, G+1]: differences of the survival, cut at the drafted length."""
        kept = np.arange(round.drafted + 1)
        survive = np.where(kept <= round.lengths[:, None], self.at_least(round), 0.0)
        return -np.diff(survive, append=0.0)[:, None]

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: p."""
        return select(round.target_probs, path, stop)

    def first_law(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: the first draft, whichever it is, as often as it is kept, else a token of p."""
        kept = self.survival(1)[1]
        return kept * q + (1 - kept) * p

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: p."""
        return round.target_probs
