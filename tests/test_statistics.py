"""Intervals cover, merging is exact, and the clustered noise floor is what streams of one law show."""

import numpy as np
import pytest

from specexp.statistics import Estimate, Moments
from specexp.statistics.distance import TokenCounts, count_tokens, tv_distance, tv_noise_floor

GAMMA = 4
SEEDS = 400
NAMES = ("alpha", "tokens", "tested", "accepted")


def steps(rng, count):
    """Units [count, 4]: a step has one acceptance beta ~ Beta(6, 2), so tokens, tests and alpha hang together."""
    beta = rng.beta(6, 2, count)
    accepted = (rng.random((count, GAMMA)) < beta[:, None]).cumprod(axis=1).sum(axis=1)
    return np.stack([beta, accepted + 1, np.minimum(accepted + 1, GAMMA), accepted], axis=1)


def closed_form(alpha):
    """(1 - alpha^(gamma+1)) / (1 - alpha), written so that alpha = 1 is no exception."""
    return sum(alpha**k for k in range(GAMMA + 1))


POWERS = np.cumprod([1, *((6 + k) / (8 + k) for k in range(GAMMA))])  # E beta^k of a Beta(6, 2)
NUMBERS = {
    "mean": (lambda m: m["tokens"], POWERS.sum()),
    "ratio": (lambda m: m["accepted"] / m["tested"], POWERS[1:].sum() / POWERS[:-1].sum()),
    "closed form": (lambda m: closed_form(m["alpha"]), closed_form(6 / 8)),
    "closed form error": (lambda m: closed_form(m["alpha"]) / m["tokens"] - 1, closed_form(6 / 8) / POWERS.sum() - 1),
    "paired difference": (lambda m: m["tokens"] - m["tested"], POWERS[-1]),
}


def coverage(function, truth, count, length=1, noise=0.0):
    """Share of SEEDS intervals that hold the truth, from ``count`` requests of ``length`` steps each.

    ``noise`` adds a deviation that all units of a run share.
    """
    held = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        units = steps(rng, count * length).reshape(count, length, -1).mean(axis=1) + noise * rng.normal()
        estimate = Moments.of(NAMES, units).estimate(function)
        held += estimate.low <= truth <= estimate.high
    return held / SEEDS


@pytest.mark.parametrize(("function", "truth"), NUMBERS.values(), ids=NUMBERS.keys())
def test_intervals_cover(function, truth):
    """95 +- 3 % over 400 seeds: were the seeds not fixed, a false alarm in 170 (binomial, 2.75 sigma)."""
    assert coverage(function, truth, count=300) == pytest.approx(0.95, abs=0.03)


def test_few_units_need_student():
    """Five requests: the normal quantile would cover 88 %."""
    assert coverage(*NUMBERS["mean"], count=5, length=60) == pytest.approx(0.95, abs=0.03)


def test_coverage_sees_units_that_are_not_independent():
    assert coverage(*NUMBERS["mean"], count=300, noise=0.2) < 0.8


def test_closed_form_error_is_sharper_paired_than_apart():
    """alpha and tokens come from the same steps: their covariance is in the interval."""
    moments = Moments.of(NAMES, steps(np.random.default_rng(0), 5000))
    together = width(moments.estimate(NUMBERS["closed form error"][0]))
    apart = np.hypot(width(moments.estimate(NUMBERS["closed form"][0])), width(moments.mean("tokens")))
    assert together * moments.mean("tokens").value < 0.9 * apart


def width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def test_the_interval_is_the_textbook_one():
    x = np.random.default_rng(1).normal(size=10)
    mean = Moments.of(("x",), x[:, None]).mean("x")
    half = 2.262157162740992 * x.std(ddof=1) / np.sqrt(10)  # t(.975; 9)
    assert mean == pytest.approx((x.mean(), x.mean() - half, x.mean() + half), rel=1e-9)


def test_the_derivative_is_right():
    moments = Moments.of(NAMES, steps(np.random.default_rng(2), 500))
    accepted, tested = moments.mean("accepted").value, moments.mean("tested").value
    covariance = moments.scatter[2:, 2:] / 499 / 500
    gradient = np.array([-accepted / tested**2, 1 / tested])
    expected = 2 * 1.9647293909890113 * np.sqrt(gradient @ covariance @ gradient)  # t(.975; 499)
    assert width(moments.ratio("accepted", "tested")) == pytest.approx(expected, rel=1e-8)


def test_merging_is_the_same_as_never_splitting():
    units = steps(np.random.default_rng(3), 1000) + 1e6  # an offset that would ruin raw sums of squares
    whole = Moments.of(NAMES, units)
    blocks = [Moments.of(NAMES, block) for block in (units[:1], units[1:1], units[1:700], units[700:])]
    total = sum(blocks[1:], blocks[0])
    assert total.count == 1000
    np.testing.assert_allclose(total.means, whole.means, rtol=1e-15)
    np.testing.assert_allclose(total.scatter, whole.scatter, rtol=1e-9)


def test_merging_needs_the_same_names():
    with pytest.raises(ValueError, match="do not add"):
        Moments.of(("a",), [[1]]) + Moments.of(("b",), [[1]])
    with pytest.raises(ValueError, match=r"need \[units, 2\]"):
        Moments.of(("a", "b"), [[1]])


def test_no_units_and_one_unit_have_no_interval():
    assert Moments.of(("x",), np.empty((0, 1))).mean("x") == (None, None, None)
    assert Moments.of(("x",), [[3]]).mean("x") == (3, None, None)


def test_units_that_do_not_differ_have_an_interval_of_no_width():
    constant = Moments.of(("x", "y"), [[0.1, 0.3]] * 3) + Moments.of(("x", "y"), [[0.1, 0.3]] * 7)
    assert constant.mean("x") == (0.1, 0.1, 0.1)
    assert width(constant.ratio("x", "y")) == 0
    tested = np.random.default_rng(0).integers(1, 5, (500, 1))
    everything_kept = Moments.of(("accepted", "tested"), np.repeat(tested, 2, axis=1))
    assert everything_kept.ratio("accepted", "tested") == (1, 1, 1)
    a_third = Moments.of(("accepted", "tested"), tested * [[1, 3]])
    assert width(a_third.ratio("accepted", "tested")) == 0


def test_a_number_outside_of_its_domain_is_none():
    nothing = Moments.of(("accepted", "tested"), np.zeros((5, 2)))
    assert nothing.ratio("accepted", "tested") == (None, None, None)
    assert nothing.estimate(lambda m: float("inf")) == (None, None, None)


def test_the_closed_form_at_one():
    always = Moments.of(("alpha",), np.ones((10, 1)))
    assert always.estimate(lambda m: closed_form(m["alpha"])) == (GAMMA + 1,) * 3
    nearly = Moments.of(("alpha",), 1 - 1e-9 * np.arange(10)[:, None])
    assert width(nearly.estimate(lambda m: closed_form(m["alpha"]))) == pytest.approx(10 * width(nearly.mean("alpha")))


def test_steady_state_is_a_ratio_over_requests():
    """E[tokens] / E[steps]: requests of unequal length weigh by their steps."""
    assert Moments.of(("tokens", "steps"), [[10, 2], [90, 30]]).ratio("tokens", "steps").value == 100 / 32


# Distances


def single_tokens(rng, count, vocab=20):
    return TokenCounts.of(count_tokens(rng.integers(0, vocab, (count, 1)), vocab))


@pytest.mark.parametrize(("count", "published"), [(1_000, 0.055), (10_000, 0.017)])
def test_independent_tokens_have_the_published_floor(count, published):
    """The textbook floor: V=20, a sample against a law; of two samples, times sqrt(2)."""
    a, b = (single_tokens(np.random.default_rng(seed), count) for seed in (0, 1))
    assert tv_noise_floor(a) == pytest.approx(published, abs=0.0006)
    assert tv_noise_floor(a, b) == pytest.approx(np.sqrt(2) * tv_noise_floor(a), rel=0.01)


def clustered(rng, units=200, vocab=20):
    """Streams of one law; a unit's tokens (one to five) share a context, as a step's do in a fresh world."""
    law = np.exp(2 * rng.normal(size=(units, 1, vocab))).cumsum(axis=-1)
    tokens = (law <= rng.random((units, 5, 1)) * law[..., -1:]).sum(-1)
    return TokenCounts.of(count_tokens(np.where(np.arange(5) < rng.integers(1, 6, (units, 1)), tokens, -1), vocab))


def textbook_floor(a, b):
    p = (a.counts + b.counts) / (a.total + b.total)
    return np.sqrt(p * (1 - p) / (2 * np.pi) * (1 / a.total + 1 / b.total)).sum()


def test_the_clustered_floor_is_what_streams_of_one_law_show():
    """Within 3 % of the mean TV of 300 pairs; the textbook floor, which takes tokens as independent, is 20 % low."""
    rng = np.random.default_rng(0)
    pairs = [(clustered(rng), clustered(rng)) for _ in range(300)]
    seen = np.mean([tv_distance(*pair) for pair in pairs])
    assert np.mean([tv_noise_floor(*pair) for pair in pairs]) == pytest.approx(seen, rel=0.03)
    assert np.mean([textbook_floor(*pair) for pair in pairs]) < 0.85 * seen


def test_counts_add_up():
    tokens = np.random.default_rng(0).integers(-1, 7, (50, 5))
    whole = TokenCounts.of(count_tokens(tokens, 7))
    halves = TokenCounts.of(count_tokens(tokens[:20], 7)) + TokenCounts.of(count_tokens(tokens[20:], 7))
    for name in ("counts", "squares", "products", "square_lengths", "units"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(halves, name))
    assert whole.total == (tokens >= 0).sum()


def test_variances_equal_the_definition():
    tokens = np.random.default_rng(1).integers(-1, 7, (50, 5))
    counts = count_tokens(tokens, 7)
    stream = TokenCounts.of(counts)
    residual = counts - counts.sum(axis=1, keepdims=True) * stream.frequencies()
    np.testing.assert_allclose(stream.variances(), (residual**2).sum(axis=0) / stream.total**2 * 50 / 49, rtol=1e-12)


def test_distance_by_hand():
    a, b = (TokenCounts.of(np.array(counts)) for counts in ([[3, 1], [0, 0]], [[1, 0], [0, 1]]))
    assert tv_distance(a, b) == 0.25
    assert (a.units, b.units) == (1, 2)
    assert tv_noise_floor(a, b) is None  # one unit has no spread
    assert tv_distance(a, TokenCounts.of(np.zeros((1, 2), dtype=np.int64))) is None


def test_a_large_vocabulary_takes_requests_as_units():
    """Counts by request are summed over blocks by the caller and squared once."""
    rng = np.random.default_rng(0)
    counts = sum(count_tokens(rng.integers(0, 128_256, (8, 100)), 128_256) for _ in range(3))
    stream = TokenCounts.of(counts)
    assert (stream.total, stream.units) == (2400, 8)
    assert 0 < tv_noise_floor(stream) < 1


def test_a_sum_of_columns_has_the_moments_of_the_summed_units() -> None:
    units = np.random.default_rng(4).normal(size=(50, 3))
    moments = Moments.of(("a", "b", "c"), units)
    summed = moments.sums(ab=["a", "b"], c=["c"], nothing=[])
    direct = Moments.of(("ab", "c", "nothing"), np.column_stack([units[:, 0] + units[:, 1], units[:, 2], np.zeros(50)]))
    assert summed.names == direct.names
    np.testing.assert_allclose(summed.means, direct.means, atol=1e-14)
    np.testing.assert_allclose(summed.scatter, direct.scatter, atol=1e-12)
    assert summed.mean("ab") == pytest.approx(moments.estimate(lambda m: m["a"] + m["b"]), rel=1e-7)
