"""What can be wrong with ``key=value`` words, found before Hydra meets them or told in one line after it refused.

Every message names the key, the value and what would be right.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from specexp.app.configs import GROUPS
from specexp.errors import UserError
from specexp.values import PASSED_OVER, shown

Holders = Callable[[str, str], list[str]]  # (group, key) -> its members that have the key
LONGEST_KEY = 200


def parse(words: Iterable[str]) -> list[Override]:
    """``key=value`` words as Hydra reads them; UserError for a word that it cannot read."""
    parser = OverridesParser.create()
    return [_parse_one(parser, word) for word in words]


def is_no_preset(override: Override) -> bool:
    """Whether it is ``experiment=null``, the default, which Hydra takes in a defaults list but not as a word."""
    return override.key_or_group == "experiment" and not override.is_sweep_override() and override.value() is None


def _parse_one(parser: OverridesParser, word: str) -> Override:
    if len(word.partition("=")[0]) > LONGEST_KEY:  # Hydra would ask the file system for a group of that name
        raise UserError(f"{word[:40]}...: no such key; none is longer than {LONGEST_KEY} characters")
    try:
        return parser.parse_override(word)
    except HydraException as error:
        key, equals, value = word.partition("=")
        reason = str(error).split("\n")[0]
        if not equals:
            raise UserError(f"{word}: not key=value; a command such as list or report comes first") from error
        raise UserError(f"{word}: cannot be read ({reason}); quote the value: \"{key}='{value}'\"") from error


def nearest(word: str, choices: Iterable[str]) -> str:
    """``did you mean X`` where a choice looks like ``word``, else the whole list of them."""
    known = sorted(choices)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"


def refuse_several(given: Sequence[Override]) -> None:
    """UserError where several values were given to a single run."""
    for override in given:
        if override.is_sweep_override():
            raise UserError(
                f"{override.input_line}: several values for one run; add -m to run them all "
                f"(a list is written {override.get_key_element()}=[...])"
            )


def refuse_unknown(given: Sequence[Override], members_of: Callable[[str], list[str]]) -> None:
    """UserError for a member that its group lacks, a group given twice, a key taken out."""
    seen: dict[str, Override] = {}
    for override in given:
        group = override.key_or_group
        members = members_of(group)
        _refuse_name(override, members_of)
        if override.is_delete() and not override.is_hydra_override():
            raise UserError(f"{override.input_line}: {group} cannot be left out; give it a value, {group}=...")
        if not members and group != "experiment":
            continue
        if group in seen:
            raise UserError(f"{override.input_line}: {group} is given twice ({seen[group].input_line}); keep one")
        seen[group] = override
        _refuse_member(override, members)


def _refuse_name(override: Override, members_of: Callable[[str], list[str]]) -> None:
    """``target.name=fixed`` would put one member's name on another's keys."""
    group, _, key = override.key_or_group.rpartition(".")
    if key == "name" and group and members_of(group):
        value = str(override.input_line).partition("=")[2]
        raise UserError(f"{override.input_line}: a member brings keys of its own; write {group}={value}")


def _refuse_member(override: Override, members: list[str]) -> None:
    group, value = override.key_or_group, override.value()
    if override.is_sweep_override() or (value is None and group == "experiment"):
        return  # each value comes back as a cell's own
    if isinstance(value, list | dict):
        raise UserError(
            f"{override.input_line}: one {group} at a time; -m {group}={','.join(map(str, value))} runs each"
        )
    if str(value) not in members:
        raise UserError(f"{group}={value}: no such {group}; {_members(group, str(value), members)}")


def _members(group: str, value: str, members: list[str]) -> str:
    if group == "hydra/launcher" and value == "joblib":
        return "install it with: pip install 'specexp[joblib]'"
    close = difflib.get_close_matches(value, members, n=1)
    known = f"choose from {', '.join(sorted(name for name in members if '/' not in name))}"
    return f"did you mean {close[0]}? {known}" if close else known


def refuse_foreign(cfg: DictConfig, top_keys: Sequence[str]) -> None:
    """UserError for a top-level key that no run reads: a ``+key=value``, or a misspelt line of a preset."""
    for key in cfg:
        if key != "hydra" and key not in top_keys:
            raise UserError(f"{key!s}={shown(cfg[key])}: no such key; {nearest(str(key), set(top_keys) - {'hydra'})}")


def refuse_plain(cfg: DictConfig, groups: Sequence[str]) -> None:
    """UserError for a preset's ``tracking: none``, which puts a word where the member's keys should be."""
    for group in groups:
        node = cfg.get(group, {})
        if not isinstance(node, DictConfig | dict):
            right = f"override /{group}: {shown(node)}"
            raise UserError(f"{group}={shown(node)}: a member, not a value; write `{right}` in the defaults list")


def explain(error: Exception, given: Sequence[Override], base: DictConfig | None, holders: Holders) -> str:
    """Why Hydra refused, in one line: the first override whose key ``base`` lacks, else Hydra's own words.

    ``base`` is the config that the chosen members make by themselves, None where even they do not compose.
    """
    if isinstance(error, UnicodeDecodeError):
        chosen = ", ".join(str(override.input_line) for override in given if override.key_or_group in GROUPS)
        return f"{chosen or 'config'}: its YAML is not UTF-8 text; write it again"
    for override in given if base is not None else ():
        key = override.key_or_group
        parent, _, name = key.rpartition(".")
        node = OmegaConf.select(base, parent) if parent and base is not None else base
        if "/" not in key and not override.is_add() and not (isinstance(node, DictConfig) and name in node):
            return f"{override.input_line}: {missing(parent, name, node, base, holders)}"
    return one_line(error)


def missing(parent: str, name: str, node: Any, base: Any, holders: Holders) -> str:
    """That ``node``, the part of ``base`` called ``parent``, has no key ``name``, and which other member of the group
    has it, or which key is near."""
    if not isinstance(node, DictConfig):
        return f"there is no {parent}; {nearest(parent, _keys(base))}"
    keys = _keys(node)
    where = f"{parent}={node.name}" if parent and "." not in parent and "name" in node else parent
    head = f"{where} has no key '{name}'" if parent else f"there is no key '{name}'"
    having = [f"{parent}={member}" for member in holders(parent, name)] if parent in GROUPS else []
    if having:
        return f"{head}; {' or '.join(having)} has it"
    if not keys:
        return f"{head}; it has none"
    inside = (
        [] if parent else [f"{key}.{name}" for key in keys if isinstance(node[key], DictConfig) and name in node[key]]
    )
    close = inside or difflib.get_close_matches(name, keys, n=1)
    if close:
        return f"{head}; did you mean {'.'.join(filter(None, (parent, close[0])))}?"
    return f"{head}; {'it has' if parent else 'choose from'} {', '.join(sorted(keys))}"


def _keys(node: DictConfig) -> list[str]:
    return [str(key) for key in node if key not in (*PASSED_OVER, "hydra")]


def one_line(error: BaseException) -> str:
    """Hydra's message without its line breaks; its cause where it has nothing to say itself."""
    cause = str(error.__cause__ or "").split("\n")[0]
    own = str(error).partition("\nConfig search path")[0]
    text = "\n".join(filter(None, (own, cause))) or type(error).__name__
    return re.sub(r":?\s*\n\s*", "; ", text.strip())
