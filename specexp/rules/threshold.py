"""Acceptance by thresholds on the target's probability alone."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Floats, Ints
from specexp.rules.match import MatchRule
from specexp.values import Range


@dataclass(frozen=True)
class Threshold(MatchRule):
    """Keeps x where p(x) >= t_single, or else with chance min(1, p(x) / t_acc); a rejected x is replaced by y ~ p
    without x, renormalised (SGLang, ``speculative_accept_threshold_single`` and ``_acc``; its kernel
    ``tree_speculative_sampling_target_only`` zeroes the tokens it rejected, and looks at no draft law). The bonus is
    y ~ p. Lossy; with both at 1, SGLang's defaults, it is ``exact_match`` and lossless."""

    t_single: Annotated[float, Range(0, 1, above=True)] = 0.3
    t_acc: Annotated[float, Range(0, 1, above=True)] = 1.0

    lossless = False

    def chances(self, p: Floats, q: Floats) -> Floats:
        kept = np.where(p >= self.t_single, 1.0, np.minimum(p / self.t_acc, 1.0))
        return np.broadcast_to(kept, np.broadcast_shapes(p.shape, q.shape))

    def answers(self, p: Floats, q: Floats, drafted: Ints) -> Floats:
        return p

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        """y follows each rejected x but itself: p(y) times the sum over x != y of q(x) (1 - chance(x)) / (1 - p(x))."""
        others = 1 - p
        rejected = np.divide(q * (1 - self.chances(p, q)), others, out=np.zeros_like(p + q), where=others > 0)
        return p * np.maximum(rejected.sum(-1, keepdims=True) - rejected, 0.0)
