"""Drafts that are the target itself in part, and prompt lookup: by loops, by hand, at their edges."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import ALL_RULES, WORLDS, experiment

from specexp.errors import UserError
from specexp.metrics import measure
from specexp.models.lookup import Lookup
from specexp.models.sharpened import Temperature, Truncated

P = np.array([[0.4, 0.3, 0.2, 0.1]])


def no_normals():
    raise AssertionError("these drafts are not noisy")


def test_temperature_by_hand():
    def at(temperature, p=P):
        return Temperature(temperature).derive(p, no_normals)

    assert at(0.5)[0] == pytest.approx(P[0] ** 2 / (P[0] ** 2).sum(), abs=1e-15)
    assert at(1.0)[0] == pytest.approx(P[0], abs=1e-15)
    assert at(0.0)[0].tolist() == at(1e-300)[0].tolist() == at(5e-324)[0].tolist() == [1, 0, 0, 0]
    assert at(1e300, np.array([[0.5, 0.5 - 1e-9, 1e-9, 0.0]]))[0] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert at(0.0, np.array([[0.4, 0.4, 0.2]]))[0].tolist() == [0.5, 0.5, 0]


def literal_truncation(p, top_k, top_p):
    order = sorted(range(len(p)), key=lambda x: (-p[x], x))[: top_k or len(p)]
    mass, kept = sum(p[x] for x in order), []
    for x in order:
        if kept and sum(p[y] for y in kept) >= top_p * mass:
            break
        kept.append(x)
    return [p[x] / sum(p[y] for y in kept) if x in kept else 0.0 for x in range(len(p))]


@pytest.mark.parametrize("top_k", [None, 1, 2, 5, 100])
@pytest.mark.parametrize("top_p", [0.0, 0.33, 0.77, 1.0])
def test_truncation_is_the_loop(top_k, top_p):
    p = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 200)
    before = p.copy()
    q = Truncated(top_k, top_p).derive(p, no_normals)
    assert q == pytest.approx(np.array([literal_truncation(row, top_k, top_p) for row in p]), abs=1e-14)
    assert (p == before).all()
    assert Truncated(2, 1.0).derive(np.full((1, 4), 0.25), no_normals)[0].tolist() == [0.5, 0.5, 0, 0]


@pytest.mark.parametrize("draft", [Temperature(0.0), Temperature(0.3), Truncated(1), Truncated(None, 0.5)], ids=repr)
def test_derived_drafts_are_laws_at_every_edge(draft):
    for p, _, _ in WORLDS.values():
        q = draft.derive(p, no_normals)
        assert q.min() >= 0
        assert q.sum(1) == pytest.approx(1, abs=1e-12)
        assert (q[p == 0] == 0).all()


def literal_lookup(text, longest):
    """The token to draft after ``text``: what followed the last earlier occurrence of its longest end."""
    for length in range(min(longest, len(text) - 1), 0, -1):
        for place in range(len(text) - length - 1, -1, -1):
            if text[place : place + length] == text[-length:]:
                return text[place + length]
    return text[-1]


@pytest.mark.parametrize("longest", [1, 2, 3, 9])
@pytest.mark.parametrize("memory", [2, 3, 7, 12])
def test_lookup_is_the_loop(memory, longest):
    windows = np.random.default_rng(memory).integers(0, 3, (300, memory))
    law = Lookup(3, memory, longest).conditional(windows)
    assert (law.sum(1) == 1).all()
    assert law.argmax(1).tolist() == [literal_lookup(list(window), longest) for window in windows]


def test_lookup_by_hand():
    """... a b c ... a b: c; the later of two occurrences; and the last token where nothing is found."""
    found = [Lookup(9, 6, 3).conditional(np.array(text)).argmax() for text in ([1, 2, 3, 4, 1, 2], [1, 5, 1, 6, 7, 1])]
    assert found == [3, 6]
    assert Lookup(9, 6, 3).conditional(np.array([1, 2, 3, 4, 5, 6])).argmax() == 6


def test_lookup_needs_a_text_to_begin_in(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("abcd" * 50, encoding="utf-8")
    given = {"target": "text", "draft": "lookup", "target__path": str(path), "target__level": "character"}
    with pytest.raises(UserError, match=r"^draft.history=128: streams begin in the text's held-out part of 20 tokens"):
        experiment(**given)
    assert experiment(**given, draft__history=20).players.pair.memory == 20


@pytest.mark.parametrize("rule", ["token", "block", "exact_match", "gumbel", "threshold"])
def test_lookup_speeds_up_a_text_that_repeats_itself(rule, tmp_path):
    """Under each lossless rule nearly all is kept, what is sampled is what is expected, and nothing is lost."""
    path = tmp_path / "refrain.txt"
    path.write_text("the same old song and again " * 200, encoding="utf-8")
    given = {"target": "text", "draft": "lookup", "target__path": str(path), "target__level": "character"}
    given |= {"rule": rule, "draft__history": 64, "steps": 640, "gamma_max": 4}
    metrics = measure(experiment(**given)).metrics
    assert metrics["tokens_per_step"] > 4
    half = metrics["tokens_per_step_high"] - metrics["tokens_per_step"] + 0.02
    assert abs(metrics["tokens_per_step_expected"] - metrics["tokens_per_step"]) < 3 * half
    assert rule == "threshold" or metrics["lossless_pvalue"] > 1e-6


@pytest.mark.parametrize("rule", [name for name in ALL_RULES if "Cascade" not in name and "Wrong" not in name])
def test_a_one_hot_draft_goes_with_each_rule(rule):
    """In fresh contexts, with a draft that is the target's argmax: lossless where claimed, by the ranked test."""
    run = experiment(draft="temperature", draft__temperature=0.0, steps=2000, gamma=2, gamma_max=2)
    metrics = measure(replace(run, players=replace(run.players, rule=ALL_RULES[rule]))).metrics
    if rule == "Greedy()":  # a stream without noise, and all of the draft kept
        assert (metrics["tokens_per_step"], metrics["lossless_pvalue"]) == (3, None)
    elif ALL_RULES[rule].lossless:
        assert metrics["lossless_pvalue"] > 1e-6
