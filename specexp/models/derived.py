"""Drafts made from the target's own law, context by context: the notebook's noise, or an exact acceptance.

A member writes ``derive(p, normals)``: the draft's law in a context with target law p. ``normals`` gives standard
normals that belong to the context: fresh where contexts are fresh, the same whenever a persistent context returns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

import numpy as np

from specexp.errors import UserError
from specexp.models.random import FreshState, RandomTarget
from specexp.models.table import Table, contexts, softmax
from specexp.models.window import WindowModel
from specexp.rounds import Floats, Ints, RandomStreams
from specexp.sampling import keyed_normals
from specexp.siblings import Scheme
from specexp.values import OneOf, Range

LOUD = 30.0  # noise of a larger sigma is added to logarithms, for its exponential may overflow


@runtime_checkable
class Derivation(Protocol):
    @property
    def paths(self) -> int: ...

    def derive(self, p: Floats, normals: Callable[[], Floats]) -> Floats:
        """[..., V]: q in each context of target law ``p`` [..., V]; ``normals()`` broadcasts against p."""
        ...


@dataclass(frozen=True)
class Noise(Scheme):
    """log q = log p + N(0, sigma^2), renormalised (the notebook's draft). A token that p excludes stays excluded."""

    sigma: Annotated[float, Range(0, 1000)] = 0.3

    def derive(self, p: Floats, normals: Callable[[], Floats]) -> Floats:
        noise = self.sigma * normals()
        if self.sigma > LOUD:
            with np.errstate(divide="ignore"):
                return softmax(np.log(p) + noise)
        weights = p * np.exp(noise, out=noise)
        weights /= weights.sum(-1, keepdims=True)
        return weights


@dataclass(frozen=True)
class Alpha(Scheme):
    """q = (1 - w) p + w other with w = (1 - alpha) / TV(p, other): then sum_x min(p, q) = 1 - w TV(p, other) is alpha
    exactly, in every context. ``other``: "least", all mass on the target's least likely token (reaches every alpha
    above min p); "reversed", the target's probabilities handed out in reverse rank; "uniform"."""

    alpha: Annotated[float, Range(0, 1)] = 0.7
    other: Annotated[str, OneOf(("least", "reversed", "uniform"))] = "least"

    def derive(self, p: Floats, normals: Callable[[], Floats]) -> Floats:
        other = OTHERS[self.other](p)
        distance = np.abs(p - other).sum(-1, keepdims=True) / 2
        reach = 1 - float(distance.min())
        if self.alpha < reach - 1e-12:
            raise UserError(
                f"draft.alpha={self.alpha:g}: out of reach in some context with draft.other={self.other}, "
                f"where alpha >= 1 - TV(p, other) = {reach:.6g}; take a larger alpha"
                + (", or draft.other=least" if self.other != "least" else "")
            )
        weight = np.divide(1 - self.alpha, distance, out=np.zeros_like(distance), where=distance > 0)
        return p + np.minimum(weight, 1) * (other - p)


def _least(p: Floats) -> Floats:
    other = np.zeros_like(p)
    np.put_along_axis(other, p.argmin(-1)[..., None], 1.0, axis=-1)
    return other


def _reversed(p: Floats) -> Floats:
    order = np.argsort(p, axis=-1, kind="stable")
    other = np.empty_like(p)
    np.put_along_axis(other, order, np.take_along_axis(p, order[..., ::-1], -1), axis=-1)
    return other


def _uniform(p: Floats) -> Floats:
    return np.full_like(p, 1 / p.shape[-1])


OTHERS: dict[str, Callable[[Floats], Floats]] = {"least": _least, "reversed": _reversed, "uniform": _uniform}


@dataclass(frozen=True)
class FreshDerived:
    """A derived draft where contexts are fresh; its state is the target's."""

    target: RandomTarget
    derivation: Derivation
    persistent = False
    memory = None

    @property
    def vocab(self) -> int:
        return self.target.vocab

    @property
    def constant(self) -> bool:
        return self.target.constant

    def start(self, prompts: Ints, random: RandomStreams) -> FreshState:
        return self.target.start(prompts, random)

    def law(self, state: FreshState, tokens: Ints) -> Floats:
        return self.laws(state, tokens)[:, :, -1]

    def laws(self, state: FreshState, tokens: Ints) -> Floats:
        def column(position: int) -> Floats:  # one at a time, while it is in the cache
            return self.derivation.derive(state.laws[position], lambda: state.noise[position])

        return self.target.by_position(column, tokens)

    def advance(self, state: FreshState, tokens: Ints, lengths: Ints) -> FreshState:
        return self.target.advance(state, tokens, lengths)


@dataclass(frozen=True)
class WindowDerived(WindowModel):
    """A derived draft where contexts persist: its noise is a function of the context (and of ``seed``)."""

    target: WindowModel
    derivation: Derivation
    seed: int

    @property
    def vocab(self) -> int:  # type: ignore[override]
        return self.target.vocab

    @property
    def memory(self) -> int:  # type: ignore[override]
        return self.target.memory

    def conditional(self, window: Ints) -> Floats:
        p = self.target.conditional(window)
        return self.derivation.derive(p, lambda: keyed_normals(window, self.vocab, self.seed))


def derived(
    target: RandomTarget | WindowModel, derivation: Derivation, seed: int, limit: int
) -> FreshDerived | WindowDerived | Table:
    """The draft that ``derivation`` makes of ``target``; derived once, in every context, where there are at most
    ``limit`` of them."""
    if isinstance(target, RandomTarget):
        return FreshDerived(target, derivation)
    draft = WindowDerived(target, derivation, seed)
    if target.vocab**target.memory > limit:
        return draft
    return Table(draft.conditional(contexts(target.vocab, target.memory)), target.memory)
