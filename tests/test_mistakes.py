"""What real engines shipped, one mistake each: caught by the proof, by the ranked test, or an error here."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from worlds import WORLDS, drawn, experiment, players

from specexp.engine import Plan, Players, choose, refuse_undraftable, verify, walk
from specexp.enumeration import enumerate_steps
from specexp.lengths import Fixed
from specexp.models.pair import Pair
from specexp.models.table import Table
from specexp.observe import observe
from specexp.rounds import select
from specexp.rules.block import Block
from specexp.rules.gumbel import Gumbel
from specexp.rules.single import SingleRule, Token, excess, one_hot_argmax, ratio
from specexp.sampling import NotALaw, draw
from specexp.statistics.ranked import ranked_test

ITEM = WORLDS["drawn V=3 memory=1"]
ROUNDING = 1e-12


def bias(rule, item=ITEM, gamma=3):
    return enumerate_steps(players(rule, *item), gamma).bias(max(2, gamma + 1)).max()


# ---- block verification gone wrong


class BreaksAtTheFirstFailure(Block):
    """Stops looking where the first prefix fails."""

    def stop_probs(self, round):
        passes = self._passes(round, self.at_least(round))
        fails = np.append(1 - passes[:, 1:], np.ones((len(passes), 1)), axis=1)
        return (np.cumprod(passes, axis=1) * fails)[:, None]


class PrefixChanceAsTest(Block):
    """Takes h_i = p_i, the chance that the prefix should survive, for the test of it alone."""

    def _passes(self, round, chances):
        return chances


class TokensResidual(Block):
    """Replaces by norm([p - q]+), as the token rule does."""

    def next_probs(self, round, path, stop):
        return Token().next_probs(round, path, stop)


class ProductOfUniforms(Block):
    """Compares h_i with u_1 .. u_i in place of a number of its own; the law at two drafts, by integration."""

    def stop_probs(self, round):
        if round.drafted != 2:
            return super().stop_probs(round)
        first, second = self._passes(round, self.at_least(round))[:, 1:].T
        log = np.log(np.maximum(second, 1e-300))
        both = second * (1 - log)  # P(u1 u2 <= h2)
        larger = np.maximum(first, second)
        none = 1 - larger + second * np.log(np.maximum(larger, 1e-300))  # P(u1 > h1, u1 u2 > h2)
        return np.stack([none, 1 - none - both, both], axis=-1)[:, None]


BLOCKS = [BreaksAtTheFirstFailure, PrefixChanceAsTest, TokensResidual, ProductOfUniforms]


@pytest.mark.parametrize("mistake", BLOCKS)
def test_block_verification_gone_wrong_is_seen(mistake):
    """By summing, at two drafts; at one draft all but the last are the token rule."""
    assert bias(Block(), gamma=2) <= ROUNDING
    assert bias(mistake(), gamma=2) > 0.003
    assert bias(mistake(), gamma=1) <= ROUNDING


def pvalue(rule, steps, **given):
    run = experiment(gamma=4, gamma_max=4, steps=steps, **given)
    game = replace(run.players, rule=rule)
    return ranked_test(observe(game, 4, run.plan, 4).ranked).pvalue


@pytest.mark.parametrize("mistake", [BreaksAtTheFirstFailure, PrefixChanceAsTest, TokensResidual])
def test_a_sample_shows_it(mistake):
    """The ranked test at 20,000 steps of the notebook's world with sigma = 1; the right rule passes the same test."""
    assert pvalue(mistake(), 20_000, draft__sigma=1.0) < 1e-6
    assert pvalue(Block(), 20_000, draft__sigma=1.0) > 1e-3


def test_breaking_at_the_first_failure_can_be_wrong_altogether():
    """p = .99 q but for a rare token, then p = q: no prefix of one passes, and the rare token always comes; TV .99."""
    q = np.array([[0.5, 0.5, 0.0]] * 3)
    p = np.array([q[0], q[1], [0.495, 0.495, 0.01]])
    assert bias(Block(), (p, q, 1), 2) <= ROUNDING
    found = enumerate_steps(players(BreaksAtTheFirstFailure(), p, q, 1), 2)
    assert found.bias(1)[2] == pytest.approx(0.99, abs=ROUNDING)
    assert found.bias(3)[2] > 1 - 1e-5


# ---- the draft's law is not the law that drafted


class Believes(Token):
    """Verifies as if the drafts came from ``believed`` [V]."""

    def __init__(self, believed):
        object.__setattr__(self, "believed", np.asarray(believed))

    def chances(self, p, q):
        return np.broadcast_to(ratio(p, self.believed), np.broadcast_shapes(p.shape, q.shape))

    def replacement(self, p, q):
        return excess(p, np.broadcast_to(self.believed, p.shape))

    kept_mass, replaced_mass = SingleRule.kept_mass, SingleRule.replaced_mass


P, Q, _ = WORLDS["worked"]


@pytest.mark.parametrize(
    "drafting",
    [one_hot_argmax(Q), np.array([[0, 0, 3 / 7, 4 / 7]]), Q**2 / (Q**2).sum()],
    ids=["argmax", "top two", "temperature 1/2"],
)
def test_a_draft_from_another_law_than_the_one_verified_is_seen(drafting):
    """Picked by argmax and verified with q < 1; sampled after top-k or temperature, verified with q before it."""
    assert bias(Believes(Q[0]), (P, drafting, 0), 1) > 0.05
    assert bias(Believes(drafting[0]), (P, drafting, 0), 1) <= ROUNDING


def test_a_ratio_in_half_precision_is_seen():
    """Sampled in double, verified in half: small, and far above rounding."""
    assert 1e-6 < bias(Believes(Q[0].astype(np.float16).astype(float)), (P, Q, 0), 2) < 1e-3


def test_our_engine_verifies_the_law_that_drafted(monkeypatch):
    """The round carries the very laws that the tokens were drawn from."""
    game = players(Token(), *ITEM)
    for step in walk(game, 3, Plan(0, 100, 50), np.zeros((50, 1), int)):
        again = game.pair.draft_laws((None, step_contexts(step)), step.round.draft_tokens)
        assert (again == step.round.draft_probs).all()


def step_contexts(step):
    """[B, 1]: the context that a step began in, read off its first law."""
    return (step.round.draft_probs[:, 0, 0][:, None] == ITEM[1][None]).all(-1).argmax(1)[:, None]


class ReusesTheNoise(Token):
    """Draws the replacement with the Gumbel numbers that chose the draft."""

    def next_probs(self, round, path, stop):
        law = super().next_probs(round, path, stop)
        q = select(round.draft_probs, path, stop)
        drafted = round.draft_tokens[np.arange(len(stop)), path, np.minimum(stop, round.drafted - 1)]
        given = Gumbel().answers(law, q, drafted)
        total = given.sum(-1, keepdims=True)
        coupled = np.where(total > 0, given / np.where(total > 0, total, 1), law)
        return np.where((stop == round.lengths)[:, None], law, coupled)


def test_reusing_the_drafts_noise_is_seen():
    assert bias(ReusesTheNoise(), ITEM, 1) > 0.005


def test_our_draws_share_no_noise():
    """Other uniforms to verify with leave every draft as it was."""
    game = players(Token(), *ITEM)
    state = game.pair.start(np.zeros((200, 1), int), None)
    rng = np.random.default_rng(0)
    drafts = rng.random((200, 1, 3))
    first, second = (verify(game, state, 3, drafts, rng.random((200, 2))) for _ in range(2))
    assert (first.round.draft_tokens == second.round.draft_tokens).all()
    assert (first.tokens != second.tokens).any()


class RandomAcceptanceUnderGreedy(Token):
    """Keeps with min(1, p/q) and replaces by the argmax, for a stream that should be the argmax."""

    def replacement(self, p, q):
        return one_hot_argmax(p)

    def bonus(self, p, q):
        return one_hot_argmax(p)

    def reference(self, round):
        return one_hot_argmax(round.target_probs)


def test_random_acceptance_under_greedy_decoding_is_seen():
    assert bias(RandomAcceptanceUnderGreedy(), ITEM, 1) > 0.1


@dataclass(frozen=True)
class DropsUnlikelyDrafts(Token):
    """Throws a sampled token away where its own q is below ``least`` and lets the target speak."""

    least: float = 0.5

    def chances(self, p, q):
        return super().chances(p, q) * (q >= self.least)

    def next_probs(self, round, path, stop):
        p, q = select(round.target_probs, path, stop), select(round.draft_probs, path, stop)
        drafted = round.draft_tokens[np.arange(len(stop)), path, np.minimum(stop, round.drafted - 1)]
        dropped = (stop < round.lengths) & (np.take_along_axis(q, drafted[:, None], -1)[:, 0] < self.least)
        return np.where(dropped[:, None], p, super().next_probs(round, path, stop))


def test_dropping_a_sampled_token_for_its_small_q():
    """p=(.5,.5), q=(.75,.25), dropped below .5: the output is (.625, .375)."""
    item = (np.array([[0.5, 0.5]]), np.array([[0.75, 0.25]]), 0)
    law = enumerate_steps(players(DropsUnlikelyDrafts(), *item), 1).stream_law(1)
    assert law[0] == pytest.approx([0.625, 0.375], abs=1e-15)


# ---- numerics


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [Token(), Block()], ids=repr)
def test_no_residual_after_a_rejection(rule, dtype):
    """p=[0, 1e-9, 1], q=[0, 2e-9, 1], draft 1 rejected: always token 2."""
    p, q = (np.array([[0, small, 1]], dtype=dtype) for small in (1e-9, 2e-9))
    assert excess(p, q)[0].tolist() == [0, 0, 1]
    step = one_step(rule, p, q, drafted=1, verifies=np.linspace(0, 1, 1001)[:-1])
    rejected = step.kept == 0
    assert 0.4 < rejected.mean() < 0.6
    assert (step.tokens[rejected, 0] == 2).all()


def one_step(rule, p, q, drafted, verifies):
    """A step of one draft that is ``drafted`` in every row, verified with the first uniforms ``verifies``."""
    rows = len(verifies)

    class Always(Pair):
        def propose(self, state, uniforms, tree):
            tokens = np.full(uniforms.shape, drafted)
            return tokens, self.draft_laws(state, tokens)

    pair = Always(Table(p, 0), Table(q, 0), False, lambda streams, length, rng: np.zeros((streams, length), int))
    state = pair.start(np.zeros((rows, 0), int), None)
    second = np.random.default_rng(0).random(rows)
    return verify(Players(pair, rule, Fixed()), state, 1, np.zeros((rows, 1, 1)), np.column_stack([verifies, second]))


@pytest.mark.parametrize("rule", [Token(), Block(), Gumbel()], ids=repr)
def test_a_token_of_no_chance_is_not_kept_at_u_zero(rule):
    """u <= p/q at u = 0 would keep it."""
    step = one_step(rule, np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]), drafted=0, verifies=np.zeros(3))
    assert (step.kept == 0).all()
    assert (step.tokens[:, 0] == 1).all()


def test_a_drafted_token_of_no_chance_is_an_error():
    with pytest.raises(NotALaw, match=r"^position 0: token 0 was drafted, to which the draft's law gives no chance$"):
        one_step(Token(), np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]), drafted=0, verifies=np.zeros(3))
    laws = np.full((3, 1, 3, 2), 0.5)
    laws[2, 0, 1] = [1, 0]
    with pytest.raises(NotALaw, match=r"^position 1: token 1 ") as error:
        refuse_undraftable(np.array([[[0, 0]], [[1, 1]], [[1, 1]]]), laws, np.zeros((3, 1, 2), int))
    assert error.value.row == 2


@pytest.mark.parametrize("token", [-1, 2])
def test_a_drafted_token_outside_the_vocabulary_is_an_error(token):
    """Looked up all the same, it would have the chance of another token, of this row or the next."""
    laws, owner = np.full((2, 1, 3, 2), 0.5), np.zeros((2, 1, 2), int)
    drafts = np.array([[[0, 1]], [[1, 0]]])
    refuse_undraftable(drafts, laws, owner)
    drafts[0, 0, 1] = token
    with pytest.raises(NotALaw, match=rf"^position 1: token {token} was drafted") as error:
        refuse_undraftable(drafts, laws, owner)
    assert error.value.row == 0
    refuse_undraftable(drafts, laws, np.where(drafts == token, -1, owner))  # of a path that has ended


@pytest.mark.parametrize("whose", ["target", "draft"])
@pytest.mark.parametrize("wrong", [np.nan, 0.5, np.inf], ids=["NaN", "half a law", "inf"])
def test_a_law_that_is_none_is_an_error_that_says_where(whose, wrong):
    """Context 2 is reached after some steps; its law makes no token, least of all token 0."""
    good = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    bad = good.copy()
    bad[2] = wrong / 3 if wrong == 0.5 else wrong
    laws = {"target": good, "draft": good, whose: bad}
    game = players(Token(), laws["target"], laws["draft"])
    with pytest.raises(ValueError, match=rf"^step 0 of request 0, position 1: the {whose}'s law"):
        list(walk(game, 3, Plan(0, 8, 1), np.array([[1]])))


class OutOfRange(Token):
    """Keeps a draft with a chance that is none."""

    chance = 2.0

    def chances(self, p, q):
        return np.full(np.broadcast_shapes(p.shape, q.shape), self.chance)


@pytest.mark.parametrize("chance", [2.0, -0.5, np.nan])
def test_a_rule_whose_chances_are_none_is_an_error(chance, monkeypatch):
    monkeypatch.setattr(OutOfRange, "chance", chance)
    game = players(OutOfRange(), *WORLDS["worked"])
    with pytest.raises(
        ValueError, match=r"^step 0 of request 0, the rule's chances to keep 0, 1, \.\. drafts are no law"
    ):
        next(iter(walk(game, 2, Plan(0, 4, 4), prompts=np.zeros((4, 0), dtype=np.int64))))
    with pytest.raises(NotALaw, match=r"^the rule's chances"):
        enumerate_steps(game, 2)


def test_a_fresh_worlds_error_names_the_step():
    run = experiment(target__context="position")
    laws = run.players.pair.target.laws

    class Broken(Pair):
        def target_laws(self, state, tokens):
            found = np.array(laws(state[0], tokens))
            found[7, 0, 2] = np.nan
            return found

    pair = run.players.pair
    broken = Broken(pair.target, pair.draft, pair.shared, pair.prompts)
    with pytest.raises(ValueError, match=r"^step 7, position 2: the target's law sums to nan, not 1$"):
        list(walk(replace(run.players, pair=broken), 4, Plan(0, 100, 1)))


@pytest.mark.parametrize("rule", [Token(), Block(), Gumbel()], ids=repr)
def test_long_blocks_over_a_large_vocabulary_keep_all(rule):
    """V = 32,000, uniform, p = q, eleven drafts: the products of 1/V underflow nowhere, and all are kept."""
    uniform = np.full((1, 32_000), 1 / 32_000)
    step = next(iter(walk(players(rule, uniform, uniform, 0), 11, Plan(0, 8, 8), np.zeros((8, 0), int))))
    assert (step.kept == 11).all()


@pytest.mark.parametrize("rule", [Token(), Block(), Gumbel()], ids=repr)
def test_single_precision_laws(rule):
    """Kept and emitted as from the same numbers in double precision."""
    p, q = (law.astype(np.float32) for law in drawn(20, 1, 3)[:2])
    one, other = (
        next(iter(walk(players_of(rule, p, q, kind), 6, Plan(0, 500, 500), np.arange(500)[:, None] % 20)))
        for kind in (np.float32, np.float64)
    )
    assert (one.tokens == other.tokens).mean() > 0.999


def players_of(rule, p, q, dtype):
    pair = Pair(Table(p.astype(dtype)), Table(q.astype(dtype)), False, lambda streams, length, rng: None)
    return Players(pair, rule, Fixed())


# ---- rows, rates and counters


@pytest.mark.parametrize("rule", [Token(), Block(), Gumbel()], ids=repr)
def test_rows_do_not_overwrite_each_other(rule):
    """A row alone is what it is among others that stop elsewhere."""
    game, rng = players(rule, *ITEM), np.random.default_rng(0)
    contexts, drafts, verifies = rng.integers(0, 3, (60, 1)), rng.random((60, 1, 4)), rng.random((60, 2))
    together = verify(game, game.pair.start(contexts, None), 4, drafts, verifies)
    assert len(np.unique(together.kept)) > 2
    for row in range(60):
        mine = slice(row, row + 1)
        alone = verify(game, game.pair.start(contexts[mine], None), 4, drafts[mine], verifies[mine])
        assert (alone.tokens == together.tokens[mine]).all()


@pytest.mark.parametrize("rule", [Token(), Block(), Gumbel()], ids=repr)
def test_counters_end_where_the_draft_was_rejected(rule):
    """Drafts after the first that is not kept count nowhere, and no rate exceeds one."""
    run = experiment(steps=3000)
    game = replace(run.players, rule=rule)
    moments = observe(game, 4, run.plan, 4).moments
    total = {name: float(mean) for name, mean in zip(moments.names, moments.means, strict=True)}
    by_position = [total[f"kept_{i}"] for i in range(1, 5)]
    assert sum(by_position) == pytest.approx(total["accepted"])
    assert total["tokens"] == pytest.approx(total["accepted"] + total["steps"])
    assert by_position == sorted(by_position, reverse=True)
    assert total["accepted"] <= total["tested"] <= total["drafted"]


def test_choose_never_takes_what_cannot_stop():
    """The first uniform's edges: a length of chance zero is never chosen."""
    stop = np.array([[[0.0, 0.5, 0.0, 0.5, 0.0]]])
    for u in (0.0, 0.5, 1 - 2**-53):
        assert choose(stop, np.array([u]))[1][0] in (1, 3)
    assert draw(np.array([[0.0, 1.0]]), np.array([0.0]))[0] == 1
