"""Tidemark through the same life, in two ways: kernels in this process with the Arrow reader and gates left out, as a
library; and on Spark with its gates, read by the Spark reader, as a deployment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.feed import Feed, Fingerprint, declared, write_day
from benchmarks.feed import fingerprint_of as fingerprint_of_table
from benchmarks.measure import timed
from benchmarks.peers.engines.tidemark import replace_late
from benchmarks.steps import Bench, InProcess, silent
from tests.support import reading
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.model.collection import Envelope
from tidemark.plan.tasks import KeyRange


class InOneProcess:
    settings = "upsert, order_by happened_at, late: reemit; kernels in one process, certificates without gates; collect"
    runner: Callable[[Any], Any] = InProcess

    def __init__(self, folder: Path) -> None:
        self._bench = Bench(
            replace_late(declared(Envelope.UPSERT)),
            folder,
            folder.parent / "arriving",
            runner_for=self.runner,
            measure=timed,
            note=silent,
        )
        self._feed = Feed(Envelope.UPSERT, 1, 0, 1)

    def ingest(self, day: int, rows: Path) -> None:
        interval = self._feed.interval(day)
        write_day(self._bench.landing, interval, pq.read_table(rows))
        self._pass(interval)

    def _pass(self, interval: Any) -> None:
        self._bench.certified_drain(interval)

    def maintain(self, day: int) -> None:
        self._bench.certified_compaction(self._feed.interval(day))

    def note(self, day: int) -> None:
        """Nothing: a state is asked for by its time."""

    def clean(self) -> None:
        collect(self._bench.job, keep=0, graces=AT_ONCE)

    def as_of(self, day: int) -> Fingerprint:
        return fingerprint_of_table(reading.as_of(self._store, self._state, time=self._end(day)))

    def changes(self, after: int, upto: int) -> Fingerprint:
        found = reading.changes(self._store, self._state, after=self._end(after), upto=self._end(upto), net=True)
        return fingerprint_of_table(found, found.column_names[-1])

    def point(self, id: int, code: str) -> Fingerprint:
        keys = KeyRange((id, code), (id, code + "\0"))
        return fingerprint_of_table(reading.as_of(self._store, self._state, keys=keys))

    def close(self) -> None:
        pass

    def _end(self, day: int) -> int:
        return self._feed.interval(day).upper - 1

    @property
    def _store(self) -> Any:
        return self._bench.job.store

    @property
    def _state(self) -> Any:
        return self._bench.job.log.load().state


class OnSpark(InOneProcess):
    settings = "upsert, order_by happened_at, late: reemit; Spark executors, gates by Great Expectations; collect"

    def __init__(self, folder: Path) -> None:
        from tidemark.spark.runner import SparkRunner
        from tidemark.spark.session import session

        self._spark = session("tidemark benchmark")
        self.runner = lambda store: SparkRunner(self._spark, store.url)
        super().__init__(folder)

    def _pass(self, interval: Any) -> None:
        self._bench.day(interval)

    def maintain(self, day: int) -> None:
        self._bench.compact(self._feed.interval(day))

    def as_of(self, day: int) -> Fingerprint:
        from tests.support.reading_frames import as_of_frame as as_of

        return self._sums(as_of(self._spark, self._store, self._state, time=self._end(day)), "_multiplicity")

    def changes(self, after: int, upto: int) -> Fingerprint:
        from tests.support.reading_frames import changes_frame as changes

        found = changes(self._spark, self._store, self._state, after=self._end(after), upto=self._end(upto), net=True)
        return self._sums(found, found.columns[-1])

    def point(self, id: int, code: str) -> Fingerprint:
        from tests.support.reading_frames import as_of_frame as as_of

        keys = KeyRange((id, code), (id, code + "\0"))
        found = as_of(self._spark, self._store, self._state, keys=keys)
        return self._sums(found, "_multiplicity")

    def _sums(self, rows: Any, multiplicity: str) -> Fingerprint:
        from benchmarks.peers.spark.table import fingerprint_of

        return fingerprint_of(rows.withColumnRenamed(multiplicity, "multiplicity"))

    def close(self) -> None:
        self._spark.stop()
