"""Targets and drafts: one contract for every sensible pair of the tables, and what each of them promises."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import kstest
from worlds import WORLDS, config, drawn, experiment

from specexp import build, exact
from specexp.errors import UserError
from specexp.models.derived import OTHERS, Alpha, Noise, WindowDerived, derived
from specexp.models.random import RandomTarget
from specexp.models.table import Table, context_numbers, contexts, random_rows, softmax
from specexp.sampling import keyed_normals, streams
from specexp.trees import Tree

FALSE_ALARM = 1e-6
PAIRS = [(target, draft) for draft in build.DRAFTS for target in build.TARGETS if build.goes_with(draft, target)]


@pytest.fixture(scope="module")
def small_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "cab.txt"
    rng = np.random.default_rng(0)
    path.write_text("".join(rng.choice(list("abc "), 3000, p=[0.4, 0.3, 0.2, 0.1])), encoding="utf-8")
    return str(path)


def pair_of(target, draft, small_text, **more):
    given = {"target__order": 3, "target__level": "character", "target__path": small_text} if target == "text" else {}
    given |= {"draft__order": 2} if draft == "text" else {}
    return experiment(target=target, draft=draft, **given, **more).players.pair


@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_every_pair_keeps_the_contract(target, draft, small_text):
    pair = pair_of(target, draft, small_text)
    rng = np.random.default_rng(1)
    state = pair.start(pair.first_prompts(6, rng), streams(0))
    tokens = rng.integers(0, pair.vocab, (6, 2, 4))
    for model, own, laws in (
        (pair.target, state[0], pair.target_laws(state, tokens)),
        (pair.draft, state[1], pair.draft_laws(state, tokens)),
    ):
        assert model.vocab == pair.vocab
        assert laws.shape == (6, 2, 5, pair.vocab)
        assert laws.min() >= 0
        assert laws.sum(-1) == pytest.approx(1, abs=1e-12)
        again = model.laws(own, tokens)
        assert (again == laws).all()  # the state stays as it was
        for n in range(5):
            assert (model.law(own, tokens[:, :, :n]) == laws[:, :, n]).all()


@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_every_pair_advances_by_what_was_emitted(target, draft, small_text):
    """Where contexts persist, the law after a commit is the law after those tokens; else contexts are new."""
    pair = pair_of(target, draft, small_text)
    rng = np.random.default_rng(2)
    state = pair.start(pair.first_prompts(6, rng), streams(0))
    tokens, lengths = rng.integers(0, pair.vocab, (6, 1, 4)), np.array([1, 2, 3, 4, 1, 4])
    before = [pair.target_laws(state, tokens), pair.draft_laws(state, tokens)]
    padded = np.where(np.arange(4) < lengths[:, None], tokens[:, 0], -1)
    following = pair.advance(state, padded, lengths)
    nothing = tokens[:, :, :0]
    for old, new in zip(
        before, [pair.target_laws(following, nothing), pair.draft_laws(following, nothing)], strict=True
    ):
        if pair.persistent:
            assert (new[:, 0, 0] == old[np.arange(6), 0, lengths]).all()
        else:
            assert (new[:, 0, 0] != old[:, 0, 0]).any(1).all()
    assert (pair.target_laws(state, tokens) == before[0]).all()


@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_rows_of_persistent_pairs_do_not_meet(target, draft, small_text):
    """A stream's laws do not depend on which streams walk beside it."""
    pair = pair_of(target, draft, small_text)
    if pair.persistent:
        rng = np.random.default_rng(3)
        prompts = pair.first_prompts(6, rng)
        tokens = rng.integers(0, pair.vocab, (6, 1, 3))
        together = pair.draft_laws(pair.start(prompts, streams(0)), tokens)
        alone = pair.draft_laws(pair.start(prompts[2:3], streams(0)), tokens[2:3])
        assert (alone[0] == together[2]).all()


@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_proposals_follow_the_drafts_own_path(target, draft, small_text):
    """Token n is drawn from the law after the n tokens before it, by its own uniform."""
    pair = pair_of(target, draft, small_text, draft__paths=1)
    rng = np.random.default_rng(4)
    state, uniforms = pair.start(pair.first_prompts(50, rng), streams(0)), rng.random((50, 1, 4))
    tokens, laws = pair.propose(state, uniforms, Tree.of_paths(1, 4))
    assert (laws == pair.draft_laws(state, tokens)).all()
    below = np.where(np.arange(pair.vocab) < tokens[..., None], laws[:, :, :-1], 0).sum(-1)
    own = np.take_along_axis(laws[:, :, :-1], tokens[..., None], -1)[..., 0]
    assert (below <= uniforms + 1e-12).all()
    assert (uniforms <= below + own + 1e-12).all()


# ---- fresh contexts


def start(target, rows=200, block=0):
    return target.start(np.zeros((rows, 0), dtype=np.int64), streams(0, block))


def test_random_target_is_softmax_of_standard_normals():
    """log p is a standard normal minus what all tokens of the context share: differences are N(0, 2)."""
    law = RandomTarget(vocab=20).laws(start(RandomTarget(20), 2000), np.zeros((2000, 1, 0), int))[:, 0, 0]
    difference = (np.log(law[:, 0]) - np.log(law[:, 1])) / np.sqrt(2)
    assert kstest(difference, "norm").pvalue > FALSE_ALARM
    assert kstest(difference * 1.3, "norm").pvalue < FALSE_ALARM


def test_one_context_a_step_or_a_position():
    tokens = np.random.default_rng(0).integers(0, 20, (200, 1, 5))
    by_step = RandomTarget(20, "step").laws(start(RandomTarget(20, "step")), tokens)
    assert by_step.strides[1] == by_step.strides[2] == 0  # a view, not copies
    by_position = RandomTarget(20, "position").laws(start(RandomTarget(20, "position")), tokens)
    assert (by_position[:, :, 0] == by_step[:, :, 0]).all()
    for a, b in zip(range(6), range(1, 6), strict=False):
        assert (by_position[:, 0, a] != by_position[:, 0, b]).any(1).all()


def test_fresh_contexts_ignore_tokens_and_longer_drafts():
    target = RandomTarget(20, "position")
    zeros, long = np.zeros((200, 1, 2), int), np.ones((200, 1, 7), int)
    state = start(target)
    assert (target.laws(state, zeros) == target.laws(start(target), long)[:, :, :3]).all()
    assert (target.laws(state, long)[:, :, :3] == target.laws(state, zeros)).all()


def test_the_draft_model_does_not_move_the_contexts():
    target = RandomTarget(20)
    nothing = np.zeros((200, 1, 0), int)
    for derivation in (Noise(0.1), Noise(2.0), Alpha(0.9)):
        draft = derived(target, derivation, 0, 512)
        state = start(target)
        draft.laws(state, nothing)
        assert (target.laws(state, nothing) == target.laws(start(target), nothing)).all()


def test_commits_are_pure_and_repeatable():
    """The same walk meets the same contexts in its second and third step."""
    target, tokens, one = RandomTarget(5, "position"), np.zeros((200, 1), int), np.ones(200, int)
    walks = []
    for peek in (0, 3):  # how many positions were looked at before the commit plays no part
        state = start(target)
        target.laws(state, np.zeros((200, 1, peek), int))
        second = target.advance(state, tokens, one)
        third = target.advance(second, tokens, one)
        walks.append([target.law(s, np.zeros((200, 1, 0), int)) for s in (state, second, third)])
    assert all((a == b).all() for a, b in zip(*walks, strict=True))
    assert len({float(law[0, 0, 0]) for law in walks[0]}) == 3


# ---- derived drafts


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_noise_is_normal_in_the_logits(sigma):
    """log q - log p differs between tokens by N(0, 2 sigma^2), in fresh contexts and in persistent ones."""
    rng = np.random.default_rng(0)
    fresh, p = rng.dirichlet(np.ones(2), 4000), random_rows(4000, 2, rng)
    windows = np.arange(4000)[:, None]
    for law, normals in ((fresh, rng.normal(size=(4000, 2))), (p, keyed_normals(windows, 2, 0))):
        q = Noise(sigma).derive(law, lambda normals=normals: normals)
        moved = np.diff(np.log(q) - np.log(law), axis=-1)[:, 0] / sigma / np.sqrt(2)
        assert kstest(moved, "norm").pvalue > FALSE_ALARM
        assert kstest(moved * 1.2, "norm").pvalue < FALSE_ALARM


def test_noise_excludes_what_the_target_excludes():
    q = Noise(0.7).derive(np.array([[0.0, 0.4, 0.6], [0.0, 0.0, 1.0]]), lambda: np.ones((2, 3)))
    assert (q[:, 0] == 0).all()
    assert q[1].tolist() == [0, 0, 1]
    assert q.sum(1) == pytest.approx(1)


def test_noise_of_nothing_is_the_target():
    p = np.random.default_rng(0).dirichlet(np.ones(9), 50)
    assert Noise(0.0).derive(p, lambda: np.ones((50, 9))) == pytest.approx(p, rel=1e-14)


def test_noise_belongs_to_a_persistent_context():
    """The same context twice has the same draft, at any place of any stream; tabulated or not."""
    p, _, memory = drawn(4, 2, 0)
    target = Table(p, memory)
    lazy, table = WindowDerived(target, Noise(0.5), 7), derived(target, Noise(0.5), 7, 512)
    assert isinstance(table, Table)
    assert isinstance(derived(target, Noise(0.5), 7, 15), WindowDerived)  # 16 contexts are too many for 15
    tokens = np.tile([1, 2, 3], 4)[None, None]
    laws = lazy.laws(lazy.start(np.array([[2, 3]]), streams(0)), tokens)
    assert (laws[0, 0, 3:] == laws[0, 0, :-3]).all()
    assert (laws == table.laws(table.start(np.array([[2, 3]]), streams(1)), tokens)).all()
    assert (laws[0, 0, 0] != laws[0, 0, 1]).all()


@pytest.mark.parametrize("other", OTHERS)
def test_alpha_is_exact_in_every_context(other):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 500)
    reach = 1 - np.abs(p - OTHERS[other](p)).sum(1) / 2
    for alpha in (1.0, 0.99, reach.max() + 1e-9, (1 + reach.max()) / 2, float(reach.max())):
        q = Alpha(alpha, other).derive(p, lambda: np.zeros_like(p))
        assert np.minimum(p, q).sum(1) == pytest.approx(alpha, abs=1e-12)
        assert q.min() >= 0
        assert q.sum(1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", WORLDS)
def test_alpha_is_exact_at_the_edges_or_refused(name, other):
    """Zeros, one-hot laws, one token: either just the alpha asked for, or an error that names what can be reached."""
    p = WORLDS[name][0]
    for alpha in (0.0, 0.3, 0.7, 1.0):
        reach = (1 - np.abs(p - OTHERS[other](p)).sum(1) / 2).max()
        if alpha >= reach - 1e-13:
            q = Alpha(alpha, other).derive(p, lambda: np.zeros_like(p))
            assert np.minimum(p, q).sum(1) == pytest.approx(alpha, abs=1e-12)
        else:
            with pytest.raises(UserError, match=rf"^draft.alpha={alpha:g}: out of reach .*= [\d.e-]+; take a larger"):
                Alpha(alpha, other).derive(p, lambda: np.zeros_like(p))


def test_alphas_reach_is_what_the_message_says():
    p = np.array([[0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]])
    with pytest.raises(UserError, match=r"draft.other=reversed, where .* = 0.6; take a larger alpha, or draft.other=l"):
        Alpha(0.3, "reversed").derive(p[:1], lambda: p)
    assert Alpha(0.6, "reversed").derive(p[:1], lambda: p)[0] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    with pytest.raises(UserError, match=r"draft.other=least, where alpha >= .* = 0.1; take a larger alpha$"):
        Alpha(0.05, "least").derive(p, lambda: p)


# ---- finite memories


@pytest.mark.parametrize(("vocab", "memory"), [(1, 0), (1, 3), (3, 0), (3, 1), (2, 4), (5, 2)])
def test_contexts_are_numbered_oldest_token_first(vocab, memory):
    windows = contexts(vocab, memory)
    assert windows.tolist() == [list(window) for window in product(range(vocab), repeat=memory)]
    assert context_numbers(windows, vocab).tolist() == list(range(vocab**memory))


@pytest.mark.parametrize("memory", [0, 1, 2, 5])
def test_windows_are_the_last_tokens_of_the_stream(memory):
    """Against slices of the written-out text, for drafts shorter and longer than the memory."""
    rng = np.random.default_rng(memory)
    table = Table(np.full((1, 9), 1 / 9), memory)
    prompts = rng.integers(0, 9, (4, 6))
    state = table.start(prompts, streams(0))
    for n in (0, 1, 3, 8):
        tokens = rng.integers(0, 9, (4, 2, n))
        windows = table.windows(state, tokens)
        for row, path, i in product(range(4), range(2), range(n + 1)):
            text = [*prompts[row], *tokens[row, path, :i]]
            assert windows[row, path, i].tolist() == text[len(text) - memory :]
        assert (table.window(state, tokens) == windows[:, :, n]).all()


def test_a_prompt_shorter_than_the_memory_is_refused():
    with pytest.raises(ValueError, match="prompts of 1 tokens for a memory of 2"):
        Table(np.ones((1, 1)), 2).start(np.zeros((3, 1), int), streams(0))


def test_drawn_matrices_are_their_own():
    """Target and draft, seed and seed: all differ; the same seed draws the same."""
    rows = {
        (seed, who): getattr(experiment(target="bigram", draft="bigram", seed=seed).players.pair, who).rows
        for seed, who in product((0, 1), ("target", "draft"))
    }
    assert len({float(matrix[0, 0]) for matrix in rows.values()}) == 4
    again = experiment(target="bigram", draft="bigram", seed=1, gamma=9).players.pair
    assert (again.target.rows == rows[1, "target"]).all()
    assert (again.draft.rows == rows[1, "draft"]).all()


def test_softmax_knows_the_impossible():
    assert softmax(np.array([-np.inf, 0.0, 1000.0])).tolist() == [0, 0, 1]


def test_text_pair_reads_one_text(small_text):
    """Both models over the target's alphabet; prompts are pieces of the held-out part; memory is the longer one."""
    pair = pair_of("text", "text", small_text)
    assert (pair.target.memory, pair.draft.memory, pair.memory) == (2, 1, 2)
    assert pair.vocab == 5  # a, b, c, space and the unknown
    target = build.member("target", config(target="text")["target"] | {"path": small_text, "level": "character"})
    held_out = "".join(map(str, target.corpus().held_out))
    for prompt in pair.first_prompts(20, np.random.default_rng(0)):
        assert "".join(map(str, prompt)) in held_out


def test_a_small_text_world_is_solvable(small_text):
    """5 characters and 2 remembered make 25 contexts; the laws there are the models' own."""
    pair = pair_of("text", "text", small_text)
    world = exact.world(pair, experiment().players.rule)
    assert world.target.shape == (25, 5)
    windows = contexts(5, 2)
    assert (world.target == pair.target.conditional(windows)).all()
    assert (world.draft == pair.draft.conditional(windows[:, 1:])).all()
