"""The parent's hand on MLflow: the store is tried before the work, told of finished folders after it.

Nothing is lost if it fails at the end: the files are whole, and ``sync`` tells MLflow of them later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from specexp import store, values
from specexp.app import console
from specexp.errors import UserError

if TYPE_CHECKING:
    from specexp.tracking import Settings


SYNC = "python -m specexp sync"


@dataclass(frozen=True)
class Store:
    """An MLflow store: ``uri`` None stands for MLFLOW_TRACKING_URI, else the outputs folder's own."""

    uri: str | None = None
    experiment: str = "specexp"


@dataclass(frozen=True)
class Nothing:
    """No MLflow."""


TRACKINGS: dict[str, Any] = {"local": Store, "server": Store, "none": Nothing}


class Bookkeeper:
    """Keeps one command's folders in the store of ``cfg.tracking``; for ``none`` it does nothing, and imports nothing.

    ``prepare`` imports MLflow, once a process.
    """

    def __init__(self, cfg: DictConfig, root: Path) -> None:
        kind = str(cfg.tracking.name)
        if kind not in TRACKINGS:
            raise UserError(f"tracking.name={kind}: no such member; one of {', '.join(TRACKINGS)}")
        member = values.read(TRACKINGS[kind], cfg.tracking, "tracking")
        self.settings = _settings(kind, member) if isinstance(member, Store) else None
        self.root = root
        self.kept: list[dict[str, str]] = []

    def prepare(self) -> None:
        """Opens the store, made if need be; UserError if it is of no use."""
        if self.settings is not None:
            from specexp import tracking

            self.settings = tracking.prepare(self.settings, self.root)

    def keep(self, folders: Sequence[Path], sweep: Path | None = None) -> bool:
        """Tells MLflow of finished folders, then of their sweep's; False, and one line said, where it fails."""
        if self.settings is None:
            return True
        try:
            self._track(self.settings, folders, sweep)
        except UserError as error:
            advice = "" if SYNC in str(error) else f" (the results are whole: {SYNC} logs them)"
            console.complain(f"{error}{advice}")
            return False
        return True

    def later(self) -> str:
        """What to say, after a semicolon, where the telling was cut short; nothing for tracking=none."""
        return "" if self.settings is None else f"; {SYNC} logs the rest in MLflow"

    def _track(self, settings: "Settings", folders: Sequence[Path], sweep: Path | None) -> None:
        from specexp import tracking

        for folder in folders:
            if (folder / "run.json").exists() and tracking.track(folder, settings):
                self.kept.append(store.read_run(folder)["mlflow"])
        if sweep is not None:
            tracking.track_sweep(sweep, settings)

    def places(self, sweep: str | None = None) -> dict[str, str]:
        """Where the runs are in MLflow, and how to look at them; empty where there are none."""
        if self.settings is None or not self.kept:
            return {}
        from specexp import tracking

        runs = [run["run_id"] for run in self.kept]
        found = tracking.links(self.settings, self.kept[0]["experiment_id"], runs, sweep)
        what = f"{len(runs)} runs and their summary" if sweep else f"run {runs[0]}"
        opened = {} if self.settings.is_server else {"open with": self._ui(self.settings)}
        compared = {"compare": found.compare} if sweep else {}
        where = f"experiment {self.settings.experiment}, {what}"
        return {"MLflow": where, **opened, "charts": found.chart, **compared}

    def _ui(self, settings: "Settings") -> str:
        own = settings.database == self.root / "mlflow.db"
        return "python -m specexp ui" + ("" if own else f" tracking.uri={settings.shown}")


def _settings(kind: str, member: Store) -> "Settings":
    from specexp.tracking import Settings

    return Settings(kind, member.uri, member.experiment)
