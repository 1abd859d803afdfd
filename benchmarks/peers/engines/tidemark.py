"""Tidemark under comparison: its real jobs, kernels in this process, certificates committed without looking."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from benchmarks.feed import Feed, declared, write_day
from benchmarks.measure import timed
from benchmarks.peers.engines import KEY, VALUE, sizes
from benchmarks.steps import Bench, silent
from tests.support.reading import as_of, changes
from tidemark.model.collection import Collection, Envelope, Late
from tidemark.plan.tasks import KeyRange


class Tidemark:
    """An upsert collection; late rows correct history."""

    settings = "upsert, order_by happened_at, late: reemit; defaults otherwise"

    def __init__(self, folder: Path) -> None:
        collection = replace_late(declared(Envelope.UPSERT))
        self._bench = Bench(collection, folder / "root", folder / "landing", measure=timed, note=silent)
        self._feed = Feed(Envelope.UPSERT, 1, 0, 1)

    def ingest(self, day: int, rows: pa.Table) -> None:
        interval = self._feed.interval(day)
        write_day(self._bench.landing, interval, rows)
        self._bench.certified_drain(interval)

    def maintain(self, day: int) -> None:
        self._bench.certified_compaction(self._feed.interval(day))

    def as_of(self, day: int) -> pa.Table:
        found = as_of(self._store, self._state, time=self._feed.interval(day).upper - 1)
        return found.rename_columns([*KEY, *VALUE, "multiplicity"])

    def changes(self, after: int, upto: int) -> pa.Table:
        first, last = (self._feed.interval(day).upper - 1 for day in (after, upto))
        return changes(self._store, self._state, after=first, upto=last, net=True).rename_columns(
            [*KEY, *VALUE, "_change_type", "multiplicity"]
        )

    def point(self, id: int, code: str) -> pa.Table:
        found = as_of(self._store, self._state, keys=KeyRange((id, code), (id, code + "\0")))
        return found.rename_columns([*KEY, *VALUE, "multiplicity"])

    def stored(self) -> dict[str, int]:
        return sizes(self._bench.folder)

    @property
    def _store(self):  # type: ignore[no-untyped-def]
        return self._bench.job.store

    @property
    def _state(self):  # type: ignore[no-untyped-def]
        return self._bench.job.log.load().state


def replace_late(collection: Collection) -> Collection:
    from dataclasses import replace

    return replace(collection, origin=replace(collection.landed, late=Late("reemit")))
