"""The bias of a step's first token: proved against every outcome, known values, and counted."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chisquare, norm
from worlds import ALL_RULES, WORLDS, experiment, players

from specexp import build, exact
from specexp.bias import distance, first_law, tells_first
from specexp.engine import Plan, walk
from specexp.enumeration import enumerate_steps
from specexp.metrics import measure
from specexp.models.pair import all_laws
from specexp.rules import RULES
from specexp.rules.cascade import Cascade
from specexp.rules.single import Lenient, Token
from specexp.rules.typical import Typical
from specexp.statistics.distance import ROUNDING

FALSE_ALARM = 1e-6
Z = float(norm.isf(FALSE_ALARM / 2))


def metrics_of(**given):
    return measure(experiment(**given)).metrics


# ---- the law of the first token is what the sampler's laws say


@dataclass(frozen=True)
class Liar(Lenient):
    """Says that its first token has the target's law."""

    def first_law(self, p, q):
        return p


def error_of_first_law(rule, world, gamma):
    """The largest difference between the law that the rule tells and every outcome summed."""
    p, q, memory = world
    a_game = players(rule, p, q, memory)
    outcomes = enumerate_steps(a_game, gamma)
    numbers = len(outcomes.reference)
    told = first_law(rule, np.resize(p, (numbers, p.shape[1])), np.resize(q, (numbers, p.shape[1])), gamma)
    return np.abs(told - outcomes.stream_law(1)).max()


@pytest.mark.parametrize("name", ALL_RULES)
def test_the_first_tokens_law_is_every_outcome_summed(name):
    rule = ALL_RULES[name]
    for world in WORLDS.values():
        for gamma in (0, 1, 2, 3):
            if tells_first(rule, gamma):
                assert error_of_first_law(rule, world, gamma) < 1e-12


def test_a_rule_that_lies_about_its_first_token_is_seen():
    assert error_of_first_law(Liar(), WORLDS["worked"], 2) > 0.1
    silent = {type(rule).__name__ for rule in ALL_RULES.values() if rule.max_paths == 1 and not tells_first(rule, 1)}
    assert silent == {"Wrong"}


# ---- known values


@pytest.mark.parametrize("rule", ["token", "block", "exact_match", "gumbel"])
@pytest.mark.parametrize("given", [{}, {"target__context": "position"}, {"target": "bigram"}, {"target": "fixed"}])
def test_lossless_rules_have_none(given, rule):
    found = metrics_of(rule=rule, gamma=2, gamma_max=2, steps=300, **given)
    assert found["bias"] <= ROUNDING
    assert found["bias_source"] == ("exact" if "target" in given else "expected")


def test_the_bias_of_lenience_is_its_gain_in_acceptance():
    """alpha_l - alpha_1 exactly: .8 - .6 in the worked example, and in every context that is walked."""
    found = metrics_of(rule="lenient", target="fixed", draft="fixed", steps=64)
    assert found["bias"] == pytest.approx(0.2, rel=1e-12)
    for lenience in (0.3, 0.9):
        run = experiment(rule="lenient", rule__lenience=lenience, steps=1000, gamma=2, gamma_max=2)
        laws = [
            (step.round.target_probs[:, 0, 0], step.round.draft_probs[:, 0, 0])
            for step in walk(run.players, 2, run.plan)
        ]
        p, q = (np.concatenate(part) for part in zip(*laws, strict=True))
        gained = np.minimum(p / lenience, q).sum(1) - np.minimum(p, q).sum(1)
        found = measure(run).metrics
        assert found["bias"] == pytest.approx(gained.mean(), rel=1e-9)
        half = 1.962 * gained.std() / np.sqrt(1000)  # Student's t of 999 degrees of freedom
        assert found["bias_high"] - found["bias_low"] == pytest.approx(2 * half, rel=1e-2)


def test_the_bias_of_greedy_decoding_and_of_nothing_drafted():
    """1 - max p; a cascade that drafts nothing follows its mixture, token the target."""
    found = metrics_of(rule="greedy", target="fixed", draft="fixed", steps=64)
    assert found["bias"] == pytest.approx(0.6, rel=1e-12)
    for given in ({}, {"target": "bigram"}):
        assert metrics_of(gamma=0, gamma_max=0, steps=64, **given)["bias"] <= ROUNDING
        assert metrics_of(rule="cascade", gamma=0, gamma_max=0, steps=64, **given)["bias"] > 0.01
        assert metrics_of(rule="wrong", gamma=0, gamma_max=0, steps=64, **given)["bias"] <= ROUNDING


def test_a_wrong_rule_is_found_out_where_outcomes_are_few_and_unknown_elsewhere():
    for mistake in ("residual_target", "residual_draft", "residual_absolute", "accept_inverted", "ids_shifted"):
        assert (
            metrics_of(rule="wrong", rule__mistake=mistake, target="bigram", gamma=2, gamma_max=2, steps=64)["bias"]
            > 1e-3
        )
    found = metrics_of(rule="wrong", gamma=2, gamma_max=2, steps=64)
    assert found["bias"] is found["bias_low"] is found["bias_high"] is None
    assert "bias_source" not in found


# ---- against the target, whatever the reference


def test_a_cascade_keeps_its_mixture_and_not_the_target():
    found = metrics_of(rule="cascade", target="bigram", gamma=2, steps=64)
    assert found["tv_exact"] <= ROUNDING
    assert found["tv_exact_target"] > found["bias"] > 0.01


@pytest.mark.parametrize("rule", RULES)
def test_the_joint_law_is_no_nearer_to_the_target_than_its_first_token(rule):
    found = metrics_of(rule=rule, target="bigram", target__vocab=4, draft__sigma=1.0, gamma=2, gamma_max=2, steps=64)
    assert found["tv_exact_target"] >= found["bias"] - ROUNDING
    same = rule not in ("greedy", "cascade", "relaxed")  # their reference is another law
    assert (found["tv_exact"] == found["tv_exact_target"]) == same


def test_where_nothing_is_summed_nothing_is_said():
    found = metrics_of(steps=64, gamma_max=4)
    assert found["tv_exact"] is found["tv_exact_target"] is None


# ---- counted, and expected where nobody solves the world


@pytest.mark.parametrize("rule", [Lenient(), Typical(), Cascade(), Token()], ids=repr)
def test_first_tokens_are_emitted_as_the_law_says(rule):
    """20,000 steps of a bigram world, first tokens by the context that they follow: chi-squared of all contexts under
    the law (false alarm 1e-6), and, for a rule with a bias, not under the target's."""
    p, q, _ = WORLDS["drawn V=3 memory=1"]
    game = players(rule, p, q)
    counts = np.zeros((3, 3))
    for step in walk(game, 2, Plan(1, 20_000, 100)):
        context = np.abs(step.round.target_probs[:, 0, 0, None] - p).sum(-1).argmin(-1)
        np.add.at(counts, (context, step.tokens[:, 0]), 1)
    each = counts.sum(1, keepdims=True)
    law = first_law(rule, p, q, 2)

    def pvalue(expected):
        possible = expected > 0
        assert not counts[~possible].any()
        return chisquare(counts[possible], expected[possible], ddof=len(p) - 1).pvalue

    assert pvalue(each * law) > FALSE_ALARM
    assert (distance(rule, p, q, 2).max() < 1e-12) == (pvalue(each * p) > FALSE_ALARM)


@pytest.mark.parametrize("rule", ["lenient", "typical", "cascade", "synthetic"])
def test_solved_or_not_it_is_the_same_bias(rule, monkeypatch):
    given = {"rule": rule, "target": "bigram", "target__vocab": 4, "draft__sigma": 1.0, "gamma": 2, "gamma_max": 2}
    solved = metrics_of(steps=64, **given)
    monkeypatch.setattr(exact, "MOST_CONTEXTS", 1)
    monkeypatch.setattr(build, "QUICK_OUTCOMES", 0)
    walked = metrics_of(steps=6400, requests=100, **given)
    assert (solved["bias_source"], walked["bias_source"]) == ("exact", "expected")
    error = (walked["bias_high"] - walked["bias_low"]) / 2 / norm.isf(0.025)
    assert abs(walked["bias"] - solved["bias"]) < Z * error
    assert abs(walked["bias"] - 2 * solved["bias"]) > Z * error


def test_the_targets_laws_in_every_context():
    run = experiment(target="bigram", target__vocab=3)
    assert np.array_equal(all_laws(run.players.pair)[0], run.world.target)
    assert all_laws(experiment(target="fixed").players.pair)[0] == pytest.approx(np.array([[0.4, 0.3, 0.2, 0.1]]))
