"""From an experiment to its numbers: one vocabulary of names for metrics.json, MLflow and the tables (docs/metrics.md).

Three ways to know a number are never mixed up: `exact` (algebra), `expected` (the law averaged over sampled contexts),
`sampled` (counted from emitted tokens).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from specexp import bias, drafted, exact, gain
from specexp.build import Experiment
from specexp.checks import distances, proofs
from specexp.closed_form import closed_form
from specexp.costs import CountsOperations, speedup
from specexp.curves import Curve, certain, exact_tokens, replayed, scaled, tokens_by_gamma
from specexp.models.ngram import Ngram, held_out_surprise
from specexp.models.pair import all_laws
from specexp.models.table import contexts
from specexp.models.text import TextTarget
from specexp.observe import Progress, Walked, observe
from specexp.positions import closed_form_rows, position_rows, survivals, token_rows
from specexp.replay import Replayed
from specexp.rounds import Ints
from specexp.rows import CurveRow, Metrics
from specexp.rules.single import Token
from specexp.sampling import draw, streams
from specexp.statistics import NONE, Estimate, Moments
from specexp.target_only import Text, text


@dataclass(frozen=True)
class Result:
    """``metrics``: name -> number, null, or (``*_source``) a word; ``curves``: the rows of curves.csv."""

    metrics: Metrics
    curves: list[CurveRow]


def measure(experiment: Experiment, progress: Progress | None = None) -> Result:
    """Runs the experiment and returns all that it can tell; ``progress(done, total)`` counts steps."""
    players, plan = experiment.players, experiment.plan
    proved = proofs(experiment)  # first: a false claim ends the run
    prompts = start_prompts(experiment)
    asides = {**gain.asides(experiment), **bias.asides(experiment), **drafted.asides(experiment)}
    walked = observe(players, experiment.gamma, plan, experiment.gamma_max, prompts, progress, asides)
    alone = text(players, plan) if players.pair.persistent else None
    again = replayed(experiment, alone)
    moments = all_moments(experiment, walked, alone, again)
    curve = tokens_by_gamma(experiment, moments, again, progress)
    estimates, metrics = single_numbers(experiment, moments, curve)
    metrics |= distances(experiment, walked, alone) | surprises(experiment) | proved
    metrics |= drafted.amounts(experiment)
    compared = {
        "gain_over_token": gain.gain_over_token(experiment, walked, alone, again),
        "bias": bias.bias(experiment, walked),
        "acceptance_first": drafted.acceptance_first(experiment, moments),
    }
    estimates |= {name: estimate for name, (_, estimate) in compared.items()}
    estimates["acceptance_optimum"] = drafted.acceptance_optimum(experiment, walked)
    metrics |= {f"{name}_source": source for name, (source, _) in compared.items() if source is not None}
    for name, estimate in estimates.items():
        metrics |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    ways = survivals(experiment, moments)
    rows = [*gamma_rows(experiment, curve), *position_rows(ways), *token_rows(ways)]
    rows += drafted.rank_rows(experiment, walked)
    if isinstance(experiment.players.rule, Token) and (value := estimates["alpha"].value) is not None:
        rows += closed_form_rows(value, experiment.gamma)
    return Result(dict(sorted(metrics.items())), rows)


def start_prompts(experiment: Experiment) -> Ints | None:
    """[requests, memory]: contexts drawn by the exact law of step starts; None where that is not known."""
    world, enumerated, plan, pair = experiment.world, experiment.enumerated, experiment.plan, experiment.players.pair
    if world is not None:
        law = world.step_starts(experiment.gamma)
    elif enumerated is not None:
        law = enumerated.step_starts
    else:
        return None
    starts = draw(law, streams(plan.seed)("start").random(plan.requests))
    return contexts(pair.vocab, pair.memory or 0)[starts]


def all_moments(experiment: Experiment, walked: Walked, alone: Text | None, again: Replayed | None) -> Moments:
    """The walk's moments, request by request with what the target's own text says: the overlap of the contexts that it
    meets, and, where it can be replayed, what is expected of a step (with less noise than along the walk)."""
    if alone is None or walked.units is None:
        return walked.moments
    names, units = walked.moments.names, walked.units
    if again is not None:
        units = np.hstack([units[:, : names.index("counted")], again.units(experiment.gamma)])
    met = np.column_stack([alone.overlap, np.full(len(alone.overlap), alone.contexts)])
    return Moments.of((*names, "overlap", "contexts"), np.hstack([units, met]))


def single_numbers(experiment: Experiment, moments: Moments, curve: Curve) -> tuple[dict[str, Estimate], Metrics]:
    """The run's numbers that have an interval, and those that have none."""
    kinds = tokens_per_step(experiment, moments)
    source, best = next((kind, estimate) for kind, estimate in kinds.items() if estimate.value is not None)
    estimates = {
        "alpha": alpha(experiment, moments),
        "acceptance_per_test": moments.ratio("accepted", "tested"),
        "acceptance_rate": moments.ratio("accepted", "drafted"),
        "tokens_per_step": kinds["sampled"],
        "tokens_per_step_expected": kinds["expected"],
        "tokens_per_step_exact": kinds["exact"],
        "speedup": scaled(best, speed(experiment, experiment.gamma)),
        **closed_forms(experiment, moments),
        **operations(experiment, best),
    }
    gamma_best, speedup_best = best_gamma(experiment, curve)
    metrics: Metrics = {
        "gamma_best": gamma_best,
        "speedup_source": source,
        "alpha_source": "expected" if experiment.world is None and experiment.enumerated is None else "exact",
        "steps": experiment.plan.total,
        "requests": experiment.plan.requests,
    }
    return estimates | {"speedup_best": speedup_best}, metrics


def tokens_per_step(experiment: Experiment, moments: Moments) -> dict[str, Estimate]:
    """Mean emitted tokens a step, the extra one included, by the way it is known; the best way first."""
    return {
        "exact": exact_tokens(experiment),
        "expected": moments.ratio("expected", "counted"),
        "sampled": moments.ratio("tokens", "steps"),
    }


def alpha(experiment: Experiment, moments: Moments) -> Estimate:
    """Mean of sum_x min(p, q) over the contexts that the target alone meets (Leviathan et al. 2022, definition 3.1 and
    theorem 3.5)."""
    if experiment.world is not None:
        return certain(experiment.world.alpha())
    if experiment.enumerated is not None:
        return certain(exact.alpha(*all_laws(experiment.players.pair), experiment.enumerated.reference))
    return moments.ratio("overlap", "contexts")


def closed_forms(experiment: Experiment, moments: Moments) -> dict[str, Estimate]:
    """(1 - alpha^(gamma+1)) / (1 - alpha), and how far it is from the best number of tokens a step, relatively: a
    finding, for the formula takes positions as independent. Null for any rule but `token`."""
    gamma, world = experiment.gamma, experiment.world
    if not isinstance(experiment.players.rule, Token):
        form = error = NONE
    elif world is not None:
        value = closed_form(world.alpha(), gamma)
        form, error = certain(value), certain(value / world.tokens_per_step(gamma) - 1)
    else:
        form = moments.select("overlap", "contexts").estimate(
            lambda m: closed_form(m["overlap"] / m["contexts"], gamma)
        )
        error = moments.select("overlap", "contexts", "expected", "counted").estimate(
            lambda m: closed_form(m["overlap"] / m["contexts"], gamma) / (m["expected"] / m["counted"]) - 1
        )
    return {"tokens_per_step_closed_form": form, "closed_form_error": error}


def operations(experiment: Experiment, tokens: Estimate) -> dict[str, Estimate]:
    """Operations a token over those of plain decoding (Leviathan et al. 2022, theorem 3.11: (1 - alpha)(gamma c^ +
    gamma + 1) / (1 - alpha^(gamma+1)) under the closed form), where the cost model counts them."""
    if not isinstance(experiment.cost, CountsOperations) or tokens.value is None:
        return {}
    step = experiment.cost.operations_of_step(experiment.work(experiment.gamma))
    low, high = (None if bound is None else step / bound for bound in (tokens.high, tokens.low))
    return {"operations_factor": Estimate(step / tokens.value, low, high)}


def speed(experiment: Experiment, gamma: int) -> float:
    """Speedup for each token a step at this draft length."""
    return speedup(1.0, experiment.cost, experiment.work(gamma))


def best_gamma(experiment: Experiment, curve: Curve) -> tuple[int, Estimate]:
    """The draft length of the largest speedup, the shortest of equals; 0 means: do not speculate."""
    speedups = [scaled(tokens, speed(experiment, gamma)) for gamma, tokens in enumerate(curve[1])]
    best = int(np.argmax([estimate.value or 0.0 for estimate in speedups]))
    return best, speedups[best]


def gamma_rows(experiment: Experiment, curve: Curve) -> Iterator[CurveRow]:
    """Tokens a step and speedup against the draft length."""
    kind, tokens = curve
    for gamma, estimate in enumerate(tokens):
        yield CurveRow("by_gamma/tokens_per_step", gamma, kind, *estimate)
        yield CurveRow("by_gamma/speedup", gamma, kind, *scaled(estimate, speed(experiment, gamma)))


def surprises(experiment: Experiment) -> Metrics:
    """How well the two models of a text foretell its held-out part; nothing for other worlds."""
    if not isinstance(experiment.target, TextTarget):
        return {}
    corpus, metrics = experiment.target.corpus(), Metrics()
    for name, model in (("target", experiment.players.pair.target), ("draft", experiment.players.pair.draft)):
        if isinstance(model, Ngram):
            surprise = held_out_surprise(model, corpus)
            metrics |= {f"perplexity_{name}": surprise.perplexity, f"bits_per_byte_{name}": surprise.bits_per_byte}
    return metrics
