"""The walk: streams side by side, step after step, each a round that the rule verifies.

Where contexts are fresh, a step is a start, and a logical block is a batch of independent steps. Where they persist, a
block is a stretch of time of all streams. Random numbers belong to a block, a column a position: a longer draft adds
columns and moves none, and the block, not the caller, decides how much is drawn at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np

from specexp.lengths import Length
from specexp.models.pair import Pair, PairState
from specexp.rounds import Floats, Ints, RandomStreams, Round, Rule
from specexp.sampling import SUM_TOLERANCE, NotALaw, columns, draw, refuse_no_law, streams, taken
from specexp.siblings import drawn_from
from specexp.trees import Tree

BLOCK_STEPS = 1536  # rows of a fresh block: at V = 20 its arrays stay in the cache (measured: benchmarks/README.md)
BLOCK_CELLS = 2**17  # rows x V of a fresh block, so that a large vocabulary stays in memory
BLOCK_TIME = 64  # steps of a persistent block
WARM_UP = 64  # steps thrown away where the law of step starts is not known


@dataclass(frozen=True)
class Plan:
    """How much to walk: ceil(steps / requests) whole steps of each of ``requests`` streams."""

    seed: int
    steps: int
    requests: int

    @property
    def steps_each(self) -> int:
        return -(-self.steps // self.requests)

    @property
    def total(self) -> int:
        """Steps walked: ``steps`` rounded up to a whole number a request."""
        return self.steps_each * self.requests


@dataclass(frozen=True)
class Players:
    """Who decides what happens in a round: the two models, the rule, the draft length. ``shape`` says which tree is
    drafted at each gamma; without it, the pair's number of paths side by side."""

    pair: Pair
    rule: Rule
    length: Length
    shape: Callable[[int], Tree] | None = None

    def tree(self, gamma: int) -> Tree:
        """What a step drafts, ``gamma`` levels of it."""
        return Tree.of_paths(self.pair.paths, gamma) if self.shape is None else self.shape(gamma)


@dataclass(frozen=True, slots=True)
class Step:
    """One verified round of each of B streams, and what came out of it."""

    round: Round
    draft_laws: Floats  # [B, K, G+1, V]: the drafter's own law along each path, whatever its siblings were
    stop_probs: Floats  # [B, K, G+1]
    path: Ints  # [B]
    kept: Ints  # [B]: drafted tokens that were kept
    tokens: Ints  # [B, G+1]: emitted tokens, -1 after the last

    @property
    def emitted(self) -> Ints:
        """[B]: tokens of each step, the extra one included."""
        return self.kept + 1


def block_rows(vocab: int) -> int:
    """Steps of a logical block where contexts are fresh: a function of the world alone."""
    return max(1, min(BLOCK_STEPS, BLOCK_CELLS // vocab))


def walk(players: Players, gamma: int, plan: Plan, prompts: Ints | None = None) -> Iterator[Step]:
    """Steps of the sampled walk: a batch of independent steps each where contexts are fresh, one step of every
    request, in time order, where they persist. There, streams begin at ``prompts`` [requests, n], drawn by the law of
    step starts; without them WARM_UP steps are thrown away. Raises ValueError, with step and position, where a law is
    not one or a drafted token could not have been drafted."""
    if players.pair.persistent:
        yield from _walk_persistent(players, gamma, plan, prompts)
    else:
        yield from _walk_fresh(players, gamma, plan)


def _walk_fresh(players: Players, gamma: int, plan: Plan) -> Iterator[Step]:
    rows, paths = block_rows(players.pair.vocab), players.tree(gamma).paths
    for block in range(-(-plan.total // rows)):
        random = streams(plan.seed, block)
        state = players.pair.start(np.zeros((rows, 0), dtype=np.int64), random)
        drafts = _draft_uniforms(random, rows, gamma, paths)
        with _naming("step", block * rows):
            step = verify(players, state, gamma, drafts, columns(random("verify"), rows, 2))
        yield first_rows(step, min(rows, plan.total - block * rows))


def _walk_persistent(players: Players, gamma: int, plan: Plan, prompts: Ints | None) -> Iterator[Step]:
    pair, random = players.pair, streams(plan.seed)
    thrown_away = 0 if prompts is not None else WARM_UP
    prompts = pair.first_prompts(plan.requests, random("start")) if prompts is None else prompts
    state = pair.start(prompts, random)
    uniforms = _uniforms_by_time(players.tree(gamma).paths, gamma, plan)
    for time in range(thrown_away + plan.steps_each):
        with _naming(f"step {time - thrown_away} of request"):
            step = verify(players, state, gamma, *next(uniforms))
        if time >= thrown_away:
            yield step
        state = pair.advance(state, step.tokens, step.emitted)


def _uniforms_by_time(paths: int, gamma: int, plan: Plan) -> Iterator[tuple[Floats, Floats]]:
    """For each step in time, the uniforms of all requests: [R, K, G] to draft with, [R, 2] to verify with."""
    rows = BLOCK_TIME * plan.requests
    for block in count():
        random = streams(plan.seed, block)
        drafts = _draft_uniforms(random, rows, gamma, paths).reshape(BLOCK_TIME, plan.requests, paths, gamma)
        verifies = columns(random("verify"), rows, 2).reshape(BLOCK_TIME, plan.requests, 2)
        yield from zip(drafts, verifies, strict=True)


def _draft_uniforms(random: RandomStreams, rows: int, gamma: int, paths: int) -> Floats:
    """[rows, K, G]: position by position and each path from numbers of its own, so that neither gamma, nor the number
    of paths, nor that of the rows used moves another draw."""
    first = random("draft")
    return np.stack([rng.random((gamma, rows)) for rng in (first, *first.spawn(paths - 1))], axis=1).T


def verify(players: Players, state: PairState, gamma: int, drafts: Floats, verifies: Floats) -> Step:
    """One round of each row of ``state``: propose with ``drafts`` [B, K, G], verify with ``verifies`` [B, 2]."""
    pair, rule, tree = players.pair, players.rule, players.tree(gamma)
    tokens, laws = pair.propose(state, drafts, tree)
    target_probs = pair.target_laws(state, tokens)
    refuse_no_law("target", target_probs)
    draft_probs = drawn_from(laws, tokens, tree, pair.siblings)
    owner = np.broadcast_to(tree.owner, tokens.shape)
    refuse_undraftable(tokens, draft_probs, owner)
    lengths = np.minimum(players.length.lengths(gamma, len(tokens)), tree.depth)
    round = Round(tokens, draft_probs, target_probs, owner, lengths)
    stop_probs = rule.stop_probs(round)
    refuse_no_stop(stop_probs)
    path, kept = choose(stop_probs, verifies[:, 0])
    following = draw(rule.next_probs(round, path, kept), verifies[:, 1])
    return Step(round, laws, stop_probs, path, kept, emit(tokens, path, kept, following))


def refuse_undraftable(tokens: Ints, draft_probs: Floats, owner: Ints) -> None:
    """Raises NotALaw for the first of ``tokens`` [B, K, G] that the law it is said to be drawn from excludes."""
    inside = (tokens >= 0) & (tokens < draft_probs.shape[-1])
    looked_up = tokens if inside.all() else np.where(inside, tokens, 0)
    possible = inside & (taken(draft_probs[:, :, : tokens.shape[2]], looked_up) > 0) | (owner < 0)
    if not possible.all():
        row, path, position = np.argwhere(~possible)[0].tolist()
        token = tokens[row, path, position]
        raise NotALaw(row, f"position {position}: token {token} was drafted, to which the draft's law gives no chance")


def refuse_no_stop(stop_probs: Floats) -> None:
    """Raises NotALaw for the first row of ``stop_probs`` [B, K, G+1] that is no law: a chance below 0, or a sum that is
    not 1."""
    total, least = stop_probs.sum((1, 2)), stop_probs.min((1, 2))
    right = (np.abs(total - 1) < SUM_TOLERANCE) & (least > -SUM_TOLERANCE)  # not where either is NaN
    if not right.all():
        row = int(np.argmin(right))
        told = f"the least is {least[row]:.6g}, their sum {total[row]:.6g}"
        raise NotALaw(row, f"the rule's chances to keep 0, 1, .. drafts are no law: {told}")


@contextmanager
def _naming(what: str, first: int = 0) -> Iterator[None]:
    """Says of an error in which step, or of which request, it happened: ``what``, and the number of its row."""
    try:
        yield
    except NotALaw as error:
        raise ValueError(f"{what} {first + error.row}, {error}") from error


def choose(stop_probs: Floats, uniforms: Floats) -> tuple[Ints, Ints]:
    """(path, kept), [B] each, drawn from ``stop_probs`` [B, K, G+1]; fewer kept tokens go with smaller uniforms."""
    paths = stop_probs.shape[1]
    index = draw(stop_probs.transpose(0, 2, 1).reshape(len(stop_probs), -1), uniforms)
    return (np.zeros_like(index), index) if paths == 1 else (index % paths, index // paths)


def emit(drafts: Ints, path: Ints, kept: Ints, following: Ints) -> Ints:
    """[B, G+1]: the kept drafts of each row's path, the token that follows them, then -1."""
    rows, length = np.arange(len(drafts)), drafts.shape[2]
    chosen = drafts[:, 0] if drafts.shape[1] == 1 else drafts[rows, path]
    tokens = np.full((length + 1, len(drafts)), -1, dtype=np.int64)  # rows are the fast axis in memory
    np.copyto(tokens[:-1], chosen.T, where=np.arange(length)[:, None] < kept)
    tokens[kept, rows] = following
    return tokens.T


def first_rows(step: Step, rows: int) -> Step:
    """The step's first ``rows`` rows."""
    if rows == len(step.kept):
        return step
    kept = slice(rows)
    outcome = (step.draft_laws[kept], step.stop_probs[kept], step.path[kept], step.kept[kept], step.tokens[kept])
    return Step(step.round.rows(kept), *outcome)
