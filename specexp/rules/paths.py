"""Rules for several drafts that decide position by position: written for one position, lifted over paths here.

At a position a few draws compete, each for the place of the next token: the next tokens of all paths whose tokens so
far are the ones that were kept. One of them is kept, or none is and another token is emitted. Whatever path a kept
token came from, every path that has it goes on.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from specexp.rounds import Floats, Ints, Round
from specexp.rules.alike import has_draw, indices, lowest_alike, numbers, ratios
from specexp.rules.draws import Draws, contested, stopped
from specexp.rules.single import excess
from specexp.trees import MOST_PATHS


class PathRule(ABC):
    """One position, lifted over paths."""

    lossless: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True  # what comes later in the drafts plays no part
    independent: ClassVar[bool] = False  # takes the draws of one position as independent, from one law
    max_paths: ClassVar[int] = MOST_PATHS

    @abstractmethod
    def chances(self, draws: Draws) -> Floats:
        """[N, M]: the chance that this very draw is kept, given them all; 0 where nothing was drawn."""

    @abstractmethod
    def replacement(self, draws: Draws) -> Floats:
        """[N, V]: law of the token emitted where no draw is kept; p where there was none."""

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the law that the emitted stream should have."""
        return round.target_probs

    def alone(self, round: Round) -> Floats:
        """[B, K, G]: the chance to keep each draw if it competes with no other; of no draw it does not matter."""
        return np.minimum(ratios(round), 1.0)

    def stop_probs(self, round: Round) -> Floats:
        """[B, K, G+1]: P(just the first n tokens of path k are kept), of paths that share them for the lowest."""
        goes_on, ends = np.array(self.alone(round)), []
        if not has_draw(round).all():
            goes_on *= has_draw(round)
        for draws in contested(round):
            kept = self._kept(draws, goes_on)
            ends.append((draws.where, np.maximum(1 - kept.sum(-1), 0.0)))
            pass_on(draws, kept, goes_on)
        stop, reached = stops(goes_on)
        for where, none in ends:
            stop[where] = reached[where] * none
        stop *= lowest_alike(round) == numbers(round)
        return stop

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: what follows ``stop`` kept tokens of ``path``."""
        return self.follows(stopped(round, path, stop))

    def _kept(self, draws: Draws, alone: Floats) -> Floats:
        """[N, M]: ``chances``, but where there is one draw alone: that of ``alone`` [B, K, G], which nobody has written
        to yet at these positions."""
        several = np.flatnonzero(draws.count > 1)
        if 0 < len(several) == len(draws.row):
            return self.chances(draws)
        kept = draws.drawn * draws.along(alone)
        if len(several):
            kept[several] = self.chances(draws.at(several))
        return kept

    def follows(self, draws: Draws) -> Floats:
        """[N, V]: ``replacement``, by the token rule where there is but one draw, and p where there is none."""
        law, one, several = np.array(draws.p), np.flatnonzero(draws.count == 1), np.flatnonzero(draws.count > 1)
        law[one] = excess(law[one], draws.law(one, draws.drawn[one].argmax(-1)))
        law[several] = self.replacement(draws.at(several))
        return law


def stops(goes_on: Floats) -> tuple[Floats, Floats]:
    """[B, K, G+1] each: P(a path is kept for n tokens), just and at least, where each token but the last ``goes_on``
    [B, K, G]."""
    rows, paths, gamma = goes_on.shape
    just, least = (np.ones((rows, paths, gamma + 1), order="F") for _ in range(2))
    for level in range(gamma):
        np.multiply(least[..., level], goes_on[..., level], out=least[..., level + 1])
        np.subtract(least[..., level], least[..., level + 1], out=just[..., level])
    just[..., gamma] = least[..., gamma]
    return just, least


def pass_on(draws: Draws, kept: Floats, goes_on: Floats) -> None:
    """Writes for each path that is at the positions of ``draws`` the chance that it ``goes_on`` [B, K, G]: that one of
    the draws which have its token is ``kept`` [N, M]."""
    number, token = np.arange(len(kept)), draws.along(lowest_alike(draws.round)[..., 1:]).T
    by_token = token.astype(np.int64) * len(kept) + number  # [M, N]
    chances = np.bincount(by_token.ravel(), kept.T.ravel())[by_token]
    if draws.first:
        goes_on[:, :, 0] = chances.T
    else:
        at, column = indices(draws.same)
        goes_on[draws.row[at], draws.path_of(at, column), draws.level[at]] = chances[column, at]
