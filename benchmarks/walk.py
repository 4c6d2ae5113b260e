"""Steps a second of the walk over those of the literal loop, in one run.

``python -m benchmarks.walk [ROUNDS] [STEPS]``: the loop and each walk take turns, ROUNDS times; a figure is the median
of CPU time on one thread, so that neighbours on a shared machine and its changes of clock hit both alike.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.experiments import composed
from benchmarks.loop import GAMMA, Loop
from specexp.build import Experiment
from specexp.engine import Plan, walk

Walk = Callable[[int], int]  # steps asked for -> steps walked
LOOP = "the loop"
WALKS = {
    "random, a context a step": ["target=random", "target.context=step"],
    "random, a context a position": ["target=random", "target.context=position"],
    "bigram, 64 requests": ["target=bigram"],
    "text, orders 5 and 3, 64 requests": ["target=text", "draft=text"],
}
LOOP_SHARE = 40  # the loop takes so many times fewer steps a turn, for it is about as many times slower


def main(rounds: int = 9, steps: int = 50_000) -> None:
    walks: dict[str, Walk] = {LOOP: lambda count: len(Loop(np.random.default_rng(0)).run(count).tokens_by_step)}
    walks |= {name: walker(composed(*words, f"gamma={GAMMA}")) for name, words in WALKS.items()}
    with threadpool_limits(1):
        rates = by_turns(walks, rounds, steps)
    for name, turns in rates.items():
        ratios = [rate / loop for rate, loop in zip(turns, rates[LOOP], strict=True)]
        print(
            f"{name:34} {1e6 / statistics.median(turns):7.2f} us/step {statistics.median(ratios):7.1f} x the loop"
            f"   ({min(ratios):.1f} to {max(ratios):.1f})"
        )


def walker(experiment: Experiment) -> Walk:
    """A walk that keeps nothing."""

    def walked(steps: int) -> int:
        plan = Plan(experiment.plan.seed, steps, experiment.plan.requests)
        return sum(len(step.kept) for step in walk(experiment.players, experiment.gamma, plan))

    return walked


def by_turns(walks: dict[str, Walk], rounds: int, steps: int) -> dict[str, list[float]]:
    """Steps a second of each walk in each round; a first turn, with its imports and caches, is thrown away."""
    for walked in walks.values():
        walked(1)
    rates: dict[str, list[float]] = {name: [] for name in walks}
    for _ in range(rounds):
        for name, walked in walks.items():
            begin = time.process_time()
            done = walked(max(1, steps // LOOP_SHARE) if name == LOOP else steps)
            rates[name].append(done / (time.process_time() - begin))
    return rates


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
