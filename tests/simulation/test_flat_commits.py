"""What a commit asks of storage does not grow with a collection's age: counted in calls, bytes and names."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.faulty import WrappedStore
from support.world import DAY, World, collection, interval
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.storage.log.log import FOLDER_SIZE
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectInfo, ObjectStore

pytestmark = pytest.mark.simulation

COMMITS = 20 * FOLDER_SIZE
PERIOD = 2 * FOLDER_SIZE
"""Commits compared: whole folders from a folder's start on, so that both ends see folders of every length, and many
checkpoints."""
DATA_EVERY = 4
"""Days with a file; the others are empty, as most are where data are rare."""


class CountedVersions(WrappedStore):
    """Counts what is asked about versions: calls, bytes both ways, names listed."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def create(self, key: str, data: bytes) -> None:
        self._count(key, calls=1, bytes_written=len(data))
        super().create(key, data)

    def read(self, key: str) -> bytes:
        self._count(key, calls=1)
        data = super().read(key)
        self._count(key, bytes_read=len(data))
        return data

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        listed = [*super().list(prefix)]
        self._count(prefix, calls=1, names=len(listed))
        yield from listed

    def keys(self, prefix: str) -> builtins.list[str]:
        names = super().keys(prefix)
        self._count(prefix, calls=1, names=len(names))
        return names

    def folders(self, prefix: str) -> builtins.list[str]:
        names = super().folders(prefix)
        self._count(prefix, calls=1, names=len(names), loads=1)
        return names

    def _count(self, key: str, **counts: int) -> None:
        if key.startswith("versions/"):
            self.counts.update(counts)


def test_the_two_thousandth_commit_asks_for_what_the_hundredth_did(tmp_path: Path) -> None:
    truth = MemoryStore()
    store = CountedVersions(truth)
    world = World(tmp_path, collection(), truth=truth, store=store)
    early = per_commit(world, store, first=FOLDER_SIZE)
    late = per_commit(world, store, first=COMMITS - PERIOD)
    assert late["calls"] <= 1.05 * early["calls"]
    # A state grows by what its levels hold, trace batches and runs of the ledger: by the logarithm of its days, here
    # twenty times as many.
    assert late["bytes_read"] <= 2 * early["bytes_read"]
    assert late["bytes_written"] <= 2 * early["bytes_written"]
    # The one list that grows is that of the folders, until old versions are collected.
    listed = [some["names"] / some["loads"] for some in (early, late)]
    assert listed[1] - listed[0] <= COMMITS / FOLDER_SIZE


def per_commit(world: World, store: CountedVersions, *, first: int) -> dict[str, float]:
    """Days are run up to version `first`, and counted for PERIOD versions from there; the means of a commit."""
    run_days(world, upto=first)
    before = world.head.version
    store.counts.clear()
    run_days(world, upto=before + PERIOD)
    commits = world.head.version - before
    return {name: count / commits for name, count in store.counts.items()}


def run_days(world: World, *, upto: int) -> None:
    """Ingest, seal, drain and compact one day after the other, each with its certificates."""
    while world.head.version < upto:
        day = world.state.seal // DAY  # the first that is not sealed
        at = interval(day)
        if day % DATA_EVERY == 0:
            world.land(day, "a", [{"k": day % 7, "v": "x", "t": at.lower, "e": at.lower}])
        world.run(partial(ingest, interval=at, landing_root=str(world.landing)))
        for step in (seal, drain, compact):
            world.run(partial(step, interval=at))
