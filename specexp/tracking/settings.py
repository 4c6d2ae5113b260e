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


@dataclass(frozen=True)
class Settings:
    """The fields of conf/tracking: `kind` is local, server or none; `uri` None means: not decided yet.

    `artifacts` is the URI under which a new experiment keeps its files, set by `resolve`; a server knows its own.
    """

    kind: str = "local"
    uri: str | None = None
    experiment: str = "specexp"
    artifacts: str | None = None

    def resolve(self, root: Path) -> "Settings":
        """Returns the settings with an absolute `uri`; UserError if no store is named, or none that MLflow takes."""
        if self.kind == "none":
            return self
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI")
        if not uri and self.kind == "server":
            raise UserError(
                "tracking.uri=null: tracking=server needs a server; write tracking.uri=http://HOST:PORT, "
                "or set MLFLOW_TRACKING_URI"
            )
        named = replace(self, uri=_absolute(uri or f"{SQLITE}{root.absolute() / 'mlflow.db'}"))
        beside = named.database.parent if named.database else root.absolute()
        # Said outright, as MLflow's own default for a database is a folder under the current one.
        return replace(named, artifacts=None if named.is_server else (beside / "artifacts").as_uri())

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
        parts = urlsplit(self.uri or "")
        return (
            parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else self.uri or ""
        )


def _absolute(uri: str) -> str:
    if uri.startswith(SQLITE):
        return f"{SQLITE}{_database_file(uri)}"
    if uri.startswith(SERVERS):
        return uri.rstrip("/")
    if uri.startswith(DATABASES) and "://" in uri:
        return uri
    if uri.startswith("file:") or "://" not in uri:
        raise UserError(f"tracking.uri={uri}: MLflow no longer writes into plain folders; {RIGHT}")
    raise UserError(f"tracking.uri={uri}: not a store that MLflow knows; {RIGHT}")


def _database_file(uri: str) -> Path:
    name = uri.removeprefix(SQLITE)
    if name in ("", ":memory:") or {"?", "%"} & set(name):  # SQLAlchemy reads these two as more than a name
        raise UserError(f"tracking.uri={uri}: not a database file; {RIGHT}, with no '?' and no '%' in it")
    return Path(name).expanduser().absolute()
