"""Every YAML of every group: it composes, it builds, its keys are its member's, its first line is a command."""

import shlex
from dataclasses import fields
from pathlib import Path

import pytest

import specexp
from specexp import build
from specexp.app import bookkeeping, cells, composition, configs, pages
from specexp.errors import UserError

TABLES = {**build.FAMILIES, "tracking": bookkeeping.TRACKINGS}
ENTRIES = [(group, entry) for group in configs.GROUPS for entry in configs.entries(group) if not entry.origin]
MEMBERS = [(group, entry.name) for group, entry in ENTRIES if group in TABLES]


def composed(*words: str, config_dir: Path | None = None):
    with composition.hydra(str(config_dir) if config_dir else None) as hydra:
        return composition.compose(hydra, list(words))


def test_every_member_of_every_table_has_a_yaml_and_the_reverse() -> None:
    assert sorted(MEMBERS) == sorted((group, name) for group, table in TABLES.items() for name in table)


@pytest.mark.parametrize(("group", "name"), MEMBERS)
def test_the_keys_of_a_yaml_are_its_members_fields(group: str, name: str) -> None:
    node = composed(f"{group}={name}")[group]
    assert sorted(node) == sorted(["name", *(field.name for field in fields(TABLES[group][name]))])
    assert node.name == name


@pytest.mark.parametrize(("group", "name"), MEMBERS)
def test_the_yamls_values_are_the_dataclass_defaults(group: str, name: str) -> None:
    """One default, said twice: in the YAML that people read, and in the class that code reads."""
    node, member = (
        cells.plain(composed(f"{group}={name}", "tracking=none"))[group]
        if group != "tracking"
        else (composed(f"{group}={name}")[group]),
        TABLES[group][name](),
    )
    for key in (field.name for field in fields(member)):
        said = getattr(member, key)
        assert (list(said) if isinstance(said, tuple) else said) == node[key], key


@pytest.mark.parametrize(("group", "entry"), ENTRIES, ids=lambda part: getattr(part, "name", part))
def test_the_first_line_is_a_command_with_the_member_in_it_that_builds(group: str, entry: configs.Entry) -> None:
    python, dash, package, *words = shlex.split(entry.command)
    assert (python, dash, package) == ("python", "-m", "specexp")
    assert f"{group}={entry.name}" in words
    assert entry.told.endswith((".", "?"))
    build.experiment(cells.plain(composed(*words)))


def test_config_yaml_opens_with_its_command_and_holds_the_keys_that_build_reads() -> None:
    assert (configs.conf_dir() / "config.yaml").read_text(encoding="utf-8").startswith("# python -m specexp\n")
    cfg = composed()
    assert {*cfg} - {"hydra", "sweep", *TABLES} == {field.name for field in fields(build.Settings)}
    for field in fields(build.Settings):
        assert cfg[field.name] == field.default


def test_no_yaml_of_ours_uses_a_target() -> None:
    assert not [path for path in configs.conf_dir().rglob("*.yaml") if "_target_" in path.read_text(encoding="utf-8")]


def test_a_presets_top_level_keys_win_over_config_yaml_and_lose_to_the_command_line(tmp_path: Path) -> None:
    preset(tmp_path, "mine", "gamma: 7\nsteps: 11\n")
    cfg = composed("experiment=mine", "steps=12", config_dir=tmp_path)
    assert (cfg.gamma, cfg.steps) == (7, 12)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("gama: 3\n", "gama=3: no such key; did you mean gamma?"),
        ("draft: {sigm: 3}\n", "draft.sigm=3: draft=noise has no such key"),
        ("defaults: [override /draft: nope]\n", "Could not find 'draft/nope'"),
        ("gamma: [1\n", "line 3"),
    ],
)
def test_a_wrong_preset_is_refused_in_one_line(tmp_path: Path, content: str, told: str) -> None:
    preset(tmp_path, "mine", content)
    with pytest.raises(UserError) as error:
        build.experiment(cells.plain(composed("experiment=mine", config_dir=tmp_path)))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def preset(folder: Path, name: str, content: str) -> None:
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment" / f"{name}.yaml").write_text(f"# @package _global_\n{content}", encoding="utf-8")


def test_a_members_variant_of_ones_own_is_taken_from_config_dir(tmp_path: Path) -> None:
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft" / "weak.yaml").write_text(
        "name: noise\nsigma: 0.9\npaths: 1\nreplacement: true\ngreedy: false\n", encoding="utf-8"
    )
    assert composed("draft=weak", config_dir=tmp_path).draft.sigma == 0.9


def make_conf(parent: Path, text: str = "mark: 1\n") -> Path:
    (parent / "conf").mkdir(parents=True)
    (parent / "conf" / "config.yaml").write_text(text, encoding="utf-8")
    return parent / "conf"


def test_a_checkouts_conf_wins_over_a_stale_copy_and_a_foreign_one_never_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "specexp"
    monkeypatch.setattr(specexp, "__file__", str(package / "__init__.py"))
    with pytest.raises(UserError, match="install specexp again"):
        configs.conf_dir()
    inside, beside = make_conf(package), make_conf(tmp_path)
    assert configs.conf_dir() == inside  # the folder beside it is some other project's
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n', encoding="utf-8")
    assert configs.conf_dir() == inside
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "specexp"\n', encoding="utf-8")
    assert configs.conf_dir() == beside


def test_help_names_every_member_and_key_and_list_every_key_of_a_member(capsys: pytest.CaptureFixture[str]) -> None:
    pages.show("run", ["--help"])
    page = capsys.readouterr().out
    assert all(f"\n  {name} " in page for _, name in MEMBERS)
    assert all(f"  {field.name}=" in page for field in fields(build.Settings))
    assert page.split("Examples\n")[1].count("python -m specexp") == 5
    pages.show("list", [])
    members = capsys.readouterr().out
    for group, name in MEMBERS:
        for field in fields(TABLES[group][name]):
            assert f"{group}.{field.name}" in members


def test_the_help_pages_examples_compose(capsys: pytest.CaptureFixture[str]) -> None:
    for line in pages.EXAMPLES.splitlines()[1:]:
        words = shlex.split(line)[3:]
        with composition.hydra() as hydra:
            mode = composition.RunMode.MULTIRUN if "-m" in words else composition.RunMode.RUN
            composition.compose(hydra, [word for word in words if word != "-m"], mode)
