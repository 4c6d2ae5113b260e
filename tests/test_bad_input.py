"""Bad input: exit code 2, one clear line that names the key, the value and what would be right, nothing left behind."""

import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import specexp
from specexp.__main__ import main

PACKAGE = Path(specexp.__file__).parent.parent
FIXED = "target=fixed draft=fixed"

VALUES = [
    ("gamma=-1", "gamma=-1: must be a whole number >= 0"),
    ("gamma=2.5", "gamma=2.5: must be a whole number"),
    ("gamma=08", "gamma=08: must be a whole number"),
    ("gamma=null", "gamma=null: must be a whole number"),
    ("gamma=", "gamma=: must be a whole number"),
    ("steps=0", "steps=0: must be a whole number >= 1"),
    ("requests=0", "requests=0: must be"),
    ("seed=-1", "seed=-1: must be"),
    ("audit=maybe", "audit=maybe: must be true or false"),
    ("figures=pdf", "figures=pdf: must be all, png or none"),
    ("draft.sigma=-0.1", "draft.sigma=-0.1: must be a number >= 0"),
    ("draft=alpha draft.alpha=1.5", "draft.alpha=1.5: must be a number >= 0 and <= 1"),
    ("rule=lenient rule.lenience=0", "rule.lenience=0: must be a number > 0"),
    ("cost.target_ms=0", "cost.target_ms=0: must be a number > 0"),
    ("target.context=token", "target.context=token: must be step or position"),
    (f"{FIXED} target.probs=[0.5,0.6]", "target.probs=[0.5, 0.6]: sums to 1.1; probabilities must sum to 1"),
    (f"{FIXED} target.probs=[0.5,-0.5,1.0]", "each >= 0"),
    (f"{FIXED} target.probs=[0.5,nan]", "target.probs=[0.5, nan]"),
    (f"{FIXED} target.probs=0.5", "target.probs=0.5: must be a list"),
    (f"{FIXED} draft.probs=[0.5,0.5]", "a vocabulary of 4; give 4"),
    ("target=text draft=text target.path=nowhere.txt", "target.path=nowhere.txt: cannot be read"),
]
MEMBERS_AND_KEYS = [
    ("target=nope", "target=nope: no such target; choose from bigram, fixed, random, text"),
    ("draft=nois", "draft=nois: no such draft; did you mean noise?"),
    ("experiment=nope", "experiment=nope: no such experiment"),
    ("draft=[noise,alpha]", "one draft at a time; -m draft=noise,alpha runs each"),
    ("draft=text", "target=random draft=text: "),
    ("draft.paths=2", "rule=token verifies at most 1; take draft.paths=1"),
    ("gama=3", "gama=3: there is no key 'gama'; did you mean gamma?"),
    ("sigma=0.5", "sigma=0.5: there is no key 'sigma'; did you mean draft.sigma?"),
    ("draf=noise", "did you mean draft?"),
    ("draft.alpha=0.5", "draft.alpha=0.5: draft=noise has no key 'alpha'; draft=alpha has it"),
    ("draft.xyz=0.5", "draft.xyz=0.5: draft=noise has no key 'xyz'; it has greedy, paths, replacement, sigma"),
    ("length.widths=[2]", "length.widths=[2]: length=fixed has no key 'widths'; length=tree has it"),
    ("tracking=none tracking.uri=x", "tracking=none has no key 'uri'; tracking=local or tracking=server has it"),
    ("draft.sigm=0.5", "did you mean draft.sigma?"),
    ("rule.lenience=0.5", "rule=token has no key 'lenience'; rule=lenient has it"),
    ("rule.xyz=0.5", "rule=token has no key 'xyz'; it has none"),
    ("draft.sigma=[a,true,null]", "draft.sigma=[a, true, null]: must be a number"),
    ("foo.bar=1", "foo.bar=1: there is no foo"),
    ("+foo=1", "foo=1: no such key; choose from audit, cost,"),
    ("+draft.foo=1", "draft.foo=1: draft=noise has no such key"),
    ("+tracking.foo=1", "tracking.foo=1: tracking=local has no such key"),
    ("~gamma", "~gamma: gamma cannot be left out; give it a value"),
    ("~draft", "~draft: draft cannot be left out"),
    ("target=random target=fixed", "target=fixed: target is given twice (target=random); keep one"),
    ("target.name=fixed", "target.name=fixed: a member brings keys of its own; write target=fixed"),
    ("a" * 5000 + "=1", "aaa...: no such key; none is longer than 200 characters"),
    ("hydra/launcher=nope", "hydra/launcher=nope: no such hydra/launcher; choose from basic"),
    ("hydra.job.nam=x", "hydra.job has no key 'nam'"),
]
WORDS = [
    ("gamma=1,2", "gamma=1,2: several values for one run; add -m"),
    ("gamma=range(1,4)", "add -m"),
    ("experiment=a,b", "experiment=a,b: several values"),
    ("target.probs=a=b", "quote the value: \"target.probs='a=b'\""),
    ("target.probs=[0.1", "target.probs=[0.1: cannot be read"),
    ("déjà=vu", "déjà=vu: cannot be read"),
    ("gamma=1 steps", "steps: not key=value"),
    ("repotr outputs", "repotr: no such command; did you mean report?"),
    ("trace", "trace: no such command; choose from run, list"),
    ("--nope", "unrecognized arguments: --nope"),
    ("--config-dir nowhere", "--config-dir=nowhere: no such folder"),
    ("--resolve", "--resolve: only together with --cfg job"),
    ("-m --cfg job", "leave -m out"),
    ("--cfg job gama=3", "did you mean gamma?"),
    ("report", "report: which folder?"),
    ("report nowhere", "report nowhere: neither"),
    ("ui port=x", "port=x: a port is a whole number"),
    ("sync tracking=none", "tracking=none: there is no MLflow store"),
]
SWEEPS = [
    ("sweep=name", "sweep=name: names the folder of several runs; add -m"),
    ("-m gamma=1,2 sweep=a/b", "sweep=a/b: not a name"),
    ("-m gamma=1,2 sweep=..", "sweep=..: not a name"),
    ("-m sweep=a,b", "sweep=a,b: sweep cannot be swept"),
    ("-m experiment=a,b", "experiment=a,b: experiment cannot be swept (Hydra would drop the presets' own sweeps"),
    ("-m tracking=local,none", "tracking=local,none: tracking cannot be swept"),
    ("-m tracking.uri=a,b", "tracking cannot be swept"),
    ("-m figures=png,none", "figures cannot be swept"),
    ("-m gama=1,2", "gama=1: there is no key 'gama'; did you mean gamma?"),
    ("-m draft=noise,nope", "draft=nope: no such draft"),
    ("-m draft=alpha,noise draft.order=2", "draft.order=2: draft=alpha,noise has no key 'order'"),
    (
        "-m rule=token,lenient rule.lenienc=0.3,0.5",
        "rule=token,lenient has no key 'lenienc'; did you mean rule.lenience?",
    ),
    ("-m gamma=1,2 rule.lenience=0.5", "rule.lenience=0.5: rule=token has no key 'lenience'; rule=lenient has it"),
    ("-m rule=token,lenient draft.lenience=0.5", "draft.lenience=0.5: draft=noise has no key 'lenience'"),
    ("-m rule=token,lenient +rule.lenience=0.5", "Could not append"),
    ("-m draft=alhpa,noise draft.alpha=0.5", "draft=alhpa: no such draft; did you mean alpha?"),
    ("-m gamma=interval(1,4)", "gamma=interval(1,4): no list"),
    ("-m gamma=range(1,1)", "gamma=range(1,1): a list of values is empty"),
    ("-m hydra.job.name=a,b", "hydra.job.name=a,b"),
    ("-m figures=pdf gamma=1,2", "figures=pdf: must be all, png, none"),
    ("-m gamma=1,2 hydra.sweeper.max_batch_size=x", "max_batch_size"),
]
STORES = [
    ("tracking=server", "tracking.uri=null: tracking=server needs a server"),
    ("tracking.uri=file:///tmp/x", "tracking.uri=file:///tmp/x: MLflow no longer writes into plain folders"),
    ("tracking.uri=7", "tracking.uri=7: must be text"),
    ("-m gamma=1,2 tracking.uri=file:///tmp/x", "MLflow no longer writes into plain folders"),
]


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path / "outputs"


@pytest.mark.parametrize(("words", "told"), [*VALUES, *MEMBERS_AND_KEYS, *WORDS, *SWEEPS, *STORES])
def test_one_line_exit_code_2_and_nothing_left_behind(
    words: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(shlex.split(words, posix="'" in words))
    captured = capsys.readouterr()
    assert code == 2
    assert captured.err.startswith("specexp: ")
    assert captured.err.count("\n") == 1
    assert told in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "gamma=0",
        "draft.sigma=0",
        "target.vocab=1",
        f"{FIXED} target.probs=[0,1,0] draft.probs=[1,0,0]",
        f"{FIXED} target.probs=[0.5,0.5,0] draft.probs=[0,0.5,0.5]",
        f"{FIXED} target.probs=[1,0] draft.probs=[0.5,0.5]",
        "sweep=null",
        "experiment=null",
    ],
)
def test_the_edges_are_good_input(words: str, outputs: Path) -> None:
    """The negative control: what is next to bad input runs, and its numbers are numbers."""
    assert main([*words.split(), "steps=50", "figures=none", "tracking=none"]) == 0
    assert len(list(outputs.glob("runs/*/metrics.json"))) == 1


PRESETS = [
    (b"\xff\xfe\x00\x01", "experiment=mine: its YAML is not UTF-8 text"),
    (b"tracking: none\n", "tracking=none: a member, not a value; write `override /tracking: none`"),
    (b"draft: noise\n", "draft=noise: a member, not a value; write `override /draft: noise`"),
]


@pytest.mark.parametrize(("text", "told"), PRESETS)
def test_a_preset_of_no_use_is_told_in_one_line(
    text: bytes, told: str, tmp_path: Path, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_bytes(b"# @package _global_\n" + text)
    assert main(["--config-dir", str(tmp_path), "experiment=mine"]) == 2
    line = capsys.readouterr().err
    assert told in line
    assert line.count("\n") == 1
    assert not outputs.exists()


@pytest.mark.parametrize(
    ("redirected", "code", "told"),
    [(">&-", 0, ""), (">/dev/full", 1, "specexp: cannot write output"), ("| cat", 0, "")],
)
def test_output_that_goes_nowhere(redirected: str, code: int, told: str) -> None:
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -m specexp list {redirected}"
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    ended = subprocess.run(["bash", "-c", line], env=environ, capture_output=True, text=True)
    assert ended.returncode == code
    assert ended.stderr.startswith(told)
    assert ended.stderr.count("\n") == bool(told)


def test_a_current_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["steps=50"]) == 2
    assert capsys.readouterr().err == "specexp: the current folder is gone; cd to one that exists\n"


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
    return subprocess.run([sys.executable, "-m", "specexp", *words], env=environ, capture_output=True, text=True)


def test_a_process_ends_with_the_line_and_with_a_traceback_only_if_asked() -> None:
    short, long = run("gamma=-1"), run("gamma=-1", HYDRA_FULL_ERROR="1")
    assert (short.returncode, long.returncode) == (2, 2)
    assert short.stderr.startswith("specexp: gamma=-1: must be a whole number >= 0")
    assert short.stderr.count("\n") == 1
    assert "Traceback" in long.stderr
    assert long.stderr.endswith(short.stderr)


def test_outputs_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "file" / "deeper"):
        ended = run("steps=50", "figures=none", "tracking=none", SPECEXP_OUTPUTS=str(root))
        assert ended.returncode == 2
        assert f"SPECEXP_OUTPUTS={root}: " in ended.stderr
        assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("limit", [10, 1000])  # bytes a file: not even config.yaml fits; curves.csv does not
def test_a_full_disk_is_told_and_leaves_no_half_run(tmp_path: Path, limit: int) -> None:
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from specexp.__main__ import main; raise SystemExit(main(['steps=50', 'figures=none', 'tracking=none']))"
    )
    assert resource.RLIMIT_FSIZE is not None
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 2
    assert "no space left to write it" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list((tmp_path / "outputs" / "runs").iterdir()) == []
