"""Members from outside: named in a config, or brought by a package; what is wrong with one is told in one line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import specexp
from specexp import plugins, store
from specexp.__main__ import main
from specexp.app import console
from specexp.audit import trial
from specexp.rules.single import Lenient, Token
from specexp.rules.wrong import Wrong

PACKAGE = Path(specexp.__file__).parent.parent
QUICK = ["steps=50", "gamma=2", "gamma_max=2", "figures=none", "tracking=none"]
MINE = ["--config-dir=my_conf", "rule=cautious"]

RULES = """
from dataclasses import dataclass
from typing import Annotated

from specexp.rules.single import SingleRule, Token, excess, ratio
from specexp.values import Range


@dataclass(frozen=True)
class Cautious(SingleRule):
    caution: Annotated[float, Range(0, 1)] = 0.9

    lossless = True

    def chances(self, p, q):
        return self.caution * ratio(p, q)

    def replacement(self, p, q):
        return excess(p, q * self.chances(p, q))


class Hasty(Cautious):
    def replacement(self, p, q):
        return excess(p, q)


class Loose(Hasty):
    lossless = False


class Breaks(Cautious):
    def chances(self, p, q):
        raise ZeroDivisionError("by nought")


@dataclass(frozen=True)
class Refuses(Cautious):
    def __post_init__(self):
        raise ValueError("not today")


class Bare:
    pass


@dataclass
class Thawed:
    caution: float = 0.9


@dataclass(frozen=True)
class Claimless(SingleRule):
    def chances(self, p, q):
        return ratio(p, q)

    def replacement(self, p, q):
        return excess(p, q)


@dataclass(frozen=True)
class Half:
    caution: float = 0.9

    lossless = True

    def stop_probs(self, round):
        return None


@dataclass(frozen=True)
class Unfinished(SingleRule):
    lossless = True


@dataclass(frozen=True)
class Listed(Token):
    weights: list[float] = ()


@dataclass(frozen=True)
class Unknown(Token):
    weight: "Weight" = 0.0
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a user's module and YAML in it, in which the user types; forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    (tmp_path / "my_rules.py").write_text(RULES, encoding="utf-8")
    write_yaml("my_conf/rule/cautious.yaml", "name: cautious\nimport: my_rules:Cautious\ncaution: 0.9\n")
    monkeypatch.syspath_prepend(tmp_path)  # after the files: a folder is listed once
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write_yaml(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def folders(kind: str = "runs/*") -> list[Path]:
    return sorted(Path("outputs").glob(kind), key=lambda folder: folder.stat().st_mtime_ns)


def read(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))  # JSON is YAML


# ------------------------------------------------------------------------------------------------ named in a config


def test_a_class_that_a_yaml_names_runs_and_passes_the_audit() -> None:
    for caution in ("0.9", "0.9", "0.5"):
        assert main([*QUICK, *MINE, "audit=true", f"rule.caution={caution}"]) == 0
    one, two, other = folders()
    assert (one / "metrics.json").read_bytes() == (two / "metrics.json").read_bytes()
    assert (one / "config.yaml").read_bytes() == (two / "config.yaml").read_bytes()
    assert (one / "metrics.json").read_bytes() != (other / "metrics.json").read_bytes()
    assert read(one, "config.yaml")["rule"] == {"name": "cautious", "import": "my_rules:Cautious", "caution": 0.9}
    assert read(one, "metrics.json")["audit_bias"] < 1e-12
    assert (
        read(one, "run.json")["versions"]["my_rules"]
        == plugins.fingerprints({"rule": {"import": "my_rules:C"}})["my_rules"]
    )


def test_the_import_is_a_part_of_the_digest_and_the_files_hash_of_the_record() -> None:
    Path("copied.py").write_text(f"{RULES}\n", encoding="utf-8")
    for module in ("my_rules", "copied"):
        assert main([*QUICK, *MINE, f"rule.import={module}:Cautious"]) == 0
    one, two = (read(folder, "run.json") for folder in folders())
    assert one["digest"] != two["digest"]
    assert one["versions"]["my_rules"].startswith("sha256:")
    assert one["versions"]["my_rules"] != two["versions"]["copied"]
    assert main([*QUICK]) == 0  # the negative control
    assert not [value for value in read(folders()[-1], "run.json")["versions"].values() if "sha256" in str(value)]


def test_a_false_claim_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, *MINE, "audit=true", "rule.import=my_rules:Hasty"]) == 2
    assert "specexp: rule=cautious: claims lossless=True and is not" in capsys.readouterr().err
    assert folders() == []


MEMBERS = """
from specexp.costs import Ratio
from specexp.lengths import Fixed
from specexp.models.derived import Noise
from specexp.models.table import FixedDraft, FixedTarget


class Target(FixedTarget): pass
class Derived(Noise): pass
class Length(Fixed): pass
class Cost(Ratio): pass


class Draft(FixedDraft):
    def model(self, target, vocab, seed):
        assert type(target) is Target
        return super().model(target, vocab, seed)
"""


@pytest.mark.parametrize(
    "draft", ["{import: 'members:Derived', sigma: 0.3}", "{import: 'members:Draft', probs: [0.5, 0.5]}"]
)
def test_every_family_may_come_from_outside(draft: str) -> None:
    Path("members.py").write_text(MEMBERS, encoding="utf-8")
    write_yaml("my_conf/target/mine.yaml", "{name: mine, import: 'members:Target', probs: [0.4, 0.6]}")
    write_yaml("my_conf/draft/mine.yaml", f"{draft[:-1]}, name: mine, paths: 1, replacement: true, greedy: false}}")
    write_yaml("my_conf/length/mine.yaml", "{name: mine, import: 'members:Length'}")
    write_yaml(
        "my_conf/cost/mine.yaml",
        "{name: mine, import: 'members:Cost', ratio: 0.5, operations: 0.1, batch: false, verify: 0}",
    )
    words = [f"{family}=mine" for family in ("target", "draft", "length", "cost")]
    assert main([*QUICK, *MINE, *words]) == 0
    assert read(folders()[0], "metrics.json")["tokens_per_step_exact"] > 1


WRONG = [
    (
        "nowhere:Cautious",
        "rule.import=nowhere:Cautious: no module nowhere, neither installed nor in the current folder",
    ),
    ("my_rules.deep:Cautious", "no module my_rules.deep"),
    ("my_rules:Cautios", "my_rules has no Cautios; did you mean Cautious?"),
    ("my_rules:X", "my_rules has no X; it has "),
    ("my_rules", "rule.import=my_rules: must be module:attribute, e.g. my_rules:Cautious"),
    ("7", "rule.import=7: must be module:attribute"),
    ("null", "must be module:attribute"),
    ("my_rules:Bare", "must be a frozen dataclass"),
    ("my_rules:Thawed", "must be a frozen dataclass"),
    ("my_rules:ratio", "must be a frozen dataclass"),
    ("my_rules:Claimless", "lacks lossless; a rule has stop_probs, next_probs, reference, lossless,"),
    ("my_rules:Half", "lacks next_probs, reference, prefix_stable, max_paths; a rule has"),
    ("my_rules:Unfinished", "lacks chances, replacement; a rule has"),
    ("my_rules:Listed", "the field weights is a list[float]; a config's values are int, float, str, bool, tuple"),
    ("my_rules:Unknown", "name 'Weight' is not defined"),
    ("my_rules:Refuses", "cannot be made (ValueError: not today); HYDRA_FULL_ERROR=1 shows where"),
    ("raises:Cautious", "raises cannot be imported (ZeroDivisionError: division by zero)"),
    ("needs:Cautious", "needs cannot be imported (ModuleNotFoundError: No module named 'not_there')"),
    ("leaves:Cautious", "leaves cannot be imported (SystemExit: 3)"),
    ("garbled:Cautious", "garbled cannot be imported (SyntaxError"),
]


@pytest.mark.parametrize(("path", "told"), WRONG)
def test_what_is_no_member_is_told_in_one_line(path: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"raises": "1 / 0", "needs": "import not_there", "leaves": "raise SystemExit(3)", "garbled": "def ("}
    for name, text in texts.items():
        Path(f"{name}.py").write_text(text, encoding="utf-8")
    assert main([*QUICK, *MINE, f"rule.import={path}"]) == 2
    line = capsys.readouterr().err
    assert told in line
    assert line.startswith("specexp: rule.import=")
    assert line.count("\n") == 1
    assert folders() == []


def test_other_families_lack_things_too(capsys: pytest.CaptureFixture[str]) -> None:
    needs = {"target": "model", "draft": "paths, derive or model", "length": "lengths", "cost": "step"}
    for family, lacking in needs.items():
        write_yaml(f"my_conf/{family}/mine.yaml", "name: mine\nimport: my_rules:Cautious\ncaution: 0.9\n")
        assert main([*QUICK, "--config-dir=my_conf", f"{family}=mine"]) == 2
        assert (
            f"{family}.import=my_rules:Cautious: lacks {lacking}; a {family} has {lacking}" in capsys.readouterr().err
        )


def test_a_name_of_specexps_own_is_refused_and_so_is_a_yaml_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    write_yaml("my_conf/rule/cautious.yaml", "name: token\nimport: my_rules:Cautious\ncaution: 0.9\n")
    assert main([*QUICK, *MINE]) == 2
    assert "rule=token is specexp's own; give yours a `name` of its own" in capsys.readouterr().err
    write_yaml("my_conf/rule/cautious.yaml", "import: my_rules:Cautious\ncaution: 0.9\n")
    assert main([*QUICK, *MINE]) == 2
    assert "rule.name: missing" in capsys.readouterr().err


def test_a_yaml_that_two_folders_hold_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_yaml("my_conf/rule/lenient.yaml", "name: lenient\nlenience: 0.9\nresidual: target\n")
    assert main([*QUICK, "--config-dir=my_conf", "rule=lenient"]) == 2
    line = capsys.readouterr().err
    assert "rule=lenient: a lenient.yaml each in " in line
    assert str(Path("my_conf").resolve()) in line
    assert main([*QUICK, "--config-dir=my_conf", "rule=block"]) == 0  # the negative control


def test_keys_are_checked_as_those_of_any_member(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, *MINE, "rule.caution=2"]) == 2
    assert main([*QUICK, *MINE, "rule.cautio=1"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == "specexp: rule.caution=2: must be a number >= 0 and <= 1"
    assert second == "specexp: rule.cautio=1: rule=cautious has no key 'cautio'; did you mean rule.caution?"


def test_a_bug_of_a_member_is_not_called_one_of_specexp_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, *MINE, "rule.import=my_rules:Breaks"]) == 1
    assert "by nought; this is a bug of specexp or of my_rules:Breaks, its traceback is in" in capsys.readouterr().err


def test_a_lossy_rule_is_called_so_while_it_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--config-dir=my_conf", "rule.import=my_rules:Loose"]
    assert main([*QUICK, *words, "rule=cautious"]) == 0
    assert "not claimed by this rule" in capsys.readouterr().out
    assert main([*QUICK, *words, "-m", "rule=token,cautious", "sweep=s"]) == 0
    token, loose = capsys.readouterr().out.splitlines()[1:3]
    assert "(lossy)" in loose
    assert "(lossy)" not in token
    del sys.modules["my_rules"]
    Path("my_rules.py").unlink()
    console.show_sweep(store.read_sweep(Path("outputs/sweeps/s")), {})
    assert "lossy" not in capsys.readouterr().out


# -------------------------------------------------------------------------------------------- brought by a package


def install(name: str, entry_points: str, module: str = "my_rules") -> None:
    """What pip leaves of a package: its record beside its module, in a folder that is searched."""
    record = Path(f"{name.replace('-', '_')}-1.0.dist-info")
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (record / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    plugins._read.cache_clear()


BROUGHT = """
[specexp.rules]
cautious = my_rules:Cautious
[specexp.conf]
theirs = theirs.conf
"""


@pytest.fixture
def package(here: Path) -> Iterator[Path]:
    """A package ``theirs`` that brings rule=cautious and its YAML."""
    write_yaml("theirs/__init__.py", "raise RuntimeError('imported for its YAMLs')")
    text = "# python -m specexp rule=cautious\n# Keeps a little less.\nname: cautious\ncaution: 0.9\n"
    write_yaml("theirs/conf/rule/cautious.yaml", text)
    yield here
    plugins._read.cache_clear()


def test_a_package_brings_its_member_with_nothing_else_typed(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "rule=cautious"]) == 2  # the negative control: it is not installed yet
    assert "rule=cautious: no such rule" in capsys.readouterr().err
    install("their-rules", BROUGHT)
    assert main([*QUICK, "rule=cautious", "audit=true"]) == 0
    assert main([*QUICK, "-m", "rule=token,cautious", "rule.caution=0.5,1", "sweep=s"]) == 0
    capsys.readouterr()
    for folder in (folders()[0], next(path.parent for path in Path("outputs/sweeps").rglob("metrics.json"))):
        assert "import" in read(folder, "config.yaml")["rule"] or "token" in read(folder, "config.yaml")["rule"]["name"]
    assert read(folders()[0], "config.yaml")["rule"]["import"] == "my_rules:Cautious"
    assert main(["list"]) == 0
    assert "  cautious      Keeps a little less. (their-rules) [rule.caution]\n" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "  cautious      Keeps a little less. (their-rules)\n" in capsys.readouterr().out


def test_a_config_of_a_package_says_by_itself_where_its_code_is(package: Path) -> None:
    """The same config by an import and by an entry point: one digest, the same bytes."""
    assert main([*QUICK, *MINE]) == 0
    install("their-rules", BROUGHT)
    assert main([*QUICK, "rule=cautious"]) == 0
    one, two = folders()
    for name in ("config.yaml", "metrics.json", "curves.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.parametrize("command", ["rule=token", "rule=cautious"])
def test_two_of_one_name_are_refused_with_both_named(
    command: str, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("their-rules", BROUGHT.replace("[specexp.conf]", "token = my_rules:Loose\n[specexp.conf]"))
    install("other-rules", "[specexp.rules]\ncautious = other:Cautious\n")
    assert main([*QUICK, command]) == 2
    line = capsys.readouterr().err
    owners = "specexp" if command == "rule=token" else "other-rules (other:Cautious)"
    assert owners in line
    assert "their-rules (my_rules:" in line
    assert line.count("\n") == 1
    assert main([*QUICK, "rule=block"]) == 0  # the negative control: what is not asked for is not in the way


def test_a_folder_that_a_package_does_not_have_is_told(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install("their-rules", BROUGHT.replace("theirs.conf", "theirs.config"))
    for words in (QUICK, ["list"], ["--help"]):
        assert main(words) == 2
        assert "specexp.conf: their-rules (theirs.config) is no folder" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- in real processes


def run(command: list[str], *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
    return subprocess.run([sys.executable, *command, *words], env=environ, capture_output=True, text=True, timeout=120)


@pytest.fixture
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """``python -m specexp``, and a console script as pip writes them, in another folder."""
    script = tmp_path_factory.mktemp("bin") / "specexp"
    script.write_text("import sys\nfrom specexp.__main__ import main\nsys.exit(main())\n", encoding="utf-8")
    return {"module": ["-m", "specexp"], "script": [str(script)]}


def test_module_and_script_look_in_the_current_folder_unless_told_not_to(commands: dict[str, list[str]]) -> None:
    for command in commands.values():
        done = run(command, *QUICK, *MINE)
        assert (done.returncode, done.stderr) == (0, "")
    one, two = folders()
    assert (one / "metrics.json").read_bytes() == (two / "metrics.json").read_bytes()
    safe = run(commands["script"], *QUICK, *MINE, PYTHONSAFEPATH="1")
    assert safe.returncode == 2
    assert "no module my_rules" in safe.stderr


@pytest.mark.slow
def test_workers_of_another_launcher_find_it_too(commands: dict[str, list[str]]) -> None:
    words = [*QUICK, "--config-dir=my_conf", "-m", "rule=token,cautious", "rule.caution=0.5,1"]
    for command in commands.values():
        for launcher in ("basic", "joblib"):
            done = run(command, *words, f"hydra/launcher={launcher}", f"sweep={launcher}")
            assert (done.returncode, done.stderr) == (0, "")
        tables = [Path(f"outputs/sweeps/{launcher}/sweep.csv").read_bytes() for launcher in ("basic", "joblib")]
        assert tables[0] == tables[1]
        assert tables[0].count(b",done,") == 3


# ------------------------------------------------------------------------------------------- in a test of one's own


def test_a_rule_is_put_on_trial_by_itself() -> None:
    assert trial(Token()).lossless
    verdict = trial(Lenient(0.5))
    assert not verdict.lossless
    assert "come with chance" in verdict.example
    assert trial(Wrong("bonus_draft"), gamma=2, seed=3).bias > 0.01
    assert trial(Lenient(1.0)).bias < 1e-12


def test_fingerprints_are_of_what_is_found() -> None:
    members = {
        "rule": {"import": "my_rules:A"},
        "draft": {"import": "nowhere:B"},
        "target": {"name": "random"},
        "gamma": 4,
    }
    assert list(plugins.fingerprints(members)) == ["my_rules"]
    assert plugins.imports(members) == ["my_rules:A", "nowhere:B"]
    assert json.dumps(plugins.located({"rule": {"name": "token"}}, {"rule": {}})) == '{"rule": {"name": "token"}}'


def test_a_file_that_a_member_reads_has_its_fingerprint_too() -> None:
    """The same path with another content is another print: the digest alone would not tell."""
    config = {"length": {"name": "tree", "path": "tree.txt"}, "target": {"name": "text", "path": None}, "gamma": 1}
    assert plugins.fingerprints(config) == {}
    Path("tree.txt").write_text("0\n", encoding="utf-8")
    before = plugins.fingerprints(config)
    Path("tree.txt").write_text("0\n1\n", encoding="utf-8")
    assert list(before) == ["tree.txt"]
    assert plugins.fingerprints(config) != before


def test_list_and_help_show_the_members_of_the_users_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """After ours, with the folder's name and their keys; without the flag they are not there."""
    write_yaml("my_conf/rule/steep.yaml", "name: steep\nimport: my_rules:Steep\nslope: 2\n")
    for words, told in ((["list"], "[rule.slope]"), (["--help"], "(my_conf)")):
        assert main([*words, "--config-dir=my_conf"]) == 0
        assert told in next(line for line in capsys.readouterr().out.splitlines() if "steep" in line)
        assert main(words) == 0
        assert "steep" not in capsys.readouterr().out
    assert main(["list", "--config-dir=nowhere"]) == 2
    assert "--config-dir=nowhere: no such folder" in capsys.readouterr().err
