"""Where a number came from: the checkout's commit, the versions of what it stands on, the process that made it."""

import functools
import importlib.metadata
import os
import platform
import shlex
import socket
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import specexp

DISTRIBUTIONS = ("numpy", "scipy", "hydra-core", "omegaconf", "mlflow", "matplotlib")
CLOCK_SLACK_S = 60.0  # the boot time is in whole seconds, and clocks are set while processes run


@functools.cache
def git_facts() -> dict[str, Any] | None:
    """{commit, branch, dirty} of the checkout this package lies in; None for an installed package or without git.

    An untracked file counts as dirty: a new rule is one until it is committed.
    """
    checkout = Path(specexp.__file__).resolve().parent.parent
    if not (checkout / ".git").exists():  # else a package installed inside someone's repository would name that one
        return None
    command = ["git", "-C", str(checkout), "status", "--porcelain=v2", "--branch"]
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10, env=environment)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_status(done.stdout)


def parse_status(porcelain: str) -> dict[str, Any]:
    """{commit, branch, dirty} from the text of `git status --porcelain=v2 --branch`."""
    lines = porcelain.splitlines()
    head = {words[1]: words[2] for line in lines if line.startswith("# ") and len(words := line.split(" ", 2)) == 3}
    commit, branch = head.get("branch.oid"), head.get("branch.head")
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": None if branch == "(detached)" else branch,
        "dirty": any(not line.startswith("#") for line in lines),
    }


@functools.cache
def versions() -> dict[str, str | None]:
    """Version by distribution name, None for what is not installed; nothing is imported for it."""
    found: dict[str, str | None] = {"specexp": specexp.__version__, "python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def command_line(words: Sequence[str]) -> str:
    """The line that runs these words again."""
    return shlex.join(["python", "-m", "specexp", *words])


def host() -> str:
    """This machine's name."""
    return socket.gethostname()


def is_alive(pid: int, since: str | None = None) -> bool:
    """Whether process `pid` runs on this host; with `since` (ISO time): and ran already then, so is not a namesake."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return pid < 2**31
    born = process_start(pid)
    if born is None or since is None:
        return True
    return born <= datetime.fromisoformat(since).timestamp() + CLOCK_SLACK_S


def process_start(pid: int) -> float | None:
    """When process `pid` started, in seconds since 1970; None where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    except (OSError, StopIteration):
        return None
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22 of proc(5)
