"""The most that any lossless rule can keep of n independent drafts of one token, and the plan that keeps it.

A rule keeps a draw or none. Whatever it does, a set H of tokens is emitted with p(H), and all n draws are in H with
q(H)^n, so at most 1 + min_H [p(H) - q(H)^n] are kept; of all H only the beginnings of the order by p/q matter (Hu et
al. 2025, arXiv 2502.18779; for two drafts Khisti et al. 2024, arXiv 2410.18234, theorem 3).

The plan is in two steps (Khisti et al. 2024, theorem 1): select one draw, then test it like the token rule. Give the
token of rank s, by p/q ascending, the slot of that rank, and select the draw in the highest slot: the selected token
has the law Q_s^n - Q_{s-1}^n, Q the sums of q. That gives some tokens more than p, others less. Where a later token k
has too much and an earlier one j too little, let a part of their mass change slots: j gains what k loses. The matching
is in order, unit by unit of what must move, so it is two cumulative sums and a merge. No token ever gives away more
than it has: p_j/q_j <= p_k/q_k puts what j wants below what k's slot gives, and what k keeps above what j's slot gives.
"""

from dataclasses import dataclass

import numpy as np

from specexp.rounds import Booleans, Floats, Ints
from specexp.rules.draws import Draws
from specexp.rules.paths import PathRule
from specexp.rules.single import excess
from specexp.sampling import TINY


def optimum(p: Floats, q: Floats, count: Ints) -> Floats:
    """[N]: 1 + min_H [p(H) - q(H)^n], the most that can be kept of n = ``count`` [N] independent draws from ``q``; 0
    where there is none (H is empty, and 0^0 is 1)."""
    sorted_p, sorted_q = (np.take_along_axis(law, by_ratio(p, q), -1) for law in (p, q))
    excluded = np.cumsum(sorted_p, -1) - np.minimum(np.cumsum(sorted_q, -1), 1.0) ** count[:, None]
    return np.where(count > 0, 1 + np.minimum(excluded.min(-1), 0.0), 0.0)


def by_ratio(p: Floats, q: Floats) -> Ints:
    """[N, V]: the tokens in ascending order of p/q; those that q excludes last."""
    with np.errstate(over="ignore"):
        ratio = np.divide(p, q, out=np.full_like(p, np.inf), where=q > 0)
    return np.argsort(ratio, axis=-1, kind="stable")


@dataclass(frozen=True)
class Plan:
    """How one of the draws is selected, at N positions."""

    slot: Ints  # [N, V]: each token's own slot
    mass: Floats  # [N, V]: q of the token whose own slot it is
    gain: Floats  # [N, V]: P(the selected draw is in the slot), over the mass
    earlier: Ints  # [N, M]: slot j of an exchange
    later: Ints  # [N, M]: slot k
    moved: Floats  # [N, M]: the mass of j's token that is in slot k, and of k's in slot j

    def selected(self) -> Floats:
        """[N, V]: the law of the selected token."""
        gained = self.moved * (_at(self.gain, self.later) - _at(self.gain, self.earlier))
        by_slot = (
            self.mass * self.gain + _summed(self.earlier, gained, self.mass) - _summed(self.later, gained, self.mass)
        )
        return np.maximum(_at(by_slot, self.slot), 0.0)

    def placed(self, token: Ints) -> Floats:
        """[N, V]: P(a draw of ``token`` [N] is in slot s)."""
        own = np.take_along_axis(self.slot, token[:, None], -1)
        up, down = (np.where(ours == own, self.moved, 0.0) for ours in (self.earlier, self.later))
        mass = np.maximum(_at(self.mass, own), TINY)
        shares = (_summed(self.later, up, self.mass) + _summed(self.earlier, down, self.mass)) / mass
        stays = np.maximum(1 - shares.sum(-1, keepdims=True), 0.0)
        np.put_along_axis(shares, own, _at(shares, own) + stays, -1)
        return shares


def plan(p: Floats, q: Floats, count: Ints) -> Plan:
    """The optimal selection of one of ``count`` [N] independent draws from ``q``, for the target ``p`` [N, V]."""
    order = by_ratio(p, q)
    mass = _at(q, order)
    gain = slot_gains(mass, count)
    surplus = _at(p, order) - mass * gain  # what the token wants beyond what its own slot gives
    wanted, given = (np.cumsum(np.maximum(part, 0.0), -1) for part in (surplus, -surplus))
    given += np.minimum((wanted - given).min(-1, keepdims=True), 0.0)  # the first units that are given stay
    return Plan(np.argsort(order, -1), mass, gain, *_exchanges(wanted, given, mass, gain))


def _exchanges(wanted: Floats, given: Floats, mass: Floats, gain: Floats) -> tuple[Ints, Ints, Floats]:
    """(earlier, later, moved), [N, 2V] each: the u-th unit that is wanted is the u-th that is given; both are
    cumulative [N, V]."""
    levels = np.concatenate([wanted, given], -1)
    merged = np.argsort(levels, -1, kind="stable")
    ends = np.clip(_at(levels, merged), 0.0, np.maximum(given[:, -1:], 0.0))
    unit = np.diff(ends, prepend=0.0)
    want = merged < mass.shape[-1]
    last = mass.shape[-1] - 1
    earlier, later = (np.minimum(np.cumsum(ended, -1) - ended, last) for ended in (want, ~want))
    apart = _at(gain, later) - _at(gain, earlier)
    moved = np.where((unit > 0) & (apart > 0), unit / np.maximum(apart, TINY), 0.0)
    return earlier, later, np.minimum(moved, np.minimum(_at(mass, earlier), _at(mass, later)))


def slot_gains(mass: Floats, count: Ints) -> Floats:
    """[N, V]: (Q_s^n - Q_{s-1}^n) / q_s, as the sum of products that it is."""
    upto = np.minimum(np.cumsum(mass, -1), 1.0)
    below, gain = _shifted(upto), np.zeros_like(upto)
    for turn in range(int(count.max(initial=0))):
        gain = np.where((turn < count)[:, None], gain * below + upto**turn, gain)
    return gain


def _at(values: Floats, where: Ints) -> Floats:
    return np.take_along_axis(values, where, -1)


def _summed(slot: Ints, values: Floats, like: Floats) -> Floats:
    """[N, V]: ``values`` [N, M] summed by their ``slot``."""
    rows, slots = like.shape
    flat = (np.arange(rows)[:, None] * slots + slot).ravel()
    return np.bincount(flat, values.ravel(), minlength=rows * slots).reshape(rows, slots).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Transport(PathRule):
    """The optimum: of n independent draws it keeps 1 + min_H [p(H) - q(H)^n], more than which no lossless rule can. One
    draw is selected by ``plan`` and kept with min(1, p/r), r the law of the selected token; else y ~ norm([p - r]+)."""

    independent = True

    def chances(self, draws: Draws) -> Floats:
        p = draws.p
        selection = plan(p, draws.q, draws.count)
        kept = np.minimum(p / np.maximum(selection.selected(), TINY), 1.0)
        return draws.of(kept) * highest([selection.placed(token) for token in draws.tokens.T], draws.drawn)

    def replacement(self, draws: Draws) -> Floats:
        p = draws.p
        return excess(p, plan(p, draws.q, draws.count).selected())


def highest(placed: list[Floats], drawn: Booleans) -> Floats:
    """[N, K]: P(draw k is in the highest slot that has a draw, and the first there), from where each draw is
    ``placed`` [N, V]; 0 where there is no draw."""
    upto = [np.where(there[:, None], np.cumsum(place, -1), 1.0) for place, there in zip(placed, drawn.T, strict=True)]
    after = [np.ones_like(upto[0])]  # P(all later draws are in the slot or under it)
    for sums in reversed(upto[1:]):
        after.append(after[-1] * sums)
    chances, before = np.zeros(drawn.shape), np.ones_like(upto[0])  # P(all earlier draws are under the slot)
    for k, (place, later) in enumerate(zip(placed, reversed(after), strict=True)):
        chances[:, k] = (before * place * later).sum(-1) * drawn[:, k]
        before = before * np.where(drawn[:, k, None], _shifted(upto[k]), 1.0)
    return chances


def _shifted(sums: Floats) -> Floats:
    return np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], -1)
