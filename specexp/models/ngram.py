"""Interpolated n-gram language models: Kneser-Ney and Witten-Bell.

An n-gram model of order n gives the next token w after the last n-1, the context h. Counts of long contexts are few, so
each order takes some mass from what it saw and gives it to the order below, whose context h' drops h's first token:

    p(w|h) = kept(hw) / total(h) + freed(h) / total(h) * p(w|h'),    total(h) = sum over seen w of kept(hw) + freed(hw),

down to the uniform law over the vocabulary, so that every token is possible after every context; an unseen h leaves all
to h'. The smoothings differ in what a count c is split into, and in what the lower orders count:

    kneser_ney           kept = c - D, freed = D = .75 (Kneser & Ney 1995; interpolated as in Chen & Goodman 1998)
    modified_kneser_ney  D depends on c and is estimated for each order (Chen & Goodman 1998)
    witten_bell          kept = c, freed = 1 (Witten & Bell 1991, method C)

Kneser-Ney's highest order counts how often hw was seen, its lower orders how many different tokens were seen before hw
("Francisco" is frequent but follows one word: not to be expected after others). Witten-Bell counts hw at every order.

A window of k tokens is known by a number, and found from its suffix's number and its first token: the contexts form a
tree that is read backwards from the last token. So a key never exceeds (text length) * V, whatever the order.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from specexp.errors import UserError
from specexp.models.corpus import Corpus
from specexp.models.window import WindowModel
from specexp.rounds import Floats, Ints

HIGHEST_ORDER = 8
DISCOUNT = 0.75
END = np.iinfo(np.int64).max  # last of each sorted list of keys; equal to none, so that a key not found is found here


class Smoothing(NamedTuple):
    """``split``: counts [N] of the n-grams of one order -> mass kept [N], mass freed for the order below [N]."""

    split: Callable[[Ints], tuple[Floats, Floats]]
    continuation: bool  # lower orders count the different tokens before an n-gram, not its occurrences


def _absolute(counts: Ints) -> tuple[Floats, Floats]:
    freed = np.full(len(counts), DISCOUNT)
    return counts - freed, freed


def _modified(counts: Ints) -> tuple[Floats, Floats]:
    freed: Floats = _modified_discounts(counts)[np.minimum(counts, 3) - 1]
    return counts - freed, freed


def _modified_discounts(counts: Ints) -> Floats:
    """D(1), D(2), D(3+) with D(c) = c - (c+1) Y n(c+1) / n(c) and Y = n(1) / (n(1) + 2 n(2)), n(c) n-grams being of
    count c; .75 in place of an estimate that a small text leaves undefined or outside (0, c]."""
    n1, n2, n3, n4 = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    c, n, above = np.array([1.0, 2.0, 3.0]), np.array([n1, n2, n3]), np.array([n2, n3, n4])
    if n.min() == 0:
        return np.full(3, DISCOUNT)
    estimate = c - (c + 1) * n1 / (n1 + 2 * n2) * above / n
    return np.where((estimate > 0) & (estimate <= c), estimate, DISCOUNT)


def _witten_bell(counts: Ints) -> tuple[Floats, Floats]:
    return counts.astype(float), np.ones(len(counts))


SMOOTHINGS = {
    "kneser_ney": Smoothing(_absolute, continuation=True),
    "modified_kneser_ney": Smoothing(_modified, continuation=True),
    "witten_bell": Smoothing(_witten_bell, continuation=False),
}


class Windows(NamedTuple):
    """The different windows of one length in a text, numbered in the order of their keys."""

    keys: Ints  # [N] sorted: (number of the suffix) * V + first token
    place: Ints  # [N] where in the text one of each starts
    counts: Ints  # [N]
    numbers: Ints  # [T - length + 1] of the window that starts at each place of the text


def text_windows(tokens: Ints, vocab: int, longest: int) -> list[Windows]:
    """The windows of 0, 1, .. ``longest`` tokens of a text [T]."""
    places = len(tokens) + 1
    empty = Windows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([places]), np.zeros(places, np.int64))
    found = [empty]
    for _ in range(longest):
        suffix = found[-1].numbers[1:]
        keys, numbers, counts = np.unique(
            suffix * vocab + tokens[: len(suffix)], return_inverse=True, return_counts=True
        )
        place = np.empty(len(keys), np.int64)
        place[numbers] = np.arange(len(numbers))
        found.append(Windows(keys, place, counts, numbers))
    return found


class Order(NamedTuple):
    """One order's share of the law: p(w|h) = mass(hw) + backoff(h) p(w|h').

    C contexts, N n-grams. Number C is the unseen context: no n-grams, all to the order below.
    """

    contexts: Ints  # [C+1] sorted keys: (number of the context's suffix) * V + first token
    grams: Ints  # [N+1] sorted keys: (number of the context) * V + token
    mass: Floats  # [N+1]
    backoff: Floats  # [C+1]
    starts: Ints  # [C+2] of each context's n-grams
    tokens: Ints  # [N] of the n-grams

    def refine(self, law: Floats, context: Ints) -> None:
        """Turns laws [B, V] of the order below into laws of this one, in place, given the contexts' numbers [B]."""
        begin, lengths = self.starts[context], self.starts[context + 1] - self.starts[context]
        row = np.repeat(np.arange(len(context)), lengths)
        gram = np.arange(len(row)) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)
        law *= self.backoff[context, None]
        law[row, self.tokens[gram]] += self.mass[gram]  # a context lists a token once


def locate(keys: Ints, wanted: Ints) -> Ints:
    """Where in ``keys`` (sorted, END last) each of ``wanted`` stands; the place of END where it does not."""
    place = np.searchsorted(keys, wanted)
    return np.where(keys[place] == wanted, place, len(keys) - 1)


def _order(windows: list[Windows], length: int, tokens: Ints, vocab: int, smoothing: Smoothing) -> Order:
    """The order that gives the last token of windows of ``length`` tokens."""
    shorter, own = windows[length - 1 : length + 1]
    counts = own.counts
    if smoothing.continuation and length + 1 < len(windows):
        counts = np.bincount(windows[length + 1].keys // vocab, minlength=len(own.keys))
    seen = np.flatnonzero(counts)  # the text's first n-gram may follow nothing
    grams = shorter.numbers[own.place[seen]] * vocab + tokens[own.place[seen] + length - 1]
    by_context = np.argsort(grams)
    grams = grams[by_context]
    kept, freed = smoothing.split(counts[seen[by_context]])
    context, unseen = grams // vocab, len(shorter.keys)
    total = np.bincount(context, kept + freed, minlength=unseen + 1)
    backoff = np.ones(unseen + 1)
    np.divide(np.bincount(context, freed, minlength=unseen + 1), total, out=backoff, where=total > 0)
    return Order(
        contexts=np.append(shorter.keys, END),
        grams=np.append(grams, END),
        mass=np.append(kept / total[context], 0.0),
        backoff=backoff,
        starts=np.searchsorted(context, np.arange(unseen + 2)),
        tokens=grams % vocab,
    )


@dataclass(frozen=True, eq=False)
class Ngram(WindowModel):
    """An interpolated n-gram model of order ``memory`` + 1; ``fit`` makes one."""

    vocab: int
    memory: int
    unigram: Floats  # [V] the law of order 1
    orders: tuple[Order, ...]  # 2, 3, .. memory + 1

    @classmethod
    def fit(cls, tokens: Ints, vocab: int, order: int, smoothing: str = "kneser_ney") -> "Ngram":
        """The model of a text [T] of at least one token, all in 0..vocab-1; ValueError if they are not."""
        if not len(tokens) or tokens.min() < 0 or tokens.max() >= vocab:
            raise ValueError(f"a text of {len(tokens)} tokens is not one of tokens in 0..{vocab - 1}")
        found = text_windows(tokens, vocab, order)
        first, *orders = (_order(found, k, tokens, vocab, SMOOTHINGS[smoothing]) for k in range(1, order + 1))
        law = np.full((1, vocab), 1 / vocab)
        first.refine(law, np.zeros(1, np.int64))
        return cls(vocab, order - 1, law[0], tuple(orders))

    def conditional(self, window: Ints) -> Floats:
        """The laws [..., V] of the token after each window [..., memory] of last tokens."""
        rows = math.prod(window.shape[:-1])
        last = window.reshape(rows, self.memory)
        law = np.repeat(self.unigram[None], rows, axis=0)
        context = np.zeros(rows, np.int64)
        for length, order in enumerate(self.orders, start=1):
            context = locate(order.contexts, context * self.vocab + last[:, -length])
            order.refine(law, context)
        return law.reshape(*window.shape[:-1], self.vocab)

    def log_probabilities(self, tokens: Ints) -> Floats:
        """[T]: ln p of each token of a text, given those before it; the first have fewer than ``memory`` of them."""
        probability = self.unigram[tokens]
        context = np.zeros(len(tokens), np.int64)
        for length, order in enumerate(self.orders, start=1):
            context[length:] = locate(order.contexts, context[length:] * self.vocab + tokens[:-length])
            context[:length] = len(order.contexts) - 1  # no such context at the start of a text
            seen = order.mass[locate(order.grams, context * self.vocab + tokens)]
            probability = seen + order.backoff[context] * probability
        return np.log(probability)


class Surprise(NamedTuple):
    """How well a model foretells the held-out text."""

    perplexity: float  # per token
    bits_per_byte: float  # of the text as written; at the word level too small by what <unk> hides


def held_out_surprise(model: Ngram, corpus: Corpus) -> Surprise:
    """Of ``corpus.held_out``, its first tokens given no more than the held-out tokens before them."""
    log_p = model.log_probabilities(corpus.held_out)
    return Surprise(
        perplexity=float(np.exp(-log_p.mean())),
        bits_per_byte=float(-log_p.sum() / math.log(2) / corpus.held_out_bytes),
    )


def fitted(corpus: Corpus, order: int, smoothing: str = "kneser_ney", group: str = "target") -> Ngram:
    """The model of a corpus' training part; fitted once a process for each (corpus, order, smoothing).

    Raises UserError, naming keys of the config's ``group``, where order or smoothing is none of ours or a part of the
    text is shorter than the order.
    """
    if not 1 <= order <= HIGHEST_ORDER:
        raise UserError(f"{group}.order={order}: not an n-gram order; give an integer from 1 to {HIGHEST_ORDER}")
    if smoothing not in SMOOTHINGS:
        raise UserError(f"{group}.smoothing={smoothing}: no such smoothing; one of {', '.join(SMOOTHINGS)}")
    shortest = min(len(corpus.train), len(corpus.held_out))
    if shortest < order:
        raise UserError(
            f"{group}.order={order}: {corpus.source} has a part of {shortest} tokens, shorter than the order; give a "
            "lower order, or a longer text by target.path"
        )
    return _fitted(corpus, order, smoothing)


@lru_cache(maxsize=32)
def _fitted(corpus: Corpus, order: int, smoothing: str) -> Ngram:
    return Ngram.fit(corpus.train, corpus.vocab, order, smoothing)
