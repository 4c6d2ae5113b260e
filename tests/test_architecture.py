"""The arrows between modules, read off their imports: which file may know which."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import specexp

PACKAGE = Path(specexp.__file__).parent
MODULES = {
    ".".join(("specexp", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def imports(path, module, everywhere=True):
    """The dotted names that a module imports: at its top only, or in its functions too; ``from a import b`` gives
    both a and a.b."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if everywhere else _at_the_top(tree)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    [*package.split(".")[: len(package.split(".")) - node.level + 1], *filter(None, [base])]
                )
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def _at_the_top(tree):
    """Everything that runs on import: not the bodies of functions, not what only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _at_the_top(node)


def knows(module, name, everywhere=True):
    """Whether ``module`` imports ``name`` or anything inside it."""
    return any(found == name or found.startswith(f"{name}.") for found in imports(MODULES[module], module, everywhere))


def inside(*names):
    """The modules called ``names`` in the package, with all that lies in them."""
    roots = [f"specexp.{name}" for name in names]
    found = [module for module in MODULES if any(module == root or module.startswith(f"{root}.") for root in roots)]
    assert all(any(module == root or module.startswith(f"{root}.") for module in found) for root in roots)
    return found


HEART = inside(
    *("rounds", "sampling", "rules", "models", "lengths", "costs", "engine", "exact", "enumeration", "audit", "replay"),
    *("statistics", "observe", "target_only", "values", "plugins", "errors"),
)
NUMBERS = [*HEART, *inside("positions", "curves", "checks", "metrics")]
READERS = inside("app")


@pytest.mark.parametrize("module", HEART)
def test_the_heart_knows_no_house(module):
    """Laws, rules, walks and statistics know neither configs nor files nor figures, nor the libraries of those."""
    rooms = ("build", "store", "report", "tracking", "figures", "app", "metrics", "curves", "checks")
    for name in (*(f"specexp.{room}" for room in rooms), "mlflow", "matplotlib", "hydra", "omegaconf", "rich", "yaml"):
        assert not knows(module, name), name


@pytest.mark.parametrize("module", NUMBERS)
def test_numbers_know_no_files(module):
    for name in (
        "specexp.store",
        "specexp.tracking",
        "specexp.figures",
        "specexp.app",
        "mlflow",
        "matplotlib",
        "hydra",
    ):
        assert not knows(module, name), name


@pytest.mark.parametrize("module", MODULES)
def test_who_knows_hydra(module):
    """cfg dies in build; before it are those that compose it, launch it and keep the books of a sweep."""
    if knows(module, "hydra") or knows(module, "omegaconf"):
        assert module in READERS


@pytest.mark.parametrize("module", MODULES)
def test_each_library_has_one_room(module):
    for library, room in (("mlflow", "tracking"), ("matplotlib", "figures")):
        assert not knows(module, library) or module in inside(room)
        assert not knows(module, library, everywhere=False) or module in inside(room)


@pytest.mark.parametrize("module", MODULES)
def test_files_figures_and_tracking_never_run_an_experiment(module):
    """They are functions of finished folders."""
    if module in inside("store", "figures", "tracking", "report"):
        for name in ("app", "engine", "metrics", "observe", "replay", "exact", "models", "rules", "build"):
            assert not knows(module, f"specexp.{name}"), name


def test_the_engine_meets_models_through_the_pair():
    names = {
        name for name in imports(MODULES["specexp.engine"], "specexp.engine") if name.startswith("specexp.models.")
    }
    assert names == {"specexp.models.pair", "specexp.models.pair.Pair", "specexp.models.pair.PairState"}
    assert not knows("specexp.engine", "specexp.rules")


def test_models_and_rules_do_not_meet():
    for module in inside("models"):
        assert not knows(module, "specexp.rules")
    for module in inside("rules"):
        assert not knows(module, "specexp.models")


ALLOWED_RANDOM = {"Generator", "SFC64", "SeedSequence"}


def random_names(source):
    """The names that a source takes from numpy.random: ``np.random.<name>`` or ``from numpy.random import <name>``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("module", MODULES)
def test_randomness_is_an_argument(module):
    """No global generator, numpy's or Python's."""
    source = MODULES[module].read_text(encoding="utf-8")
    assert set(random_names(source)) <= ALLOWED_RANDOM
    assert not knows(module, "random")


def test_the_walk_over_imports_sees():
    """The negative controls of this page."""
    assert set(random_names("import numpy as np\nnp.random.seed(1)\nnp.random.Generator")) == {"seed", "Generator"}
    assert knows("specexp.engine", "specexp.sampling")
    assert knows("specexp.engine", "numpy")
    assert not knows("specexp.engine", "num")
    assert knows("specexp.sampling", "scipy")
    assert not knows("specexp.sampling", "scipy", everywhere=False)
    assert knows("specexp.rules", "specexp.rules.single")
    assert len(HEART) > 20


def test_numbers_are_made_without_the_heavy_libraries():
    """A whole run, from plain data to metrics, with MLflow, matplotlib and Hydra nowhere in sight."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from worlds import experiment\n"
        "from specexp.metrics import measure\n"
        "assert measure(experiment(steps=10, gamma_max=1)).metrics['steps'] == 10\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'mlflow', 'matplotlib', 'hydra', 'rich'}))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
