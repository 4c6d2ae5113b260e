"""One position of each rule, by hand and by loops; the rest is proved in test_enumeration.py."""

from math import prod
from typing import Any

import numpy as np
import pytest
from worlds import ALL_RULES, WORLDS, rules_of

from specexp.rounds import Local, Replayable, Round, select
from specexp.rules import RULES
from specexp.rules.block import Block
from specexp.rules.match import ExactMatch, MatchRule
from specexp.rules.single import Greedy, Lenient, SingleRule, Token, excess, one_hot_argmax, ratio

P, Q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
SINGLE: dict[str, Any] = {name: rule for name, rule in ALL_RULES.items() if isinstance(rule, SingleRule)}


def round_of(tokens, draft, target, lengths=None):
    """A round with one path: tokens [B, G], laws [B, G+1, V]."""
    tokens = np.asarray(tokens)[:, None]
    lengths = np.full(len(tokens), tokens.shape[2]) if lengths is None else np.asarray(lengths)
    return Round(tokens, np.asarray(draft)[:, None], np.asarray(target)[:, None], np.zeros_like(tokens), lengths)


def drawn_round(rng, rows=30, gamma=4, vocab=5, lengths=None):
    draft, target = rng.dirichlet(np.ones(vocab), (2, rows, gamma + 1))
    return round_of(rng.integers(0, vocab, (rows, gamma)), draft, target, lengths)


def test_acceptance_by_hand():
    assert Token().chances(P, Q) == pytest.approx([1, 1, 2 / 3, 1 / 4])
    assert Token().kept_mass(P, Q).sum() == pytest.approx(0.6)
    assert Token().replacement(P, Q) == pytest.approx([0.75, 0.25, 0, 0])
    assert Lenient(0.5).chances(P, Q) == pytest.approx([1, 1, 1, 1 / 2])
    assert Lenient(0.5).kept_mass(P, Q).sum() == pytest.approx(0.8)
    assert Lenient(0.5, "target").replacement(P, Q) == pytest.approx([0.75, 0.25, 0, 0])
    assert Lenient(0.5, "lenient").replacement(P, Q) == pytest.approx([0.35 / 0.6, 0.2 / 0.6, 0.05 / 0.6, 0])
    assert Greedy().chances(P, Q).tolist() == [1, 0, 0, 0]
    assert Greedy().replacement(P, Q).tolist() == Greedy().bonus(P, Q).tolist() == [1, 0, 0, 0]


def test_no_lenience_is_the_token_rule():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(6), (2, 100))
    for residual in ("target", "lenient"):
        assert Lenient(1.0, residual).chances(p, q) == pytest.approx(Token().chances(p, q), abs=1e-15)
        assert Lenient(1.0, residual).replacement(p, q) == pytest.approx(Token().replacement(p, q), abs=1e-15)


def test_of_equal_maxima_the_lowest_token_counts():
    assert one_hot_argmax(np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3] * 3])).argmax(1).tolist() == [0, 1, 0]
    assert one_hot_argmax(np.full((2, 3, 7), 1 / 7)).sum(-1).tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("p", [0.0, 1e-300, 5e-324, 0.5, 1.0])
@pytest.mark.parametrize("q", [1e-300, 0.5, 1.0])
def test_ratio_of_what_can_be_drafted(p, q):
    assert ratio(np.array([p]), np.array([q]))[0] == pytest.approx(min(1, p / q), rel=1e-15)


@pytest.mark.parametrize("p", [0.0, 1e-300, 0.5, 1.0])
def test_ratio_of_what_cannot_be_drafted_is_a_chance(p):
    assert 0 <= ratio(np.array([p]), np.array([0.0]))[0] <= 1


def test_the_residual_is_a_law_even_where_rounding_left_none():
    """p = q; q above p in every token that p has; a one-hot q above a one-hot p; and the ordinary neighbour of each."""
    nearly = 1 - 2.0**-53
    rows = [
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
        ([0.0, nearly, 0.0], [0.0, 1.0, 0.0]),
        ([0.0, 0.06348875796236489, 0.936511242037635], [0.0, 0.06348875796236492, 0.9365112420376351]),
        ([0.25, 0.25, 0.5], [0.25, 0.25, np.nextafter(0.5, 1)]),
        ([0.0, 5e-324, 1.0], [0.0, 0.0, 1.0]),
        ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ]
    p, q = (np.array([row[i] for row in rows]) for i in (0, 1))
    law = excess(p, q)
    assert law.sum(1) == pytest.approx(1, abs=1e-15)
    assert (law[p == 0] == 0).all()
    assert law[5].tolist() == [0, 0, 1]
    assert law[4].tolist() == [0, 1, 0]
    for row in range(len(rows)):  # alone, each is what it was among the others
        assert (excess(p[row : row + 1], q[row : row + 1]) == law[row]).all()


def test_the_residual_of_equal_laws_with_zeros():
    """softmax(log p) is p to rounding: one in ten such pairs once divided nothing by nothing."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 20_000) * [0, 1, 1]
    p /= p.sum(1, keepdims=True)
    q = np.exp(np.log(np.maximum(p, 1e-320))) * (p > 0)
    q /= q.sum(1, keepdims=True)
    for law in (excess(p, q), excess(q, p)):
        assert law.sum(1) == pytest.approx(1)


@pytest.mark.parametrize("rule", SINGLE.values(), ids=SINGLE.keys())
def test_a_position_adds_up(rule):
    """Kept and replaced mass make a law at every edge, and are what a loop over drafts adds up."""
    for p, q, _ in WORLDS.values():
        kept, replaced = rule.kept_mass(p, q), rule.replaced_mass(p, q)
        assert (kept + replaced).sum(1) == pytest.approx(1, abs=1e-12)
        assert (kept <= q + 1e-16).all()
        assert kept.min() >= 0
        assert replaced.min() >= 0
        for row in range(len(p)):
            chances, law = rule.chances(p, q)[row], rule.replacement(p, q)[row]
            rejected = sum(q[row, x] * (1 - chances[x]) for x in range(len(law)))
            assert kept[row] == pytest.approx([q[row, x] * chances[x] for x in range(len(law))], abs=1e-15)
            assert replaced[row] == pytest.approx([rejected * y for y in law], abs=1e-15)


@pytest.mark.parametrize("rule", SINGLE.values(), ids=SINGLE.keys())
def test_the_chain_is_the_product_of_its_positions(rule):
    """stop_probs against a loop, with drafts of unequal length in one round."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 5, 30)
    round = drawn_round(rng, lengths=lengths)
    stop = rule.stop_probs(round)
    for row in range(30):
        keep = [
            float(rule.chances(round.target_probs[row, 0, i], round.draft_probs[row, 0, i])[x])
            for i, x in enumerate(round.draft_tokens[row, 0, : lengths[row]])
        ]
        expected = [prod(keep[:n]) * (1 - keep[n]) for n in range(len(keep))] + [prod(keep)] + [0.0] * (4 - len(keep))
        assert stop[row, 0] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("rule", SINGLE.values(), ids=SINGLE.keys())
def test_what_follows_depends_on_why_the_step_stopped(rule):
    """The replacement at the first rejection; the bonus after the whole draft, be it shorter than others."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 5, 30)
    round = drawn_round(rng, lengths=lengths)
    for stop in (np.zeros(30, int), lengths - 1, lengths):
        law = rule.next_probs(round, np.zeros(30, int), stop)
        for row, n in enumerate(stop):
            p, q = round.target_probs[row, 0, n], round.draft_probs[row, 0, n]
            expected = rule.bonus(p, q) if n == lengths[row] else instead(rule, p, q, round.draft_tokens[row, 0, n])
            assert law[row] == pytest.approx(expected, abs=1e-15)


def instead(rule, p, q, drafted):
    """[V]: what replaces ``drafted`` once rejected; of a rule that answers, the answers that are not it."""
    if not isinstance(rule, MatchRule):
        return rule.replacement(p, q)
    law = np.delete(rule.answers(p[None], q[None], np.array([drafted]))[0], drafted)
    law = law if law.any() else np.delete(p, drafted)  # never rejected
    return np.insert(law / law.sum(), drafted, 0.0)


@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES.keys())
def test_broadcast_rounds_are_like_copies(rule):
    """One context a step comes as a view with stride 0; no rule may tell."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(5), (2, 30))
    tokens = rng.integers(0, 5, (30, 1, 4))
    target, draft = (np.broadcast_to(law[:, None, None], (30, 1, n, 5)) for law, n in ((p, 5), (q, 5)))
    lengths, owner = np.full(30, 4), np.zeros_like(tokens)
    view = Round(tokens, draft, target, owner, lengths)
    copy = Round(tokens, draft.copy(), target.copy(), owner, lengths)
    assert (rule.stop_probs(view) == rule.stop_probs(copy)).all()
    assert (rule.reference(view) == rule.reference(copy)).all()
    for stop in range(5):
        at = np.zeros(30, int), np.full(30, stop)
        assert (rule.next_probs(view, *at) == rule.next_probs(copy, *at)).all()


@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES.keys())
def test_rules_write_into_nothing(rule):
    round = drawn_round(np.random.default_rng(3))
    for array in (round.draft_tokens, round.draft_probs, round.target_probs, round.owner, round.lengths):
        array.flags.writeable = False
    stop = rule.stop_probs(round)
    rule.next_probs(round, np.zeros(30, int), stop[:, 0].argmax(1))
    rule.reference(round)


@pytest.mark.parametrize("name", RULES)
def test_the_table_says_what_a_rule_claims(name):
    for rule in rules_of(name):
        assert isinstance(rule.lossless, bool)
        assert isinstance(rule.prefix_stable, bool)
        assert rule.max_paths >= 1


def test_which_rules_can_be_solved_and_replayed():
    """A rule for which replay would be wrong must not look replayable: its stream is not sampled from the target."""
    for rule in ALL_RULES.values():
        assert isinstance(rule, Local) == isinstance(rule, SingleRule)
        assert isinstance(rule, Replayable) == isinstance(rule, Token | Block | ExactMatch)


@pytest.mark.parametrize("rule", [Token(), ExactMatch()], ids=repr)
def test_go_on_is_bayes(rule):
    """P(the token came from a kept draft | it is y) = kept mass / p, and the carry of a memoryless rule is None."""
    for p, q, _ in WORLDS.values():
        chance, carry = rule.go_on(p, q, None)
        assert carry is None
        assert chance[p > 0] == pytest.approx((rule.kept_mass(p, q)[p > 0] / p[p > 0]), rel=1e-12)


def test_select_takes_each_rows_own_law():
    laws = np.random.default_rng(0).random((4, 2, 3, 5))
    path, position = np.array([0, 1, 1, 0]), np.array([2, 0, 1, 1])
    assert (
        select(laws, path, position) == [laws[b, k, n] for b, k, n in zip(range(4), path, position, strict=True)]
    ).all()
    shared = np.broadcast_to(laws[:, :1, :1], laws.shape)
    assert (select(shared, path, position) == laws[:, 0, 0]).all()
    by_path = np.broadcast_to(laws[:, :, :1], laws.shape)
    assert (select(by_path, path, position) == laws[np.arange(4), path, 0]).all()


def test_cut_is_the_draft_that_ended_earlier():
    round = drawn_round(np.random.default_rng(4), lengths=np.arange(30) % 5)
    short = round.cut(2)
    assert short.drafted == 2
    assert (short.draft_tokens == round.draft_tokens[:, :, :2]).all()
    assert (short.target_probs == round.target_probs[:, :, :3]).all()
    assert (short.lengths == np.minimum(round.lengths, 2)).all()
    assert short.vocab == 5
