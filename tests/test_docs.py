"""The documentation: what it tells people to type is typed here, and what it links to is there.

A bash block's lines that start with ``python -m specexp`` are run, document by document, in an empty folder. An HTML
comment above a block says what is special: ``fast: WORDS`` shortens its commands here (marker ``slow`` runs them as
they stand, and looks for the output shown below them), ``skip: WHY`` leaves it out, ``exit code N`` is how it ends,
``shell`` leaves it to test_packaging, which types all of it. A python, yaml or toml block whose first line is a path is
that file; one whose first line is ``# FILE, in TABLE`` belongs into
that table.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from specexp.__main__ import main

ROOT = Path(__file__).parent.parent
PAGES = sorted(page for folder in (".", "docs", "outputs") for page in (ROOT / folder).glob("*.md"))
TYPED = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block, and what the comment above it says."""

    kind: str
    body: str
    mark: str

    @property
    def path(self) -> str:
        """The file that its first line names; Hydra wants its own word before that."""
        return self.body.removeprefix("# @package _global_\n").split("\n", 1)[0].removeprefix("# ")

    def marked(self, word: str) -> str | None:
        """What follows ``word`` in its mark."""
        return self.mark.removeprefix(word).strip() if self.mark.startswith(word) else None

    def commands(self) -> Iterator[list[str]]:
        """The words after ``python -m specexp`` of each command in it."""
        for line in self.body.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:3] == ["python", "-m", "specexp"]:
                yield words[3:]


def blocks(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(match["kind"], match["body"], match["mark"] or "") for match in found]


def shortened(words: list[str], fast: str | None) -> list[str]:
    """``words`` with those of ``fast``, which give way to none; commands that are no runs stay as they are."""
    if fast is None or (words and "=" not in words[0] and words[0][0] != "-"):
        return words
    keys = {word.partition("=")[0] for word in fast.split()}
    return [word for word in words if word.partition("=")[0] not in keys] + fast.split()


def write(block: Block) -> None:
    Path(block.path).parent.mkdir(parents=True, exist_ok=True)
    Path(block.path).write_text(block.body, encoding="utf-8")


def is_file(block: Block) -> bool:
    return block.kind in ("python", "yaml", "toml") and re.fullmatch(r"\S+\.(py|yaml|toml)", block.path) is not None


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to type in, with the documentation beside it as in a checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECEXP_OUTPUTS", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def follow(page: Path, fast: bool, capsys: pytest.CaptureFixture[str]) -> int:
    """Does what the page says, in this process; how many commands that were."""
    run, printed = 0, ""
    for block in blocks(page):
        if block.kind == "text" and not fast:
            missing = [line for line in block.body.splitlines() if line not in printed]
            assert not missing, f"{page.name} shows what the program does not print: {missing}\n{printed}"
        if is_file(block):
            write(block)
        if block.kind != "bash" or block.marked("skip:") is not None:
            continue
        for words in block.commands():
            code = main(shortened(words, block.marked("fast:") if fast else None))
            printed = "".join(capsys.readouterr())
            assert code == int(block.marked("exit code") or 0), f"{page.name}: {shlex.join(words)}: {code}\n{printed}"
            run += 1
    return run


APART = ("extending.md", "tutorial.md")  # typed by the tests below, the tutorial as it stands by a slow one


@pytest.mark.parametrize("page", [page for page in TYPED if page.name not in APART], ids=lambda page: page.name)
def test_the_commands_run(page: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = follow(page, True, capsys)
    assert run or page.name in ("design.md", "metrics.md")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_the_commands_print_what_is_shown(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert follow(ROOT / name, False, capsys) > 0


def insert(block: Block) -> None:
    """Puts the block's lines into the table, and its import among the imports, of the file that it names."""
    name, table = block.path.split(", in ")
    imports = [line for line in block.body.splitlines()[1:] if line.startswith("from ")]
    entries = [line for line in block.body.splitlines()[1:] if line not in imports]
    text = Path(name).read_text(encoding="utf-8")
    for entry in entries:  # a key that is there already gets the new value
        text = re.sub(rf"^ *{re.escape(entry.split(':')[0])}: \(.*\),\n", "", text, flags=re.M)
    text, found = re.subn(rf"^({table}\b[^=\n]*= {{)", rf"\1 {' '.join(entries)} ", text, flags=re.M)
    assert found == 1, f"{name} has no table {table}"
    last = [match.end() for match in re.finditer(r"^from \S+ import [^(\n]+\n", text, re.M)][-1]
    Path(name).write_text(text[:last] + "".join(f"{line}\n" for line in imports) + text[last:], encoding="utf-8")


def extend(folder: Path) -> list[tuple[list[str], Block, str]]:
    """A copy of the project in ``folder``, with all of extending.md in it; its commands, and what each should print."""
    for part in ("specexp", "conf", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    typed: list[tuple[list[str], Block, str]] = []
    for block in blocks(ROOT / "docs" / "extending.md"):
        if is_file(block):
            write(block)
        elif block.kind == "python":
            insert(block)
        elif block.kind == "bash" and block.marked("shell") is None:
            typed += [(words, block, "") for words in block.commands()]
        elif block.kind == "text":
            typed[-1] = (*typed[-1][:2], block.body.strip())
    return typed


RUNNER = """
import json, sys
from specexp.__main__ import main
print([main(words) for words in json.load(sys.stdin)])
"""


def test_the_examples_of_extending_run(here: Path) -> None:
    typed = extend(here)
    done = subprocess.run(  # a process of its own: the package has grown
        [sys.executable, "-c", RUNNER],
        input=json.dumps([words for words, _, _ in typed]),
        capture_output=True,
        text=True,
        cwd=here,
        timeout=120,
        check=False,
    )
    codes = [int(block.marked("exit code") or 0) for _, block, _ in typed]
    assert done.stdout.splitlines()[-1] == str(codes), done.stdout + done.stderr
    for _, _, shown in typed:
        assert shown in done.stdout + done.stderr
    the_users_own_test_passes_and_sees_a_mistake(here)


def the_users_own_test_passes_and_sees_a_mistake(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_my_rules.py"]
    assert subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False).returncode == 0
    test = folder / "test_my_rules.py"
    test.write_text(test.read_text(encoding="utf-8").replace("Steep", "TooSteep"), encoding="utf-8")
    failed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert failed.returncode == 1
    assert "come with chance" in failed.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{page.name}: {target.name} has no heading {anchor}"


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_reached_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/{page.name}" in text for page in (ROOT / "docs").glob("*.md"))


def test_no_path_of_a_machine_is_told() -> None:
    for page in PAGES:
        assert not re.search(r"/(work|root|home|tmp)/", page.read_text(encoding="utf-8")), page.name


def test_a_broken_command_and_a_broken_link_are_seen(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("[gone](gone.md)\n\n```bash\npython -m specexp gama=4\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="gama=4"):
        follow(page, True, capsys)
    with pytest.raises(AssertionError, match="leads nowhere"):
        test_links_lead_somewhere(page)


def test_a_fast_setting_gives_way_to_none() -> None:
    assert shortened(["steps=5000", "gamma=2"], "steps=100 tracking=none") == ["gamma=2", "steps=100", "tracking=none"]
    assert shortened(["report", "folder"], "steps=100") == ["report", "folder"]
