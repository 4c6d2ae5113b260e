"""What several drafts cost to verify: the optimum a position, and how it grows with the vocabulary; each rule for four
drafts over ``token`` for one, alone and as a part of the whole step.

``python -m benchmarks.paths [ROUNDS] [CELLS]``: everything takes turns, ROUNDS times (CELLS = positions times
vocabulary a turn); a figure is the median of the turns' CPU times or ratios, on one thread.
"""

import statistics
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.experiments import composed
from benchmarks.walk import Walk, by_turns, walker
from specexp.engine import Plan, block_rows, choose, walk
from specexp.rounds import Round, Rule
from specexp.rules import RULES
from specexp.rules.draws import roots
from specexp.rules.paths import PathRule
from specexp.rules.transport import Transport

GAMMA, PATHS = 4, 4
VOCABS = (1_000, 8_000, 32_000, 128_000)
CONTEXTS = ("step", "position")
SEVERAL = ("recursive", "k_sequential", "transport", "naive", "traversal")


def main(rounds: int = 9, cells: int = 2_000_000) -> None:
    with threadpool_limits(1):
        optimum(rounds, cells)
        growth(rounds, cells)
        for context in CONTEXTS:
            for vocab in (20, 1_000):
                rules(context, vocab, rounds, cells)
                whole_steps(context, vocab, rounds, cells)


def optimum(rounds: int, cells: int) -> None:
    """``transport`` at one position: the chances of four drafts, and the law of what follows if none is kept."""
    turns = by_turns({"transport": decider(Transport(), some_round(20, "step"))}, rounds, max(1, cells // 20))
    print(f"transport K={PATHS} V=20  {1e6 / statistics.median(turns['transport']):.2f} us a position")


def growth(rounds: int, cells: int) -> None:
    """The same for larger vocabularies, over what V log V would make of the smallest."""
    for vocab, turns in by_vocab(rounds, cells).items():
        first, *_ = VOCABS
        asked = vocab * np.log(vocab) / (first * np.log(first))
        print(f"transport K={PATHS} V={vocab:<7} {turns:6.2f} x V={first}  {turns / asked:.2f} x V log V")


def by_vocab(rounds: int, cells: int) -> dict[int, float]:
    """Time a position over that at the first of VOCABS, medians of the turns' ratios."""
    workers = {vocab: decider(Transport(), some_round(vocab, "step")) for vocab in VOCABS}
    ratios: dict[int, list[float]] = {vocab: [] for vocab in VOCABS}
    for _ in range(rounds):
        seconds = {v: 1 / by_turns({"v": work}, 1, max(1, cells // v))["v"][0] for v, work in workers.items()}
        for vocab, time in seconds.items():
            ratios[vocab].append(time / seconds[VOCABS[0]])
    return {vocab: statistics.median(turns) for vocab, turns in ratios.items()}


def rules(context: str, vocab: int, rounds: int, cells: int) -> None:
    """``stop_probs`` and ``next_probs`` of each rule for four paths, over ``token``'s for the first of them."""
    round = some_round(vocab, context)
    workers = {name: verifier(RULES[name](), round) for name in SEVERAL}
    workers["token"] = verifier(RULES["token"](), first_path(round))
    told(f"rule, context a {context}, V={vocab}", by_turns(workers, rounds, max(1, cells // vocab // GAMMA)))


def whole_steps(context: str, vocab: int, rounds: int, cells: int) -> None:
    """A step of the walk with four paths under each rule, over one of ``token``'s with one path."""
    words = [f"target.vocab={vocab}", f"target.context={context}", f"gamma={GAMMA}"]
    walks = {name: walker(composed(*words, f"rule={name}", f"draft.paths={PATHS}")) for name in SEVERAL}
    walks["token"] = walker(composed(*words))
    told(f"step, context a {context}, V={vocab}", by_turns(walks, rounds, max(1, cells // vocab // GAMMA)))


def told(where: str, rates: Mapping[str, list[float]]) -> None:
    for name in SEVERAL:
        ratios = [token / rate for token, rate in zip(rates["token"], rates[name], strict=True)]
        print(
            f"{where:34} {name:12} {1e6 / statistics.median(rates[name]):8.2f} us/step"
            f" {statistics.median(ratios):6.2f} x token   ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def some_round(vocab: int, context: str) -> Round:
    """One block of the walk in the notebook's world, with four paths."""
    words = [f"target.vocab={vocab}", f"target.context={context}", f"gamma={GAMMA}", f"draft.paths={PATHS}"]
    experiment = composed(*words, "rule=recursive")
    return next(walk(experiment.players, GAMMA, Plan(0, block_rows(vocab), 1))).round


def first_path(round: Round) -> Round:
    """The same contexts with the first path alone."""
    one = slice(1)
    laws = round.draft_probs[:, one], round.target_probs[:, one]
    return Round(round.draft_tokens[:, one], *laws, round.owner[:, one], round.lengths)


def verifier(rule: Rule, round: Round) -> Walk:
    """Rows verified: where they stop is worked out, chosen, and what follows worked out."""
    uniforms = np.random.default_rng(0).random(len(round.lengths))

    def verified(steps: int) -> int:
        times = -(-steps // len(uniforms))
        for _ in range(times):
            fresh = replace(round)  # of which nothing is known yet
            rule.next_probs(fresh, *choose(rule.stop_probs(fresh), uniforms))
        return times * len(uniforms)

    return verified


def decider(rule: PathRule, round: Round) -> Walk:
    """First positions decided, as if none of the drafts was kept."""
    rows = len(round.lengths)

    def decided(positions: int) -> int:
        times = -(-positions // rows)
        for _ in range(times):
            draws = roots(replace(round))
            rule.chances(draws), rule.replacement(draws)
        return times * rows

    return decided


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
