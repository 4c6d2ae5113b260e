"""Hydra without ``hydra.main``: the folder of configs, the loader that composes them, errors in our own words.

The loader composes each cell of a sweep once and remembers it, so that after the sweep, whole or interrupted, its
cells are known in their order whatever sweeper and launcher were used.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from specexp import plugins
from specexp.app import lacking
from specexp.app import overrides as words
from specexp.app.configs import GROUPS, conf_dir, entries, given_folders, top_keys
from specexp.errors import UserError

CONFIG = "config"
UNREADABLE = (HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError)


class Loader(ConfigLoaderImpl):
    """Hydra's loader; raises UserError in one line, and keeps the cells of a sweep in their order in ``cells``."""

    def __init__(self, config_dir: str | None = None) -> None:
        search_path = create_config_search_path(str(conf_dir()))
        for origin, folder in [*given_folders(config_dir), *plugins.config_folders()]:
            search_path.prepend(origin, f"file://{folder}", SearchPathQuery(provider="schema"))
        super().__init__(search_path)
        self.config_dir = config_dir
        self.cells: dict[tuple[str, ...], DictConfig] = {}
        self.known_members: dict[str, list[str]] = {}
        self.known_choices: dict[tuple[str, ...], DictConfig | None] = {}

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        given = words.parse(overrides)
        overrides = [word for word, one in zip(overrides, given, strict=True) if not words.is_no_preset(one)]
        if run_mode == RunMode.RUN and validate_sweep_overrides:
            words.refuse_several(given)
        if not any(override.key_or_group == "hydra.searchpath" for override in given):  # it brings members of its own
            words.refuse_unknown(given, self.members)
        kept = self.without_lacking(overrides, given) if run_mode == RunMode.MULTIRUN else overrides
        try:
            cfg = super().load_configuration(config_name, kept, run_mode, from_shell, validate_sweep_overrides)
        except UNREADABLE as error:
            raise UserError(words.explain(error, given, self.chosen(given), self.holders)) from error
        if kept != overrides:  # the sweeper gives each cell all words that are not Hydra's own
            cfg.hydra.overrides.task = [word for word in overrides if word not in cfg.hydra.overrides.hydra]
        words.refuse_foreign(cfg, [*GROUPS, *(key for key, _, _ in top_keys())])
        words.refuse_plain(cfg, [group for group in GROUPS if group != "experiment"])
        self._refuse_namesakes(cfg)
        return cfg

    def _refuse_namesakes(self, cfg: DictConfig) -> None:
        """UserError for a chosen YAML that several folders hold: all but the first would go unread."""
        for group, name in cfg.hydra.runtime.choices.items():
            if str(group).split("/")[0] in GROUPS:
                holding = [source.path for source in self.get_sources() if source.is_config(f"{group}/{name}")]
                found = list(dict.fromkeys(holding))  # a folder may have been given twice
                if len(found) > 1:
                    raise UserError(f"{group}={name}: a {name}.yaml each in {' and '.join(found)}; rename one of them")

    def members(self, group: str) -> list[str]:
        """The members of a group, those of its folders as ``folder/name``; none where ``group`` is a mere key."""
        if group not in self.known_members:
            folders = self.repository.get_group_options(group, ObjectType.GROUP)
            nested = [f"{folder}/{name}" for folder in folders for name in self.members(f"{group}/{folder}")]
            self.known_members[group] = [*self.repository.get_group_options(group, ObjectType.CONFIG), *nested]
        return self.known_members[group]

    def holders(self, group: str, key: str) -> list[str]:
        """The members of a group that have the key."""
        return [entry.name for entry in entries(group, self.config_dir) if key in entry.keys]

    def is_choice(self, override: Override) -> bool:
        """Whether a word chooses a member, or a preset."""
        return bool(self.members(override.key_or_group)) and not words.is_no_preset(override)

    def chosen(self, given: Sequence[Override]) -> DictConfig | None:
        """The config that the chosen members make by themselves; None where even they do not compose."""
        choices = [one for one in given if self.is_choice(one) or one.key_or_group == "hydra.searchpath"]
        lines = tuple(str(one.input_line) for one in choices)
        if lines not in self.known_choices:
            try:
                self.known_choices[lines] = super().load_configuration(CONFIG, list(lines), RunMode.MULTIRUN)
            except UNREADABLE:
                self.known_choices[lines] = None
        return self.known_choices[lines]

    def without_lacking(self, lines: Sequence[str], given: Sequence[Override]) -> list[str]:
        """``lines`` less the keys that the members chosen by ``given`` lack: a sweep's other members have them."""
        members = self.chosen(given) if any(lacking.is_key(one) for one in given) else None
        dropped = {one.input_line for one in lacking.lacking(given, members)} if members is not None else set()
        return [line for line in lines if line not in dropped]

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Composed once, when the sweeper checks its cells; a copy when the launcher asks, for it writes into it."""
        key = tuple(sweep_overrides)
        if key not in self.cells:
            given = words.parse([*master_config.hydra.overrides.hydra, *sweep_overrides])
            self.cells[key] = super().load_sweep_config(master_config, self.without_lacking(sweep_overrides, given))
        return copy.deepcopy(self.cells[key])

    def __getstate__(self) -> dict[str, Any]:
        """What a launcher's worker gets: it composes its own cells, and needs nobody else's."""
        return {**self.__dict__, "cells": {}, "known_choices": {}}


@contextmanager
def hydra(config_dir: str | None = None) -> Iterator[Hydra]:
    """Hydra on our configs, and on those of ``config_dir`` beside them; leaves Hydra's global state as it was."""
    version.setbase("1.3")
    before = HydraConfig.instance().cfg
    try:
        yield Hydra("specexp", Loader(config_dir))
    finally:
        HydraConfig.instance().cfg = before


def compose(hydra: Hydra, overrides: list[str], mode: RunMode = RunMode.RUN) -> DictConfig:
    """The config of ``overrides``, its ``hydra`` node included; UserError where they are wrong."""
    cfg = hydra.compose_config(CONFIG, overrides, mode)
    HydraConfig.instance().set_config(cfg)
    return cfg
