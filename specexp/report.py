"""Figures of a finished folder, from its files alone: at the end of a run, and again whenever asked for."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import specexp
from specexp import store
from specexp.errors import UserError
from specexp.rows import CurveRow

FORMATS: dict[str, tuple[str, ...]] = {"all": ("png", "pdf", "svg"), "png": ("png",), "none": ()}


def formats(figures: str | None, default: str) -> tuple[str, ...]:
    """The file formats that the key ``figures`` stands for; ``default`` is what its null means here."""
    if (figures or default) not in FORMATS:
        raise UserError(f"figures={figures}: must be {', '.join(FORMATS)} or null")
    return FORMATS[figures or default]


def draw_run(
    metrics: Mapping[str, Any],
    curves: Iterable[CurveRow],
    config: Mapping[str, Any],
    folder: Path,
    formats: Sequence[str],
) -> list[Path]:
    """A run's figures in its folder; matplotlib is imported only where there is a format to draw."""
    if not formats:
        return []
    from specexp import figures

    return figures.draw_run(metrics, curves, config, folder, formats, _origin(config, store.digest(config)))


def draw_sweep(folder: Path, formats: Sequence[str]) -> list[Path]:
    """A sweep's comparison figures, from its sweep.json and sweep.csv."""
    if not formats:
        return []
    from specexp import figures

    sweep = store.read_sweep(folder)
    swept = {key: sweep.content["swept"][key] for key in sweep.swept}
    fixed = sweep.content["fixed"]
    return figures.draw_sweep(sweep.rows, swept, folder, formats, _origin(fixed, store.digest(fixed)), fixed)


def _origin(config: Mapping[str, Any], digest: str) -> dict[str, str]:
    seed = {"seed": str(config["seed"])} if "seed" in config else {}
    return {"specexp": specexp.__version__, "config": digest, **seed}
