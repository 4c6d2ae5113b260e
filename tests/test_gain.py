"""The gain over ``token``: known values, pairing and why, coverage, and that it moves no other number."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from worlds import experiment, players

from specexp import bias, build, exact, gain, target_only
from specexp.closed_form import closed_form
from specexp.engine import Plan, walk
from specexp.metrics import measure
from specexp.observe import observe
from specexp.rules import RULES
from specexp.rules.single import Lenient, Token
from specexp.statistics import NONE, Estimate

FALSE_ALARM = 1e-6
Z = float(norm.isf(FALSE_ALARM / 2))
SUN = {"target": "fixed", "draft": "fixed", "target__probs": [1 / 3, 2 / 3], "draft__probs": [2 / 3, 1 / 3]}


def metrics_of(**given):
    return measure(experiment(**given)).metrics


def gain_of(found):
    return Estimate(*(found[f"gain_over_token{end}"] for end in ("", "_low", "_high")))


def half_width(estimate):
    return (estimate.high - estimate.low) / 2


def unsolved(monkeypatch):
    """From here on nobody solves a world, nor sums its outcomes."""
    monkeypatch.setattr(exact, "MOST_CONTEXTS", 1)
    monkeypatch.setattr(build, "QUICK_OUTCOMES", 0)


# ---- known values


@pytest.mark.parametrize(
    ("gamma", "token", "block"), [(2, 10 / 9, 11 / 9), (3, 38 / 27, 5 / 3), (4, 130 / 81, 166 / 81)]
)
def test_the_published_gain_of_block(gamma, token, block):
    """Sun et al. 2024: accepted drafts of the two rules where p = (1/3, 2/3), q = (2/3, 1/3)."""
    found = metrics_of(rule="block", gamma=gamma, steps=64, **SUN)
    assert found["gain_over_token"] == pytest.approx((1 + block) / (1 + token) - 1, rel=1e-12)
    assert found["gain_over_token_source"] == "exact"
    assert found["gain_over_token_low"] is found["gain_over_token_high"] is None


def test_the_gain_of_lenience_is_that_of_its_acceptance():
    """p = (.4, .3, .2, .1), q reversed: alpha .6 for token, .8 at l = .5."""
    found = metrics_of(rule="lenient", target="fixed", draft="fixed", gamma=3, steps=64)
    assert found["gain_over_token"] == pytest.approx(closed_form(0.8, 3) / closed_form(0.6, 3) - 1, rel=1e-12)


@pytest.mark.parametrize("given", [{}, {"target": "bigram"}, {"target": "fixed", "draft": "fixed"}])
def test_token_itself_gains_nothing_by_definition(given):
    found = metrics_of(steps=128, gamma_max=1, **given)
    assert gain_of(found) == (0, None, None)
    assert "gain_over_token_source" not in found


class Mine(Token):
    """Somebody's own rule, made from the token rule."""

    def kept_mass(self, p, q):
        return Lenient().kept_mass(p, q)


def test_a_rule_made_from_token_is_measured():
    run = experiment(steps=2000, gamma_max=4)
    found = measure(replace(run, players=replace(run.players, rule=Mine()))).metrics
    lenient = metrics_of(rule="lenient", steps=2000, gamma_max=4)
    assert gain_of(found) == pytest.approx(gain_of(lenient))
    assert found["gain_over_token"] > 0.2


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("given", [{}, {"target": "bigram"}])
def test_nothing_drafted_is_nothing_gained(given, rule):
    assert metrics_of(rule=rule, gamma=0, gamma_max=0, steps=128, **given)["gain_over_token"] == 0


# ---- against the truth, where nobody knows it


def fresh_truth(rule, gamma=2, vocab=3, contexts=400_000):
    """Tokens a step of ``rule`` and of token in the random world of ``vocab`` tokens and sigma = 1, by every draft in
    many contexts, by the papers' formulas and not by our walk."""
    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(size=(contexts, vocab)))
    p /= p.sum(1, keepdims=True)
    q = p * np.exp(rng.normal(size=p.shape))
    q /= q.sum(1, keepdims=True)
    overlap = np.minimum(p, q).sum(1)
    token = sum((overlap**i).mean() for i in range(gamma + 1))
    if rule == "lenient":
        kept = np.minimum(2 * p, q).sum(1)
        return sum((kept**i).mean() for i in range(gamma + 1)), token
    chance, weight = np.ones((contexts, 1)), np.ones((contexts, 1))  # Sun et al.: P(at least i | X^i), P(X^i)
    block = 1.0
    for _ in range(gamma):
        chance = np.minimum(1, chance[:, :, None] * (p / q)[:, None]).reshape(contexts, -1)
        weight = (weight[:, :, None] * q[:, None]).reshape(contexts, -1)
        block += (chance * weight).sum(1).mean()
    return block, token


SMALL = {"target__vocab": 3, "draft__sigma": 1.0, "gamma": 2, "gamma_max": 2}


@pytest.mark.parametrize("rule", ["block", "lenient"])
def test_the_gain_in_fresh_contexts_is_the_truth(rule):
    found = gain_of(metrics_of(rule=rule, steps=20_000, **SMALL))
    of_rule, of_token = fresh_truth(rule)
    error = half_width(found) / norm.isf(0.025)
    assert abs(found.value - (of_rule / of_token - 1)) < Z * error + 1e-3  # the truth is a mean of its own
    assert abs(found.value - 1.5 * (of_rule / of_token - 1)) > Z * error + 1e-3  # another number is noticed


@pytest.mark.parametrize("rule", ["block", "exact_match", "lenient", "greedy", "gumbel"])
def test_the_gain_along_texts_is_the_exact_one(rule, monkeypatch):
    """Replayed, walked against the target's text, and walked where the rule's own text is not the target's."""
    given = {"target": "bigram", "target__vocab": 4, "draft__sigma": 1.0, "rule": rule, "gamma": 3, "gamma_max": 3}
    truth = metrics_of(steps=64, **given)
    assert truth["gain_over_token_source"] == "exact"
    unsolved(monkeypatch)
    found = metrics_of(steps=9600, requests=200, **given)
    assert found["gain_over_token_source"] == "expected"
    error = half_width(gain_of(found)) / norm.isf(0.025)
    slack = 0.01 if rule == "greedy" else 2e-3  # what the start of a text and its end leave
    assert abs(found["gain_over_token"] - truth["gain_over_token"]) < Z * error + slack
    assert abs(found["gain_over_token"] - truth["gain_over_token"] - 0.2) > Z * error + slack


def test_a_text_says_whose_it_is():
    plan = Plan(0, 64, 8)
    for rule, own in (("token", True), ("block", True), ("typical", True), ("greedy", False), ("cascade", False)):
        assert target_only.text(experiment(target="bigram", rule=rule).players, plan).own == own, rule


# ---- the pairing


@pytest.mark.parametrize(("rule", "times"), [("block", 2), ("gumbel", 3), ("lenient", 2)])
def test_pairing_in_fresh_contexts_is_worth_it(rule, times):
    """The interval against that of two runs which share nothing."""
    given = {"gamma": 4, "gamma_max": 4, "steps": 4000, "draft__sigma": 1.0}
    assert_narrower(metrics_of(rule=rule, **given), metrics_of(**given), times)


def test_pairing_along_texts_is_worth_it(monkeypatch):
    unsolved(monkeypatch)
    given = {"target": "bigram", "draft": "bigram", "gamma": 4, "gamma_max": 4, "steps": 1600}
    assert_narrower(metrics_of(rule="block", **given), metrics_of(**given), 2)


def assert_narrower(of_rule, of_token, times):
    """The paired interval is more than ``times`` narrower than the unpaired one."""
    tokens, halves = [], []
    for found in (of_rule, of_token):
        ends = [found[f"tokens_per_step_expected{end}"] for end in ("_low", "_high")]
        tokens.append(found["tokens_per_step_expected"])
        halves.append((ends[1] - ends[0]) / 2)
    ratio = tokens[0] / tokens[1]
    unpaired = ratio * np.hypot(halves[0] / tokens[0], halves[1] / tokens[1])
    assert half_width(gain_of(of_rule)) < unpaired / times


def asides_of(rule, **given):
    run = experiment(rule=rule, steps=4000, gamma=4, gamma_max=4, **given)
    return observe(run.players, 4, run.plan, 4, asides=gain.asides(run)).asides


def test_the_luck_of_the_drafts_is_taken_off_only_where_it_is_shared():
    """For block it is most of the noise; synthetic acceptance does not look at the drafts, and is not made worse."""
    for rule, least, most in (("block", 0.0, 0.7), ("synthetic", 0.98, 1.0001)):
        units = asides_of(rule)
        with_it = half_width(gain.on_the_same_rounds(units))
        without = half_width(units.estimate(lambda m: m["expected"] / m["token"] - 1))
        assert least * without < with_it < most * without
    assert "token_given_drafts" not in asides_of("lenient").names


def test_luck_has_no_mean_and_token_is_given_its_own_drafts():
    """Averages over drafts and given drafts agree within noise; by another draft they would not."""
    units = asides_of("block", draft__sigma=1.0)
    difference = units.estimate(lambda m: m["token_given_drafts"] - m["token"])
    assert abs(difference.value) < Z * half_width(difference) / norm.isf(0.025)
    (step,) = walk(experiment(steps=500).players, 4, Plan(0, 500, 1))
    kept = np.cumsum(step.stop_probs[:, 0, ::-1], axis=1)[:, ::-1]
    assert gain.tokens_given_drafts(4, step) == pytest.approx(kept.sum(1), rel=1e-12)


@pytest.mark.parametrize(
    ("drafts", "whole"),
    [
        ({"draft__paths": 3}, True),
        ({"draft__paths": 3, "draft__replacement": False}, True),
        ({"draft__paths": 3, "draft__greedy": True}, False),
        ({"draft__greedy": True}, True),  # one path has one draw at each position, at random
        ({"length": "tree", "length__widths": (2, 2, 1)}, True),
        ({"length": "tree", "length__widths": (2, 2, 1), "draft__replacement": False}, True),
        ({"length": "tree", "length__widths": (2, 2, 1), "draft__greedy": True}, False),
        ({"length": "sequoia", "length__budget": 6}, True),
    ],
)
def test_a_first_path_of_q_shares_its_luck_with_token(drafts, whole):
    """Of a tree too: its eldest are drawn from q. On average over drafts the luck is none; of a greedy draft it is."""
    given = experiment(rule="recursive", gamma=3, steps=4000, target__vocab=8, draft__sigma=1.0, **drafts)
    assert gain.whole_path_of_q(given.players, 3) is whole
    steps = list(walk(given.players, 3, given.plan))
    short = gain.levels(given)
    luck = np.concatenate([gain.tokens_given_drafts(short, s) - gain.tokens_of_token(short, s) for s in steps])
    off = abs(luck.mean()) / (luck.std() / len(luck) ** 0.5)
    assert bool(off < Z) is whole


def test_a_tree_whose_first_path_ends_early_has_none(tmp_path):
    """Nodes 0; 1; 1 0: the deep path is not the eldest's."""
    file = tmp_path / "nodes"
    file.write_text("0\n1\n1 0\n")
    given = experiment(rule="recursive", gamma=2, length="tree", length__path=str(file))
    assert not gain.whole_path_of_q(given.players, 2)


def test_a_chain_as_a_tree_is_known_as_well_as_a_path():
    """The same drafts: the same gain, and the same interval."""
    given = {"rule": "block", "gamma": 3, "steps": 2000}
    path, tree = (
        measure(experiment(**given | {"rule": "traversal"} | shape)).metrics
        for shape in ({}, {"length": "tree", "length__widths": (1, 1, 1)})
    )
    for key in ("gain_over_token", "gain_over_token_low", "gain_over_token_high"):
        assert tree[key] == pytest.approx(path[key], abs=1e-12)


def test_token_has_the_first_of_several_paths():
    """Three paths: the same numbers as of the first alone, and not those of the second."""
    p, q = np.random.default_rng(2).dirichlet(np.ones(4), (2, 4))
    (step,) = walk(players(Token(), p, q), 3, Plan(0, 50, 50), prompts=np.zeros((50, 1), dtype=np.int64))
    one = step.round
    others = [np.roll(one.draft_tokens, i, axis=0) for i in (0, 1, 2)]

    def several(order):
        return replace(
            step,
            round=replace(
                one,
                draft_tokens=np.concatenate([others[i] for i in order], axis=1),
                draft_probs=np.concatenate([np.roll(one.draft_probs, i, axis=0) for i in order], axis=1),
                target_probs=np.concatenate([np.roll(one.target_probs, i, axis=0) for i in order], axis=1),
            ),
        )

    for tokens in (partial(gain.tokens_of_token, 3), partial(gain.tokens_given_drafts, 3)):
        assert np.array_equal(tokens(several((0, 1, 2))), tokens(step))
        assert not np.allclose(tokens(several((1, 0, 2))), tokens(step))
    several_paths = experiment(target="bigram", draft__paths=1)
    pair = replace(several_paths.players.pair, paths=3)
    yardstick = gain.with_token(replace(several_paths, players=replace(several_paths.players, pair=pair)))
    assert (yardstick.players.pair.paths, yardstick.players.rule) == (1, Token())


# ---- no other number moves


@pytest.mark.parametrize("rule", ["token", "block", "lenient", "greedy"])
@pytest.mark.parametrize("world", ["step", "position", "bigram", "bigram, unsolved"])
def test_no_other_number_moves_by_a_byte(world, rule, monkeypatch):
    where = {"target": "bigram"} if "bigram" in world else {"target__context": world}
    given = {"rule": rule, "steps": 1600, "gamma": 3, "gamma_max": 3, **where}
    if "unsolved" in world:
        unsolved(monkeypatch)
    compared = measure(experiment(**given))
    for module, name in ((gain, "gain_over_token"), (bias, "bias")):
        monkeypatch.setattr(module, "asides", lambda run: {})
        monkeypatch.setattr(module, name, lambda *given: (None, NONE))
    plain = measure(experiment(**given))
    new = ("gain_over_token", "bias")
    left = {key: value for key, value in compared.metrics.items() if not key.startswith(new)}
    assert left == {key: value for key, value in plain.metrics.items() if not key.startswith(new)}
    assert compared.curves == plain.curves
    assert compared.metrics != plain.metrics


# ---- trees and few steps


TREES = {
    "rule": "recursive",
    "length": "sequoia",
    "length__acceptance": [0.6],
    "gamma": 8,
    "gamma_max": 8,
    "steps": 400,
}


@pytest.mark.parametrize("world", [{}, {"target": "bigram"}, {"target": "fixed", "draft": "fixed"}], ids=str)
def test_a_shallower_tree_is_compared_with_token_at_its_own_depth(world):
    """A chain that ends before gamma is `token` of that length: no gain, where `token` at gamma would be far ahead."""
    run = experiment(**TREES, **world)
    assert 0 < run.work(8).levels < 8
    found = gain_of(measure(run).metrics)
    assert found.value == pytest.approx(0, abs=0.05)
    assert found.low is None or found.low <= 0 <= found.high


def test_nothing_drafted_is_no_loss():
    found = metrics_of(**TREES | {"length__acceptance": [0.01]})
    assert (found["drafted_per_step"], found["tokens_per_step"], found["gain_over_token"]) == (0, 1, 0)


def test_few_steps_take_nothing_off():
    """A share of luck fitted on two steps made gains of -2672 %: the plain ratio there, and with enough steps not."""
    few, many = (metrics_of(rule="traversal", gamma=30, gamma_max=0, steps=steps) for steps in (2, 400))
    assert abs(few["gain_over_token"]) < 5
    run = experiment(rule="block", gamma=4, gamma_max=4, steps=gain.ENOUGH)
    walked = observe(run.players, 4, run.plan, 4, asides=gain.asides(run)).asides
    plain = walked.estimate(lambda means: means["expected"] / means["token"] - 1)
    less = gain.on_the_same_rounds(walked)
    assert less.high - less.low < 0.5 * (plain.high - plain.low)
    short = observe(run.players, 4, Plan(0, gain.ENOUGH - 1, 1), 4, asides=gain.asides(run)).asides
    assert gain.on_the_same_rounds(short) == short.estimate(lambda means: means["expected"] / means["token"] - 1)
    assert many["gain_over_token"] is not None


# ---- coverage: 95 +- 3 % over 400 seeds, as in test_metrics

SEEDS = 400


def covered(truth, run):
    """The share of seeds whose interval holds the truth: of the gain and of the bias."""
    held = dict.fromkeys(truth, 0)
    for seed in range(SEEDS):
        found = measure(run(seed)).metrics
        for name, value in truth.items():
            held[name] += found[f"{name}_low"] <= value <= found[f"{name}_high"]
    return {name: count / SEEDS for name, count in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["block", "lenient"])
def test_intervals_cover_in_fresh_contexts(rule):
    of_rule, of_token = fresh_truth(rule, contexts=2_000_000)
    truth = {"gain_over_token": of_rule / of_token - 1}
    if rule == "lenient":
        truth["bias"] = fresh_truth(rule, gamma=1, contexts=2_000_000)[0] - fresh_truth(rule, 1, contexts=2_000_000)[1]
    shares = covered(truth, lambda seed: experiment(rule=rule, steps=300, seed=seed, **SMALL))
    for name, share in shares.items():
        assert share == pytest.approx(0.95, abs=0.03), name


@pytest.mark.slow
@pytest.mark.parametrize("steps", [20, gain.ENOUGH])
def test_intervals_of_few_steps_cover(steps):
    """Without the luck taken off, and from where on it is."""
    of_rule, of_token = fresh_truth("block", contexts=2_000_000)
    truth = {"gain_over_token": of_rule / of_token - 1}
    shares = covered(truth, lambda seed: experiment(rule="block", steps=steps, seed=seed, **SMALL))
    assert shares["gain_over_token"] == pytest.approx(0.95, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["block", "lenient", "cascade"])
def test_intervals_cover_where_contexts_persist(rule, monkeypatch):
    """Replayed in pairs; walked against the target's text; walked where the rule's own text is another."""
    matrix, other = np.random.default_rng(3).dirichlet(np.ones(4), (2, 4)).tolist()
    given = {"target": "bigram", "draft": "bigram", "target__matrix": matrix, "draft__matrix": other, "rule": rule}
    given |= {"gamma": 2, "gamma_max": 2, "requests": 40, "steps": 400}
    solved = metrics_of(**given)
    truth = {name: solved[name] for name in ("gain_over_token", *(["bias"] if rule != "block" else []))}
    unsolved(monkeypatch)
    monkeypatch.setattr(target_only, "LEAST_TOKENS", 128)
    for name, share in covered(truth, lambda seed: experiment(**given, seed=seed)).items():
        assert share == pytest.approx(0.95, abs=0.03), name
