"""What is kept of a walk: sums over independent units, nothing as long as the walk.

A unit is a step where contexts are fresh, a request where they persist. Its columns are named here, once; every number
of ``metrics`` is a function of their means. ``kept_i`` counts steps that kept at least i drafts; ``survive_i`` is the
chance of that, averaged over what is cheap to average over, and ``expected`` the tokens it implies, both summed over
``counted`` steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specexp.engine import Plan, Players, Step, walk
from specexp.rounds import ByPrefix, Floats, Ints, Local, Rule
from specexp.sampling import compact, cumulative
from specexp.statistics import Moments
from specexp.statistics.distance import TokenCounts, count_tokens
from specexp.statistics.ranked import RankedSums, ranked_sums

Progress = Callable[[int, int], None]
Asides = Mapping[str, Callable[[Step], Floats]]  # [B] numbers of a step, by name, that a caller wants kept too
BESIDE = ("steps", "expected")  # the columns that asides are read with


@dataclass(frozen=True)
class Walked:
    """Sums over a walk. ``units`` [requests, columns] by request where contexts persist, else None. ``asides``: the
    moments of "steps", "expected" and what the caller asked for, over the same units."""

    moments: Moments
    counts: TokenCounts
    ranked: RankedSums
    units: Floats | None
    asides: Moments


def columns(gamma: int, reach: int) -> tuple[str, ...]:
    """The names of a unit's columns: draft length ``gamma``, survival averaged as far as ``reach``."""
    kept = [f"kept_{i}" for i in range(1, gamma + 1)]
    survive = [f"survive_{i}" for i in range(1, reach + 1)]
    return ("steps", "tokens", "accepted", "tested", "drafted", *kept, "counted", "expected", *survive)


def observe(
    players: Players,
    gamma: int,
    plan: Plan,
    gamma_max: int,
    prompts: Ints | None = None,
    progress: Progress | None = None,
    asides: Asides | None = None,
) -> Walked:
    """Walks ``plan`` and sums it up; ``prompts`` as in ``engine.walk``; ``progress(steps done, steps in all)``;
    ``asides`` are kept beside the walk's own columns, and move none of them."""
    steps = _told(walk(players, gamma, plan, prompts), plan, progress)
    if players.pair.persistent:
        return _observe_requests(players, steps, gamma, plan, asides or {})
    one_context = players.pair.target.constant and isinstance(players.rule, Local)  # its powers reach any position
    return _observe_steps(players, steps, gamma, max(gamma, gamma_max) if one_context else gamma, asides or {})


def expected_tokens(players: Players, gamma: int, plan: Plan, progress: Progress | None = None) -> Moments:
    """The moments of ``counted`` steps and their ``expected`` tokens given the drafts, along a walk, and no more: for
    one point of a curve. Units and ``progress`` as in ``observe``."""
    names, by_request = ("counted", "expected"), players.pair.persistent
    sums, units = Moments.of(names, np.zeros((0, 2))), np.zeros((plan.requests, 2))
    for step in _told(walk(players, gamma, plan), plan, progress):
        expected = 1 + survival_given_drafts(players.rule, step).sum(1)
        both = np.column_stack([np.ones(len(expected)), expected])
        if by_request:
            units += both
        else:
            sums += Moments.of(names, both)
    return Moments.of(names, units) if by_request else sums


def _told(steps: Iterator[Step], plan: Plan, progress: Progress | None) -> Iterator[Step]:
    done = 0
    for step in steps:
        yield step
        done += len(step.kept)
        if progress is not None:
            progress(done, plan.total)


def _observe_steps(players: Players, steps: Iterator[Step], gamma: int, reach: int, asides: Asides) -> Walked:
    names = (*columns(gamma, reach), "overlap", "contexts", "rate")
    blocks = (
        (
            Moments.of(names, units := fresh_units(players, step, reach)),
            TokenCounts.of(count_tokens(step.tokens, players.pair.vocab)),
            _ranked(players, step),
            Moments.of((*BESIDE, *asides), _beside(step, units, names, asides)),
        )
        for step in steps
    )
    moments, counts, ranked, beside = next(blocks)
    for more in blocks:
        moments, counts, ranked, beside = moments + more[0], counts + more[1], ranked + more[2], beside + more[3]
    return Walked(moments, counts, ranked, None, beside)


def _beside(step: Step, units: Floats, names: Sequence[str], asides: Asides) -> Floats:
    """[B, 2 + asides]: a row's columns that asides are read with, then what was asked for."""
    known = units[:, [names.index(name) for name in BESIDE]]
    return np.column_stack([known, *(aside(step) for aside in asides.values())])


def _observe_requests(players: Players, steps: Iterator[Step], gamma: int, plan: Plan, asides: Asides) -> Walked:
    names, ranked = columns(gamma, gamma), None
    units, beside = np.zeros((plan.requests, len(names))), np.zeros((plan.requests, len(BESIDE) + len(asides)))
    tokens = np.zeros((plan.requests, players.pair.vocab), dtype=np.int64)
    for step in steps:
        here = step_units(step, survival_given_drafts(players.rule, step))
        units += here
        beside += _beside(step, here, names, asides)
        rows, places = np.nonzero(step.tokens >= 0)
        np.add.at(tokens, (rows, step.tokens[rows, places]), 1)
        seen = _ranked(players, step)
        ranked = seen if ranked is None else ranked + seen
    assert ranked is not None  # a plan has at least one step
    return Walked(
        Moments.of(names, units), TokenCounts.of(tokens), ranked, units, Moments.of((*BESIDE, *asides), beside)
    )


def fresh_units(players: Players, step: Step, reach: int) -> Floats:
    """[B, columns + 3]: one step of each row where contexts are fresh; then sum_x min(p, q) in its first context, 1,
    and the rule's own acceptance, averaged over its contexts."""
    overlap = np.minimum(step.round.target_probs[:, 0, 0], step.draft_laws[:, 0, 0]).sum(-1)
    if isinstance(players.rule, Local):
        rates = acceptance(players.rule, step)
        survive, rate = survival_by_context(rates, reach), rates.mean(1)
    else:
        survive, rate = survival_given_drafts(players.rule, step), overlap
    of_contexts = np.column_stack([overlap, np.ones(len(overlap)), rate])
    return np.column_stack([step_units(step, survive), of_contexts])


def step_units(step: Step, survive: Floats) -> Floats:
    """[B, columns]: one step of each row, whose drafts survive with the chances ``survive`` [B, reach]. Which drafts
    were tested is not told where several paths are drafted."""
    gamma, paths = step.round.drafted, step.round.owner.shape[1]
    tested = np.minimum(step.emitted, step.round.lengths) if paths == 1 else np.zeros(len(step.kept))
    own = step.round.owner == np.arange(paths)[:, None]
    drafted = (own & (np.arange(gamma) < step.round.lengths[:, None, None])).sum((1, 2))
    expected = 1 + survive[:, :gamma].sum(1)
    kept = step.kept[:, None] > np.arange(gamma)
    one = np.ones(len(kept))
    return np.column_stack([one, step.emitted, step.kept, tested, drafted, kept, one, expected, survive])


def survival_given_drafts(rule: Rule, step: Step) -> Floats:
    """[B, G]: P(at least i drafts kept), i = 1..G, given the drafts of the step, or where the rule can tell, given the
    first i of them."""
    if isinstance(rule, ByPrefix):
        drafted = np.arange(step.round.drafted) < step.round.lengths[:, None]
        return rule.at_least(step.round)[:, 1:] * drafted
    at_least = np.cumsum(step.stop_probs.sum(1)[:, ::-1], axis=1)[:, ::-1]
    return at_least[:, 1:]


def survival_by_context(rates: Floats, reach: int) -> Floats:
    """[B, reach]: P(at least i drafts kept), i = 1..reach, averaged over the drafts: products of the acceptance in each
    context, ``rates`` [B, contexts]; where a step has one context, its powers."""
    by_position = np.broadcast_to(rates, (len(rates), reach)) if rates.shape[1] == 1 else rates[:, :reach]
    return cumulative(np.asfortranarray(by_position), np.multiply)  # rows are the fast axis


def acceptance(rule: Local, step: Step) -> Floats:
    """[B, contexts]: the rule's chance to keep a draft in each context of the step (one, where it has one)."""
    p, q = compact(step.round.target_probs[:, 0]), compact(step.draft_laws[:, 0])
    return rule.kept_mass(p, q).sum(-1)


def _ranked(players: Players, step: Step) -> RankedSums:
    reference, draft = players.rule.reference(step.round), step.draft_laws
    if reference.shape[1] == 1:
        return ranked_sums(reference[:, 0], draft[:, 0], step.tokens, step.round.lengths)
    rows = np.arange(len(step.path))
    return ranked_sums(reference[rows, step.path], draft[rows, step.path], step.tokens, step.round.lengths)
