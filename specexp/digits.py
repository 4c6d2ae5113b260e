"""Numbers as a person reads them: sensible digits, the interval beside, the three ways of knowing never mixed."""

import math
from collections.abc import Mapping
from typing import Any

from specexp.rows import TOKENS_PER_STEP
from specexp.statistics.distance import ROUNDING
from specexp.statistics.ranked import ALARM

Metrics = Mapping[str, Any]
Row = tuple[str, str, str, str]
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


def gain(metrics: Metrics, key: str) -> tuple[str, str]:
    """A relative gain and its interval, in percent, with signs; what rounding leaves of none is 0."""
    found = [metrics.get(key + end) for end in ("", "_low", "_high")]
    parts = [None if part is None else 100 * part if abs(part) > ROUNDING else 0.0 for part in found]
    middle, low, high = (
        f"{'+' if part is not None and part > 0 else ''}{number(part or None, *parts[1:])}" for part in parts
    )
    return middle if parts[0] != 0 else "0", f"[{low}, {high}]" if low and high else ""


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


def run_rows(metrics: Metrics, gamma_max: int | None, lossy: bool, several: bool = False) -> list[Row]:
    """A run's table, a row each: name, value, interval, remark; a number that is null has no row.

    ``gamma_max`` is where the curves by gamma end, None where none would go on; of a ``lossy`` rule nobody expects the
    target's law; of ``several`` drafts it is told how many there are.
    """
    rows = [
        _row(metrics, "alpha", "alpha"),
        *_of_several(metrics, several),
        *(_row(metrics, "tokens/step", key, way) for way, key in TOKENS_PER_STEP.items()),
        _row(metrics, "closed form", "tokens_per_step_closed_form", _closed_form(metrics)),
        _row(metrics, "speedup", "speedup", str(metrics.get("speedup_source") or "")),
        *_gain(metrics),
        _row(metrics, "operations", "operations_factor", "times those of plain decoding"),
        _row(metrics, "best gamma", "gamma_best", _best(metrics, gamma_max)),
        _row(metrics, "TV distance", "tv_distance", _floor(metrics)),
        ("lossless", _equals(metrics), "", _verdict(metrics, lossy)),
        *_first_token(metrics),
        ("exact bias", *bias(metrics, "tv_exact"), "TV of the next tokens, every outcome summed"),
        ("audit", *bias(metrics, "audit_bias"), _trial(metrics)),
        *(_row(metrics, f"perplexity {model}", f"perplexity_{model}") for model in ("target", "draft")),
    ]
    return [row for row in rows if row[1]]


def _row(metrics: Metrics, name: str, key: str, remark: str = "") -> Row:
    return name, value(metrics, key), interval(metrics, key), remark


def _gain(metrics: Metrics) -> list[Row]:
    """Nothing for `token` itself."""
    shown, ends, source = *gain(metrics, "gain_over_token"), metrics.get("gain_over_token_source")
    return [("gain over token", f"{shown} %", ends, str(source))] if source else []


def _first_token(metrics: Metrics) -> list[Row]:
    """Nothing for a rule without bias."""
    shown, ends = bias(metrics, "bias")
    remark = f"{metrics.get('bias_source')}; TV of a step's first token from the target's law"
    return [("bias", shown, ends, remark)] if shown not in ("", "0") else []


def _of_several(metrics: Metrics, several: bool) -> list[Row]:
    """What a step of several drafts drafts, and how often one of the first position is kept; that too where a rule for
    several has one."""
    drafts, verified = (metrics.get(f"{done}_per_step") for done in ("drafted", "verified"))
    most = f"{value(metrics, 'acceptance_optimum')} {interval(metrics, 'acceptance_optimum')}".strip()
    amount = [("drafted", str(drafts), "", f"tokens a step; {verified} positions verified")]
    first = [_row(metrics, "first kept", "acceptance_first", f"optimum {most}" if most else "")]
    return (amount if several else []) + (first if several or most else [])


def _closed_form(metrics: Metrics) -> str:
    error = percent(metrics.get("closed_form_error"))
    return f"error {error}" if error else ""


def _floor(metrics: Metrics) -> str:
    floor = value(metrics, "tv_noise_floor")
    return f"a right rule shows {floor} at this size" if floor else ""


def _best(metrics: Metrics, gamma_max: int | None) -> str:
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


def bias(metrics: Metrics, key: str) -> tuple[str, str]:
    """A distance between two laws and its interval; what rounding leaves of none is 0."""
    distance = metrics.get(key)
    none = distance is not None and distance <= ROUNDING
    return ("0", "") if none else (value(metrics, key), interval(metrics, key))


def _trial(metrics: Metrics) -> str:
    bias = metrics.get("audit_bias")
    return "lossless in every small world" if bias is not None and bias <= ROUNDING else "the largest in small worlds"
