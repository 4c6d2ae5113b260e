"""How the drafts were made and paid, as the note under a figure says it."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def dotted(config: Mapping[str, Any]) -> dict[str, Any]:
    """A run's config by dotted keys, ``draft.paths``, as a sweep's shared keys are."""
    groups = {group: node for group, node in config.items() if isinstance(node, Mapping)}
    return {f"{group}.{key}": value for group, node in groups.items() for key, value in node.items()}


def how_drafted(keys: Mapping[str, Any]) -> list[str]:
    """What is not the default of one path, a token a pass: ``4 paths``, ``without replacement``, ``tree [2, 1]``;
    ``keys`` are dotted, and one that is missing (it was swept) is not told."""
    paths = keys.get("draft.paths") or 1
    told = {
        f"{paths} paths": paths > 1,
        "without replacement": keys.get("draft.replacement") is False,
        "greedy drafts": keys.get("draft.greedy") is True,
        length(keys): keys.get("length.name", "fixed") != "fixed",
        "one pass a level": keys.get("cost.batch") is True,
    }
    return [part for part, is_so in told.items() if is_so]


def length(keys: Mapping[str, Any]) -> str:
    """The shape of the drafts: ``tree [2, 2, 1, 1]``, ``tree from FILE``, ``sequoia tree``."""
    name = keys.get("length.name")
    if name != "tree":
        return "sequoia tree" if name == "sequoia" else f"{name} length"
    if keys.get("length.path"):
        return f"tree from {PurePath(keys['length.path']).name}"
    is_known = "length.widths" in keys and "length.path" in keys  # neither was swept
    return f"tree {list(keys['length.widths'])}" if is_known else "tree"
