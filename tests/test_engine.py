"""The walk: sampled against exact, and what may not move a draw."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, chisquare, norm
from worlds import ALL_RULES, WORLDS, drawn, experiment, players

from specexp import exact
from specexp.engine import BLOCK_STEPS, BLOCK_TIME, Plan, Players, block_rows, choose, emit, walk
from specexp.enumeration import enumerate_steps
from specexp.lengths import Fixed
from specexp.metrics import start_prompts
from specexp.models.table import contexts
from specexp.observe import observe
from specexp.rounds import Local
from specexp.rules.single import Greedy, Lenient, Token
from specexp.rules.wrong import Wrong
from specexp.sampling import draw

FALSE_ALARM = 1e-6  # of each test here, all of its checks together, were its seed not fixed
GAMMAS = [1, 2, 4, 8, 16]
ONE_MIXTURE = ("opt", "token1")  # the other cascades differ in the mixture alone: test_enumeration.py
SOLVED = [
    rule for rule in ALL_RULES.values() if isinstance(rule, Local) and getattr(rule, "variant", "opt") in ONE_MIXTURE
]


@pytest.fixture(scope="module")
def text_path(tmp_path_factory):
    """Ends of lines, a word that returns, and letters at random: 4,000 characters over an alphabet of five."""
    path = tmp_path_factory.mktemp("text") / "small.txt"
    rng = np.random.default_rng(0)
    words = rng.choice(["abba", "cab", "bac", "a"], 1200)
    path.write_text(" ".join(words) + "\n", encoding="utf-8")
    return str(path)


def games(rule, text_path):
    """The kinds of world that are solved: one law, a drawn and a derived draft, a text; and two odd chains."""
    text = {"target": "text", "draft": "text", "target__path": text_path, "target__level": "character"}
    yield "fixed", players(rule, *WORLDS["worked"])
    yield "bigram", players(rule, *drawn(4, 1, 1))
    yield "noise", replace(experiment(target="bigram", draft__sigma=1.0).players, rule=rule)
    yield "text", replace(experiment(**text, target__order=3, draft__order=2).players, rule=rule)
    yield "two classes", players(rule, *WORLDS["two tokens, two classes"])
    yield "cycle", players(rule, *WORLDS["a cycle"])


def prompts_of(world, vocab, gamma, requests, seed):
    starts = draw(world.step_starts(gamma), np.random.default_rng(seed).random(requests))
    return contexts(vocab, world.memory)[starts]


def kept_of(game, gamma, requests, each, seed):
    """[each, requests] kept drafts, and the world; streams begin by the exact law of step starts."""
    world = exact.world(game.pair, game.rule)
    prompts = prompts_of(world, game.pair.vocab, gamma, requests, seed)
    steps = walk(game, gamma, Plan(seed, requests * each, requests), prompts)
    return np.array([step.kept for step in steps]), world


@pytest.mark.parametrize("rule", SOLVED, ids=repr)
def test_walks_are_the_algebras(rule, text_path):
    """3,000 independent streams of 4 steps, for each world and gamma. Tokens a step: z of the streams' mean, none
    too large, and together neither larger nor smaller than normal deviations are. Survival: how often the third step
    keeps at least i drafts, an exact binomial test for each i."""
    scores, chances, seeds = [], [], count(1000 * SOLVED.index(rule))  # shared seeds would tie the scores together
    for _, game in games(rule, text_path):
        for gamma in GAMMAS:
            kept, world = kept_of(game, gamma, 3000, 4, next(seeds))
            survival = world.survival_by_position(gamma)
            for i, chance in enumerate(survival[1:], start=1):
                chances.append(binomtest(int((kept[2] >= i).sum()), 3000, min(chance, 1.0)).pvalue)
            mean, expected = kept.mean(0), survival[1:].sum()
            if mean.std() > 0:
                scores.append((mean.mean() - expected) / (mean.std(ddof=1) / np.sqrt(3000)))
            else:
                assert mean[0] == pytest.approx(expected, abs=1e-12)
    assert len(scores) >= 15  # of 30; the others have no spread
    assert np.abs(scores).max() < norm.isf(FALSE_ALARM / 8 / len(scores))
    assert chi2.sf(np.square(scores).sum(), len(scores)) > FALSE_ALARM / 4
    assert chi2.cdf(np.square(scores).sum(), len(scores)) > FALSE_ALARM / 4
    assert len(chances) == 6 * sum(GAMMAS)
    assert min(chances) > FALSE_ALARM / 4 / len(chances)


def test_the_check_sees_a_wrong_start():
    """Streams that begin anywhere, without a warm-up, keep too many or too few in their first steps."""
    game = players(Token(), *drawn(4, 1, 1, 0.2))
    world = exact.world(game.pair, game.rule)
    prompts = np.full((4000, 1), int(world.survival(4).sum(0).argmax()))
    first = next(iter(walk(game, 4, Plan(0, 4000, 4000), prompts))).kept
    assert binomtest(int((first >= 4).sum()), 4000, world.survival_by_position(4)[4]).pvalue < FALSE_ALARM


def test_without_a_known_start_a_warm_up_is_thrown_away(text_path):
    """The same numbers from streams that were only warmed up, in the worlds that forget where they began."""
    checks = []
    for name, game in games(Token(), text_path):
        if name in ("fixed", "bigram", "noise", "text"):
            world = exact.world(game.pair, game.rule)
            first = next(iter(walk(game, 4, Plan(5, 1000, 1000)))).kept
            for i, chance in enumerate(world.survival_by_position(4)[1:], start=1):
                checks.append(binomtest(int((first >= i).sum()), 1000, chance).pvalue)
    assert min(checks) > FALSE_ALARM / len(checks)


def test_the_warm_up_forgets_the_worst_beginning():
    """All streams are asked to begin where steps keep the most: right after the warm-up, badly wrong without one."""
    game = players(Token(), *drawn(4, 1, 1, 0.2))
    world = exact.world(game.pair, game.rule)
    best = int(world.survival(4).sum(0).argmax())
    pair = replace(game.pair, prompts=lambda streams, length, rng: np.full((streams, length), best))
    warm = next(iter(walk(replace(game, pair=pair), 4, Plan(0, 4000, 4000)))).kept
    assert binomtest(int((warm >= 4).sum()), 4000, world.survival_by_position(4)[4]).pvalue > FALSE_ALARM


def test_known_starts_are_drawn_by_their_law():
    run = experiment(target="bigram", draft="bigram", target__vocab=4, steps=20_000, requests=20_000)
    starts = np.bincount(start_prompts(run)[:, 0], minlength=4)
    assert chisquare(starts, 20_000 * run.world.step_starts(4)).pvalue > FALSE_ALARM
    assert chisquare(starts, np.full(4, 5000)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("rule", SOLVED, ids=repr)
def test_expected_is_the_algebras(rule, text_path):
    """Stop laws averaged over sampled drafts, with no more noise than what is counted, but for five per cent."""
    scores = []
    for name, game in games(rule, text_path):
        for gamma in (1, 4, 16):
            world = exact.world(game.pair, game.rule)
            plan = Plan(gamma, 2000, 1000)
            walked = observe(game, gamma, plan, gamma, prompts_of(world, game.pair.vocab, gamma, 1000, gamma))
            expected, sampled = walked.moments.ratio("expected", "counted"), walked.moments.ratio("tokens", "steps")
            width = (expected.high - expected.low) / 2
            assert width <= 1.05 * (sampled.high - sampled.low) / 2 + 1e-12, name
            if width > 1e-9:
                scores.append((expected.value - world.tokens_per_step(gamma)) / (width / 1.96))
            else:
                assert expected.value == pytest.approx(world.tokens_per_step(gamma), abs=1e-9)
    assert np.abs(scores).max(initial=0) < norm.isf(FALSE_ALARM / 2 / max(1, len(scores)))


@pytest.mark.parametrize("name", ALL_RULES)
def test_what_is_sampled_is_what_is_summed(name):
    """(kept, emitted tokens) of a step against its enumerated law: chi-squared over every outcome; wrong rules too."""
    rule, gamma, rows = ALL_RULES[name], 2, 40_000
    game = players(rule, *drawn(3, 1, 6))
    prompts = np.arange(rows)[:, None] % 3
    step = next(iter(walk(game, gamma, Plan(1, rows, rows), prompts)))
    observed, expected = [], []
    for kept, law in enumerate(enumerate_steps(game, gamma).steps):
        text = step.tokens[:, : kept + 1] @ 3 ** np.arange(kept + 1)[::-1]
        for context in range(3):
            mine = (step.kept == kept) & (prompts[:, 0] == context)
            observed.append(np.bincount(text[mine], minlength=3 ** (kept + 1)))
            expected.append(law[context] * (prompts[:, 0] == context).sum())
    counts, means = np.concatenate(observed), np.concatenate(expected)
    assert (counts[means < 1e-9] == 0).all()
    means = means[means >= 1e-9] * counts.sum() / means[means >= 1e-9].sum()
    assert chisquare(counts[np.concatenate(expected) >= 1e-9], means, ddof=2).pvalue > FALSE_ALARM


def test_in_fresh_contexts_counted_and_expected_agree():
    """Step by step the difference of kept drafts and what the step's context expects has mean zero."""
    for context in ("step", "position"):
        for rule in SOLVED:
            game = replace(experiment(target__context=context).players, rule=rule)
            moments = observe(game, 4, Plan(2, 3000, 1), 4).moments
            difference = moments.estimate(lambda m: m["tokens"] - m["expected"])
            half_width = difference.high - difference.value
            assert abs(difference.value) < 4.9 / 1.96 * half_width + 1e-12


# ---- what may not move a draw

FRESH = {"target__context": "position"}


def steps_of(gamma=4, steps=1500, rule=None, **given):
    world = experiment(**{**FRESH, **given})
    game = replace(world.players, rule=rule or Token())
    return list(walk(game, gamma, Plan(world.plan.seed, steps, world.plan.requests), start_prompts(world)))


def joined(steps, what):
    return np.concatenate([what(step) for step in steps])


@pytest.mark.parametrize("context", ["step", "position"])
def test_a_longer_draft_meets_the_same_contexts_and_drafts(context):
    short, long = (steps_of(gamma, target__context=context) for gamma in (3, 8))
    for what in (
        lambda step: step.round.draft_tokens[:, :, :3],
        lambda step: step.round.target_probs[:, :, :4],
        lambda step: step.round.draft_probs[:, :, :4],
    ):
        assert (joined(short, what) == joined(long, what)).all()


@pytest.mark.parametrize("rule", SOLVED, ids=repr)
def test_a_longer_draft_keeps_the_same_prefix(rule):
    """min(kept at 8, g) is kept at g, step by step: what such rules promise in law, the draws keep in numbers."""
    longest = joined(steps_of(8, rule=rule), lambda step: step.kept)
    for gamma in (0, 1, 4, 7):
        kept = joined(steps_of(gamma, rule=rule), lambda step: step.kept)
        assert (np.minimum(longest, gamma) == kept).all()


def test_no_rule_moves_a_context_or_a_draft():
    walks = [steps_of(rule=rule) for rule in (Token(), Lenient(0.1), Greedy(), Wrong("uniform"))]
    for other in walks[1:]:
        for what in (lambda step: step.round.draft_tokens, lambda step: step.round.target_probs):
            assert (joined(walks[0], what) == joined(other, what)).all()


def test_lenience_keeps_at_least_as_much_step_by_step():
    strict, lenient = (joined(steps_of(rule=rule), lambda step: step.kept) for rule in (Token(), Lenient(0.5)))
    assert (lenient >= strict).all()
    assert (lenient > strict).any()


@pytest.mark.parametrize("given", [{}, {"target": "bigram"}, {"target": "fixed", "draft": "fixed"}], ids=str)
def test_a_longer_run_begins_with_the_shorter_one(given):
    """Neither the number of steps nor where a block is cut moves a step."""
    world = experiment(**given)
    blocks = (1, BLOCK_TIME - 1, BLOCK_TIME + 1, 2 * BLOCK_TIME) if world.players.pair.persistent else (1, 1000, 5000)
    *parts, whole = (tokens_of(world, steps_each * world.plan.requests) for steps_each in blocks)
    for part in parts:
        assert len(part) in [steps_each * world.plan.requests for steps_each in blocks]
        assert (part == whole[: len(part)]).all()


def tokens_of(world, steps):
    plan = Plan(0, steps, world.plan.requests)
    return joined(list(walk(world.players, 4, plan, start_prompts(world))), lambda step: step.tokens)


def test_a_walk_repeats_itself_and_another_seed_does_not():
    first, again, other = (joined(steps_of(seed=seed), lambda step: step.tokens) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).mean() > 0.5


def test_blocks_share_no_number():
    blocks = steps_of(steps=3 * block_rows(20))
    firsts = [step.round.target_probs[0, 0, 0] for step in blocks]
    assert len(blocks) == 3
    assert not (firsts[0] == firsts[1]).any()
    assert not (firsts[1] == firsts[2]).any()


# ---- the shape of a walk


@pytest.mark.parametrize("gamma", [0, 1, 4])
@pytest.mark.parametrize("given", [{}, {"target__context": "position"}, {"target": "bigram"}], ids=str)
def test_every_step_is_whole(given, gamma):
    """Kept drafts, then one token, then nothing; never a token of probability zero."""
    world = experiment(**given)
    seen = 0
    for step in walk(world.players, gamma, Plan(0, 300, world.plan.requests), None):
        rows = np.arange(len(step.kept))
        assert (step.emitted == (step.tokens >= 0).sum(1)).all()
        assert step.tokens.shape[1] == gamma + 1
        for i in range(gamma):
            kept = step.kept > i
            assert (step.tokens[kept, i] == step.round.draft_tokens[kept, 0, i]).all()
        law = step.round.target_probs[rows, 0, step.kept]
        assert (law[rows, step.tokens[rows, step.kept]] > 0).all()
        seen += len(rows)
    assert seen == Plan(0, 300, world.plan.requests).total


def test_steps_go_on_where_the_last_ended():
    """Read off the emitted tokens: each step's first law is that of the last token before it."""
    p, q, memory = drawn(4, 1, 2)
    game, last = players(Token(), p, q, memory), np.arange(50) % 4
    for step in walk(game, 3, Plan(0, 500, 50), last[:, None]):
        assert (step.round.target_probs[:, 0, 0] == p[last]).all()
        assert (step.round.draft_probs[:, 0, 0] == q[last]).all()
        last = step.tokens[np.arange(50), step.kept]


@pytest.mark.parametrize(("steps", "requests", "each", "total"), [(5000, 64, 79, 5056), (1, 64, 1, 64), (8, 1, 8, 8)])
def test_plan_rounds_up_to_whole_steps_of_each_request(steps, requests, each, total):
    plan = Plan(0, steps, requests)
    assert (plan.steps_each, plan.total) == (each, total)


def test_large_vocabularies_come_in_small_blocks():
    assert block_rows(20) == BLOCK_STEPS
    assert block_rows(128_256) == 1
    assert block_rows(10**7) == 1


def test_drafts_of_unequal_length_in_one_round():
    """A length policy that ends drafts early: no more is kept than was drafted, and the extra token is the bonus."""

    class Alternating(Fixed):
        def lengths(self, gamma, rows):
            return np.arange(rows) % (gamma + 1)

    p, q, memory = WORLDS["p = q"]
    game = Players(players(Token(), p, q, memory).pair, Token(), Alternating())
    step = next(iter(walk(game, 4, Plan(0, 100, 100), np.zeros((100, 1), int))))
    assert (step.kept == np.arange(100) % 5).all()  # p = q: all that was drafted


def test_choose_and_emit_by_hand():
    stop = np.array([[[0.1, 0.2, 0.0], [0.0, 0.3, 0.4]]])  # [B=1, K=2, G+1=3], by (kept, path): .1 | .2 .3 | 0 .4
    picked = [tuple(int(v[0]) for v in choose(stop, np.array([u]))) for u in (0.0, 0.15, 0.35, 0.65, 0.999)]
    assert picked == [(0, 0), (0, 1), (1, 1), (1, 2), (1, 2)]
    drafts = np.array([[[5, 6], [7, 8]]])
    assert emit(drafts, np.array([1]), np.array([1]), np.array([9])).tolist() == [[7, 9, -1]]
    assert emit(drafts, np.array([0]), np.array([0]), np.array([9])).tolist() == [[9, -1, -1]]
    assert emit(drafts, np.array([1]), np.array([2]), np.array([9])).tolist() == [[7, 8, 9]]
