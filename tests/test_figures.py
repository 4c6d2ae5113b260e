"""Figures: the numbers drawn are the numbers given, and the same numbers are the same bytes."""

import itertools
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

from specexp.errors import UserError
from specexp.figures import (
    caption,
    draw_run,
    draw_sweep,
    exactness,
    finished,
    lossless,
    naming,
    points,
    run,
    series,
    style,
    sweep,
)

ALPHA, STEPS, GAMMA_MAX = 0.89, 5000, 16
FORMATS = ("png", "pdf", "svg")
PROVENANCE = {"digest": "0123456789ab", "specexp": "0.1.0", "seed": "0"}
FIXED = {"target.name": "random", "draft.name": "noise", "rule.name": "token", "steps": STEPS}
RUN_FIGURES = ["notebook", "positions", "tokens_per_step", "gamma_curve"]


def binomial(curve, x, kind, p, n, scale=1.0):
    reach = 1.96 * np.sqrt(max(p * (1 - p), 0) / n)
    return curve, x, kind, p * scale, (p - reach) * scale, (p + reach) * scale


def some_curves(alpha=ALPHA, gamma=4):
    """The rows of curves.csv of a run whose positions are independent."""
    rows = []
    for g in range(GAMMA_MAX + 1):
        tokens = points.closed_form(alpha, g)
        rows.append(("by_gamma/tokens_per_step", g, "sampled", tokens, tokens - 0.02 * g, tokens + 0.02 * g))
        rows.append(("by_gamma/tokens_per_step", g, "exact", tokens, None, None))
        rows.append(("by_gamma/speedup", g, "exact", tokens / (1 + 0.1 * g), None, None))
    for i in range(1, gamma + 1):
        rows.append(binomial("by_position/acceptance", i, "sampled", alpha**i, STEPS))
        rows.append(binomial("by_position/acceptance_conditional", i, "sampled", alpha, STEPS * alpha ** (i - 1)))
    for n in range(1, gamma + 2):
        share = alpha ** (n - 1) * (1 - alpha if n <= gamma else 1)
        rows.append(binomial("by_tokens/probability", n, "sampled", share, STEPS))
        rows.append(("by_tokens/probability", n, "closed_form", share, None, None))
    return rows


def some_metrics(alpha=ALPHA, gamma=4, **other):
    tokens, slower = points.closed_form(alpha, gamma), 1 + 0.1 * gamma
    speedups = [points.closed_form(alpha, g) / (1 + 0.1 * g) for g in range(GAMMA_MAX + 1)]
    return {
        "alpha": alpha,
        "tokens_per_step": tokens,
        "tokens_per_step_low": tokens - 0.04,
        "tokens_per_step_high": tokens + 0.05,
        "tokens_per_step_closed_form": tokens,
        "speedup": tokens / slower,
        "speedup_low": (tokens - 0.04) / slower,
        "speedup_high": (tokens + 0.05) / slower,
        "speedup_source": "sampled",
        "gamma_best": int(np.argmax(speedups)),
        "speedup_best": max(speedups),
        "steps": STEPS,
        "requests": 1,
    } | other


def some_config(gamma=4, cost=None):
    names = {"target": {"name": "random"}, "draft": {"name": "noise"}, "rule": {"name": "token"}}
    return names | {"gamma": gamma, "steps": STEPS, "cost": cost or {"name": "milliseconds", "target_ms": 10}}


def some_run(gamma=4, curves=None, config=None, **metrics):
    rows = some_curves(gamma=gamma) if curves is None else curves
    metrics = some_metrics(gamma=gamma) | metrics
    return finished.Run(metrics, finished.by_name_and_kind(rows), config or some_config(gamma))


def cell(gamma, tokens, status="done", /, **swept):
    slower = 1 + 0.1 * gamma
    numbers = {"tokens_per_step": tokens, "speedup": tokens / slower}
    intervals = {f"{key}_low": value - 0.1 for key, value in numbers.items()}
    intervals |= {f"{key}_high": value + 0.2 for key, value in numbers.items()}
    return {"cell": "c", "status": status, "reason": None, **swept, **numbers, **intervals, "steps": float(STEPS)}


def some_sweep(gammas=(1, 2, 4, 8), rules=("token", "lenient"), orders=(2, 3)):
    """(rows, swept) of a sweep over gamma, rule and draft.order; gamma is a float, as a reader of CSV gives it."""
    swept = {"rule": list(rules), "draft.order": list(orders), "gamma": list(gammas)}
    rows = [
        cell(
            g,
            points.closed_form(0.3 + 0.1 * rules.index(r) + 0.05 * o, int(g)),
            **{"rule": r, "draft.order": o, "gamma": g},
        )
        for r in rules
        for o in orders
        for g in map(float, gammas)
    ]
    return rows, swept


def drawn(rows, swept, metric):
    """The Axes of a sweep's figure."""
    with style.house_style():
        figure = sweep.comparison(sweep.Sweep(rows, swept, []), metric)
    return figure.axes[0]


def panels(draw, a_run):
    with style.house_style():
        return draw(a_run).axes


def bars_of(container):
    """(value, low, high) that an ErrorbarContainer or the bars' own error bars show upright."""
    segments = np.array([segment for segment in container.lines[2][0].get_segments() if len(segment)])  # [n, 2, 2]
    return segments[:, 0, 0], segments[:, 0, 1], segments[:, 1, 1]


def container(axes, label):
    return next(c for c in axes.containers if c.get_label() == label)


def line(axes, label):
    return next(found for found in axes.lines if found.get_label() == label)


def legend_texts(owner):
    legend = owner.get_legend() if hasattr(owner, "get_legend") else owner.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def draw_everything(folder):
    rows, swept = some_sweep()
    draw_run(some_metrics(), some_curves(), some_config(), folder, FORMATS, PROVENANCE)
    draw_sweep(rows, swept, folder / "sweep", FORMATS, PROVENANCE, FIXED)


# ---- bytes


def in_another_process(folder, hash_seed, rc_file):
    settings = {"PYTHONHASHSEED": str(hash_seed), "MATPLOTLIBRC": str(rc_file), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", __file__, str(folder)]
    subprocess.run(command, env=os.environ | settings, check=True)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.*"))}


def test_same_bytes_in_every_process_whatever_the_hash_seed_and_the_persons_matplotlibrc(tmp_path):
    loud = tmp_path / "matplotlibrc"
    loud.write_text("lines.linewidth: 9\nfont.family: monospace\nsavefig.dpi: 30\nsvg.hashsalt: other\n")
    plain = tmp_path / "plainrc"
    plain.write_text("")
    first = in_another_process(tmp_path / "a", 0, plain)
    second = in_another_process(tmp_path / "b", 1, loud)
    names = [f"{name}.{suffix}" for name in RUN_FIGURES for suffix in FORMATS]
    names += [f"sweep/{name}.{suffix}" for name in ("tokens_per_step", "speedup") for suffix in FORMATS]
    assert sorted(first) == sorted(names)
    assert {name for name in first if first[name] != second[name]} == set()


@pytest.mark.parametrize("suffix", FORMATS)
def test_another_number_another_config_and_another_provenance_give_other_bytes(tmp_path, suffix):
    def notebook_bytes(folder, metrics, provenance):
        paths = draw_run(metrics, [], some_config(), tmp_path / folder, (suffix,), provenance)
        assert [path.name for path in paths] == [f"notebook.{suffix}"]
        return paths[0].read_bytes()

    first = notebook_bytes("a", some_metrics(), PROVENANCE)
    assert notebook_bytes("b", some_metrics(), PROVENANCE) == first
    assert notebook_bytes("c", some_metrics(speedup=2.9), PROVENANCE) != first
    assert notebook_bytes("d", some_metrics(), PROVENANCE | {"seed": "1"}) != first


def test_a_format_has_the_same_bytes_alone_and_beside_others(tmp_path):
    alone = draw_run(some_metrics(), some_curves(), some_config(), tmp_path / "alone", ("pdf",), PROVENANCE)
    beside = draw_run(some_metrics(), some_curves(), some_config(), tmp_path / "beside", ("svg", "pdf"), PROVENANCE)
    assert [path.read_bytes() for path in alone] == [p.read_bytes() for p in beside if p.suffix == ".pdf"]


def test_files_say_where_they_are_from_and_neither_when_nor_by_what_program(tmp_path):
    paths = draw_run(some_metrics(), [], some_config(), tmp_path, FORMATS, PROVENANCE)
    for path in paths:
        content = path.read_bytes()
        assert b"digest=0123456789ab; specexp=0.1.0; seed=0" in content
        for trace in (b"CreationDate", b"<dc:date>", b"Producer", b"Software", b"Matplotlib v"):
            assert trace not in content
    assert sorted(tmp_path.iterdir()) == sorted(paths)  # no temporary file is left


def test_an_unfinished_file_neither_stays_nor_replaces_the_old_one(tmp_path, monkeypatch):
    (path,) = draw_run(some_metrics(), [], some_config(), tmp_path, ("png",), PROVENANCE)
    before = path.read_bytes()

    def broken(file, data):
        assert fnmatch(file.name, ".*.tmp")  # what the store sweeps up after a kill
        with file.open("wb") as half:
            half.write(data[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(UserError, match=r"notebook\.png: no space left .*free some, or set SPECEXP_OUTPUTS"):
        draw_run(some_metrics(speedup=2.0), [], some_config(), tmp_path, ("png",), PROVENANCE)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_neither_pyplot_is_loaded_nor_settings_changed(tmp_path):
    before = dict(matplotlib.rcParams)
    draw_run(some_metrics(), some_curves(), some_config(), tmp_path, ("png",), PROVENANCE)
    assert dict(matplotlib.rcParams) == before
    code = "import sys, specexp.figures; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)


# ---- a run


def test_notebook_draws_the_runs_point_the_closed_form_and_both_bars():
    left, right = panels(run.notebook, some_run())
    metrics = some_metrics()
    (own,) = left.containers
    x, low, high = bars_of(own)
    assert (x, low, high) == (
        4,
        pytest.approx(metrics["tokens_per_step_low"]),
        pytest.approx(metrics["tokens_per_step_high"]),
    )
    assert own.lines[0].get_xydata().tolist() == [[4, metrics["tokens_per_step"]]]
    seventy = next(found for found in left.lines if found.get_color() == points.REFERENCES[0.7])
    assert seventy.get_ydata()[3] == pytest.approx((1 - 0.7**5) / 0.3)  # the notebook's 2.77 at gamma = 4
    assert [bar.get_height() for bar in right.patches] == [100, pytest.approx(100 * metrics["speedup"])]
    whiskers = next(c for c in right.containers if isinstance(c, ErrorbarContainer))
    _, _, high = bars_of(whiskers)
    assert high == pytest.approx([100 * metrics["speedup_high"]])
    assert (left.get_xlabel(), right.get_ylabel()) == ("draft length γ (tokens)", "tokens per second")


def test_throughput_is_relative_where_the_cost_has_no_unit():
    _, right = panels(run.notebook, some_run(config=some_config(cost={"name": "ratio", "ratio": 0.1})))
    assert [bar.get_height() for bar in right.patches] == [1, pytest.approx(some_metrics()["speedup"])]
    assert right.get_ylabel() == "speed relative to plain decoding"


def test_positions_draw_both_acceptances_and_what_independence_would_give():
    (axes,) = panels(run.positions, some_run())
    assert container(axes, "kept").lines[0].get_ydata() == pytest.approx([ALPHA**i for i in (1, 2, 3, 4)])
    assert container(axes, "given all before").lines[0].get_ydata() == pytest.approx([ALPHA] * 4)
    rows = {row[1]: row for row in some_curves() if row[0] == "by_position/acceptance"}
    _, low, high = bars_of(container(axes, "kept"))
    assert low == pytest.approx([rows[i][4] for i in (1, 2, 3, 4)])
    assert high == pytest.approx([rows[i][5] for i in (1, 2, 3, 4)])
    assert axes.lines[-1].get_ydata() == pytest.approx([ALPHA**i for i in (1, 2, 3, 4)])


def test_distribution_draws_every_share_once_per_kind():
    (axes,) = panels(run.distribution, some_run())
    shares = [row[3] for row in some_curves() if row[0] == "by_tokens/probability" and row[2] == "sampled"]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(shares)
    assert container(axes, "closed form").lines[0].get_ydata() == pytest.approx(shares)
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1)


def test_gamma_curve_marks_the_best_gamma():
    left, right = panels(run.gamma_curve, some_run())
    metrics = some_metrics()
    star = next(found for found in right.lines if found.get_marker() == "*")
    assert star.get_xydata().tolist() == [[metrics["gamma_best"], metrics["speedup_best"]]]
    assert star.get_label() == f"best: γ = {metrics['gamma_best']}, {metrics['speedup_best']:.2f} ×"
    assert line(right, "plain decoding").get_ydata() == [1, 1]
    assert container(left, "sampled").lines[0].get_ydata() == pytest.approx(
        [points.closed_form(ALPHA, g) for g in range(GAMMA_MAX + 1)]
    )


@pytest.mark.parametrize(("best", "advice"), [(GAMMA_MAX, "raise gamma_max"), (0, "do not speculate"), (7, None)])
def test_gamma_curve_says_what_the_best_gamma_asks_for(best, advice):
    _, right = panels(run.gamma_curve, some_run(gamma_best=best, speedup_best=1.5))
    (label,) = (text for text in legend_texts(right) if "best" in text)
    assert label == f"best: γ = {best}, 1.50 ×" + (f"\n({advice})" if advice else "")


@pytest.mark.parametrize("gone", sorted(some_metrics()))
def test_a_null_metric_is_left_out_and_breaks_nothing(gone):
    a_run = some_run(**{gone: None})
    with style.house_style():
        missing = [name for name, draw in run.FIGURES.items() if draw(a_run) is None]
    assert missing == (["notebook"] if gone in ("speedup", "tokens_per_step") else [])


def test_no_closed_form_is_drawn_for_a_rule_that_has_none():
    a_run = some_run(curves=[row for row in some_curves() if row[2] != "closed_form"], tokens_per_step_closed_form=None)
    labels = [
        text
        for name in ("positions", "tokens_per_step", "gamma_curve")
        for axes in panels(run.FIGURES[name], a_run)
        for text in legend_texts(axes)
    ]
    assert labels
    assert not [label for label in labels if "closed form" in label]


@pytest.mark.parametrize("gamma", [0, 1, 64])
def test_plain_decoding_one_draft_and_a_long_draft_are_drawn(tmp_path, gamma):
    paths = draw_run(some_metrics(gamma=gamma), some_curves(gamma=gamma), some_config(gamma), tmp_path, ("png",), {})
    assert [path.stem for path in paths] == [name for name in RUN_FIGURES if gamma or name != "positions"]


def test_without_tables_or_formats_nothing_is_drawn(tmp_path):
    assert draw_run({}, [], some_config(), tmp_path / "none", ("png",), {}) == []
    assert draw_run(some_metrics(), some_curves(), some_config(), tmp_path / "none", (), {}) == []
    assert not (tmp_path / "none").exists()


def test_every_figure_of_a_run_states_n_and_the_intervals_in_letters_that_can_be_read():
    a_run = some_run(requests=64)
    for draw in run.FIGURES.values():
        with style.house_style():
            figure = draw(a_run)
            style.write_note(figure, finished.what_was_run(a_run))
            style.lay_out(figure)
            figure.draw_without_rendering()
        note = figure.get_supxlabel().replace("\n", " ")
        assert note == "random target, noise draft, token rule, γ = 4; N = 5,000 steps in 64 requests; 95 % intervals"
        assert_readable(figure)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"draft.paths": 1, "draft.replacement": True, "draft.greedy": False, "cost.batch": False}, []),
        ({"length.name": "fixed"}, []),
        ({"draft.paths": 4, "draft.replacement": False}, ["4 paths", "without replacement"]),
        (
            {"draft.paths": 2, "draft.greedy": True, "cost.batch": True},
            ["2 paths", "greedy drafts", "one pass a level"],
        ),
        ({"length.name": "tree", "length.widths": [2, 2, 1, 1], "length.path": None}, ["tree [2, 2, 1, 1]"]),
        ({"length.name": "tree", "length.widths": [2, 2], "length.path": "a/folder/mine.txt"}, ["tree from mine.txt"]),
        ({"length.name": "tree", "length.path": None}, ["tree"]),  # the widths were swept
        ({"length.name": "tree", "length.widths": [2, 2]}, ["tree"]),  # the files were
        ({"length.name": "sequoia", "length.budget": 16}, ["sequoia tree"]),
        ({}, []),
    ],
)
def test_the_note_says_how_drafts_were_made_where_not_by_default(given, told):
    assert caption.how_drafted(given) == told
    config = some_config()
    for key, value in given.items():
        group, name = key.split(".")
        config[group] = config.get(group, {}) | {name: value}
    plain = "random target, noise draft, token rule, γ = 4"
    assert finished.what_was_run(some_run(config=config))[0] == ", ".join([plain, *told])
    rows, swept = some_sweep()
    shared = sweep.what_was_swept(rows, rows, swept, FIXED | {"gamma": 4} | given)[0]
    assert shared == ", ".join([plain, *told])


def assert_readable(figure):
    """Letters of 7 pt and more, all inside the figure; every axis named; no legend over its panel's data."""
    assert figure.get_figwidth() in (style.COLUMN, style.DOUBLE)
    page = figure.bbox.padded(1)
    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() and artist.get_visible()):
        assert text.get_fontsize() >= 7
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert page.x0 <= box.x0
        assert page.y0 <= box.y0
        assert box.x1 <= page.x1
        assert box.y1 <= page.y1
        assert axes.get_ylabel() or axes.get_yticklabels()
        if axes.get_legend():
            assert axes.get_legend().get_window_extent().y0 >= axes.bbox.y1 - 1
            assert axes.get_legend().get_window_extent().x1 <= page.x1


# ---- a sweep


def test_a_sweep_over_gamma_is_a_line_a_combination_with_our_numbers():
    rows, swept = some_sweep()
    axes = drawn(rows, swept, "tokens_per_step")
    named = container(axes, "rule=lenient draft.order=3")
    assert named.lines[0].get_xydata() == pytest.approx(
        np.array([(g, points.closed_form(0.55, g)) for g in (1, 2, 4, 8)])
    )
    _, low, high = bars_of(named)
    assert high - low == pytest.approx([0.3] * 4)
    assert len(axes.containers) == 4
    assert axes.get_xticks().tolist() == [1, 2, 4, 8]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4", "8"]
    assert [text for text in legend_texts(axes.figure) if "=" in text] == [
        f"rule={rule} draft.order={order}" for rule in ("token", "lenient") for order in (2, 3)
    ]


def test_colour_follows_the_first_key_and_marker_the_second():
    axes = drawn(*some_sweep(orders=(2, 3, 4)), "speedup")
    looks = [(found.lines[0].get_color(), found.lines[0].get_marker()) for found in axes.containers]
    assert [colour for colour, _ in looks] == [style.PALETTE[0]] * 3 + [style.PALETTE[1]] * 3
    assert [marker for _, marker in looks] == list(style.MARKERS[:3]) * 2
    many = [series.line_look(first, other, 6) for first in range(9) for other in range(6)]
    assert len({(look["color"], look["marker"]) for look in many[:42]}) == 42
    assert len({tuple(series.line_look(first, 0, 1).values()) for first in range(20)}) == 20


def test_a_rule_has_one_colour_and_its_name_stands_first_in_all_figures_of_a_sweep():
    """Also where another key was given first, and where a rule lacks a figure's number."""
    rows, swept = some_sweep(rules=("lenient", "token", "block"))
    swept = {key: swept[key] for key in ("draft.order", "gamma", "rule")}
    rows = [row | {"gain_over_token": None if row["rule"] == "lenient" else 0.1} for row in rows]
    colours = dict(zip(("lenient", "token", "block"), style.PALETTE, strict=False))
    for metric, rules in (("tokens_per_step", colours), ("gain_over_token", ("token", "block"))):
        found = {c.get_label(): c.lines[0].get_color() for c in drawn(rows, swept, metric).containers}
        assert found == {f"rule={rule} draft.order={order}": colours[rule] for rule in rules for order in (2, 3)}
    bars = drawn(
        [row for row in rows if row["gamma"] == 4], {"draft.order": ["2", "a"], "rule": list(colours)}, "speedup"
    )
    assert bars.get_yticklabels()[0].get_text() == "rule=lenient draft.order=2"
    tested = {"tv_distance": 0.02, "tv_noise_floor": 0.02, "lossless_pvalue": 0.4}
    with style.house_style():
        a_sweep = sweep.Sweep([row | tested for row in rows], swept, [])
        figure = next(figure for name, figure, _ in sweep.figures(a_sweep) if name == "lossless")
    assert figure.axes[0].get_yticklabels()[0].get_text() == "rule=lenient draft.order=2 gamma=1"


def test_speedup_marks_the_best_cell_and_plain_decoding():
    rows, swept = some_sweep()
    axes = drawn(rows, swept, "speedup")
    best = max(rows, key=lambda row: row["speedup"])
    star = next(found for found in axes.lines if found.get_marker() == "*")
    assert star.get_xydata().tolist() == [[best["gamma"], best["speedup"]]]
    line_of_best = f"rule={best['rule']} draft.order={best['draft.order']}"
    assert star.get_label() == f"best of these: γ = {best['gamma']:g}, {best['speedup']:.2f} ×\n{line_of_best}"


def test_the_star_names_the_key_that_is_the_axis():
    rows = [cell(4, 3.0 - sigma, **{"draft.sigma": sigma}) for sigma in (0.1, 0.3)]
    axes = drawn(rows, {"draft.sigma": [0.1, 0.3]}, "speedup")
    star = next(found for found in axes.lines if found.get_marker() == "*")
    assert star.get_label() == f"best of these:\ndraft.sigma=0.1, {2.9 / 1.4:.2f} ×"
    style.lay_out(axes.figure)
    assert_readable(axes.figure)
    assert line(axes, "plain decoding").get_ydata() == [1, 1]


def test_seeds_beside_other_keys_are_replicates():
    tokens = {2: [2.0, 2.2, 2.4], 4: [3.0, 3.0, 3.3]}
    rows = [cell(g, tokens[g][seed], seed=seed, gamma=g) for seed in range(3) for g in (2, 4)]
    axes = drawn(rows, {"seed": [0, 1, 2], "gamma": [2, 4]}, "tokens_per_step")
    (found,) = axes.containers
    assert found.lines[0].get_ydata() == pytest.approx([2.2, 3.1])
    _, low, high = bars_of(found)
    student = 4.302652729911275  # t of 2 degrees of freedom at .975, from tables
    assert (high - low) / 2 == pytest.approx([student * np.std(tokens[g], ddof=1) / np.sqrt(3) for g in (2, 4)])
    assert "mean of 3 seeds (dots), 95 % intervals over seeds" in sweep.what_was_swept(
        rows, rows, {"seed": [0, 1, 2], "gamma": [2]}, {}
    )


def test_seeds_alone_are_bars_with_their_mean_and_no_best():
    rows = [cell(4, tokens, seed=seed) for seed, tokens in enumerate((3.0, 3.2, 3.4))]
    axes = drawn(rows, {"seed": [0, 1, 2]}, "speedup")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["seed=0", "seed=1", "seed=2", "mean over seeds"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([3.0 / 1.4, 3.2 / 1.4, 3.4 / 1.4, 3.2 / 1.4])
    assert not [found for found in axes.lines if found.get_marker() == "*"]


def test_names_give_bars_and_the_best_is_marked():
    rows = [cell(4, 3.0 + i, rule=rule, target="random") for i, rule in enumerate(("token", "lenient", "greedy"))]
    swept = {"rule": ["token", "lenient", "greedy"]}
    axes = drawn(rows, swept, "speedup")
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([row["speedup"] for row in rows])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["rule=token", "rule=lenient", "rule=greedy"]
    star = next(found for found in axes.lines if found.get_marker() == "*")
    assert star.get_xydata().tolist() == [[rows[2]["speedup"], 2]]
    assert axes.get_xlabel() == "speedup (×)"


@pytest.mark.parametrize("known", [{"tv_exact": 0.01}, {"lossless_pvalue": 1e-4}, {"bias": 0.01}])
@pytest.mark.parametrize("gammas", [(4,), (2, 4)])
def test_the_star_crowns_no_rule_known_to_be_lossy(known, gammas):
    rules = ("token", "block", "greedy_by_name")
    rows = [
        cell(g, 2.0 + i + g, rule=rule, gamma=g) | (known if rule == rules[2] else {"tv_exact": 1e-16})
        for i, rule in enumerate(rules)
        for g in gammas
    ]
    swept = {"rule": rules, "gamma": gammas} if len(gammas) > 1 else {"rule": rules}
    axes = drawn(rows, swept, "speedup")
    star = next(found for found in axes.lines if found.get_marker() == "*")
    best = max((row for row in rows if row["rule"] == "block"), key=lambda row: row["speedup"])
    assert star.get_xydata().tolist() == [[best["gamma"], best["speedup"]] if len(gammas) > 1 else [best["speedup"], 1]]
    assert star.get_label().startswith("best of these, lossy apart: ")
    style.lay_out(axes.figure)
    assert_readable(axes.figure)
    alone = drawn([row | known for row in rows], {"gamma": gammas}, "speedup")  # a sweep that compares no rules
    assert [found for found in alone.lines if found.get_marker() == "*"]
    none = drawn([row | known for row in rows], swept, "speedup")
    assert not [found for found in none.lines if found.get_marker() == "*"]


def test_the_lossless_figure_names_what_has_no_test_and_claims_no_intervals():
    told = {"tv_distance": 0.02, "tv_noise_floor": 0.02, "lossless_pvalue": 0.4}
    rules = {"token": told, "lenient": told | {"lossless_pvalue": 1e-9}, "greedy": told | {"lossless_pvalue": None}}
    rows = [cell(4, 3.0, rule=rule) | numbers for rule, numbers in rules.items()]
    with style.house_style():
        a_sweep = sweep.Sweep(rows, {"rule": list(rules)}, ["N = 5,000 steps a cell", "95 % intervals"])
        notes = {name: note for name, _, note in sweep.figures(a_sweep)}
    assert notes["speedup"] == a_sweep.note
    assert notes["lossless"] == ["N = 5,000 steps a cell", "no test in 1 of 3 cells: rule=greedy"]
    assert lossless.without_test(rows[:2], ["rule"]) == ""


def test_cells_are_named_by_what_no_other_has():
    rows = [cell(4, 3.0, rule=rule, gamma=g, seed=s) for rule in ("a", "b") for g in (1, 2) for s in range(10)]
    keys = ["rule", "gamma", "seed"]
    few = {
        "rule=a": lambda row: row["rule"] == "a",
        "gamma=2": lambda row: row["gamma"] == 2,
        "rule=a gamma=2": lambda row: row["rule"] == "a" and row["gamma"] == 2,
        "rule=b gamma=1 seed=7": lambda row: row["rule"] == "b" and row["gamma"] == 1 and row["seed"] == 7,
        "rule=a, rule=b": lambda row: True,
    }
    for name, meant in few.items():
        assert naming.apart([row for row in rows if meant(row)], rows, keys) == name
    many = naming.apart([row for row in rows if (row["rule"] == "a") != (row["seed"] == 3)], rows, keys)
    assert many.startswith("rule=a seed=0, ")
    assert many.endswith(", and 2 more")


def exact(gamma, /, **swept):
    """A cell of a world whose numbers are known without a sample."""
    bounds = {f"{key}_{end}": None for key in ("tokens_per_step", "speedup") for end in ("low", "high")}
    return cell(gamma, 2.0 + gamma, **swept) | bounds | {"tokens_per_step_exact": 2.0, "speedup_source": "exact"}


def test_exact_numbers_have_neither_a_sample_nor_intervals():
    note = ["members", "N = 5,000 steps a cell", "95 % intervals", "1 of 3 cells skipped"]
    rows = [exact(g, gamma=g) for g in (1, 2)]
    told = {name: note for name, _, note in sweep.figures(sweep.Sweep(rows, {"gamma": [1, 2]}, note))}
    assert told["tokens_per_step"] == told["speedup"] == ["members", "exact numbers", "1 of 3 cells skipped"]
    mixed = [rows[0], cell(2, 3.0, gamma=2) | {"speedup_source": "exact"}]
    told = {name: note for name, _, note in sweep.figures(sweep.Sweep(mixed, {"gamma": [1, 2]}, note))}
    assert told["tokens_per_step"] == told["speedup"] == note  # one is sampled, the other has an interval
    seeds = [exact(g, gamma=g, seed=s) | {"speedup": 2.0 + s} for g in (1, 2) for s in (0, 1)]
    a_sweep = sweep.Sweep(seeds, {"gamma": [1, 2], "seed": [0, 1]}, note)
    assert {name: note for name, _, note in sweep.figures(a_sweep)}["speedup"] == note  # over seeds


def test_only_curves_that_are_exact_are_called_so():
    rows = [row for row in some_curves() if not (row[0].startswith("by_gamma") and row[2] == "sampled")]
    a_run = some_run(curves=rows)
    assert [a_run.is_exact(curves) for curves in run.CURVES.values()] == [False, False, True]
    with style.house_style():
        notes = [
            exactness.of_exact(finished.what_was_run(a_run), run.FIGURES[name](a_run), a_run.is_exact(curves))
            for name, curves in run.CURVES.items()
        ]
    assert [note[-1] for note in notes] == ["95 % intervals", "95 % intervals", "exact numbers"]
    assert "N = 5,000 steps" not in notes[-1]
    assert not some_run().is_exact("by_gamma")


@pytest.mark.parametrize(
    ("drafted", "told"), [(4, "closed form"), (None, "closed form"), (8, "closed form of one draft")]
)
def test_the_closed_form_beside_several_drafts_is_called_that_of_one(drafted, told):
    left, _ = panels(run.notebook, some_run(drafted_per_step=drafted))
    assert legend_texts(left)[-1] == told
    rows = [cell(g, 2.0, gamma=g) | {"drafted_per_step": drafted and drafted / 4 * g} for g in (1, 2)]
    assert legend_texts(drawn(rows, {"gamma": [1, 2]}, "tokens_per_step"))[-1] == told


@pytest.mark.parametrize(("distance", "pvalue"), [(0.02, 0.4), (0.9, 1e-50), (0.02, 1e-50), (0.9, 0.4)])
def test_the_names_of_the_two_thresholds_stand_apart(distance, pvalue):
    told = {"tv_distance": distance, "tv_noise_floor": 0.02, "lossless_pvalue": pvalue}
    with style.house_style():
        figure = lossless.lossless_figure([cell(4, 3.0, rule=rule) | told for rule in "ab"], ["rule"])
        style.lay_out(figure)
        figure.draw_without_rendering()
        left, right = (axes.texts[0].get_window_extent() for axes in figure.axes)
    assert right.x0 - left.x1 > 0.2 * style.DPI


def test_tokens_per_step_and_speedup_of_a_sweep_are_known_alike_and_say_how():
    rows = [cell(g, 2.0, gamma=g) | {"tokens_per_step_expected": 2.1, "speedup_source": "exact"} for g in (1, 2)]
    rows = [row | {"tokens_per_step_exact": 2.5} for row in rows]
    tokens, speedup = (drawn(rows, {"gamma": [1, 2]}, metric) for metric in ("tokens_per_step", "speedup"))
    assert tokens.containers[0].lines[0].get_ydata().tolist() == [2.5, 2.5]
    assert (tokens.get_ylabel(), speedup.get_ylabel()) == ("tokens per step, exact", "speedup, exact (×)")
    rows[0] |= {"tokens_per_step_exact": None}
    assert series.ways(rows, "tokens_per_step") == ", exact or expected"
    assert series.ways([cell(1, 2.0)], "speedup") == ""


@pytest.mark.parametrize(
    ("swept", "axis", "lines"),
    [
        ({"draft.order": [2, 3], "gamma": [1, 2]}, "gamma", ["draft.order"]),
        ({"rule": ["token"], "draft.sigma": [0.1, 0.3]}, "draft.sigma", ["rule"]),
        ({"draft.order": [2], "draft.sigma": [0.1, 0.3]}, "draft.sigma", ["draft.order"]),
        ({"gamma_max": [None, 32], "rule": ["a", "b"]}, None, ["rule", "gamma_max"]),
        ({"audit": [True, False]}, None, ["audit"]),
        ({"seed": [0, 1], "gamma": [2, 4]}, "gamma", []),
        ({"seed": [0, 1]}, None, ["seed"]),
        ({"seed": [0, 1], "rule": ["a", "b"]}, None, ["rule"]),
    ],
)
def test_which_key_is_the_axis(swept, axis, lines):
    assert series.axis_key(swept) == axis
    assert series.line_keys(swept, axis) == lines


def test_ticks_stand_at_the_values_also_where_they_span_decades():
    values = [0.01, 0.03, 0.3, 0.84]
    rows = [cell(4, 3 - v, **{"draft.sigma": v}) for v in values]
    axes = drawn(rows, {"draft.sigma": values}, "tokens_per_step")
    assert axes.get_xscale() == "log"
    assert axes.get_xticks().tolist() == values
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.01", "0.03", "0.3", "0.84"]
    assert axes.get_xticks(minor=True).size == 0
    crowded = [1, *range(100, 111)]
    axes = drawn([cell(g, 3.0, gamma=g) for g in crowded], {"gamma": crowded}, "speedup")
    assert axes.get_xticks().tolist() == crowded
    assert [tick.get_text() for tick in axes.get_xticklabels()][:4] == ["1", "100", "", ""]


def test_cells_that_are_not_done_are_neither_drawn_nor_hidden(tmp_path):
    rows, swept = some_sweep()
    rows[0] |= {"status": "failed", "tokens_per_step": None, "speedup": None}
    rows[1] |= {"status": "skipped", "tokens_per_step": 99.0}
    done = [row for row in rows if row["status"] == "done"]
    note = sweep.what_was_swept(rows, done, swept, FIXED)
    assert note == [
        "random target, noise draft, token rule",
        "N = 5,000 steps a cell",
        "95 % intervals",
        "1 of 16 cells skipped",
        "1 of 16 cells not done",
    ]
    assert sweep.missing(rows[1:]) == ["1 of 15 cells skipped"]
    assert sweep.missing(rows[:1]) == ["1 of 1 cells not done"]
    assert sweep.missing(done) == []
    first = container(drawn(done, swept, "speedup"), "rule=token draft.order=2")
    assert first.lines[0].get_xdata().tolist() == [4, 8]
    assert [path.stem for path in draw_sweep(rows, swept, tmp_path, ("png",), {}, FIXED)] == [
        "tokens_per_step",
        "speedup",
    ]
    assert draw_sweep(rows[:2], swept, tmp_path, ("png",), {}, FIXED) == []
    assert draw_sweep(rows, {}, tmp_path, ("png",), {}, FIXED) == []


def test_a_cell_without_counts_shows_what_is_known_else_nothing():
    rows = [cell(g, 2.0, gamma=g) | {"tokens_per_step": None} for g in (1, 2)]
    assert series.measured(rows[0] | {"tokens_per_step_exact": 2.5}, "tokens_per_step") == (2.5, None, None)
    with style.house_style():
        assert sweep.comparison(sweep.Sweep(rows, {"gamma": [1, 2]}, []), "tokens_per_step") is None


@pytest.mark.parametrize(
    "swept",
    [
        {"gamma": [1, 2, 4, 8]},
        {"rule": ["token", "block", "greedy"], "draft.order": [2, 3, 4, 5, 6], "gamma": [0, 4, 16]},
        {"target.path": [f"{'a very long folder/' * 4}$text_{i}.txt" for i in range(3)], "gamma": [2, 4]},
        {"target.path": [f"{'a very long folder/' * 4}$text_{i}.txt" for i in range(3)]},
        {"draft.sigma": [0.3]},
    ],
)
def test_every_figure_of_a_sweep_is_readable(swept):
    combinations = [dict(zip(swept, values, strict=True)) for values in itertools.product(*swept.values())]
    rows = [cell(c.get("gamma", 4), points.closed_form(0.6, c.get("gamma", 4)), **c) for c in combinations]
    for metric in sweep.METRICS:
        with style.house_style():
            figure = sweep.comparison(sweep.Sweep(rows, swept, []), metric)
            style.write_note(figure, ["N = 5,000 steps a cell", "95 % intervals"])
            style.lay_out(figure)
            figure.draw_without_rendering()
        assert_readable(figure)
        assert figure.axes[0].bbox.width > 0.3 * figure.bbox.width
        for legend in figure.legends:
            assert legend.get_window_extent().x0 >= figure.axes[0].bbox.x1


if __name__ == "__main__":
    draw_everything(Path(sys.argv[1]))
