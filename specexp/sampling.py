"""Random streams by role, and the one place where a law becomes a token.

A stream is named by the run's seed, a role and a logical block, so that no draw of one role moves a draw of
another: runs of different rules and gammas meet the same contexts and the same drafts.
"""

from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from specexp.rounds import Floats, Ints, RandomStreams

Scalar = TypeVar("Scalar", bound=np.generic)

# Fixed for ever: a number changed here changes every result.
ROLES = {
    "context": 0,
    "draft": 1,
    "verify": 2,
    "target_only": 3,
    "bootstrap": 4,
    "noise": 5,
    "start": 6,
    "target_matrix": 7,
    "draft_matrix": 8,
}


class NotALaw(ValueError):
    """Something that should be a probability law and is not; ``row`` says of which of the streams side by side."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


TINY = np.finfo(np.float64).tiny  # the least normal number
SUM_TOLERANCE = 1e-3  # of a law in single precision over a large vocabulary


def generator(seed: int, role: str, *key: int) -> np.random.Generator:
    """The random numbers of ``role`` in the logical block that ``key`` names."""
    sequence = np.random.SeedSequence(seed, spawn_key=(ROLES[role], *key))
    return np.random.Generator(np.random.SFC64(sequence))


def streams(seed: int, *key: int) -> RandomStreams:
    """``random(role)``: the walk's random numbers in one logical block."""
    return lambda role: generator(seed, role, *key)


def target_only_streams(seed: int, *key: int) -> RandomStreams:
    """``random(role)``: the same for the walk of the target alone, which shares no draw with the other."""
    return lambda role: generator(seed, "target_only", ROLES[role], *key)


def compact(law: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same numbers with each broadcast axis (stride 0) but the last cut to length one: work is done once."""
    return law[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in law.strides[:-1])]


def draw(law: Floats, uniforms: Floats) -> Ints:
    """Tokens of ``law`` [..., V] by inversion of ``uniforms`` [...] (53-bit, in [0, 1)); shapes broadcast.

    A token of probability zero is never returned, whatever the uniform; the law need not be normalised. The count of
    cdf <= u * total grows with u, so a smaller index always means a smaller uniform.
    Raises NotALaw where a row has no positive finite total (all zero, or NaN; a denormal one counts as zero).
    """
    cdf = cumulative(compact(law))
    total = cdf[..., -1]
    good = (total >= TINY) & (total < np.inf)
    if not good.all():
        where = np.argwhere(~good)[0].tolist()
        raise NotALaw(where[0] if where else 0, f"not a law: row {where} sums to {total[~good][0]}")
    threshold = uniforms * total  # below the total: u <= 1 - 2^-53, and that times a normal number rounds down
    below = (cdf <= threshold[..., None]).view(np.uint8)
    narrow = np.uint8 if law.shape[-1] < 256 else np.uint32  # a byte's sums run eight times faster, and overflow at 256
    return np.add.reduce(below, axis=-1, dtype=narrow).astype(np.int64)


def refuse_no_law(model: str, laws: Floats) -> None:
    """Raises NotALaw for the first of ``model``'s ``laws`` [B, K, n, V] that does not sum to one (NaN, or not
    normalised)."""
    total = compact(laws).sum(-1)
    right = np.abs(total - 1) < SUM_TOLERANCE  # not where it is NaN
    if not right.all():
        row, path, position = np.argwhere(~right)[0].tolist()
        found = total[row, path, position]
        raise NotALaw(row, f"position {position}: the {model}'s law sums to {found}, not 1")


def taken(laws: Floats, tokens: Ints) -> Floats:
    """[..., n]: the chance of each of ``tokens`` [..., n] by ``laws`` [..., n, V], one for all where they share it."""
    laws = compact(laws)
    places = (np.arange(size).reshape(-1, *[1] * axis) for axis, size in enumerate(laws.shape[:-1]))
    return pick(laws, *places, tokens.T).T  # axes from last to first: the rows are the fast one


def pick(values: NDArray[Scalar], *where: Ints) -> NDArray[Scalar]:
    """``values[where]``, an index an axis; none may be negative. For many elements it is twice as fast."""
    if not values.size or any(stride < 0 or stride % values.itemsize for stride in values.strides):
        return np.asarray(values[where], dtype=values.dtype)
    # One index into the memory that they span: of one an axis, numpy would add up the strides anew for each element.
    index, span = np.zeros((), dtype=np.int64), 1
    for at, size, stride in zip(where, values.shape, values.strides, strict=True):
        step = stride // values.itemsize
        index, span = index + at * step, span + (size - 1) * step
    return np.lib.stride_tricks.as_strided(values, (span,), (values.itemsize,)).take(index)


def cumulative(law: Floats, combine: np.ufunc = np.add) -> Floats:
    """[..., V]: sums (or products) over the last axis from its first entry, in order, whatever the layout in memory."""
    vocab = law.shape[-1]
    if vocab > 64 or law.strides[-1] == law.itemsize:
        return np.asarray(combine.accumulate(law, axis=-1))
    by_token = law.copy(order="K").T  # rows are the fast axis: combine them token by token
    for before, here in pairwise(by_token):
        combine(here, before, out=here)
    return by_token.T


def columns(rng: np.random.Generator, rows: int, count: int) -> Floats:
    """[rows, count] uniforms, one column a position: a longer draft adds columns and moves none."""
    return rng.random((count, rows)).T


def keyed_normals(window: Ints, vocab: int, seed: int) -> Floats:
    """[..., V] standard normals, a function of (seed, ``window`` [..., memory]) alone: noise that belongs to a context.

    SplitMix64 (Steele, Lea & Flood 2014) over the window's tokens and the token number, then the normal quantile.
    """
    from scipy.special import ndtri

    key = np.full(window.shape[:-1], _mix(np.uint64(seed % 2**64)), dtype=np.uint64)
    for i in range(window.shape[-1]):
        key = _mix(key ^ window[..., i].astype(np.uint64))
    bits = _mix(key[..., None] + np.arange(1, vocab + 1, dtype=np.uint64) * _GOLDEN)
    uniforms = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # never 0 nor 1: no infinity
    return np.asarray(ndtri(uniforms))


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(number: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        x = np.asarray(number) + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
