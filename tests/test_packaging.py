"""Built, installed and run from elsewhere: what a user has who has no checkout. In a checkout: whose configs win.

Nothing is downloaded: hatchling is this environment's own, and so are the dependencies that the fresh ones see.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from test_docs import blocks, is_file

import specexp

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parent.parent
STALE = CHECKOUT / "specexp" / "conf"  # there it is nobody's: the wheel's copy is made of conf/
QUICK = ["steps=50", "figures=none", "tracking=none"]


def answer(*command: str | Path, folder: Path, outputs: Path) -> str:
    """What a command, run in ``folder``, says on its standard output. It must end well, with no word on the other."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["SPECEXP_OUTPUTS"] = str(outputs)
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def build(source: Path, target: Path) -> dict[str, Path]:
    """A ``wheel`` and an ``sdist`` of the checkout ``source``."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", target], cwd=source, check=True, timeout=120)
    return {"wheel": next(target.glob("*.whl")), "sdist": next(target.glob("*.tar.gz"))}


def contents(archive: Path) -> dict[str, bytes]:
    """The bytes by name in a wheel, or in an sdist without the name of its one folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        files = [(member.name, sdist.extractfile(member)) for member in sdist.getmembers()]
        return {name.partition("/")[2]: file.read() for name, file in files if file}


def tree(folder: str, called: str) -> dict[str, bytes]:
    """The bytes by name in a folder of this checkout, as if it were ``called`` so; no caches, no stale configs."""
    top = CHECKOUT / folder
    files = [path for path in top.rglob("*") if path.is_file() and path.suffix != ".pyc" and STALE not in path.parents]
    return {f"{called}/{path.relative_to(top).as_posix()}": path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(CHECKOUT, tmp_path_factory.mktemp("dist"))


OFFLINE = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--quiet"]


def environment(fresh: Path, archive: Path) -> Path:
    """The folder of programs of an environment, made in the folder ``fresh``, with specexp installed from ``archive``.

    The dependencies are this environment's own, by a path file at the end of the fresh one's search path: a specexp
    that is installed here loses, and one that is here by a path file of its own, editable, is not even seen.
    """
    venv.create(fresh, with_pip=True)
    packages = fresh / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "dependencies.pth").write_text(
        "".join(f"{sysconfig.get_paths()[kind]}\n" for kind in ("purelib", "platlib"))
    )
    python = fresh / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", *OFFLINE, archive], check=True, timeout=300)
    return python.parent


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def programs(built: dict[str, Path], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment, installed from the wheel or the sdist."""
    return environment(tmp_path_factory.mktemp("fresh"), built[request.param])


@pytest.fixture(params=["elsewhere", "/"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path("/") if request.param == "/" else tmp_path_factory.mktemp("elsewhere")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the wheel is made of."""
    copy = tmp_path / "checkout"
    for name in ("specexp", "conf"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, copy)
    shutil.rmtree(copy / "specexp" / "conf", ignore_errors=True)
    return copy


def copy_with_another_gamma(conf: Path, target: Path) -> None:
    shutil.copytree(conf, target)
    config = target / "config.yaml"
    text = config.read_text(encoding="utf-8")
    assert "\ngamma: 4 " in text
    config.write_text(text.replace("\ngamma: 4 ", "\ngamma: 7 "), encoding="utf-8")


def gamma_of(code: Path) -> str:
    """The line of the default draft length, in the configs of the package that lies in the folder ``code``."""
    said = answer(sys.executable, "-m", "specexp", "--cfg", "job", folder=code, outputs=code / "outputs")
    return next(line for line in said.splitlines() if line.startswith("gamma:"))


@functools.cache
def said_by_the_checkout(*words: str) -> str:
    return answer(sys.executable, "-m", "specexp", *words, folder=CHECKOUT, outputs=Path("unused"))


# ------------------------------------------------------------------------------------------------- what is in them


def test_the_wheel_is_the_package_with_text_and_configs_and_nothing_else(built: dict[str, Path]) -> None:
    found = {name: data for name, data in contents(built["wheel"]).items() if ".dist-info/" not in name}
    assert {"specexp/conf/config.yaml", "specexp/conf/rule/token.yaml", "specexp/data/hamlet_macbeth.txt"} <= set(found)
    assert found == tree("specexp", "specexp") | tree("conf", "specexp/conf")


def test_the_sdist_is_what_one_needs_to_work_on_it_and_no_run_of_ours(built: dict[str, Path]) -> None:
    found = contents(built["sdist"])
    pages = {name: (CHECKOUT / name).read_bytes() for name in ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")}
    folders = [tree(name, name) for name in ("specexp", "conf", "tests", "docs", "benchmarks")]
    for part in (pages, *folders):
        assert part.items() <= found.items()
    assert {name.partition("/")[0] for name in found if "/" in name} <= {
        *("specexp", "conf", "tests", "docs", "benchmarks", ".ci")
    }


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout_byte_for_byte(
    built: dict[str, Path], tmp_path: Path
) -> None:
    with tarfile.open(built["sdist"]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert build(unpacked, tmp_path / "dist")["wheel"].read_bytes() == built["wheel"].read_bytes()


def test_the_wheel_says_the_packages_version_and_brings_its_script(built: dict[str, Path]) -> None:
    found = {name.partition(".dist-info/")[2]: data for name, data in contents(built["wheel"]).items()}
    told = BytesParser().parsebytes(found["METADATA"])
    assert (told["Name"], told["Version"]) == ("specexp", specexp.__version__)
    assert found["entry_points.txt"].decode().split() == ["[console_scripts]", "specexp", "=", "specexp.__main__:main"]


# ------------------------------------------------------------------------------------------ installed, from anywhere


def test_an_installed_package_reads_its_own_files(programs: Path, tmp_path: Path) -> None:
    ask = "import specexp; from specexp.app.configs import conf_dir; print(specexp.__file__, conf_dir(), sep='\\n')"
    code, conf = map(Path, answer(programs / "python", "-c", ask, folder=tmp_path, outputs=tmp_path).splitlines())
    assert programs.parent in code.parents
    assert conf == code.parent / "conf"


def test_a_run_on_the_shipped_text_has_the_bytes_of_the_checkouts(programs: Path, folder: Path, tmp_path: Path) -> None:
    files = []
    for python, where in ((programs / "python", folder), (sys.executable, CHECKOUT)):
        outputs = tmp_path / where.name
        words = [*QUICK, "target=text", "draft=text", "gamma=2"]
        answer(python, "-m", "specexp", *words, folder=where, outputs=outputs)
        (run,) = (outputs / "runs").iterdir()
        files.append({path.name: path.read_bytes() for path in run.iterdir()})
    assert json.loads(files[0].pop("run.json"))["git"] is None
    assert files[1].pop("run.json")
    assert files[0] == files[1]
    assert set(files[0]) == {"config.yaml", "curves.csv", "metrics.json"}


@pytest.mark.parametrize("words", [["list"], ["--help"], ["--version"], ["--cfg", "job", "rule=lenient"]], ids=" ".join)
def test_the_script_and_the_module_say_what_the_checkout_says(
    programs: Path, folder: Path, tmp_path: Path, words: list[str]
) -> None:
    said = said_by_the_checkout(*words)
    assert said
    for command in ([programs / "specexp"], [programs / "python", "-m", "specexp"]):
        assert answer(*command, *words, folder=folder, outputs=tmp_path) == said


# ---------------------------------------------------------------------------------------------- whose configs win


def test_a_stale_copy_inside_the_package_never_wins_over_its_checkout(checkout: Path) -> None:
    copy_with_another_gamma(checkout / "conf", checkout / "specexp" / "conf")
    assert gamma_of(checkout) == "gamma: 4"
    shutil.rmtree(checkout / "conf")  # the control: now it is an installed package, and its own copy is the one
    assert gamma_of(checkout) == "gamma: 7"


def test_a_stale_copy_inside_the_package_never_gets_into_a_wheel(checkout: Path, tmp_path: Path) -> None:
    copy_with_another_gamma(checkout / "conf", checkout / "specexp" / "conf")
    (checkout / "specexp" / "conf" / "rule" / "forgotten.yaml").write_text("name: forgotten\n")
    made = build(checkout, tmp_path / "dist")
    found = contents(made["wheel"])
    assert {name for name in found if "/conf/" in name} == set(tree("conf", "specexp/conf"))
    assert found["specexp/conf/config.yaml"] == (CHECKOUT / "conf" / "config.yaml").read_bytes()
    assert not [name for name in contents(made["sdist"]) if name.startswith("specexp/conf/")]


@pytest.mark.parametrize("project", [None, '[project]\nname = "another"\n'], ids=["no project", "another project"])
def test_a_foreign_folder_beside_an_installed_package_is_not_ours(checkout: Path, project: str | None) -> None:
    (checkout / "conf").rename(checkout / "specexp" / "conf")
    copy_with_another_gamma(checkout / "specexp" / "conf", checkout / "conf")
    assert gamma_of(checkout) == "gamma: 7"  # the control: while the project beside it is ours, so is the folder
    (checkout / "pyproject.toml").unlink()
    if project:
        (checkout / "pyproject.toml").write_text(project)
    assert gamma_of(checkout) == "gamma: 4"


# ------------------------------------------------------------------------------------------- a package of one's own


@pytest.fixture(scope="module")
def own(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(programs, folder): an environment in which docs/extending.md was typed, word for word, and where."""
    programs = environment(tmp_path_factory.mktemp("own"), built["wheel"])
    folder = tmp_path_factory.mktemp("typed")
    found = blocks(CHECKOUT / "docs" / "extending.md")
    for block in found:
        if is_file(block) and block.path.startswith("my"):
            (folder / block.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.path).write_text(block.body, encoding="utf-8")
    (typed,) = [block.body for block in found if block.marked("shell") is not None]
    script = "set -e\n" + typed.replace("pip install", f"pip install {' '.join(OFFLINE)}")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path, "SPECEXP_OUTPUTS": str(folder / "outputs"), "PYTHONPATH": ""}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert re.search(r"^  steep .* \(my-rules\) \[rule.power\]$", done.stdout, re.M)
    return programs, folder


def test_a_package_of_ones_own_is_found_by_both_commands_and_gives_the_same_bytes(own: tuple[Path, Path]) -> None:
    runs = sorted((own[1] / "outputs" / "runs").iterdir())
    contents = [{path.name: path.read_bytes() for path in run.iterdir() if path.name != "run.json"} for run in runs]
    assert len(runs) == 2
    assert contents[0] == contents[1]
    assert b"import: 'my_rules:Steep'" in contents[0]["config.yaml"]
    assert json.loads(contents[0]["metrics.json"])["audit_bias"] < 1e-12
    (sweep,) = (own[1] / "outputs" / "sweeps").iterdir()
    assert [line.split(",")[1] for line in (sweep / "sweep.csv").read_text().splitlines()[1:]] == ["done"] * 4


@pytest.mark.parametrize("command", [["specexp"], ["python", "-m", "specexp"]], ids=" ".join)
def test_a_wrong_rule_of_a_package_is_refused_by_both_commands(
    own: tuple[Path, Path], command: list[str], tmp_path: Path
) -> None:
    line = [str(own[0] / command[0]), *command[1:], *QUICK, "rule=too_steep", "audit=true"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith("specexp: rule=too_steep: claims lossless=True and is not, TV")
    assert list((tmp_path / "outputs").rglob("metrics.json")) == []


def test_what_is_finished_is_reported_and_synced_without_the_package(own: tuple[Path, Path], tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    shutil.copytree(own[1] / "outputs", outputs)
    (sweep,), (run, _) = (outputs / "sweeps").iterdir(), (outputs / "runs").iterdir()
    here = (sys.executable, "-m", "specexp")  # an environment in which the package never was
    assert "steep" not in answer(*here, "list", folder=CHECKOUT, outputs=outputs)
    assert "tokens/step" in answer(*here, "report", sweep, run, folder=CHECKOUT, outputs=outputs)
    assert "7 runs logged" in answer(*here, "sync", folder=CHECKOUT, outputs=outputs)
