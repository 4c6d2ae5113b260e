"""Intervals of means and of what follows from means, with nothing kept but sums.

A run is a sum over independent units (steps where contexts are fresh, requests where they persist). Each unit gives
a vector: tokens emitted, drafts tested, accepted, alpha. Every number we report is a smooth function of the mean
vector, so its interval follows from the mean and the scatter alone (delta method): a ratio with a random
denominator, the closed form at the measured alpha, the difference of two paired runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from specexp.rounds import Floats

CONFIDENCE = 0.95
STEP = float(np.cbrt(np.finfo(np.float64).eps))  # of central differences, relative to the variable's size
ROUNDING = 1e-13  # a variance below this part of its terms is what cancellation leaves of zero

Function = Callable[[Mapping[str, float]], float]


class Estimate(NamedTuple):
    """A number and its 95 % interval; None for what is not to be had."""

    value: float | None
    low: float | None
    high: float | None


NONE = Estimate(None, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean vector and scatter of independent units; ``+`` merges two sets of units over the same names."""

    names: tuple[str, ...]
    count: int
    means: Floats  # [d]
    scatter: Floats  # [d, d], sum over units of (x - mean)(x - mean)^T

    @classmethod
    def of(cls, names: Iterable[str], units: ArrayLike) -> "Moments":
        """The moments of ``units`` [N, d], a row a unit, a column a name; N may be 0 (then nothing is changed by +)."""
        names, rows = tuple(names), np.asarray(units, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(names):
            raise ValueError(f"units of shape {rows.shape} for {len(names)} names; need [units, {len(names)}]")
        if not len(rows):
            return cls(names, 0, np.zeros(len(names)), np.zeros((len(names), len(names))))
        shifted = rows - rows[0]  # a constant column scatters by exactly zero
        centred = shifted - shifted.mean(axis=0)
        return cls(names, len(rows), rows[0] + shifted.mean(axis=0), centred.T @ centred)

    def __add__(self, other: "Moments") -> "Moments":
        """Chan, Golub and LeVeque 1983: the pairwise update, without the cancellation of raw sums of squares."""
        if self.names != other.names:
            raise ValueError(f"moments of {self.names} do not add to moments of {other.names}")
        if not (self.count and other.count):
            return self if self.count else other
        count, step = self.count + other.count, other.means - self.means
        between = np.outer(step, step) * (self.count * other.count / count)
        means = self.means + step * (other.count / count)
        return Moments(self.names, count, means, self.scatter + other.scatter + between)

    def select(self, *names: str) -> "Moments":
        """The same units, with the columns of ``names`` only."""
        chosen = [self.names.index(name) for name in names]
        return Moments(names, self.count, self.means[chosen], self.scatter[np.ix_(chosen, chosen)])

    def sums(self, **groups: Sequence[str]) -> "Moments":
        """The same units, with a column for each group: the sum of its names' columns."""
        matrix = np.array([[float(name in group) for name in self.names] for group in groups.values()])
        return Moments(tuple(groups), self.count, matrix @ self.means, matrix @ self.scatter @ matrix.T)

    def estimate(self, function: Function) -> Estimate:
        """``function`` of the means by name, with Student's 95 % interval (count - 1 degrees of freedom).

        ``function`` is smooth and returns a number: ``lambda m: m["accepted"] / m["tested"]``. The value is None
        where the function is not defined at the means (0/0); the bounds are None where there are fewer than two
        units or no derivative; the interval has no width where the units do not differ.
        """
        value = self._value(function, self.means)
        gradient = self._gradient(function) if value is not None and self.count > 1 else None
        if value is None or gradient is None:
            return Estimate(value, None, None)
        half_width = _student(self.count - 1) * sqrt(self._variance(gradient))
        return Estimate(value, value - half_width, value + half_width)

    def mean(self, name: str) -> Estimate:
        """The mean of one name over units."""
        return self.select(name).estimate(lambda means: means[name])

    def ratio(self, numerator: str, denominator: str) -> Estimate:
        """Ratio of two sums over units; None for 0/0."""
        both = self.select(numerator, denominator)
        return both.estimate(lambda means: means[numerator] / means[denominator])

    def _value(self, function: Function, means: Floats) -> float | None:
        if not self.count:
            return None
        try:
            value = float(function(dict(zip(self.names, means.tolist(), strict=True))))
        except (ArithmeticError, ValueError):  # 0/0, log 0: outside of the function's domain
            return None
        return value if isfinite(value) else None

    def _gradient(self, function: Function) -> Floats | None:
        """[d], by central differences; a name that does not vary is not moved (it may stand on the domain's edge)."""
        gradient = np.zeros(len(self.names))
        spread = np.sqrt(np.diag(self.scatter) / self.count)
        for i in np.flatnonzero(spread):
            moved = np.zeros(len(self.names))
            moved[i] = STEP * max(abs(self.means[i]), spread[i])
            above, below = self._value(function, self.means + moved), self._value(function, self.means - moved)
            if above is None or below is None:
                return None
            gradient[i] = (above - below) / (2 * moved[i])
        return gradient

    def _variance(self, gradient: Floats) -> float:
        """Variance of a linear function of the mean vector."""
        terms = self.scatter * np.outer(gradient, gradient)
        total = float(terms.sum())
        return total / (self.count - 1) / self.count if total > ROUNDING * float(np.abs(terms).sum()) else 0.0


def _student(degrees: int) -> float:
    """The t below which half of what CONFIDENCE leaves out lies above."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))
