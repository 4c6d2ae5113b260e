"""A sweep over rules: the figure of the gain over ``token``, and bias against speedup."""

import itertools

import numpy as np
import pytest
from matplotlib.ticker import PercentFormatter
from test_figures import assert_readable, bars_of, cell, container, drawn, legend_texts, line

from specexp.figures import draw_sweep, plane, series, style, sweep

KNOWN = {"token": 0.0, "block": 3e-17, "lenient": 0.11, "cascade": 0.08, "typical": 0.18}
SPEEDUPS = {"token": 2.0, "block": 2.2, "lenient": 3.6, "cascade": 2.9, "typical": 3.0}


def rule_cell(rule, gamma=4, bias="known", **other):
    """A cell of a sweep over rules, speedup growing with gamma."""
    value = KNOWN[rule] if bias == "known" else bias
    told = {"bias": value, "bias_low": value, "bias_high": value and value + 0.01, "bias_source": "expected"}
    gain = {"gain_over_token": 0.0} if rule == "token" else {"gain_over_token": 0.05 * gamma}
    if rule != "token":
        gain |= {"gain_over_token_low": 0.04 * gamma, "gain_over_token_high": 0.06 * gamma}
        gain |= {"gain_over_token_source": "expected"}
    return cell(gamma, SPEEDUPS[rule] * (1 + 0.1 * gamma), rule=rule, gamma=gamma, **other) | told | gain


def a_sweep(rules=tuple(KNOWN), gammas=(2.0, 4.0), **other):
    rows = [rule_cell(rule, gamma) | other for rule in rules for gamma in gammas]
    return sweep.Sweep(rows, {"rule": list(rules), "gamma": list(gammas)}, ["N = 5,000 steps a cell", "95 % intervals"])


def names(a_sweep):
    with style.house_style():
        return {name: note for name, _, note in sweep.figures(a_sweep)}


# ---- the gain


def test_the_gain_is_drawn_in_percent_over_a_line_at_zero_with_token_on_it():
    axes = drawn(*a_sweep()[:2], "gain_over_token")
    block = container(axes, "rule=block")
    assert block.lines[0].get_xydata().tolist() == [[2, 0.1], [4, 0.2]]
    _, low, high = bars_of(block)
    assert (low.tolist(), high.tolist()) == ([0.08, 0.16], [0.12, 0.24])
    assert container(axes, "rule=token").lines[0].get_ydata().tolist() == [0, 0]
    assert isinstance(axes.yaxis.get_major_formatter(), PercentFormatter)
    assert any(list(found.get_ydata()) == [0, 0] and list(found.get_xdata()) == [0, 1] for found in axes.lines)
    assert axes.get_ylabel() == "gain over rule=token, expected"
    colours = {c.get_label(): c.lines[0].get_color() for c in drawn(*a_sweep()[:2], "speedup").containers}
    assert {c.get_label(): c.lines[0].get_color() for c in axes.containers} == colours  # a rule keeps its colour


def test_the_gain_of_rules_alone_is_bars():
    rows = [rule_cell(rule) for rule in KNOWN]
    axes = drawn(rows, {"rule": list(KNOWN)}, "gain_over_token")
    assert [bar.get_width() for bar in axes.patches] == [0, 0.2, 0.2, 0.2, 0.2]
    assert isinstance(axes.xaxis.get_major_formatter(), PercentFormatter)
    assert not isinstance(axes.yaxis.get_major_formatter(), PercentFormatter)


def test_where_no_rule_but_token_was_run_there_is_no_gain_to_draw():
    assert set(names(a_sweep(rules=("token",)))) == {"tokens_per_step", "speedup"}
    assert "gain" in names(a_sweep(rules=("token", "block")))
    nothing = a_sweep(gain_over_token=None, gain_over_token_source=None)
    assert "gain" not in names(nothing)


# ---- bias against speedup


def plane_of(found):
    with style.house_style():
        figure = plane.plane_figure(found)
    return figure


def points_of(axes):
    """{(x, y): (colour, marker)} of the cells drawn."""
    marks = [c.lines[0] for c in axes.containers]
    return {tuple(mark.get_xydata()[0].tolist()): (mark.get_color(), mark.get_marker()) for mark in marks}


def test_every_cell_stands_at_its_bias_and_its_speedup_with_both_intervals():
    found = a_sweep()
    axes = plane_of(found).axes[0]
    places = points_of(axes)
    assert set(places) == {
        (KNOWN[row["rule"]] if KNOWN[row["rule"]] > 1e-12 else 0.0, row["speedup"]) for row in found.rows
    }
    lenient = next(c for c in axes.containers if c.lines[0].get_xdata()[0] == 0.11)
    across, up = (bars.get_segments()[0] for bars in lenient.lines[2])
    assert across[:, 0].tolist() == pytest.approx([0.11, 0.12])
    assert up[:, 1].tolist() == pytest.approx([found.rows[4]["speedup_low"], found.rows[4]["speedup_high"]])
    assert len({colour for colour, _ in places.values()}) == 5  # a colour a rule
    assert len({marker for _, marker in places.values()}) == 2  # a marker a draft length
    texts = legend_texts(axes.figure)
    assert texts[:7] == [*(f"rule={rule}" for rule in KNOWN), "gamma=2", "gamma=4"]
    assert axes.get_xlabel().startswith("bias, expected (TV")


def test_a_rule_keeps_its_colour_beside_one_whose_bias_is_not_known():
    found = a_sweep()
    before = points_of(plane_of(found).axes[0])
    rows = [row | {"bias": None} if row["rule"] == "token" else row for row in found.rows]
    after = points_of(plane_of(found._replace(rows=rows)).axes[0])
    assert 0 < len(after) < len(before)
    assert after.items() <= before.items()


def test_the_front_leaves_out_what_another_cell_beats_in_both():
    places = [
        plane.Place((name,), (bias, None, None), (speedup, None, None))
        for name, bias, speedup in [
            ("slow and right", 0, 2.0),
            ("right", 0, 2.2),
            ("best", 0.1, 3.5),
            ("beaten", 0.2, 3.0),
            ("dear", 0.3, 4.0),
            ("as good", 0.3, 4.0),
            ("beaten by its equal in bias", 0.1, 3.4),
        ]
    ]
    assert plane.front(places) == [(0, 2.2), (0.1, 3.5), (0.3, 4.0)]
    rng = np.random.default_rng(0)
    drawn_at = [plane.Place((), (x, None, None), (y, None, None)) for x, y in rng.random((60, 2)).tolist()]
    kept = plane.front(drawn_at)
    for x, y in itertools.chain(kept, ((place.bias[0], place.speedup[0]) for place in drawn_at)):
        beaten = any(a <= x and b >= y and (a, b) != (x, y) for a, b in kept)
        assert beaten == ((x, y) not in kept)
    shown = line(plane_of(a_sweep()).axes[0], "Pareto front of these")
    assert shown.get_xdata()[0] == 0
    assert list(shown.get_ydata()) == sorted(shown.get_ydata())


def test_cells_of_different_targets_have_no_front():
    found = a_sweep(rules=("token", "lenient"))
    rows = [row | {"target": target} for row in found.rows for target in ("random", "bigram")]
    axes = plane_of(sweep.Sweep(rows, {"target": ["random", "bigram"], **found.swept}, [])).axes[0]
    assert "Pareto front of these" not in [found.get_label() for found in axes.lines]
    assert "plain decoding" in [found.get_label() for found in axes.lines]


def test_rules_whose_bias_is_not_known_are_named_and_not_drawn():
    found = a_sweep()
    rows = [row | {"bias": None, "bias_source": None} if row["rule"] == "typical" else row for row in found.rows]
    note = names(found._replace(rows=rows))["bias"]
    assert note == [*found.note, "bias not known in 2 of 10 cells: rule=typical"]
    assert names(found)["bias"] == found.note
    assert len(plane_of(found._replace(rows=rows)).axes[0].containers) == 8


def test_a_rule_that_is_right_in_its_first_token_alone_is_named():
    found = a_sweep()
    rows = [row | {"tv_exact_target": 0.02 if row["rule"] in ("block", "lenient") else 1e-16} for row in found.rows]
    note = names(found._replace(rows=rows))["bias"]
    assert note == [*found.note, "biased after the first token: rule=block"]
    unknown = [row | {"bias": None} if row["rule"] == "block" else row for row in rows]
    assert plane.right_at_first(unknown, ["rule"]) == ""


def test_without_any_bias_there_is_nothing_to_weigh():
    assert plane_of(a_sweep(rules=("token", "block"))) is None
    assert plane_of(a_sweep(bias=None)) is None
    alone = a_sweep(rules=("lenient",))
    assert "bias" not in names(alone._replace(swept={"gamma": [2.0, 4.0]}))  # no sweep over rules


def test_seeds_are_one_marker_with_its_mean():
    rows = [rule_cell("lenient", bias=bias) | {"seed": seed} for seed, bias in enumerate((0.1, 0.2, 0.3))]
    rows += [rule_cell("token") | {"seed": seed} for seed in range(3)]
    found = plane.places(rows, ["rule"])
    assert [place.names for place in found] == [("lenient",), ("token",)]
    assert found[0].bias == series.over_replicates([(b, None, None) for b in (0.1, 0.2, 0.3)])
    assert found[1].bias == (0, None, None)


def test_looks_tell_many_rules_and_settings_apart():
    combinations = [(f"r{i}", str(g)) for i in range(12) for g in (1, 2, 4)]
    looks = plane.looks_of(["rule", "gamma"], combinations)
    assert len({(look["color"], look["marker"], look.get("markerfacecolor")) for look in looks.values()}) == 36
    alone = plane.looks_of(["rule"], [(f"r{i}",) for i in range(7)])
    assert len({look["marker"] for look in alone.values()}) == 7


MANY = pytest.param(tuple(map(float, range(1, 25))), marks=pytest.mark.slow)


@pytest.mark.parametrize("gammas", [(4.0,), (1.0, 2.0, 4.0, 8.0), MANY])
def test_both_figures_are_readable_and_have_the_same_bytes(gammas, tmp_path):
    found = a_sweep(gammas=gammas)
    ways = ["exact", "expected"] * len(found.rows)
    rows = [row | {"gain_over_token_source": way} for row, way in zip(found.rows, ways, strict=False)]
    with style.house_style():
        for figure in (plane_of(found), sweep.comparison(found._replace(rows=rows), "gain_over_token")):
            style.write_note(figure, found.note)
            style.lay_out(figure)
            figure.draw_without_rendering()
            assert_readable(figure)
    first, again = (
        draw_sweep(found.rows, found.swept, tmp_path / folder, ("png", "svg"), {}, {"steps": 5000}) for folder in "ab"
    )
    assert {path.stem for path in first} == {"tokens_per_step", "speedup", "gain", "bias"}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
