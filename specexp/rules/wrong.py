"""Mistakes, on purpose: what a broken verification does, and which check notices (experiment=blind_check).

Each has shipped somewhere or is one slip away from ``token``. None depends on the world, and none is lossless.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from specexp.rounds import Floats, Ints, Round, select
from specexp.rules.single import SingleRule, Token, ratio
from specexp.values import OneOf


class ResidualFromTarget(Token):
    """Replaces a rejected draft by y ~ p: the mass that the draft gave is counted twice."""

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return p


class ResidualFromDraft(Token):
    """Replaces a rejected draft by y ~ q."""

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return q


class ResidualWithoutSign(Token):
    """Replaces a rejected draft by y ~ norm(|p - q|): the positive part was forgotten."""

    def replacement(self, p: Floats, q: Floats) -> Floats:
        distance = np.abs(p - q)
        distance = np.where(distance.any(-1, keepdims=True), distance, p)
        return distance / distance.sum(-1, keepdims=True)


class AcceptanceUpsideDown(Token):
    """Keeps x with min(1, q/p)."""

    def chances(self, p: Floats, q: Floats) -> Floats:
        return ratio(q, p)


class BonusFromDraft(Token):
    """After a draft that was kept whole, emits y ~ q of the last position."""

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        law = super().next_probs(round, path, stop)
        if round.drafted == 0:
            return law
        last = select(round.draft_probs, path, np.full(len(path), round.drafted - 1))
        return np.where((stop == round.lengths)[:, None], last, law)


class IdsShifted(SingleRule):
    """Keeps nothing and emits y + 1 for y ~ p: an off-by-one in the vocabulary."""

    def chances(self, p: Floats, q: Floats) -> Floats:
        return np.zeros(np.broadcast_shapes(p.shape, q.shape))

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return np.roll(p, 1, axis=-1)

    def bonus(self, p: Floats, q: Floats) -> Floats:
        return np.roll(p, 1, axis=-1)


class UniformTokens(IdsShifted):
    """Keeps nothing and emits any token with the same chance."""

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return np.full_like(p, 1 / p.shape[-1])

    def bonus(self, p: Floats, q: Floats) -> Floats:
        return np.full_like(p, 1 / p.shape[-1])


MISTAKES: dict[str, SingleRule] = {
    "residual_target": ResidualFromTarget(),
    "residual_draft": ResidualFromDraft(),
    "residual_absolute": ResidualWithoutSign(),
    "accept_inverted": AcceptanceUpsideDown(),
    "bonus_draft": BonusFromDraft(),
    "ids_shifted": IdsShifted(),
    "uniform": UniformTokens(),
}


@dataclass(frozen=True)
class Wrong:
    """The token rule with one ``mistake``: a negative control, known by its laws alone."""

    mistake: Annotated[str, OneOf(tuple(MISTAKES))] = "residual_target"

    lossless: ClassVar[bool] = False
    prefix_stable: ClassVar[bool] = True
    max_paths: ClassVar[int] = 1

    def stop_probs(self, round: Round) -> Floats:
        return MISTAKES[self.mistake].stop_probs(round)

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        return MISTAKES[self.mistake].next_probs(round, path, stop)

    def reference(self, round: Round) -> Floats:
        return round.target_probs
