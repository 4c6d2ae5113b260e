"""Drafter-invariant verification: draft and target choose their tokens with the same Gumbel noise."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from specexp.rounds import Floats, Ints, Round
from specexp.rules.match import ExactMatch, MatchRule


@dataclass(frozen=True)
class Gumbel(MatchRule):
    """With Gumbel numbers g, one a token, the draft is x = argmax(log q + g), the target's token y = argmax(log p + g),
    and the draft is kept where they are equal (Daliri et al. 2024, Algorithm 2). Lossless. With the noise given
    (``Round.noise``), the emitted stream is the same for ANY drafter.

    Here the noise is integrated out, given the draft. With r_j = q_j/p_j and F(r) = sum_j max(q_j, r p_j),
    P(y = x | x) = 1 / F(r_x) and P(y | x) = p_y int_{r_y}^{r_x} dr / F(r)^2 for the tokens with r_y < r_x, else 0.
    (Two independent exponential clocks E_j / q_j, E_j / p_j of the same E_j; r is the ratio of their first rings.)
    So P(agree) = sum_i 1 / sum_j max(p_j/p_i, q_j/q_i), between (1 - TV)/(1 + TV) and 1 - TV.
    """

    lossless = True

    def chances(self, p: Floats, q: Floats) -> Floats:
        p, q = np.broadcast_arrays(p, q)
        return np.minimum(1 / race(p, q).first, 1.0)

    def answers(self, p: Floats, q: Floats, drafted: Ints) -> Floats:
        found = race(p, q)
        mine = np.take_along_axis(found.integral, drafted[:, None], -1)
        return p * np.maximum(mine - found.integral, 0.0)

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        return np.maximum(p - self.kept_mass(p, q), 0.0)

    def first_law(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: y comes first, whether or not it is the draft."""
        return p

    def stop_probs(self, round: Round) -> Floats:
        return super().stop_probs(round) if round.noise is None else ExactMatch().stop_probs(_settled(round))

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        if round.noise is None:
            return super().next_probs(round, path, stop)
        return ExactMatch().next_probs(_settled(round), path, stop)


class Race(NamedTuple):
    """``first`` F(r_j) and ``integral`` int_0^{r_j} dr / F(r)^2 of each token j, [..., V] each."""

    first: Floats
    integral: Floats


def race(p: Floats, q: Floats) -> Race:
    """F is linear between two neighbouring ratios a < b, where the integral is (b - a) / (F(a) F(b))."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(q > 0, q / p, 0.0)  # inf where p = 0
    order = np.argsort(ratios, axis=-1, kind="stable")
    r, p_sorted, q_sorted = (np.take_along_axis(values, order, -1) for values in (ratios, p, q))
    before = np.cumsum(p_sorted, axis=-1)  # p of the tokens up to here, q of those from here on
    after = np.cumsum(q_sorted[..., ::-1], axis=-1)[..., ::-1] - q_sorted
    with np.errstate(invalid="ignore"):
        first = after + np.where(r > 0, r * before, 0.0) + np.where(np.isinf(r), np.inf, 0.0)
    lower = np.concatenate([np.zeros_like(r[..., :1]), r[..., :-1]], axis=-1)
    start = np.concatenate([np.ones_like(r[..., :1]), first[..., :-1]], axis=-1)
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(r), 1.0, (r - lower) / first)  # at infinity F(r) / r is 1
        pieces = np.where(np.isinf(lower), 0.0, share / start)
    back = np.argsort(order, axis=-1, kind="stable")
    return Race(*(np.take_along_axis(values, back, -1) for values in (first, np.cumsum(pieces, axis=-1))))


def _settled(round: Round) -> Round:
    """The same round with the target's choice made: all its mass on argmax(log p + g)."""
    assert round.noise is not None
    with np.errstate(divide="ignore"):
        scores = np.log(round.target_probs) + round.noise[:, None]
    chosen = np.arange(round.vocab) == scores.argmax(-1)[..., None]
    return replace(round, target_probs=chosen.astype(np.float64), noise=None)
