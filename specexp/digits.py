"""Numbers as a person reads them: sensible digits, the interval beside, the three ways of knowing never mixed."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from specexp.lengths import curve_end
from specexp.rows import TOKENS_PER_STEP
from specexp.statistics.distance import ROUNDING
from specexp.statistics.ranked import ALARM
from specexp.store.records import Sweep
from specexp.store.replicates import summary

Metrics = Mapping[str, Any]
Row = tuple[str, str, str, str]
WORK = {"operations": "operations_factor"}  # of the cost models that count it
FIRST = {"first kept": "acceptance_first", "optimum": "acceptance_optimum"}  # of several drafts
NARROW = 1e-9  # an interval narrower than this part of its number is none


def number(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """``value`` with the digits that its interval lets stand (the half-width's first, its first two below 3), else
    four significant ones."""
    if value is None:
        return ""
    if isinstance(value, int) or value == 0:
        return str(value)
    places = _places(abs(value), 4)
    if low is not None and high is not None and high - low > NARROW * abs(value):
        half = (high - low) / 2
        places = _places(half, 2 if half / 10 ** math.floor(math.log10(half)) < 3 else 1)
    return f"{value:.{min(places, 6)}f}"


def _places(size: float, significant: int) -> int:
    return max(0, significant - 1 - math.floor(math.log10(size)))


def interval(metrics: Metrics, key: str) -> str:
    """``[low, high]`` of a metric, empty where it has none."""
    value, low, high = metrics.get(key), metrics.get(f"{key}_low"), metrics.get(f"{key}_high")
    if value is None or low is None or high is None:
        return ""
    return f"[{number(low, low, high)}, {number(high, low, high)}]"


def value(metrics: Metrics, key: str) -> str:
    """A metric's number, with the digits of its interval."""
    return number(metrics.get(key), metrics.get(f"{key}_low"), metrics.get(f"{key}_high"))


def percent(part: float | None) -> str:
    """A relative error with its sign."""
    return (
        "" if part is None else f"{part if abs(part) >= 5e-5 else 0.0:+.2%}".replace("%", " %").replace("+0.00", "0.00")
    )


def headline(config: Mapping[str, Any]) -> str:
    """What was run, in one line."""
    members = " ".join(f"{group}={config[group]['name']}" for group in ("target", "draft", "rule"))
    return f"{members} gamma={config['gamma']} steps={config['steps']} seed={config['seed']}"


def chance(value: float | None) -> str:
    """A p-value; what is below 1e-12 is only called so."""
    return "" if value is None else f"{value:.2g}" if value >= 1e-12 else "<1e-12"


def run_rows(metrics: Metrics, gamma_max: int, lossy: bool) -> list[Row]:
    """A run's table, a row each: name, value, interval, remark; a number that is null has no row.

    ``gamma_max`` is where the curves by gamma end; of a ``lossy`` rule nobody expects the target's law.
    """
    rows = [
        _row(metrics, "alpha", "alpha"),
        *_first_of_several(metrics),
        *(_row(metrics, "tokens/step", key, way) for way, key in TOKENS_PER_STEP.items()),
        _row(metrics, "closed form", "tokens_per_step_closed_form", _closed_form(metrics)),
        _row(metrics, "speedup", "speedup", str(metrics.get("speedup_source") or "")),
        _row(metrics, "operations", "operations_factor", "times those of plain decoding"),
        _row(metrics, "best gamma", "gamma_best", _best(metrics, gamma_max)),
        _row(metrics, "TV distance", "tv_distance", _floor(metrics)),
        ("lossless", _equals(metrics), "", _verdict(metrics, lossy)),
        ("exact bias", *_bias(metrics, "tv_exact"), "TV of the next tokens, every outcome summed"),
        ("audit", *_bias(metrics, "audit_bias"), _trial(metrics)),
        *(_row(metrics, f"perplexity {model}", f"perplexity_{model}") for model in ("target", "draft")),
    ]
    return [row for row in rows if row[1]]


def _row(metrics: Metrics, name: str, key: str, remark: str = "") -> Row:
    return name, value(metrics, key), interval(metrics, key), remark


def _first_of_several(metrics: Metrics) -> list[Row]:
    """How often a draft of the first position is kept, where independent ones have an optimum."""
    most = _with_interval(metrics, "acceptance_optimum")
    return [_row(metrics, "first kept", "acceptance_first", f"optimum {most}")] if most else []


def _closed_form(metrics: Metrics) -> str:
    error = percent(metrics.get("closed_form_error"))
    return f"error {error}" if error else ""


def _floor(metrics: Metrics) -> str:
    floor = value(metrics, "tv_noise_floor")
    return f"a right rule shows {floor} at this size" if floor else ""


def _best(metrics: Metrics, gamma_max: int) -> str:
    best = metrics.get("gamma_best")
    told = "do not speculate" if best == 0 else f"speedup {value(metrics, 'speedup_best')}"
    return told + ("; raise gamma_max" if best == gamma_max else "")


def _equals(metrics: Metrics) -> str:
    shown = chance(metrics.get("lossless_pvalue"))
    return f"p{'' if shown[:1] == '<' else '='}{shown}" if shown else "no test"


def _verdict(metrics: Metrics, lossy: bool) -> str:
    pvalue = metrics.get("lossless_pvalue")
    if pvalue is None and metrics.get("tv_ranked_noise_floor"):
        return "too few tokens to test"
    if pvalue is None:
        return "nothing is left to chance, and no token is impossible"
    if lossy:
        return "not claimed by this rule" + ("; a difference seen" if pvalue < ALARM else "")
    return "NOT lossless: not the target's law" if pvalue < ALARM else "no difference seen"


def _bias(metrics: Metrics, key: str) -> tuple[str, str]:
    bias = metrics.get(key)
    return ("" if bias is None else "0" if bias <= ROUNDING else number(bias)), ""


def _trial(metrics: Metrics) -> str:
    bias = metrics.get("audit_bias")
    return "lossless in every small world" if bias is not None and bias <= ROUNDING else "the largest in small worlds"


def sweep_table(sweep: Sweep, lossy: Callable[[Any], bool], narrow: bool = False) -> tuple[list[str], list[list[str]]]:
    """(header, rows): the swept keys, the status, the numbers one compares; ``lossy`` judges a rule by its name.
    Below the cells a row for each combination that several seeds replicate: its means, with intervals over seeds.

    ``narrow``: tokens/step only the best of the ways to know them, an interval below its number, and beside the
    acceptance of several drafts neither alpha nor TV/floor.
    """
    rule = sweep.content["fixed"].get("rule.name")
    ways = [(way, key) for way, key in TOKENS_PER_STEP.items() if _any(sweep, key)][: 1 if narrow else None]
    drafts = FIRST if _any(sweep, FIRST["optimum"]) or "draft.paths" in sweep.swept else {}
    columns: dict[str, Callable[[Metrics], str]] = {
        **{key: partial(_plain, key=key) for key in sweep.swept},
        "status": lambda row: str(row["status"]),
        **({} if narrow and drafts else {"alpha": partial(value, key="alpha")}),
        **{name: partial(value, key=key) for name, key in drafts.items()},
        **{f"tokens/step {way}": partial(_with_interval, key=key) for way, key in ways},
        **({"closed form": _error} if _any(sweep, "closed_form_error") else {}),
        **{name: partial(_with_interval, key=key) for name, key in WORK.items() if _any(sweep, key)},
        "speedup": partial(_with_interval, key="speedup"),
        "best gamma": partial(_best_of_cell, fixed=sweep.content["fixed"]),
        **({"exact bias": lambda row: _bias(row, "tv_exact")[0]} if _any(sweep, "tv_exact") else {}),
        **({} if narrow and drafts else {"TV/floor": _ratio}),
        "p-value": lambda row: _lossless(row, lossy(row.get("rule", rule))),
    }
    means = [mean | {"seed": f"{mean['seeds']} seeds", "status": "mean"} for mean in summary(sweep.swept, sweep.rows)]
    rows = [[show(row) for show in columns.values()] for row in [*sweep.rows, *means]]
    if not narrow:
        return list(columns), rows
    return [name.replace(" ", "\n").replace(".", ".\n") for name in columns], [
        [cell.replace(" [", "\n[") for cell in row] for row in rows
    ]


def _best_of_cell(row: Metrics, fixed: Metrics) -> str:
    """The best draft length; ``>=`` where it ends the curve, so that a larger gamma_max may find a better one."""
    gamma, gamma_max = (row.get(key, fixed.get(key)) for key in ("gamma", "gamma_max"))
    best = row.get("gamma_best")
    return "" if best is None else f">= {best}" if best == curve_end(gamma or 0, gamma_max) else str(best)


def _lossless(row: Metrics, lossy: bool) -> str:
    shown = chance(row.get("lossless_pvalue"))
    return f"{shown} (lossy)" if lossy and shown else shown


def _any(sweep: Sweep, key: str) -> bool:
    return any(row.get(key) is not None for row in sweep.rows)


def _with_interval(row: Metrics, key: str) -> str:
    return f"{value(row, key)} {interval(row, key)}".strip()


def _error(row: Metrics) -> str:
    return percent(row.get("closed_form_error"))


def _plain(row: Metrics, key: str) -> str:
    typed = row.get(key)
    if isinstance(typed, list) and all(isinstance(part, float | int) for part in typed):
        return f"[{', '.join(f'{part:.4g}' for part in typed)}]"
    return "" if typed is None else str(typed).lower() if isinstance(typed, bool) else str(typed)


def _ratio(row: Metrics) -> str:
    distance, floor = row.get("tv_distance"), row.get("tv_noise_floor")
    return f"{distance / floor:.2f}" if distance is not None and floor else ""
