"""Drafts that are the target itself, asked at another temperature or with its tail cut off."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Floats
from specexp.siblings import Scheme
from specexp.values import Range


@dataclass(frozen=True)
class Temperature(Scheme):
    """q proportional to p^(1/T), p at temperature T; T = 0 is the limit, all mass on the most likely token (shared by
    equals): a one-hot draft."""

    temperature: Annotated[float, Range(0)] = 0.5

    def derive(self, p: Floats, normals: Callable[[], Floats]) -> Floats:
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            weights = np.power(p / p.max(-1, keepdims=True), np.divide(1.0, self.temperature))
        return weights / weights.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Truncated(Scheme):
    """q is p on its ``top_k`` most likely tokens (null: all), of those on the fewest that hold the part ``top_p`` of
    their mass, renormalised; of equals the lowest token counts first. Where p has more, no draft can reach it."""

    top_k: Annotated[int, Range(1)] | None = None
    top_p: Annotated[float, Range(0, 1)] = 0.9

    def derive(self, p: Floats, normals: Callable[[], Floats]) -> Floats:
        order = np.argsort(-p, axis=-1, kind="stable")
        sorted_p = np.take_along_axis(p, order, axis=-1)
        if self.top_k is not None:
            sorted_p[..., self.top_k :] = 0.0
        before = np.cumsum(sorted_p, axis=-1) - sorted_p
        kept = before < self.top_p * sorted_p.sum(-1, keepdims=True)
        kept[..., 0] = True
        q = np.zeros_like(p)
        np.put_along_axis(q, order, np.where(kept, sorted_p, 0.0), axis=-1)
        return q / q.sum(-1, keepdims=True)
