"""How the children of one node are drawn: independently, each another token, or the likeliest and one at random.

Each scheme says of a child the law that it is drawn from, given q and the siblings drawn before it. That law, not q, is
what a rule must test the child against.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.errors import UserError
from specexp.rounds import Floats, Ints
from specexp.sampling import draw
from specexp.trees import Tree
from specexp.values import Range

Siblings = Callable[[Floats, Ints, bool], Floats]  # (q [B, V], elder tokens [B, n], youngest) -> [B, V]


def independent(q: Floats, elder: Ints, youngest: bool) -> Floats:
    """Each child is drawn from q, whatever the others are."""
    return q


def distinct(q: Floats, elder: Ints, youngest: bool) -> Floats:
    """Without replacement: q without the tokens that are taken (Chen et al. 2024, Sequoia, algorithm 2); where q gives
    no chance to the others, any of them."""
    left = np.array(q, dtype=np.float64)
    np.put_along_axis(left, elder, 0.0, axis=-1)
    total = left.sum(-1, keepdims=True)
    free = np.ones_like(left)
    np.put_along_axis(free, elder, 0.0, axis=-1)
    left = np.where(total > 0, left, free)
    return left / left.sum(-1, keepdims=True)


def greedy(q: Floats, elder: Ints, youngest: bool) -> Floats:
    """The likeliest tokens of q, and the last child at random from the others (Hu et al. 2025, arXiv 2502.18779)."""
    left = distinct(q, elder, youngest)
    return left if youngest else (np.arange(left.shape[-1]) == left.argmax(-1)[..., None]).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """What every draft member says of its draws: ``paths`` side by side, and how the children of one node (the first
    tokens of the paths, for one) are drawn: with ``replacement`` independently, without it all different; ``greedy``:
    the likeliest ones, and the last at random from the others."""

    paths: Annotated[int, Range(1)] = 1
    replacement: bool = True
    greedy: bool = False

    def __post_init__(self) -> None:
        if self.greedy and not self.replacement:
            raise UserError("draft.greedy=true: its drafts are all different as they are; leave draft.replacement=true")

    def siblings(self) -> Siblings:
        return greedy if self.greedy else independent if self.replacement else distinct


def drawn_from(laws: Floats, tokens: Ints, tree: Tree, siblings: Siblings) -> Floats:
    """[B, K, G+1, V]: the law that each of ``tokens`` [B, K, G] was drawn from, where ``laws`` are the drafter's own
    along its path; where nothing is drawn, and after the last token, the drafter's own."""
    if siblings is independent:
        return laws
    drawn = np.array(laws)
    for path, level, elder, youngest in tree.nodes:
        drawn[:, path, level] = siblings(laws[:, path, level], tokens[:, elder, level], youngest)
        shared = tree.owner[:, level] == path
        drawn[:, shared, level] = drawn[:, path, level][:, None]
    return drawn


def draw_level(law: Floats, uniforms: Floats, tree: Tree, level: int, siblings: Siblings) -> Ints:
    """[B, K]: the tokens of one level of every path, drawn from the drafter's ``law`` [B, K, V] with ``uniforms``
    [B, K]; paths that share a draw have its token, and 0 where a path has ended."""
    if siblings is independent:
        drawn = draw(law, uniforms)
    else:
        drawn = np.zeros(uniforms.shape, dtype=np.int64)
        for path, at, elder, youngest in tree.nodes:
            if at == level:
                drawn[:, path] = draw(siblings(law[:, path], drawn[:, elder], youngest), uniforms[:, path])
    owner = tree.owner[:, level]
    return np.where(owner >= 0, drawn[:, owner], 0)


def draw_levels(laws: Floats, uniforms: Floats, tree: Tree, siblings: Siblings) -> Ints:
    """[B, K, G]: the tokens of all levels, where the drafter's ``laws`` [B, K, G+1, V] do not depend on them."""
    if siblings is independent and tree.shares_nothing:
        return draw(laws[:, :, :-1], uniforms)
    levels = range(uniforms.shape[2])
    drawn = [draw_level(laws[:, :, g], uniforms[..., g], tree, g, siblings) for g in levels]
    return np.stack(drawn, axis=-1) if drawn else np.zeros(uniforms.shape, dtype=np.int64)
