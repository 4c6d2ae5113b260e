"""Typical acceptance: keep what the target finds not too surprising, whatever the draft's law was."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Floats
from specexp.rules.single import SingleRule, one_hot_argmax
from specexp.values import Range


@dataclass(frozen=True)
class Typical(SingleRule):
    """Keeps x where p(x) > min(epsilon, delta exp(-H(p))), H the entropy of p in nats; after the kept drafts, at least
    one token a step, comes argmax p (Medusa: Cai et al. 2024, section 2.3, where delta is sqrt(epsilon)). Lossy with
    respect to sampling from p; the draft's law plays no part.

    Medusa's ``evaluate_posterior`` has the two defaults swapped against its ``generate``; these are ``generate``'s.
    vLLM samples the token after a whole draft from p instead.
    """

    epsilon: Annotated[float, Range(0, 1)] = 0.09
    delta: Annotated[float, Range(0, 1)] = 0.3

    lossless = False

    def chances(self, p: Floats, q: Floats) -> Floats:
        kept = (p > self.threshold(p)).astype(np.float64)
        return np.broadcast_to(kept, np.broadcast_shapes(p.shape, q.shape))

    def threshold(self, p: Floats) -> Floats:
        """[..., 1]: min(epsilon, delta exp(-H(p)))."""
        entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1, keepdims=True)
        return np.minimum(self.epsilon, self.delta * np.exp(-entropy))

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return one_hot_argmax(p)

    def bonus(self, p: Floats, q: Floats) -> Floats:
        return one_hot_argmax(p)
