"""Names, colours and notes of MLflow's runs: what a person reads there."""

import colorsys
import json
from collections.abc import Mapping, Sequence
from typing import Any

from specexp import digits, store
from specexp.errors import UserError
from specexp.store import files
from specexp.store.provenance import command_line
from specexp.store.sweeps import is_said, value_of

# Okabe and Ito's colours, told apart by colour-blind readers too; MLflow's own choice gives two runs the same.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
SUMMARY_COLOR = "#999999"
HEADLINES = (
    *("alpha", "acceptance_rate", "acceptance_first", "acceptance_optimum"),
    *("tokens_per_step", "tokens_per_step_expected", "tokens_per_step_exact", "tokens_per_step_closed_form"),
    *("speedup", "gain_over_token", "gamma_best", "tv_distance", "tv_noise_floor", "lossless_pvalue"),
)
COMPARED = ("alpha", "tokens_per_step", "speedup", "gamma_best")
LONGEST_NAME, LONGEST_LIST, MOST_ROWS = 120, 80, 40
SPACE = "\u00a0"  # that does not break
GAP = 3 * SPACE  # as MLflow sets the columns of a table without any room between them


def name(folder: store.Folder) -> str:
    """`rule=token gamma=4`: what was swept, for a single run what was asked for; the digest where that is nothing."""
    asked = list(folder.run.get("overrides") or [])
    swept = _siblings(folder).get("swept", {})
    telling = [word for word in asked if word.lstrip("+").split("=")[0] in swept] or asked
    return _shortened(" ".join(telling) or f"specexp {folder.run['digest']}", LONGEST_NAME)


def sweep_name(sweep: store.Sweep) -> str:
    """`sweep gamma=1,2,4,8 · NAME`; what was swept comes first, as MLflow's lists cut names after twenty letters."""
    return f"sweep {_swept(sweep)} · {sweep.content['name']}"


def _swept(sweep: store.Sweep) -> str:
    given = {key: [v for v in values if is_said(key, v)] for key, values in sweep.content["swept"].items()}
    lists = (f"{key}={','.join(map(plain, values))}" for key, values in given.items())
    return _shortened(" ".join(lists), LONGEST_LIST) or "of one cell"


def color(folder: store.Folder) -> str:
    """`#rrggbb`, another one for each cell of a sweep."""
    cells = _siblings(folder).get("cells", [])
    if folder.run["digest"] in cells:
        place = cells.index(folder.run["digest"])
        if place < len(PALETTE):
            return PALETTE[place]
    else:
        place = int(folder.run["digest"][:6], 16)
    # steps of the golden ratio never come close to an earlier hue
    shades = colorsys.hls_to_rgb(place * 0.6180339887 % 1, 0.45, 0.65)
    return "#" + "".join(f"{round(255 * shade):02x}" for shade in shades)


def _siblings(folder: store.Folder) -> dict[str, Any]:
    """sweep.json of the sweep that a cell is of; empty for a single run."""
    if folder.run["kind"] != "cell":
        return {}
    try:
        return files.read_json(folder.path.parent / "sweep.json")
    except UserError:
        return {}


def note(folder: store.Folder, status: str) -> str:
    """Markdown: what it was, how it ended, how to have it again (MLflow hides what comes after), its numbers."""
    member = {group: value_of(folder.config, group) for group in ("target", "draft", "rule", "cost")}
    what = ", ".join(f"{group} {value}" for group, value in member.items() if value)
    gamma = folder.config.get("gamma")
    ended = f": {folder.run['reason']}" if folder.run.get("reason") else ""
    told = f"**{what}, γ = {gamma}** · {status}{ended}"
    return "\n\n".join([told, _again(folder.run), *_numbers(folder.metrics or {}), _origin(folder.run)])


def _numbers(metrics: Mapping[str, Any]) -> list[str]:
    rows = [[key, interval(metrics, key)] for key in HEADLINES if metrics.get(key) is not None]
    return [table(["metric", "value [95 % interval]"], rows)] if rows else []


def interval(metrics: Mapping[str, Any], key: str) -> str:
    """`4.02 [3.99, 4.04]`, or the number alone, or nothing; never broken into two lines."""
    if key == "lossless_pvalue":
        return digits.chance(metrics.get(key))
    return f"{digits.value(metrics, key)} {digits.interval(metrics, key)}".strip().replace(" ", SPACE)


def _again(record: Mapping[str, Any]) -> str:
    alone = command_line(record.get("overrides") or [])
    typed = record.get("command") or alone
    return f"`{alone}` · its sweep: `{typed}`" if record["kind"] == "cell" else f"`{typed}`"


def _origin(record: Mapping[str, Any]) -> str:
    git = record.get("git") or {}
    checkout = f"commit {git['commit']}{' and changes' if git.get('dirty') else ''}" if git.get("commit") else ""
    version = f"specexp {(record.get('versions') or {}).get('specexp')}"
    return " · ".join(word for word in (version, checkout, f"config {record['digest']}") if word)


def sweep_note(sweep: store.Sweep) -> str:
    """Markdown: what was swept, the table, how to have it again."""
    done = sum(row["status"] == "done" for row in sweep.rows)
    told = f"**{_swept(sweep)}** · {done} of {len(sweep.rows)} cells done"
    rows = [_sweep_row(row, sweep.swept) for row in sweep.rows[:MOST_ROWS]]
    left = len(sweep.rows) - MOST_ROWS
    more = [f"and {left} more cells: sweep.csv"] if left > 0 else []
    shown = table([*sweep.swept, "status", *COMPARED], rows)
    return "\n\n".join([told, shown, *more, _again(sweep.run), _origin(sweep.run)])


def _sweep_row(row: Mapping[str, Any], swept: Sequence[str]) -> list[str]:
    return [
        *(plain(row[key]) if is_said(key, row[key]) else "" for key in swept),
        row["status"] if not row["reason"] else f"{row['status']}: {_shortened(row['reason'], 80)}",
        *(interval(row, key) for key in COMPARED),
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in markdown."""
    top, *below = ([text.replace("|", "\\|") + GAP for text in line] for line in (header, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (top, ["---"] * len(header), *below))


def plain(value: Any) -> str:
    """A value as text: a word as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shortened(text: str, longest: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
