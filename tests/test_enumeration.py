"""The proof, and the proof of the proof: laws sum to one, lossless rules are lossless on the joint law of several
tokens, lossy ones are biased by just as much as the papers say, and each mistake is seen.

A rule that is listed in ``specexp.rules.RULES`` is tested by being listed.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from worlds import ALL_RULES, LOSSLESS, WORLDS, drawn, players, table_pair

from specexp.audit import audit, refuse_false_claim
from specexp.engine import Players
from specexp.enumeration import enumerate_steps, every_round, outcomes
from specexp.errors import UserError
from specexp.exact import world
from specexp.lengths import Fixed
from specexp.models.pair import contexts_of
from specexp.rounds import select
from specexp.rules import RULES
from specexp.rules.single import Greedy, Lenient, SingleRule, Token, excess
from specexp.rules.wrong import MISTAKES, Wrong

GAMMAS = range(5)
ROUNDING = 1e-12


def enumerated(rule, item, gamma):
    p, q, memory = item
    found = enumerate_steps(players(rule, p, q, memory), gamma)
    assert found is not None
    return found


# ---- the slow, obvious twins: dictionaries of texts, from the papers' pseudo-code


def literal_step(p, q, memory, gamma, keep, instead, after, context):
    """{emitted tokens: chance} of one step after ``context``: draft x ~ q, keep it with keep(p, q)[x], else emit
    y ~ instead(p, q) and stop; after gamma kept drafts emit y ~ after(p)."""
    vocab, law = p.shape[1], defaultdict(float)
    if gamma == 0:
        return {(y,): after(p[context])[y] for y in range(vocab)}
    p_now, q_now = p[context], q[context]
    rejected = 0.0
    for x in range(vocab):
        chance = min(1.0, keep(p_now[x], q_now[x], p_now, x)) if q_now[x] > 0 else 0.0
        rejected += q_now[x] * (1 - chance)
        rest = literal_step(p, q, memory, gamma - 1, keep, instead, after, (context * vocab + x) % len(p))
        for text, probability in rest.items():
            law[(x, *text)] += q_now[x] * chance * probability
    residual = instead(p_now, q_now)
    for y in range(vocab):
        law[(y,)] += rejected * residual[y]
    return law


def positive_part(p, q):
    over = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [a / sum(over) for a in over] if sum(over) > 0 else list(p)  # never reached where it is p


def one_hot(p):
    return [float(x == list(p).index(max(p))) for x in range(len(p))]


LENIENCE = 0.5
TWINS = {
    Token(): (lambda p, q, law, x: p / q, positive_part, list),
    Lenient(LENIENCE): (lambda p, q, law, x: p / (LENIENCE * q), positive_part, list),
    Lenient(LENIENCE, "lenient"): (
        lambda p, q, law, x: p / (LENIENCE * q),
        lambda p, q: positive_part(p, LENIENCE * q),
        list,
    ),
    Greedy(): (lambda p, q, law, x: one_hot(law)[x], lambda p, q: one_hot(p), one_hot),
}


def literal_stream(step, contexts, vocab, depth, context):
    """{next ``depth`` tokens: chance} after ``context``, over as many steps as they take."""
    if depth <= 0:
        return {(): 1.0}
    law = defaultdict(float)
    for text, probability in step(context).items():
        end = context
        for token in text[:depth]:
            end = (end * vocab + token) % contexts
        if probability > 0:
            for more, chance in literal_stream(step, contexts, vocab, depth - len(text), end).items():
                law[text[:depth] + more] += probability * chance
    return law


@pytest.mark.parametrize("gamma", [0, 1, 2, 3])
@pytest.mark.parametrize("rule", TWINS, ids=repr)
@pytest.mark.parametrize("name", ["worked", "drawn V=3 memory=1", "two tokens remembered", "p excludes a token of q"])
def test_enumeration_is_the_loop_of_the_papers(name, rule, gamma):
    p, q, memory = WORLDS[name]
    found, vocab = enumerated(rule, WORLDS[name], gamma), p.shape[1]
    for context in range(len(p)):
        literal = literal_step(p, q, memory, gamma, *TWINS[rule], context)
        for kept, law in enumerate(found.steps):
            texts = list(product(range(vocab), repeat=kept + 1))  # in the order of their numbers
            assert law[context] == pytest.approx([literal.get(text, 0.0) for text in texts], abs=1e-14)


@pytest.mark.parametrize("rule", TWINS, ids=repr)
@pytest.mark.parametrize("name", ["drawn V=2 memory=1", "two tokens remembered"])
def test_stream_law_is_the_loop_over_steps(name, rule):
    p, q, memory = WORLDS[name]
    vocab, depth = p.shape[1], 4
    law = enumerated(rule, WORLDS[name], 2).stream_law(depth)

    def step(context):
        return literal_step(p, q, memory, 2, *TWINS[rule], context)

    for context in range(len(p)):
        literal = literal_stream(step, len(p), vocab, depth, context)
        expected = [literal.get(text, 0.0) for text in product(range(vocab), repeat=depth)]
        assert law[context] == pytest.approx(expected, abs=1e-14)


# ---- what every rule must be


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES.keys())
def test_laws_are_laws(rule, item):
    """Given any draft of any length up to gamma, how many are kept is a law, and so is what follows."""
    pair, gamma = table_pair(*item), max(GAMMAS)
    round, *_ = every_round(Players(pair, rule, Fixed()), contexts_of(pair, 1000), gamma)
    for length in GAMMAS:
        shorter = replace(round, lengths=np.full(len(round.lengths), length))
        stop = rule.stop_probs(shorter)
        assert stop.shape == (len(round.lengths), 1, gamma + 1)
        assert stop.min() >= 0
        assert (stop[..., length + 1 :] == 0).all()
        assert stop.sum((1, 2)) == pytest.approx(1, abs=ROUNDING)
        for kept in range(length + 1):
            path, position = np.zeros(len(stop), int), np.full(len(stop), kept)
            following = rule.next_probs(shorter, path, position)
            assert following.shape == (len(stop), pair.vocab)
            assert following.min() >= 0
            assert following.sum(1) == pytest.approx(1, abs=ROUNDING)


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("rule", LOSSLESS.values(), ids=LOSSLESS.keys())
def test_lossless_rules_are_lossless(rule, item):
    """The joint law of the next tokens, from every context, is that of the reference."""
    for gamma in GAMMAS:
        assert enumerated(rule, item, gamma).bias(max(2, gamma + 1)).max() <= ROUNDING


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
def test_the_token_rules_reference_is_the_target(item):
    """The law compared with is p's own chain, by a loop; Greedy's is the chain of argmaxes."""
    p = item[0]
    for rule, law in ((Token(), p), (Greedy(), np.array([one_hot(row) for row in p]))):
        reference = enumerated(rule, item, 1).reference_law(3)
        for context in range(len(p)):
            for number, text in enumerate(product(range(p.shape[1]), repeat=3)):
                chance, at = 1.0, context
                for token in text:
                    chance, at = chance * law[at][token], (at * p.shape[1] + token) % len(p)
                assert reference[context, number] == pytest.approx(chance, abs=1e-15)


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES.keys())
def test_prefix_stable_rules_are(rule, item):
    """The law of min(kept, g) at gamma is that of kept at g, draft by draft averaged; what ``prefix_stable`` claims."""
    if rule.prefix_stable:
        longest = enumerated(rule, item, 3)
        chances = np.array([law.sum(1) for law in longest.steps])
        for gamma in range(3):
            shorter = np.array([law.sum(1) for law in enumerated(rule, item, gamma).steps])
            assert chances[:gamma] == pytest.approx(shorter[:gamma], abs=ROUNDING)
            assert chances[gamma:].sum(0) == pytest.approx(shorter[gamma], abs=ROUNDING)


@pytest.mark.parametrize("gamma", [0, 1, 3])
@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("rule", TWINS, ids=repr)
def test_the_algebra_is_the_enumeration(rule, item, gamma):
    """Expected kept drafts, and where the next step starts."""
    found, solved = enumerated(rule, item, gamma), world(table_pair(*item), rule)
    assert found.expected_kept() == pytest.approx(solved.survival(gamma)[1:].sum(0), abs=ROUNDING)
    kernel = np.zeros_like(solved.step_kernel(gamma))
    for kept, law in enumerate(found.steps):
        for context, number in product(range(len(law)), range(law.shape[1])):
            kernel[context, (context * law.shape[1] + number) % len(law)] += law[context, number]
        assert law.shape[1] == found.vocab ** (kept + 1)
    assert solved.step_kernel(gamma) == pytest.approx(kernel, abs=ROUNDING)


# ---- worked numbers, and what is lossy by how much


def test_worked_example():
    """p=(.4,.3,.2,.1), q=(.1,.2,.3,.4): beta=.6, residual (.75,.25,0,0)."""
    p, q, _ = WORLDS["worked"]
    assert Token().replacement(p, q)[0] == pytest.approx([0.75, 0.25, 0, 0], abs=1e-15)
    assert enumerated(Token(), WORLDS["worked"], 1).expected_kept()[0] == pytest.approx(0.6, abs=1e-15)
    assert enumerated(Token(), WORLDS["worked"], 4).expected_kept()[0] == pytest.approx(0.6 + 0.36 + 0.216 + 0.1296)


@pytest.mark.parametrize(("gamma", "accepted"), [(2, 10 / 9), (3, 38 / 27), (4, 130 / 81), (6, 1330 / 729)])
def test_published_example_of_block_verification(gamma, accepted):
    """q=(2/3,1/3), p=(1/3,2/3): drafts that the token rule keeps (Sun et al. 2024, and its extension)."""
    item = (np.array([[1 / 3, 2 / 3]]), np.array([[2 / 3, 1 / 3]]), 0)
    assert enumerated(Token(), item, gamma).expected_kept()[0] == pytest.approx(accepted, abs=1e-14)


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
def test_lenient_bias_is_its_gain(item):
    """TV(next token, p) = alpha_l - alpha_1 exactly; no chance exceeds p / l; residual=lenient is not better."""
    p, q, _ = item
    for lenience in (0.05, 0.3, 0.5, 0.8, 1.0):
        gain = np.minimum(p / lenience, q).sum(1) - np.minimum(p, q).sum(1)
        found = enumerated(Lenient(lenience), item, 2)
        assert found.bias(1) == pytest.approx(gain, abs=ROUNDING)
        other = enumerated(Lenient(lenience, "lenient"), item, 2)
        assert (other.bias(1) >= found.bias(1) - ROUNDING).all()
        for rule in (found, other):
            assert (rule.stream_law(1) <= p / lenience + ROUNDING).all()


def test_lenient_loses_more_with_its_own_residual():
    """Not proved; never seen otherwise: 2,000 pairs of laws, and a loss of the target's residual in none."""
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4) * 0.7, (2, 2000))
    for lenience in (0.1, 0.5, 0.9):
        bias = {}
        for residual in ("target", "lenient"):
            rule = Lenient(lenience, residual)
            bias[residual] = np.abs(rule.kept_mass(p, q) + rule.replaced_mass(p, q) - p).sum(1) / 2
        assert (bias["lenient"] >= bias["target"] - 1e-15).all()
        assert (bias["lenient"] > bias["target"] + 1e-3).any()


@pytest.mark.parametrize("item", WORLDS.values(), ids=WORLDS.keys())
def test_greedy_bias_against_sampling(item):
    """Against p itself, greedy decoding is 1 - max p away in one token, and 1 - max p max p' in two."""
    p = item[0]
    found = replace(enumerated(Greedy(), item, 2), reference=p)
    assert found.bias(1) == pytest.approx(1 - p.max(1), abs=ROUNDING)
    best = p.argmax(1)
    following = (np.arange(len(p)) * p.shape[1] + best) % len(p)
    assert found.bias(2) == pytest.approx(1 - p.max(1) * p[following].max(1), abs=ROUNDING)


# ---- negative controls: mistakes that the proof must see


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake, gamma):
    """Each is far from lossless in an ordinary world."""
    bias = enumerated(Wrong(mistake), WORLDS["drawn V=3 memory=1"], gamma).bias(max(2, gamma + 1))
    assert bias.max() > 0.01


class Unnormalised(Token):
    """Emits by [p - q]+ as it is."""

    def replacement(self, p, q):
        return np.maximum(p - q, 0)


class Impatient(Token):
    """Looks at every draft and keeps the longest one that passes, were those before it rejected or not."""

    def stop_probs(self, round):
        keep = np.take_along_axis(
            self.chances(round.target_probs[:, :, :-1], round.draft_probs[:, :, :-1]), _tokens(round), -1
        )
        fail = np.cumprod(1 - keep[:, :, ::-1, 0], axis=-1)[:, :, ::-1]
        after = np.concatenate([fail[:, :, 1:], np.ones_like(fail[:, :, :1])], axis=-1)
        return np.concatenate([fail[:, :, :1], keep[..., 0] * after], axis=-1)


def _tokens(round):
    return round.draft_tokens[..., None]


def test_a_residual_that_is_no_law_is_seen():
    found = enumerated(Unnormalised(), WORLDS["drawn V=3 memory=1"], 1)
    assert found.stream_law(1).sum(1).max() < 0.99
    assert found.bias(1).max() > 0.01


def test_keeping_drafts_behind_a_rejected_one_is_seen():
    """At gamma = 1 it is the token rule; one more draft and the joint law is off."""
    item = WORLDS["drawn V=3 memory=1"]
    assert enumerated(Impatient(), item, 1).bias(2).max() <= ROUNDING
    assert enumerated(Impatient(), item, 2).bias(3).max() > 0.01


def test_a_bias_of_the_second_token_alone_is_seen():
    """Why the joint law: one token's law is blind to a bonus drawn from the draft."""
    item = WORLDS["drawn V=3 memory=1"]
    found = enumerated(Wrong("bonus_draft"), item, 1)
    assert found.bias(1).max() <= ROUNDING
    assert found.bias(2).max() > 0.01


# ---- several draft paths: the enumerator and the engine carry them already


@dataclass(frozen=True)
class TwoTries:
    """Recursive rejection at one position (SpecInfer): path 0's token, then path 1's against the residual."""

    recursive: bool = True
    lossless = True
    prefix_stable = True
    max_paths = 2

    def chances(self, round):
        p, q = round.target_probs[:, 0, 0], round.draft_probs[:, 0, 0]
        second = excess(p, q) if self.recursive else p
        return Token().chances(p, q), Token().chances(second, q), excess(second, q)

    def stop_probs(self, round):
        first, second, _ = self.chances(round)
        a = np.take_along_axis(first, round.draft_tokens[:, 0], -1)[:, 0]
        b = np.take_along_axis(second, round.draft_tokens[:, 1], -1)[:, 0]
        nothing = np.stack([(1 - a) * (1 - b), np.zeros_like(a)], axis=-1)
        return np.stack([nothing, np.stack([a, (1 - a) * b], axis=-1)], axis=-1)

    def next_probs(self, round, path, stop):
        return np.where((stop == 1)[:, None], select(round.target_probs, path, stop), self.chances(round)[2])

    def reference(self, round):
        return round.target_probs


def test_two_paths_by_recursive_rejection():
    """Acceptance .72 at the worked example, and lossless on two tokens."""
    p, q, _ = WORLDS["worked"]
    assert enumerate_steps(players(TwoTries(), p, q, 0, paths=2), 1).expected_kept()[0] == pytest.approx(0.72)
    for name in ("worked", "drawn V=3 memory=1"):
        p, q, memory = WORLDS[name]
        assert enumerate_steps(players(TwoTries(), p, q, memory, paths=2), 1).bias(2).max() <= ROUNDING


def test_two_independent_tries_are_seen():
    """The published trap: target Bern(1/2), draft always 1, K tests with min(1, p/q): P(1) = 1 - 2^-K."""
    half, always = np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]])
    found = enumerate_steps(players(TwoTries(recursive=False), half, always, 0, paths=2), 1)
    assert found.stream_law(1)[0] == pytest.approx([0.25, 0.75])
    assert enumerate_steps(players(TwoTries(), half, always, 0, paths=2), 1).bias(2).max() <= ROUNDING


# ---- how far it reaches, and the audit


def test_too_many_outcomes_are_not_summed():
    p, q, memory = WORLDS["drawn V=3 memory=1"]
    game = players(Token(), p, q, memory)
    assert outcomes(game, 2) == 3**4
    assert enumerate_steps(game, 2, most=3**4) is not None
    assert enumerate_steps(game, 2, most=3**4 - 1) is None


def small_players(rule, paths=1):
    p, q, memory = WORLDS["worked"]
    return players(rule, p, q, memory, paths)


@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES.keys())
def test_audit_judges_every_rule(rule):
    """No rule of the table claims what it does not keep, and the audit knows which are lossy."""
    verdict = audit(small_players(rule), 4, seed=0)
    assert verdict.lossless == rule.lossless
    refuse_false_claim(small_players(rule), verdict, "any")


def test_audit_of_a_rule_that_ignores_its_draft():
    assert audit(small_players(Token()), 0, seed=1).lossless


class Boast(SingleRule):
    """A mistake that claims to be none."""

    lossless = True

    def chances(self, p, q):
        return Token().chances(p, q)

    def replacement(self, p, q):
        return p


def test_a_false_claim_is_refused_with_an_example():
    game = small_players(Boast())
    verdict = audit(game, 4, seed=0)
    with pytest.raises(UserError) as error:
        refuse_false_claim(game, verdict, "boast")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith("rule=boast: claims lossless=True and is not, TV ")
    for part in ("gamma=1", "after token", "p=[", "q=[", "come with chance"):
        assert part in message


def test_an_examples_numbers_are_right():
    """The refused claim's example, worked out again from the p and q that it prints."""
    example = audit(small_players(Boast()), 4, seed=0).example
    p, q = (np.array(eval(example.split(f" {name}=")[1].split("]")[0] + "]")) for name in ("p", "q"))
    first = int(example.split("tokens [")[1][0])
    one = np.minimum(p, q) + (1 - np.minimum(p, q).sum()) * p
    assert abs(one - p).sum() > 1e-3
    stated, claimed = (float(word) for word in example.split("chance ")[1].split(", not "))
    assert stated != claimed
    assert np.sign(stated - claimed) == np.sign(one[first] - p[first]) or abs(one[first] - p[first]) < 1e-3


def test_audit_sees_every_mistake():
    for mistake in MISTAKES:
        assert audit(small_players(Wrong(mistake)), 4, seed=3).bias > 0.01


def test_every_listed_rule_is_tested_here():
    assert {type(rule) for rule in ALL_RULES.values()} == set(RULES.values())


def test_players_of_another_length_are_enumerated():
    """The draft length comes from the argument, not from a rule's own idea."""
    p, q, memory = drawn(3, 1, 9)
    game = Players(table_pair(p, q, memory), Token(), Fixed())
    assert [len(enumerate_steps(game, gamma).steps) for gamma in (0, 2)] == [1, 3]
