"""What a value in the config may be, and the one line that says so."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from specexp.errors import UserError
from specexp.values import OneOf, Range, read, value

Share = Annotated[float, Range(0, 1, above=True)]
Count = Annotated[int, Range(1)]
Word = Annotated[str, OneOf(("target", "lenient"))]


@dataclass(frozen=True)
class Member:
    share: Share = 0.5
    count: Count | None = None
    word: Word = "target"
    rows: tuple[Any, ...] | None = None
    loud: bool = False


@pytest.mark.parametrize(
    ("given", "hint", "expected"),
    [
        (0.5, Share, 0.5),
        (1, Share, 1.0),  # a whole number is a number
        (1e-300, Share, 1e-300),
        (7, Count, 7),
        (10**30, Count, 10**30),
        (None, Count | None, None),
        (3, Count | None, 3),
        ("lenient", Word, "lenient"),
        ("any", str, "any"),
        (None, str | None, None),
        (True, bool, True),
        ([[1, 2], [3, 4]], tuple[Any, ...], ((1, 2), (3, 4))),
        ([], tuple[Any, ...] | None, ()),
        (-3.5, float, -3.5),
    ],
)
def test_right_values_are_taken(given, hint, expected):
    found = value("key", given, hint)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("given", "hint", "wanted"),
    [
        (0, Share, "a number > 0 and <= 1"),
        (1.0000001, Share, "a number > 0 and <= 1"),
        (float("nan"), Share, "a number > 0 and <= 1"),
        (float("inf"), float, "a number"),
        (-float("inf"), float, "a number"),
        (10**400, float, "a number"),
        ("0.5", Share, "a number > 0 and <= 1"),
        (True, Share, "a number > 0 and <= 1"),
        (None, Share, "a number > 0 and <= 1"),
        ([0.5], Share, "a number > 0 and <= 1"),
        (0, Count, "a whole number >= 1"),
        (2.5, Count, "a whole number >= 1"),
        (2.0, Count, "a whole number >= 1"),
        ("08", Count, "a whole number >= 1"),
        (True, Count, "a whole number >= 1"),
        (None, Count, "a whole number >= 1"),
        (0, Count | None, "a whole number >= 1, or null"),
        ("nearest", Word, "target or lenient"),
        (1, Word, "target or lenient"),
        (None, Word, "target or lenient"),
        (3, str | None, "text, or null"),
        (1, bool, "true or false"),
        ("true", bool, "true or false"),
        (0.4, tuple[Any, ...], "a list"),
        ("0.4,0.6", tuple[Any, ...] | None, "a list, or null"),
    ],
)
def test_wrong_values_are_refused_in_one_line(given, hint, wanted):
    """Key, value, what would be right."""
    with pytest.raises(UserError) as error:
        value("group.key", given, hint)
    shown = "null" if given is None else str(given).lower()  # true, not Python's True
    assert str(error.value) == f"group.key={shown}: must be {wanted}"


def test_a_node_becomes_a_member():
    node = {"name": "any", "share": 1, "count": 2, "word": "lenient", "rows": [[1]], "loud": True}
    assert read(Member, node, "rule") == Member(1.0, 2, "lenient", ((1,),), True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shrae": 1}, "rule.shrae=1: rule=mine has no such key; its keys: share, count, word, rows, loud"),
        ({"share": None}, "rule.share=null: must be a number > 0 and <= 1"),
        ({"rows": True}, "rule.rows=true: must be a list, or null"),
        ({"share": [None, False, "a"]}, "rule.share=[null, false, a]: must be a number > 0 and <= 1"),
        ({"share": {"a": (1, True)}}, "rule.share={a: [1, true]}: must be a number > 0 and <= 1"),
        ({"loud": 1}, "rule.loud=1: must be true or false"),
        ({"word": "x"}, "rule.word=x: must be target or lenient"),
    ],
)
def test_a_wrong_node_is_refused(change, message):
    node = {"name": "mine", "share": 0.5, "count": None, "word": "target", "rows": None, "loud": False}
    with pytest.raises(UserError) as error:
        read(Member, node | change, "rule")
    assert str(error.value) == message


def test_a_missing_key_is_refused():
    with pytest.raises(UserError, match=r"^rule.word: missing; rule=mine needs it$"):
        read(Member, {"name": "mine", "share": 0.5, "count": None, "rows": None, "loud": False}, "rule")


def test_a_member_without_keys():
    @dataclass(frozen=True)
    class Bare:
        pass

    assert read(Bare, {"name": "bare"}, "length") == Bare()
    with pytest.raises(UserError, match=r"length=bare has no such key; its keys: none of its own$"):
        read(Bare, {"name": "bare", "much": 1}, "length")


def test_top_level_keys_have_no_group():
    with pytest.raises(UserError, match=r"^count=0: must be a whole number >= 1, or null$"):
        read(Member, {"share": 0.5, "count": 0, "word": "target", "rows": None, "loud": False})
