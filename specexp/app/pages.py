"""Our own ``--help`` page and ``list``, made from the YAMLs themselves; nothing heavy is imported for them."""

import shutil
import textwrap
from collections.abc import Sequence

import specexp
from specexp.app import arguments, configs

HEAD = """\
specexp: experiments on speculative decoding, exact where that is possible and honest about noise where it is not

  python -m specexp [key=value ...]            one run: a table, a folder of files, an MLflow run
  python -m specexp -m key=value,value ...     a sweep: a run a cell, a summary run, comparison figures
  python -m specexp report FOLDER ...          figures and tables again, from the files, nothing re-run
  python -m specexp list                       the members of every group, a line each
  python -m specexp ui [port=5000]             the MLflow UI where the runs are
  python -m specexp sync                       MLflow brought up to date from the files, of tracking=none too
"""

FLAGS = """\
Flags
  -m, --multirun      run every combination of the values given
  --config-dir DIR    members and presets of your own beside ours, e.g. DIR/experiment/mine.yaml
  --cfg job           show the config in place of running (--resolve, --package KEY)
  --info, --hydra-help, --shell-completion     Hydra's own
  --version, --help

Files go to ./outputs or $SPECEXP_OUTPUTS. Exit codes: 0 well, 1 a run failed, 2 bad input, 130 interrupted.
"""

EXAMPLES = """\
Examples
  python -m specexp
  python -m specexp -m gamma=1,2,4,8
  python -m specexp -m target=text draft=text draft.order=2,3,4 gamma=1,2,4,8
  python -m specexp target=fixed target.probs=[0.4,0.3,0.2,0.1] draft=fixed draft.probs=[0.1,0.2,0.3,0.4]
  python -m specexp steps=200 figures=none tracking=none
"""


def show(command: str, words: Sequence[str]) -> int:
    """Prints the page that the words ask for; exit code 0."""
    if "--version" in words:
        print(f"specexp {specexp.__version__}")
        return 0
    asked = {"--help", "-h"} & set(words)
    folder = arguments.parse([word for word in words if word not in asked]).config_dir
    if command == "list" and not asked:
        print(members(with_keys=True, config_dir=folder))
    else:
        print("\n".join([HEAD, members(with_keys=False, config_dir=folder), keys(), FLAGS, EXAMPLES]), end="")
    return 0


def members(with_keys: bool, config_dir: str | None = None) -> str:
    """The groups and their members, those of the user's ``config_dir`` too, a line each; with their keys too."""
    blocks = []
    for group in configs.GROUPS:
        found = configs.entries(group, config_dir)
        width = max(14, *(len(entry.name) + 2 for entry in found)) if found else 0
        lines = [f"  {entry.name:<{width}}{_told(entry)}{_keys(group, entry) if with_keys else ''}" for entry in found]
        if lines:
            blocks.append("\n".join([group, *lines, ""]))
    return "\n".join(blocks)


def _told(entry: configs.Entry) -> str:
    return f"{entry.told} ({entry.origin})" if entry.origin else entry.told


def _keys(group: str, entry: configs.Entry) -> str:
    return f" [{', '.join(f'{group}.{key}' for key in entry.keys)}]" if entry.keys and group != "experiment" else ""


def keys() -> str:
    """The keys at the config's top, with their defaults."""
    width = min(shutil.get_terminal_size().columns, 120)
    lines = [f"  {f'{key}={default}':<16}{told}" for key, default, told in configs.top_keys()]
    wrapped = [textwrap.fill(line, width, subsequent_indent=" " * 18) for line in lines]
    return "\n".join(["Keys and their defaults; a member's own as group.key=value", *wrapped, ""])
