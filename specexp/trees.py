"""Which drafts a step makes: paths that share their beginnings, a tree.

A node is one draw of the drafter; a path leads from the step's context to a leaf. Paths side by side, which share
nothing, are the tree whose root alone has several children.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specexp.errors import UserError
from specexp.rounds import Ints

MOST_PATHS = 64

Ranks = tuple[int, ...]  # a node by the ranks of its ancestors and its own among their siblings: (0, 1)


class Node(NamedTuple):
    """The draw of the token at ``level`` of ``path``, the lowest that shares it. ``elder`` are the paths of the
    siblings drawn before it, ``youngest`` says that none is drawn after it."""

    path: int
    level: int
    elder: list[int]
    youngest: bool


@dataclass(frozen=True, eq=False)
class Tree:
    """``owner`` [K, G]: the lowest path that shares the draw at each level of each path; -1 past a path's end."""

    owner: Ints

    @classmethod
    @cache
    def of_paths(cls, paths: int, gamma: int) -> "Tree":
        """``paths`` paths of ``gamma`` tokens that share nothing; one object, for each step asks what is in it."""
        return cls(np.broadcast_to(np.arange(paths)[:, None], (paths, gamma)))

    @classmethod
    def of_widths(cls, widths: Sequence[int], gamma: int | None = None) -> "Tree":
        """Every node of level i has ``widths[i]`` children; nothing is drafted from there to level ``gamma``."""
        levels = [product(*map(range, widths[: level + 1])) for level in range(len(widths))]
        return cls.of_nodes([node for level in levels for node in level], gamma or len(widths))

    @classmethod
    def of_nodes(cls, nodes: Iterable[Ranks], gamma: int) -> "Tree":
        """The tree of ``nodes``, by ranks, as far as level ``gamma``; ranks must have their elders and parents."""
        kept = sorted({node[:gamma] for node in nodes} - {()})
        parents = {node[:-1] for node in kept}
        leaves = [node for node in kept if node not in parents] or [()]
        first = {leaf[:level]: path for path, leaf in reversed(list(enumerate(leaves))) for level in range(gamma + 1)}
        rows = [[first[leaf[: g + 1]] if g < len(leaf) else -1 for g in range(gamma)] for leaf in leaves]
        return cls(np.array(rows, dtype=np.int64).reshape(len(leaves), gamma))

    @property
    def paths(self) -> int:
        """K."""
        return len(self.owner)

    @cached_property
    def depth(self) -> int:
        """Levels that have a node."""
        return int((self.owner >= 0).any(0).sum())

    @cached_property
    def shares_nothing(self) -> bool:
        """Whether its paths are whole and side by side."""
        return bool((self.owner == np.arange(self.paths)[:, None]).all())

    @cached_property
    def nodes(self) -> list[Node]:
        """Level by level, in the order in which they are drawn."""
        own = self.owner == np.arange(self.paths)[:, None]
        found = []
        for level in range(self.owner.shape[1]):
            drawn = np.flatnonzero(own[:, level]).tolist()
            parents = self.owner[:, level - 1] if level else np.zeros(self.paths, dtype=np.int64)
            for path in drawn:
                family = [other for other in drawn if parents[other] == parents[path]]
                place = family.index(path)
                found.append(Node(path, level, family[:place], place == len(family) - 1))
        return found

    @property
    def ranks(self) -> list[Ranks]:
        """The nodes by ranks, as ``of_nodes`` and a file have them."""
        rank = {(node.path, node.level): len(node.elder) for node in self.nodes}
        above = (enumerate(self.owner[node.path, : node.level + 1].tolist()) for node in self.nodes)
        return [tuple(rank[owner, level] for level, owner in path) for path in above]

    @cached_property
    def most_siblings(self) -> int:
        """The largest number of children of one node."""
        return max((1 + len(node.elder) for node in self.nodes), default=0)

    def cut(self, gamma: int) -> "Tree":
        """The nodes of the first ``gamma`` levels; paths that are alike then stay side by side."""
        return Tree(self.owner[:, :gamma])

    def is_part_of(self, longer: "Tree") -> bool:
        """Whether ``longer`` begins with just these draws."""
        return np.array_equal(self.owner, longer.cut(self.owner.shape[1]).owner)


def nodes_text(tree: Tree) -> str:
    """The file of its nodes, as ``read_nodes`` reads it."""
    return "".join(" ".join(map(str, ranks)) + "\n" for ranks in tree.ranks)


def read_nodes(path: str) -> list[Ranks]:
    """The nodes of a file, a line each: the ranks that lead to it, with spaces or commas between. UserError where the
    file, or a line of it, is not right."""
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not UTF-8 text"
        raise UserError(f"length.path={path}: cannot be read ({reason}); give a file with a line a node") from error
    given = {i: line.replace(",", " ").split() for i, line in enumerate(lines, start=1) if line.strip()}
    nodes = {i: tuple(map(int, ranks)) for i, ranks in given.items() if ranks and all(map(str.isdecimal, ranks))}
    known: set[Ranks] = set()
    for i in given:
        line = f"length.path={path}: line {i} is {lines[i - 1]!r}"
        if i not in nodes:
            raise UserError(f"{line}; must be ranks such as 0 1, from 0 up")
        if nodes[i] in known:
            raise UserError(f"{line}, as one before it; leave one out")
        known.add(nodes[i])
    for i, (*above, rank) in nodes.items():
        for kin, what in ((tuple(above), "parent"), ((*above, rank - 1), "elder sibling")):
            if kin and kin[-1] >= 0 and kin not in known:
                line = f"length.path={path}: line {i} is {lines[i - 1]!r}"
                raise UserError(f"{line}; add one for its {what}, {' '.join(map(str, kin))!r}")
    if not nodes:
        raise UserError(f"length.path={path}: no node in it; write a line a node, 0 for the first child of the root")
    return list(nodes.values())
