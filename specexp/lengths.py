"""How many tokens are drafted in each round."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specexp.rounds import Ints


class Length(Protocol):
    def lengths(self, gamma: int, rows: int) -> Ints:
        """[B]: tokens to draft in each of ``rows`` rounds, at most ``gamma``."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same gamma in every round."""

    def lengths(self, gamma: int, rows: int) -> Ints:
        return np.full(rows, gamma)


def curve_end(gamma: int, gamma_max: int | None) -> int:
    """How far the curves by gamma go: to ``gamma_max``, or without one to 16, or gamma where that is more."""
    return max(gamma, 16) if gamma_max is None else gamma_max


LENGTHS = {"fixed": Fixed}
