"""How a command ends: an exit code, and one clear line where something was wrong."""

import difflib
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from specexp.errors import UserError

FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED, TERMINATED = 1, 2, 130, 141, 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, taken as Ctrl-C is: what is open is written down and closed on the way out."""


def exit_code(command: Callable[[], int]) -> int:
    """What ``command`` returns, or the code of the error it raised, after a line on stderr that tells it."""
    try:
        with _sigterm_raises():
            return command()
    except UserError as error:
        _tell(" ".join(str(error).split()))
        return BAD_INPUT
    except KeyboardInterrupt as error:
        _tell(str(error) or "interrupted")
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        _tell(f"{type(error).__name__}: {error}".split("\n")[0] + f"; this is a bug of specexp: {_written()}")
        return FAILED


def _tell(message: str) -> None:
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        traceback.print_exc()
    print(f"specexp: {message}", file=sys.stderr)


def _written() -> str:
    """Where the traceback of the error at hand is."""
    with tempfile.NamedTemporaryFile("w", prefix="specexp-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exc(file=file)
    return f"its traceback is in {file.name}"


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    def terminated(number: int, frame: FrameType | None) -> None:
        raise Terminated("terminated")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def unknown_command(word: str, commands: Sequence[str]) -> UserError:
    """The error for a first word that is no command."""
    close = difflib.get_close_matches(word, commands, n=1)
    hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(commands)}, or give key=value words"
    return UserError(f"{word}: no such command; {hint}")
