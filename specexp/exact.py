"""Numbers without noise, for a world of finitely many contexts and a rule that decides by the current one.

With A[s, s'] the mass of "drafted and kept, now in s'", R that of "rejected and replaced" and B that of the token after
a whole draft, a step from s emits sum_{k<=gamma} (A^k 1)(s) tokens on average and steps start by the kernel
T = sum_{k<gamma} A^k R + A^gamma B. For the token rule A = min(P, Q), R = P - A, B = P (docs/design.md).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specexp.models.pair import Pair, contexts_of, laws_in
from specexp.rounds import Floats, Ints, Local, reference_law

MOST_CONTEXTS = 512


@dataclass(frozen=True)
class World:
    """``target``, ``draft`` [S, V]: the laws in each context; ``memory`` tokens make a context (context numbers as in
    ``models.table``); ``rule`` decides."""

    target: Floats
    draft: Floats
    memory: int
    rule: Local

    @property
    def contexts(self) -> int:
        return len(self.target)

    @cached_property
    def kept(self) -> Floats:
        """A [S, S']."""
        return move(self.rule.kept_mass(self.target, self.draft))

    @cached_property
    def replaced(self) -> Floats:
        """R [S, S']."""
        return move(self.rule.replaced_mass(self.target, self.draft))

    def survival(self, gamma: int) -> Floats:
        """[gamma+1, S]: P(at least k drafts are kept) = (A^k 1)(s) for a step that starts in s."""
        rows = [np.ones(self.contexts)]
        for _ in range(gamma):
            rows.append(self.kept @ rows[-1])
        return np.array(rows)

    def step_kernel(self, gamma: int) -> Floats:
        """T [S, S']: where the next step starts."""
        power, kernel = np.eye(self.contexts), np.zeros((self.contexts, self.contexts))
        for _ in range(gamma):
            kernel += power @ self.replaced
            power = power @ self.kept
        return kernel + power @ move(self.rule.bonus(self.target, self.draft))

    @cached_property
    def _starts(self) -> dict[int, Floats]:
        return {}

    def step_starts(self, gamma: int) -> Floats:
        """[S]: the long-run law of the contexts in which steps start; worked out once for each gamma."""
        if gamma not in self._starts:
            self._starts[gamma] = stationary(self.step_kernel(gamma))
        return self._starts[gamma]

    def survival_by_position(self, gamma: int) -> Floats:
        """[gamma+1]: the long-run P(at least k drafts of a step are kept), k = 0..gamma."""
        return np.asarray(self.survival(gamma) @ self.step_starts(gamma))

    def tokens_per_step(self, gamma: int) -> float:
        """Long-run emitted tokens a step, the token after the drafts included."""
        return float(self.survival_by_position(gamma).sum())

    def alpha(self) -> float:
        """Mean of sum_x min(p, q) over the contexts that the target alone meets (Leviathan's alpha), decoded by the law
        that the rule's stream should have: a greedy rule's target is greedy by itself too."""
        return alpha(self.target, self.draft, reference_law(self.rule, self.target, self.draft))


def move(mass: Floats) -> Floats:
    """[S, S']: ``mass`` [S, V] of emitting x in context s, by the context it leads to."""
    count, vocab = mass.shape
    following = (np.arange(count)[:, None] * vocab + np.arange(vocab)) % count
    moved = np.zeros((count, count))
    np.add.at(moved, (np.arange(count)[:, None], following), mass)
    return moved


def alpha(p: Floats, q: Floats, reference: Floats) -> float:
    """Mean of sum_x min(p, q) over the contexts that a text meets which follows ``reference`` [S, V] in each."""
    return float(np.minimum(p, q).sum(-1) @ stationary(move(reference)))


def world(pair: Pair, rule: object) -> World | None:
    """The exactly solvable world of ``pair`` under ``rule``, or None where contexts are too many, unbounded or fresh,
    or where the rule looks further than the current context."""
    numbers = contexts_of(pair, MOST_CONTEXTS)
    if numbers is None or not isinstance(rule, Local):
        return None
    p, q = laws_in(pair, numbers)
    memory = pair.memory
    assert memory is not None  # contexts_of said so
    return World(p, q, memory, rule)


def stationary(kernel: Floats) -> Floats:
    """[S]: the long-run law of the chain ``kernel`` [S, S]. Where it has several closed classes, their laws weighted
    by the chance to end in each from a context drawn uniformly."""
    classes = closed_classes(kernel)
    weights = np.ones(1) if len(classes) == 1 else _absorption(kernel, classes)
    law = np.zeros(len(kernel))
    for members, weight in zip(classes, weights, strict=True):
        law[members] = weight * _solve(kernel[np.ix_(members, members)])
    return law


def closed_classes(kernel: Floats) -> list[Ints]:
    """The sets of contexts that the chain never leaves once inside."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(kernel > 0, directed=True, connection="strong")
    context, following = np.nonzero(kernel)
    left = label[context[label[context] != label[following]]]
    return [np.flatnonzero(label == c) for c in np.setdiff1d(label, left)]


def _solve(kernel: Floats) -> Floats:
    """The stationary law of one recurrent class: pi (I - T) = 0 with sum 1."""
    system = np.vstack([(np.eye(len(kernel)) - kernel).T[:-1], np.ones(len(kernel))])
    law = np.maximum(np.linalg.solve(system, np.eye(len(kernel))[-1]), 0.0)
    return law / law.sum()


def _absorption(kernel: Floats, classes: list[Ints]) -> Floats:
    """[classes]: the chance to end in each, from a context drawn uniformly."""
    start = np.full(len(kernel), 1 / len(kernel))
    inside = np.zeros((len(kernel), len(classes)))
    for c, members in enumerate(classes):
        inside[members, c] = 1.0
    passing = np.flatnonzero(inside.sum(1) == 0)
    if len(passing):
        out = kernel[passing] @ inside
        inside[passing] = np.linalg.solve(np.eye(len(passing)) - kernel[np.ix_(passing, passing)], out)
    return np.asarray(start @ inside)
