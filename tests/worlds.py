"""Small worlds for the tests, with every edge of what a law can be; configs as plain data; rules with their options."""

from dataclasses import fields, replace
from itertools import product
from typing import Any, get_type_hints

import numpy as np

from specexp import build
from specexp.engine import Players
from specexp.lengths import Fixed
from specexp.models.pair import Pair, uniform_prompts
from specexp.models.table import Table
from specexp.rules import RULES
from specexp.siblings import Siblings, distinct, greedy, independent
from specexp.trees import Tree
from specexp.values import OneOf

FAMILY_DEFAULTS = {
    "target": "random",
    "draft": "noise",
    "rule": "token",
    "length": "fixed",
    "cost": "milliseconds",
}


def config(**given: Any) -> dict[str, Any]:
    """A config as plain data: top-level keys and members by name (``rule="greedy"``), a member's keys with two
    underscores (``target__vocab=3``), all else by its default."""
    cfg: dict[str, Any] = {field.name: field.default for field in fields(build.Settings)}
    for family, default in FAMILY_DEFAULTS.items():
        name = given.pop(family, default)
        cfg[family] = {"name": name, **{field.name: field.default for field in fields(build.FAMILIES[family][name])}}
    for key, value in given.items():
        node, _, leaf = key.rpartition("__")
        (cfg[node] if node else cfg)[leaf] = value
    return cfg


def experiment(**given: Any) -> build.Experiment:
    return build.experiment(config(**given))


def table_pair(p, q, memory=1, paths=1) -> Pair:
    p, q = np.asarray(p, float), np.asarray(q, float)
    return Pair(Table(p, memory), Table(q, memory), False, uniform_prompts(p.shape[1]), paths)


def players(rule, p, q, memory=1, paths=1) -> Players:
    return Players(table_pair(p, q, memory, paths), rule, Fixed())


def tree_players(rule, item, tree: Tree, siblings: Siblings = independent) -> Players:
    """Players of the world ``item`` that draft ``tree``, its siblings drawn by a scheme."""
    game = players(rule, *item)
    return replace(game, pair=replace(game.pair, siblings=siblings), shape=tree.cut)


def drawn(vocab, memory, seed, concentration=1.0):
    """(p, q, memory) with Dirichlet rows: a small concentration makes laws that are nearly one-hot."""
    rng = np.random.default_rng(seed)
    return (*rng.dirichlet(np.full(vocab, concentration), (2, vocab**memory)), memory)


def _edges():
    p, q, _ = drawn(3, 1, 100)
    eye, third = np.eye(3), np.full((1, 3), 1 / 3)
    thinned = p * [0, 1, 1]
    thinned /= thinned.sum(1, keepdims=True)
    tiny = np.array([[1e-300, 0.25, 0.75], [0.5, 1e-300, 0.5], [1.0, 1e-300, 1e-300]])
    left, right = np.tile([0.25, 0.75, 0, 0], (4, 1)), np.tile([0, 0, 0.5, 0.5], (4, 1))
    return {
        "p = q": (p, p, 1),
        "p = q = one-hot": (eye, eye, 1),
        "q one-hot": (p, eye, 1),
        "p one-hot": (eye, q, 1),
        "one-hot and disjoint": (eye, eye[[1, 2, 0]], 1),
        "disjoint supports": (left, right, 1),
        "q excludes a token of p": (p, thinned, 1),
        "p excludes a token of q": (thinned, q, 1),
        "1e-300 in p": (tiny, q, 1),
        "1e-300 in q": (p, tiny, 1),
        "1e-300 in both": (tiny, tiny[[1, 2, 0]], 1),
        "uniform and equal": (third, third, 0),
        "one token": (np.ones((1, 1)), np.ones((1, 1)), 0),
        "one token that is remembered": (np.ones((1, 1)), np.ones((1, 1)), 1),
        "two tokens, two classes": (np.eye(2), np.full((2, 2), 0.5), 1),
        "a cycle": (eye[[1, 2, 0]], q, 1),
    }


WORLDS = {
    "worked": (np.array([[0.4, 0.3, 0.2, 0.1]]), np.array([[0.1, 0.2, 0.3, 0.4]]), 0),
    **{f"drawn V={v} memory={m}": drawn(v, m, 7 * v + m) for v, m in ((2, 0), (3, 0), (5, 0), (2, 1), (3, 1), (4, 1))},
    **{f"nearly one-hot V={v} memory={m}": drawn(v, m, 50 + v, 0.1) for v, m in ((3, 0), (3, 1))},
    "two tokens remembered": drawn(2, 2, 5),
    **_edges(),
}


def rules_of(name: str) -> list[Any]:
    """A rule of the table with its defaults, one for each way to choose its words."""
    member = RULES[name]
    hints = get_type_hints(member, include_extras=True)
    words = {
        field.name: limit.words
        for field in fields(member)
        for limit in getattr(hints[field.name], "__metadata__", ())
        if isinstance(limit, OneOf)
    }
    return [member(**dict(zip(words, chosen, strict=True))) for chosen in product(*words.values())]


ALL_RULES = {repr(rule): rule for name in RULES for rule in rules_of(name)}
LOSSLESS = {name: rule for name, rule in ALL_RULES.items() if rule.lossless}
SEVERAL = {name: rule for name, rule in LOSSLESS.items() if rule.max_paths > 1}  # rules that verify several drafts


def schemes_of(rule) -> tuple[Siblings, ...]:
    """The ways to draw siblings that the rule can verify."""
    return (independent,) if getattr(rule, "independent", False) else (independent, distinct, greedy)
