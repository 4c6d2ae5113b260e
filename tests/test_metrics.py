"""The whole pipeline: the notebook's numbers, published numbers, coverage, mistakes caught, every edge."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import chisquare, norm
from worlds import experiment

from specexp import build, exact, observe, target_only
from specexp.closed_form import closed_form
from specexp.costs import Milliseconds, Ratio, speedup
from specexp.engine import Plan
from specexp.errors import UserError
from specexp.metrics import measure
from specexp.rounds import Work
from specexp.rules import RULES
from specexp.rules.single import Token
from specexp.rules.wrong import MISTAKES
from specexp.statistics import Estimate

FALSE_ALARM = 1e-6
Z = float(norm.isf(FALSE_ALARM / 2))
WAYS = ("exact", "expected", "sampled")


def metrics_of(**given):
    return measure(experiment(**given)).metrics


def estimate(metrics, name):
    return Estimate(*(metrics[f"{name}{end}"] for end in ("", "_low", "_high")))


def error(metrics, name):
    """Standard error behind an interval of many units."""
    return (metrics[f"{name}_high"] - metrics[name]) / norm.isf(0.025)


def curve_of(result, name, kind=None):
    return {row.x: row for row in result.curves if row.curve == name and kind in (None, row.kind)}


# ---- the notebook


def notebook(steps, vocab=20, gamma=4, sigma=0.3):
    """The published notebook's loop: kept drafts and tests of each step."""
    rng = np.random.default_rng(0)
    kept, tested = [], []
    for _ in range(steps):
        logits = rng.normal(0, 1.0, size=vocab)
        target = np.exp(logits - logits.max())
        target = target / target.sum()
        logits = np.log(target + 1e-12) + rng.normal(0, sigma, size=vocab)
        draft = np.exp(logits - logits.max())
        draft = draft / draft.sum()
        accepted = 0
        for x in rng.choice(vocab, size=gamma, p=draft):
            if rng.random() >= target[x] / max(draft[x], 1e-12):
                break
            accepted += 1
        kept.append(accepted)
        tested.append(min(accepted + 1, gamma))
    return np.array(kept), np.array(tested)


def test_the_default_run_is_the_notebook():
    """Tokens a step and accepted / tested of the literal loop and of our walk, each with its own noise."""
    kept, tested = notebook(4000)
    metrics = metrics_of(gamma_max=4)
    assert (metrics["steps"], metrics["requests"]) == (5000, 1)
    difference = 1 + kept.mean() - metrics["tokens_per_step"]
    assert abs(difference) < Z * np.hypot(kept.std() / np.sqrt(4000), error(metrics, "tokens_per_step"))
    ratio = kept.sum() / tested.sum()
    spread = (kept - ratio * tested).std() / tested.mean() / np.sqrt(4000)
    difference = ratio - metrics["acceptance_per_test"]
    assert abs(difference) < Z * np.hypot(spread, error(metrics, "acceptance_per_test"))
    assert metrics["speedup"] == pytest.approx(metrics["tokens_per_step_expected"] / 1.4, rel=1e-12)


def test_published_numbers_of_the_notebooks_world():
    """alpha = .8885, accepted / tested -> .8897, closed form -.17 % off at gamma = 4, -2.1 % at 16."""
    run = experiment(steps=20_000, gamma=16)
    metrics = measure(run).metrics
    assert abs(metrics["alpha"] - 0.8885) < Z * error(metrics, "alpha") + 5e-5
    assert abs(metrics["closed_form_error"] + 0.021) < Z * error(metrics, "closed_form_error") + 5e-4
    moments = observe.observe(replace(run.players), 4, Plan(1, 20_000, 1), 4).moments
    per_test = moments.estimate(
        lambda m: sum(m[f"survive_{i}"] for i in range(1, 5)) / (1 + sum(m[f"survive_{i}"] for i in range(1, 4)))
    )
    assert abs(per_test.value - 0.8897) < Z / 1.96 * (per_test.high - per_test.value) + 5e-5
    at_four = metrics_of(steps=20_000, gamma_max=4)
    assert abs(at_four["closed_form_error"] + 0.0017) < Z * error(at_four, "closed_form_error") + 5e-5


def test_a_worse_draft_is_further_from_the_closed_form():
    """-5.8 % at sigma = 1, gamma = 16; and it is not the -2.1 % of sigma = .3."""
    metrics = metrics_of(steps=10_000, gamma=16, draft__sigma=1)
    assert abs(metrics["closed_form_error"] + 0.058) < Z * error(metrics, "closed_form_error") + 5e-4
    assert abs(metrics["closed_form_error"] + 0.021) > Z * error(metrics, "closed_form_error") + 5e-4


@pytest.mark.parametrize(("sigma", "alpha"), [(0.1, 0.960122), (0.3, 0.880765), (1, 0.617075), (2, 0.317311)])
def test_alpha_of_an_endless_vocabulary(sigma, alpha):
    """2 Phi(-sigma / 2) as V -> infinity; at V = 20,000 the bias of a finite V is within the noise of 40 steps."""
    assert 2 * norm.cdf(-sigma / 2) == pytest.approx(alpha, abs=5e-7)
    metrics = metrics_of(target__vocab=20_000, draft__sigma=sigma, steps=40, gamma=1, gamma_max=1)
    assert abs(metrics["alpha"] - alpha) < Z * error(metrics, "alpha")
    assert error(metrics, "alpha") < 0.005


def test_one_fresh_context_a_position_is_the_closed_form():
    """Independent positions: the formula is right, and accepted / tested is unbiased for alpha."""
    metrics = metrics_of(target__context="position", steps=20_000, gamma=8, gamma_max=8, draft__sigma=1)
    assert abs(metrics["closed_form_error"]) < Z * error(metrics, "closed_form_error")
    difference = metrics["acceptance_per_test"] - metrics["alpha"]
    assert abs(difference) < Z * np.hypot(error(metrics, "acceptance_per_test"), error(metrics, "alpha"))


# ---- mistakes, caught and missed


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught_where_the_pooled_distance_sleeps(mistake):
    """5,000 steps of the default world: the ranked p-value is under 1e-6, the notebook's TV near its floor."""
    metrics = metrics_of(rule="wrong", rule__mistake=mistake, gamma_max=4)
    assert metrics["lossless_pvalue"] < 1e-6
    assert metrics["tv_distance"] < 1.6 * metrics["tv_noise_floor"]


def test_correct_rules_are_not_accused():
    """Holm-adjusted p-values of the token rule over worlds and seeds: none is small, and not all are large."""
    worlds = ({}, {"target__context": "position"}, {"target": "bigram"}, {"target": "fixed", "draft": "fixed"})
    pvalues = [
        metrics_of(seed=seed, steps=1000, gamma_max=1, **given)["lossless_pvalue"]
        for given in worlds
        for seed in (1, 2, 3)
    ]
    assert min(pvalues) > FALSE_ALARM / len(pvalues)
    assert min(pvalues) < 0.5
    for given in worlds:  # nothing in greedy decoding is left to chance, and no impossible token was emitted
        greedy = metrics_of(rule="greedy", steps=300, gamma_max=1, **given)
        assert greedy["lossless_pvalue"] in (None, 1.0)


class ZerosOnly(Token):
    """A rule that says its stream should be all zeros."""

    def reference(self, round):
        return np.broadcast_to(np.arange(round.vocab) == 0, round.target_probs.shape).astype(float)


def test_the_other_stream_follows_what_the_rule_claims():
    """The stream that the notebook compares with is the reference's, not always the target's."""
    pair, plan = experiment().players.pair, Plan(0, 1, 1)
    assert target_only.fresh_counts(pair, ZerosOnly(), plan, 3000).counts.tolist() == [3000] + [0] * 19
    pooled = target_only.fresh_counts(pair, Token(), plan, 3000).counts
    assert chisquare(pooled).pvalue > FALSE_ALARM
    fixed = experiment(target="fixed", draft="fixed").players
    text = target_only.text(replace(fixed, rule=ZerosOnly()), Plan(0, 1, 2))
    assert text.counts.frequencies().tolist() == [1, 0, 0, 0]


def test_lenience_is_noticed_and_its_bias_known():
    metrics = metrics_of(rule="lenient", target="fixed", draft="fixed", gamma=1)
    assert metrics["lossless_pvalue"] < 1e-6
    assert metrics["tv_exact"] > 0.19  # alpha_l - alpha_1 = .2 in the first token alone
    assert metrics_of(target="fixed", draft="fixed", gamma=1)["tv_exact"] < 1e-12


def test_audit_refuses_a_false_claim_in_a_run(monkeypatch):
    monkeypatch.setattr(RULES["wrong"], "lossless", True)
    with pytest.raises(UserError, match=r"^rule=wrong: claims lossless=True and is not, TV .*gamma=1.*$"):
        metrics_of(rule="wrong", audit=True, steps=10)
    monkeypatch.setattr(RULES["wrong"], "lossless", False)
    assert metrics_of(rule="wrong", audit=True, steps=10)["audit_bias"] > 0.01
    assert metrics_of(audit=True, steps=10)["audit_bias"] < 1e-12


# ---- coverage: 95 +- 3 % over 400 seeds; were the seeds not fixed, a false alarm in 170 (binomial, 2.75 sigma)

SEEDS = 400
COVERED = ("tokens_per_step", "acceptance_per_test", "alpha", "tokens_per_step_expected", "closed_form_error")


def truths(survival, alpha):
    """From P(at least k kept), k = 0..gamma, in the long run."""
    tokens = survival.sum()
    return {
        "tokens_per_step": tokens,
        "tokens_per_step_expected": tokens,
        "acceptance_per_test": survival[1:].sum() / survival[:-1].sum(),
        "alpha": alpha,
        "closed_form_error": closed_form(alpha, len(survival) - 1) / tokens - 1,
    }


def covered(truth, run):
    held = dict.fromkeys(COVERED, 0)
    for seed in range(SEEDS):
        metrics = measure(run(seed)).metrics
        for name in COVERED:
            held[name] += metrics[f"{name}_low"] <= truth[name] <= metrics[f"{name}_high"]
    return {name: count / SEEDS for name, count in held.items()}


@pytest.mark.slow
def test_intervals_cover_in_fresh_contexts():
    """A step of V = 4, gamma = 3: the truth is a mean over two million contexts, by itself and not by our walk."""
    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(size=(2_000_000, 4)))
    p /= p.sum(1, keepdims=True)
    q = p * np.exp(rng.normal(size=p.shape))
    q /= q.sum(1, keepdims=True)
    overlap = np.minimum(p, q).sum(1)
    truth = truths(np.array([(overlap**k).mean() for k in range(4)]), overlap.mean())
    shares = covered(
        truth, lambda seed: experiment(target__vocab=4, draft__sigma=1.0, gamma=3, gamma_max=3, steps=300, seed=seed)
    )
    for name, share in shares.items():
        assert share == pytest.approx(0.95, abs=0.03), name


@pytest.mark.slow
def test_intervals_cover_where_contexts_persist(monkeypatch):
    """The same two matrices walked as if nobody had solved them (warm-up, replay, intervals over requests); the truth
    is the algebra's."""
    matrix, other = np.random.default_rng(3).dirichlet(np.ones(4), (2, 4)).tolist()
    given = {"target": "bigram", "draft": "bigram", "target__matrix": matrix, "draft__matrix": other}
    given |= {"gamma": 2, "gamma_max": 2, "requests": 40, "steps": 400}
    solved = experiment(**given).world
    truth = truths(solved.survival_by_position(2), solved.alpha())
    monkeypatch.setattr(exact, "MOST_CONTEXTS", 1)
    monkeypatch.setattr(build, "QUICK_OUTCOMES", 0)
    monkeypatch.setattr(target_only, "LEAST_TOKENS", 128)
    assert experiment(**given).world is None
    assert experiment(**given).enumerated is None
    for name, share in covered(truth, lambda seed: experiment(**given, seed=seed)).items():
        assert share == pytest.approx(0.95, abs=0.03), name


# ---- three ways to know a number


@pytest.mark.parametrize("rule", ["token", "lenient", "greedy"])
def test_solved_or_not_is_the_same_world(rule, monkeypatch):
    """The algebra lies within the noise of what is measured when nobody solves it: alpha, tokens, the curve."""
    given = {"target": "bigram", "draft__sigma": 1.0, "rule": rule, "gamma_max": 5, "steps": 3200, "requests": 100}
    solved = measure(experiment(**given))
    monkeypatch.setattr(exact, "MOST_CONTEXTS", 1)
    walked = measure(experiment(**given))
    assert solved.metrics["alpha_source"] == solved.metrics["speedup_source"] == "exact"
    assert walked.metrics["alpha_source"] == walked.metrics["speedup_source"] == "expected"
    assert walked.metrics["tokens_per_step_exact"] is None
    truth = solved.metrics
    for name, known in (("alpha", "alpha"), ("tokens_per_step_expected", "tokens_per_step_exact")):
        noise = Z * error(walked.metrics, name) + (0.01 if rule == "greedy" else 0)  # a cycle that 256 tokens cut
        assert abs(walked.metrics[name] - truth[known]) < noise, name
    exact_curve, walked_curve = (curve_of(result, "by_gamma/tokens_per_step") for result in (solved, walked))
    assert exact_curve.keys() == walked_curve.keys()
    for gamma, row in walked_curve.items():
        half = 0 if row.high is None else (row.high - row.value) / 1.96
        assert abs(row.value - exact_curve[gamma].value) < Z * half + 1e-9


WORLDS_TO_MEASURE = {
    "fresh step": {},
    "fresh position": {"target__context": "position"},
    "fixed": {"target": "fixed", "draft": "fixed"},
    "bigram": {"target": "bigram", "draft": "bigram"},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("given", WORLDS_TO_MEASURE.values(), ids=WORLDS_TO_MEASURE.keys())
def test_curves_and_metrics_are_one(given, rule):
    """The curve at the run's own gamma is the metric; probabilities sum to one; positions multiply."""
    run = experiment(rule=rule, gamma=3, gamma_max=4, steps=400, **given)
    result = measure(run)
    best = next(way for way in WAYS if result.metrics[f"tokens_per_step_{way}".removesuffix("_sampled")] is not None)
    assert result.metrics["speedup_source"] == best
    by_gamma = curve_of(result, "by_gamma/tokens_per_step")
    assert list(by_gamma) == [0, 1, 2, 3, 4]
    assert by_gamma[0].value == pytest.approx(1, abs=1e-12)
    if run.world is not None or (rule != "wrong" and run.enumerated is None):
        value = result.metrics[f"tokens_per_step_{best}"]
        assert by_gamma[3].value == pytest.approx(value, rel=1e-9)
    for kind in WAYS:
        law = curve_of(result, "by_tokens/probability", kind)
        if law:
            name = f"tokens_per_step_{kind}".removesuffix("_sampled")
            assert list(law) == [1, 2, 3, 4]
            assert sum(row.value for row in law.values()) == pytest.approx(1, abs=1e-9)
            mean = sum(n * row.value for n, row in law.items())
            assert mean == pytest.approx(result.metrics[name], rel=1e-9)
            whole, part = (curve_of(result, f"by_position/acceptance{end}", kind) for end in ("", "_conditional"))
            product = 1.0
            for i in (1, 2, 3):
                if part[i].value is not None:
                    product *= part[i].value
                    assert product == pytest.approx(whole[i].value, abs=1e-9)


def test_speedups_are_tokens_over_cost():
    """gamma_best is the maximum over the whole curve, the shortest of equals; at 0 nothing is gained or lost."""
    result = measure(experiment(target="fixed", draft="fixed", cost="ratio", cost__ratio=0.2, gamma=2))
    speedups = curve_of(result, "by_gamma/speedup")
    expected = [closed_form(0.6, gamma) / (1 + 0.2 * gamma) for gamma in range(17)]
    assert [row.value for row in speedups.values()] == pytest.approx(expected, rel=1e-12)
    assert result.metrics["gamma_best"] == int(np.argmax(expected))
    assert result.metrics["speedup_best"] == pytest.approx(max(expected), rel=1e-12)
    assert result.metrics["speedup"] == pytest.approx(expected[2], rel=1e-12)
    slow = metrics_of(target="fixed", draft="fixed", cost="ratio", cost__ratio=0.7)  # alpha < c: do not speculate
    assert (slow["gamma_best"], slow["speedup_best"]) == (0, 1)


PUBLISHED_SPEEDUPS = {
    0.7: (1.545, 1.825, 1.948, 1.981, 1.961, 1.912, 1.848, 1.777),
    0.9: (1.727, 2.258, 2.645, 2.925, 3.124, 3.261, 3.350, 3.403),
}


def one_path(gamma):
    """The work of a step that drafts one path of ``gamma`` tokens."""
    return Work(gamma, gamma, gamma + 1)


@pytest.mark.parametrize("alpha", PUBLISHED_SPEEDUPS)
def test_the_notebooks_cost(alpha):
    """10 ms and 1 ms, gamma = 1..8; milliseconds and their ratio are one cost."""
    for cost in (Milliseconds(10, 1), Ratio(0.1)):
        found = [speedup(closed_form(alpha, gamma), cost, one_path(gamma)) for gamma in range(1, 9)]
        assert found == pytest.approx(PUBLISHED_SPEEDUPS[alpha], abs=5e-4)


@pytest.mark.parametrize(
    ("alpha", "gamma", "operations", "speed"),
    [(0.6, 2, 1.53, 1.96), (0.7, 3, 1.58, 2.53), (0.8, 2, 1.23, 2.44), (0.8, 5, 1.63, 3.69), (0.9, 2, 1.11, 2.71)],
)
def test_leviathans_first_table(alpha, gamma, operations, speed):
    """A draft without cost: operations a token, and speed (Leviathan et al. 2022, table 1)."""
    cost = Ratio(0.0, 0.0)
    tokens = closed_form(alpha, gamma)
    assert speedup(tokens, cost, one_path(gamma)) == pytest.approx(speed, abs=5e-3)
    assert cost.operations_of_step(one_path(gamma)) / tokens == pytest.approx(operations, abs=5e-3)


@pytest.mark.parametrize(
    ("ratio", "alpha", "best", "speed"),
    [
        (0.1, 0.5, 2, 1.458),
        (0.1, 0.7, 4, 1.981),
        (0.1, 0.9, 10, 3.431),
        (0.02, 0.5, 4, 1.794),
        (0.02, 0.7, 8, 2.758),
        (0.02, 0.9, 19, 6.365),
        (0.5, 0.5, 0, 1),
        (0.5, 0.8, 2, 1.220),
    ],
)
def test_the_best_draft_length(ratio, alpha, best, speed):
    """The draft length that the closed form makes fastest, and how fast (after Leviathan et al. 2022, section 3.5)."""
    speeds = [speedup(closed_form(alpha, gamma), Ratio(ratio), one_path(gamma)) for gamma in range(40)]
    assert int(np.argmax(speeds)) == best
    assert max(speeds) == pytest.approx(speed, abs=5e-4)


# ---- a rule of one's own, and what may not move a number


@dataclass(frozen=True)
class Plain:
    """The token rule as a stranger would write it: three laws and three claims, nothing derived."""

    lossless = True
    prefix_stable = True
    max_paths = 1

    def stop_probs(self, round):
        return Token().stop_probs(round)

    def next_probs(self, round, path, stop):
        return Token().next_probs(round, path, stop)

    def reference(self, round):
        return round.target_probs


class Unstable(Plain):
    prefix_stable = False


@pytest.mark.parametrize("rule", [Plain(), Unstable()], ids=["prefix stable", "not"])
@pytest.mark.parametrize("given", WORLDS_TO_MEASURE.values(), ids=WORLDS_TO_MEASURE.keys())
def test_a_rule_of_three_laws_is_enough(given, rule):
    """The same steps as the listed rule, number for number, and a curve within its noise."""
    run = experiment(steps=1000, gamma_max=4, gamma=3, **given)
    listed, own = measure(run), measure(replace(run, players=replace(run.players, rule=rule)))
    if not run.players.pair.persistent:  # there streams begin elsewhere
        for name in ("tokens_per_step", "acceptance_per_test", "lossless_pvalue", "tv_distance"):
            assert own.metrics[name] == listed.metrics[name]
    exact = own.metrics["tokens_per_step_exact"]  # by every outcome, where the listed rule has the algebra
    assert (exact is None) == (run.enumerated is None)
    assert exact is None or exact == pytest.approx(listed.metrics["tokens_per_step_exact"], abs=1e-12)
    ours = curve_of(listed, "by_gamma/tokens_per_step")
    for gamma, row in curve_of(own, "by_gamma/tokens_per_step").items():
        assert row.kind == ("expected" if row.high is not None else "exact")
        noise = 0.0 if row.high is None else row.high - row.value
        assert abs(row.value - ours[gamma].value) <= Z / 1.96 * noise * 1.5 + 1e-9


def test_the_same_config_gives_the_same_numbers():
    for given in WORLDS_TO_MEASURE.values():
        first, again = (measure(experiment(steps=200, gamma_max=4, **given)) for _ in range(2))
        assert first.metrics == again.metrics
        assert first.curves == again.curves


@pytest.mark.parametrize("given", WORLDS_TO_MEASURE.values(), ids=WORLDS_TO_MEASURE.keys())
def test_how_far_the_curves_go_moves_no_number(given):
    """gamma_max, shorter than gamma too, changes the curve's end and the best of it, and nothing else."""
    results = [measure(experiment(steps=300, gamma_max=last, **given)) for last in (0, 2, 4, 6)]
    plain = [
        {key: value for key, value in result.metrics.items() if not key.startswith(("gamma_best", "speedup_best"))}
        for result in results
    ]
    for metrics in plain[1:]:
        assert metrics.keys() == plain[0].keys()
        for key, value in metrics.items():
            same = pytest.approx(plain[0][key], rel=1e-12) if isinstance(value, float) else plain[0][key]
            assert value == same, key
    curves = [curve_of(result, "by_gamma/tokens_per_step") for result in results]
    for curve, last in zip(curves, (0, 2, 4, 6), strict=True):
        assert list(curve) == list(range(last + 1))
        for gamma, row in curve.items():
            assert row.value == pytest.approx(curves[-1][gamma].value, rel=1e-9)


# ---- every edge is good input

EDGES = {
    "gamma 0": {"gamma": 0},
    "gamma 0, persistent": {"gamma": 0, "target": "bigram"},
    "gamma_max 0": {"gamma_max": 0},
    "one step": {"steps": 1},
    "one step, persistent": {"steps": 1, "target": "bigram"},
    "one request, persistent": {"requests": 1, "steps": 100, "target": "bigram"},
    "two requests, fresh": {"requests": 2, "steps": 101},
    "p = q": {"draft__sigma": 0},
    "p = q, persistent": {"target": "bigram", "draft__sigma": 0},
    "p = q with zeros": {"target": "fixed", "draft__sigma": 0, "target__probs": [0.0, 0.063488758, 0.936511242]},
    "p = q by alpha": {"draft": "alpha", "draft__alpha": 1},
    "one token": {"target__vocab": 1},
    "one token, persistent": {"target": "bigram", "target__vocab": 1},
    "one token, fixed": {"target": "fixed", "draft": "fixed", "target__probs": [1.0], "draft__probs": [1]},
    "one-hot p": {"target": "fixed", "draft": "fixed", "target__probs": [0, 1, 0, 0]},
    "one-hot p and noise": {"target": "fixed", "target__probs": [0, 1, 0, 0]},
    "one-hot q": {"target": "fixed", "draft": "fixed", "draft__probs": [0, 0, 1, 0]},
    "one-hot both": {
        "target": "fixed",
        "draft": "fixed",
        "target__probs": [0, 1, 0, 0],
        "draft__probs": [0, 1, 0, 0],
    },
    "disjoint": {
        "target": "fixed",
        "draft": "fixed",
        "target__probs": [0.5, 0.5, 0, 0],
        "draft__probs": [0, 0, 0.5, 0.5],
    },
    "disjoint by alpha": {"target": "fixed", "draft": "alpha", "draft__alpha": 0, "target__probs": [0.5, 0.5, 0]},
    "q excludes": {"target": "fixed", "draft": "fixed", "draft__probs": [0, 0.3, 0.3, 0.4]},
    "p excludes": {"target": "fixed", "draft": "fixed", "target__probs": [0, 0.3, 0.3, 0.4]},
    "1e-300": {"target": "fixed", "draft": "fixed", "target__probs": [1e-300, 1.0], "draft__probs": [1.0, 1e-300]},
    "a cycle": {"target": "bigram", "target__matrix": [[0, 1, 0], [0, 0, 1], [1, 0, 0]]},
    "two classes": {
        "target": "bigram",
        "draft": "bigram",
        "target__matrix": [[1, 0], [0, 1]],
        "draft__matrix": [[1, 0], [1, 0]],
    },
    "a draft without cost": {"cost__draft_ms": 0},
    "a large seed": {"target": "bigram", "seed": 2**70},
    "little lenience": {"rule": "lenient", "rule__lenience": 1e-9},
}


def assert_sound(run, result):
    """Numbers, nulls and words; tokens within reach; values inside their intervals; curves complete."""
    metrics, gamma = result.metrics, run.gamma
    assert list(metrics) == sorted(metrics)
    for key, value in metrics.items():
        assert isinstance(value, str) == key.endswith("_source"), key
        assert value is None or isinstance(value, str) or math.isfinite(value), key
        assert type(value) in (int, float, str, type(None)), key
    for name in [key.removesuffix("_low") for key in metrics if key.endswith("_low")]:
        value, low, high = estimate(metrics, name)
        assert (low is None) == (high is None)
        assert low is None or low <= value <= high
    for way in ("", "_expected", "_exact"):
        tokens = metrics[f"tokens_per_step{way}"]
        assert tokens is None or 1 - 1e-12 <= tokens <= gamma + 1 + 1e-12
    assert metrics["steps"] == run.plan.total
    assert metrics["emitted_tokens"] == pytest.approx(metrics["tokens_per_step"] * metrics["steps"])
    assert 0 <= metrics["alpha"] <= 1 + 1e-12
    assert 0 <= metrics["gamma_best"] <= run.gamma_max
    assert len(curve_of(result, "by_gamma/speedup")) == run.gamma_max + 1
    for row in result.curves:
        assert row.kind in (*WAYS, "closed_form")
        assert all(part is None or math.isfinite(part) for part in (row.value, row.low, row.high))


@pytest.mark.parametrize("rule", ["token", "lenient", "greedy"])
@pytest.mark.parametrize("given", EDGES.values(), ids=EDGES.keys())
def test_every_edge_is_good_input(given, rule):
    run = experiment(**{"steps": 200, "gamma_max": 3, "rule": rule} | given)
    result = measure(run)
    assert_sound(run, result)
    if result.metrics["tv_exact"] is not None and run.players.rule.lossless:
        assert result.metrics["tv_exact"] <= 1e-12


def test_edges_whose_numbers_are_known():
    """Nothing drafted: one token a step. Equal laws: all kept. Disjoint laws: none."""
    for name in ("gamma 0", "gamma 0, persistent"):
        metrics = metrics_of(**EDGES[name], steps=128, gamma_max=2)
        assert metrics["tokens_per_step"] == metrics["speedup"] == metrics["tokens_per_step_closed_form"] == 1
        assert metrics["acceptance_per_test"] is metrics["acceptance_rate"] is None
    for name in (
        "p = q",
        "p = q, persistent",
        "p = q with zeros",
        "p = q by alpha",
        "one token",
        "one-hot both",
        "a cycle",
    ):
        metrics = metrics_of(steps=128, gamma_max=2, **EDGES[name])
        assert metrics["tokens_per_step"] == 5
        assert metrics["alpha"] == pytest.approx(1, abs=1e-12)
    for name in ("disjoint", "disjoint by alpha", "1e-300"):
        metrics = metrics_of(steps=128, gamma_max=2, **EDGES[name])
        assert metrics["tokens_per_step"] == 1
        assert metrics["alpha"] == pytest.approx(0, abs=1e-12)


def test_progress_counts_every_step():
    told = []
    measure(experiment(steps=3000, gamma_max=4), lambda done, total: told.append((done, total)))
    assert told[-1] == (3000, 3000)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_progress_counts_the_walks_of_each_gamma_too():
    """A rule for several drafts where contexts persist: the run, then gamma = 0 to 3 as one."""
    told = []
    given = experiment(target="bigram", rule="recursive", draft__paths=2, gamma=3, gamma_max=3, steps=640)
    measure(given, lambda done, total: told.append((done, total)))
    run, curve = ([done for done, total in told if total == steps] for steps in (640, 4 * 640))
    assert run[-1] == 640
    assert curve == sorted(curve)
    assert (curve[-1], len(run) + len(curve)) == (4 * 640, len(told))


# ---- real input


@pytest.mark.slow
@pytest.mark.parametrize(("order", "alpha"), [(2, 0.45), (3, 0.64), (4, 0.82)])
def test_the_plays(order, alpha):
    """Byte level, target of order 5: alpha of three drafts, 2.28 bits a byte (on another split)."""
    metrics = metrics_of(target="text", draft="text", draft__order=order, steps=2000, gamma_max=4)
    assert metrics["alpha"] == pytest.approx(alpha, abs=0.015)
    assert metrics["bits_per_byte_target"] == pytest.approx(2.28, abs=0.05)
    assert metrics["perplexity_target"] == pytest.approx(2 ** metrics["bits_per_byte_target"], rel=1e-9)
    assert metrics["perplexity_draft"] > metrics["perplexity_target"]
    assert metrics["lossless_pvalue"] > FALSE_ALARM
