"""The yardstick: the notebook's experiment as it was published, a token at a time in plain Python.

Kept slow on purpose. Nothing of ``specexp`` is used here, so that it can also check what ``specexp`` says.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

VOCAB = 20
GAMMA = 4
SIGMA = 0.3
FLOOR = 1e-12  # the notebook's guard of logarithms and divisions

Law = NDArray[np.float64]


@dataclass
class Loop:
    """A walk's counters; ``step`` is one round of speculative decoding in a fresh context."""

    rng: np.random.Generator
    gamma: int = GAMMA
    tested: int = 0
    kept: int = 0
    tokens: list[int] = field(default_factory=list)
    tokens_by_step: list[int] = field(default_factory=list)

    def run(self, steps: int) -> "Loop":
        for _ in range(steps):
            emitted = self.step()
            self.tokens.extend(emitted)
            self.tokens_by_step.append(len(emitted))
        return self

    def step(self) -> list[int]:
        """The emitted tokens: the kept drafts and the one that follows them."""
        target = target_law(self.rng)
        draft = draft_law(target, self.rng)
        emitted: list[int] = []
        for token in self.rng.choice(VOCAB, size=self.gamma, p=draft):
            chance = float(target[token]) / max(float(draft[token]), FLOOR)
            self.tested += 1
            if not self.rng.random() < chance:
                return [*emitted, replacement(target, draft, self.rng)]
            self.kept += 1
            emitted.append(int(token))
        return [*emitted, int(self.rng.choice(VOCAB, p=target))]


def target_law(rng: np.random.Generator) -> Law:
    """[V]: softmax of standard normal logits."""
    logits = rng.normal(0, 1.0, size=VOCAB)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def draft_law(target: Law, rng: np.random.Generator) -> Law:
    """[V]: the target's law with normal noise on its logits."""
    logits = np.log(target + FLOOR) + rng.normal(0, SIGMA, size=VOCAB)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def replacement(target: Law, draft: Law, rng: np.random.Generator) -> int:
    """A token of norm([p - q]+)."""
    residual = np.clip(target - draft, 0, None)
    return int(rng.choice(VOCAB, p=residual / max(residual.sum(), FLOOR)))


def target_only(rng: np.random.Generator, tokens: int) -> list[int]:
    """Tokens of the target alone, a fresh context each: the stream that the notebook compares with."""
    return [int(rng.choice(VOCAB, p=target_law(rng))) for _ in range(tokens)]


def distance(a: list[int], b: list[int]) -> float:
    """Total variation between two streams' token frequencies."""
    counts_a, counts_b = Counter(a), Counter(b)
    return sum(abs(counts_a[i] / len(a) - counts_b[i] / len(b)) for i in range(VOCAB)) / 2


def main(steps: int = 5000) -> None:
    loop = Loop(np.random.default_rng(0)).run(steps)
    alpha = loop.kept / loop.tested
    closed_form = (1 - alpha ** (GAMMA + 1)) / (1 - alpha)
    mean = float(np.mean(loop.tokens_by_step))
    alone = target_only(np.random.default_rng(0), len(loop.tokens))
    print(f"alpha {alpha:.3f} · tokens/step {mean:.3f} · closed form {closed_form:.3f}")
    print(f"speedup {mean * 10 / (10 + GAMMA):.3f} · TV {distance(loop.tokens, alone):.3f}")


if __name__ == "__main__":
    main()
