"""Which tree to draft, by dynamic programming (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.1; for bounded
depth algorithm 4).

If the child of rank i is the one that is kept with the chance a_i, wherever it stands, a tree emits 1 + the sum over
its nodes of the product of a on the way to them. Best[m, l, b], the most that m nodes on l levels add below a node
whose children of rank under b are placed already, is the largest, over the y nodes that child b and all below it get,
of a_b (1 + Best[y-1, l-1, 0]) + Best[m-y, l, b+1], and 0.
"""

from collections.abc import Sequence

import numpy as np

from specexp.costs import Cost
from specexp.rounds import Floats, Ints, Work
from specexp.trees import Ranks, Tree


def best_tree(acceptance: Sequence[float], budget: int, gamma: int, cost: Cost) -> Tree:
    """The tree of at most ``budget`` nodes and ``gamma`` levels that is the fastest under ``cost``; of equals the
    smallest. It may be empty: then no draft pays."""
    most, first = tables(acceptance, budget, gamma)
    sizes = [(nodes, levels) for nodes in range(budget + 1) for levels in range(min(nodes, gamma) + 1)]
    speeds = [(1 + most[m, levels, 0]) / cost.step(Work(levels, m, m + 1)) for m, levels in sizes]
    nodes, levels = sizes[int(np.argmax(np.round(speeds, 12)))]
    return Tree.of_nodes(below(first, nodes, levels, ()), gamma)


def tables(acceptance: Sequence[float], budget: int, gamma: int) -> tuple[Floats, Ints]:
    """Best [budget+1, gamma+1, ranks+1], and how many nodes child b and all below it get there (0: it is left out)."""
    ranks = len(acceptance)
    most = np.zeros((budget + 1, gamma + 1, ranks + 1))
    first = np.zeros(most.shape, dtype=np.int64)
    for level in range(1, gamma + 1):
        for rank in reversed(range(ranks)):
            for nodes in range(1, budget + 1):
                given = np.arange(1, nodes + 1)
                gains = acceptance[rank] * (1 + most[given - 1, level - 1, 0]) + most[nodes - given, level, rank + 1]
                best = int(gains.argmax())
                if gains[best] > 0:
                    most[nodes, level, rank], first[nodes, level, rank] = gains[best], given[best]
    return most, first


def below(first: Ints, nodes: int, levels: int, root: Ranks) -> list[Ranks]:
    """The nodes below ``root`` of the best tree."""
    found: list[Ranks] = []
    for rank in range(first.shape[2]):
        given = int(first[nodes, levels, rank])
        if not given:
            break
        child = (*root, rank)
        found += [child, *below(first, given - 1, levels - 1, child)]
        nodes -= given
    return found
