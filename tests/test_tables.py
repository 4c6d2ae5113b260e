"""A sweep's table: its columns, and what gives way on a narrow terminal."""

import re
import sys
from pathlib import Path

import pytest

from specexp import tables
from specexp.app import console
from specexp.store.records import Sweep


def row(rule, **metrics):
    interval = {"speedup": 2.2315, "speedup_low": 2.2297, "speedup_high": 2.2333, "alpha": 0.8882, "gamma_best": 9}
    gain = {"gain_over_token": 0.0}
    if rule != "token":
        gain = {"gain_over_token": 0.1193, "gain_over_token_low": 0.1184, "gain_over_token_high": 0.1202}
        gain |= {"gain_over_token_source": "expected"}
    expected = {"tokens_per_step_expected": 2.6}
    expected |= {"tokens_per_step_expected_low": 2.5998, "tokens_per_step_expected_high": 2.6002}
    told = {"tv_distance": 0.02, "tv_noise_floor": 0.02, "lossless_pvalue": 0.5, "closed_form_error": 0.01}
    return {
        "cell": rule,
        "status": "done",
        "reason": None,
        "rule": rule,
        **interval,
        **gain,
        **expected,
        **told,
        **metrics,
    }


def a_sweep(rows, **swept):
    swept = swept or {"rule": [row["rule"] for row in rows]}
    return Sweep(Path(), {"fixed": {"gamma": 4}, "swept": swept}, {}, list(swept), rows)


BIASED = {"bias": 0.11, "bias_low": 0.109, "bias_high": 0.111}


def column(sweep, name):
    header, rows = tables.sweep_table(sweep, lambda rule: rule == "lenient")
    return [row[header.index(name)] for row in rows] if name in header else None


def test_rules_are_compared_by_gain_and_by_bias():
    sweep = a_sweep([row("token", bias=1e-17), row("block", bias=None), row("lenient", **BIASED)])
    assert column(sweep, tables.GAIN) == ["0", "+11.93 [+11.84, +12.02]", "+11.93 [+11.84, +12.02]"]
    assert column(sweep, "bias") == ["0", "", "0.1100 [0.1090, 0.1110]"]


def test_the_gain_of_one_rule_is_shown_whatever_was_swept():
    sweep = a_sweep([row("block", seed=seed) for seed in (0, 1)], seed=[0, 1])
    assert column(sweep, tables.GAIN)[:2] == ["+11.93 [+11.84, +12.02]"] * 2


def test_a_sweep_of_token_alone_or_without_bias_has_no_such_columns():
    assert column(a_sweep([row("token"), row("block", bias=2e-17)]), "bias") is None
    assert column(a_sweep([row("token")], gamma=[2]), tables.GAIN) is None
    assert column(a_sweep([row("token")]), tables.GAIN) is None


@pytest.mark.parametrize("width", [100, 130, 400])
def test_what_tells_no_rule_from_another_gives_way_on_a_narrow_terminal(width, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    console.show_sweep(a_sweep([row("token", bias=0.0), row("lenient", **BIASED)]), {})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()  # the header is bold
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    assert all(word in shown for word in ("0.1100", "+11.93", "[+11.84, +12.02]", "p-value", "2.2315"))
    assert ("0.8882" in shown) == (width > 100)


def test_a_status_that_cells_do_not_share_stays_and_so_does_a_table_without_rules():
    rows = [row("token"), row("lenient", **BIASED)]
    for status, kept in (("done", False), ("failed", True)):
        table = tables.sweep_table(a_sweep([rows[0], rows[1] | {"status": status}]), bool, narrow=True)
        assert ("status" in tables.spared(*table, 10)[0]) == kept
    plain = tables.sweep_table(a_sweep(rows[:1], gamma=[4]), bool, narrow=True)  # of token: no gain
    assert tables.spared(*plain, 10) == plain


def test_a_given_tree_is_not_asked_to_be_longer():
    """Where the best draft length ends the curve a larger gamma_max may find a better one, but for a tree."""
    rows = [row("traversal", gamma_best=16, length=length) for length in ("fixed", "sequoia", "tree")]
    assert column(a_sweep(rows, length=["fixed", "sequoia", "tree"]), "best gamma") == [">= 16", ">= 16", "16"]
