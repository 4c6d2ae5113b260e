"""MLflow's pages: links that open on the charts, and the server that shows them.

A fresh MLflow UI opens on an empty page for chat traces; `workflowType` and `compareRunsMode` in the address bring up
the charts of training runs. `searchFilter` is there even if empty, else a browser's last one stays.
"""

import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from specexp.errors import UserError
from specexp.tracking.settings import Settings

HOST, PORT, PORTS_TRIED = "127.0.0.1", 5000, 20
TRAINING = "machine_learning"


class Links(NamedTuple):
    """`chart`: the experiment's charts, of one sweep if one is named; `compare`: these runs side by side."""

    chart: str
    compare: str


def links(
    settings: Settings, experiment_id: str, run_ids: Sequence[str] = (), sweep: str | None = None, port: int = PORT
) -> Links:
    """Addresses in the MLflow UI: the server's, or for a database that of `python -m specexp ui`."""
    base = settings.shown if settings.is_server else f"http://{HOST}:{port}"
    cells = f"tags.`specexp.sweep` = '{sweep}' and tags.`specexp.kind` = 'cell'" if sweep else ""
    charts = {"workflowType": TRAINING, "compareRunsMode": "CHART", "searchFilter": cells}
    runs, experiments = (json.dumps(ids, separators=(",", ":")) for ids in (list(run_ids), [experiment_id]))
    compared = {"runs": runs, "experiments": experiments, "workflowType": TRAINING}
    return Links(
        chart=f"{base}/#/experiments/{experiment_id}/runs?{urlencode(charts, quote_via=quote)}",
        compare=f"{base}/#/compare-runs?{urlencode(compared, quote_via=quote)}",
    )


def ui(root: Path, settings: Settings, port: int | None = None) -> None:
    """Prints the address of the charts and becomes the MLflow server (does not return); a server's is only printed.

    `port` None: 5000, or the next free one. UserError if there is no store yet, or the port asked for is taken.
    """
    resolved = settings.resolve(root)
    if resolved.kind == "none":
        raise UserError("tracking=none: no MLflow store to show; take tracking=local or tracking=server")
    if resolved.database is not None and not resolved.database.exists():
        raise UserError(f"{resolved.named}: nothing there yet; run `python -m specexp` first")
    experiment_id = _experiment_id(resolved)
    chosen = PORT if resolved.is_server else free_port(port)
    print(f"MLflow: {links(resolved, experiment_id, port=chosen).chart}", flush=True)
    if not resolved.is_server:
        print(told(chosen), flush=True)
        os.execve(sys.executable, server_command(resolved, chosen), server_environment())


def told(port: int) -> str:
    """What to know about the server: how it ends, what to click on once, and how another port is dealt with."""
    lines = ["Up in about ten seconds; Ctrl-C ends it. MLflow's assistant panel stays away once it is closed (×),"]
    lines += ["its pages for chat traces once Model training is chosen (top left)."]
    lines += [f"The links that runs print say {PORT}: here it is {port}."] if port != PORT else []
    return "\n".join(lines)


def _experiment_id(settings: Settings) -> str:
    from specexp.tracking.connection import connect

    return connect(settings).experiment_id


def free_port(asked: int | None) -> int:
    """The port asked for, or without one the first free one from 5000 on; UserError if it is, or all are, taken."""
    tried = [asked] if asked is not None else range(PORT, PORT + PORTS_TRIED)
    for port in tried:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except (OSError, OverflowError):
                continue
            return port
    raise UserError(f"port={tried[0]}: taken; choose another, or stop what listens there")


def server_command(settings: Settings, port: int) -> list[str]:
    """The lean server's arguments: one worker, this machine only, files read where the runs put them."""
    uri = str(settings.uri)
    store = ["--backend-store-uri", uri, "--registry-store-uri", uri]
    store += ["--default-artifact-root", str(settings.artifacts)]
    where = ["--host", HOST, "--port", str(port), "--workers", "1", "--no-serve-artifacts"]
    # Not a line on the terminal for each request. The life span sweeps up after MLflow's assistant, and nothing else;
    # with it, Ctrl-C ends in a traceback of uvicorn's.
    where += ["--uvicorn-opts", "--log-level warning --lifespan off"]
    return [sys.executable, "-m", "mlflow", "server", *store, *where]


def server_environment() -> dict[str, str]:
    """This process's environment, with the job executor (ten processes, 2.5 GB) and telemetry off."""
    lean = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    lean |= {"PYTHONWARNINGS": "ignore"}  # what the server's own libraries deprecate is not the user's to mend
    ours = {
        name: value for name, value in os.environ.items() if name not in ("MLFLOW_TRACKING_URI", "MLFLOW_LOGGING_LEVEL")
    }
    return ours | lean | {"MLFLOW_LOGGING_LEVEL": "WARNING"}
