"""Cells that differ in nothing but the seed are replicates: their mean, with an interval over seeds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specexp.statistics import Moments

Row = Mapping[str, Any]


def summary(keys: Iterable[str], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A row for each combination of the swept ``keys`` other than seed: these keys, ``seeds`` (how many are done), and
    the mean over seeds of each metric that has an interval, with Student's over them as ``_low``, ``_high`` (95 %).

    ``rows`` are sweep.csv's. Empty where no combination has several seeds that are done.
    """
    others = [key for key in keys if key != "seed"]
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] == "done":
            found[repr([row.get(key) for key in others])].append(row)
    return [_mean(others, cells) for cells in found.values() if len({cell.get("seed") for cell in cells}) > 1]


def _mean(keys: Sequence[str], cells: Sequence[Row]) -> dict[str, Any]:
    mean: dict[str, Any] = {key: cells[0].get(key) for key in keys} | {"seeds": len(cells)}
    for metric in sorted(key.removesuffix("_low") for key in cells[0] if key.endswith("_low")):
        values = [[float(cell[metric])] for cell in cells if cell.get(metric) is not None]
        if len(values) == len(cells):
            estimate = Moments.of(["value"], values).mean("value")
            mean |= {metric: estimate.value, f"{metric}_low": estimate.low, f"{metric}_high": estimate.high}
    return mean
