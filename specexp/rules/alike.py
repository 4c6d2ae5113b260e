"""What a round's paths have in common, found once a round: who has a draw where, and whose tokens so far are the same.

Rows are the fast axis in memory wherever there is a choice: a block has many, and few paths, levels and tokens.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from specexp.rounds import Booleans, Floats, Ints, Round
from specexp.sampling import TINY, compact, taken

Found = TypeVar("Found", bound=NDArray[Any] | tuple[NDArray[Any], ...])
Numbers = NDArray[np.signedinteger[Any]]  # of paths, as narrow as they can be


def once(of_round: Callable[[Round], Found]) -> Callable[[Round], Found]:
    """Works arrays out once for each round, for as long as that lives. They can't be written to, and must not hold the
    round."""
    known: WeakKeyDictionary[Round, Found] = WeakKeyDictionary()

    @wraps(of_round)
    def found(round: Round) -> Found:
        value = known.get(round)
        if value is None:
            value = known[round] = of_round(round)
            for array in value if isinstance(value, tuple) else (value,):
                array.setflags(write=False)
        return value

    return found


def numbers(round: Round) -> Numbers:
    """[K, 1]: each path's own number, so narrow that its negative fits too."""
    paths = round.owner.shape[1]
    return np.arange(paths, dtype=np.min_scalar_type(-paths))[:, None]


@once
def has_draw(round: Round) -> Booleans:
    """[B, K, G]: whether path k has a draw at each level, its own or one that it shares; of one row if all are so."""
    there = compact(round.owner) >= 0
    if round.lengths.min(initial=round.drafted) == round.drafted:
        return there
    return there & (np.arange(round.drafted) < round.lengths[:, None, None])


@once
def has_own(round: Round) -> Booleans:
    """[B, K, G]: whether that draw is its own: the lowest path's of those that share it; of one row if all are so."""
    return has_draw(round) & (compact(round.owner) == numbers(round))


@once
def ratios(round: Round) -> Floats:
    """[B, K, G]: p/q of each drafted token; where none was drafted, what it says does not matter."""
    p, q = (compact(laws[:, :, : round.drafted]) for laws in (round.target_probs, round.draft_probs))
    if p.size + q.size <= 4 * round.draft_tokens.size:  # of all tokens first, if that is less
        return taken(p / np.maximum(q, TINY), round.draft_tokens)
    return taken(p, round.draft_tokens) / np.maximum(taken(q, round.draft_tokens), TINY)


@once
def lowest_alike(round: Round) -> Numbers:
    """[B, K, G+1]: the lowest path whose first n tokens are those of path k; k itself where it ended before."""
    rows, paths, gamma = round.draft_tokens.shape
    tokens, ended, number = np.asfortranarray(round.draft_tokens), compact(round.owner) < 0, numbers(round)
    lowest = np.zeros((rows, paths, gamma + 1), dtype=number.dtype, order="F")
    if ended.any():
        tokens = np.where(ended, -1 - number, tokens)
    for path in range(1, paths):
        other = tokens[:, :path] != tokens[:, path, None]
        for level in range(1, gamma):
            other[..., level] |= other[..., level - 1]
        lowest[:, path, 1:] = np.maximum(other.view(np.int8) * number[path], number[:path]).min(1)
    return lowest


def leads(lowest: Numbers, own: Booleans) -> Booleans:
    """[B, K, n]: whether path k is the ``lowest`` [B, K, n] of another one that has a draw of its ``own`` [B, K, n]."""
    found = np.zeros(lowest.shape, dtype=bool, order="F")
    for path in range(lowest.shape[1] - 1):
        found[:, path] = ((lowest[:, path + 1 :] == path) & own[:, path + 1 :]).any(1)
    return found


def indices(which: Booleans) -> tuple[Ints, ...]:
    """Where ``which`` is true, an index an axis; the first axis is the fast one."""
    return np.unravel_index(np.flatnonzero(which.T), which.T.shape)[::-1]
