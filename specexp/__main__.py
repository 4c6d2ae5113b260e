"""``python -m specexp``: the first word without ``=`` picks the command; without one it is ``run``."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from specexp.app import endings

COMMANDS = ("run", "list", "report", "ui", "sync")


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command line; the exit code: 0, 1 for a failure, 2 for bad input, 130 or 143 for an interruption."""
    given = list(sys.argv[1:] if words is None else words)
    if words is None:
        _look_in_current_folder()
    return endings.exit_code(lambda: _picked(given)())


def _look_in_current_folder() -> None:
    """Lets the console script find a module of the user's where ``python -m`` finds it, first in the current folder."""
    with suppress(FileNotFoundError):  # a folder that is gone is told later
        if not sys.flags.safe_path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())


def _picked(words: list[str]) -> Callable[[], int]:
    first = words[0] if words and "=" not in words[0] and words[0][:1] not in "-~+" else "run"
    rest = words[1:] if words[:1] == [first] else words
    if first not in (*COMMANDS, "help"):
        raise endings.unknown_command(first, COMMANDS)
    if {"--help", "-h", "--version"} & set(rest) or first in ("list", "help"):
        from specexp.app import pages

        return lambda: pages.show(first, rest)
    if first == "run":
        from specexp.app import running

        return lambda: running.run(rest)
    from specexp.app import commands

    return lambda: getattr(commands, first)(rest)


if __name__ == "__main__":
    sys.exit(main())
