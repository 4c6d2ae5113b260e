"""Tokens per step against draft length, from one run: by the algebra where the world is solvable, from the averaged
survival where contexts are fresh, by replay of the target's text where they persist, else by a walk for each gamma."""

from collections.abc import Mapping
from math import inf

from specexp.build import QUICK_OUTCOMES, Experiment
from specexp.engine import WARM_UP
from specexp.enumeration import Enumerated, enumerate_steps, outcomes
from specexp.observe import Progress, expected_tokens, observe
from specexp.replay import Replayed, replay
from specexp.rounds import Local, Replayable
from specexp.statistics import NONE, Estimate, Moments
from specexp.target_only import Text

Curve = tuple[str, list[Estimate]]  # its kind, and tokens per step at gamma = 0, 1, .. gamma_max
Known = tuple[str | None, Estimate]  # how a number is known (exact or expected; None: it is not, or by definition)


def replayed(experiment: Experiment, text: Text | None) -> Replayed | None:
    """Every draft length along the target's text, where contexts persist and the rule can be replayed."""
    rule = experiment.players.rule
    if text is None or not isinstance(rule, Replayable):
        return None
    gammas = sorted({*range(experiment.gamma_max + 1), experiment.gamma})
    return replay(text.chances, rule, tuple(gammas), warm_up=WARM_UP)


def tokens_by_gamma(
    experiment: Experiment, moments: Moments, again: Replayed | None, progress: Progress | None
) -> Curve:
    """The curve, with the kind of its numbers: exact or expected."""
    gammas = range(experiment.gamma_max + 1)
    if experiment.world is not None:
        return "exact", [certain(experiment.world.tokens_per_step(gamma)) for gamma in gammas]
    summed = every_gamma(experiment)
    if summed is not None:
        return "exact", [certain(enumerated.tokens_per_step()) for enumerated in summed]
    if again is not None:
        by_gamma = (Moments.of(("steps", "tokens"), again.units(gamma)[:, :2]) for gamma in gammas)
        return "expected", [moments.ratio("tokens", "steps") for moments in by_gamma]
    if not experiment.players.pair.persistent and isinstance(experiment.players.rule, Local):
        return "expected", [fresh_tokens(moments, gamma) for gamma in gammas]
    return "expected", walked_tokens(experiment, progress)


def every_gamma(experiment: Experiment) -> list[Enumerated] | None:
    """Every outcome of a step at gamma = 0, 1, .. gamma_max; None unless they are few at each."""
    players, gammas = experiment.players, range(experiment.gamma_max + 1)
    if any((outcomes(players, gamma) or inf) > QUICK_OUTCOMES for gamma in gammas):
        return None
    found = [enumerate_steps(players, gamma, QUICK_OUTCOMES) for gamma in gammas]
    return [enumerated for enumerated in found if enumerated is not None]


def exact_tokens(experiment: Experiment) -> Estimate:
    """Tokens a step by the algebra, else by every outcome of a small world."""
    if experiment.world is not None:
        return certain(experiment.world.tokens_per_step(experiment.gamma))
    return NONE if experiment.enumerated is None else certain(experiment.enumerated.tokens_per_step())


def certain(value: float) -> Estimate:
    """A number without noise has no interval."""
    return Estimate(value, None, None)


def fresh_tokens(moments: Moments, gamma: int) -> Estimate:
    """1 + sum_{i<=gamma} E[survive_i]; beyond the columns that were averaged, positions are independent and alike, and
    each multiplies the survival by the mean acceptance."""
    reach = sum(name.startswith("survive_") for name in moments.names)
    columns = [f"survive_{i}" for i in range(1, min(gamma, reach) + 1)]

    def tokens(means: Mapping[str, float]) -> float:
        last = means["last"] if columns else 1.0
        beyond = sum(last * means["rate"] ** i for i in range(1, gamma - reach + 1))
        return 1 + means["kept"] + beyond

    return moments.sums(kept=columns, last=columns[-1:], rate=["rate"]).estimate(tokens)


def walked_tokens(experiment: Experiment, progress: Progress | None) -> list[Estimate]:
    """A walk for each gamma, each with its own random numbers' columns; one for all where contexts are fresh, what
    comes later in a draft plays no part, and a longer draft begins with the shorter one."""
    players, plan, last = experiment.players, experiment.plan, experiment.gamma_max
    grows = all(players.tree(gamma).is_part_of(players.tree(last)) for gamma in range(last))
    if players.rule.prefix_stable and not players.pair.persistent and grows:
        moments = observe(players, last, plan, last, progress=progress).moments
        return [fresh_tokens(moments, gamma) for gamma in range(last + 1)]
    parts = (part_of(progress, gamma, last + 1) for gamma in range(last + 1))
    walks = (expected_tokens(players, gamma, plan, part) for gamma, part in enumerate(parts))
    return [moments.ratio("expected", "counted") for moments in walks]


def part_of(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """``progress`` of one of several walks of one length, told of all of them."""
    if progress is None:
        return None
    return lambda done, total: progress(part * total + done, parts * total)


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """The estimate times a number without noise."""
    return Estimate(*(None if part is None else part * factor for part in estimate))
