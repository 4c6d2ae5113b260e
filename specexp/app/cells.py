"""One cell: a config in, a folder out. A cell never raises nor exits, whatever goes wrong in it.

How it ended stands in its folder (done, failed, skipped, killed, with the reason) and in the small record it returns;
only an interruption (Ctrl-C, SIGTERM) goes on to the caller, after it was written down, so that a sweep ends.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from specexp import plugins, report, store
from specexp.errors import SenselessPair, UserError
from specexp.store import files
from specexp.store.provenance import command_line
from specexp.trees import nodes_text

NOT_NUMBERS = ("hydra", "sweep", "tracking")  # what a config holds beside that which decides the numbers
LINE = "SPECEXP_COMMAND"  # the sweep's command line, from the parent to its cells wherever they run
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: ``status`` is done, failed, skipped or killed; ``folder`` is None where none was made."""

    status: str
    reason: str | None = None
    folder: Path | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The config that decides the numbers, resolved, as plain data, and with the ``import`` of members that
    installed packages bring; UserError where it cannot be resolved."""
    from specexp import build

    try:
        kept = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
        content = OmegaConf.to_container(kept, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{error.full_key}: {str(error).splitlines()[0]}; give it a value") from error
    assert isinstance(content, dict)
    ours = {str(key): value for key, value in content.items() if key not in NOT_NUMBERS}
    return plugins.located(ours, build.FAMILIES)


def run_cell(cfg: DictConfig) -> Outcome:
    """Hydra's task: one cell of the sweep ``cfg.sweep``, in its own folder."""
    from hydra.core.hydra_config import HydraConfig

    from specexp import build
    from specexp.app import console

    overrides = [line for line in HydraConfig.get().overrides.task if not line.startswith("sweep=")]
    try:
        config = plain(cfg)
        digest = store.digest(config)
        folder = store.cell_folder(store.outputs_root(), cfg.sweep, digest)
        record = store.new_record(digest, "cell", cfg.sweep, overrides, os.environ.get(LINE) or command_line(overrides))
        return perform(folder, config, record, lambda: build.experiment(config), "png", console.inside())
    except UserError as error:  # no folder can be made or written: nothing is left but the record
        return Outcome("failed", str(error))


def perform(
    folder: Path,
    config: Mapping[str, Any],
    record: dict[str, Any],
    experiment: Callable[[], Any],
    figures: str,
    progress: Progress | None = None,
) -> Outcome:
    """Builds, measures and draws into ``folder``; ``record`` becomes its run.json and says how it ended.

    ``figures`` is what a null in the config means. UserError only where the folder cannot be written at all.
    """
    record["versions"] = {**record["versions"], **plugins.fingerprints(config)}
    store.write_config(folder, config)
    store.write_run(folder, record)
    with _written_down(folder, record) as ended, one_thread():
        metrics = _measure(folder, config, experiment(), figures, progress)
        ended.append(Outcome("done", None, folder, metrics))
    return ended[0]


def _measure(
    folder: Path, config: Mapping[str, Any], experiment: Any, figures: str, progress: Progress | None
) -> Mapping[str, Any]:
    from specexp import metrics

    result = metrics.measure(experiment, progress)
    store.write_curves(folder, result.curves)
    if experiment.players.shape is not None:
        tree = experiment.players.tree(experiment.gamma)
        store.write_text(folder, "tree.txt", nodes_text(tree))  # another run's length.path
    report.draw_run(result.metrics, result.curves, config, folder, report.formats(config["figures"], figures))
    store.write_metrics(folder, result.metrics)
    return result.metrics


@contextmanager
def _written_down(folder: Path, record: dict[str, Any]) -> Iterator[list[Outcome]]:
    """Ends run.json with how the body ended, and swallows all but an interruption; yields the list for its outcome."""
    begun = time.perf_counter()
    ended: list[Outcome] = []
    try:
        yield ended
    except SenselessPair as error:
        ended[:] = [Outcome("skipped", str(error), folder)]
    except UserError as error:
        ended[:] = [Outcome("failed", str(error), folder)]
    except (Exception, SystemExit) as error:
        ended[:] = [Outcome("failed", _told(error, folder), folder)]
    except BaseException as error:
        ended[:] = [Outcome("killed", str(error) or "interrupted", folder)]
        raise
    finally:
        record |= {"status": ended[0].status, "reason": ended[0].reason, "seconds": time.perf_counter() - begun}
        with suppress(UserError):  # a full disk: the record returned still tells
            store.write_run(folder, record)


def _told(error: BaseException, folder: Path) -> str:
    """The reason in one line; the traceback goes into the folder, save for a full disk, which is no bug of ours."""
    if isinstance(error, OSError) and error.errno in files.NO_SPACE:
        return str(files.unwritable(folder, error))
    with suppress(UserError):
        store.write_text(folder, "traceback.txt", traceback.format_exc())
    return f"{type(error).__name__}: {error}".split("\n")[0]


@contextmanager
def line_of_cells(line: str) -> Iterator[None]:
    """Lets the cells, in this process and in a launcher's, know the command line that they are of."""
    os.environ[LINE] = line
    try:
        yield
    finally:
        del os.environ[LINE]


def shown(path: Path) -> str:
    """A path as a person would type it: from the current folder where it lies in there."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread: its last digits depend on how many there are."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield
