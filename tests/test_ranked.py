"""The ranked losslessness test: calibrated under a correct rule, and awake where the pooled TV distance sleeps."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom, kstest

from specexp.rounds import Floats, Ints
from specexp.sampling import draw
from specexp.statistics.distance import TokenCounts, count_tokens, tv_distance, tv_noise_floor
from specexp.statistics.ranked import RankedSums, rank_cells, ranked_sums, ranked_test, token_cells

GAMMA = 4


class Stream(NamedTuple):
    reference: Floats
    draft: Floats
    tokens: Ints
    lengths: Ints


def fresh_laws(rng, steps, *, vocab=20, sigma=0.3, scale=1.0, positions=1):
    """p and q [steps, GAMMA + 1, V], one context a step (positions=1, a broadcast view) or one a position."""
    logits = scale * rng.normal(size=(steps, positions, vocab))
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    q = p * np.exp(sigma * rng.normal(size=p.shape))
    q /= q.sum(-1, keepdims=True)
    return tuple(np.broadcast_to(law, (steps, GAMMA + 1, vocab)) for law in (p, q))


def token_rule(rng, p, q, *, accept="p/q", residual="p-q", bonus="p", adaptive=False) -> Stream:
    """Leviathan's token rule, and its wrong variants; an adaptive draft ends after a token of q < 1/V."""
    steps, positions, vocab = p.shape
    gamma, row = positions - 1, np.arange(steps)
    drafts = draw(q[:, :gamma], rng.random((steps, gamma)))
    px, qx = (np.take_along_axis(law[:, :gamma], drafts[..., None], -1)[..., 0] for law in (p, q))
    chance = px / qx if accept == "p/q" else qx / px
    lengths = np.full(steps, gamma)
    if adaptive:
        sure = (qx * vocab >= 1).cumprod(axis=1).sum(axis=1)  # that token is kept; and no draft where q is flat
        lengths = np.where(q[:, 0].max(-1) * vocab < 3, 0, np.minimum(sure + 1, gamma))
    kept = np.minimum((rng.random((steps, gamma)) < chance).cumprod(axis=1).sum(axis=1), lengths)
    p_next, q_next = p[row, kept], q[row, kept]
    rest = np.maximum(p_next - q_next, 0) if residual == "p-q" else p_next
    rest = np.where(rest.sum(-1, keepdims=True) > 0, rest, p_next)
    last = np.where((kept == lengths)[:, None], p_next if bonus == "p" else q_next, rest)
    tokens = np.full((steps, positions), -1)
    tokens[:, :gamma] = np.where(np.arange(gamma) < kept[:, None], drafts, -1)
    tokens[row, kept] = draw(last, rng.random(steps))
    return Stream(p, q, tokens, lengths)


def correct(rng, steps, **world) -> Stream:
    return token_rule(rng, *fresh_laws(rng, steps, **world))


def with_tokens(stream: Stream, tokens: Ints) -> Stream:
    return stream._replace(tokens=np.where(stream.tokens >= 0, tokens, -1))


def pvalues(*streams: Stream) -> dict[str, float | None]:
    return ranked_test(merged(*streams)).pvalues


def merged(*streams: Stream) -> RankedSums:
    first, *others = (ranked_sums(*stream) for stream in streams)
    return sum(others, first)


WORLDS: dict[str, dict[str, Any]] = {
    "one context a step": {},
    "one context a position": {"positions": GAMMA + 1},
    "many tokens": {"vocab": 100},
    "almost deterministic": {"scale": 6.0, "sigma": 2.0},  # few chance events however many tokens
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_correct_rule_gives_uniform_pvalues(world, adaptive):
    """200 runs of 300 steps. Were the seed not fixed, each part would fail with a chance of 1e-4 + 1e-4."""
    rng = np.random.default_rng(8)
    runs = [
        ranked_test(ranked_sums(*token_rule(rng, *fresh_laws(rng, 300, **world), adaptive=adaptive)))
        for _ in range(200)
    ]
    for part in runs[0].pvalues.keys() - {"support"}:
        sample = [run.pvalues[part] for run in runs if run.pvalues[part] is not None]
        assert kstest(sample, "uniform").pvalue > 1e-4, part
        assert (np.array(sample) < 0.05).sum() <= binom.isf(1e-4, len(sample), 0.05), part
    assert sum(run.pvalue < 0.05 for run in runs) <= binom.isf(1e-4, len(runs), 0.05)
    assert np.mean([run.tv_ranked / run.tv_ranked_noise_floor for run in runs]) == pytest.approx(1, abs=0.05)


def wrong_streams(rng, steps, positions):
    laws = fresh_laws(rng, steps, positions=positions)
    right = token_rule(rng, *laws)
    return {
        "residual from p": (token_rule(rng, *laws, residual="p"), ("first_by_ratio", "later_by_ratio")),
        "accept q/p": (token_rule(rng, *laws, accept="q/p"), ("first_by_ratio", "later_by_ratio")),
        "bonus from q": (token_rule(rng, *laws, bonus="q"), ("bonus_by_ratio",)),
        "ids shifted": (
            with_tokens(right, (right.tokens + 1) % 20),
            ("first_by_target", "later_by_target", "bonus_by_target"),
        ),
        "uniform tokens": (
            with_tokens(right, rng.integers(0, 20, right.tokens.shape)),
            ("first_by_target", "later_by_target"),
        ),
    }


@pytest.mark.parametrize("positions", [1, GAMMA + 1])
def test_wrong_rules_fall_where_the_pooled_distance_is_blind(positions):
    """Each wrong stream fails the parts that see it; none shows in the pooled TV, which stays at its noise floor."""
    rng = np.random.default_rng(5)
    target_only = TokenCounts.of(count_tokens(correct(rng, 5000, positions=positions).tokens, 20))
    for name, (stream, parts) in wrong_streams(rng, 5000, positions).items():
        result = ranked_test(ranked_sums(*stream))
        assert result.pvalue < 1e-6, name
        assert all(result.pvalues[part] < 1e-6 for part in parts), (name, result.pvalues)
        emitted = TokenCounts.of(count_tokens(stream.tokens, 20))
        assert tv_distance(emitted, target_only) < 1.5 * tv_noise_floor(emitted, target_only), name


@pytest.mark.parametrize(
    "invalid", ["after a rejection", "accepted only", "first of long steps", "steps of one length"]
)
def test_selections_that_look_ahead_fail_a_correct_rule(invalid):
    """A guard: nobody may 'improve' the test by selecting on what the rule decided."""
    stream = correct(np.random.default_rng(3), 5000)
    emitted = (stream.tokens >= 0).sum(axis=1)[:, None]
    position = np.arange(GAMMA + 1)
    chosen = {
        "after a rejection": (position == emitted - 1) & (emitted <= GAMMA),
        "accepted only": position < emitted - 1,
        "first of long steps": (position == 0) & (emitted == GAMMA + 1),
        "steps of one length": (emitted == 2) & (position < 2),
    }[invalid]
    assert ranked_test(ranked_sums(*stream)).pvalue > 1e-3
    assert ranked_test(ranked_sums(*stream._replace(tokens=np.where(chosen, stream.tokens, -1)))).pvalue < 1e-6


def tied_laws(rng, steps, vocab=12):
    """Laws with equal tokens, tokens never drafted, tokens never emitted: a few levels over a shuffled vocabulary."""
    p, q = (rng.integers(0, 4, (steps, GAMMA + 1, vocab)).astype(float) for _ in "pq")
    p[..., 0] = q[..., 0] = 1
    return p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)


def slow_sums(stream: Stream) -> tuple[Floats, Floats, Floats]:
    """The definition, token by token: a token's rank is the number of tokens ahead of it."""
    vocab = stream.reference.shape[-1]
    observed, expected = np.zeros((2, 3, vocab)), np.zeros((2, 3, vocab))
    covariance = np.zeros((2, 3, vocab, vocab))
    for b, j in np.argwhere(stream.tokens >= 0):
        p, q = stream.reference[b, j], stream.draft[b, j]
        ratio = [float(np.float32(p[x] / q[x])) if q[x] > 0 else -1 for x in range(vocab)]
        part = 0 if j == 0 else 1 if j < stream.lengths[b] else 2
        for r, keys in enumerate((list(zip(ratio, p, strict=True)), list(zip(p, ratio, strict=True)))):
            ranks = [sum(other > key for other in keys) for key in keys]
            mass = np.bincount(ranks, weights=p, minlength=vocab)
            observed[r, part, ranks[stream.tokens[b, j]]] += 1
            expected[r, part] += mass
            covariance[r, part] += np.diag(mass) - np.outer(mass, mass)
    return observed, expected, covariance


@pytest.mark.parametrize("laws", [tied_laws, lambda rng, steps: fresh_laws(rng, steps, vocab=12)])
def test_sums_equal_the_definition(laws):
    rng = np.random.default_rng(2)
    stream = token_rule(rng, *laws(rng, 60), adaptive=True)
    sums = ranked_sums(*stream)
    for fast, slow in zip((sums.observed, sums.expected, sums.covariance), slow_sums(stream), strict=True):
        np.testing.assert_allclose(fast, slow, atol=1e-12)


def assert_same(a: RankedSums, b: RankedSums) -> None:
    np.testing.assert_array_equal(a.observed, b.observed)
    np.testing.assert_allclose(a.expected, b.expected, atol=1e-11)
    np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-11)
    assert (a.impossible, a.improbable) == (b.impossible, b.improbable)
    assert a.improbable_expected == pytest.approx(b.improbable_expected, rel=1e-9)


def part_of(stream: Stream, rows) -> Stream:
    return Stream(*(array[rows] for array in stream))


@pytest.mark.parametrize("laws", [tied_laws, fresh_laws])
def test_sums_do_not_depend_on_views_blocks_order_or_token_ids(laws):
    rng = np.random.default_rng(4)
    stream = token_rule(rng, *laws(rng, 101))
    sums = ranked_sums(*stream)
    assert_same(sums, ranked_sums(*(np.array(array) for array in stream)))
    assert_same(sums, merged(part_of(stream, slice(0, 37)), part_of(stream, slice(37, None))))
    assert_same(sums, ranked_sums(*part_of(stream, rng.permutation(101))))
    ids = rng.permutation(stream.reference.shape[-1])  # new id of each token
    back = np.argsort(ids)
    renamed = with_tokens(
        stream._replace(reference=stream.reference[..., back], draft=stream.draft[..., back]), ids[stream.tokens]
    )
    assert_same(sums, ranked_sums(*renamed))


def test_one_context_for_all_steps_is_ranked_once():
    """A `fixed` world: p = (.4, .3, .2, .1), q reversed (the worked example); by p/q the ranks are the tokens."""
    rng = np.random.default_rng(6)
    p, q = (
        np.broadcast_to(law, (2000, GAMMA + 1, 4))
        for law in (np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4]))
    )
    stream = token_rule(rng, p, q)
    sums = ranked_sums(*stream)
    np.testing.assert_array_equal(sums.observed[0, 0], np.bincount(stream.tokens[:, 0], minlength=4))
    np.testing.assert_allclose(sums.expected[1, 0], 2000 * p[0, 0])
    assert ranked_test(sums).pvalue > 1e-3
    assert ranked_test(ranked_sums(*token_rule(rng, p, q, residual="p"))).pvalue < 1e-6


def test_what_is_never_drafted_ranks_last():
    cells = token_cells(np.array([[-1.0, 0.5, 2.0, 0.5]]), np.array([[0.9, 0.1, 0.1, 0.1]]))
    assert cells.tolist() == [[3, 1, 0, 1]]


@pytest.mark.parametrize("vocab", [1, 2, 32, 33, 1000, 128_256])
def test_cells_are_few_and_in_order_of_rank(vocab):
    cells = rank_cells(vocab)
    assert cells[0] == 0
    assert set(np.diff(cells)) <= ({1} if vocab <= 32 else {0, 1})
    assert cells[-1] < 32


def test_one_token_leaves_nothing_to_test():
    result = ranked_test(ranked_sums(*correct(np.random.default_rng(0), 500, vocab=1)))
    assert set(result.pvalues.values()) == {None}
    assert result.pvalue is None
    assert (result.tv_ranked, result.tv_ranked_noise_floor) == (0, 0)


def test_no_token_gives_no_number():
    stream = correct(np.random.default_rng(0), 5)
    nothing = ranked_test(ranked_sums(*stream._replace(tokens=np.full_like(stream.tokens, -1))))
    assert (nothing.pvalue, nothing.tv_ranked, nothing.tv_ranked_noise_floor) == (None, None, None)


@pytest.mark.parametrize("vocab", [2, 1000])
def test_other_vocabularies(vocab):
    rng = np.random.default_rng(1)
    laws = fresh_laws(rng, 500, vocab=vocab, sigma=1.0)
    assert ranked_test(ranked_sums(*token_rule(rng, *laws))).pvalue > 1e-3
    assert ranked_test(ranked_sums(*token_rule(rng, *laws, accept="q/p"))).pvalue < 1e-6


def test_a_one_hot_law_is_broken_by_one_wrong_token():
    """Greedy decoding: no chance is left, so the score test is silent and an impossible token decides."""
    rng = np.random.default_rng(1)
    p, q = fresh_laws(rng, 500)
    argmax = p.argmax(-1)
    stream = Stream(np.eye(20)[argmax], q, np.where(rng.random(argmax.shape) < 0.9, argmax, -1), np.full(500, GAMMA))
    right = ranked_test(ranked_sums(*stream))
    assert (right.pvalue, right.tv_ranked, right.tv_ranked_noise_floor) == (None, 0, 0)
    stream.tokens[7, 0] = (argmax[7, 0] + 1) % 20
    assert ranked_test(ranked_sums(*stream)).pvalue == 0


def test_improbable_tokens_are_counted_where_no_cell_can_hold_them():
    """p leaves 2e-8 to all tokens but one: 20 such tokens in 5,000 steps are no accident, and none is no news."""
    p = np.full((5000, 1, 20), 1e-9)
    p[..., 0] = 1 - 19e-9
    stream = Stream(p, p, np.zeros((5000, 1), dtype=np.int64), np.zeros(5000, dtype=np.int64))
    assert pvalues(stream) == {**dict.fromkeys(pvalues(stream)), "support": 1.0}
    stream.tokens[:20] = 3
    assert ranked_test(ranked_sums(*stream)).pvalue < 1e-6


def test_ratios_that_are_equal_in_theory_are_not_ranked_by_rounding() -> None:
    """q = p mixed with a one-hot law: every token but one has the same p/q, up to the last digits."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(20), 200)
    q = 0.8 * p
    q[:, 0] += 0.2
    nudged = q * (1 + rng.uniform(-1e-14, 1e-14, q.shape))
    tokens = np.array([[rng.choice(20, p=row)] for row in p])
    lengths = np.ones(200, dtype=np.int64)
    sums = [ranked_sums(p[:, None], draft[:, None], tokens, lengths) for draft in (q, nudged)]
    assert np.array_equal(sums[0].observed, sums[1].observed)
    assert not np.array_equal(token_cells(p / q, p), token_cells(p / nudged, p))  # the ratios themselves would be
