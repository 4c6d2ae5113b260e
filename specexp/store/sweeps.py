"""A sweep as one table: a row a cell, the swept keys, then every metric that any cell has."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Config = dict[str, Any]


class CellRow(NamedTuple):
    """What the table says of one cell; `metrics` is empty unless the cell is done."""

    digest: str
    config: Config
    status: str
    reason: str | None
    metrics: Mapping[str, Any]


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (dotted key, value) of every leaf; a list is a leaf."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def value_of(config: Config, key: str) -> Any:
    """The value at a dotted key; a group (`rule`) is known by its member's name; None where the key is absent."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value.get("name") if isinstance(value, Mapping) else value


def is_said(key: str, value: Any) -> bool:
    """Whether a swept key's value is worth a word: a member's key without one is one that the cell's member lacks."""
    return value is not None or "." not in key


def telling(configs: Sequence[Config]) -> list[str]:
    """The dotted keys that tell cells apart, as few as will do: those that every cell has and on which they differ,
    then, of the keys that only some members have, those without which two cells would look the same."""
    leaves = [dict(flatten(config)) for config in configs]
    keys = list(dict.fromkeys(key.removesuffix(".name") for leaf in leaves for key in leaf))
    values = {key: [repr(value_of(config, key)) for config in configs] for key in keys}
    shared = [key for key in keys if all(key in leaf or f"{key}.name" in leaf for leaf in leaves)]
    found = [key for key in shared if len(set(values[key])) > 1]
    for key in keys:
        if key not in shared and _looks([*found, key], values) > _looks(found, values):
            found.append(key)
    return found


def _looks(keys: Sequence[str], values: Mapping[str, Sequence[str]]) -> int:
    """How many different cells these keys can tell."""
    return len(set(zip(*(values[key] for key in keys), strict=True)))


def common(configs: Sequence[Config]) -> dict[str, Any]:
    """The dotted keys, and their values, on which all configs agree."""
    if not configs:
        return {}
    first, *rest = [dict(flatten(config)) for config in configs]
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in rest)}


def sweep_content(name: str, swept: Mapping[str, Sequence[Any]], cells: Sequence[CellRow]) -> dict[str, Any]:
    """The content of sweep.json: nothing in it differs between two runs of one config."""
    return {
        "format": 1,
        "name": name,
        "fixed": common([row.config for row in cells]),
        "swept": {key: list(values) for key, values in swept.items()},
        "cells": [row.digest for row in cells],
    }


def sweep_table(keys: Sequence[str], cells: Sequence[CellRow]) -> tuple[list[str], list[list[Any]]]:
    """(header, rows) of sweep.csv: `cell,status,reason`, the swept keys as given, the union of all metrics, sorted.

    A metric of a swept key's name (`steps`) gives way to it.
    """
    metrics = sorted({metric for row in cells for metric in row.metrics} - set(keys))
    header = ["cell", "status", "reason", *keys, *metrics]
    return header, [_line(row, keys, metrics) for row in cells]


def _line(row: CellRow, keys: Sequence[str], metrics: Sequence[str]) -> list[Any]:
    swept = [value_of(row.config, key) for key in keys]
    return [row.digest, row.status, row.reason, *swept, *(row.metrics.get(metric) for metric in metrics)]
