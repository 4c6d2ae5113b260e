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
from specexp.store import files

FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED, TERMINATED = 1, 2, 130, 141, 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, taken as Ctrl-C is: what is open is written down and closed on the way out."""


def exit_code(command: Callable[[], int]) -> int:
    """What ``command`` returns, or the code of the error it raised, after a line on stderr that tells it."""
    _open_streams()
    try:
        with _sigterm_raises():
            _require_folder()
            code = command()
            sys.stdout.flush()  # what cannot be written is known here, and not while Python ends
            return code
    except UserError as error:
        _tell(" ".join(str(error).split()))
        return BAD_INPUT
    except KeyboardInterrupt as error:
        _tell(str(error) or "interrupted")
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        _drop_output()
        return PIPE_CLOSED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in files.NO_SPACE and error.filename is None:
            _drop_output()
            _tell("cannot write output: no space left where it goes; what ran is in its folder")
            return FAILED
        _tell(f"{type(error).__name__}: {error}".split("\n")[0] + f"; this is a bug of specexp: {_written()}")
        return FAILED


def _open_streams() -> None:
    """A stream that the caller closed (``>&-``) swallows what is printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, open as long as the process


def _require_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the current folder is gone; cd to one that exists") from error


def _drop_output() -> None:
    """Lets what is still to be printed go nowhere, or Python would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
