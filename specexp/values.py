"""What a value in the config may be, written once, beside the field: ``sigma: Annotated[float, Range(0)] = 0.3``.

``read`` turns a node of plain data into a frozen dataclass, or into one line that names the key, the value and what
would be right.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from specexp.errors import UserError

Member = TypeVar("Member")
LARGEST = sys.float_info.max  # a whole number in the config may be larger
PASSED_OVER = ("name", "import")  # which member it is, and where it comes from
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", tuple: "a list"}


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, the ends included unless ``above`` says that low is not."""

    low: float
    high: float = math.inf
    above: bool = False

    def __contains__(self, value: float) -> bool:
        return (value > self.low if self.above else value >= self.low) and value <= self.high

    def __str__(self) -> str:
        upper = "" if self.high == math.inf else f" and <= {self.high:g}"
        return f"{'>' if self.above else '>='} {self.low:g}{upper}"


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def __contains__(self, value: str) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return ", ".join(self.words[:-1]) + f" or {self.words[-1]}"


def read(member: type[Member], node: Mapping[str, Any], group: str = "") -> Member:
    """``member`` with the values of ``node``, whose keys are its fields (``name`` is passed over); UserError for a key
    that it lacks or that is missing, and for a value of the wrong type or out of range."""
    hints = get_type_hints(member, include_extras=True)
    known = [field.name for field in fields(member)]  # type: ignore[arg-type]
    for key in node:
        if key not in known and key not in PASSED_OVER:
            has = ", ".join(known) or "none of its own"
            right = f"{group}={node.get('name')} has no such key; its keys: {has}"
            raise UserError(f"{group}.{key}={shown(node[key])}: {right}")
    missing = [key for key in known if key not in node]
    if missing:
        raise UserError(f"{group}.{missing[0]}: missing; {group}={node.get('name')} needs it")
    return member(**{key: value(f"{group}.{key}".lstrip("."), node[key], hints[key]) for key in known})


def refuse_unreadable(member: type) -> None:
    """TypeError naming the first field whose annotation is none of a config's values (NameError: unknown)."""
    hints = get_type_hints(member, include_extras=True)
    for field in fields(member):
        if _parts(hints[field.name])[0] not in WORDS:
            known = ", ".join(kind.__name__ for kind in WORDS)
            raise TypeError(f"the field {field.name} is a {field.type}; a config's values are {known}")


def value(key: str, given: Any, hint: Any) -> Any:
    """``given`` as ``hint`` (a type, perhaps optional, perhaps Annotated with a Range or OneOf) wants it."""
    kind, limits, optional = _parts(hint)
    if given is None and optional:
        return None
    converted = _converted(given, kind)
    if converted is None or any(converted not in limit for limit in limits):
        raise UserError(f"{key}={shown(given)}: must be {_wanted(kind, limits, optional)}")
    return converted


def shown(given: Any) -> str:
    """A config's value as a person writes it there, not as Python does: null, true, [2, 1], a word without quotes."""
    if isinstance(given, Mapping):
        return f"{{{', '.join(f'{key}: {shown(part)}' for key, part in given.items())}}}"
    if isinstance(given, Sequence) and not isinstance(given, str):
        return f"[{', '.join(map(shown, given))}]"
    return "null" if given is None else str(given).lower() if isinstance(given, bool) else str(given)


def _parts(hint: Any) -> tuple[type, tuple[Any, ...], bool]:
    limits: tuple[Any, ...] = ()
    optional = False
    while get_origin(hint) in (Union, UnionType, Annotated):
        if get_origin(hint) in (Union, UnionType):
            optional = True
            hint = next(part for part in get_args(hint) if part is not type(None))
        else:
            limits, hint = get_args(hint)[1:], get_args(hint)[0]
    return get_origin(hint) or hint, limits, optional


def _converted(given: Any, kind: type) -> Any:
    """``given`` as ``kind``, or None where it is none: numbers are never read out of text, nor out of booleans."""
    if kind is float:
        number = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= LARGEST
        return float(given) if number else None
    if kind is tuple:
        return _frozen(given) if isinstance(given, list | tuple) else None
    fits = isinstance(given, kind) and (kind is bool or not isinstance(given, bool))
    return given if fits else None


def _frozen(given: Any) -> Any:
    return tuple(_frozen(part) for part in given) if isinstance(given, list | tuple) else given


def _wanted(kind: type, limits: tuple[Any, ...], optional: bool) -> str:
    ranges = " ".join(str(limit) for limit in limits)
    wanted = ranges if kind is str and ranges else f"{WORDS[kind]} {ranges}".strip()
    return f"{wanted}, or null" if optional else wanted
