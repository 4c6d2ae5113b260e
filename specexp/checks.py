"""Is the stream what it should be: its distance from the target's own, the ranked test, every outcome summed."""

from specexp.audit import audit, refuse_false_claim
from specexp.bias import against_target
from specexp.build import Experiment
from specexp.enumeration import Enumerated
from specexp.observe import Walked
from specexp.rows import Metrics
from specexp.statistics.distance import tv_distance, tv_noise_floor
from specexp.statistics.ranked import ranked_test
from specexp.target_only import Text, fresh_counts


def distances(experiment: Experiment, walked: Walked, alone: Text | None) -> Metrics:
    """The emitted stream against the target's own (the notebook's check, with its noise floor) and against the law it
    should have, by rank."""
    players, emitted = experiment.players, walked.counts
    other = alone.counts if alone else fresh_counts(players.pair, players.rule, experiment.plan, emitted.total)
    ranked = ranked_test(walked.ranked)
    return {
        "emitted_tokens": emitted.total,
        "tv_distance": tv_distance(emitted, other),
        "tv_noise_floor": tv_noise_floor(emitted, other),
        "tv_ranked": ranked.tv_ranked,
        "tv_ranked_noise_floor": ranked.tv_ranked_noise_floor,
        "lossless_pvalue": ranked.pvalue,
        **{f"lossless_pvalue_{part}": pvalue for part, pvalue in ranked.pvalues.items()},
    }


def proofs(experiment: Experiment) -> Metrics:
    """``tv_exact``: the bias of the next max(2, gamma+1) tokens' joint law, by enumeration, from the contexts in which
    steps start, ``tv_exact_target`` the same against the target's own law in place of the rule's reference; null where
    the world is too large. With audit=true, also the largest bias over small worlds; UserError for a rule that claims
    to be lossless and is not."""
    players, gamma = experiment.players, experiment.gamma
    enumerated, own = experiment.enumerated, against_target(experiment)
    metrics: Metrics = {"tv_exact": None, "tv_exact_target": None}
    if enumerated is not None and own is not None:
        metrics["tv_exact"] = metrics["tv_exact_target"] = joint_bias(enumerated, gamma)
        if own is not enumerated:
            metrics["tv_exact_target"] = joint_bias(own, gamma)
    if experiment.audit:
        verdict = audit(players, gamma, experiment.plan.seed)
        refuse_false_claim(players, verdict, experiment.rule_name)
        metrics["audit_bias"] = verdict.bias
    return metrics


def joint_bias(enumerated: Enumerated, gamma: int) -> float:
    """TV distance of the next max(2, gamma+1) tokens' joint law, averaged over the contexts in which steps start."""
    return float(enumerated.bias(max(2, gamma + 1)) @ enumerated.step_starts)
