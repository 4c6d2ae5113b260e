"""Rules for several drafts of one token: one after the other, or all at once.

Each is lossless for any number of draws; with one draw each but ``naive`` is the token rule.
"""

from dataclasses import dataclass

import numpy as np

from specexp.rounds import Floats, Ints
from specexp.rules.paths import Draws, PathRule
from specexp.rules.single import excess, ratio
from specexp.sampling import TINY


@dataclass(frozen=True)
class Recursive(PathRule):
    """Recursive rejection: each draw x in turn is kept with min(1, p(x)/q(x)); if it is not, p becomes
    norm([p - q]+) for the next one, and the law of what is emitted at last (Miao et al. 2023, SpecInfer, algorithm 2;
    on a tree whose children are drawn without replacement Chen et al. 2024, Sequoia, algorithm 2). q is the law that
    this very draw was drawn from, so any scheme of drawing is right. Keeps 1 - prod_k TV(p_k, q) of i.i.d. draws."""

    def chances(self, draws: Draws) -> Floats:
        kept = np.zeros(draws.drawn.shape)
        which, p, alive = np.arange(len(kept)), draws.p, np.ones(len(kept))  # the positions that are not decided yet
        for turn in range(int(draws.count.max(initial=0))):
            draw = draws.order[which, turn]
            token, q = draws.tokens[which, draw, None], draws.law(which, draw)
            chance = ratio(np.take_along_axis(p, token, -1), np.take_along_axis(q, token, -1))[:, 0]
            kept[which, draw] = alive * chance
            alive = alive * (1 - chance)
            on = np.flatnonzero((alive > 0) & (draws.count[which] > turn + 1))
            which, p, alive = which[on], excess(p[on], q[on]), alive[on]
        return kept

    def replacement(self, draws: Draws) -> Floats:
        law = np.array(draws.p)
        for turn in range(int(draws.count.max(initial=0))):
            which = np.flatnonzero(draws.count > turn)
            law[which] = excess(law[which], draws.law(which, draws.order[which, turn]))
        return law


@dataclass(frozen=True)
class KSequential(PathRule):
    """K-SEQ (Sun et al. 2023, SpecTr, arXiv 2310.15141): each of the n draws in turn is kept with min(1, p/(rho q)),
    where 1 - (1 - beta)^n = rho beta, beta = sum_x min(p/rho, q) and rho is from 1 to n. It keeps 1 - (1 - beta)^n, at
    least 1 - (1 - 1/n)^n of what any rule can. The draws must be independent, from one law."""

    independent = True

    def chances(self, draws: Draws) -> Floats:
        q, accepted = draws.q, self.accepted(draws.p, draws.q, draws.count)
        chance = np.where(draws.drawn, draws.of(np.minimum(accepted / np.maximum(q, TINY), 1.0)), 0.0)
        before = np.cumprod(1 - chance, axis=-1)
        return chance * np.concatenate([np.ones_like(before[:, :1]), before[:, :-1]], axis=-1)

    def replacement(self, draws: Draws) -> Floats:
        p, accepted = draws.p, self.accepted(draws.p, draws.q, draws.count)
        return excess(p, accepted * tries(accepted.sum(-1), draws.count)[:, None])

    def accepted(self, p: Floats, q: Floats, count: Ints) -> Floats:
        """[N, V]: P(x is drawn and kept) of a draw that is tried, min(p/rho, q)."""
        return np.minimum(p / self.rho(p, q, count)[:, None], q)

    def rho(self, p: Floats, q: Floats, count: Ints) -> Floats:
        """[N]: the root, to rounding from above, where the residual is nowhere negative."""
        low, high = np.ones(len(p)), np.maximum(count, 1).astype(np.float64)
        while True:
            middle = (low + high) / 2
            between = (low < middle) & (middle < high)
            if not between.any():
                return high
            above = tries(np.minimum(p / middle[:, None], q).sum(-1), count) <= middle
            low, high = np.where(between & ~above, middle, low), np.where(between & above, middle, high)


def tries(beta: Floats, count: Ints) -> Floats:
    """[N]: (1 - (1 - beta)^n) / beta, how many of n draws are tried on average until one is kept with chance beta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(count > 0, -np.expm1(count * np.log1p(-np.minimum(beta, 1.0))), 0.0)
    return np.where(beta > TINY, kept / np.maximum(beta, TINY), count)


@dataclass(frozen=True)
class Naive(PathRule):
    """Naive sampling (NSS; Miao et al. 2023, SpecInfer): the target draws y ~ p by itself, and a path goes on if one of
    the draws is y: keeps sum_x p(x) P(x is drawn). No draft law is needed, so any scheme of drawing is right."""

    token_alone = False

    def alone(self, p: Floats, q: Floats) -> Floats:
        return p

    def chances(self, draws: Draws) -> Floats:
        tokens = np.where(draws.drawn, draws.tokens, -1)
        again = np.tril(tokens[:, :, None] == tokens[:, None, :], -1).any(-1)  # only the first draw of a token counts
        return np.where(draws.drawn & ~again, draws.of(draws.p), 0.0)

    def replacement(self, draws: Draws) -> Floats:
        p = draws.p
        kept = np.zeros_like(p)
        row, draw = np.nonzero(draws.drawn)
        token = draws.tokens[row, draw]
        kept[row, token] = p[row, token]
        return excess(p, kept)
