"""The first drafted position of a step: how often a draft is kept there, the most that any lossless rule could keep,
and how many tokens a step drafts and verifies.

All drafts of the first position are from the context in which the step starts, so of independent ones the most that can
be kept has a closed form (``rules.transport.optimum``). Of other draws it is not worked out, and none is reported.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from specexp.build import Experiment
from specexp.curves import Known, certain
from specexp.engine import Players, Step
from specexp.enumeration import Enumerated
from specexp.models.pair import all_laws
from specexp.observe import Asides, Walked
from specexp.positions import survivals
from specexp.rounds import Booleans, Floats
from specexp.rows import CurveRow, Metrics
from specexp.rules.transport import optimum
from specexp.siblings import independent
from specexp.statistics import NONE, Estimate, Moments


def acceptance_first(experiment: Experiment, moments: Moments) -> Known:
    """P(a draft is kept at the first position) by the best way that it is known; of no draft there is no number."""
    best, enumerated = survivals(experiment, moments)[0], experiment.enumerated
    if not experiment.work(experiment.gamma).drafted:
        return None, NONE
    if best.kind != "exact" and enumerated is not None:
        return "exact", certain(kept_first(enumerated))
    return best.kind, best.estimate([1], lambda kept: kept)


def kept_first(enumerated: Enumerated) -> float:
    """P(a step keeps a draft), every outcome summed."""
    return float(sum(law.sum(1) @ enumerated.step_starts for law in enumerated.steps[1:]))


def acceptance_optimum(experiment: Experiment, walked: Walked) -> Estimate:
    """The most that could be kept at the first position: over the long-run law of the contexts in which steps start
    where every outcome is summed, else over the walk's own."""
    draws, enumerated = independent_draws(experiment.players, experiment.gamma), experiment.enumerated
    if draws is None:
        return NONE
    if enumerated is None:
        return walked.asides.ratio("optimum", "steps")
    return certain(float(enumerated.step_starts @ most_kept(*all_laws(experiment.players.pair), draws)))


def asides(experiment: Experiment) -> Asides:
    """What the walk keeps for it: the optimum where it is not known exactly, and which of several draws was kept."""
    draws, families = independent_draws(experiment.players, experiment.gamma), first_draws(experiment)
    optimum = {} if draws is None or experiment.enumerated is not None else {"optimum": partial(_at_the_start, draws)}
    return {**optimum, **{f"rank_{i}": partial(_kept_below, paths) for i, paths in enumerate(families, start=1)}}


def rank_rows(experiment: Experiment, walked: Walked) -> Iterator[CurveRow]:
    """P(the draw of rank i at the first position is the one that is kept): the acceptance vector of Sequoia's trees."""
    for rank, _ in enumerate(first_draws(experiment), start=1):
        yield CurveRow("by_rank/acceptance", rank, "expected", *walked.asides.ratio(f"rank_{rank}", "steps"))


def first_draws(experiment: Experiment) -> list[Booleans]:
    """[K] for each draw of the first position, if there are several: the paths that begin with it."""
    owner = experiment.players.tree(experiment.gamma).owner[:, :1]
    draws = np.unique(owner[owner >= 0])
    return [owner[:, 0] == draw for draw in draws] if len(draws) > 1 else []


def _kept_below(paths: Booleans, step: Step) -> Floats:
    return step.stop_probs[:, paths, 1:].sum((1, 2))


def _at_the_start(draws: int, step: Step) -> Floats:
    most = most_kept(step.round.target_probs[:, 0, 0], step.draft_laws[:, 0, 0], draws)
    return np.where(step.round.lengths > 0, most, 0.0)


def independent_draws(players: Players, gamma: int) -> int | None:
    """How many independent draws compete for the first position; None where there are none, where they depend on each
    other, or where the rule takes but one path."""
    first = sum(node.level == 0 for node in players.tree(gamma).nodes)
    alone = first == 1 or players.pair.siblings is independent
    return first if first and alone and players.rule.max_paths > 1 else None


def most_kept(p: Floats, q: Floats, draws: int) -> Floats:
    """[N]: the optimum of ``draws`` independent drafts from ``q`` [N, V] for the target ``p`` [N, V]."""
    return optimum(p, q, np.full(len(p), draws))


def amounts(experiment: Experiment) -> Metrics:
    """What a step drafts and verifies, in tokens and positions."""
    work = experiment.work(experiment.gamma)
    return {"drafted_per_step": work.drafted, "verified_per_step": work.verified}
