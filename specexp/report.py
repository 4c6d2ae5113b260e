"""``python -m specexp report FOLDER``: figures and tables again, from the files alone, nothing re-run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import specexp
from specexp import latex, store
from specexp.errors import UserError
from specexp.rows import CurveRow

TABLE = "table.tex"  # the table that is printed, for a paper
FORMATS: dict[str, tuple[str, ...]] = {"all": ("png", "pdf", "svg"), "png": ("png",), "none": ()}


def formats(figures: str | None, default: str) -> tuple[str, ...]:
    """The file formats that the key ``figures`` stands for; ``default`` is what its null means here."""
    if (figures or default) not in FORMATS:
        raise UserError(f"figures={figures}: must be {', '.join(FORMATS)} or null")
    return FORMATS[figures or default]


def command(words: Sequence[str]) -> int:
    """``report FOLDER...``: figures in all formats, the table printed and as LaTeX, of runs and sweeps; exit code 0."""
    if not words:
        raise UserError("report: which folder? report outputs/sweeps/NAME, or a run's folder")
    for word in words:
        folder = Path(word)
        if (folder / "sweep.json").is_file():
            _report_sweep(folder)
        elif (folder / "run.json").is_file():
            _report_run(folder)
        else:
            raise UserError(
                f"report {word}: neither a run's folder nor a sweep's; it would hold run.json or sweep.json"
            )
    return 0


def _report_run(folder: Path) -> None:
    from specexp.app import console

    run = store.read_folder(folder)
    if run.metrics is None:
        raise UserError(f"report {folder}: not finished ({store.status(run)}); there is nothing to draw")
    drawn = draw_run(run.metrics, run.curves, run.config, folder, FORMATS["all"])
    store.write_text(folder, TABLE, latex.booktabs(*console.run_table(run.metrics, run.config)))
    console.show_run(run.metrics, run.config, {"folder": str(folder), **_drawn(drawn)})


def _report_sweep(folder: Path) -> None:
    from specexp.app import console, digits

    store.refresh_sweep(folder)
    drawn = draw_sweep(folder, FORMATS["all"])
    sweep = store.read_sweep(folder)
    store.write_text(folder, TABLE, latex.booktabs(*digits.sweep_table(sweep, console.is_lossy)))
    console.show_sweep(sweep, {"folder": str(folder), **_drawn(drawn)})


def _drawn(paths: Sequence[Path]) -> dict[str, str]:
    names = sorted({path.stem for path in paths})
    told = {"figures": ", ".join(names) + f" ({', '.join(FORMATS['all'])})"} if names else {}
    return told | {"table": TABLE}


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
