"""How many tokens are drafted in each round, and in which shape.

A member says how long a round's draft is; one that also has ``tree`` says which drafts share their beginnings.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

import numpy as np

from specexp.costs import Cost
from specexp.errors import SenselessPair, UserError
from specexp.rounds import Ints
from specexp.sequoia import best_tree
from specexp.trees import MOST_PATHS, Tree, read_nodes
from specexp.values import Range, shown


class Length(Protocol):
    def lengths(self, gamma: int, rows: int) -> Ints:
        """[B]: tokens to draft in each of ``rows`` rounds, at most ``gamma``."""
        ...


@runtime_checkable
class Shaped(Protocol):
    """A length that says which tree is drafted, in place of ``draft.paths`` paths side by side."""

    def tree(self, gamma: int, cost: Cost) -> Tree:
        """The tree of at most ``gamma`` levels."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same gamma in every round."""

    def lengths(self, gamma: int, rows: int) -> Ints:
        return np.full(rows, gamma)


@dataclass(frozen=True)
class TreeLength(Fixed):
    """The same tree in every round, as far as level gamma. ``widths``: each node of level i has widths[i] children.
    ``path``: a file with a line a node, the ranks that lead to it (``0``, ``0 1``; 0 is the child that is drawn
    first), in place of the widths."""

    widths: tuple[int, ...] | None = (2, 2, 1, 1)
    path: str | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            return
        given = f"length.widths={shown(self.widths)}"
        if not self.widths or not all(isinstance(w, int) and not isinstance(w, bool) and w >= 1 for w in self.widths):
            right = "a list of whole numbers >= 1, the children of a node of each level"
            raise UserError(f"{given}: must be {right}, unless length.path names a file of nodes")
        if np.prod(self.widths, dtype=float) > MOST_PATHS:
            raise UserError(f"{given}: makes {np.prod(self.widths, dtype=float):.0f} paths; take at most {MOST_PATHS}")

    def tree(self, gamma: int, cost: Cost) -> Tree:
        if self.path is not None:
            return Tree.of_nodes(read_nodes(self.path), gamma)
        return Tree.of_widths((self.widths or ())[:gamma], gamma)

    def refuse_deeper(self, gamma: int, tree: Tree) -> None:
        """Raises SenselessPair where ``tree``, this one as far as ``gamma``, ends before."""
        if tree.depth < gamma:
            given = f"length.widths={shown(self.widths)}" if self.path is None else f"length.path={self.path}"
            raise SenselessPair(f"gamma={gamma}: {given} is a tree of {tree.depth} levels; take gamma={tree.depth}")


@dataclass(frozen=True)
class Sequoia(Fixed):
    """The tree with the best speedup under the run's cost model, of at most ``budget`` drafted tokens and gamma levels,
    if the child of rank i is the one that is kept with the chance ``acceptance[i]``, wherever it stands (Chen et al.
    2024, arXiv 2402.12374, section 3.1)."""

    acceptance: tuple[float, ...] = (0.6, 0.2, 0.1, 0.05)
    budget: Annotated[int, Range(1, MOST_PATHS)] = 16

    def __post_init__(self) -> None:
        given = f"length.acceptance={shown(self.acceptance)}"
        numbers = all(isinstance(a, int | float) and not isinstance(a, bool) and 0 <= a <= 1 for a in self.acceptance)
        if not self.acceptance or not numbers or sum(self.acceptance) > 1 + 1e-9:
            raise UserError(f"{given}: must be a list of chances that add up to at most 1, the first child's first")

    def tree(self, gamma: int, cost: Cost) -> Tree:
        return best_tree(tuple(map(float, self.acceptance)), self.budget, gamma, cost)


def curve_end(gamma: int, gamma_max: int | None, length: str | None) -> int:
    """How far the curves by gamma go: to ``gamma_max``, or without one to 16, or gamma where that is more, or where the
    drafts of this ``length`` end."""
    if gamma_max is not None:
        return gamma_max
    return max(gamma, 16) if goes_on(length) else gamma


def goes_on(length: str | None) -> bool:
    """Whether a larger gamma makes longer drafts of this member: a given tree has the levels that it has."""
    return length != "tree"


LENGTHS = {"fixed": Fixed, "tree": TreeLength, "sequoia": Sequoia}
