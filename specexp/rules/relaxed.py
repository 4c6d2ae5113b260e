"""Relaxed acceptance: greedy verification that is content with a near miss."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from specexp.rounds import Booleans, Floats
from specexp.rules.single import Greedy, one_hot_argmax
from specexp.values import Range


@dataclass(frozen=True)
class Relaxed(Greedy):
    """Keeps x where it is among the ``top_n`` most likely tokens of p and p(x) >= max p - delta; after the kept drafts
    comes argmax p (TensorRT-LLM, relaxed acceptance; made for the thinking part of reasoning models). Lossy with
    respect to greedy decoding, which is top_n = 1; of equal chances the lowest token counts first."""

    top_n: Annotated[int, Range(1)] = 10
    delta: Annotated[float, Range(0, 1)] = 0.6

    lossless = False

    def chances(self, p: Floats, q: Floats) -> Floats:
        near = p >= p.max(-1, keepdims=True) - self.delta
        kept = (near & among_most_likely(p, self.top_n)).astype(np.float64)
        return np.broadcast_to(kept, np.broadcast_shapes(p.shape, q.shape))


def among_most_likely(p: Floats, count: int) -> Booleans:
    """[..., V]: whether a token is one of the ``count`` most likely, the lowest of equals first."""
    if count == 1:
        return one_hot_argmax(p) > 0
    order = np.argsort(-p, axis=-1, kind="stable")[..., :count]
    among = np.zeros(p.shape, dtype=bool)
    np.put_along_axis(among, order, True, axis=-1)
    return among
