"""Traversal verification: block verification on a tree, from the leaves to the root."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from specexp.rounds import Floats, Ints, Round, select
from specexp.rules.draws import Numbers, lowest_alike
from specexp.rules.single import excess
from specexp.sampling import TINY
from specexp.trees import MOST_PATHS


class Visit(NamedTuple):
    """A node in some rows [n], when it is reached, or left for good: its lowest path, its depth, the chance [n] to end
    there given that nothing before it was kept, and the law [n, V] of the token that follows it."""

    left: bool
    rows: Ints
    path: int
    depth: int
    chance: Floats
    law: Floats


Walk = Iterator["Visit | Walk"]  # the visits of a node, and the walks below it where they belong


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
        rows, paths, gamma = round.draft_tokens.shape
        stop, alive = np.zeros((rows, paths, gamma + 1)), np.ones(rows)
        for visit in visits(round):
            if visit.left:
                stop[visit.rows, visit.path, visit.depth] = alive[visit.rows] * visit.chance
                alive[visit.rows] *= 1 - visit.chance
        return stop

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: P(at least i are kept | the first i levels): the chance to end at a leaf where the tree is cut
        there, whatever grows on it. A node is a leaf of its own cut, and as it is left a node of all deeper ones."""
        kept = np.zeros((len(round.lengths), round.drafted + 1))
        alive = np.ones_like(kept)  # P(nothing was kept so far), in each cut
        for visit in visits(round):
            rows, depth = visit.rows, visit.depth
            if visit.left:
                alive[rows, depth + 1 :] *= (1 - visit.chance)[:, None]
            else:
                kept[rows, depth] += alive[rows, depth] * visit.chance
                alive[rows, depth] *= 1 - visit.chance
        return kept

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: the last law of the node that was kept."""
        law = np.array(select(round.target_probs, path, stop))
        for visit in visits(round):
            here = (stop[visit.rows] == visit.depth) & (path[visit.rows] == visit.path)
            law[visit.rows[here]] = visit.law[here]
        return law

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the target's law."""
        return round.target_probs


def visits(round: Round) -> Iterator[Visit]:
    """The nodes in the order of their trials, the root last; each is told of when it is reached, too."""
    rows = len(round.lengths)
    walks = [_walk(round, lowest_alike(round), np.arange(rows), (0, 0), np.ones(rows))]
    while walks:  # in place of a recursion, which long drafts would exhaust
        found = next(walks[-1], None)
        if found is None:
            walks.pop()
        elif isinstance(found, Visit):
            yield found
        else:
            walks.append(found)


def _walk(round: Round, lowest: Numbers, rows: Ints, node: tuple[int, int], chance: Floats) -> Walk:
    """All at and below ``node`` = (lowest path, depth) in ``rows`` [n], whose own chance is ``chance`` [n] to begin
    with; ``lowest`` [B, K, G+1] are the lowest paths with the same n tokens."""
    path, depth = node
    law = round.target_probs[rows, path, depth]
    yield Visit(False, rows, path, depth, chance, law)
    for child in range(round.owner.shape[1]) if depth < round.drafted else ():
        drawn = (round.owner[rows, child, depth] == child) & (depth < round.lengths[rows])
        mine = np.flatnonzero(drawn & (lowest[rows, child, depth] == path))
        if not len(mine):
            continue
        here = rows[mine]
        token, q = round.draft_tokens[here, child, depth], round.draft_probs[here, child, depth]
        first = lowest[here, child, depth + 1] == child  # of the draws of its token
        ratio = law[mine, token] / np.maximum(q[np.arange(len(mine)), token], TINY)
        below = np.minimum(chance[mine] * ratio, 1.0)[first]
        yield _walk(round, lowest, here[first], (child, depth + 1), below)
        law[mine], chance[mine] = left_of(law[mine], chance[mine], q)
    yield Visit(True, rows, path, depth, chance, law)


def left_of(law: Floats, chance: Floats, q: Floats) -> tuple[Floats, Floats]:
    """(p_v [B, V], c_v [B]) after a child drawn from ``q`` [B, V] has failed."""
    mass = np.maximum(chance[:, None] * law - q, 0.0).sum(-1)
    asked = mass + (1 - chance)
    following = excess(law, q / np.maximum(chance, TINY)[:, None])  # [p - q/c]+ is [c p - q]+ but for its size
    return following, np.divide(mass, asked, out=np.ones_like(mass), where=asked > 0)
