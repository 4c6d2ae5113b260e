"""What competes where: the draws of all paths whose tokens so far are the same."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specexp.rounds import Booleans, Floats, Ints, Round, select
from specexp.rules.alike import Numbers, has_own, indices, leads, lowest_alike, numbers
from specexp.sampling import compact, cumulative, pick, taken

CELLS = 2**16  # positions x V that are looked at together: their arrays stay in the cache
WIDE = 8  # paths; with fewer, a column a path costs less than to say which are there


@dataclass(frozen=True, eq=False)
class Draws:
    """N positions of a round, each at ``level`` [N] of ``path`` [N] in ``row`` [N], and the paths that are there, M at
    most: all K, or where they are many the ones at hand."""

    round: Round
    row: Ints
    path: Ints
    level: Ints
    same: Booleans  # [N, M]: path k has the same tokens so far; or ``columns`` [N, M] say which path it is
    columns: Ints | None = None
    every: bool = False  # there is one position of every row, in order
    first: bool = False  # and it is the first, the root

    def at(self, which: Ints) -> "Draws":
        """Some of the positions alone, in order."""
        if len(which) == len(self.row):
            return self
        columns = None if self.columns is None else self.columns[which]
        return Draws(self.round, self.row[which], self.path[which], self.level[which], self.same[which], columns)

    def narrow(self) -> "Draws":
        """The same with as few columns as there are paths at one position, where paths are many."""
        if self.same.shape[1] <= WIDE:
            return self
        at, path = indices(self.same)
        place = cumulative(self.same.astype(np.min_scalar_type(self.same.shape[1])))[at, path] - 1
        same = np.zeros((len(self.row), int(place.max(initial=0)) + 1), dtype=bool, order="F")
        columns = np.zeros(same.shape, dtype=np.int64, order="F")
        same[at, place], columns[at, place] = True, path
        return replace(self, same=same, columns=columns)

    @property
    def number(self) -> Numbers:
        """[N, M]: each draw's path; one row where all have the same."""
        return numbers(self.round).T if self.columns is None else self.columns

    @property
    def where(self) -> tuple[Any, Any, Any]:
        """An index of arrays [B, K, n], by level."""
        return (slice(None), 0, 0) if self.first else (self.row, self.path, self.level)

    @cached_property
    def drawn(self) -> Booleans:
        """[N, M]: the next token of path k is one of the draws (of paths that share it, the lowest)."""
        past, mine = self.level >= self.round.drafted, has_own(self.round)
        if past.all():
            return np.zeros(self.same.shape, dtype=bool)
        drawn = self.same & ~past[:, None] if past.any() else self.same
        return drawn if mine.all() else drawn & self.along(np.broadcast_to(mine, self.round.draft_tokens.shape))

    @cached_property
    def p(self) -> Floats:
        """[N, V]: the target's law."""
        return self._here(self.round.target_probs)

    @cached_property
    def q(self) -> Floats:
        """[N, V]: the law of each draw, where they are independent."""
        return self._here(self.round.draft_probs)

    @cached_property
    def count(self) -> Ints:
        """[N]: how many draws compete."""
        narrow = np.min_scalar_type(self.drawn.shape[1])
        return np.add.reduce(self.drawn.view(np.uint8), axis=-1, dtype=narrow).astype(np.int64)

    @cached_property
    def order(self) -> Ints:
        """[N, n]: the columns that have a draw, in the order in which they were drawn; at most n, and then 0."""
        at, column = indices(self.drawn)
        order = np.zeros((len(self.count), int(self.count.max(initial=0))), dtype=np.int64)
        order[at, cumulative(self.drawn.astype(np.int64))[at, column] - 1] = column
        return order

    @cached_property
    def tokens(self) -> Ints:
        """[N, M]: the token of each draw; 0 where there is none."""
        if not self.round.drafted:
            return np.zeros(self.drawn.shape, dtype=np.int64)
        tokens = self.along(self.round.draft_tokens)
        return tokens if self.drawn.all() else np.where(self.drawn, tokens, 0)

    def along(self, values: NDArray[Any]) -> NDArray[Any]:
        """[N, M]: what each path has in ``values`` [B, K, n] at the level of the position, at most at the last."""
        if self.first:
            return values[:, :, 0]
        return values[self.row, self.number.T, np.minimum(self.level, values.shape[2] - 1)].T

    def law(self, which: Ints, draw: Ints) -> Floats:
        """[n, V]: the law that ``draw`` [n] of positions ``which`` [n] was drawn from."""
        return laws_at(self.round.draft_probs, self.row[which], self.path_of(which, draw), self.level[which])

    def path_of(self, which: Ints, draw: Ints) -> Ints:
        """[n]: the path of ``draw`` [n], a column, of positions ``which`` [n]."""
        return draw if self.columns is None else self.columns[which, draw]

    def of(self, laws: Floats) -> Floats:
        """[N, M]: each draw's chance by ``laws`` [N, V]."""
        return taken(laws[:, None], self.tokens)

    def _here(self, laws: Floats) -> Floats:
        if self.first:
            return laws[:, 0, 0]
        if self.every and compact(laws).shape[1:3] == (1, 1):
            return select(laws, self.path, self.level)
        return laws_at(laws, self.row, self.path, self.level)


def laws_at(laws: Floats, row: Ints, path: Ints, level: Ints) -> Floats:
    """[N, V]: ``laws[row, path, level]``; if rows are the fast axis of ``laws`` [B, K, n, V], of these too."""
    if laws.strides[-1] == laws.itemsize:
        return laws[row, path, level]
    return pick(laws, row, path, level, np.arange(laws.shape[-1])[:, None]).T


def contested(round: Round) -> Iterator[Draws]:
    """The first positions of all rows, then, some at a time, those after them at which another path than the lowest has
    a draw of its own."""
    if round.drafted:
        yield roots(round)
        row, path, level = indices(leads(lowest_alike(round)[..., 1:-1], has_own(round)[..., 1:]))
        yield from some_at_a_time(round, row, path, level + 1)


def some_at_a_time(round: Round, row: Ints, path: Ints, level: Ints | int) -> Iterator[Draws]:
    """The positions at ``level`` [N] of ``path`` [N], the lowest that is there, in ``row`` [N]."""
    lowest, number = lowest_alike(round), numbers(round).astype(np.int64)
    size = max(1, CELLS // max(round.vocab, len(number)))
    for start in range(0, len(row), size):
        r, k, g = (part[start : start + size] for part in (row, path, np.broadcast_to(level, row.shape)))
        yield Draws(round, r, k, g, (pick(lowest, r, number, g) == k).T).narrow()


def roots(round: Round) -> Draws:
    """The first positions, where all paths are."""
    rows, paths, _ = round.draft_tokens.shape
    row, zero = np.arange(rows), np.zeros(rows, dtype=np.int64)
    return Draws(round, row, zero, zero, np.ones((rows, paths), dtype=bool, order="F"), every=True, first=True)


def stopped(round: Round, path: Ints, stop: Ints) -> Draws:
    """The positions after the first ``stop`` [B] tokens of ``path`` [B], one of every row."""
    row = np.arange(len(path))
    lowest = lowest_alike(round)[row, numbers(round), stop]
    return Draws(round, row, path, stop, (lowest == lowest[path, row]).T, every=True)
