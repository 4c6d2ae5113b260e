"""The target alone: the stream that the notebook compares with, the contexts that Leviathan's alpha is a mean over, and
the text that ``replay`` reads. It shares no random number with the walk."""

from dataclasses import dataclass

import numpy as np

from specexp.engine import BLOCK_TIME, WARM_UP, Plan, Players, block_rows
from specexp.models.pair import Pair
from specexp.replay import Chances
from specexp.rounds import Floats, Rule, reference_law
from specexp.sampling import draw, target_only_streams
from specexp.statistics.distance import TokenCounts, count_tokens

LEAST_TOKENS = 256  # of each request's text: what its start does to the steady state is then small
MOST_TOKENS = 2048  # and its p and q stay in memory, however long the run


@dataclass(frozen=True)
class Text:
    """The target's own text in a world whose contexts persist, after a warm-up that is thrown away."""

    counts: TokenCounts
    chances: Chances
    overlap: Floats  # [R]: sum over the request's contexts of sum_x min(p, q)
    contexts: int  # of each request
    own: bool  # drawn from p in every context, not from another law that the rule's stream should have


def fresh_counts(pair: Pair, rule: Rule, plan: Plan, tokens: int) -> TokenCounts:
    """Counts of ``tokens`` tokens that the target emits alone, each in a fresh context of its own."""
    rows = block_rows(pair.vocab)
    counts = TokenCounts.of(np.zeros((0, pair.vocab), dtype=np.int64))
    for block in range(-(-tokens // rows)):
        random = target_only_streams(plan.seed, block)
        p, q = pair.next_laws(pair.start(np.zeros((rows, 0), dtype=np.int64), random), rows)
        emitted = draw(reference_law(rule, p, q), random("verify").random(rows))[: tokens - block * rows]
        counts += TokenCounts.of(count_tokens(emitted[:, None], pair.vocab))
    return counts


def text_length(plan: Plan) -> int:
    """Tokens of each request's text."""
    return int(np.clip(4 * plan.steps_each, LEAST_TOKENS, MOST_TOKENS))


def text(players: Players, plan: Plan) -> Text:
    """Walks the target alone, a text for each request."""
    pair, length = players.pair, text_length(plan)
    random = target_only_streams(plan.seed)
    state = pair.start(pair.first_prompts(plan.requests, random("start")), random)
    p, q, overlap = (np.zeros((plan.requests, length)) for _ in range(3))
    tokens = np.zeros((plan.requests, length), dtype=np.int64)
    uniforms, own = np.zeros(0), True
    for time in range(-WARM_UP, length):
        if (time + WARM_UP) % BLOCK_TIME == 0:
            block = (time + WARM_UP) // BLOCK_TIME
            uniforms = target_only_streams(plan.seed, block)("verify").random((BLOCK_TIME, plan.requests))
        p_law, q_law = pair.next_laws(state, plan.requests)
        law = reference_law(players.rule, p_law, q_law)
        emitted = draw(law, uniforms[(time + WARM_UP) % BLOCK_TIME])
        own = own and np.array_equal(law, p_law)
        if time >= 0:
            rows = np.arange(plan.requests)
            tokens[:, time], p[:, time], q[:, time] = emitted, p_law[rows, emitted], q_law[rows, emitted]
            overlap[:, time] = np.minimum(p_law, q_law).sum(-1)
        state = pair.advance(state, emitted[:, None], np.ones(plan.requests, dtype=np.int64))
    counts = TokenCounts.of(count_tokens(tokens, pair.vocab))
    return Text(counts, Chances(p, q, np.full(plan.requests, length)), overlap.sum(1), length, own)
