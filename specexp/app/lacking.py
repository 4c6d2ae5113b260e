"""Keys that some of a sweep's members lack: ``-m rule=token,lenient rule.lenience=0.3,0.5`` gives the lenience to the
cells of ``lenient`` and leaves it out of that of ``token``. A key that none of the sweep's members has is an error.
"""

from collections.abc import Callable, Iterator, Sequence

from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from specexp.app import overrides
from specexp.app.configs import GROUPS
from specexp.errors import UserError

FAMILIES = tuple(group for group in GROUPS if group not in ("tracking", "experiment"))  # those whose cells may differ
Chosen = Callable[[Sequence[Override]], DictConfig | None]  # what the members chosen by these words make by themselves


def lacking(given: Sequence[Override], members: DictConfig) -> list[Override]:
    """Those of ``given`` that set a key which the member of their group, in ``members``, lacks."""
    return [override for override in given if is_key(override) and not _has(members, override)]


def is_key(override: Override) -> bool:
    """Whether it sets a member's key; one that is added (``+rule.x=1``) or taken out is meant for every cell."""
    group, dot, _ = override.key_or_group.partition(".")
    return group in FAMILIES and bool(dot) and override.type == OverrideType.CHANGE


def _has(members: DictConfig, override: Override) -> bool:
    group, name = override.key_or_group.split(".")[:2]
    node = members.get(group)
    return not isinstance(node, DictConfig) or name in node  # what is no member is told of elsewhere


def refuse_keys_of_none(
    given: Sequence[Override], chosen: Chosen, is_choice: Callable[[Override], bool], holders: overrides.Holders
) -> None:
    """UserError for a key that no member of the sweep has, naming the nearest that one of them has.

    Nothing is said where a member cannot be composed: its own cell tells.
    """
    keys = [override for override in given if is_key(override)]
    found: list[DictConfig] = []
    for lines in _combinations([override for override in given if is_choice(override)]):
        members = chosen(overrides.parse(lines))
        if members is None:
            return
        found.append(members)
        keys = lacking(keys, members)
        if not keys:
            return
    raise UserError(f"{keys[0].input_line}: {_told(keys[0], found, holders)}")


def _combinations(choices: Sequence[Override]) -> Iterator[list[str]]:
    """Words that choose members: of each swept choice the first value, then, one choice at a time, its others. No
    combination matters here, for a member has its keys whatever it is combined with."""
    swept = {override.get_key_element(): _values(override) for override in choices}
    first = {key: values[0] for key, values in swept.items() if values}
    yield [f"{key}={value}" for key, value in first.items()]
    for key, values in swept.items():
        for other in values[1:]:
            yield [f"{one}={value}" for one, value in (first | {key: other}).items()]


def _values(override: Override) -> list[str]:
    if override.is_sweep_override():
        return list(override.sweep_string_iterator()) if override.is_discrete_sweep() else []
    return [override.get_value_element_as_str()]


def _told(override: Override, found: Sequence[DictConfig], holders: overrides.Holders) -> str:
    """As of a single run, of the sweep's members of that group taken as one."""
    group, _, name = override.key_or_group.partition(".")
    names = ",".join(dict.fromkeys(str(members[group].get("name")) for members in found))
    keys = {str(key): None for members in found for key in members[group]}
    every = OmegaConf.create({group: keys | {"name": names}})
    return overrides.missing(group, name, every[group], every, holders)
