"""Where the seconds of the whole command go.

``python -m benchmarks.command [REPEATS]``: each line is a process of its own that does a little more than the one it
is compared with; the difference of their CPU seconds (medians of REPEATS, taken by turns) is what that little costs.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

BARE = ["figures=none", "tracking=none"]


class Stage(NamedTuple):
    """What a process adds to another's."""

    name: str
    arguments: list[str]  # of the interpreter
    more_than: str | None


def command(*words: str) -> list[str]:
    return ["-m", "specexp", *words]


STAGES = [
    Stage("interpreter", ["-c", "pass"], None),
    Stage("--help", command("--help"), "interpreter"),
    Stage("imports", ["-c", "import specexp.app, specexp.build"], "interpreter"),
    Stage("Hydra: --cfg job", command("--cfg", "job"), "imports"),
    Stage("a run of 200 steps", command("steps=200", *BARE), "Hydra: --cfg job"),
    Stage("5,000 steps: walk and statistics", command(*BARE), "a run of 200 steps"),
    Stage("figures", command("tracking=none"), "5,000 steps: walk and statistics"),
    Stage("MLflow", command("figures=none"), "5,000 steps: walk and statistics"),
    Stage("the whole command", command(), None),
]


def main(repeats: int = 5, only: int = len(STAGES)) -> None:
    """``only``: the first so many stages."""
    stages = STAGES[:only]
    turns = [{stage.name: cpu_seconds(stage.arguments) for stage in stages} for _ in range(repeats)]
    seconds = {stage.name: statistics.median(turn[stage.name] for turn in turns) for stage in stages}
    whole = seconds[stages[-1].name]
    for stage in stages:
        added = seconds[stage.name] - (seconds[stage.more_than] if stage.more_than else 0.0)
        than = f"more than: {stage.more_than}" if stage.more_than else ""
        print(f"{stage.name:34} {seconds[stage.name]:6.2f} s {added:+7.2f} s {added / whole:7.1%} of the last  {than}")


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one process, its results thrown away; CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as outputs:
        environment = {**os.environ, "SPECEXP_OUTPUTS": outputs}
        environment.pop("MLFLOW_TRACKING_URI", None)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
