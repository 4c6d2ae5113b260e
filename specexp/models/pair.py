"""A target and a draft over one vocabulary, walking the same streams."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from specexp.models.table import contexts
from specexp.rounds import Floats, Ints, Model, RandomStreams, State
from specexp.sampling import NotALaw, refuse_no_law
from specexp.siblings import Siblings, draw_level, draw_levels, independent
from specexp.trees import Tree

PairState = tuple[State, State]
Prompts = Callable[[int, int, np.random.Generator], Ints]  # (streams, n, rng) -> [streams, n] tokens


@dataclass(frozen=True)
class Pair:
    """``shared``: the draft is derived from the target and reads the target's state. ``prompts`` says where streams
    begin; it plays no part where contexts are fresh. ``paths`` are drafted in a step, unless the draft length says
    which tree; ``siblings`` is how the children of a node are drawn."""

    target: Model
    draft: Model
    shared: bool
    prompts: Prompts
    paths: int = 1
    siblings: Siblings = independent

    @property
    def vocab(self) -> int:
        return self.target.vocab

    @property
    def persistent(self) -> bool:
        return self.target.persistent

    @property
    def memory(self) -> int | None:
        """Last tokens that the two laws depend on; None where unbounded, or where contexts are fresh."""
        if self.target.memory is None or self.draft.memory is None:
            return None
        return max(self.target.memory, self.draft.memory)

    def first_prompts(self, streams: int, rng: np.random.Generator) -> Ints:
        """[streams, memory]: where streams begin when nothing better is known."""
        return self.prompts(streams, self.memory or 0, rng)

    def start(self, prompts: Ints, random: RandomStreams) -> PairState:
        target = self.target.start(prompts, random)
        return target, target if self.shared else self.draft.start(prompts, random)

    def advance(self, state: PairState, tokens: Ints, lengths: Ints) -> PairState:
        target = self.target.advance(state[0], tokens, lengths)
        return target, target if self.shared else self.draft.advance(state[1], tokens, lengths)

    def target_laws(self, state: PairState, tokens: Ints) -> Floats:
        """[B, K, n+1, V]: the verification pass: p before each of ``tokens`` [B, K, n] and after the last."""
        return self.target.laws(state[0], tokens)

    def draft_laws(self, state: PairState, tokens: Ints) -> Floats:
        """[B, K, n+1, V]: q before each of ``tokens`` [B, K, n] and after the last."""
        return self.draft.laws(state[1], tokens)

    def next_laws(self, state: PairState, rows: int) -> tuple[Floats, Floats]:
        """(p, q) [B, V] each, of the next token of each of the state's ``rows`` streams."""
        nothing = np.zeros((rows, 1, 0), dtype=np.int64)
        return self.target_laws(state, nothing)[:, 0, 0], self.draft_laws(state, nothing)[:, 0, 0]

    def propose(self, state: PairState, uniforms: Floats, tree: Tree) -> tuple[Ints, Floats]:
        """Drafts [B, K, G] of the ``tree``, drawn with ``uniforms`` [B, K, G], and the drafter's own laws
        [B, K, G+1, V] along each path, the last one after its end. Raises NotALaw where one of them is none."""
        if not self.persistent:  # laws ignore tokens: all levels are known at once
            laws = self.draft_laws(state, np.zeros(uniforms.shape, dtype=np.int64))
            refuse_no_law("draft", laws)
            return draw_levels(laws, uniforms, tree, self.siblings), laws
        tokens = np.zeros((*uniforms.shape[:2], 0), dtype=np.int64)
        by_level = [self.draft.law(state[1], tokens)]
        for level in range(uniforms.shape[2]):
            with _of_position(level):
                drafted = draw_level(by_level[-1], uniforms[..., level], tree, level, self.siblings)
            tokens = np.concatenate([tokens, drafted[..., None]], axis=-1)
            by_level.append(self.draft.law(state[1], tokens))
        laws = np.stack(by_level, axis=2)
        refuse_no_law("draft", laws)
        return tokens, laws


@contextmanager
def _of_position(position: int) -> Iterator[None]:
    """Says of a law that is none where in the draft it stands."""
    try:
        yield
    except NotALaw as error:
        raise NotALaw(error.row, f"position {position}: the draft's law is {error}") from error


def contexts_of(pair: Pair, limit: int) -> Ints | None:
    """[S, memory]: every context of a pair of finite memory, or None where there are more than ``limit``."""
    if not pair.persistent or pair.memory is None or pair.vocab**pair.memory > limit:
        return None
    return contexts(pair.vocab, pair.memory)


def laws_in(pair: Pair, numbers: Ints) -> tuple[Floats, Floats]:
    """(p, q) [S, V] each, in the contexts ``numbers`` [S, memory]."""
    return pair.next_laws(pair.start(numbers, no_randomness), len(numbers))


def all_laws(pair: Pair) -> tuple[Floats, Floats]:
    """(p, q) [S, V] each, in every context of a pair of finite memory."""
    return laws_in(pair, contexts(pair.vocab, pair.memory or 0))


def no_randomness(role: str) -> np.random.Generator:
    """``random(role)`` where every context is met: a model of finite memory has nothing to draw."""
    raise AssertionError(f"a model of finite memory asked for {role} randomness")


def uniform_prompts(vocab: int) -> Prompts:
    """Prompts of tokens drawn uniformly, for worlds that have no text to begin in."""

    def prompts(streams: int, length: int, rng: np.random.Generator) -> Ints:
        return rng.integers(0, vocab, (streams, length))

    return prompts
