"""From a config to an experiment: the only reader of the config's members. Types, ranges and the pairs that make no
sense are checked here; nothing behind it sees a config.

A member is a frozen dataclass whose fields are its YAML's keys. To add one: the dataclass, a line in its family's
table, a YAML (docs/extending.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Annotated, Any

from specexp import exact, plugins, values
from specexp.costs import COSTS, Cost
from specexp.engine import Plan, Players
from specexp.enumeration import MOST_OUTCOMES, Enumerated, enumerate_steps
from specexp.errors import SenselessPair, UserError
from specexp.lengths import LENGTHS, Shaped, TreeLength, curve_end
from specexp.models.derived import Alpha, Derivation, Noise, derived
from specexp.models.lookup import LookupDraft
from specexp.models.pair import Pair, uniform_prompts
from specexp.models.random import RandomTarget
from specexp.models.sharpened import Temperature, Truncated
from specexp.models.table import BigramDraft, BigramTarget, FixedDraft, FixedTarget
from specexp.models.text import TextDraft, TextTarget
from specexp.rounds import Work
from specexp.rules import RULES
from specexp.siblings import Scheme, independent
from specexp.trees import Tree

TARGETS: dict[str, Any] = {"random": RandomTarget, "fixed": FixedTarget, "bigram": BigramTarget, "text": TextTarget}
DRAFTS: dict[str, Any] = {
    "noise": Noise,
    "alpha": Alpha,
    "temperature": Temperature,
    "truncated": Truncated,
    "fixed": FixedDraft,
    "bigram": BigramDraft,
    "text": TextDraft,
    "lookup": LookupDraft,
}
FAMILIES: dict[str, Mapping[str, Any]] = {
    "target": TARGETS,
    "draft": DRAFTS,
    "rule": RULES,
    "length": LENGTHS,
    "cost": COSTS,
}

# Which targets a draft model of its own goes with. One that is derived from the target's law goes with every target.
PARTNERS = {"fixed": ("fixed",), "bigram": ("bigram",), "text": ("text",), "lookup": ("text",)}

# By draft.greedy: the word that makes the drafts of a position depend on each other, and the one that does not.
DEPENDENT = (("draft.replacement=false", "draft.replacement=true"), ("draft.greedy=true", "draft.greedy=false"))

QUICK_OUTCOMES = 20_000  # summed in every run, for they cost milliseconds
FRESH_REQUESTS = 1
PERSISTENT_REQUESTS = 64


@dataclass(frozen=True)
class Settings:
    """The keys at the config's top that a run reads."""

    gamma: Annotated[int, values.Range(0, 1024)] = 4
    gamma_max: Annotated[int, values.Range(0, 1024)] | None = None
    steps: Annotated[int, values.Range(1, 10**10)] = 5000
    requests: Annotated[int, values.Range(1, 10**5)] | None = None
    seed: Annotated[int, values.Range(0)] = 0
    audit: bool = False
    figures: Annotated[str, values.OneOf(("all", "png", "none"))] | None = None


@dataclass(frozen=True)
class Experiment:
    """Everything a run is made of."""

    players: Players
    cost: Cost
    gamma: int
    gamma_max: int
    plan: Plan
    audit: bool
    target: Any  # the member that the target model was made from
    rule_name: str

    def work(self, gamma: int) -> Work:
        """What a step of ``gamma`` levels drafts and verifies."""
        tree = self.players.tree(gamma)
        return Work(tree.depth, len(tree.nodes), len(tree.nodes) + 1)

    @cached_property
    def world(self) -> exact.World | None:
        """The exactly solvable world of this experiment, where there is one."""
        return exact.world(self.players.pair, self.players.rule)

    @cached_property
    def enumerated(self) -> Enumerated | None:
        """Every outcome of a step, where they are few (with ``audit``: not too many)."""
        return enumerate_steps(self.players, self.gamma, MOST_OUTCOMES if self.audit else QUICK_OUTCOMES)


def experiment(cfg: Mapping[str, Any]) -> Experiment:
    """The experiment that ``cfg``, a resolved config as plain data, describes. Raises UserError for a value that is not
    right and SenselessPair for members that make no sense together."""
    settings = values.read(Settings, {key: cfg[key] for key in Settings.__dataclass_fields__})
    members = {family: member(family, cfg[family]) for family in FAMILIES}
    names = {family: str(cfg[family]["name"]) for family in FAMILIES}
    refuse_senseless(names)
    pair = make_pair(members["target"], members["draft"], settings.seed)
    players = Players(pair, members["rule"], members["length"], shape_of(members["length"], members["cost"]))
    refuse_shape(names, players, members["draft"], settings.gamma)
    requests = settings.requests or (PERSISTENT_REQUESTS if pair.persistent else FRESH_REQUESTS)
    return Experiment(
        players=players,
        cost=members["cost"],
        gamma=settings.gamma,
        gamma_max=curve_end(settings.gamma, settings.gamma_max, names["length"]),
        plan=Plan(settings.seed, settings.steps, requests),
        audit=settings.audit,
        target=members["target"],
        rule_name=names["rule"],
    )


def member(family: str, node: Mapping[str, Any]) -> Any:
    """The member of ``family`` that ``node`` names, with its values checked."""
    table, name = FAMILIES[family], node["name"]
    if "import" in node:
        return plugins.member(family, node, table)
    if name not in table:
        raise UserError(f"{family}.name={name}: no such member; one of {', '.join(table)}")
    return values.read(table[name], node, family)


def goes_with(draft: str, target: str) -> bool:
    """Whether these two members make a pair."""
    return draft not in PARTNERS or target in PARTNERS[draft]


def refuse_senseless(names: Mapping[str, str]) -> None:
    """Raises SenselessPair, saying why, for models that are right by themselves and make no pair."""
    target, draft = names["target"], names["draft"]
    if not goes_with(draft, target):
        raise SenselessPair(
            f"target={target} draft={draft}: a {draft} draft is a model of its own over a {PARTNERS[draft][0]} "
            "target's vocabulary; "
            f"take draft={' or draft='.join(other for other in DRAFTS if goes_with(other, target))}"
        )


def shape_of(length: Any, cost: Cost) -> Callable[[int], Tree] | None:
    """The tree at each gamma, worked out once; None where paths stand side by side."""
    return cache(partial(length.tree, cost=cost)) if isinstance(length, Shaped) else None


def refuse_shape(names: Mapping[str, str], players: Players, draft: Any, gamma: int) -> None:
    """Raises SenselessPair for drafts that the rule cannot verify, or that cannot be drawn."""
    tree, rule, siblings = players.tree(gamma), players.rule, players.pair.siblings
    if isinstance(players.length, TreeLength):
        players.length.refuse_deeper(gamma, tree)
    if players.shape is not None and draft.paths > 1:
        raise SenselessPair(
            f"draft.paths={draft.paths}: length={names['length']} says how many drafts there are; take draft.paths=1"
        )
    if players.shape is None and tree.paths > rule.max_paths:
        right = f"rule={names['rule']} verifies at most {rule.max_paths}; take draft.paths={rule.max_paths}"
        raise SenselessPair(f"draft.paths={tree.paths}: {right}")
    if players.shape is not None and rule.max_paths == 1:
        right = f"rule={names['rule']} verifies one path of gamma tokens; take length=fixed, or rule=traversal"
        raise SenselessPair(f"length={names['length']}: {right}")
    if tree.paths > rule.max_paths:
        right = f"rule={names['rule']} verifies a tree of at most {rule.max_paths} leaves; take a smaller one"
        raise SenselessPair(f"length={names['length']}: {tree.paths} leaves; {right}")
    if tree.most_siblings < 2 or siblings is independent:
        return
    key, off = DEPENDENT[draft.greedy]
    if getattr(rule, "independent", False):
        right = f"rule={names['rule']} takes drafts as independent; take {off}, or rule=recursive"
        raise SenselessPair(f"{key}: {right}")
    if tree.most_siblings > players.pair.vocab:
        raise SenselessPair(
            f"{key}: {tree.most_siblings} different tokens out of {players.pair.vocab}; take fewer drafts"
        )


def make_pair(target: Any, draft: Any, seed: int) -> Pair:
    """The two models over one vocabulary, and where their streams begin."""
    model = target.model(seed)
    prompts = target.prompts if hasattr(target, "prompts") else uniform_prompts(model.vocab)
    paths, siblings = draft.paths, draft.siblings() if isinstance(draft, Scheme) else independent
    if isinstance(draft, Derivation):
        return Pair(model, derived(model, draft, seed, exact.MOST_CONTEXTS), True, prompts, paths, siblings)
    return Pair(model, draft.model(target, model.vocab, seed), False, prompts, paths, siblings)
