"""Verification rules, one idea a file; the table of members is below."""

from specexp.rules.single import Greedy, Lenient, Token

RULES = {"token": Token, "lenient": Lenient, "greedy": Greedy}
