"""Speculative cascades: the token rule, against a mixture of the two models in place of the target."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Booleans, Floats, Round
from specexp.rules.single import SingleRule, Token
from specexp.sampling import compact
from specexp.values import OneOf, Range


@dataclass(frozen=True)
class Cascade(SingleRule):
    """The token rule against a mixture pi of p and q (Narasimhan et al. 2024, "Faster Cascades via Speculative
    Decoding"). Lossless with respect to pi, its ``reference``; lossy with respect to p, the more so the larger the
    tolerance a.

    ``variant``: pi = q, the draft is good enough (else pi = p), where
    chow: max q >= 1 - a; diff: max q >= max p - a; opt: max q >= max p - a TV(p, q).
    Or token by token, pi = q 1_A + (1 - q(A)) p, with A the tokens v where
    token1: q(v) >= max p - a; token2: p(v) >= max p - a; token3: p(v) >= (1 - a) max p.

    The token after a whole draft follows pi too, for the law of a token must not depend on where a step ended; that
    takes q after the last draft, which an engine has once the drafter has read that draft.
    """

    variant: Annotated[str, OneOf(("chow", "diff", "opt", "token1", "token2", "token3"))] = "opt"
    tolerance: Annotated[float, Range(0, 1)] = 0.2

    lossless = True

    def mixture(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: pi."""
        if self.variant in DEFERRALS:
            return np.where(DEFERRALS[self.variant](p, q, self.tolerance), q, p)
        within = np.where(TOKENS[self.variant](p, q, self.tolerance), q, 0.0)
        return within + (1 - within.sum(-1, keepdims=True)) * p

    def chances(self, p: Floats, q: Floats) -> Floats:
        return Token().chances(self.mixture(p, q), q)

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return Token().replacement(self.mixture(p, q), q)

    def kept_mass(self, p: Floats, q: Floats) -> Floats:
        return Token().kept_mass(self.mixture(p, q), q)

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        return Token().replaced_mass(self.mixture(p, q), q)

    def bonus(self, p: Floats, q: Floats) -> Floats:
        return self.mixture(p, q)

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: pi."""
        law = self.mixture(compact(round.target_probs), compact(round.draft_probs))
        return np.broadcast_to(law, round.target_probs.shape)


Test = Callable[
    [Floats, Floats, float], Booleans
]  # (p, q, tolerance) -> whether q is good enough, [..., 1] or [..., V]


def _best(law: Floats) -> Floats:
    return law.max(-1, keepdims=True)


def _distance(p: Floats, q: Floats) -> Floats:
    return np.maximum(p - q, 0.0).sum(-1, keepdims=True)


DEFERRALS: dict[str, Test] = {
    "chow": lambda p, q, a: _best(q) >= 1 - a,
    "diff": lambda p, q, a: _best(q) >= _best(p) - a,
    "opt": lambda p, q, a: _best(q) >= _best(p) - a * _distance(p, q),
}
TOKENS: dict[str, Test] = {
    "token1": lambda p, q, a: q >= _best(p) - a,
    "token2": lambda p, q, a: p >= _best(p) - a,
    "token3": lambda p, q, a: p >= (1 - a) * _best(p),
}
