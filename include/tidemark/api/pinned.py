"""A collection at one version, with what it takes to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import collection_store, fresh_id, writer_name
from tidemark.jobs.queries import locate
from tidemark.model.arrangement import Arrangement
from tidemark.storage.cache import with_cache
from tidemark.storage.log.log import Head, StateLog
from tidemark.storage.stores.store import ObjectStore


@dataclass(frozen=True)
class Pinned:
    """A collection below `root` at the version of `head`. Pickled it is root, name and version: no credentials, and
    the other side must find that version still kept."""

    root: str
    store: ObjectStore
    log: StateLog
    head: Head

    @property
    def state(self) -> Arrangement:
        return self.head.state

    @property
    def name(self) -> str:
        return self.state.collection.name

    @property
    def version(self) -> int:
        return self.head.version

    def read_store(self) -> ObjectStore:
        """The store for one read: what it decodes is remembered for those that follow."""
        return with_cache(self.store)

    def check_kept(self, error: Exception | None = None) -> None:
        """InvalidUsage if the version was collected meanwhile, in place of an error whose reason that is."""
        check_kept(self.log, self.name, self.version, error)

    def __reduce__(self) -> tuple[Any, ...]:
        return pinned, (self.root, self.name, self.version)


def check_kept(log: StateLog, name: str, version: int, error: Exception | None = None) -> None:
    """InvalidUsage if a version of a collection was collected, in place of an error whose reason that is."""
    oldest = log.oldest_version()
    if version < oldest:
        raise InvalidUsage(
            f"version {version} of {name} was collected since it was opened; the oldest kept is {oldest}: open it "
            "again, and place a hold where history must stay"
        ) from error


def pinned(root: str, name: str, version: int | None = None) -> Pinned:
    """The collection `name` below `root` at `version` (None: the newest). InvalidUsage if there is none."""
    if (found := find(root, name, version)) is not None:
        return found
    raise InvalidUsage(locate.absent(root, name, locate.collections(root)))


def find(root: str, name: str, version: int | None = None) -> Pinned | None:
    """As `pinned`; None if there is no such collection."""
    locate.check_root(root)
    store = collection_store(root, name)
    log = StateLog(store, fresh_id, writer=writer_name())
    if not (log.newest_version() if version is None else log.exists()):
        return None
    head = log.load(version)
    return None if head.arrangement is None else Pinned(root, store, log, head)
