"""What a commit costs as a collection ages: the 10,000th beside the 1,000th and the 100th.

The commits are those of ordinary days: a few rows are ingested, certified, sealed, drained and compacted, so that
the state holds what an old collection's holds (trace batches of all levels, runs of the ledger, certificates,
fences). Jobs and kernels run in this process on local files, through a log that notes for each load and each commit
what it asked of the store, its milliseconds and CPU. A *point* is the mean over the commits around a version: eight
checkpoint periods, because what a load folds depends on where in its period a version is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.counting import CountingStore
from benchmarks.feed import Feed, fingerprint_of, write_day
from benchmarks.measure import in_fresh_process, timed
from benchmarks.steps import Bench, silent
from tests.support.reading import as_of
from tidemark.model.change import Change
from tidemark.model.collection import Envelope
from tidemark.model.transition import Stale
from tidemark.storage.documents.codec import encode
from tidemark.storage.log.log import CHECKPOINT_EVERY, FOLDER_SIZE, Committed, Head, StateLog

POINTS = (100, 1_000, 10_000)
REACH = 4 * CHECKPOINT_EVERY
"""Versions around a point, to each side."""
ROWS = 20
KEYS = 1_000
COMMITS_A_DAY = 8
"""At least: ingest, seal and drain and what certifies them; compaction adds to it."""


@dataclass
class NotingLog(StateLog):
    """A state log that notes what each load and each commit cost."""

    notes: list[dict[str, Any]] = field(default_factory=list)

    def load(self, version: int | None = None) -> Head:
        head: Head = self._noted("load", lambda: super(NotingLog, self).load(version), lambda head: head.version)
        return head

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        def version(outcome: Committed | Stale) -> int:
            return outcome.head.version if isinstance(outcome, Committed) else base.version

        outcome: Committed | Stale = self._noted(
            change.kind, lambda: super(NotingLog, self).commit(base, change), version
        )
        return outcome

    def _noted(self, what: str, work: Callable[[], Any], version: Callable[[Any], int]) -> Any:
        assert isinstance(self.store, CountingStore)
        self.store.traffic.taken()
        began, spent = time.perf_counter(), time.process_time()
        outcome = work()
        seconds, cpu = time.perf_counter() - began, time.process_time() - spent
        cost = {"milliseconds": 1000 * seconds, "cpu_milliseconds": 1000 * cpu, **self.store.traffic.taken()}
        self.notes.append({"what": what, "version": version(outcome), **cost})
        return outcome


def commits(upto: int, seed: int) -> dict[str, Any]:
    """Points up to a version. AssertionError if the collection holds wrong rows at the end."""
    answer: dict[str, Any] = in_fresh_process(_commits, upto, seed)
    return answer


def _commits(upto: int, seed: int) -> dict[str, Any]:
    feed = Feed(Envelope.APPEND, (upto + REACH) // COMMITS_A_DAY + 1, ROWS, KEYS, seed)
    sizes: dict[int, dict[str, int]] = {}
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        bench = Bench(feed.collection, Path(folder, "root"), Path(folder, "landing"), measure=timed, note=silent)
        log = NotingLog(CountingStore(bench.job.store), bench.job.new_id, "benchmark")
        bench.job.log = log
        days = version = 0
        while version < upto + REACH:
            write_day(bench.landing, feed.interval(days), feed.drawn[days].table(feed.envelope))
            bench.certified_day(feed.interval(days))
            days += 1
            version = log.notes[-1]["version"]
            for point in POINTS:
                if point not in sizes and version >= point:
                    sizes[point] = _size(log)
        found, expected = fingerprint_of(as_of(bench.job.store, log.load().state)), feed.expected(days)
        if found != expected:
            raise AssertionError(f"after {days} days the collection holds {found}, calculated were {expected}")
    points = [point for point in POINTS if point <= upto]
    return {
        "days": days,
        "rows_per_day": ROWS,
        "seed": seed,
        "checkpoint_every": CHECKPOINT_EVERY,
        "folder_size": FOLDER_SIZE,
        "points": [{"version": point, "state": sizes[point], **_point(log.notes, point)} for point in points],
    }


def _size(log: NotingLog) -> dict[str, int]:
    """What a state holds, and its bytes in a checkpoint."""
    state = log.load().state
    return {
        "bytes": len(encode(state)),
        "trace_batches": len(state.trace),
        "ledger_runs": len(state.ledger),
        "certificates": len(state.certificates),
        "fences": len(state.fences),
    }


def _point(notes: list[dict[str, Any]], version: int) -> dict[str, Any]:
    around = [note for note in notes if version - REACH <= note["version"] < version + REACH]
    loads = _mean([note for note in around if note["what"] == "load"])
    made = _mean([note for note in around if note["what"] != "load"])
    both = {name: round(loads[name] + made[name], 3) for name in loads if name != "samples"}
    return {"load": loads, "commit": made, "load and commit": both}


def _mean(notes: list[dict[str, Any]]) -> dict[str, Any]:
    """Means of counts; medians of milliseconds, which others on the machine disturb."""
    if not notes:
        return {"samples": 0}

    def mean(name: str) -> float:
        return round(float(sum(note[name] for note in notes)) / len(notes), 2)

    counted = ("calls", "bytes_read", "bytes_written", "names_listed")
    times = {name: round(median(n[name] for n in notes), 3) for name in ("milliseconds", "cpu_milliseconds")}
    return {"samples": len(notes), **{name: mean(name) for name in counted}, **times}
