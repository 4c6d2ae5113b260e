"""Tables for a paper: LaTeX with booktabs' rules, from rows of text."""

import re
from collections.abc import Sequence

# What LaTeX reads as something else, and how it is written to be read as it stands.
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
}


def escape(text: str) -> str:
    """``text`` as LaTeX prints it; a minus before a digit is a minus sign."""
    written = "".join(SPECIAL.get(letter, letter) for letter in text).replace("$>$=", r"$\geq$")
    return re.sub(r"(^|[ \[])-(?=\d)", r"\1$-$", written)


def booktabs(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A ``tabular`` of ``rows`` under ``header``, left-aligned; it needs \\usepackage{booktabs}."""
    lines = [" & ".join(escape(cell) for cell in row) + r" \\" for row in (header, *rows)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'l' * len(header)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
