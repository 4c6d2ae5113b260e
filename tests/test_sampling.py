"""Where a law becomes a token, and how random streams are named."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from specexp.sampling import (
    ROLES,
    columns,
    compact,
    cumulative,
    draw,
    generator,
    keyed_normals,
    pick,
    streams,
    taken,
    target_only_streams,
)

LAST = 1 - 2.0**-53  # the largest uniform
GRID = np.array([0.0, 2.0**-53, 0.25, 0.5, LAST])
FALSE_ALARM = 1e-6  # of each test that looks at noise, were its seed not fixed


def literal_draw(law, uniform):
    """The first token whose exact running sum exceeds u times the exact total."""
    total, running = sum(map(Fraction, law.tolist())), Fraction(0)
    for token, mass in enumerate(law.tolist()):
        running += Fraction(mass)
        if running > Fraction(uniform) * total:
            return token
    raise AssertionError("u < 1")


@pytest.mark.parametrize("vocab", [1, 2, 20, 64, 65, 255, 256, 300])
def test_draw_is_inversion(vocab):
    """Against exact arithmetic, zeros in the law included; 300 tokens overflow a byte."""
    rng = np.random.default_rng(vocab)
    law = rng.exponential(size=(40, vocab)) * (rng.random((40, vocab)) < 0.7)
    law[:, rng.integers(vocab)] += 1e-3
    uniforms = rng.random(40)
    assert draw(law, uniforms).tolist() == [literal_draw(row, u) for row, u in zip(law, uniforms, strict=True)]


@pytest.mark.parametrize("vocab", [1, 3, 20, 100, 300, 5000])
def test_no_token_of_probability_zero(vocab):
    """At both ends of the uniforms, whatever zeros lead, trail or fill the law."""
    rng = np.random.default_rng(vocab)
    for size in (1e-300, 1.0, 1e300):
        law = rng.random((200, vocab)) * (rng.random((200, vocab)) < 0.3)
        law[:100, : vocab // 3] = 0
        law[100:, vocab - vocab // 3 :] = 0
        law[np.arange(200), rng.integers(vocab // 3, vocab - vocab // 3, 200)] = 0.5
        law *= size / vocab
        for uniform in GRID:
            tokens = draw(law, np.full(200, uniform))
            assert (law[np.arange(200), tokens] > 0).all()


def test_rounding_of_the_total_never_reaches_past_the_end():
    """0.1 ten times: u * total can round up to the total, and the last tokens have no mass."""
    law = np.array([0.1] * 10 + [0.0] * 5)
    assert draw(law, np.array([LAST]))[0] == 9
    assert draw(np.nextafter(law, 1) * (law > 0), np.array([LAST]))[0] == 9


@pytest.mark.parametrize("vocab", [64, 65, 255, 256, 257, 300, 65_537])
def test_the_last_token_of_any_vocabulary(vocab):
    """A byte's count would start again at 256."""
    law = np.zeros((3, vocab))
    law[:, -1] = 1
    assert draw(law, np.array([0, 0.5, LAST])).tolist() == [vocab - 1] * 3


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [0.5, np.nan, 0.5], [np.inf, 0.5, 0.5]])
def test_what_is_no_law_is_refused(row):
    with pytest.raises(ValueError, match=r"not a law: row \[1\]"):
        draw(np.array([[0.2, 0.3, 0.5], row]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="not a law"):
        draw(np.array(row), np.array([0.5]))


def test_a_draw_needs_53_bits():
    """V = 131,072 equal tokens: one step of the finest grid below k / V is still token k - 1. A 24-bit uniform cannot
    say so, and a 32-bit sum cannot hold it."""
    vocab = 2**17
    law = np.full(vocab, 1 / vocab)
    k = np.random.default_rng(0).integers(1, vocab, 50)
    assert (draw(law, k / vocab) == k).all()
    assert (draw(law, k / vocab - 2.0**-53) == k - 1).all()
    assert (np.searchsorted(np.cumsum(law), np.float32(k / vocab - 2.0**-53), side="right") == k).any()


def test_draw_over_a_large_skewed_vocabulary():
    """V = 128,256 with a Zipf tail: the token is the one whose float64 interval holds u, to rounding."""
    law = 1 / np.arange(1, 128_257.0)
    cdf = np.cumsum(law)
    uniforms = np.random.default_rng(1).random(200)
    tokens = draw(law, uniforms)
    assert (cdf[tokens] > uniforms * cdf[-1] * (1 - 1e-15)).all()
    assert (cdf[tokens] - law[tokens] <= uniforms * cdf[-1] * (1 + 1e-12)).all()
    assert tokens.max() > 2**15


def test_drawn_tokens_follow_the_law():
    law = np.array([0.4, 0.0, 0.3, 0.2, 0.1])
    counts = np.bincount(draw(law, generator(0, "draft").random(200_000)), minlength=5)
    assert counts[1] == 0
    assert chisquare(counts[law > 0], 200_000 * law[law > 0]).pvalue > FALSE_ALARM
    wrong = np.array([0.41, 0.29, 0.2, 0.1])
    assert chisquare(counts[law > 0], 200_000 * wrong).pvalue < FALSE_ALARM


def test_a_smaller_uniform_draws_an_earlier_token():
    """The coupling of draft lengths rests on it."""
    law = np.random.default_rng(0).dirichlet(np.ones(30))
    assert (np.diff(draw(law, np.linspace(0, LAST, 1000))) >= 0).all()


def layouts(law):
    """The same numbers in memory row by row, column by column, and as a view that jumps."""
    wide = np.zeros((*law.shape[:-1], 2 * law.shape[-1]))
    wide[..., ::2] = law
    return [law, np.asfortranarray(law), np.moveaxis(np.moveaxis(law, -1, 0).copy(), 0, -1), wide[..., ::2]]


@pytest.mark.parametrize("vocab", [5, 20, 64, 65])
def test_the_layout_in_memory_plays_no_part(vocab):
    rng = np.random.default_rng(vocab)
    law, uniforms = rng.dirichlet(np.ones(vocab), (300, 2)), rng.random((300, 2))
    for other in layouts(law):
        assert (cumulative(other) == cumulative(law)).all()  # to the last bit
        assert (draw(other, uniforms) == draw(law, uniforms)).all()


def test_broadcast_laws_are_drawn_from_like_copies():
    rng = np.random.default_rng(0)
    law, uniforms = rng.dirichlet(np.ones(20), 50), rng.random((50, 2, 3))
    view = np.broadcast_to(law[:, None, None], (50, 2, 3, 20))
    assert compact(view).shape == (50, 1, 1, 20)
    assert (draw(view, uniforms) == draw(view.copy(), uniforms)).all()


@pytest.mark.parametrize("name", ["whole", "rows fast", "every second", "backwards", "broadcast", "one row", "nothing"])
def test_picking_is_indexing(name):
    values = np.random.default_rng(0).random((6, 4, 10))
    values = {
        "whole": values,
        "rows fast": np.asfortranarray(values),
        "every second": values[::2, 1:3, ::2],
        "backwards": values[:, ::-1],
        "broadcast": np.broadcast_to(values[:, :1, :1], values.shape),
        "one row": values[:1],
        "nothing": values[:0],
    }[name]
    row, path, token = (np.arange(size) for size in values.shape)
    where = row, path[:, None], token[:, None, None]
    assert (pick(values, *where) == values[where]).all()
    assert pick(values, *where).shape == values[where].shape


def test_the_chance_of_a_token_is_its_entry():
    """Whatever the laws share and however they lie in memory; and it is not the entry next to it."""
    rng = np.random.default_rng(0)
    tokens = np.asfortranarray(rng.integers(0, 20, (50, 2, 3)))
    law = rng.dirichlet(np.ones(20), (50, 2, 4))
    shared = (np.broadcast_to(law[:, :1], law.shape), np.broadcast_to(law[:, :1, :1], law.shape))
    for laws in (*layouts(law), *shared):
        entries = np.take_along_axis(laws[:, :, :3], tokens[..., None], -1)[..., 0]
        assert (taken(laws[:, :, :3], tokens) == entries).all()
        assert (taken(laws[:, :, :3], tokens.copy()) == entries).all()
        assert (taken(laws[:, :, 1:], tokens) != entries).any() or laws is shared[1]


def test_a_longer_draft_adds_columns_and_moves_none():
    short, long = (columns(generator(0, "verify"), 7, count) for count in (2, 5))
    assert (long[:, :2] == short).all()


def test_streams_share_no_number():
    """Roles, blocks, seeds, the target's own walk: all first numbers differ, and each is itself again."""
    first = {}
    for seed in (0, 1):
        for block in (0, 1):
            for role in ROLES:
                first[seed, block, role, "walk"] = streams(seed, block)(role).random()
                first[seed, block, role, "alone"] = target_only_streams(seed, block)(role).random()
                assert generator(seed, role, block).random() == first[seed, block, role, "walk"]
    assert len(set(first.values())) == len(first)


def test_a_seed_of_any_size_names_a_stream():
    windows = np.array([[0], [1]])
    assert np.isfinite(keyed_normals(windows, 3, 2**70 + 1)).all()
    assert generator(2**70, "draft").random() != generator(2**70 + 1, "draft").random()


def test_keyed_normals_are_a_function_of_the_context():
    windows = np.random.default_rng(0).integers(0, 50, (40, 2))
    normals = keyed_normals(windows, 9, seed=3)
    assert (keyed_normals(windows[::-1], 9, 3)[::-1] == normals).all()
    assert (keyed_normals(windows.reshape(5, 8, 2), 9, 3).reshape(40, 9) == normals).all()
    assert (keyed_normals(windows[:1], 9, 3) == normals[:1]).all()
    assert (keyed_normals(windows, 5, 3) == normals[:, :5]).all()  # a token's noise does not depend on V
    different = {(*window, token): normals[i, token] for i, window in enumerate(windows.tolist()) for token in range(9)}
    assert len(set(different.values())) == len(different)
    assert not (keyed_normals(windows, 9, 4) == normals).any()
    assert not (keyed_normals(windows[:, ::-1], 9, 3) == normals)[windows[:, 0] != windows[:, 1]].any()


def test_keyed_normals_are_normal_and_independent():
    """Kolmogorov-Smirnov over 512 contexts of 64 tokens, and the correlation of neighbours in each direction."""
    normals = keyed_normals(np.arange(512)[:, None], 64, seed=0)
    assert kstest(normals.ravel(), "norm").pvalue > FALSE_ALARM
    assert kstest(normals.ravel() * 1.05, "norm").pvalue < FALSE_ALARM  # the test sees five per cent
    seeds = keyed_normals(np.arange(512)[:, None], 64, seed=1)
    for a, b in ((normals[1:], normals[:-1]), (normals[:, 1:], normals[:, :-1]), (normals, seeds)):
        assert abs((a * b).mean()) * np.sqrt(a.size) < 4.9  # normal, sigma 1: 1e-6
    means = normals.mean(0) * np.sqrt(512)
    assert (means**2).sum() < 140  # chi-squared, 64 degrees: 1e-7


@pytest.mark.parametrize("memory", [0, 1, 3])
def test_keyed_normals_of_any_memory(memory):
    windows = np.zeros((4, 3, memory), dtype=np.int64)
    assert keyed_normals(windows, 5, 0).shape == (4, 3, 5)
