"""The first drafted position of a step: how often a draft is kept there, the most that any lossless rule could keep,
and how many tokens a step drafts and verifies.

All drafts of the first position are from the context in which the step starts, so of independent ones the most that can
be kept has a closed form (``rules.transport.optimum``). Of other draws it has none, and none is reported.
"""

import numpy as np

from specexp.build import Experiment
from specexp.curves import certain
from specexp.engine import Players, Step
from specexp.enumeration import MOST_OUTCOMES, Enumerated
from specexp.models.pair import contexts_of, no_randomness
from specexp.positions import survivals
from specexp.rounds import Floats
from specexp.rules.transport import optimum
from specexp.siblings import independent
from specexp.statistics import Estimate, Moments

NAMES = ("optimum", "steps")
NONE = Estimate(None, None, None)


class Ceiling:
    """The optimum at the first position, averaged over the steps of a walk that it is shown; the units are steps where
    contexts are fresh, requests where they persist. It looks at none where the number is known exactly, or is none."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.draws = independent_draws(experiment.players, experiment.gamma)
        self.by_request = np.zeros((experiment.plan.requests, len(NAMES)))
        self.by_step = Moments.of(NAMES, np.zeros((0, len(NAMES))))

    def see(self, step: Step) -> None:
        """Adds one step of each stream."""
        if self.draws is None or self.experiment.enumerated is not None:
            return
        most = most_kept(step.round.target_probs[:, 0, 0], step.draft_laws[:, 0, 0], self.draws)
        units = np.column_stack([np.where(step.round.lengths > 0, most, 0.0), np.ones(len(most))])
        if self.experiment.players.pair.persistent:
            self.by_request += units
        else:
            self.by_step += Moments.of(NAMES, units)

    def estimate(self) -> Estimate:
        """The mean with its interval; without one where every outcome is summed."""
        enumerated = self.experiment.enumerated
        if self.draws is None:
            return NONE
        if enumerated is not None:
            return certain(exact_optimum(self.experiment.players, enumerated, self.draws))
        persistent = self.experiment.players.pair.persistent
        return (Moments.of(NAMES, self.by_request) if persistent else self.by_step).ratio(*NAMES)


def independent_draws(players: Players, gamma: int) -> int | None:
    """How many independent draws compete for the first position; None where there are none, where they depend on each
    other, or where the rule takes but one path."""
    first = sum(node.level == 0 for node in players.tree(gamma).nodes)
    alone = first == 1 or players.pair.siblings is independent
    return first if first and alone and players.rule.max_paths > 1 else None


def most_kept(p: Floats, q: Floats, draws: int) -> Floats:
    """[N]: the optimum of ``draws`` independent drafts from ``q`` [N, V] for the target ``p`` [N, V]."""
    return optimum(p, q, np.full(len(p), draws))


def exact_optimum(players: Players, enumerated: Enumerated, draws: int) -> float:
    """The optimum over the long-run law of the contexts in which steps start."""
    pair, numbers = players.pair, contexts_of(players.pair, MOST_OUTCOMES)
    assert numbers is not None  # each has been enumerated
    p, q = pair.next_laws(pair.start(numbers, no_randomness), len(numbers))
    return float(enumerated.step_starts @ most_kept(p, q, draws))


def first_position(
    experiment: Experiment, moments: Moments, ceiling: Ceiling
) -> tuple[dict[str, Estimate], dict[str, int | str | None]]:
    """The numbers of the first position, and of what a step drafts and verifies: those with an interval, the others."""
    work, (way, first) = experiment.work(experiment.gamma), acceptance_first(experiment, moments)
    return {"acceptance_first": first, "acceptance_optimum": ceiling.estimate()}, {
        "acceptance_first_source": way,
        "drafted_per_step": work.drafted,
        "verified_per_step": work.verified,
    }


def acceptance_first(experiment: Experiment, moments: Moments) -> tuple[str, Estimate]:
    """P(a draft is kept at the first position) by the best way that it is known; of no draft there is no number."""
    best, enumerated = survivals(experiment, moments)[0], experiment.enumerated
    if not experiment.work(experiment.gamma).drafted:
        return best.kind, NONE
    if best.kind != "exact" and enumerated is not None:
        return "exact", certain(kept_first(enumerated))
    return best.kind, best.estimate([1], lambda kept: kept)


def kept_first(enumerated: Enumerated) -> float:
    """P(a step keeps a draft), every outcome summed."""
    return float(sum(law.sum(1) @ enumerated.step_starts for law in enumerated.steps[1:]))
