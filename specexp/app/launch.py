"""``Hydra.multirun``, with eyes: the cells as planned, a word before the first one starts, what each returned.

Sweepers and launchers stay Hydra's (or a plugin's); ours is only the envelope around the launcher.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig

from specexp import store
from specexp.app import composition
from specexp.app.cells import Outcome, plain, run_cell
from specexp.app.overrides import one_line
from specexp.errors import UserError


@dataclass(frozen=True)
class Cell:
    """A planned cell: its overrides as the sweeper made them, the config that decides its numbers."""

    overrides: tuple[str, ...]
    config: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        return store.digest(self.config)


@dataclass
class Plan:
    """``cells`` in sweep order, whatever launched them; ``outcomes``, by digest, of those that came to an end.

    ``before`` is called with the plan before each batch starts, when all its configs are known to be right.
    """

    before: Callable[["Plan"], None]
    cells: list[Cell] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def distinct(self) -> dict[str, dict[str, Any]]:
        """{digest: config} of the cells in their order; what was asked for twice is one cell."""
        return {cell.digest: cell.config for cell in self.cells}


class Planned(Launcher):
    """Any launcher, with its plan written down."""

    def __init__(self, launcher: Launcher, plan: Plan, composed: Callable[[list[str]], DictConfig]) -> None:
        self.launcher = launcher
        self.plan = plan
        self.composed = composed
        self.jobs: dict[str, JobReturn] = {}  # by digest: cells that are the same run once, in whatever batch they are

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Nothing: the launcher inside is set up already."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        batch = [Cell(tuple(one), plain(self.composed(list(one)))) for one in job_overrides]
        self.plan.cells += batch
        self.plan.before(self.plan)
        new = {cell.digest: cell for cell in batch if cell.digest not in self.jobs}
        ended = self.launcher.launch([list(cell.overrides) for cell in new.values()], initial_job_idx) if new else []
        self.jobs |= dict(zip(new, ended, strict=True))
        self.plan.outcomes |= {digest: job.return_value for digest, job in self.jobs.items()}
        return [self.jobs[cell.digest] for cell in batch]


def launch(hydra: Hydra, overrides: list[str], plan: Plan) -> None:
    """Runs the sweep of ``overrides`` and fills ``plan`` on the way.

    UserError before any cell starts if one of them cannot be composed. Hydra's own files go into a folder that is
    gone afterwards, unless ``hydra.sweep.dir`` was given (a cluster's launcher keeps its logs there).
    """
    with TemporaryDirectory(prefix="specexp-") as scratch:
        place = (
            [] if any(line.startswith("hydra.sweep.dir=") for line in overrides) else [f"hydra.sweep.dir='{scratch}'"]
        )
        cfg = composition.compose(hydra, [*overrides, *place], RunMode.MULTIRUN)
        try:
            _sweep(hydra, cfg, plan)
        except HydraException as error:
            raise UserError(one_line(error)) from error


def _sweep(hydra: Hydra, cfg: DictConfig, plan: Plan) -> None:
    context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(cfg))
    context.callbacks.on_multirun_start(config=cfg, config_name=composition.CONFIG)
    sweeper = Plugins.instance().instantiate_sweeper(hydra_context=context, task_function=run_cell, config=cfg)
    if sweeper.launcher is None:
        raise UserError(
            f"hydra/sweeper={type(sweeper).__name__}: keeps its launcher to itself; use hydra/sweeper=basic"
        )
    sweeper.launcher = Planned(sweeper.launcher, plan, lambda one: hydra.config_loader.load_sweep_config(cfg, one))
    sweeper.sweep(arguments=list(cfg.hydra.overrides.task))
    context.callbacks.on_multirun_end(config=cfg, config_name=composition.CONFIG)
