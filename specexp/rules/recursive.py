"""Recursive rejection: several drafts of one token, one after the other."""

from dataclasses import dataclass

import numpy as np

from specexp.rounds import Floats, Ints, Round
from specexp.rules.alike import once, ratios
from specexp.rules.draws import Draws
from specexp.rules.paths import PathRule
from specexp.rules.single import excess, ratio
from specexp.sampling import TINY, compact, cumulative, taken

Rests = tuple[Floats, Floats]  # (s, D), [n+1, N] each: before a position's n-th try its law is [p - s q]+ / D


@dataclass(frozen=True)
class Recursive(PathRule):
    """Recursive rejection: each draw x in turn is kept with min(1, p(x)/q(x)); if it is not, p becomes
    norm([p - q]+) for the next one, and the law of what is emitted at last (Miao et al. 2023, SpecInfer, algorithm 2;
    on a tree whose children are drawn without replacement Chen et al. 2024, Sequoia, algorithm 2). q is the law that
    this very draw was drawn from, so any scheme of drawing is right. Keeps 1 - prod_k TV(p_k, q) of i.i.d. draws."""

    def chances(self, draws: Draws) -> Floats:
        return by_rests(draws) if one_law(draws.round) else in_turn(draws)

    def follows(self, draws: Draws) -> Floats:
        return self.replacement(draws)

    def replacement(self, draws: Draws) -> Floats:
        if one_law(draws.round):
            (gone, _), at = rests(draws)
            return excess(draws.p, gone[draws.count, at, None] * draws.q)
        law = np.array(draws.p)
        for turn in range(int(draws.count.max(initial=0))):
            which = np.flatnonzero(draws.count > turn)
            law[which] = excess(law[which], draws.law(which, draws.order[which, turn]))
        return law


def in_turn(draws: Draws) -> Floats:
    """[N, M]: the chances, by the recursion itself."""
    kept = np.zeros(draws.drawn.shape)
    which, p, alive = np.arange(len(kept)), draws.p, np.ones(len(kept))  # the positions that are not decided yet
    for turn in range(int(draws.count.max(initial=0))):
        draw = draws.order[which, turn]
        token, q = draws.tokens[which, draw], draws.law(which, draw)
        chance = ratio(taken(p, token), taken(q, token))
        kept[which, draw] = alive * chance
        alive = alive * (1 - chance)
        on = np.flatnonzero((alive > 0) & (draws.count[which] > turn + 1))
        which, p, alive = which[on], excess(p[on], q[on]), alive[on]
    return kept


def by_rests(draws: Draws) -> Floats:
    """[N, M]: the chances where all draws are from one law q. Then p of the n-th try is [p - s q]+ over its sum D, s
    the sum of the D before it (from p itself, 1), so its draw is kept with min(1, [p/q - s]+ / D)."""
    (gone, left), at = rests(draws)
    if draws.first and draws.drawn.all():
        gone, left = gone[:-1].T, left[:-1].T
    else:
        turn = np.maximum(cumulative(draws.drawn.astype(np.int64)) - 1, 0).T
        gone, left = gone[turn, at].T, left[turn, at].T
    chance = np.maximum(draws.along(ratios(draws.round)) - gone, 0.0)
    chance *= draws.drawn
    chance /= np.maximum(left, TINY)
    np.minimum(chance, 1.0, out=chance)
    chance[:, 1:] *= cumulative(1 - chance, np.multiply)[:, :-1]
    return chance


def rests(draws: Draws) -> tuple[Rests, Ints]:
    """What is left of p before each try and after the last, and in which column of it each position [N] has its own."""
    if one_context(draws.round):
        return rests_of_rows(draws.round), draws.row
    return rests_of(draws.p, draws.q, draws.count), np.arange(len(draws.row))


@once
def rests_of_rows(round: Round) -> Rests:
    """[K+1, B] each, where a row's positions share their context."""
    rows, paths, _ = round.draft_tokens.shape
    return rests_of(round.target_probs[:, 0, 0], round.draft_probs[:, 0, 0], np.full(rows, paths))


def rests_of(p: Floats, q: Floats, count: Ints) -> Rests:
    """[n+1, N] each, of ``count`` [N] draws, n at most; past those of a position, what they say does not matter."""
    most, number = int(count.max(initial=0)), np.arange(len(p))
    gone, left = np.zeros((most + 1, len(p))), np.ones((most + 1, len(p)))
    gone[1:] = 1.0
    for turn in range(1, most):
        more = np.flatnonzero(count > turn)
        if len(more) < len(count):
            number, p, q, count = number[more], p[more], q[more], count[more]
        on = number if len(number) < gone.shape[1] else slice(None)
        left[turn, on] = remaining(p, q, gone[turn, on])
        gone[turn + 1, on] = gone[turn, on] + left[turn, on]
    return gone, left


def remaining(p: Floats, q: Floats, gone: Floats) -> Floats:
    """[N]: the sum of [p - s q]+, s = ``gone`` [N]."""
    gone_by_token = q * gone[:, None]
    over = np.maximum(p, gone_by_token)  # of two arrays it is twice as fast as of one and 0
    over -= gone_by_token
    return np.asarray(over.sum(-1))


def one_law(round: Round) -> bool:
    """Whether all paths share the laws that they are drawn from in memory: a position's draws are then from one."""
    return compact(round.draft_probs).shape[1] == 1


def one_context(round: Round) -> bool:
    """Whether all positions of a row share their laws in memory."""
    return compact(round.target_probs).shape[1:3] == compact(round.draft_probs).shape[1:3] == (1, 1)
