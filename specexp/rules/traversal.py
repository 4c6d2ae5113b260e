"""Traversal verification: block verification on a tree, from the leaves to the root."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from specexp.rounds import Booleans, Floats, Ints, Round
from specexp.rules.alike import Numbers, has_draw, indices, lowest_alike, numbers, once
from specexp.rules.draws import Draws, some_at_a_time, stopped
from specexp.rules.single import excess
from specexp.sampling import TINY, cumulative, taken
from specexp.trees import MOST_PATHS


@dataclass(frozen=True)
class Traversal:
    """Keeps the first node that passes, from leaf to root (Weng et al. 2025, arXiv 2505.12398). Lossless; on a chain
    it is ``block``. From paths side by side, and from trees of which the elder of two siblings reaches as far as the
    younger (of given widths, for one), it kept at least what the top-down rule ``recursive`` keeps in all that was
    summed; where a leaf comes before a sibling that has children it may keep less.

    A child x of v has c_x = min(1, c_v p_v(x)/q(x)), the root c = 1. All below x is tried first, then x with its c_x;
    if all that fails, v goes on with p_v = norm([c_v p_v - q]+) and c_v = S / (S + 1 - c_v), S = sum [c_v p_v - q]+ (1
    where that is 0/0), to its next child, and after its last to its own trial. The token after v follows its last p_v.
    q is the law that x was drawn from, given the children before it.

    Independent children may be one token. Such draws are one node here, tried once with the children of all of them: as
    nodes apart, as in the paper, only the first one's children would have a chance, and ``recursive`` could keep more.
    """

    lossless: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    max_paths: ClassVar[int] = MOST_PATHS

    def stop_probs(self, round: Round) -> Floats:
        """[B, K, G+1]: P(just the first n tokens of path k are kept), of paths that share them for the lowest."""
        order, passes = depth_first(round), first_to_pass(round, trials(round).left)
        stop = np.zeros_like(passes)
        np.add.at(stop, (np.arange(len(stop))[:, None, None], order.node, np.arange(stop.shape[2])), passes)
        return stop

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: P(at least i are kept | the first i levels): the chance to end at a leaf where the tree is cut
        there, whatever grows on it. A node is a leaf of its own cut, and as it is left a node of all deeper ones."""
        reached, left = trials(round)
        kept = np.ones((len(left), round.drafted + 1))
        for level in range(1, round.drafted + 1):
            cut = np.concatenate([left[..., :level], reached[..., level, None]], axis=-1)
            kept[:, level] = first_to_pass(round, cut)[..., level].sum(1)
        return kept

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: the last law of the node that was kept."""
        draws = stopped(round, path, stop)
        law = np.array(draws.p)
        for child in children(draws, trials(round).reached[draws.row, path, stop]):
            law[child.of] = law_left(child.law, child.chance, child.q)
        return law

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the target's law."""
        return round.target_probs


class Trials(NamedTuple):
    """The chance c of each node, [B, K, G+1], at its lowest path; 0 where there is none."""

    reached: Floats  # as the node is reached
    left: Floats  # and as it is left: all its children have failed


@once
def trials(round: Round) -> Trials:
    """From the root down: what a child begins with does not depend on what is below it."""
    lowest = lowest_alike(round)
    node = lowest == numbers(round)
    node[..., 1:] &= has_draw(round)
    reached = np.zeros(lowest.shape, order="F")
    reached[:, 0, 0] = 1.0
    left = reached.copy(order="K")
    for level in range(round.drafted):
        row, path = indices(node[..., level] & (reached[..., level] > 0))  # below the others all is 0
        for draws in some_at_a_time(round, row, path, level):
            first = draws.along(lowest[..., 1:]) == draws.number  # of the draws of its token
            for child in children(draws, reached[draws.row, draws.path, level]):
                here, new = draws.row[child.of], first[child.of, child.draw]
                left[here, draws.path[child.of], level] = child.after
                reached[here[new], draws.path_of(child.of, child.draw)[new], level + 1] = child.begins()[new]
        left[..., level + 1] = reached[..., level + 1]
    return Trials(reached, left)


class Child(NamedTuple):
    """The next child of n nodes, which have come to the ``chance`` [n] and the ``law`` [n, V]."""

    of: Ints  # [n]: which of the nodes
    draw: Ints  # [n]: its column
    token: Ints  # [n]
    q: Floats  # [n, V]: the law that it was drawn from
    law: Floats
    chance: Floats
    after: Floats  # [n]: c of the node if the child fails

    def begins(self) -> Floats:
        """[n]: c of the child."""
        p, q = (taken(law, self.token) for law in (self.law, self.q))
        return np.minimum(self.chance * (p / np.maximum(q, TINY)), 1.0)


def children(draws: Draws, chance: Floats) -> Iterator[Child]:
    """The children of the nodes of ``draws``, which begin with the ``chance`` [N], in turn: each after the one before
    has failed."""
    of = np.flatnonzero(draws.count)
    law, chance = draws.at(of).p, chance[of]
    for turn in range(int(draws.count.max(initial=0))):
        draw = draws.order[of, turn]
        q = draws.law(of, draw)
        after = chance_left(law, chance, q)
        yield Child(of, draw, draws.tokens[of, draw], q, law, chance, after)
        on = np.flatnonzero(draws.count[of] > turn + 1)
        of, law, chance = of[on], law_left(law[on], chance[on], q[on]), after[on]


def chance_left(law: Floats, chance: Floats, q: Floats) -> Floats:
    """[N]: c_v after a child drawn from ``q`` [N, V] has failed."""
    mass = np.maximum(chance[:, None] * law - q, 0.0).sum(-1)
    asked = mass + (1 - chance)
    return np.divide(mass, asked, out=np.ones_like(mass), where=asked > 0)


def law_left(law: Floats, chance: Floats, q: Floats) -> Floats:
    """[N, V]: p_v after a child drawn from ``q`` [N, V] has failed."""
    return excess(law, q / np.maximum(chance, TINY)[:, None])  # [p - q/c]+ is [c p - q]+ but for its size


class DepthFirst(NamedTuple):
    """The paths in the order in which a traversal comes to their leaves, and what it leaves as it goes on."""

    node: Numbers  # [B, K, G+1]: the lowest path of the node at each depth of each path
    leaves: Booleans  # [B, K, G+1]: whether the next path has another node there


@once
def depth_first(round: Round) -> DepthFirst:
    """Siblings in the order of their lowest paths, and all below one before the next."""
    node = lowest_alike(round)
    mixed = np.flatnonzero((node[:, 1:] < node[:, :-1]).any((1, 2)))
    if len(mixed):
        some = node[mixed]
        for level in reversed(range(1, some.shape[2])):
            order = np.argsort(some[..., level], axis=1, kind="stable")
            some = np.take_along_axis(some, order[..., None], axis=1)
        node = node.copy(order="K")
        node[mixed] = some
    leaves = np.ones(node.shape, dtype=bool)
    leaves[:, :-1] = node[:, :-1] != node[:, 1:]
    return DepthFirst(node, leaves)


def first_to_pass(round: Round, chance: Floats) -> Floats:
    """[B, K, n]: P(the node at each depth of each path, in order, is the first that passes) if one is tried with its
    ``chance`` [B, K, n], at its lowest path, after all below it: as it is left."""
    node, leaves = (part[..., : chance.shape[2]] for part in depth_first(round))
    tried = np.take_along_axis(chance, node.astype(np.int64), axis=1) * leaves
    in_turn = tried[..., ::-1].reshape(len(tried), math.prod(tried.shape[1:]))  # path after path, from its leaf up
    none_before = np.ones_like(in_turn)
    none_before[:, 1:] = cumulative(1 - in_turn, np.multiply)[:, :-1]
    return (in_turn * none_before).reshape(tried.shape)[..., ::-1]
