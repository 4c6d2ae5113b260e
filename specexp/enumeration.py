"""The proof: every draft, every outcome of a small world, summed.

It reads the same ``stop_probs`` and ``next_probs`` as the sampler. The joint law of the stream's next tokens, whatever
steps they come from, is compared with the law that the rule claims: for a lossless rule they are one, to rounding.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specexp.engine import Players, refuse_no_stop
from specexp.exact import stationary
from specexp.models.pair import contexts_of, laws_in, no_randomness
from specexp.models.table import contexts
from specexp.rounds import Floats, Ints, Round, Rule, reference_law
from specexp.sampling import taken
from specexp.siblings import drawn_from
from specexp.trees import Tree

MOST_OUTCOMES = 1_000_000


@dataclass(frozen=True)
class Enumerated:
    """``steps[n]`` [S, V^(n+1)]: P(a step from context s keeps n drafts and emits just these tokens), the tokens read
    as a number in base V; ``reference`` [S, V]: the law each next token should have."""

    steps: list[Floats]
    reference: Floats

    @property
    def vocab(self) -> int:
        return self.reference.shape[1]

    def expected_kept(self) -> Floats:
        """[S]: mean number of drafts that a step keeps."""
        return np.array(sum(n * law.sum(1) for n, law in enumerate(self.steps)), dtype=np.float64)

    def step_kernel(self) -> Floats:
        """[S, S']: where the next step starts."""
        kernel = np.zeros((len(self.reference), len(self.reference)))
        context = np.arange(len(kernel))[:, None]
        for kept, law in enumerate(self.steps):
            np.add.at(kernel, (context, self._after(kept + 1)), law)
        return kernel

    @cached_property
    def step_starts(self) -> Floats:
        """[S]: the long-run law of the contexts in which steps start."""
        return stationary(self.step_kernel())

    def tokens_per_step(self) -> float:
        """Long-run emitted tokens a step, whatever the rule looks at."""
        return float(1 + self.expected_kept() @ self.step_starts)

    def stream_law(self, depth: int) -> Floats:
        """[S, V^depth]: joint law of the next ``depth`` tokens after context s, over as many steps as they take."""
        laws = [np.ones((len(self.reference), 1))]
        for length in range(1, depth + 1):
            laws.append(np.sum([self._begin(n, length, laws) for n in range(len(self.steps))], axis=0))
        return laws[depth]

    def _begin(self, kept: int, length: int, laws: list[Floats]) -> Floats:
        """The part of the next ``length`` tokens' law whose first step keeps ``kept`` drafts."""
        step, rest = self.steps[kept], length - kept - 1
        if rest <= 0:  # the step emits all of them, and perhaps more
            return step.reshape(len(step), self.vocab**length, -1).sum(-1)
        return (step[..., None] * laws[rest][self._after(kept + 1)]).reshape(len(step), -1)

    def reference_law(self, depth: int) -> Floats:
        """[S, V^depth]: the joint law that the next ``depth`` tokens should have."""
        law = np.ones((len(self.reference), 1))
        for length in range(depth):
            law = (law[..., None] * self.reference[self._after(length)]).reshape(len(law), -1)
        return law

    def _after(self, length: int) -> Ints:
        """[S, V^length]: the context after each text of ``length`` tokens."""
        count, vocab = self.reference.shape
        return (np.arange(count)[:, None] * vocab**length + np.arange(vocab**length)) % count

    def bias(self, depth: int) -> Floats:
        """[S]: TV distance between the next ``depth`` tokens' law and the law they should have."""
        return np.asarray(np.abs(self.stream_law(depth) - self.reference_law(depth)).sum(-1) / 2)


def outcomes(players: Players, gamma: int) -> int | None:
    """How many outcomes ``enumerate_steps`` would sum; None where contexts are unbounded or fresh."""
    pair = players.pair
    if not pair.persistent or pair.memory is None:
        return None
    return int(pair.vocab ** (pair.memory + len(players.tree(gamma).nodes) + 1))


def enumerate_steps(players: Players, gamma: int, most: int = MOST_OUTCOMES) -> Enumerated | None:
    """Every step from every context; None where there are more than ``most`` outcomes."""
    pair, size = players.pair, outcomes(players, gamma)
    numbers = contexts_of(pair, most)
    if size is None or size > most or numbers is None:
        return None
    round, weight, context = every_round(players, numbers, gamma)
    stop_probs = players.rule.stop_probs(round)
    refuse_no_stop(stop_probs)
    stop_probs = weight[:, None, None] * stop_probs
    steps = [np.zeros((len(numbers), pair.vocab ** (kept + 1))) for kept in range(gamma + 1)]
    for path in range(round.draft_tokens.shape[1]):
        for kept, law in enumerate(steps):
            _add(law, players.rule, round, stop_probs[:, path, kept], context, (path, kept))
    return Enumerated(steps, _reference(players, numbers))


def every_round(players: Players, numbers: Ints, gamma: int) -> tuple[Round, Floats, Ints]:
    """The round of each context ``numbers`` [S, memory] and each draft that can be, P(draft | context) and the number
    of the context [rows]."""
    pair, tree = players.pair, players.tree(gamma)
    drawn = contexts(pair.vocab, len(tree.nodes))
    drafts = np.zeros((len(drawn), tree.paths, gamma), dtype=np.int64)
    for node, (path, level, *_) in enumerate(tree.nodes):
        drafts[:, tree.owner[:, level] == path, level] = drawn[:, node, None]
    tokens = np.tile(drafts, (len(numbers), 1, 1))
    context = np.repeat(np.arange(len(numbers)), len(drafts))
    state = pair.start(numbers[context], no_randomness)
    draft_probs = drawn_from(pair.draft_laws(state, tokens), tokens, tree, pair.siblings)
    weight = _chance(draft_probs, tokens, tree)
    can_be = weight > 0
    target_probs, owner = pair.target_laws(state, tokens), np.broadcast_to(tree.owner, tokens.shape)
    round = Round(tokens, draft_probs, target_probs, owner, np.full(len(tokens), tree.depth))
    return round.rows(can_be), weight[can_be], context[can_be]


def _chance(draft_probs: Floats, tokens: Ints, tree: Tree) -> Floats:
    """[rows]: the chance of all draws of a row."""
    chances = taken(draft_probs[:, :, : tokens.shape[2]], tokens)
    nodes = [chances[:, path, level] for path, level, *_ in tree.nodes]
    return np.asarray(np.prod(nodes, axis=0)) if nodes else np.ones(len(tokens))


def _add(law: Floats, rule: Rule, round: Round, chance: Floats, context: Ints, at: tuple[int, int]) -> None:
    """Adds to ``law`` [S, V^(kept+1)] what the rounds emit, with their ``chance``, that keep ``at`` = (path, kept)."""
    path, kept = at
    rows = np.flatnonzero(chance)
    if not len(rows):
        return
    chosen = round.rows(rows)
    following = rule.next_probs(chosen, np.full(len(rows), path), np.full(len(rows), kept))
    vocab = following.shape[1]
    text = chosen.draft_tokens[:, path, :kept] @ (vocab ** np.arange(kept)[::-1]).astype(np.int64)
    np.add.at(law.reshape(len(law), -1, vocab), (context[rows], text), chance[rows, None] * following)


def _reference(players: Players, numbers: Ints) -> Floats:
    """[S, V]: the law that the rule claims for the token after each context."""
    return reference_law(players.rule, *laws_in(players.pair, numbers))
