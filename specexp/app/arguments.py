"""The words of the command line, taken apart; flags may stand anywhere among the ``key=value`` words."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from specexp.errors import UserError

INSPECT = ("info", "hydra_help", "shell_completion")  # Hydra's own flags, which run nothing


@dataclass(frozen=True)
class Arguments:
    """``overrides`` are the key=value words, ``cfg`` what to show in place of running, ``inspect`` Hydra's flags."""

    overrides: list[str]
    multirun: bool
    config_dir: str | None
    cfg: str | None
    package: str | None
    resolve: bool
    inspect: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see python -m specexp --help")


def parse(words: Sequence[str]) -> Arguments:
    """The words after the command; UserError for a flag that there is not."""
    found = _parser().parse_intermixed_args(list(words))
    if found.resolve and not found.cfg:
        raise UserError("--resolve: only together with --cfg job")
    if found.multirun and found.cfg:
        raise UserError("--cfg: shows one run's config; leave -m out")
    return Arguments(
        overrides=found.overrides,
        multirun=found.multirun,
        config_dir=found.config_dir,
        cfg=found.cfg,
        package=found.package,
        resolve=found.resolve,
        inspect=any(getattr(found, name) for name in INSPECT),
    )


def _parser() -> _Parser:
    parser = _Parser(prog="specexp", add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--run", "-r", action="store_true")
    parser.add_argument("--config-dir", "-cd")
    parser.add_argument("--cfg", "-c", choices=["job", "hydra", "all"])
    parser.add_argument("--package", "-p")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--info", "-i", nargs="?", const="all")
    parser.add_argument("--hydra-help", action="store_true")
    parser.add_argument("--shell-completion", "-sc", action="store_true")
    return parser
