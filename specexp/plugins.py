"""Members from outside of specexp: a class that a config names (``import: my_rules:Cautious``), or an entry point of an
installed package, which stands for such a line.
"""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache, reduce
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from specexp import values
from specexp.errors import UserError

CONFIGS = "specexp.conf"  # the entry points whose values are packages that hold YAMLs: a folder a group
PATH = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
TRACE = "HYDRA_FULL_ERROR=1 shows where"
NEEDED = {
    "target": ("model",),
    "draft": ("paths", "derive or model"),
    "rule": ("stop_probs", "next_probs", "reference", "lossless", "prefix_stable", "max_paths"),
    "length": ("lengths",),
    "cost": ("step",),
}


def located(config: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """``config`` with the ``import`` of each member that an installed package brings, so that it says by itself where
    all of its code is; ``tables`` are specexp's own members by family. UserError where two bring one name."""
    return {**config, **{family: _located(family, config[family], table) for family, table in tables.items()}}


def _located(family: str, node: Mapping[str, Any], table: Mapping[str, Any]) -> Mapping[str, Any]:
    if "name" not in node:
        raise UserError(f"{family}.name: missing; a member's YAML begins with `name: ...`")
    found = [] if "import" in node else [one for one in _brought(f"specexp.{family}s") if one.name == node["name"]]
    if not found:
        return node
    origins = [*(["specexp"] if node["name"] in table else []), *map(_origin, found)]
    if len(origins) > 1:
        raise UserError(f"{family}={node['name']}: brought by {' and by '.join(origins)}; rename one, or uninstall it")
    return {**node, "import": found[0].value}


def _brought(group: str) -> EntryPoints:
    return _read(group, tuple(sys.path))


@cache
def _read(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Once for each search path: it costs milliseconds, and a sweep asks for every cell."""
    return entry_points(group=group)


def _package(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist else entry_point.value


def _origin(entry_point: EntryPoint) -> str:
    return f"{_package(entry_point)} ({entry_point.value})"


def config_folders() -> list[tuple[str, Path]]:
    """(package's name, folder) of the YAMLs that installed packages bring; nothing of theirs is imported for it."""
    return [(_package(one), _folder(one)) for one in _brought(CONFIGS)]


def _folder(entry_point: EntryPoint) -> Path:
    top, *rest = entry_point.value.split(".")
    spec = importlib.util.find_spec(top)
    places = [Path(place, *rest) for place in (spec and spec.submodule_search_locations) or ()]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise UserError(
            f"{CONFIGS}: {_origin(entry_point)} is no folder of an installed package; mend its entry point, "
            f"{entry_point.name} = 'package.folder', or uninstall it"
        )
    return found


def member(family: str, node: Mapping[str, Any], table: Mapping[str, Any]) -> Any:
    """The member that ``node``, with an ``import``, describes, its values checked; UserError if there is none."""
    found = imported(family, node, table)
    try:
        return values.read(found, node, family)
    except UserError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".split("\n")[0]
        raise UserError(f"{family}.import={node['import']}: cannot be made ({told}); {TRACE}") from error


def imported(family: str, node: Mapping[str, Any], table: Mapping[str, Any]) -> Any:
    """The class that ``node["import"]`` names; UserError if it cannot be had or is no member of ``family``."""
    key = f"{family}.import={node['import']}"
    if node["name"] in table:
        raise UserError(f"{key}: {family}={node['name']} is specexp's own; give yours a `name` of its own")
    path = PATH.fullmatch(str(node["import"]))
    if path is None:
        raise UserError(f"{key}: must be module:attribute, e.g. my_rules:Cautious")
    found = _attribute(key, _module(key, path[1]), path[2])
    _refuse_foreign(key, family, found)
    return found


def _module(key: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise UserError(f"{key}: no module {error.name}, neither installed nor in the current folder") from error
        told = f"{type(error).__name__}: {error}".split("\n")[0]
        raise UserError(f"{key}: {name} cannot be imported ({told}); {TRACE}") from error


def _attribute(key: str, module: ModuleType, name: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        classes = [one for one, value in vars(module).items() if is_dataclass(value)]
        near = difflib.get_close_matches(name, classes, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(classes) or 'no dataclass'}"
        raise UserError(f"{key}: {module.__name__} has no {name}; {hint}") from error


def _refuse_foreign(key: str, family: str, found: Any) -> None:
    """UserError for what is no member of ``family``: a frozen dataclass with all that the others of it have."""
    if not (isinstance(found, type) and is_dataclass(found) and found.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise UserError(f"{key}: must be a frozen dataclass; write @dataclass(frozen=True) above the class")
    lacking = [needed for needed in NEEDED[family] if not any(_has(found, name) for name in needed.split(" or "))]
    lacking += sorted(found.__abstractmethods__) if inspect.isabstract(found) else []
    if lacking:
        raise UserError(f"{key}: lacks {', '.join(lacking)}; a {family} has {', '.join(NEEDED[family])}")
    try:
        values.refuse_unreadable(found)
    except (NameError, TypeError) as error:
        raise UserError(f"{key}: {error}") from error


def _has(member: type, name: str) -> bool:
    return hasattr(member, name) or name in member.__dataclass_fields__  # type: ignore[attr-defined]


def imports(config: Mapping[str, Any]) -> list[str]:
    """``module:attribute`` of each member from outside, in the config's order."""
    return [str(node["import"]) for node in config.values() if isinstance(node, Mapping) and "import" in node]


def fingerprints(config: Mapping[str, Any]) -> dict[str, str]:
    """``sha256:`` and 12 hex digits of each file that the config names and that is found: by module of one that brings
    a member from outside, by path of one that a member reads (a text, a tree). The config and its digest name them,
    this says which they were when they were read."""
    modules = [path.partition(":")[0] for path in imports(config)]
    nodes = [node for node in config.values() if isinstance(node, Mapping)]
    paths = [node["path"] for node in nodes if isinstance(node.get("path"), str)]
    files = {**{name: _file_of(name) for name in modules}, **{path: Path(path).expanduser() for path in paths}}
    return {name: f"sha256:{digits}" for name, file in files.items() if file and (digits := _fingerprint(file))}


def _file_of(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # whatever a package does on its import is told when it is built
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _fingerprint(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError:
        return None
