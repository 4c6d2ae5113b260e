"""Rules for several drafts that decide position by position: written for one position, lifted over paths here.

At a position a few draws compete, each for the place of the next token: the next tokens of all paths whose tokens so
far are the ones that were kept. One of them is kept, or none is and another token is emitted. Whatever path a kept
token came from, every path that has it goes on.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from specexp.rounds import Booleans, Floats, Ints, Round
from specexp.rules.single import excess, ratio
from specexp.sampling import taken
from specexp.trees import MOST_PATHS


@dataclass(frozen=True)
class Draws:
    """N positions of a round, each at ``level`` [N] of ``path`` [N] in ``row`` [N], and what was drawn there."""

    round: Round
    row: Ints
    path: Ints
    level: Ints
    drawn: Booleans  # [N, K]: the next token of path k is one of the draws (of paths that share it, the lowest)

    def at(self, which: Ints) -> "Draws":
        """Some of the positions alone."""
        return Draws(self.round, self.row[which], self.path[which], self.level[which], self.drawn[which])

    @property
    def p(self) -> Floats:
        """[N, V]: the target's law."""
        return self.round.target_probs[self.row, self.path, self.level]

    @property
    def q(self) -> Floats:
        """[N, V]: the law of each draw, where they are independent."""
        return self.round.draft_probs[self.row, self.path, self.level]

    @cached_property
    def count(self) -> Ints:
        """[N]: how many draws compete."""
        return self.drawn.sum(-1)

    @cached_property
    def order(self) -> Ints:
        """[N, K]: the paths with those that have a draw first, in the order in which they were drawn."""
        if self.drawn.all():
            return np.broadcast_to(np.arange(self.drawn.shape[1]), self.drawn.shape)
        return np.argsort(~self.drawn, axis=-1, kind="stable")

    @cached_property
    def tokens(self) -> Ints:
        """[N, K]: the token of each draw; 0 where there is none."""
        tokens = self.round.draft_tokens
        if not tokens.shape[2]:
            return np.zeros(self.drawn.shape, dtype=np.int64)
        return np.where(self.drawn, tokens[self.row, :, np.minimum(self.level, tokens.shape[2] - 1)], 0)

    def law(self, which: Ints, draw: Ints) -> Floats:
        """[n, V]: the law that ``draw`` [n] of positions ``which`` [n] was drawn from."""
        return self.round.draft_probs[self.row[which], draw, self.level[which]]

    def of(self, laws: Floats) -> Floats:
        """[N, K]: each draw's chance by ``laws`` [N, V]."""
        return np.take_along_axis(laws, self.tokens, -1)


class PathRule(ABC):
    """One position, lifted over paths."""

    lossless: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True  # what comes later in the drafts plays no part
    independent: ClassVar[bool] = False  # takes the draws of one position as independent, from one law
    token_alone: ClassVar[bool] = True  # with one draw it is the token rule
    max_paths: ClassVar[int] = MOST_PATHS

    @abstractmethod
    def chances(self, draws: Draws) -> Floats:
        """[N, K]: the chance that this very draw is kept, given them all; 0 where nothing was drawn."""

    @abstractmethod
    def replacement(self, draws: Draws) -> Floats:
        """[N, V]: law of the token emitted where no draw is kept; p where there was none."""

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the law that the emitted stream should have."""
        return round.target_probs

    def alone(self, p: Floats, q: Floats) -> Floats:
        """The chance to keep a draw that competes with no other, from the two chances of its token."""
        return ratio(p, q)

    def stop_probs(self, round: Round) -> Floats:
        """[B, K, G+1]: P(just the first n tokens of path k are kept), of paths that share them for the lowest."""
        rows, paths, gamma = round.draft_tokens.shape
        stop, group, alone = np.zeros((rows, paths, gamma + 1)), np.zeros((rows, paths), np.int64), self._alone(round)
        reached = np.eye(1, paths).repeat(rows, axis=0)  # P(the tokens so far are kept), at their lowest path
        for level in range(gamma):
            row, path = np.nonzero(reached)
            members = group[row] == path[:, None]
            several = members.sum(-1) > 1
            add_chains(stop, alone, (row[~several], path[~several]), level, reached)
            row, path, members = row[several], path[several], members[several]
            draws = Draws(round, row, path, np.full(len(row), level), members & separate(round, row, level))
            kept = self._kept(draws, alone[row, :, level]) * reached[row, path, None]
            stop[row, path, level] = np.maximum(reached[row, path] - kept.sum(-1), 0.0)
            group = following_group(round, group, level)
            reached = np.zeros((rows, paths))
            at, draw = np.nonzero(kept)
            np.add.at(reached, (row[at], group[row[at], draw]), kept[at, draw])
        stop[:, :, gamma] += reached
        return stop

    def _alone(self, round: Round) -> Floats:
        """[B, K, G]: the chance to keep each draw if it competes with no other; 0 where nothing was drawn."""
        laws = (round.target_probs, round.draft_probs)
        chances = self.alone(*(taken(law[:, :, : round.drafted], round.draft_tokens) for law in laws))
        return np.where((round.owner >= 0) & (np.arange(round.drafted) < round.lengths[:, None, None]), chances, 0.0)

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: what follows ``stop`` kept tokens of ``path``."""
        row, gamma = np.arange(len(path)), round.drafted
        same = np.ones((len(path), round.draft_tokens.shape[1]), dtype=bool)
        for level in range(int(stop.max(initial=0))):
            here = round.draft_tokens[:, :, level]
            same &= (here == here[row, path][:, None]) | (level >= stop)[:, None]  # a path that ended draws nothing
        drawn = same & separate(round, row, np.minimum(stop, gamma - 1)) & (stop < gamma)[:, None] if gamma else ~same
        return self._follows(Draws(round, row, path, stop, drawn))

    def _kept(self, draws: Draws, alone: Floats) -> Floats:
        """[N, K]: ``chances``, without a look at the whole law where there is but one draw."""
        kept, several = draws.drawn * alone, np.flatnonzero(draws.count > 1)
        kept[several] = self.chances(draws.at(several))
        return kept

    def _follows(self, draws: Draws) -> Floats:
        """[N, V]: ``replacement``, by the token rule where there is but one draw, and p where there is none."""
        if not self.token_alone:
            return self.replacement(draws)
        law, one, several = draws.p, np.flatnonzero(draws.count == 1), np.flatnonzero(draws.count > 1)
        law[one] = excess(law[one], draws.law(one, draws.drawn[one].argmax(-1)))
        law[several] = self.replacement(draws.at(several))
        return law


def add_chains(stop: Floats, alone: Floats, where: tuple[Ints, Ints], level: int, reached: Floats) -> None:
    """Adds to ``stop`` [B, K, G+1] what comes of the paths ``where`` = (row, path), reached with the chances
    ``reached`` [B, K] at ``level``, from where on they compete with no other."""
    keep = np.where(np.arange(alone.shape[2]) < level, 1.0, alone[where])
    one = np.ones((len(keep), 1))
    survive = reached[where][:, None] * np.cumprod(np.concatenate([one, keep], axis=-1), axis=-1)
    stop[where] += survive * (1 - np.concatenate([keep, 0 * one], axis=-1))


def separate(round: Round, row: Ints, level: Ints | int) -> Booleans:
    """[N, K]: whether path k has a draw of its own at ``level``."""
    paths = np.arange(round.owner.shape[1])
    return (round.owner[row, :, level] == paths) & (np.broadcast_to(level, row.shape) < round.lengths[row])[:, None]


def following_group(round: Round, group: Ints, level: int) -> Ints:
    """[B, K]: the lowest path with the same tokens as path k up to ``level``, itself where it ended before; ``group``
    is the same for the level before."""
    tokens, goes_on = round.draft_tokens[:, :, level], round.owner[:, :, level] >= 0
    paths = group.shape[1]
    key = np.where(goes_on, group * (1 + tokens.max(initial=0)) + tokens, -1 - np.arange(paths))
    lowest = np.tile(np.arange(paths), (len(key), 1))
    for path in range(paths):
        for other in reversed(range(path)):
            np.copyto(lowest[:, path], other, where=key[:, path] == key[:, other])
    return lowest
