"""The algebra of solvable worlds, against loops, long sums and numbers worked by hand."""

import numpy as np
import pytest
from worlds import WORLDS, drawn, experiment, players, table_pair

from specexp import exact
from specexp.closed_form import closed_form
from specexp.exact import World, closed_classes, stationary
from specexp.rules.single import Greedy, Lenient, Token
from specexp.rules.wrong import Wrong

RULES = [Token(), Lenient(0.4), Lenient(0.4, "lenient"), Greedy()]
GAMMAS = [0, 1, 2, 4, 8, 16]


def solved(item, rule=None):
    return exact.world(table_pair(*item), rule or Token())


def walk_in_law(world, gamma, start, steps):
    """By loops over one token at a time: the mean of P(at least k kept) over ``steps`` steps from ``start`` [S], and
    where the last of them starts. ``at`` is the law of (drafts kept so far, current context)."""
    vocab, contexts = world.target.shape[1], len(world.target)
    kept, replaced, bonus = (
        mass(world)
        for mass in (
            lambda w: w.rule.kept_mass(w.target, w.draft),
            _replaced,
            lambda w: w.rule.bonus(w.target, w.draft),
        )
    )
    total, law = np.zeros(gamma + 1), np.array(start, float)
    for _ in range(steps):
        at, following = law.copy(), np.zeros(contexts)
        for k in range(gamma + 1):
            total[k] += at.sum()
            moved = np.zeros(contexts)
            for context in range(contexts):
                for x in range(vocab):
                    end = (context * vocab + x) % contexts
                    if k < gamma:
                        moved[end] += at[context] * kept[context, x]
                        following[end] += at[context] * replaced[context, x]
                    else:
                        following[end] += at[context] * bonus[context, x]
            at = moved
        law = following
    return total / steps, law


def _replaced(world):
    return world.rule.replaced_mass(world.target, world.draft)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(
    "name", ["worked", "drawn V=3 memory=1", "two tokens remembered", "nearly one-hot V=3 memory=1"]
)
def test_long_run_is_the_long_loop(name, rule):
    """From the solved law of step starts, a step leads to it again, and keeps what the algebra says."""
    world = solved(WORLDS[name], rule)
    for gamma in (0, 1, 4):
        starts = world.step_starts(gamma)
        survival, following = walk_in_law(world, gamma, starts, 1)
        assert following == pytest.approx(starts, abs=1e-12)
        assert world.survival_by_position(gamma) == pytest.approx(survival, abs=1e-12)
        assert world.tokens_per_step(gamma) == pytest.approx(survival.sum(), abs=1e-12)


def test_any_start_is_forgotten():
    """100 steps from one context, by the loop, are where the algebra says; the first steps were not."""
    world = solved(WORLDS["drawn V=3 memory=1"])
    start = np.array([1.0, 0, 0])
    _, law = walk_in_law(world, 2, start, 100)
    assert law == pytest.approx(world.step_starts(2), abs=1e-12)
    assert walk_in_law(world, 2, start, 1)[0].sum() != pytest.approx(world.tokens_per_step(2), abs=1e-3)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_context_is_the_closed_form(gamma):
    """beta = .6 at the worked example; with one context positions are independent and the formula is right."""
    world = solved(WORLDS["worked"])
    assert world.alpha() == pytest.approx(0.6, abs=1e-15)
    assert world.tokens_per_step(gamma) == pytest.approx(closed_form(0.6, gamma), rel=1e-14)
    assert world.tokens_per_step(gamma) == pytest.approx((1 - 0.6 ** (gamma + 1)) / 0.4, rel=1e-14)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_by_hand(gamma):
    """Three worlds in which nothing needs an algebra."""
    assert solved(WORLDS["p = q"]).tokens_per_step(gamma) == pytest.approx(gamma + 1)
    for name in ("one-hot and disjoint", "disjoint supports"):
        assert solved(WORLDS[name]).tokens_per_step(gamma) == pytest.approx(1, abs=1e-15)
    greedy = solved(WORLDS["worked"], Greedy())  # the draft has the argmax with chance .1
    assert greedy.tokens_per_step(gamma) == pytest.approx(sum(0.1**k for k in range(gamma + 1)), rel=1e-14)


def test_alternating_contexts_by_hand():
    """From a comes b, from b comes a; the draft is right after a, never after b. Of gamma = 1: a step from a keeps one
    and emits two, so the next starts in a; one from b emits one, and the next starts in a."""
    flip = np.array([[0.0, 1.0], [1.0, 0.0]])
    world = World(flip, np.array([[0.0, 1.0], [0.0, 1.0]]), 1, Token())
    assert world.step_starts(1) == pytest.approx([1, 0])
    assert world.tokens_per_step(1) == pytest.approx(2)
    assert world.step_starts(0) == pytest.approx([0.5, 0.5])
    assert world.alpha() == pytest.approx(0.5)
    assert closed_form(world.alpha(), 1) == 1.5  # what the formula would say


def test_two_closed_classes_are_weighted_by_the_chance_to_end_there():
    """0 and 1 are for ever; from 2 comes 0 with .25 and 1 with .75: a third each to begin with."""
    p = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.25, 0.75, 0]])
    q = np.array([[1.0, 0, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    world = World(p, q, 1, Token())
    weights = [(1 + 0.25) / 3, (1 + 0.75) / 3, 0]
    for gamma in (0, 1, 4):
        assert world.step_starts(gamma) == pytest.approx(weights, abs=1e-15)
        expected = weights[0] * (gamma + 1) + weights[1] * (2 - 0.5**gamma)
        assert world.tokens_per_step(gamma) == pytest.approx(expected, abs=1e-14)
    assert world.alpha() == pytest.approx(weights[0] + weights[1] / 2)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_long_run_exists_in_every_world(name, rule):
    """Periodic, reducible, one-hot: the mean over many steps from a uniform start goes to what the algebra says."""
    world = solved(WORLDS[name], rule)
    for gamma in (0, 1, 3):
        starts = world.step_starts(gamma)
        assert starts.sum() == pytest.approx(1, abs=1e-12)
        assert starts @ world.step_kernel(gamma) == pytest.approx(starts, abs=1e-12)
        kernel, total = np.linalg.matrix_power(world.step_kernel(gamma), 60), np.zeros(world.contexts)
        for _ in range(40):  # 60 2^40 steps
            kernel = kernel @ kernel / (kernel @ kernel).sum(1, keepdims=True)
        law = kernel.mean(0)
        for _ in range(60):  # a multiple of all periods here
            total, law = total + law, law @ world.step_kernel(gamma)
        assert total / 60 == pytest.approx(starts, abs=1e-9)


def test_stationary_law_against_eigenvectors():
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(40) * 0.2, 40)
    values, vectors = np.linalg.eig(kernel.T)
    law = np.real(vectors[:, np.argmin(abs(values - 1))])
    assert stationary(kernel) == pytest.approx(law / law.sum(), abs=1e-12)


def test_closed_classes():
    kernel = np.zeros((6, 6))
    for a, b in ((0, 1), (1, 0), (2, 0), (2, 3), (3, 4), (4, 3), (5, 5)):
        kernel[a, b] = 1
    assert sorted(sorted(members.tolist()) for members in closed_classes(kernel)) == [[0, 1], [3, 4], [5]]


def test_rare_escapes_are_not_lost():
    """A world that is left once in 1e12 tokens is one class, not two."""
    p = np.array([[1 - 1e-12, 1e-12], [3e-12, 1 - 3e-12]])
    assert World(p, p, 1, Token()).step_starts(0) == pytest.approx([0.75, 0.25], rel=1e-3)


def test_alpha_of_a_greedy_rule_is_over_greedy_contexts():
    """The contexts that the target alone meets are those of greedy decoding there, as in worlds that are not solved."""
    p, q, memory = drawn(4, 1, 3)
    context, overlaps = 0, []
    for _ in range(400):
        overlaps.append(np.minimum(p, q)[context].sum())
        context = int(p[context].argmax())
    assert solved((p, q, memory), Greedy()).alpha() == pytest.approx(np.mean(overlaps[-60:]), abs=1e-12)
    assert solved((p, q, memory)).alpha() == pytest.approx(np.minimum(p, q).sum(1) @ stationary(p), abs=1e-12)


@pytest.mark.parametrize("gamma", [1, 4, 16])
def test_survival_falls_and_lenience_lifts_it(gamma):
    """From any context, the longer the draft the fewer are kept whole; and lenience never keeps less."""
    for item in WORLDS.values():
        strict, lenient = solved(item), solved(item, Lenient(0.5))
        assert strict.survival(gamma).min() >= 0
        assert (strict.survival(gamma)[:-1] >= strict.survival(gamma)[1:] - 1e-15).all()
        assert (lenient.survival(gamma) >= strict.survival(gamma) - 1e-12).all()


def test_which_worlds_are_solvable():
    """Not fresh contexts, not too many, not a rule that is known by its laws alone."""
    assert experiment().world is None
    assert experiment(target="bigram", target__vocab=512).world is not None
    assert experiment(target="bigram", target__vocab=513, draft="bigram").world is None
    p, q, memory = WORLDS["worked"]
    assert exact.world(players(Token(), p, q, memory).pair, Wrong()) is None
