"""Rules for several drafts of one token that need no plan: lossless for any number of draws."""

from dataclasses import dataclass

import numpy as np

from specexp.rounds import Floats, Ints, Round
from specexp.rules.draws import Draws
from specexp.rules.paths import PathRule
from specexp.rules.single import excess
from specexp.sampling import TINY, taken


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

    def alone(self, round: Round) -> Floats:
        return taken(round.target_probs[:, :, : round.drafted], round.draft_tokens)

    def chances(self, draws: Draws) -> Floats:
        tokens = np.where(draws.drawn, draws.tokens, -1)
        again = np.tril(tokens[:, :, None] == tokens[:, None, :], -1).any(-1)  # only the first draw of a token counts
        return np.where(draws.drawn & ~again, draws.of(draws.p), 0.0)

    def follows(self, draws: Draws) -> Floats:
        return self.replacement(draws)

    def replacement(self, draws: Draws) -> Floats:
        p = draws.p
        kept = np.zeros_like(p)
        row, draw = np.nonzero(draws.drawn)
        token = draws.tokens[row, draw]
        kept[row, token] = p[row, token]
        return excess(p, kept)
