"""The words everything else is written in: one round of speculative decoding.

The draft proposes tokens, the target scores them in one pass, a rule decides how many are kept and which
token follows. Everything here is numpy; p is the target, q the draft, gamma the number of drafted tokens.

Axes, named once: B rounds side by side · K draft paths · G drafted tokens (gamma) · V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Carry = Any  # what a replayable rule takes from one position to the next (None for a memoryless rule)
RandomStreams = Callable[[str], np.random.Generator]  # a role's random numbers (sampling.ROLES)
State = Any  # what a model remembers of its streams, a row a stream; opaque to everybody else


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Round:
    """What a verification rule sees: the drafts, the laws they were drawn from, the target's laws.

    ``draft_probs[b, k, g]`` is the law that ``draft_tokens[b, k, g]`` was DRAWN from, given its path and the
    sibling draws before it (one-hot for a deterministic draft); its last entry is q after the last draft.
    ``target_probs[b, k, g]`` is p(.|path so far). ``owner[b, k, g]`` is the lowest path that shares this draw: equal
    tokens with different owners are separate draws, and -1 means that the path has ended before. Rows may be broadcast
    views (stride 0); nobody writes into them.
    """

    draft_tokens: Ints  # [B, K, G]
    draft_probs: Floats  # [B, K, G+1, V]
    target_probs: Floats  # [B, K, G+1, V]
    owner: Ints  # [B, K, G]
    lengths: Ints  # [B], drafted tokens of each round; the arrays are as long as the longest
    noise: Floats | None = None  # [B, G+1, V] Gumbel numbers: only for a coupled rule's invariance at a fixed seed

    @property
    def drafted(self) -> int:
        """G, the number of drafted positions."""
        return self.draft_tokens.shape[2]

    @property
    def vocab(self) -> int:
        return self.target_probs.shape[-1]

    def rows(self, which: slice | Ints | Booleans) -> "Round":
        """The rounds of some rows alone; what a row's positions share in memory they go on sharing."""
        return Round(
            self.draft_tokens[which],
            some_rows(self.draft_probs, which),
            some_rows(self.target_probs, which),
            some_rows(self.owner, which),
            self.lengths[which],
            None if self.noise is None else self.noise[which],
        )

    def cut(self, length: int) -> "Round":
        """The same round with the drafts after ``length`` positions never made."""
        return Round(
            self.draft_tokens[:, :, :length],
            self.draft_probs[:, :, : length + 1],
            self.target_probs[:, :, : length + 1],
            self.owner[:, :, :length],
            np.minimum(self.lengths, length),
            None if self.noise is None else self.noise[:, : length + 1],
        )


def some_rows(values: NDArray[Any], which: slice | Ints | Booleans) -> NDArray[Any]:
    """``values[which]`` with the axes after the first still broadcast that are."""
    kept = values[:, *(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides[1:])][which]
    return np.broadcast_to(kept, (len(kept), *values.shape[1:]))


class Work(NamedTuple):
    """What a step does: ``drafted`` tokens on ``levels`` levels (of one path: as many), of which all, and the position
    after them, are ``verified`` in one pass: every drafted token of every path, once where paths share it."""

    levels: int
    drafted: int
    verified: int


class Rule(Protocol):
    """A verification rule: three laws, no randomness. The sampler draws from them, the averaged estimator and the
    enumerator sum them, so what is proved is what runs."""

    lossless: ClassVar[bool]  # claims that the emitted stream follows ``reference``
    prefix_stable: ClassVar[bool]  # min(kept, g) at gamma has the law of kept at g
    max_paths: ClassVar[int]

    def stop_probs(self, round: Round) -> Floats:
        """[B, K, G+1]: P(path k is kept for exactly n tokens), given the drafts; sums to one over (k, n)."""
        ...

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: law of the token emitted after ``stop`` kept tokens of ``path``, given all the drafts."""
        ...

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the law that the emitted stream should have at each position."""
        ...


@runtime_checkable
class Local(Rule, Protocol):
    """A rule for one path whose decision depends on the current context alone: it can be averaged over drafts and
    solved exactly. ``rules.single.SingleRule`` derives all of this from one position's chances and residual."""

    def kept_mass(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: P(x is drafted and kept)."""
        ...

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: P(the draft is rejected and y is emitted in its place)."""
        ...

    def bonus(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: law of the token after a draft that was kept whole."""
        ...


@runtime_checkable
class ByPrefix(Protocol):
    """A rule that knows how likely a prefix is kept, averaged over what is drafted after it. Estimates then have less
    noise, and those of two draft lengths are sums of the same numbers; such a rule is prefix_stable."""

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: P(at least i drafts are kept | the first i drafts), i = 0..G, were the draft i long or longer."""
        ...


@runtime_checkable
class FirstToken(Protocol):
    """A rule that knows the law of the first token that a step emits, though it is not Local, or more simply than from
    the masses of one that is. Its bias is then known where contexts are too many to be summed."""

    def first_law(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: law of the first token of a step that drafts, averaged over its drafts."""
        ...


@runtime_checkable
class Replayable(Protocol):
    """A lossless rule with a per-token chance along a text sampled from the target: replay needs two numbers a token
    (docs/design.md), whatever the vocabulary."""

    def go_on(self, p: Floats, q: Floats, carry: Carry) -> tuple[Floats, Carry]:
        """The chance that a text token of probabilities p and q is kept, and what the next position needs.
        ``carry`` is None at the start of a block."""
        ...


def reference_law(rule: Rule, p: Floats, q: Floats) -> Floats:
    """[B, V]: the law that the next token of the rule's stream should have, in contexts of laws ``p``, ``q`` [B, V]:
    its reference for rounds in which nothing is drafted."""
    return rule.reference(undrafted(p, q))[:, 0, 0]


def undrafted(p: Floats, q: Floats) -> Round:
    """Rounds in which nothing is drafted, in contexts of laws ``p``, ``q`` [B, V]."""
    nothing, lengths = np.zeros((len(p), 1, 0), dtype=np.int64), np.zeros(len(p), dtype=np.int64)
    return Round(nothing, q[:, None, None], p[:, None, None], nothing, lengths)


class Model(Protocol):
    """A language model over ``vocab`` tokens, many streams side by side.

    ``memory`` is the number of last tokens its law depends on, None where that is unbounded. A model whose contexts
    do not persist (``persistent`` False) ignores tokens: position n of a step has its own law, or all have one
    (``constant``), and each step is a new start.
    """

    @property
    def vocab(self) -> int: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def memory(self) -> int | None: ...
    @property
    def constant(self) -> bool: ...

    def start(self, prompts: Ints, random: RandomStreams) -> State:
        """A row a stream, standing after ``prompts`` [B, n]; ``random(role)`` is that role's random numbers."""
        ...

    def law(self, state: State, tokens: Ints) -> Floats:
        """[B, K, V]: the law after ``tokens`` [B, K, n]; the state stays as it is."""
        ...

    def laws(self, state: State, tokens: Ints) -> Floats:
        """[B, K, n+1, V]: the law before each of ``tokens`` [B, K, n] and after the last; the state stays as it is."""
        ...

    def advance(self, state: State, tokens: Ints, lengths: Ints) -> State:
        """The state after row b's first ``lengths[b]`` of ``tokens`` [B, n]; a KV cache is cropped here."""
        ...


def select(laws: Floats, path: Ints, position: Ints) -> Floats:
    """[B, V]: row b's law at (path[b], position[b]) of ``laws`` [B, K, n, V]; a view where all positions share one."""
    if laws.strides[1] == laws.strides[2] == 0 or laws.shape[1] == laws.shape[2] == 1:
        return laws[:, 0, 0]
    return laws[np.arange(len(laws)), path, position]
