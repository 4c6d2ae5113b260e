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


LENGTHS = {"fixed": Fixed}
