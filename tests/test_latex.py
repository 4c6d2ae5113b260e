"""LaTeX tables: what stands in a cell is what is printed, and the rules are booktabs'."""

import shutil
import subprocess
from pathlib import Path

import pytest

from specexp.latex import booktabs, escape

CELLS = ["a_b", "50 %", "<1e-12", "x & y", r"C:\dir", "{1}", "~^#$", "α γ", "-0.17 % [-1, 2]", ">= 16"]


def test_a_table_is_written_with_booktabs_rules() -> None:
    assert booktabs(["rule", "speedup"], [["token", "2.86 [2.85, 2.87]"]]) == (
        "\\begin{tabular}{ll}\n\\toprule\nrule & speedup \\\\\n\\midrule\n"
        "token & 2.86 [2.85, 2.87] \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


def test_what_latex_would_read_otherwise_is_escaped() -> None:
    assert [escape(cell) for cell in CELLS] == [
        r"a\_b",
        r"50 \%",
        r"$<$1e-12",
        r"x \& y",
        r"C:\textbackslash{}dir",
        r"\{1\}",
        r"\textasciitilde{}\textasciicircum{}\#\$",
        r"$\alpha$ $\gamma$",
        r"$-$0.17 \% [$-$1, 2]",
        r"$\geq$ 16",
    ]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_takes_it(tmp_path: Path) -> None:
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}%s\\end{document}"
    (tmp_path / "t.tex").write_text(page % booktabs(["cell"], [[cell] for cell in CELLS]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
