"""The benchmarks run and print their ratios; no time is asserted. The yardstick is checked by its numbers."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from specexp.observe import observe
from specexp.rules import RULES

ROOT = Path(__file__).parent.parent


def run(module: str, *arguments: str) -> str:
    words = [sys.executable, "-W", "error", "-m", f"benchmarks.{module}", *arguments]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout


def test_the_loop_is_the_notebooks() -> None:
    """The figures that the notebook's own code gives at seed 0, 5,000 steps."""
    out = run("loop")
    assert "alpha 0.891 · tokens/step 4.018 · closed form 4.024" in out
    assert "speedup 2.870 · TV 0.018" in out


@pytest.mark.parametrize(("gamma", "agrees"), [(4, True), (3, False)])
def test_the_loop_and_the_walk_do_the_same_work(gamma: int, agrees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens a step of the two, 2,000 steps each: within 5 standard errors (a false alarm in 2 million seeds), and a
    walk with another draft length is not."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.experiments import composed
    from benchmarks.loop import Loop

    loop = np.array(Loop(np.random.default_rng(1)).run(2000).tokens_by_step)
    experiment = composed(f"gamma={gamma}", "steps=2000")
    moments = observe(experiment.players, experiment.gamma, experiment.plan, gamma_max=gamma).moments
    walked = moments.mean("tokens")
    assert walked.value is not None
    error = np.sqrt(2 * loop.var() / len(loop))
    assert (abs(walked.value - loop.mean()) < 5 * error) == agrees


def test_walk_prints_ratios() -> None:
    out = run("walk", "1", "100")
    assert len(re.findall(r"us/step +[\d.]+ x the loop", out)) == 5


def test_rules_prints_ratios() -> None:
    out = run("rules", "1", "2000")
    assert len(re.findall(r"us/step +[\d.]+ x token", out)) == 2 * len(RULES)


@pytest.mark.slow
def test_paths_prints_microseconds_and_ratios() -> None:
    out = run("paths", "1", "2000")
    assert len(re.findall(r"[\d.]+ us a position", out)) == 1
    assert len(re.findall(r"[\d.]+ x V log V", out)) == 4
    assert len(re.findall(r"us/step +[\d.]+ x token", out)) == 2 * 2 * 2 * 5  # rules and steps, contexts, vocabularies


def test_command_prints_shares() -> None:
    out = run("command", "1", "3")  # the interpreter, --help, imports
    assert len(re.findall(r"[\d.]+% of the last", out)) == 3


def test_memory_prints_megabytes() -> None:
    megabytes, seconds = map(float, run("memory", "steps=64").split())
    assert 10 < megabytes < 500
    assert seconds > 0
