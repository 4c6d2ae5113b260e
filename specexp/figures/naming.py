"""Some of a sweep's cells, named so that no other cell is meant."""

from collections.abc import Sequence
from itertools import combinations

from specexp.figures.series import Cell, labelled, written

MOST_NAMES = 8


def apart(some: Sequence[Cell], rows: Sequence[Cell], keys: Sequence[str]) -> str:
    """The cells ``some`` by the fewest of the swept ``keys`` whose values no other of ``rows`` has: ``rule=greedy``
    where all its cells are meant, ``draft.paths=4`` where they have that in common, else each by all keys."""
    others = [row for row in rows if row not in some]
    chosen = next((few for few in subsets(keys) if tells(few, some, others)), list(keys))
    names = names_of(some, chosen)
    more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*names[:MOST_NAMES], *more])


def subsets(keys: Sequence[str]) -> list[list[str]]:
    """Some of the keys, the fewest first, and of as many the first ones."""
    return [list(few) for count in range(1, len(keys) + 1) for few in combinations(keys, count)]


def tells(keys: Sequence[str], some: Sequence[Cell], others: Sequence[Cell]) -> bool:
    """Whether each of the cells has a name by these keys, and no other has it."""
    names = names_of(some, keys)
    return all(names) and not set(names) & set(names_of(others, keys))


def names_of(rows: Sequence[Cell], keys: Sequence[str]) -> list[str]:
    """The cells' names by these keys, each once."""
    return list(dict.fromkeys(labelled(keys, [written(row.get(key)) for key in keys]) for row in rows))
