"""Is the emitted stream lossless? A test that fresh contexts do not blind.

Where each step has a context of its own, every rule's pooled token frequencies are near uniform and tell nothing.
So each context's tokens are ranked by p/q, and by p, and how often rank k was emitted is compared with the sum of p
at rank k. By p/q shows a wrong residual or acceptance; by p shows a shift of token ids. The comparison is a score
test with the true covariance, sum over tokens of (diag p - p p^T), which is calibrated; Pearson's is conservative.

A token enters by where it stands in its step, given that the step reached it: `first` (position 0), `later` (the
other drafted positions), `bonus` (after a draft that was kept whole). A correct rule fails under any selection that
looks at what the rule decided next: tokens after a rejection, accepted tokens, steps of one length.
"""

from dataclasses import dataclass, fields
from functools import cache
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from specexp.rounds import Floats, Ints
from specexp.sampling import compact

SELECTIONS = ("first", "later", "bonus")
RANKINGS = ("ratio", "target")
CELLS = 32  # at most so many cells of ranks
ENOUGH = 5.0  # least variance of a pooled cell: expected hits and expected misses are then at least as many
LEAST = 1.0  # least variance of a direction that counts: below, single events decide and no normal law holds
ALARM = 0.001  # a p-value below this is called a difference: a right rule is, once in a thousand runs
RARE = 1e-6  # a token of less probability is improbable


@dataclass(frozen=True, slots=True, eq=False)
class RankedSums:
    """What ``ranked_test`` reads; ``+`` joins two blocks. R rankings, S selections, C cells of ranks."""

    observed: Ints  # [R, S, C], tokens emitted
    expected: Floats  # [R, S, C], sum of p
    covariance: Floats  # [R, S, C, C], sum of diag p - p p^T
    impossible: int  # emitted tokens of probability zero
    improbable: int  # emitted tokens of probability below RARE
    improbable_expected: float  # the sum of such probabilities

    def __add__(self, other: "RankedSums") -> "RankedSums":
        return RankedSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@cache
def rank_cells(vocab: int) -> Ints:
    """[V]: the cell of each rank; the rank itself up to V = 32, geometric bins above."""
    ranks = np.arange(vocab)
    if vocab <= CELLS:
        return ranks
    starts = np.unique(np.rint(np.geomspace(1, vocab, CELLS + 1)[:-1]))
    return np.searchsorted(starts, ranks + 1, side="right") - 1


def ranked_sums(reference: Floats, draft: Floats, tokens: Ints, lengths: Ints) -> RankedSums:
    """Sums of one block of steps.

    ``reference`` and ``draft`` [B, G+1, V] are the law that the token at each position should have and the law that
    a draft there has, given the tokens emitted before it and nothing else (no sibling draws, no draft of this step
    that was not emitted). Broadcast views are ranked once. ``tokens`` [B, G+1] is -1 where the step had ended,
    ``lengths`` [B] the number of drafted tokens.
    """
    p, q, context = _contexts(reference, draft, tokens >= 0)
    token, selection = tokens[tokens >= 0], _selections(tokens, lengths)
    times = np.bincount(selection * len(p) + context, minlength=len(SELECTIONS) * len(p))
    weights: Floats = times.reshape(len(SELECTIONS), len(p)).astype(np.float64)
    ratio = _ratio(p, q)
    by_ranking = [
        _table(cells, p, weights, selection, cells[context, token])
        for cells in (token_cells(ratio, p), token_cells(p, ratio))
    ]
    observed, expected, covariance = (np.stack(part) for part in zip(*by_ranking, strict=True))
    return RankedSums(observed, expected, covariance, *_support(p, weights.sum(axis=0), p[context, token]))


def _contexts(reference: Floats, draft: Floats, emitted: NDArray[np.bool_]) -> tuple[Floats, Floats, Ints]:
    """p and q [N, V] of the contexts where anything was emitted, and which of them each emitted token had."""
    p, q = np.broadcast_arrays(compact(reference), compact(draft))
    steps, positions, _ = p.shape
    context = np.broadcast_to(np.arange(steps * positions).reshape(steps, positions), emitted.shape)[emitted]
    used = np.zeros(steps * positions, dtype=bool)
    used[context] = True
    place = np.divmod(np.flatnonzero(used), positions)
    return np.ascontiguousarray(p[place]), np.ascontiguousarray(q[place]), (np.cumsum(used) - 1)[context]


def _selections(tokens: Ints, lengths: Ints) -> Ints:
    """The selection of each emitted token; a step of length 0 has a first token and no bonus."""
    position = np.arange(tokens.shape[1])
    drafted = np.where(position < lengths[:, None], SELECTIONS.index("later"), SELECTIONS.index("bonus"))
    return np.where(position == 0, SELECTIONS.index("first"), drafted)[tokens >= 0]


def _ratio(p: Floats, q: Floats) -> Floats:
    """p/q, and -1 where q is 0: what is never drafted ranks last. Rounded to seven digits, so that ratios which are
    equal in theory tie, and rounding does not rank them."""
    with np.errstate(over="ignore", under="ignore"):
        return np.divide(p, q, out=np.full_like(p, -1.0), where=q > 0).astype(np.float32).astype(np.float64)


def token_cells(key: Floats, tie_break: Floats) -> Ints:
    """[N, V]: the cell of each token's rank, in descending order of ``key``, then ``tie_break`` [N, V].

    Tokens equal in both share the lowest of their ranks, so that token ids have no part in it.
    """
    rows, vocab = key.shape
    place = np.argsort(key, axis=-1)  # ascending: the last has rank 0
    place += np.arange(rows)[:, None] * vocab
    cells = np.empty((rows, vocab), dtype=np.int64)
    cells.ravel()[place] = rank_cells(vocab)[::-1]
    ranked = key.ravel()[place]
    same = ranked[:, 1:] == ranked[:, :-1]
    if same.any():
        tied = same.any(axis=-1)
        cells[tied] = _tied_cells(key[tied], tie_break[tied])
    return cells


def _tied_cells(key: Floats, tie_break: Floats) -> Ints:
    """``token_cells``, slowly, where the key alone does not settle the order."""
    order = np.lexsort((-tie_break, -key), axis=-1)
    first, second = np.take_along_axis(key, order, -1), np.take_along_axis(tie_break, order, -1)
    begins = np.ones(key.shape, dtype=bool)
    begins[:, 1:] = (first[:, 1:] != first[:, :-1]) | (second[:, 1:] != second[:, :-1])
    ranks = np.maximum.accumulate(np.where(begins, np.arange(key.shape[-1]), 0), axis=-1)
    cells = np.empty_like(order)
    np.put_along_axis(cells, order, rank_cells(key.shape[-1])[ranks], -1)
    return cells


def _table(cells: Ints, p: Floats, weights: Floats, selection: Ints, hit: Ints) -> tuple[Ints, Floats, Floats]:
    """Observed [S, C], expected [S, C] and covariance [S, C, C] of one ranking; ``hit`` is each token's cell."""
    width = int(rank_cells(p.shape[-1])[-1]) + 1
    observed = np.bincount(selection * width + hit, minlength=len(weights) * width).reshape(len(weights), width)
    flat = cells + np.arange(len(p))[:, None] * width
    mass = np.bincount(flat.ravel(), p.ravel(), minlength=len(p) * width).reshape(len(p), width)
    expected = weights @ mass
    products = np.matmul((weights[:, :, None] * mass).transpose(0, 2, 1), mass)
    return observed, expected, expected[:, :, None] * np.eye(width) - products


def _support(p: Floats, weights: Floats, hit: Floats) -> tuple[int, int, float]:
    """Impossible and improbable tokens, and the improbable ones expected; ``hit`` is each emitted token's p."""
    contexts, tokens = np.nonzero(p < RARE)
    expected = float(weights[contexts] @ p[contexts, tokens])
    return int((hit == 0).sum()), int((hit < RARE).sum()), expected


@dataclass(frozen=True, slots=True)
class RankedResult:
    """``pvalues`` by part: `first_by_ratio` ... `bonus_by_target` and `support`; None where there is nothing to test.

    ``pvalue`` is the smallest of them, Holm-adjusted: a lossless stream is below x with a chance of at most x.
    ``tv_ranked`` is 1/2 sum_k |observed_k - expected_k| / N over all N emitted tokens, cells of ranks by p/q;
    ``tv_ranked_noise_floor`` is what a lossless stream shows on average. None where nothing was emitted.
    """

    pvalues: dict[str, float | None]
    pvalue: float | None
    tv_ranked: float | None
    tv_ranked_noise_floor: float | None


def ranked_test(sums: RankedSums) -> RankedResult:
    """The test on a whole run's sums."""
    pvalues = {
        f"{selection}_by_{ranking}": score_test(
            *(part[r, s] for part in (sums.observed, sums.expected, sums.covariance))
        )
        for r, ranking in enumerate(RANKINGS)
        for s, selection in enumerate(SELECTIONS)
    }
    pvalues["support"] = _support_test(sums)
    tested = [pvalue for pvalue in pvalues.values() if pvalue is not None]
    smallest = min(1.0, min(tested) * len(tested)) if tested else None
    return RankedResult(pvalues, smallest, *_distance(sums))


def score_test(observed: Ints, expected: Floats, covariance: Floats) -> float | None:
    """The p-value of observed [C] against expected [C] under the true ``covariance`` [C, C], cells pooled.

    None where fewer than two cells have enough chance events. Which directions count is read off the covariance,
    never off the outcome.
    """
    from scipy.special import chdtrc  # the upper tail of chi-squared

    pool = _pool(covariance)
    variances, directions = np.linalg.eigh(pool @ covariance @ pool.T)
    scores = directions.T @ (pool @ (observed - expected))
    kept = variances >= LEAST  # cells sum to N, so at least one direction has no variance
    return float(chdtrc(kept.sum(), (scores[kept] ** 2 / variances[kept]).sum())) if kept.any() else None


def _pool(covariance: Floats) -> Floats:
    """[groups, C] of zeros and ones: neighbours joined until a group's variance is ENOUGH; a rest joins the last."""
    starts, start = [0], 0
    for stop in range(1, len(covariance)):
        if covariance[start:stop, start:stop].sum() >= ENOUGH:
            starts.append(start := stop)
    if len(starts) > 1 and covariance[start:, start:].sum() < ENOUGH:
        starts.pop()
    group = np.searchsorted(starts, np.arange(len(covariance)), side="right") - 1
    return np.eye(len(starts))[:, group]


def _support_test(sums: RankedSums) -> float | None:
    """Upper tail of a Poisson law, which is above that of a sum of rare events (Hoeffding 1956); 0 for an impossible
    token, None where no token is improbable. It sees what the score test cannot: events too rare for a cell."""
    from scipy.special import pdtrc  # P(X > k)

    if sums.impossible:
        return 0.0
    if not sums.improbable:
        return 1.0 if sums.improbable_expected else None
    return float(pdtrc(sums.improbable - 1, sums.improbable_expected))


def _distance(sums: RankedSums) -> tuple[float | None, float | None]:
    by_ratio = RANKINGS.index("ratio")
    observed, expected = sums.observed[by_ratio].sum(axis=0), sums.expected[by_ratio].sum(axis=0)
    if not (total := observed.sum()):
        return None, None
    variances = np.diag(sums.covariance[by_ratio].sum(axis=0)).clip(0)
    return float(np.abs(observed - expected).sum() / total / 2), float(np.sqrt(variances).sum() / total / sqrt(2 * pi))
