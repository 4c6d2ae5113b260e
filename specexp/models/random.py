"""The notebook's target: a law drawn afresh for each step, or for each position. Nothing said earlier matters.

Contexts are drawn in columns, one a position, and each role has its own numbers, so that a longer draft, another rule
or another draft model meets the same contexts. The vocabulary is the slow axis in memory: sums over a small V then
run across rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Floats, Ints, RandomStreams
from specexp.values import OneOf, Range


class Columns:
    """[rows, V] functions of standard normals, one array a column, drawn in order and kept for the block's life."""

    def __init__(
        self, rng: np.random.Generator, rows: int, vocab: int, transform: Callable[[Floats], Floats] = np.asarray
    ) -> None:
        self._rng, self._shape, self._transform = rng, (vocab, rows), transform
        self._drawn: list[Floats] = []

    def __getitem__(self, column: int) -> Floats:
        while len(self._drawn) <= column:
            self._drawn.append(self._transform(self._rng.standard_normal(self._shape).T))
        return self._drawn[column]

    def following(self) -> "Columns":
        """New columns of numbers of their own, however many of these were used."""
        return Columns(self._rng.spawn(1)[0], self._shape[1], self._shape[0], self._transform)


def exponentiated(normals: Floats) -> Floats:
    """[..., V]: the softmax of ``normals``, written over them; so small, they need no shift."""
    weights = np.exp(normals, out=normals)
    weights /= weights.sum(-1, keepdims=True)
    return weights


@dataclass(frozen=True)
class FreshState:
    """One block of contexts: column i is position i's (a step with one context has column 0 only)."""

    laws: Columns
    noise: Columns


@dataclass(frozen=True)
class RandomTarget:
    """Logits N(0, 1) over ``vocab`` tokens, fresh for each ``context``: a "step" or a "position"."""

    vocab: Annotated[int, Range(1, 2**22)] = 20
    context: Annotated[str, OneOf(("step", "position"))] = "step"
    persistent = False
    memory = None

    @property
    def constant(self) -> bool:
        return self.context == "step"

    def model(self, seed: int) -> "RandomTarget":
        return self

    def start(self, prompts: Ints, random: RandomStreams) -> FreshState:
        """A new block of contexts, a row a prompt; what the prompts say is ignored."""
        rows = len(prompts)
        return FreshState(
            Columns(random("context"), rows, self.vocab, exponentiated), Columns(random("noise"), rows, self.vocab)
        )

    def by_position(self, column: Callable[[int], Floats], tokens: Ints) -> Floats:
        """[B, K, n+1, V] of ``column(i)`` [B, V]: a view without copies over paths, and over positions too where a
        step has one context."""
        streams, paths, n = tokens.shape
        if self.constant:
            by_position = column(0)[:, None]
        else:  # [n + 1, V, B] in memory: rows stay the fast axis
            by_position = np.stack([column(i).T for i in range(n + 1)]).transpose(2, 0, 1)
        return np.broadcast_to(by_position[:, None], (streams, paths, n + 1, self.vocab))

    def law(self, state: FreshState, tokens: Ints) -> Floats:
        """[B, K, V]: the law of position n, whatever the tokens."""
        return self.laws(state, tokens)[:, :, -1]

    def laws(self, state: FreshState, tokens: Ints) -> Floats:
        """[B, K, n+1, V]: the law of each position, whatever the tokens."""
        return self.by_position(state.laws.__getitem__, tokens)

    def advance(self, state: FreshState, tokens: Ints, lengths: Ints) -> FreshState:
        """New contexts, whatever was emitted."""
        return FreshState(state.laws.following(), state.noise.following())
