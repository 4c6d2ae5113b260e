"""Which MLflow store: `tracking.uri`, then MLFLOW_TRACKING_URI, then a database in the outputs folder."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from specexp.errors import UserError

SQLITE = "sqlite:///"
SERVERS = ("http://", "https://", "databricks")  # spoken to over HTTP
DATABASES = ("postgresql", "mysql", "mssql")
RIGHT = "write sqlite:////ABSOLUTE/FILE.db or http://HOST:PORT"
KEY, ENVIRONMENT, OUTPUTS = "tracking.uri", "MLFLOW_TRACKING_URI", "outputs"  # where a uri may come from


@dataclass(frozen=True)
class Settings:
    """The fields of conf/tracking: `kind` is local, server or none; `uri` None means: not decided yet.

    `resolve` sets `artifacts`, the URI under which a new experiment keeps its files (a server knows its own), and
    `source`, where the uri came from: the key, the environment, or nobody, for the database in the outputs folder.
    """

    kind: str = "local"
    uri: str | None = None
    experiment: str = "specexp"
    artifacts: str | None = None
    source: str | None = None

    def resolve(self, root: Path) -> "Settings":
        """Returns the settings with an absolute `uri`; UserError if no store is named, or none that MLflow takes."""
        if self.kind == "none":
            return self
        if not self.experiment.strip():
            raise UserError("tracking.experiment=: no name; write tracking.experiment=NAME, e.g. specexp")
        uri, source = self._said(root)
        named = replace(self, uri=_absolute(uri, f"{source}={_without_login(uri)}"), source=source)
        beside = named.database.parent if named.database else root.absolute()
        # Said outright, as MLflow's own default for a database is a folder under the current one.
        return replace(named, artifacts=None if named.is_server else (beside / "artifacts").as_uri())

    def _said(self, root: Path) -> tuple[str, str]:
        """(the uri as somebody wrote it, where)."""
        if self.uri:
            return self.uri, self.source or KEY
        if uri := os.environ.get(ENVIRONMENT):
            return uri, ENVIRONMENT
        if self.kind == "server":
            raise UserError(
                f"{KEY}=null: tracking=server needs a server; write {KEY}=http://HOST:PORT, or set {ENVIRONMENT}"
            )
        return f"{SQLITE}{root.absolute() / 'mlflow.db'}", OUTPUTS

    @property
    def database(self) -> Path | None:
        """The file of an embedded store; None for any other."""
        uri = self.uri or ""
        return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None

    @property
    def is_server(self) -> bool:
        """Whether the store is another program, which keeps the files too."""
        return (self.uri or "").startswith(SERVERS)

    @property
    def shown(self) -> str:
        """The uri without a name or password in it: for files and messages."""
        return _without_login(self.uri or "")

    @property
    def named(self) -> str:
        """The store as messages begin with it: where its uri was written, and what is written there."""
        return f"{ENVIRONMENT if self.source == ENVIRONMENT else KEY}={self.shown}"

    @property
    def instead(self) -> str:
        """The end of a message on a store that cannot be used: how to go without it."""
        if self.source == OUTPUTS:
            return "or take tracking=none"
        local = "take tracking=local and " if self.kind == "server" else ""
        drop = f"unset {ENVIRONMENT}" if self.source == ENVIRONMENT else f"drop {KEY}"
        return f"take tracking=none, or {local}{drop}"


def _without_login(uri: str) -> str:
    scheme, mark, rest = uri.partition("://")
    netloc, slash, path = rest.partition("/")
    return f"{scheme}{mark}{netloc.rpartition('@')[2]}{slash}{path}"


def _absolute(uri: str, named: str) -> str:
    """The uri as MLflow is given it; UserError, which begins with `named`, if it is no store."""
    if uri.startswith(SQLITE):
        return f"{SQLITE}{_database_file(uri, named)}"
    if uri.startswith(("http://", "https://")) and not _is_address(uri):
        raise UserError(f"{named}: not the address of a server; {RIGHT}")
    if uri.startswith(SERVERS):
        return uri.rstrip("/")
    if uri.startswith(DATABASES) and "://" in uri:
        return uri
    if uri.startswith("file:") or "://" not in uri:
        raise UserError(f"{named}: MLflow no longer writes into plain folders; {RIGHT}")
    raise UserError(f"{named}: not a store that MLflow knows; {RIGHT}")


def _is_address(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0) and not set(uri) & set(" \t\n")
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def _database_file(uri: str, named: str) -> Path:
    name = uri.removeprefix(SQLITE)
    if name in ("", ":memory:") or {"?", "%"} & set(name):  # SQLAlchemy reads these two as more than a name
        raise UserError(f"{named}: not a database file; {RIGHT}, with no '?' and no '%' in it")
    return Path(name).expanduser().absolute()
