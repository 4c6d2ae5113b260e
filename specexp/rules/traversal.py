"""Traversal verification: block verification on a tree, from the leaves to the root."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from specexp.rounds import Floats, Ints, Round, select
from specexp.rules.single import excess
from specexp.sampling import TINY
from specexp.trees import MOST_PATHS, Node, Tree


class Visit(NamedTuple):
    """A node left for good: its lowest path, its depth, the chance [B] to end there given that nothing before it was
    kept, and the law [B, V] of the token that follows it."""

    path: int
    depth: int
    chance: Floats
    law: Floats


@dataclass(frozen=True)
class Traversal:
    """Keeps the first node that passes, from leaf to root (Weng et al. 2025, arXiv 2505.12398). Lossless; on a chain
    it is ``block``, and on a tree whose siblings differ it never keeps less than the top-down rule ``recursive``.
    Independent siblings may be one token: then only the first one's children count here, while ``recursive`` lets the
    children of both compete, and may keep more.

    A child x of v has c_x = min(1, c_v p_v(x)/q(x)), the root c = 1. All below x is tried first, then x with its c_x;
    if all that fails, v goes on with p_v = norm([c_v p_v - q]+) and c_v = S / (S + 1 - c_v), S = sum [c_v p_v - q]+ (1
    where that is 0/0), to its next child, and after its last to its own trial. The token after v follows its last p_v.
    q is the law that x was drawn from, given the children before it.
    """

    lossless: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    max_paths: ClassVar[int] = MOST_PATHS

    def stop_probs(self, round: Round) -> Floats:
        """[B, K, G+1]: P(just the first n tokens of path k are kept), of paths that share them for the lowest."""
        rows, paths, gamma = round.draft_tokens.shape
        stop, alive = np.zeros((rows, paths, gamma + 1)), np.ones(rows)
        for path, depth, chance, _ in visits(round):
            stop[:, path, depth] += alive * chance
            alive = alive * (1 - chance)
        return stop

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: P(at least i are kept | the first i levels): the chance to end at a leaf where the tree is cut
        there, whatever grows on it."""
        ends = [self.stop_probs(round.cut(level))[:, :, level].sum(1) for level in range(1, round.drafted + 1)]
        return np.column_stack([np.ones(len(round.lengths)), *ends])

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: the last law of the node that was kept."""
        law = np.array(select(round.target_probs, path, stop))
        for node, depth, _, left in visits(round):
            here = (stop == depth) & (path == node)
            law[here] = left[here]
        return law

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the target's law."""
        return round.target_probs


def visits(round: Round) -> Iterator[Visit]:
    """The nodes in the order of their trials, the root last."""
    tree = Tree(round.owner[0])
    children: dict[tuple[int, int], list[Node]] = {}
    for node in tree.nodes:
        parent = (int(tree.owner[node.path, node.level - 1]) if node.level else 0, node.level)
        children.setdefault(parent, []).append(node)
    yield from _visits(round, children, (0, 0), np.ones(len(round.lengths)))


def _visits(
    round: Round, children: dict[tuple[int, int], list[Node]], here: tuple[int, int], chance: Floats
) -> Iterator[Visit]:
    """All at and below the node ``here`` = (path, depth), whose own chance is ``chance`` [B] to begin with."""
    path, depth = here
    rows, law = np.arange(len(chance)), round.target_probs[:, path, depth]
    for child in children.get(here, ()):
        token = round.draft_tokens[:, child.path, depth]
        q = round.draft_probs[:, child.path, depth]
        drawn = depth < round.lengths
        ratio = np.where(drawn, law[rows, token] / np.maximum(q[rows, token], TINY), 0.0)
        yield from _visits(round, children, (child.path, depth + 1), np.minimum(chance * ratio, 1.0))
        left, less = left_of(law, chance, q)
        law, chance = np.where(drawn[:, None], left, law), np.where(drawn, less, chance)
    yield Visit(path, depth, chance, law)


def left_of(law: Floats, chance: Floats, q: Floats) -> tuple[Floats, Floats]:
    """(p_v [B, V], c_v [B]) after a child drawn from ``q`` [B, V] has failed."""
    mass = np.maximum(chance[:, None] * law - q, 0.0).sum(-1)
    asked = mass + (1 - chance)
    following = excess(law, q / np.maximum(chance, TINY)[:, None])  # [p - q/c]+ is [c p - q]+ but for its size
    return following, np.divide(mass, asked, out=np.ones_like(mass), where=asked > 0)
