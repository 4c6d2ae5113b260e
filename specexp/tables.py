"""A sweep's cells side by side, as a person reads them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from specexp.digits import bias, chance, gain, interval, percent, value
from specexp.lengths import curve_end, goes_on
from specexp.rows import TOKENS_PER_STEP
from specexp.statistics.distance import ROUNDING
from specexp.store.records import Sweep
from specexp.store.replicates import summary
from specexp.values import shown

Metrics = Mapping[str, Any]
Column = Callable[[Metrics], str]
WORK = {"operations": "operations_factor"}  # of the cost models that count it
GAIN = "gain over token (%)"
OPTIMUM = "optimum"
FIRST = {"first kept": "acceptance_first", OPTIMUM: "acceptance_optimum"}
SPARED = ("status", "alpha", "closed form", "TV/floor", "best gamma")  # where there is no room, these go first


def sweep_table(sweep: Sweep, lossy: Callable[[Any], bool], narrow: bool = False) -> tuple[list[str], list[list[str]]]:
    """(header, rows): the swept keys, the status, the numbers one compares; ``lossy`` judges a rule by its name.
    Below the cells a row for each combination that several seeds replicate: its means, with intervals over seeds.

    ``narrow``: tokens/step only the best of the ways to know them, an interval below its number.
    """
    rule = sweep.content["fixed"].get("rule.name")
    ways = [(way, key) for way, key in TOKENS_PER_STEP.items() if _any(sweep, key)][: 1 if narrow else None]
    columns: dict[str, Column] = {
        **{key: partial(_plain, key=key) for key in sweep.swept},
        "status": lambda row: str(row["status"]),
        "alpha": partial(value, key="alpha"),
        **_of_several_drafts(sweep),
        **{f"tokens/step {way}": partial(_with_interval, key=key) for way, key in ways},
        **({"closed form": _error} if _any(sweep, "closed_form_error") else {}),
        **{name: partial(_with_interval, key=key) for name, key in WORK.items() if _any(sweep, key)},
        "speedup": partial(_with_interval, key="speedup"),
        "best gamma": partial(_best_of_cell, fixed=sweep.content["fixed"]),
        **_against_token_and_target(sweep),
        **({"exact bias": lambda row: bias(row, "tv_exact")[0]} if _any(sweep, "tv_exact") else {}),
        "TV/floor": _ratio,
        "p-value": lambda row: _lossless(row, lossy(row.get("rule", rule))),
    }
    means = [mean | {"seed": f"{mean['seeds']} seeds", "status": "mean"} for mean in summary(sweep.swept, sweep.rows)]
    rows = [[show(row) for show in columns.values()] for row in [*sweep.rows, *means]]
    if not narrow:
        return list(columns), rows
    return [broken_name(name) for name in columns], [[broken(cell) for cell in row] for row in rows]


def broken_name(name: str) -> str:
    """A column's name, a word a line."""
    return name.replace(" ", "\n").replace(".", ".\n")


def broken(cell: str) -> str:
    """What stands beside a number, below it."""
    return cell.replace(" [", "\n[").replace(" (", "\n(")


def spared(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[list[str], list[list[str]]]:
    """A narrow table with a gain or an optimum, less what tells least between its cells, a status that all share among
    it, column by column until it is no wider than ``width``; another table as it is."""
    columns = {column[0]: column for column in zip(header, *rows, strict=True)}
    compared = broken_name(GAIN) in columns or OPTIMUM in columns
    for name in map(broken_name, SPARED if compared else ()):
        spare = name in columns and (name != "status" or set(columns[name][1:]) == {"done"})
        if spare and wide(list(columns.values())) > width:
            del columns[name]
    kept_header, *kept_rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return kept_header, kept_rows


def wide(columns: Sequence[Sequence[str]]) -> int:
    """Letters in a line of a narrow table."""
    return sum(1 + max(len(line) for cell in column for line in cell.split("\n")) for column in columns)


def _of_several_drafts(sweep: Sweep) -> dict[str, Column]:
    """How often a draft of the first position is kept, and the most that it could be."""
    if not _any(sweep, FIRST[OPTIMUM]) and "draft.paths" not in sweep.swept:
        return {}
    return {name: partial(_share, key=key) for name, key in FIRST.items()}


def _against_token_and_target(sweep: Sweep) -> dict[str, Column]:
    """The gain over `token` where a cell has another rule, and what it costs where a rule has a bias."""
    columns: dict[str, Column] = {}
    if _any(sweep, "gain_over_token_source"):
        columns[GAIN] = lambda row: " ".join(gain(row, "gain_over_token")).strip()
    if any((row.get("bias") or 0) > ROUNDING for row in sweep.rows):
        columns["bias"] = lambda row: " ".join(bias(row, "bias")).strip()
    return columns


def _best_of_cell(row: Metrics, fixed: Metrics) -> str:
    """The best draft length; ``>=`` where it ends the curve, so that a larger gamma_max may find a better one."""
    gamma, gamma_max = (row.get(key, fixed.get(key)) for key in ("gamma", "gamma_max"))
    best, length = row.get("gamma_best"), row.get("length", fixed.get("length.name"))
    ends = best is not None and best == curve_end(gamma or 0, gamma_max, length) and goes_on(length)
    return "" if best is None else f">= {best}" if ends else str(best)


def _lossless(row: Metrics, lossy: bool) -> str:
    shown = chance(row.get("lossless_pvalue"))
    return f"{shown} (lossy)" if lossy and shown else shown


def _any(sweep: Sweep, key: str) -> bool:
    return any(row.get(key) is not None for row in sweep.rows)


def _with_interval(row: Metrics, key: str) -> str:
    return f"{value(row, key)} {interval(row, key)}".strip()


def _share(row: Metrics, key: str) -> str:
    return "" if row.get(key) is None else f"{row[key]:.4f}"


def _error(row: Metrics) -> str:
    return percent(row.get("closed_form_error"))


def _plain(row: Metrics, key: str) -> str:
    """A swept value as it was typed; numbers in a list to four digits."""
    typed = row.get(key)
    if isinstance(typed, list) and all(isinstance(part, float | int) for part in typed):
        return f"[{', '.join(f'{part:.4g}' for part in typed)}]"
    return "" if typed is None else shown(typed)


def _ratio(row: Metrics) -> str:
    distance, floor = row.get("tv_distance"), row.get("tv_noise_floor")
    return f"{distance / floor:.2f}" if distance is not None and floor else ""
