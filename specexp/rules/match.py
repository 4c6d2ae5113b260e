"""Rules that answer a draft with a token of their own and keep the draft where the two are equal.

The answer's law may depend on the drafted token (a coupling), so what replaces a rejected draft x does too: the answer,
given that it is not x.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from specexp.rounds import Carry, Floats, Ints, Round, select
from specexp.rules.single import SingleRule


class MatchRule(SingleRule):
    """One position of such a rule; ``chances``, ``kept_mass`` and ``replaced_mass`` are averages over the answers."""

    @abstractmethod
    def answers(self, p: Floats, q: Floats, drafted: Ints) -> Floats:
        """[B, V]: law of the answer to each drafted token ``drafted`` [B], given laws ``p``, ``q`` [B, V]. Its entry at
        the drafted token does not matter where something else follows a rejection."""

    def replacement(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: law of the token in place of a rejected draft, whichever was drafted."""
        return _other(self.replaced_mass(p, q), p)

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: the answer that is not the drafted token; the bonus after the whole draft."""
        p, q = select(round.target_probs, path, stop), select(round.draft_probs, path, stop)
        if round.drafted == 0:
            return self.bonus(p, q)
        rows = np.arange(len(stop))
        drafted = round.draft_tokens[rows, path, np.minimum(stop, round.drafted - 1)]
        without = np.arange(p.shape[-1]) != drafted[:, None]
        law = _other(self.answers(p, q, drafted) * without, p * without)
        return np.where((stop == round.lengths)[:, None], self.bonus(p, q), law)


def _other(mass: Floats, p: Floats) -> Floats:
    """[..., V]: ``mass``, normalised; where there is none (no draft is rejected there, but rounding may say so all the
    same), the next best of ``p``, then of nothing known."""
    total = mass.sum(-1, keepdims=True)
    if not (total > 0).all():
        for instead in (p, np.ones_like(p)):
            mass = np.where(mass.any(-1, keepdims=True), mass, instead)
        total = mass.sum(-1, keepdims=True)
    return mass / total


@dataclass(frozen=True)
class ExactMatch(MatchRule):
    """The target samples y ~ p by itself, as if there were no draft, and the draft is kept where it is y: what many
    engines do, for it needs no draft law. Lossless; keeps sum_x p(x) q(x), less than ``token`` does but for a one-hot
    draft, where the two are one."""

    lossless = True

    def answers(self, p: Floats, q: Floats, drafted: Ints) -> Floats:
        return p

    def chances(self, p: Floats, q: Floats) -> Floats:
        return np.broadcast_to(p, np.broadcast_shapes(p.shape, q.shape))

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        return p * (1 - q)

    def first_law(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: y comes first, whether or not it is the draft."""
        return p

    def go_on(self, p: Floats, q: Floats, carry: Carry) -> tuple[Floats, Carry]:
        """Given that the text has y here, the draft, drawn without looking at it, is y with chance q."""
        return q, None
