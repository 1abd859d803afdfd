"""What compaction writes: 64 days of equal size, compacted after each, against the pairwise cascade and the optimum.

It is about what is written, not about seconds, so the kernels run in this process. The unit is a day's rows; bytes
are reported beside it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.feed import Feed, fingerprint_of
from benchmarks.measure import in_fresh_process
from benchmarks.optimum import optimum, pairwise
from benchmarks.steps import Bench, stored
from tests.support.reading import as_of
from tidemark.model.collection import Envelope

DAYS = 64
ROWS = 5_000


def compaction(seed: int, days: int = DAYS, rows: int = ROWS) -> dict[str, Any]:
    """Bytes written and batches alive after each of the days. AssertionError if the answer at the end is wrong."""
    answer: dict[str, Any] = in_fresh_process(_compaction, seed, days, rows)
    return answer


def _compaction(seed: int, days: int, rows: int) -> dict[str, Any]:
    feed = Feed(Envelope.APPEND, days, rows, rows * days, seed)
    alive, before = [], []
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        bench = Bench(feed.collection, Path(folder, "root"), Path(folder, "landing"))
        ingested = feed.write(bench.landing)
        for day in range(days):
            bench.day(feed.interval(day))
            before.append(len(bench.job.log.load().state.trace))
            bench.compact(feed.interval(day))
            alive.append(len(bench.job.log.load().state.trace))
        found, expected = fingerprint_of(as_of(bench.job.store, bench.job.log.load().state)), feed.expected(days)
        if found != expected:
            raise AssertionError(f"after {days} days the collection holds {found}, calculated were {expected}")
        written, objects = stored(bench.folder)
        totals = bench.job.log.load().state.totals
    runs = max(alive)
    merged = sum(result["rows"] for result in bench.results["compact"])
    pairs, pairs_alive = pairwise(days)
    return {
        "days": days,
        "rows_per_day": rows,
        "seed": seed,
        "bytes": {
            "change_files": ingested,
            "ingest": totals.bytes_ingested,
            "drain": totals.bytes_drained,
            "compact": totals.bytes_compacted,
            "metadata": written - totals.bytes_ingested - totals.bytes_drained - totals.bytes_compacted,
        },
        "objects": objects,
        "live_batches": alive,
        "live_batches_before_compaction": before,
        "live_batches_pairwise": pairs_alive,
        "days_written": {
            "tidemark": round(days + merged / rows, 2),
            "pairwise cascade": pairs,
            "optimum for as many runs": optimum(days, runs),
            "optimum, drain and compaction in one write": optimum(days, runs, flushed_separately=False),
        },
    }
