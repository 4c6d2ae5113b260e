"""From plain data to an experiment: wrong values in one line, senseless pairs, and the YAMLs that people write."""

import re
from dataclasses import fields

import numpy as np
import pytest
import yaml
from worlds import config, experiment

from specexp import build
from specexp.app.configs import conf_dir
from specexp.errors import SenselessPair, UserError
from specexp.models.derived import FreshDerived, WindowDerived
from specexp.models.table import Table

FIXED = {"target": "fixed", "draft": "fixed"}
BIGRAM = {"target": "bigram", "draft": "bigram"}
NAN, INF = float("nan"), float("inf")

WRONG = {
    # the top
    "gamma=-1": {"gamma": -1},
    "gamma=2.5": {"gamma": 2.5},
    "gamma=08": {"gamma": "08"},
    "gamma=null": {"gamma": None},
    "gamma=true": {"gamma": True},
    "gamma=[1, 2]": {"gamma": [1, 2]},
    "gamma_max=-1": {"gamma_max": -1},
    "steps=0": {"steps": 0},
    "steps=1000.0": {"steps": 1e3},
    "requests=0": {"requests": 0},
    "seed=-1": {"seed": -1},
    "seed=x": {"seed": "x"},
    "audit=1": {"audit": 1},
    "figures=pdf": {"figures": "pdf"},
    # members
    "target.vocab=0": {"target__vocab": 0},
    "target.vocab=20.5": {"target__vocab": 20.5},
    "target.context=token": {"target__context": "token"},
    "target.vocab=5000": {"target": "bigram", "target__vocab": 5000},
    "target.order=0": {"target": "text", "target__order": 0},
    "target.order=9": {"target": "text", "target__order": 9},
    "target.level=letter": {"target": "text", "target__level": "letter"},
    "target.smoothing=laplace": {"target": "text", "target__smoothing": "laplace"},
    "target.path=7": {"target": "text", "target__path": 7},
    "target.path=no/such.txt": {"target": "text", "target__path": "no/such.txt"},
    "target.held_out=0": {"target": "text", "target__held_out": 0},
    "target.held_out=1": {"target": "text", "target__held_out": 1},
    "draft.order=9": {"target": "text", "draft": "text", "draft__order": 9},
    "draft.sigma=-0.1": {"draft__sigma": -0.1},
    "draft.sigma=nan": {"draft__sigma": NAN},
    "draft.sigma=inf": {"draft__sigma": INF},
    "draft.sigma=0.3x": {"draft__sigma": "0.3x"},
    "draft.alpha=1.5": {"draft": "alpha", "draft__alpha": 1.5},
    "draft.other=best": {"draft": "alpha", "draft__other": "best"},
    "draft.paths=0": {"draft__paths": 0},
    "rule.lenience=0": {"rule": "lenient", "rule__lenience": 0},
    "rule.lenience=1.01": {"rule": "lenient", "rule__lenience": 1.01},
    "rule.residual=draft": {"rule": "lenient", "rule__residual": "draft"},
    "cost.target_ms=0": {"cost__target_ms": 0},
    "cost.draft_ms=-1": {"cost__draft_ms": -1},
    "cost.ratio=-0.1": {"cost": "ratio", "cost__ratio": -0.1},
    # probabilities
    "target.probs=[0.5, 0.6]": {**FIXED, "target__probs": [0.5, 0.6]},
    "target.probs=[0.5, -0.5, 1.0]": {**FIXED, "target__probs": [0.5, -0.5, 1.0]},
    "target.probs=[nan, 1.0]": {**FIXED, "target__probs": [NAN, 1.0]},
    "target.probs=[inf, 1.0]": {**FIXED, "target__probs": [INF, 1.0]},
    "target.probs=[0, 0]": {**FIXED, "target__probs": [0, 0]},
    "target.probs=[]": {**FIXED, "target__probs": []},
    "target.probs=[a, 1.0]": {**FIXED, "target__probs": ["a", 1.0]},
    "target.probs=[true, 0.0]": {**FIXED, "target__probs": [True, 0.0]},
    "target.probs=[null, 1.0]": {**FIXED, "target__probs": [None, 1.0]},
    "target.probs=0.5": {**FIXED, "target__probs": 0.5},
    "target.probs=null": {**FIXED, "target__probs": None},
    "target.probs=[[0.5, 0.5]]": {**FIXED, "target__probs": [[0.5, 0.5]]},
    "draft.probs=[0.5, 0.5]": {**FIXED, "draft__probs": [0.5, 0.5]},
    "draft.probs=[0.2, 0.2, 0.2, 0.2, 0.2]": {**FIXED, "draft__probs": [0.2] * 5},
    # matrices
    "target.matrix[1]=[0.5, 0.6]": {**BIGRAM, "target__matrix": [[0.5, 0.5], [0.5, 0.6]]},
    "target.matrix[0]=[0.5, 0.4, 0.1]": {**BIGRAM, "target__matrix": [[0.5, 0.4, 0.1], [0.5, 0.5]]},
    "target.matrix[0]=[1]": {**BIGRAM, "target__matrix": [[1], [1]]},
    "target.matrix=[]": {**BIGRAM, "target__matrix": []},
    "target.matrix=[0.5, 0.5]": {**BIGRAM, "target__matrix": [0.5, 0.5]},
    "target.matrix[1]=[nan, 1]": {**BIGRAM, "target__matrix": [[1, 0], [NAN, 1]]},
    "draft.matrix": {**BIGRAM, "draft__matrix": [[0.5, 0.5], [0.5, 0.5]]},
    "draft.matrix[0]=[0.5, 0.5]": {**BIGRAM, "target__vocab": 3, "draft__matrix": [[0.5, 0.5], [1, 0], [1, 0]]},
    # keys
    "draft.sgima=1": {"draft__sgima": 1},
    "rule.lenience=0.5": {"rule__lenience": 0.5},
    "target.probs=[0.5, 0.5]": {"target__probs": (0.5, 0.5)},
}


@pytest.mark.parametrize("begins", WRONG)
def test_wrong_values_are_one_line(begins):
    """The key, the value as it was written, a colon, and what would be right."""
    with pytest.raises(UserError) as error:
        experiment(**WRONG[begins])
    message = str(error.value)
    assert message.startswith(f"{begins}:")
    assert "\n" not in message
    assert re.search(r"must|give|take|no such|has no such key|cannot be read|not a fraction", message.split(":", 1)[1])


@pytest.mark.parametrize("family", build.FAMILIES)
def test_an_unknown_member_names_the_known(family):
    cfg = config()
    cfg[family] = {"name": "tokne"}
    with pytest.raises(UserError, match=rf"^{family}.name=tokne: no such member; one of ") as error:
        build.experiment(cfg)
    assert all(name in str(error.value) for name in build.FAMILIES[family])


def test_probabilities_written_by_hand_are_normalised():
    """.333333 three times is meant as a third; .33 is not."""
    run = experiment(**FIXED, target__probs=[0.333333] * 3, draft__probs=[0.333333, 0.333333, 0.333334])
    assert run.players.pair.target.rows.tolist() == [[1 / 3] * 3]
    with pytest.raises(UserError, match=r"sums to 0.99; probabilities must sum to 1$"):
        experiment(**FIXED, target__probs=[0.33] * 3, draft__probs=[0.333333, 0.333333, 0.333334])


# ---- pairs


@pytest.mark.parametrize("target", build.TARGETS)
@pytest.mark.parametrize("draft", build.DRAFTS)
def test_a_pair_makes_sense_or_says_why_not(target, draft):
    if build.goes_with(draft, target):
        given = {"target__order": 2, "draft__order": 1} if target == draft == "text" else {}
        given |= {"target__order": 2} if target == "text" else {}
        assert experiment(target=target, draft=draft, **given).players.pair.vocab >= 4
    else:
        with pytest.raises(SenselessPair) as error:
            experiment(target=target, draft=draft)
        reason, _, advice = str(error.value).partition("; take ")
        assert reason.startswith(f"target={target} draft={draft}: ")
        for better in re.findall(r"draft=(\w+)", advice):
            assert build.goes_with(better, target)
        assert "draft=noise" in advice


def test_the_table_of_pairs_is_whole():
    assert build.PARTNERS.keys() == {name for name, draft in build.DRAFTS.items() if not hasattr(draft, "derive")}
    assert {target for targets in build.PARTNERS.values() for target in targets} <= build.TARGETS.keys()


@pytest.mark.parametrize("rule", build.FAMILIES["rule"])
def test_more_paths_than_a_rule_verifies(rule):
    most = build.FAMILIES["rule"][rule]().max_paths
    with pytest.raises(SenselessPair, match=rf"^draft.paths={most + 1}: rule={rule} verifies at most {most}; take "):
        experiment(rule=rule, draft__paths=most + 1)
    assert experiment(rule=rule, draft__paths=most).players.pair.paths == most


def test_a_senseless_pair_is_a_users_error():
    assert issubclass(SenselessPair, UserError)
    assert not issubclass(UserError, SenselessPair)


# ---- what is built


def test_defaults_that_depend_on_others():
    assert (experiment().gamma_max, experiment(gamma=40).gamma_max, experiment(gamma_max=0).gamma_max) == (16, 40, 0)
    assert experiment().plan.requests == 1
    assert experiment(target="bigram").plan.requests == 64
    assert experiment(target="bigram", requests=3).plan.requests == 3
    assert experiment(requests=3).plan.requests == 3


def test_a_derived_draft_shares_the_targets_state():
    for target, kind in (("random", FreshDerived), ("fixed", Table), ("bigram", Table)):
        pair = experiment(target=target).players.pair
        assert pair.shared
        assert isinstance(pair.draft, kind)
    assert isinstance(experiment(target="bigram", target__vocab=600).players.pair.draft, WindowDerived)
    assert not experiment(**BIGRAM).players.pair.shared


def test_a_matrix_decides_the_vocabulary():
    pair = experiment(**BIGRAM, target__matrix=[[0, 1], [1, 0]]).players.pair
    assert pair.vocab == 2
    assert pair.draft.rows.shape == (2, 2)


def test_prompts_of_a_text_are_its_own_and_others_are_uniform():
    pair = experiment(target="bigram", target__vocab=3).players.pair
    prompts = pair.first_prompts(3000, np.random.default_rng(0))
    assert prompts.shape == (3000, 1)
    assert np.abs(np.bincount(prompts[:, 0], minlength=3) - 1000).max() < 130  # five sigma


# ---- the YAMLs


def yamls():
    return sorted(
        (path.parent.name, path.stem, path)
        for path in conf_dir().glob("*/*.yaml")
        if path.parent.name in build.FAMILIES
    )


@pytest.mark.parametrize(("family", "name", "path"), yamls(), ids=lambda part: part if isinstance(part, str) else "")
def test_every_yaml_is_its_member(family, name, path):
    """Its name, its keys, its defaults: what the dataclass says, nothing more and nothing less."""
    node = yaml.safe_load(path.read_text(encoding="utf-8"))
    member = build.FAMILIES[family][name]
    assert node["name"] == name
    assert build.member(family, node) == member()
    assert sorted(node) == sorted(["name", *(field.name for field in fields(member))])


def test_every_member_has_its_yaml():
    assert {(family, name) for family, name, _ in yamls()} == {
        (family, name) for family, table in build.FAMILIES.items() for name in table
    }


def test_the_top_of_the_config_is_the_settings():
    top = yaml.safe_load((conf_dir() / "config.yaml").read_text(encoding="utf-8"))
    for field in fields(build.Settings):
        assert top[field.name] == field.default, field.name
