"""The embedded store: one SQLite file, made once under a lock, before any run is logged.

MLflow makes a missing schema without a lock: two processes that start on a fresh file break each other, and from eight
on the file is broken for good. Here it is built beside its place and renamed into it, in WAL mode (a property of the
file: a commit costs one write, not three syncs).
"""

import contextlib
import fcntl
import logging
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specexp.errors import UserError
from specexp.store import files

INSTEAD = "or name another file with tracking.uri=sqlite:////ABSOLUTE/FILE.db"
log = logging.getLogger(__name__)


def ensure(database: Path, artifacts: str) -> None:
    """Makes the store if it is not there, brings an older schema up to date; UserError if the file is of no use.

    `artifacts`: the URI for the files of runs in MLflow's own "Default" experiment.
    """
    _check_place(database)
    with _lock(database):
        if not database.exists() or database.stat().st_size == 0:
            _build(database, artifacts)
        else:
            _bring_up_to_date(database, _revision(database))


def _check_place(database: Path) -> None:
    """MLflow itself would try for 102 seconds."""
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{database.parent}: cannot be made ({error.strerror}); make it, {INSTEAD}") from error
    if database.is_dir():
        raise UserError(f"{database}: is a folder; move it away, {INSTEAD}")
    for place in (database.parent, *([database] if database.exists() else [])):
        if not os.access(place, os.W_OK):
            raise UserError(f"{place}: cannot be written; make it writable, {INSTEAD}")


@contextlib.contextmanager
def _lock(database: Path) -> Iterator[None]:
    path = database.with_name(database.name + ".lock")
    try:
        handle = path.open("w")
    except OSError as error:
        raise files.unwritable(path, error) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(database: Path, artifacts: str) -> None:
    temporary = database.with_name(f".{database.name}.{secrets.token_hex(4)}.tmp")
    try:
        _make_schema(temporary, artifacts)
        _write_ahead(temporary)
        os.replace(temporary, database)
    except OSError as error:
        raise files.unwritable(database, error) from error
    except Exception as error:  # MLflow's, SQLAlchemy's, sqlite3's: whatever it is, there is no store
        raise UserError(f"{database}: cannot be made ({_first_line(error)}); free some space, {INSTEAD}") from error
    finally:
        for leftover in database.parent.glob(f"{temporary.name}*"):
            leftover.unlink(missing_ok=True)


def _make_schema(file: Path, artifacts: str) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    made = SqlAlchemyStore(f"sqlite:///{file}", artifacts)  # type: ignore[no-untyped-call]
    made.engine.dispose()


def _write_ahead(file: Path) -> None:
    """WAL mode; where the file system cannot (NFS), the file keeps SQLite's default."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("SELECT count(*) FROM experiments").fetchone()
        except sqlite3.OperationalError:
            connection.execute("PRAGMA journal_mode=DELETE")


def _revision(database: Path) -> str:
    """The schema's revision; UserError if the file is no store of MLflow's."""
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=20)) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise UserError(f"{database}: not a store of MLflow's ({error}); move it away, {INSTEAD}") from error
    if row is None:
        raise UserError(f"{database}: not a whole store of MLflow's; move it away, {INSTEAD}")
    return str(row[0])


def _bring_up_to_date(database: Path, revision: str) -> None:
    known, newest = _revisions()
    if revision == newest:
        return
    if revision not in known:
        raise UserError(
            f"{database}: of a newer MLflow (schema {revision}; the installed one knows up to {newest}); "
            f"install that MLflow, {INSTEAD}"
        )
    _upgrade(database, revision)


def _revisions() -> tuple[set[str], str]:
    """(all schema revisions that the installed MLflow knows, the newest)."""
    from alembic.script import ScriptDirectory
    from mlflow.store.db import utils

    scripts = ScriptDirectory.from_config(utils._get_alembic_config(""))  # type: ignore[no-untyped-call]
    return {script.revision for script in scripts.walk_revisions()}, scripts.get_heads()[0]


def _upgrade(database: Path, revision: str) -> None:
    from mlflow.store.db import utils

    backup = database.with_name(f"{database.name}.{revision}.backup")
    engine: Any = None
    try:
        _copy(database, backup)
        engine = utils.create_sqlalchemy_engine(f"sqlite:///{database}")  # type: ignore[no-untyped-call]
        utils._upgrade_db(engine)  # type: ignore[no-untyped-call]
    except Exception as error:
        message = f"cannot be brought to the installed MLflow's schema ({_first_line(error)})"
        raise UserError(f"{database}: {message}; its copy is {backup}; restore it, {INSTEAD}") from error
    finally:
        if engine is not None:
            engine.dispose()
    log.warning("%s: brought to the installed MLflow's schema; as it was: %s", database, backup)


def _copy(database: Path, backup: Path) -> None:
    """A copy with what still stands in the write-ahead log."""
    source, target = sqlite3.connect(database), sqlite3.connect(backup)
    with contextlib.closing(source), contextlib.closing(target):
        source.backup(target)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
