"""Block verification: the whole draft is judged at once, and more of it is kept than position by position."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specexp.rounds import Carry, Floats, Ints, Round, select
from specexp.rules.single import Token, excess, ratio
from specexp.sampling import TINY, taken


@dataclass(frozen=True)
class Block:
    """Keeps the LONGEST prefix that passes its own test (Sun et al. 2024, Algorithm 2). Lossless; at gamma = 1 it is
    ``token``.

    With p_0 = 1 and p_i = min(1, p_{i-1} p(X_i)/q(X_i)) the prefix X^i passes with h_i = A_i / (A_i + 1 - p_i),
    A_i = sum_x [p_i p(x|X^i) - q(x|X^i)]+ (1 where that is 0/0), the whole draft with p_gamma; each test is
    independent, and none is skipped for a failure before it. What follows tau kept drafts is y ~ norm([p_tau p - q]+),
    after the whole draft y ~ p. Then P(at least i are kept | X^i) = p_i, whatever gamma is.
    """

    lossless: ClassVar[bool] = True
    prefix_stable: ClassVar[bool] = True
    max_paths: ClassVar[int] = 1

    def stop_probs(self, round: Round) -> Floats:
        """[B, 1, G+1]: P(n kept) = h_n prod_{i>n} (1 - h_i), with h_0 = 1."""
        passes = self._passes(round, self.at_least(round))
        stop, later_fail = np.empty_like(passes), np.ones(len(passes))
        for n in reversed(range(round.drafted + 1)):
            stop[:, n] = passes[:, n] * later_fail
            later_fail *= 1 - passes[:, n]
        return stop[:, None]

    def _passes(self, round: Round, chances: Floats) -> Floats:
        """[B, G+1]: h_n, with h_0 = 1; past a shorter draft nothing passes."""
        lengths = round.lengths
        passes = np.where(np.arange(round.drafted + 1)[:, None] == lengths, chances.T, 0.0).T
        passes[:, 0] = 1.0
        over = np.empty_like(round.target_probs[:, 0, 0], dtype=np.float64)  # one array for all positions
        for n in range(1, int(lengths.max(initial=0))):
            here = chances[:, n]
            np.multiply(round.target_probs[:, 0, n], here[:, None], out=over)
            over -= round.draft_probs[:, 0, n]
            mass = np.maximum(over, 0.0, out=over).sum(-1)
            asked = mass + (1 - here)
            partial = np.divide(mass, asked, out=np.ones_like(mass), where=asked > 0)
            passes[:, n] = np.where(lengths > n, partial, passes[:, n])
        return passes

    def next_probs(self, round: Round, path: Ints, stop: Ints) -> Floats:
        """[B, V]: norm([p_tau p - q]+), and p after the whole draft."""
        p, q = select(round.target_probs, path, stop), select(round.draft_probs, path, stop)
        whole = stop == round.lengths
        chance = np.where(whole, 1.0, self.at_least(round)[np.arange(len(stop)), stop])
        scaled = q / np.maximum(chance, TINY)[:, None]  # [p - q/c]+ is [c p - q]+ but for its size
        return np.where(whole[:, None], p, excess(p, scaled))

    def at_least(self, round: Round) -> Floats:
        """[B, G+1]: p_0, .. p_G."""
        tokens = round.draft_tokens[:, 0]
        p, q = (taken(laws[:, 0, : round.drafted], tokens) for laws in (round.target_probs, round.draft_probs))
        chances = np.ones((round.drafted + 1, len(tokens))).T  # rows are the fast axis
        for i in range(round.drafted):
            chances[:, i + 1] = np.minimum(chances[:, i] * (p[:, i] / np.maximum(q[:, i], TINY)), 1.0)
        return chances

    def first_law(self, p: Floats, q: Floats) -> Floats:
        """[..., V]: x is kept, with what may follow it, with p_1 = min(1, p/q); else norm([p - q]+) comes first."""
        return Token().kept_mass(p, q) + Token().replaced_mass(p, q)

    def reference(self, round: Round) -> Floats:
        """[B, K, G+1, V]: the target's law."""
        return round.target_probs

    def go_on(self, p: Floats, q: Floats, carry: Carry) -> tuple[Floats, Carry]:
        """Given that the text has y here and the draft was kept so far, it came from a kept draft with chance
        min(1, q / (c p)); c is 1 at the start of a block, then min(1, c p/q): the p_i above."""
        reached = np.ones_like(p) if carry is None else carry
        return ratio(q, reached * p), np.minimum(reached * (p / np.maximum(q, TINY)), 1.0)
