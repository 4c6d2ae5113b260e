"""Time of a step of the sampled walk under each rule, over that under ``token``, in one run.

``python -m benchmarks.rules [ROUNDS] [CELLS]``: at each size of the vocabulary the rules take turns, ROUNDS times, on
the same contexts and drafts (CELLS = steps times vocabulary a turn); a figure is the median of the turns' ratios of CPU
time on one thread.
"""

import statistics
import sys
from dataclasses import replace

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.experiments import composed
from benchmarks.walk import by_turns, walker
from specexp.rules import RULES

GAMMA = 4
VOCABS = (20, 1000)


def main(rounds: int = 9, cells: int = 1_000_000) -> None:
    for vocab in VOCABS:
        experiment = composed(f"target.vocab={vocab}", f"gamma={GAMMA}")
        walks = {
            name: walker(replace(experiment, players=replace(experiment.players, rule=rule())))
            for name, rule in RULES.items()
        }
        with threadpool_limits(1):
            rates = by_turns(walks, rounds, max(1, cells // vocab))
        for name, turns in rates.items():
            ratios = [token / rate for token, rate in zip(rates["token"], turns, strict=True)]
            print(
                f"V={vocab:<6} {name:12} {1e6 / statistics.median(turns):8.2f} us/step"
                f" {statistics.median(ratios):6.2f} x token   ({min(ratios):.2f} to {max(ratios):.2f})"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
