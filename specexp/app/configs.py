"""The YAML files: where they are, and what each says of itself in its first two lines."""

import itertools
from pathlib import Path
from typing import NamedTuple

import specexp
from specexp import plugins, values
from specexp.errors import UserError

GROUPS = ("target", "draft", "rule", "length", "cost", "tracking", "experiment")


class Entry(NamedTuple):
    """A YAML of a group: the command that its comment opens with, what the rest of that says it is, its keys, and the
    package, or folder, that brings it (empty for ours)."""

    name: str
    command: str
    told: str
    keys: list[str]
    origin: str = ""


def conf_dir() -> Path:
    """The configs of this very code: a checkout's ``conf/`` where the package lies in one, else the wheel's copy.

    A folder beside the package counts as a checkout only if its ``pyproject.toml`` is ours, so that neither a stale
    copy in the package nor a foreign ``conf`` ever wins.
    """
    package = Path(specexp.__file__).parent
    for folder in (package.parent / "conf", package / "conf"):
        if (folder / "config.yaml").is_file() and (folder.parent == package or _is_ours(folder.parent)):
            return folder
    raise UserError(f"conf: no config.yaml beside or inside {package}; install specexp again")


def _is_ours(checkout: Path) -> bool:
    project = checkout / "pyproject.toml"
    return project.is_file() and 'name = "specexp"' in project.read_text(encoding="utf-8").splitlines()


def given_folders(config_dir: str | None) -> list[tuple[str, Path]]:
    """(what the user called it, folder) of ``--config-dir``; UserError where there is none of that name."""
    if config_dir is None:
        return []
    path = Path(config_dir).resolve()
    if not path.is_dir():
        raise UserError(f"--config-dir={config_dir}: no such folder; give one that holds groups, e.g. rule/")
    return [(config_dir, path)]


def entries(group: str, config_dir: str | None = None) -> list[Entry]:
    """The YAMLs of a group by name, ours, then those of installed packages and of the user's folder; none where there
    is no such folder. A preset's own points, in a folder of its name, are not among them."""
    folders = [("", conf_dir()), *plugins.config_folders(), *given_folders(config_dir)]
    return [_entry(path, origin) for origin, folder in folders for path in sorted((folder / group).glob("*.yaml"))]


def _entry(path: Path, origin: str) -> Entry:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    top = itertools.takewhile(lambda line: line.startswith("#"), lines)
    comment = [line.removeprefix("#").strip() for line in top if "@package" not in line]
    command = next((line for line in comment if line.startswith("python -m specexp")), "")
    told = " ".join(line for line in comment if line != command)
    keys = [line.partition(":")[0] for line in lines if line and line[0].isalpha()]
    return Entry(path.stem, command, told, [key for key in keys if key not in values.PASSED_OVER], origin)


def top_keys() -> list[tuple[str, str, str]]:
    """(key, default, what it is) of each key at the config's top."""
    lines = (conf_dir() / "config.yaml").read_text(encoding="utf-8").splitlines()
    found = [line.partition(" # ") for line in lines if " # " in line and line[0].isalpha()]
    return [(*_pair(line), told) for line, _, told in found]


def _pair(line: str) -> tuple[str, str]:
    key, _, default = line.partition(": ")
    return key, default
