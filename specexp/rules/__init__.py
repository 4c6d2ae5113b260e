"""Verification rules, one idea a file; the table of members is below."""

from typing import Any

from specexp.rules.single import Greedy, Lenient, Token
from specexp.rules.wrong import Wrong

RULES: dict[str, Any] = {"token": Token, "lenient": Lenient, "greedy": Greedy, "wrong": Wrong}
