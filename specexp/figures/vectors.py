"""A swept vector as a number: the first coordinate in which the vectors differ, where it tells them all apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from specexp.figures.points import number
from specexp.figures.series import Cell

Swept = Mapping[str, Sequence[Any]]


def by_coordinate(rows: Sequence[Cell], swept: Swept) -> tuple[list[Cell], Swept]:
    """The same sweep with each swept vector, ``target.probs``, replaced by its coordinate, ``target.probs[1]``."""
    told = {key: i for key, values in swept.items() if (i := telling_coordinate(values)) is not None}
    named = {key: f"{key}[{told[key]}]" if key in told else key for key in swept}
    found = {named[key]: [v[told[key]] for v in values] if key in told else values for key, values in swept.items()}
    return [_with_coordinates(row, told, named) for row in rows], found


def telling_coordinate(values: Sequence[Any]) -> int | None:
    """The first coordinate in which ``values`` differ; None where they are no vectors of numbers, of one length, or
    where two of them share it."""
    if not all(isinstance(v, list | tuple) and all(number(x) is not None for x in v) for v in values):
        return None
    if len({len(v) for v in values}) != 1:
        return None
    different = [i for i, coordinate in enumerate(zip(*values, strict=True)) if len(set(coordinate)) > 1]
    return different[0] if different and len({v[different[0]] for v in values}) == len(values) else None


def _with_coordinates(row: Cell, told: Mapping[str, int], named: Mapping[str, str]) -> Cell:
    values: Mapping[str, Any] = row
    vectors = {key: values[key] for key in told if isinstance(values.get(key), list | tuple)}
    return {**row, **{named[key]: vector[told[key]] for key, vector in vectors.items()}}
