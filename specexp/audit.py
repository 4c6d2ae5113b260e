"""Is a rule lossless? Asked of the rule itself, on small worlds whose every outcome is summed (``enumeration``)."""

from dataclasses import dataclass, replace

import numpy as np

from specexp.engine import Players
from specexp.enumeration import MOST_OUTCOMES, Enumerated, enumerate_steps
from specexp.errors import UserError
from specexp.lengths import Fixed
from specexp.models.pair import Pair, uniform_prompts
from specexp.models.table import Table, random_rows
from specexp.rounds import Floats, Rule
from specexp.sampling import generator
from specexp.siblings import independent
from specexp.statistics.distance import ROUNDING

VOCAB = 3
WORLDS = 4
LONGEST = 3  # draft length of the small worlds, where the run's own is longer


@dataclass(frozen=True)
class Verdict:
    """``bias``: the largest TV distance, over small worlds and contexts, between the next tokens' joint law and the law
    the rule claims; ``example`` says in which world, and how, in one line."""

    bias: float
    example: str

    @property
    def lossless(self) -> bool:
        return self.bias <= ROUNDING


def audit(players: Players, gamma: int, seed: int) -> Verdict:
    """The verdict on ``players.rule`` at draft lengths 1 .. min(gamma, LONGEST), in bigram worlds drawn from ``seed``
    and in ones with zeros, equal laws and one-hot laws. The shortest draft that shows a bias makes the example.
    UserError where a step drafts too much for every outcome to be summed."""
    worst = Verdict(-1.0, "no world was small enough")
    for length in range(min(gamma, 1), min(gamma, LONGEST) + 1):
        for name, pair in small_worlds(players, length, seed):
            enumerated = enumerate_steps(replace(players, pair=pair), length)
            if enumerated is not None:
                worst = max(worst, _verdict(enumerated, pair, length, name), key=lambda verdict: verdict.bias)
        if not worst.lossless:
            break
    if worst.bias < 0:
        drafts = len(players.tree(min(gamma, 1)).nodes)
        raise UserError(f"audit=true: {drafts} drafts at one position make too many outcomes to sum; take fewer")
    return worst


def trial(rule: Rule, gamma: int = LONGEST, seed: int = 0, paths: int = 1) -> Verdict:
    """The verdict on a rule by itself, as a test of one's own asks for it: ``assert trial(MyRule()).lossless``."""
    some = Table(np.eye(VOCAB))
    return audit(Players(Pair(some, some, False, uniform_prompts(VOCAB), paths), rule, Fixed()), gamma, seed)


def vocabulary(players: Players, length: int) -> int:
    """VOCAB; fewer tokens where drafts are many, more where all children of a node must be different."""
    tree = players.tree(length)
    least = 2 if players.pair.siblings is independent else max(2, tree.most_siblings)
    return VOCAB if VOCAB ** (len(tree.nodes) + 2) <= MOST_OUTCOMES and least <= VOCAB else least


def small_worlds(players: Players, length: int, seed: int) -> list[tuple[str, Pair]]:
    """Named pairs over a few tokens, drafted as ``players`` do: random ones first, then the edges of what a law can
    be."""
    rng, vocab = generator(seed, "target_matrix"), vocabulary(players, length)
    drawn = [(random_rows(vocab, vocab, rng), random_rows(vocab, vocab, rng)) for _ in range(WORLDS)]
    one_hot, p = np.eye(vocab), drawn[0][0]
    without_first = p * (np.arange(vocab) > 0)
    thinned = without_first / without_first.sum(1, keepdims=True)
    edges = [
        ("p = q", p, p),
        ("q one-hot", p, one_hot),
        ("p one-hot", one_hot, p),
        ("disjoint", one_hot, np.roll(one_hot, 1, axis=0)),
    ]
    edges += [("q excludes a token of p", p, thinned), ("p excludes a token of q", thinned, p)]
    named = [(f"random world {i}", p, q) for i, (p, q) in enumerate(drawn)] + edges
    scheme = (players.pair.paths, players.pair.siblings)
    return [(name, Pair(Table(p), Table(q), False, uniform_prompts(vocab), *scheme)) for name, p, q in named]


def _verdict(enumerated: Enumerated, pair: Pair, length: int, name: str) -> Verdict:
    depth = max(2, length + 1)
    bias = enumerated.bias(depth)
    context = int(bias.argmax())
    law, claimed = enumerated.stream_law(depth)[context], enumerated.reference_law(depth)[context]
    text = int(np.abs(law - claimed).argmax())
    tokens = [text // pair.vocab**i % pair.vocab for i in range(depth)][::-1]
    p, q = _row(pair.target, context), _row(pair.draft, context)
    return Verdict(
        float(bias[context]),
        f"{name}, gamma={length}, after token {context} with p={p}, q={q}: tokens {tokens} come with chance "
        f"{law[text]:.6g}, not {claimed[text]:.6g}",
    )


def _row(model: object, context: int) -> list[float]:
    assert isinstance(model, Table)
    law: Floats = model.rows[context]
    return [round(float(chance), 4) for chance in law]


def refuse_false_claim(players: Players, verdict: Verdict, rule: str) -> None:
    """Raises UserError for a rule that claims to be lossless and is not."""
    if players.rule.lossless and not verdict.lossless:
        raise UserError(f"rule={rule}: claims lossless=True and is not, TV {verdict.bias:.3g}: {verdict.example}")
