"""Tidemark: an interval is run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.corrections.history import History, by_day
from benchmarks.feed import DAY, Fingerprint, declared
from benchmarks.measure import timed
from benchmarks.steps import Bench, InProcess, silent
from tests.support.reading import changes
from tidemark.model.collection import Collection


def correctable(history: History, reprocess_for: int | None = None) -> Collection:
    """The declaration of a history's collection: all of it may be run again, unless `reprocess_for` says otherwise."""
    collection = declared(history.envelope)
    kept = (history.days + 1) * DAY if reprocess_for is None else reprocess_for
    return replace(collection, origin=replace(collection.landed, reprocess_for=kept))


class InOneProcess:
    settings = "reprocess_for of all days; kernels in one process, certificates without gates; up to the drain"
    ways = ("the interval run again",)
    runner: Callable[[Any], Any] = InProcess

    def __init__(self, folder: Path, history: History) -> None:
        self._history = history
        self.bench = Bench(
            correctable(history),
            folder,
            folder.parent / "landing",
            runner_for=self.runner,
            measure=timed,
            note=silent,
        )

    def load(self, landing: Path) -> None:
        for number in range(self._history.days):
            self.correct("", number, landing)
            self.settle(number)

    def correct(self, way: str, number: int, landing: Path) -> None:
        self.bench.certified_drain(self._history.feed.interval(number))

    def settle(self, number: int) -> None:
        self.bench.certified_compaction(self._history.feed.interval(number))

    def by_day(self) -> list[Fingerprint]:
        job, feed = self.bench.job, self._history.feed
        found = changes(job.store, job.log.load().state, after=feed.interval(0).lower - 1)
        happened = found["_event_time"].to_numpy()
        return by_day(happened, found.rename_columns({"diff": "multiplicity"}), self._history.days)

    def close(self) -> None:
        pass


class OnSpark(InOneProcess):
    """As its peers there run: nothing looks at what was written."""

    settings = "reprocess_for of all days; Spark executors, certificates without gates; up to the drain"

    def __init__(self, folder: Path, history: History) -> None:
        from tidemark.spark.runner import SparkRunner
        from tidemark.spark.session import session

        self._spark = session("tidemark benchmark")
        self.runner = lambda store: SparkRunner(self._spark, store.url)
        super().__init__(folder, history)

    def load(self, landing: Path) -> None:
        """In this process: it is no part of what is measured."""
        InOneProcess(self.bench.root, self._history).load(landing)

    def close(self) -> None:
        self._spark.stop()


class OnSparkWithGates(OnSpark):
    settings = "reprocess_for of all days; Spark executors, gates by Great Expectations; up to the trace gate"

    def correct(self, way: str, number: int, landing: Path) -> None:
        self.bench.day(self._history.feed.interval(number))

    def settle(self, number: int) -> None:
        self.bench.compact(self._history.feed.interval(number))
