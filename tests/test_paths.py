"""Several drafts as a user sees them: the numbers of the first position, their figures, the presets, the table."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm
from worlds import experiment

from specexp import drafted, report, store, tables
from specexp.__main__ import main
from specexp.drafted import most_kept
from specexp.engine import walk
from specexp.figures import series, style, sweep, vectors
from specexp.metrics import measure

Z = float(norm.isf(1e-6 / 2))  # false alarm of each interval, at a fixed seed
FIXED = {"target": "fixed", "draft": "fixed", "gamma": 1, "gamma_max": 1, "steps": 50}
BIGRAM = {"target": "bigram", "draft": "bigram", "target__vocab": 4, "gamma": 2, "gamma_max": 2, "draft__paths": 2}
# p=(.4,.3,.2,.1), q=(.1,.2,.3,.4), K = 1..4 (computed apart from this project, to the digits shown)
TABLE = {
    "recursive": [0.6, 0.72, 0.768, 0.7912],
    "k_sequential": [0.6, 0.75, 0.79395, 0.831438],
    "transport": [0.6, 0.79, 0.871, 0.9439],
    "naive": [0.2, 0.35, 0.4646, 0.5537],
    "recursive without replacement": [0.6, 0.764286, 0.840298, 1],
}


def metrics_of(**given):
    return measure(experiment(**given)).metrics


# ---- the first position


@pytest.mark.parametrize("paths", [1, 2, 3, 4])
@pytest.mark.parametrize("rule", TABLE)
def test_the_first_position_is_exact_where_every_outcome_is_summed(rule, paths):
    name, replacement = rule.split()[0], "without" not in rule
    found = metrics_of(rule=name, draft__paths=paths, draft__replacement=replacement, **FIXED)
    assert found["acceptance_first"] == pytest.approx(TABLE[rule][paths - 1], abs=5e-7)
    assert found["tokens_per_step_exact"] == pytest.approx(1 + found["acceptance_first"], abs=1e-12)
    assert (found["acceptance_first_source"], found["acceptance_first_low"]) == ("exact", None)
    if replacement or paths == 1:
        assert found["acceptance_optimum"] == pytest.approx(TABLE["transport"][paths - 1], abs=1e-12)
        assert found["acceptance_optimum_low"] is None
    else:  # the draws depend on each other
        assert found["acceptance_optimum"] is None


@pytest.mark.parametrize("rule", ["recursive", "traversal"])
def test_where_contexts_persist_what_is_expected_is_what_is_exact(rule):
    """Both numbers at 2,000 steps; the optimum of another number of drafts is told from it."""
    exact = metrics_of(rule=rule, **BIGRAM)
    walked = experiment(rule=rule, steps=2000, **BIGRAM)
    walked.__dict__["enumerated"] = None  # as in a world that is too large
    found = measure(walked).metrics
    assert (exact["acceptance_first_source"], found["acceptance_first_source"]) == ("exact", "expected")
    for key in ("acceptance_first", "acceptance_optimum"):
        reach = Z / norm.isf(0.025) * (found[f"{key}_high"] - found[key])
        assert 0 < abs(found[key] - exact[key]) < reach
    three = metrics_of(rule="recursive", **BIGRAM | {"draft__paths": 3, "gamma": 1})["acceptance_optimum"]
    assert abs(found["acceptance_optimum"] - three) > reach


def test_the_optimum_of_fresh_contexts_is_that_of_every_set_of_tokens():
    run = experiment(rule="naive", target__vocab=5, draft__sigma=1.0, draft__paths=3, gamma=2, gamma_max=2, steps=300)
    steps = list(walk(run.players, run.gamma, run.plan))
    p = np.concatenate([step.round.target_probs[:, 0, 0] for step in steps])
    q = np.concatenate([step.draft_laws[:, 0, 0] for step in steps])
    sets = np.array(list(product((0, 1), repeat=5)))
    best = 1 + (p @ sets.T - (q @ sets.T) ** 3).min(1)
    found = measure(run).metrics
    assert found["acceptance_optimum"] == pytest.approx(best.mean(), abs=1e-12)
    error = best.std(ddof=1) / np.sqrt(len(best))
    assert found["acceptance_optimum_high"] - best.mean() == pytest.approx(1.968 * error, rel=1e-3)  # Student's, 299
    assert found["acceptance_optimum"] != pytest.approx(most_kept(p, q, 2).mean(), abs=1e-3)


def test_one_path_has_an_acceptance_and_no_optimum():
    found = metrics_of(steps=200)
    assert found["acceptance_optimum"] is None
    assert found["acceptance_first"] == pytest.approx(found["alpha"], rel=1e-12)  # a context a step, the token rule
    assert (found["drafted_per_step"], found["verified_per_step"]) == (4, 5)


def test_of_nothing_there_is_no_acceptance():
    found = metrics_of(gamma=0, gamma_max=0, rule="transport", draft__paths=2, steps=50)
    assert (found["acceptance_first"], found["acceptance_optimum"]) == (None, None)
    assert (found["drafted_per_step"], found["verified_per_step"]) == (0, 1)


def test_a_tree_is_counted_by_its_nodes_and_its_roots_children_compete():
    tree = {"length": "tree", "length__widths": (3, 2), "rule": "traversal", "steps": 200, "gamma": 2, "gamma_max": 2}
    found = metrics_of(**tree)
    assert (found["drafted_per_step"], found["verified_per_step"]) == (9, 10)
    beside = metrics_of(rule="recursive", draft__paths=3, steps=200, gamma=2, gamma_max=2)
    assert found["acceptance_optimum"] == beside["acceptance_optimum"]
    assert metrics_of(**tree, draft__replacement=False)["acceptance_optimum"] is None


def test_nothing_is_sorted_for_a_rule_that_takes_one_path():
    """The walk of ``token`` costs what it did; so does that of a world whose every outcome is summed."""
    assert not drafted.asides(experiment(rule="token"))
    assert "optimum" not in drafted.asides(experiment(rule="recursive", draft__paths=2, **FIXED))
    assert "optimum" in drafted.asides(experiment(rule="recursive"))


def test_accepted_over_drafted_counts_every_draft():
    """Four paths draft sixteen tokens a step; which of them were tested depends on the rule, and is not told."""
    found = metrics_of(rule="recursive", draft__paths=4, gamma=4, steps=300)
    assert found["acceptance_rate"] == pytest.approx((found["tokens_per_step"] - 1) / 16, rel=1e-12)
    assert found["acceptance_per_test"] is None
    assert metrics_of(rule="recursive", steps=300)["acceptance_per_test"] > 0.8


def ranks_of(**given):
    result = measure(experiment(rule="recursive", gamma_max=1, **given))
    return [row for row in result.curves if row.curve == "by_rank/acceptance"], result.metrics


def test_the_acceptance_vector_is_the_closed_form():
    """p=(.4,.3,.2,.1), q=(.1,.2,.3,.4): three independent drafts are kept with .6, .12, .048, two different ones with
    .6 and .164286: the steps of the table above. Intervals at a fixed seed."""
    many = {"target": "fixed", "draft": "fixed", "steps": 20_000, "requests": 200, "gamma": 1}
    for given, chances in (
        ({"draft__paths": 3}, [0.6, 0.12, 0.048]),
        ({"draft__paths": 2, "draft__replacement": False}, [0.6, 0.164286]),
    ):
        rows, _ = ranks_of(**many, **given)
        assert [row.x for row in rows] == list(range(1, len(chances) + 1))
        for row, chance in zip(rows, chances, strict=True):
            assert abs(row.value - chance) < Z * (row.high - row.low) / 2 / 1.96 + 1e-6
            assert abs(row.value - 0.3) > Z * (row.high - row.low) / 2 / 1.96  # the control


def test_the_acceptance_vector_adds_up_to_the_first_positions():
    """Of a tree too, whose nodes have several paths; of one draft there is none."""
    for given in ({"draft__paths": 4}, {"length": "tree", "length__widths": (3, 2)}):
        rows, metrics = ranks_of(gamma=2 if "length" in given else 1, steps=300, **given)
        assert sum(row.value for row in rows) == pytest.approx(metrics["acceptance_first"], abs=1e-12)
    assert ranks_of(gamma=1, steps=50) == ([], ranks_of(gamma=1, steps=50)[1])


# ---- figures


def cell(status="done", /, **numbers):
    return {"cell": "c", "status": status, "reason": None, "steps": 100.0, **numbers}


def several(first, optimum, drafted, tokens, source="expected", reach=0.01, **keys):
    """A cell of a sweep over drafts; intervals of half-width ``reach``."""
    values = {"acceptance_first": first, "acceptance_optimum": optimum, "tokens_per_step_expected": tokens}
    bounds = {
        f"{key}_{end}": None if value is None else value + way
        for key, value in values.items()
        for end, way in (("low", -reach), ("high", reach))
    }
    return cell(**values, **bounds, acceptance_first_source=source, drafted_per_step=drafted, speedup=1.0, **keys)


def a_sweep():
    """Two rules that take several drafts, one that takes none, and a cell that was skipped."""
    rows = [
        several(0.6 + 0.1 * k + 0.05 * r, 0.7 + 0.1 * k, 4 * k, 2.0 + k + r, rule=rule, **{"draft.paths": k})
        for r, rule in enumerate(("recursive", "transport"))
        for k in (1, 2, 3)
    ]
    token = several(0.6, None, 4, 2.5, rule="token", **{"draft.paths": 1})
    return [token, *rows, cell("skipped", rule="token", **{"draft.paths": 2})], {
        "rule": ["token", "recursive", "transport"],
        "draft.paths": [1, 2, 3],
    }


def figures_of(rows, swept):
    with style.house_style():
        done = [row for row in rows if row["status"] == "done"]
        a_sweep = series.Sweep(*vectors.by_coordinate(done, swept), ["note"])
        return {name: (figure.axes[0], note) for name, figure, note in sweep.figures(a_sweep)}


def line_of(axes, label):
    """[n, 2]: the points of the line of that name."""
    return next(c for c in axes.containers if c.get_label() == label).lines[0].get_xydata()


def test_acceptance_is_drawn_against_the_number_of_paths_below_its_optimum():
    axes, note = figures_of(*a_sweep())["acceptance"]
    assert line_of(axes, "rule=recursive") == pytest.approx(np.array([(k, 0.6 + 0.1 * k) for k in (1, 2, 3)]))
    assert line_of(axes, "rule=token") == pytest.approx(np.array([(1, 0.6)]))
    assert line_of(axes, "optimum") == pytest.approx(np.array([(k, 0.7 + 0.1 * k) for k in (1, 2, 3)]))
    (ceiling,) = [c for c in axes.containers if c.get_label() == "optimum"]
    assert ceiling.lines[0].get_color() == style.GREY
    bars = ceiling.lines[2][0].get_segments()
    assert bars[0][:, 1] == pytest.approx([0.79, 0.81])
    assert axes.get_xticks().tolist() == [1, 2, 3]
    assert axes.get_ylabel() == "acceptance of the first position, expected"
    assert note == ["note", "the optimum is that of independent drafts"]


def test_tokens_are_drawn_against_what_was_drafted_a_line_a_rule():
    axes, note = figures_of(*a_sweep())["drafted"]
    assert line_of(axes, "rule=transport") == pytest.approx(np.array([(4 * k, 3.0 + k) for k in (1, 2, 3)]))
    assert line_of(axes, "rule=token") == pytest.approx(np.array([(4, 2.5)]))
    assert len(axes.containers) == 3
    assert {found.lines[0].get_linestyle() for found in axes.containers} <= {"-", "--", "-.", ":"}
    assert note[-1] == "a step verifies one position more than it drafts tokens, in one pass"


def test_no_optimum_is_spoken_of_where_none_is_drawn():
    rows = [several(0.6 + 0.1 * k, None, k, 2.0, rule="recursive", **{"draft.paths": k}) for k in (1, 2, 3)]
    axes, note = figures_of(rows, {"draft.paths": [1, 2, 3]})["acceptance"]
    assert note == ["note"]
    assert axes.get_legend() is None


def test_no_rule_is_above_the_ceiling_where_steps_start_in_different_contexts():
    rows, swept = a_sweep()
    rows[1]["acceptance_optimum"] = 0.95
    axes, _ = figures_of(rows, swept)["acceptance"]
    assert line_of(axes, "optimum")[:, 1] == pytest.approx([0.95, 0.9, 1.0])


def test_each_world_has_a_ceiling_of_its_own():
    rows = [
        several(0.5, 0.6 + 0.1 * k + sigma, k, 2.0, rule="transport", **{"draft.paths": k, "draft.sigma": sigma})
        for k in (1, 2)
        for sigma in (0.1, 0.2)
    ]
    axes, _ = figures_of(rows, {"rule": ["transport"], "draft.paths": [1, 2], "draft.sigma": [0.1, 0.2]})["acceptance"]
    assert line_of(axes, "optimum draft.sigma=0.1") == pytest.approx(np.array([(1, 0.8), (2, 0.9)]))
    assert line_of(axes, "optimum draft.sigma=0.2") == pytest.approx(np.array([(1, 0.9), (2, 1.0)]))


def test_what_no_acceptance_depends_on_gives_no_second_ceiling():
    """Cells that differ in draft length, cost, rule or the tree below its root's children have one: the highest."""
    others = {
        "gamma": [2, 4],
        "cost.batch": [True, False],
        "rule": ["transport", "traversal"],
        "length.path": ["a", "b"],
    }
    rows = [
        several(0.5, 0.6 + 0.1 * k + 0.01 * place, k * gamma, 2.0, **{"draft.paths": k, "gamma": gamma}, **more)
        for k in (1, 2)
        for gamma in others["gamma"]
        for place, more in enumerate(
            dict(zip(list(others)[1:], values, strict=True)) for values in product(*list(others.values())[1:])
        )
    ]
    axes, _ = figures_of(rows, {"draft.paths": [1, 2], **others})["acceptance"]
    ceilings = [c for c in axes.containers if c.get_label().startswith("optimum")]
    assert [c.get_label() for c in ceilings] == ["optimum"]
    assert line_of(axes, "optimum") == pytest.approx(np.array([(1, 0.77), (2, 0.87)]))


def test_trees_are_points_of_one_line_also_where_two_draft_as_much():
    widths = {(2, 1): 4, (4,): 4, (2, 2): 6}
    rows = [
        several(0.5, 0.6, n, 2.0 + i, rule="traversal", **{"length.widths": list(w)})
        for i, (w, n) in enumerate(widths.items())
    ]
    found = figures_of(rows, {"length.widths": [list(w) for w in widths]})
    axes, _ = found["drafted"]
    assert line_of(axes, "this sweep").tolist() == [[4, 2], [4, 3], [6, 4]]
    (found,) = axes.containers
    assert (found.lines[0].get_linestyle(), found.lines[0].get_marker()) == ("None", "o")  # nothing lies between shapes
    assert axes.get_legend() is None  # nor is there another line
    assert "acceptance" not in found  # nothing that was swept is a number


def test_a_sweep_over_draft_lengths_has_no_figure_of_paths():
    rows = [several(0.5, None, g, 2.0, gamma=g) for g in (1, 2, 4)]
    assert {"acceptance", "drafted"}.isdisjoint(figures_of(rows, {"gamma": [1, 2, 4]}))


def test_the_figures_of_paths_are_readable():
    from test_figures import assert_readable

    for name in ("acceptance", "drafted"):
        axes, note = figures_of(*a_sweep())[name]
        with style.house_style():
            style.write_note(axes.figure, note)
            style.lay_out(axes.figure)
            axes.figure.draw_without_rendering()
        assert_readable(axes.figure)


# ---- vectors


@pytest.mark.parametrize(
    ("values", "coordinate"),
    [
        ([[0.2, 0.1, 0.7], [0.2, 0.3, 0.5], [0.2, 0.4, 0.4]], 1),
        ([[1, 2], [3, 2]], 0),
        ([[0.2, 0.1, 0.7], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6]], None),  # two have the same first coordinate
        ([[1, 2], [1, 2, 3]], None),
        ([[1, 2], None], None),
        ([["a"], ["b"]], None),
        ([[[1, 2]], [[2, 1]]], None),
        ([1, 2], None),
        ([[1, 2]], None),
    ],
)
def test_which_coordinate_tells_vectors_apart(values, coordinate):
    assert vectors.telling_coordinate(values) == coordinate


def test_a_swept_vector_is_a_line_against_its_coordinate():
    probs = [[0.25, x, 0.75 - x] for x in (0.5, 0.0, 0.25)]
    rows = [several(p[1], 1.0, 2, 2.0 + p[1], **{"target.probs": p, "rule": "naive"}) for p in probs]
    found = figures_of(rows, {"rule": ["naive"], "target.probs": probs})
    for name, first in (("tokens_per_step", 2.0), ("acceptance", 0.0)):
        axes, _ = found[name]
        assert line_of(axes, axes.containers[0].get_label()).tolist() == [[x, first + x] for x in (0.0, 0.25, 0.5)]
        assert axes.get_xlabel() == "target.probs[1]"
    a_third = figures_of([row | {"target.probs": [0.25, 1 / 3]} for row in rows[:1]], {"target.probs": [[0.25, 1 / 3]]})
    assert "acceptance" not in a_third


def test_fractions_of_many_digits_are_short():
    names = {
        "0.333333333333": "0.333",
        "0.05": "0.05",
        "0.123456": "0.123456",
        "0.1234567": "0.123",
        "128000123": "128000123",
    }
    assert {name: series.short(name) for name in names} == names
    rows = [several(x, 1.0, 2, 2.0, rule="naive", **{"draft.sigma": x}) for x in (1 / 3, 1 / 6)]
    axes, _ = figures_of(rows, {"draft.sigma": [1 / 3, 1 / 6]})["acceptance"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.167", "0.333"]


# ---- the presets and the table


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


def swept(outputs, *words):
    """The sweep's folder, and the rows of its table."""
    assert main([*words, "tracking=none", "sweep=s"]) == 0
    return outputs / "sweeps" / "s", store.read_sweep(outputs / "sweeps" / "s").rows


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.*")) if path.is_file()}


@pytest.mark.slow
def test_the_table_of_k_comes_out_to_six_digits_and_twice_the_same(outputs):
    folder, rows = swept(outputs, "experiment=multi_draft", "figures=none")
    assert {row["status"] for row in rows} == {"done"}
    assert len(rows) == 20
    for row in rows:
        rule = row["rule"] if row["draft.replacement"] else "recursive without replacement"
        assert row["acceptance_first"] == pytest.approx(TABLE[rule][row["draft.paths"] - 1], abs=5e-7)
        assert row["acceptance_first_source"] == "exact"
    before = {name: data for name, data in files_of(folder).items() if not name.endswith("run.json")}
    assert {"sweep.csv", "sweep.json"} < set(before)
    again, _ = swept(outputs, "experiment=multi_draft", "figures=none")
    assert {name: data for name, data in files_of(again).items() if not name.endswith("run.json")} == before


def khisti(first, x):
    """Acceptance of two drafts from the uniform law of three tokens for the target (first, x, 1 - first - x): of the
    optimum by all sets of tokens, of recursive rejection by its recursion, of K-SEQ by the root of its equation (over
    all rho on a grid refined by halves), of naive sampling by its sum."""
    p, q = np.array([first, x, 1 - first - x]), np.full(3, 1 / 3)
    sets = np.array(list(product((0, 1), repeat=3)))
    missed = 1 - np.minimum(p, q).sum()
    left = np.maximum(p - q, 0) / (missed or 1)
    low, high = 1.0, 2.0
    for _ in range(60):
        rho = (low + high) / 2
        beta = np.minimum(p / rho, q).sum()
        low, high = (rho, high) if 1 - (1 - beta) ** 2 > rho * beta else (low, rho)
    return {
        "transport": 1 + (sets @ p - (sets @ q) ** 2).min(),
        "recursive": 1 - missed * (1 - np.minimum(left, q).sum()),
        "k_sequential": 1 - (1 - np.minimum(p / high, q).sum()) ** 2,
        "naive": (p * (1 - (1 - q) ** 2)).sum(),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "first", "points"), [("khisti", 1 / 3, 13), ("khisti_sixth", 1 / 6, 16)])
def test_khistis_figure_comes_out(outputs, preset, first, points):
    folder, rows = swept(outputs, f"experiment=multi_draft_{preset}", "figures=none")
    assert len(rows) == 4 * points
    for row in rows:
        found = khisti(first, row["target.probs"][1])
        assert row["acceptance_first"] == pytest.approx(found[row["rule"]], abs=1e-9)
        assert row["acceptance_optimum"] == pytest.approx(found["transport"], abs=1e-12)
    ends = [row["acceptance_first"] for row in rows if row["rule"] == "transport"]
    assert min(ends[:1] + ends[-1:]) < 1 == pytest.approx(max(ends), abs=1e-12)  # Khisti's flat top, and not all of it
    assert folder / "acceptance.png" in report.draw_sweep(folder, ("png",))


def test_the_table_shows_the_first_position_and_fits_a_terminal(outputs):
    words = ["-m", "rule=token,recursive,transport", "draft.paths=1,2", "steps=50", "gamma_max=4", "figures=none"]
    folder, rows = swept(outputs, *words)
    table = store.read_sweep(folder)
    header, shown = tables.sweep_table(table, lambda rule: False)
    assert [row["status"] for row in rows] == ["done", "skipped", "done", "done", "done", "done"]
    assert [line[header.index("optimum")] for line in shown][:2] == ["", ""]
    assert header[header.index("first kept") + 1] == "optimum"
    narrow, cells = tables.sweep_table(table, lambda rule: False, narrow=True)
    narrow, cells = tables.spared(narrow, cells, 100)
    widths = [
        max(len(part) for cell in column for part in cell.split("\n")) for column in zip(narrow, *cells, strict=True)
    ]
    assert sum(widths) + len(widths) - 1 <= 100
    one = tables.sweep_table(swept_alone(outputs), lambda rule: False)[0]
    assert "first kept" not in one


def swept_alone(outputs):
    """A sweep without several drafts."""
    folder, _ = swept(outputs, "-m", "gamma=1,2", "steps=20", "gamma_max=2", "figures=none")
    return store.read_sweep(folder)


def test_values_are_shown_as_they_were_typed(outputs):
    folder, _ = swept(
        outputs,
        "-m",
        "target=fixed",
        "draft=fixed",
        "draft.probs=[0.25,0.25,0.25,0.25],[0.1,0.2,0.3,0.4]",
        "draft.replacement=true,false",
        "steps=20",
        "gamma=1",
        "gamma_max=1",
        "figures=none",
    )
    _, rows = tables.sweep_table(store.read_sweep(folder), lambda rule: False)
    assert [row[:2] for row in rows][1:3] == [["[0.25, 0.25, 0.25, 0.25]", "false"], ["[0.1, 0.2, 0.3, 0.4]", "true"]]
