"""Laws written in the config or drawn once from the seed: one distribution (``fixed``) or a matrix (``bigram``).

A table over the last ``memory`` tokens also holds a draft that was derived, once, in every context of a small world.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from specexp.errors import UserError
from specexp.models.window import WindowModel
from specexp.rounds import Floats, Ints
from specexp.sampling import generator
from specexp.siblings import Scheme
from specexp.values import Range, shown

SUM_TOLERANCE = 1e-5  # of a probability vector written with six digits: .333333 three times is meant as a third


@dataclass(frozen=True)
class Table(WindowModel):
    """``rows`` [V**memory, V]: the law in each context; the last token is the context number's lowest digit."""

    rows: Floats
    memory: int = 1

    @property
    def vocab(self) -> int:  # type: ignore[override]
        return self.rows.shape[1]

    def conditional(self, window: Ints) -> Floats:
        if self.memory == 0:
            return np.broadcast_to(self.rows[0], (*window.shape[:-1], self.vocab))
        return self.rows[context_numbers(window, self.vocab)]


def context_numbers(window: Ints, vocab: int) -> Ints:
    """[...]: ``window`` [..., memory] read as a number in base ``vocab``, oldest token first."""
    return np.asarray(window @ (vocab ** np.arange(window.shape[-1])[::-1]), dtype=np.int64)


def contexts(vocab: int, memory: int) -> Ints:
    """[V**memory, memory]: every context, in the order of its number."""
    return np.indices((vocab,) * memory).reshape(memory, vocab**memory).T


def random_rows(count: int, vocab: int, rng: np.random.Generator) -> Floats:
    """[count, V]: softmax of standard normal logits, the notebook's law, row by row."""
    return softmax(rng.standard_normal((count, vocab)))


def softmax(logits: Floats) -> Floats:
    """[..., V]: exp(logits), normalised; -inf is a token of probability zero."""
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@dataclass(frozen=True)
class FixedTarget:
    """One distribution, written in the config."""

    probs: tuple[Any, ...] = (0.4, 0.3, 0.2, 0.1)

    def model(self, seed: int) -> Table:
        return Table(probabilities("target.probs", self.probs)[None], memory=0)


@dataclass(frozen=True)
class FixedDraft(Scheme):
    """One distribution of its own, written in the config."""

    probs: tuple[Any, ...] = (0.1, 0.2, 0.3, 0.4)

    def model(self, target: object, vocab: int, seed: int) -> Table:
        return Table(probabilities("draft.probs", self.probs, vocab)[None], memory=0)


@dataclass(frozen=True)
class BigramTarget:
    """A row-stochastic matrix over ``vocab`` tokens, written in the config or drawn from the seed (logits N(0, 1))."""

    vocab: Annotated[int, Range(1, 4096)] = 8
    matrix: tuple[Any, ...] | None = None

    def model(self, seed: int) -> Table:
        if self.matrix is None:
            return Table(random_rows(self.vocab, self.vocab, generator(seed, "target_matrix")))
        return Table(stochastic("target.matrix", self.matrix))


@dataclass(frozen=True)
class BigramDraft(Scheme):
    """A matrix of its own, written in the config or drawn from the seed."""

    matrix: tuple[Any, ...] | None = None

    def model(self, target: object, vocab: int, seed: int) -> Table:
        if self.matrix is None:
            return Table(random_rows(vocab, vocab, generator(seed, "draft_matrix")))
        return Table(stochastic("draft.matrix", self.matrix, vocab))


def probabilities(key: str, given: tuple[Any, ...], vocab: int | None = None) -> Floats:
    """[V]: the vector written at ``key``, normalised; UserError where it is none, or not over ``vocab`` tokens."""
    written = f"{key}={shown(given)}"
    if not given or not all(isinstance(p, int | float) and not isinstance(p, bool) and p >= 0 for p in given):
        raise UserError(f"{written}: must be a list of probabilities, each >= 0")
    if vocab is not None and len(given) != vocab:
        raise UserError(
            f"{written}: {len(given)} probabilities, but the target has a vocabulary of {vocab}; give {vocab}"
        )
    total = float(sum(given))
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise UserError(f"{written}: sums to {total:.6g}; probabilities must sum to 1")
    return np.array(given, dtype=np.float64) / total


def stochastic(key: str, given: tuple[Any, ...], vocab: int | None = None) -> Floats:
    """[V, V]: the matrix written at ``key``, each row a probability vector over as many tokens as there are rows."""
    size = len(given) if vocab is None else vocab
    if len(given) != size:
        raise UserError(f"{key}: {len(given)} rows, but the target has a vocabulary of {size}; give {size} rows")
    if not given or not all(isinstance(row, tuple) for row in given):
        raise UserError(f"{key}={shown(given)}: must be a list of rows, each a list of probabilities")
    for i, row in enumerate(given):
        if len(row) != size:
            wrong = f"{len(row)} probabilities in a matrix of {size} rows"
            raise UserError(f"{key}[{i}]={shown(row)}: {wrong}; give {size}")
    return np.array([probabilities(f"{key}[{i}]", row) for i, row in enumerate(given)])
