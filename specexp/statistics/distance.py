"""Total variation between two token streams, and what it would be if both followed one law.

A distance means nothing without its noise floor. The textbook floor takes tokens as independent; tokens of one step
(of one request) share a context, so their counts are over-dispersed. The floor here takes the spread of the counts
over independent units as it is: p_hat(x) = sum_u c_u(x) / sum_u L_u is a ratio, linearised.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from specexp.rounds import Floats, Ints

ROUNDING = 1e-12  # a distance between two exact laws of no more than this is none


def count_tokens(tokens: Ints, vocab: int) -> Ints:
    """[U, V]: how often each unit emitted each token; ``tokens`` [U, n] is -1 where nothing was emitted."""
    units = len(tokens)
    flat = (np.arange(units)[:, None] * vocab + tokens)[tokens >= 0]
    return np.bincount(flat, minlength=units * vocab).reshape(units, vocab)


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """Token counts with what their clustered variance needs; ``+`` joins two sets of independent units.

    c_u(x) is how often unit u emitted x, L_u its number of tokens. All are whole numbers: sums have no order.
    """

    counts: Ints  # [V], sum of c_u(x)
    squares: Ints  # [V], sum of c_u(x)^2
    products: Ints  # [V], sum of c_u(x) L_u
    square_lengths: int  # sum of L_u^2
    units: int  # units that emitted anything

    @classmethod
    def of(cls, counts: Ints) -> "TokenCounts":
        """From ``counts`` [U, V] by unit (``count_tokens``; summed by the caller where a unit spans many blocks)."""
        lengths = counts.sum(axis=1)
        squares = np.einsum("uv,uv->v", counts, counts)
        return cls(counts.sum(axis=0), squares, lengths @ counts, int(lengths @ lengths), int((lengths > 0).sum()))

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(
            self.counts + other.counts,
            self.squares + other.squares,
            self.products + other.products,
            self.square_lengths + other.square_lengths,
            self.units + other.units,
        )

    @property
    def total(self) -> int:
        """N, tokens emitted."""
        return int(self.counts.sum())

    def frequencies(self) -> Floats:
        """[V]: counts / N, which must not be 0."""
        return self.counts / self.total

    def variances(self) -> Floats:
        """[V]: variance of each frequency, sum_u (c_u(x) - L_u p_hat(x))^2 / N^2, times U / (U - 1); needs U >= 2."""
        p = self.frequencies()
        scatter = self.squares - 2 * p * self.products + p**2 * self.square_lengths
        return np.maximum(scatter, 0) / self.total**2 * (self.units / (self.units - 1))


def tv_distance(a: TokenCounts, b: TokenCounts) -> float | None:
    """1/2 sum_x |p_a(x) - p_b(x)| of the two streams' frequencies; None where one is empty."""
    if not (a.total and b.total):
        return None
    return float(np.abs(a.frequencies() - b.frequencies()).sum() / 2)


def tv_noise_floor(*streams: TokenCounts) -> float | None:
    """Expected TV distance between two independent streams of one law (of one stream: from the law itself).

    Each frequency difference is taken as normal, E|x| = sigma sqrt(2/pi). None where a stream has fewer than two
    units. It is some 20 % low where most tokens were seen once or never.
    """
    if any(stream.units < 2 for stream in streams):
        return None
    variance = np.sum([stream.variances() for stream in streams], axis=0)
    return float(np.sqrt(variance).sum() * sqrt(2 / pi) / 2)
