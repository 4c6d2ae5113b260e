"""MLflow itself: imported once a process, only when a run is to be logged, and quietly."""

import contextlib
import functools
import http.client
import logging
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from specexp.errors import UserError
from specexp.tracking import embedded
from specexp.tracking.settings import Settings

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Set before the import, and only where the user has not: no phone-home thread (.3 s a process), no line a run on the
# terminal, no traceback of MLflow's where we say it in one line, and 5 seconds of retries in place of 4 minutes.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
# what to install for a module of another name, or whose plain package needs a compiler
DRIVERS = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
SYNC = "the results are on disk; once it is mended, `python -m specexp sync` logs them"


class Connection(NamedTuple):
    """A client, and the experiment its runs go to."""

    client: "MlflowClient"
    experiment_id: str


@functools.cache
def connect(settings: Settings) -> Connection:
    """Opens the store, once a process, and finds or makes the experiment; UserError, soon, if it cannot be used.

    `settings` are resolved ones of a kind other than none.
    """
    if settings.is_server:
        _probe(settings)
    _import_quietly()
    with clear_errors(settings, f"mend it, {settings.instead}"):
        client = _client(settings)
        return Connection(client, _experiment(client, settings))


def _import_quietly() -> None:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for library in ("alembic", "urllib3"):  # each migration, each retry
        logging.getLogger(library).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its imports deprecate is not the user's to mend
        import mlflow  # noqa: F401


def _client(settings: Settings) -> "MlflowClient":
    from mlflow import MlflowClient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if settings.database is not None:
            embedded.ensure(settings.database, settings.artifacts or "")
        return MlflowClient(tracking_uri=settings.uri)


def _probe(settings: Settings) -> None:
    """UserError if nobody answers; any answer will do, as MLflow may stand behind a login."""
    if not settings.shown.startswith("http"):
        return
    try:
        urllib.request.urlopen(f"{settings.shown}/health", timeout=10).close()
    except urllib.error.HTTPError as error:
        error.close()
    except (OSError, http.client.HTTPException) as error:
        if "CERTIFICATE" not in str(error):
            raise UserError(
                f"{settings.named}: no MLflow server answers there ({_reason(error)}); "
                f"start it, correct the address, {settings.instead}"
            ) from error


def _experiment(client: "MlflowClient", settings: Settings) -> str:
    from mlflow.exceptions import MlflowException

    name = settings.experiment
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=settings.artifacts))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(name)  # another process was quicker
    if found is None or found.lifecycle_stage == "deleted":
        number = found.experiment_id if found else "ID"
        raise UserError(
            f"tracking.experiment={name}: deleted in {settings.shown}; restore it with "
            f"`mlflow experiments restore --experiment-id {number}`, or name another"
        )
    return str(found.experiment_id)


@contextlib.contextmanager
def clear_errors(settings: Settings, advice: str) -> Iterator[None]:
    """Turns whatever MLflow raises into one line that ends with the advice: SYNC once there are results."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except UserError:
        raise
    except ModuleNotFoundError as error:
        driver = DRIVERS.get(error.name or "", error.name)
        missing = f"needs the module {error.name}, which is not installed"
        raise UserError(f"{settings.named}: {missing}; pip install '{driver}'") from error
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise UserError(f"{settings.named}: MLflow failed ({_reason(error)}); {advice}") from error


def _reason(error: BaseException) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split("\n[SQL")[0].split())[:300]
