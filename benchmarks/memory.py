"""Peak memory of whole measurements, each in a process of its own.

``python -m benchmarks.memory``: all cases (minutes). ``python -m benchmarks.memory WORDS``: the one that
``python -m specexp WORDS`` would measure. Files, figures and tracking are left out.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path

CASES = {
    "the default run": ["steps=5000"],
    "128,256 tokens, 64 steps": ["target.vocab=128256", "steps=64"],
    "gamma 64, 2,000 steps": ["gamma=64", "steps=2000"],
    "ten million steps": ["steps=10000000"],
}
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of ru_maxrss


def main(words: list[str]) -> None:
    if words:
        print(*measured(words))
        return
    first = None
    for name, case in CASES.items():
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", *case], check=True, capture_output=True, text=True
        )
        megabytes, seconds = map(float, out.stdout.split())
        first = first or megabytes
        print(f"{name:26} {megabytes:6.0f} MB {megabytes / first:6.2f} x the first {seconds:8.1f} s", flush=True)


def measured(words: list[str]) -> tuple[float, float]:
    """Peak resident memory of this process in MB, and CPU seconds, once it has measured."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from benchmarks.experiments import composed
    from specexp.metrics import measure

    with threadpool_limits(1):
        measure(composed(*words))
    return peak() / 1e6, time.process_time()


def peak() -> float:
    """Bytes. Linux's own count begins with the program; getrusage's may hold what the parent had when it forked."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


if __name__ == "__main__":
    main(sys.argv[1:])
