"""``python -m specexp key=value ...``: Hydra in, cells out. A single run or a sweep, or a look at the config."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.hydra import Hydra
from hydra.types import RunMode
from omegaconf import DictConfig

from specexp import plugins, store
from specexp.app import arguments, cells, composition, configs, console, overrides
from specexp.app.bookkeeping import Bookkeeper
from specexp.errors import UserError
from specexp.store.provenance import command_line


def run(words: Sequence[str]) -> int:
    """Runs what the words after the command say; the exit code. UserError for bad input."""
    given = arguments.parse(words)
    if given.inspect:
        return _inspect(words)
    line = command_line(words)
    with composition.hydra(given.config_dir) as hydra:
        if given.cfg:
            hydra.show_cfg(composition.CONFIG, given.overrides, given.cfg, given.package, given.resolve)
            return 0
        if given.multirun or _preset_sweeps(hydra, given.overrides):
            from specexp.app import sweeping

            return sweeping.run(hydra, given.overrides, line)
        return _single(composition.compose(hydra, given.overrides), given.overrides, line)


def _preset_sweeps(hydra: Hydra, words: Sequence[str]) -> bool:
    """Whether a preset, or ``hydra.mode``, makes a sweep of it without -m."""
    keys = {override.key_or_group for override in overrides.parse(words)}
    if not keys & {"experiment", "hydra.mode"}:
        return False
    mode: RunMode | None = composition.compose(hydra, list(words), RunMode.MULTIRUN).hydra.mode
    return mode == RunMode.MULTIRUN


def _inspect(words: Sequence[str]) -> int:
    """Hydra's own flags, which run nothing, as ``hydra.main`` does them."""
    import hydra

    before = sys.argv
    sys.argv = [before[0], *words]
    try:
        hydra.main(version_base="1.3", config_path=str(configs.conf_dir()), config_name=composition.CONFIG)(print)()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    return 0


def _single(cfg: DictConfig, words: list[str], line: str) -> int:
    """One run in a folder of its own. Whatever the user got wrong is said before there is one."""
    from specexp import build

    if cfg.sweep is not None:
        raise UserError(f"sweep={cfg.sweep}: names the folder of several runs; add -m, or leave it out")
    config = cells.plain(cfg)
    root = store.outputs_root()
    keeper = Bookkeeper(cfg, root)
    with cells.one_thread():
        experiment = build.experiment(config)
    keeper.prepare()
    folder = store.new_run_folder(root)
    record = store.new_record(store.digest(config), "run", None, words, line)
    try:
        outcome = _performed(folder, config, record, experiment)
    except KeyboardInterrupt:
        keeper.keep([folder])
        raise
    return _kept_and_shown(keeper, outcome, config, folder)


def _kept_and_shown(keeper: Bookkeeper, outcome: cells.Outcome, config: dict[str, Any], folder: Path) -> int:
    """The exit code, after MLflow and the user were told; the user even where the former was interrupted."""
    places = {"folder": cells.shown(folder)}
    try:
        tracked = keeper.keep([folder])
        places |= keeper.places()
    except KeyboardInterrupt:
        if outcome.status == "done":
            console.show_run(outcome.metrics, config, places)
        console.complain(f"the run's files are in {places['folder']}{keeper.later()}")
        raise
    if outcome.status == "failed":
        return _failed(outcome, folder, plugins.imports(config))
    console.show_run(outcome.metrics, config, places)
    return 0 if tracked else 1


def _performed(folder: Path, config: dict[str, Any], record: dict[str, Any], experiment: Any) -> cells.Outcome:
    """The run's outcome: done, or failed by a bug of ours; UserError, and no folder, where it was the user's."""
    try:
        with console.bar():
            outcome = cells.perform(folder, config, record, lambda: experiment, "all", console.inside())
        if outcome.status == "done" or (folder / "traceback.txt").exists():
            return outcome
        raise UserError(outcome.reason)
    except UserError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _failed(outcome: cells.Outcome, folder: Path, imports: Sequence[str]) -> int:
    trace = cells.shown(folder / "traceback.txt")
    whose = " or of ".join(["specexp", *imports])
    console.complain(f"{outcome.reason}; this is a bug of {whose}, its traceback is in {trace}")
    return 1
