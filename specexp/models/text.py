"""A real text as the world: two n-gram models of it, decoded as streams that begin in its held-out part."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.models import corpus
from specexp.models.ngram import HIGHEST_ORDER, SMOOTHINGS, Ngram, fitted
from specexp.rounds import Ints
from specexp.siblings import Scheme
from specexp.values import OneOf, Range

Order = Annotated[int, Range(1, HIGHEST_ORDER)]
Smoothed = Annotated[str, OneOf(tuple(SMOOTHINGS))]


@dataclass(frozen=True)
class TextTarget:
    """An n-gram language model fitted on a text: the plays that are shipped, or any UTF-8 file at ``path``."""

    order: Order = 5
    level: Annotated[str, OneOf(tuple(corpus.LEVELS))] = "byte"
    smoothing: Smoothed = "kneser_ney"
    path: str | None = None
    held_out: Annotated[float, Range(0, 0.9, above=True)] = 0.1

    def corpus(self) -> corpus.Corpus:
        return corpus.read(self.path, self.level, self.held_out)

    def model(self, seed: int) -> Ngram:
        return fitted(self.corpus(), self.order, self.smoothing, "target")

    def prompts(self, streams: int, length: int, rng: np.random.Generator) -> Ints:
        """[streams, length]: pieces of the held-out text."""
        text = self.corpus().held_out
        places = rng.integers(0, len(text) - length + 1, streams)
        return text[places[:, None] + np.arange(length)]


@dataclass(frozen=True)
class TextDraft(Scheme):
    """An n-gram model of its own order, fitted on the target's text."""

    order: Order = 3
    smoothing: Smoothed = "kneser_ney"

    def model(self, target: TextTarget, vocab: int, seed: int) -> Ngram:
        return fitted(target.corpus(), self.order, self.smoothing, "draft")
