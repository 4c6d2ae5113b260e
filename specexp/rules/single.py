"""Rules for one draft path that decide position by position.

Each position has a context with target law p and draft law q. A rule says with what chance a drafted x is kept and
which law replaces it once rejected; the chain, the averages over drafts and the exact algebra all follow.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from specexp.rounds import Carry, Floats, Ints, Round, select
from specexp.sampling import TINY, compact, cumulative
from specexp.values import OneOf, Range


class SingleRule(ABC):
    """One position, lifted over a chain: draft n+1 is looked at only if the first n were kept."""

    lossless: ClassVar[bool]
    prefix_stable: ClassVar[bool] = True  # what comes later in the draft plays no part
    max_paths: ClassVar[int] = 1

    @abstractmethod
    def chances(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: the chance that x is kept if drafted, for each token x."""

    @abstractmethod
    def replacement(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: law of the token emitted in place of a rejected draft."""

    def bonus(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: law of the token after a draft that was kept whole."""
        return p

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the law that the emitted stream should have."""
        return round.target_probs

    def kept_mass(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: P(x is drafted and kept)."""
        return q * self.chances(p, q)

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: P(the draft is rejected and y is emitted in its place)."""
        rejected = (q * (1 - self.chances(p, q))).sum(-1, keepdims=True)
        return rejected * self.replacement(p, q)

    def stop_probs(self, round: Round) -> Floats:
        """[B, 1, G+1]: P(n kept) = prod_{i<=n} chance_i (1 - chance_{n+1}); at the drafted length, the product."""
        p, q = (compact(laws[:, :, : round.drafted]) for laws in (round.target_probs, round.draft_probs))
        chances = self.chances(p, q)  # one a step where all positions share a context
        keep = np.take_along_axis(chances, round.draft_tokens[..., None], -1)[..., 0]
        keep *= np.arange(round.drafted) < round.lengths[:, None, None]
        ends = np.zeros((len(keep), 1, 1))
        survive = cumulative(np.concatenate([ends + 1, keep], axis=-1), np.multiply)
        return survive * (1 - np.concatenate([keep, ends], axis=-1))

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: the residual at the first rejection, the bonus after the whole draft."""
        p, q = select(round.target_probs, path, stop), select(round.draft_probs, path, stop)
        return np.where((stop == round.lengths)[:, None], self.bonus(p, q), self.replacement(p, q))


def ratio(p: Floats, q: Floats) -> Floats:
    """[..., V]: min(1, p/q); what it says of a token that q excludes does not matter, for none is drafted."""
    return np.minimum(p / np.maximum(q, TINY), 1.0)


def excess(p: Floats, q: Floats) -> Floats:
    """[..., V]: norm([p - q]+), the law of what q gives too little of.

    Where p = q there is none and no draft is rejected; rounding can leave none after a rejection all the same, and
    then the tokens that q does not give too much of keep p's proportions.
    """
    over = np.maximum(p, q)  # of two arrays it is twice as fast as of p - q and 0, and then the same
    over -= q
    total = over.sum(-1, keepdims=True)
    none = ~(total[..., 0] > 0)
    if none.any():
        law, gives = (np.broadcast_to(part, over.shape)[none] for part in (p, q))
        left = np.where(law >= gives, law, 0.0)
        left = np.where(left.any(-1, keepdims=True), left, law)  # none where each token of p is given too much of
        over[none], total[none] = left, left.sum(-1, keepdims=True)
    over /= total
    return over


@dataclass(frozen=True)
class Token(SingleRule):
    """Speculative sampling: keep x with min(1, p/q); replace the first rejected draft by y ~ norm([p - q]+).
    Leviathan et al. 2022, Algorithm 1; Chen et al. 2023, Algorithm 2. Lossless."""

    lossless = True

    def chances(self, p: Floats, q: Floats) -> Floats:
        return ratio(p, q)

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return excess(p, q)

    def kept_mass(self, p: Floats, q: Floats) -> Floats:
        return np.minimum(p, q)

    def replaced_mass(self, p: Floats, q: Floats) -> Floats:
        return np.maximum(p - q, 0.0)

    def go_on(self, p: Floats, q: Floats, carry: Carry) -> tuple[Floats, Carry]:
        """Given that the text has y here, it came from a kept draft with chance min(p, q)/p = min(1, q/p)."""
        return ratio(q, p), None


@dataclass(frozen=True)
class Lenient(SingleRule):
    """Lenience l in (0, 1]: keep x with min(1, p / (l q)) (Leviathan et al. 2022, appendix A.5). Lossy: no token's
    probability exceeds p / l. ``residual``: "target" is norm([p - q]+), whose bias TV(output, p) is alpha_l - alpha_1
    exactly; "lenient" is norm([p - l q]+)."""

    lenience: Annotated[float, Range(0, 1, above=True)] = 0.5
    residual: Annotated[str, OneOf(("target", "lenient"))] = "target"

    lossless = False

    def chances(self, p: Floats, q: Floats) -> Floats:
        return ratio(p, self.lenience * q)

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return excess(p, q if self.residual == "target" else self.lenience * q)


@dataclass(frozen=True)
class Greedy(SingleRule):
    """Temperature 0: keep x while it is the argmax of p, then emit the argmax (Leviathan et al. 2022, section 2.2;
    Stern et al. 2018). Lossless with respect to greedy decoding; of equal maxima the lowest token counts."""

    lossless = True

    def chances(self, p: Floats, q: Floats) -> Floats:
        return np.broadcast_to(one_hot_argmax(p), np.broadcast_shapes(p.shape, q.shape))

    def replacement(self, p: Floats, q: Floats) -> Floats:
        return one_hot_argmax(p)

    def bonus(self, p: Floats, q: Floats) -> Floats:
        return one_hot_argmax(p)

    def reference(self, round: Round) -> Floats:
        return np.broadcast_to(one_hot_argmax(compact(round.target_probs)), round.target_probs.shape)


def one_hot_argmax(p: Floats) -> Floats:
    """[..., V]: 1 at the most likely token, the lowest of equals."""
    return (np.arange(p.shape[-1]) == p.argmax(-1)[..., None]).astype(np.float64)
