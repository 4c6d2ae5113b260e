"""What a person sees: a run's short table, a sweep's rows, a bar while it works. Plain text where no terminal is.

Progress goes to stderr and disappears; tables go to stdout. Rich is imported only where there is a terminal.
"""

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TextIO

from specexp import digits, plugins, store, tables
from specexp.errors import UserError
from specexp.lengths import curve_end, goes_on
from specexp.store.records import Sweep

Progress = Callable[[int, int], None]
UNBOUNDED = 100_000  # characters: rich measures a table only up to its console's width


def complain(message: str) -> None:
    """One line on stderr."""
    print(f"specexp: {message}", file=sys.stderr)


def show_run(metrics: Mapping[str, Any], config: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Prints a run's table: what was run, its numbers, then ``places`` (where its files and its MLflow run are)."""
    print(digits.headline(config))
    _print_table(*run_table(metrics, config))
    show_places(places)


def run_table(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """(header, rows) of a run's table."""
    length = config["length"]["name"]
    end = curve_end(config["gamma"], config["gamma_max"], length) if goes_on(length) else None
    several = config["draft"].get("paths", 1) > 1 or length != "fixed"
    return ("", "", "95 % interval", ""), digits.run_rows(metrics, end, is_lossy(config["rule"]), several)


def show_sweep(sweep: Sweep, places: Mapping[str, str]) -> None:
    """Prints a sweep's table, a row a cell, then ``places``."""
    lossy = lossy_rules(sweep)
    header, rows = tables.sweep_table(sweep, lossy)
    wide = len(text_table([header, *rows]).partition("\n")[0])
    terminal = shutil.get_terminal_size().columns
    if sys.stdout.isatty() and wide > terminal:
        _print_table(*tables.spared(*tables.sweep_table(sweep, lossy, narrow=True), terminal), gap=1)
    else:
        _print_table(header, rows)
    show_places(places)


def is_lossy(rule: Mapping[str, Any]) -> bool:
    """Whether a rule, as a config has it, says of itself that it is not lossless; of one that is no longer there
    nothing is said."""
    from specexp.rules import RULES

    member = RULES.get(rule["name"])
    with suppress(UserError):
        member = plugins.imported("rule", rule, RULES) if "import" in rule else member
    return not getattr(member, "lossless", True)


def lossy_rules(sweep: Sweep) -> Callable[[Any], bool]:
    """``is_lossy`` of a sweep's rules by their names; a cell's config says where one from outside is to be had."""
    from specexp.rules import RULES

    fixed = sweep.content["fixed"].get("rule.name")
    cells = {row.get("rule", fixed): row["cell"] for row in reversed(sweep.rows)}

    @cache
    def lossy(name: Any) -> bool:
        with suppress(UserError):  # a cell that never started
            return is_lossy(
                {"name": name} if name in RULES else store.read_folder(sweep.path / cells[name]).config["rule"]
            )
        return False

    return lossy


def show_places(places: Mapping[str, str]) -> None:
    """Prints where things are, a line each; never wrapped, so that paths and addresses can be copied."""
    width = max((len(name) for name in places), default=0)
    for name, place in places.items():
        print(f"{name:<{width}}  {place}")


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], gap: int = 2) -> None:
    if not sys.stdout.isatty():
        print(text_table([header, *rows]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in header:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    wanted = Console(markup=False, width=UNBOUNDED, height=1).measure(table).maximum
    width = max(shutil.get_terminal_size().columns, wanted)  # the terminal wraps a line; a number is never cut
    Console(markup=False, width=width, height=1).print(table)


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, as plain text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


class Bar:
    """The bars of a command at work: one over its cells, one inside the cell at hand."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.live = RichProgress(*columns, console=Console(file=stream, markup=False), transient=True)
        self.cells = self.live.add_task("cells", total=None, visible=False)
        self.steps = self.live.add_task("steps", total=None, visible=False)

    def over(self, done: int, total: int) -> None:
        """Moves the bar over the cells."""
        self.live.update(self.cells, completed=done, total=total, visible=total > 0)

    def inside(self, done: int, total: int) -> None:
        """Moves the bar inside the cell at hand, and hides it at its end."""
        self.live.update(self.steps, completed=done, total=total, visible=done < total)


_bar: Bar | None = None  # of this process: a launcher's workers have none, and are silent


@contextmanager
def bar(cells: Callable[[], tuple[int, int]] | None = None) -> Iterator[None]:
    """Shows progress on stderr while the body works, if that is a terminal.

    ``cells`` says (ended, planned); it is asked twice a second, as with some launchers the cells work elsewhere.
    """
    global _bar
    if not sys.stderr.isatty():
        yield
        return
    _bar = Bar(sys.stderr)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(_bar, cells, ended), daemon=True)
    try:
        with _bar.live:
            watcher.start()
            yield
    finally:
        ended.set()
        watcher.join()
        _bar = None


def _watch(shown: Bar, cells: Callable[[], tuple[int, int]] | None, ended: threading.Event) -> None:
    while cells is not None and not ended.wait(0.5):
        shown.over(*cells())


def inside() -> Progress | None:
    """What a cell may call with (done, total); None where nobody would see it."""
    return None if _bar is None else _bar.inside
