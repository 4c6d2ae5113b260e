"""MLflow as a function of finished folders: nothing is lost if it fails, and `sync` is that function again."""

from specexp.tracking.pages import Links, links, ui
from specexp.tracking.runs import prepare, track, track_sweep
from specexp.tracking.settings import Settings
from specexp.tracking.syncing import Synced, sync

__all__ = ["Links", "Settings", "Synced", "links", "prepare", "sync", "track", "track_sweep", "ui"]
