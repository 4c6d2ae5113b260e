"""Every draft length from one text: what a target text says of a rule, without sampling and without a vocabulary.

Let y be a text sampled from the target, p_t and q_t the two models' probabilities of its t-th token. Given y, a rule
with ``go_on`` keeps the draft at t with a chance that these two numbers decide, so the mass of step starts moves along
the text by a dynamic programme: from a start at s, i kept drafts lead to a start at s + i + 1.
"""

from dataclasses import dataclass

import numpy as np

from specexp.rounds import Carry, Floats, Ints, Replayable


@dataclass(frozen=True)
class Chances:
    """``p``, ``q`` [R, T]: the two models' probabilities of each token of each request's text; ``lengths`` [R] tokens
    are real, what follows is padding."""

    p: Floats
    q: Floats
    lengths: Ints


@dataclass(frozen=True)
class Replayed:
    """Sums by request for each gamma asked for. Their ratio of means, tokens / steps, is the steady state;
    ``calls`` is the expected number of target calls for the whole text of each request."""

    gammas: tuple[int, ...]
    tokens: Floats  # [R, gammas]: expected tokens of the counted steps, each with all of its own
    steps: Floats  # [R, gammas]: expected number of counted steps
    calls: Floats  # [R, gammas]: expected steps to emit the text
    survive: Floats  # [R, gammas, longest+1]: expected counted steps that keep at least i drafts, were they so long

    def units(self, gamma: int) -> Floats:
        """[R, 2 + gamma]: counted steps, their tokens, and those of them that keep at least 1, .. gamma drafts."""
        g = self.gammas.index(gamma)
        return np.column_stack([self.steps[:, g], self.tokens[:, g], self.survive[:, g, 1 : gamma + 1]])


def replay(chances: Chances, rule: Replayable, gammas: tuple[int, ...], warm_up: int = 0) -> Replayed:
    """The expected steps of ``rule`` along the texts, for each draft length.

    Counted are steps that start at or after ``warm_up`` and more than gamma tokens before the end: a step cut short by
    the end of the text says nothing of the steady state. Exact given the texts; the texts are a sample, so intervals
    are over requests.
    """
    survive = survival(chances, rule, max(gammas))  # [R, T, longest+1]
    starts = step_starts(survive, gammas)  # [R, T, gammas]
    place = np.arange(chances.p.shape[1])[None, :, None]
    real = place < chances.lengths[:, None, None]
    counted = starts * (real & (place >= warm_up) & (place < chances.lengths[:, None, None] - np.array(gammas)))
    emitted = np.cumsum(survive, axis=-1)[:, :, gammas]  # [R, T, gammas]: sum_{i<=gamma} P(at least i kept)
    kept = np.einsum("rtg,rti->rgi", counted, survive)
    return Replayed(tuple(gammas), (counted * emitted).sum(1), counted.sum(1), (starts * real).sum(1), kept)


def survival(chances: Chances, rule: Replayable, longest: int) -> Floats:
    """[R, T, longest+1]: the chance that a step which starts at t keeps at least i drafts, given the text."""
    requests, tokens = chances.p.shape
    survive = np.ones((requests, tokens, longest + 1))
    carry: Carry = None
    for i in range(longest):
        chance, carry = rule.go_on(_shifted(chances.p, i), _shifted(chances.q, i), carry)
        survive[:, :, i + 1] = survive[:, :, i] * chance
    return survive


def _shifted(values: Floats, places: int) -> Floats:
    """[R, T]: entry t holds the value at t + places; past the end, 1 (never read by a counted step)."""
    past = np.ones((len(values), min(places, values.shape[1])))
    return np.concatenate([values[:, places:], past], axis=1)


def stop_law(survive: Floats, gammas: tuple[int, ...]) -> Floats:
    """[R, gammas, longest+1]: P(exactly i drafts kept) at each draft length, from P(at least i kept) [R, longest+1]."""
    kept, gamma = np.arange(survive.shape[1]), np.array(gammas)[:, None]
    at_least = np.where(kept <= gamma, survive[:, None], 0.0)
    return at_least - np.append(at_least[..., 1:], np.zeros_like(at_least[..., :1]), axis=-1)


def step_starts(survive: Floats, gammas: tuple[int, ...]) -> Floats:
    """[R, T, gammas]: the chance that a step starts at each token, the first one at 0."""
    requests, tokens, reach = survive.shape
    mass = np.zeros((requests, len(gammas), tokens + reach))
    mass[:, :, 0] = 1.0
    for t in range(tokens):  # the stop laws of all tokens at once would be T gammas longest numbers a request
        mass[:, :, t + 1 : t + 1 + reach] += mass[:, :, t, None] * stop_law(survive[:, t], gammas)
    return mass[:, :, :tokens].transpose(0, 2, 1)
