"""How far a rule's text is from the target's own, whatever law the rule takes for its reference.

The bias of a rule in a context is the TV distance between the law of the first token that a step emits and the target's
law p there. It is 0 for a rule that is lossless with respect to p, and compares rules whose references differ.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from specexp.build import Experiment
from specexp.curves import Known, certain
from specexp.engine import Step
from specexp.enumeration import Enumerated
from specexp.models.pair import all_laws
from specexp.observe import Asides, Walked
from specexp.rounds import FirstToken, Floats, Local, Rule, undrafted
from specexp.statistics import NONE


def bias(experiment: Experiment, walked: Walked) -> Known:
    """The mean over the contexts in which steps start: by the algebra, else by every outcome of a small world, else
    over the walk's own; unknown for a rule that does not tell the law of its first token."""
    world, gamma = experiment.world, experiment.gamma
    if world is not None:
        by_context = distance(world.rule, world.target, world.draft, gamma)
        return "exact", certain(float(by_context @ world.step_starts(gamma)))
    own = against_target(experiment)
    if own is not None:
        return "exact", certain(float(own.bias(1) @ own.step_starts))
    return ("expected", walked.asides.ratio("bias", "steps")) if "bias" in walked.asides.names else (None, NONE)


def asides(experiment: Experiment) -> Asides:
    """What the walk keeps for it: nothing where it is known exactly, or not at all."""
    rule, gamma = experiment.players.rule, experiment.gamma
    if experiment.world is not None or experiment.enumerated is not None or not tells_first(rule, gamma):
        return {}
    return {"bias": partial(_at_the_start, rule, gamma)}


def _at_the_start(rule: Rule, gamma: int, step: Step) -> Floats:
    return distance(rule, step.round.target_probs[:, 0, 0], step.draft_laws[:, 0, 0], gamma)


def distance(rule: Rule, p: Floats, q: Floats, gamma: int) -> Floats:
    """[B]: TV distance between the law of a step's first token and p, in contexts of laws ``p``, ``q`` [B, V]."""
    return np.asarray(np.abs(first_law(rule, p, q, gamma) - p).sum(-1) / 2)


def tells_first(rule: Rule, gamma: int) -> bool:
    """Whether ``first_law`` can say it."""
    return gamma == 0 or isinstance(rule, Local | FirstToken)


def first_law(rule: Rule, p: Floats, q: Floats, gamma: int) -> Floats:
    """[B, V]: law of the first token of a step that drafts ``gamma`` tokens, averaged over its drafts."""
    if gamma == 0:
        none = np.zeros(len(p), dtype=np.int64)
        return rule.next_probs(undrafted(p, q), none, none)
    if isinstance(rule, FirstToken):
        return rule.first_law(p, q)
    assert isinstance(rule, Local)
    return rule.kept_mass(p, q) + rule.replaced_mass(p, q)


def against_target(experiment: Experiment) -> Enumerated | None:
    """Every outcome of a step, where they are few, with p in the place of the rule's reference; the very same object
    where p is the reference."""
    found = experiment.enumerated
    if found is None:
        return None
    p, _ = all_laws(experiment.players.pair)
    return found if np.array_equal(p, found.reference) else replace(found, reference=p)
