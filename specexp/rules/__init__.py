"""Verification rules, one idea a file; the table of members is below."""

from typing import Any

from specexp.rules.block import Block
from specexp.rules.cascade import Cascade
from specexp.rules.gumbel import Gumbel
from specexp.rules.match import ExactMatch
from specexp.rules.recursive import Recursive
from specexp.rules.relaxed import Relaxed
from specexp.rules.several import KSequential, Naive
from specexp.rules.single import Greedy, Lenient, Token
from specexp.rules.synthetic import Synthetic
from specexp.rules.threshold import Threshold
from specexp.rules.transport import Transport
from specexp.rules.traversal import Traversal
from specexp.rules.typical import Typical
from specexp.rules.wrong import Wrong

RULES: dict[str, Any] = {
    "token": Token,
    "block": Block,
    "exact_match": ExactMatch,
    "gumbel": Gumbel,
    "greedy": Greedy,
    "lenient": Lenient,
    "typical": Typical,
    "cascade": Cascade,
    "relaxed": Relaxed,
    "threshold": Threshold,
    "synthetic": Synthetic,
    "recursive": Recursive,
    "k_sequential": KSequential,
    "transport": Transport,
    "naive": Naive,
    "traversal": Traversal,
    "wrong": Wrong,
}
