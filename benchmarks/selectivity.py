"""What the drain of a few upserts reads of a large trace: 100 keys touched, at random and next to each other.

The trace holds one row for each of `rows` keys. A day then changes 100 keys, and its drain must find the values they
had. Nothing else of the trace is needed; rows are in groups of 16,384, so that a key costs one group at most.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.feed import CODES, DAY, LABELS, START, Ints, Rows, code_of, declared, fingerprint_of, write_day
from benchmarks.measure import in_fresh_process
from benchmarks.row_groups import groups_holding
from benchmarks.steps import Bench
from tests.support.reading import as_of
from tidemark.model.batch import Part
from tidemark.model.collection import Envelope
from tidemark.model.interval import Interval
from tidemark.spark.runner import SparkRunner
from tidemark.spark.session import session
from tidemark.storage.sidecars import parts_table

TOUCHED = 100
WAYS = ("random", "clustered")


def selectivity(rows: int, seed: int) -> dict[str, Any]:
    """Bytes and rows the drain reads, and seconds, for each way of touching. AssertionError if an answer is wrong."""
    answer: dict[str, Any] = in_fresh_process(_selectivity, rows, seed)
    return answer


def _selectivity(rows: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        spark = session("tidemark benchmark")
        bench = Bench(
            declared(Envelope.UPSERT),
            Path(folder, "root"),
            Path(folder, "landing"),
            lambda store: SparkRunner(spark, store.url),
        )
        current = _rows(np.arange(rows), 0, seed)
        write_day(bench.landing, _interval(0), current.table(Envelope.UPSERT))
        bench.day(_interval(0))
        trace = bench.job.log.load().state.trace
        drains = {}
        for day, way in enumerate(WAYS, start=1):
            # Nothing is compacted in between, so that both find the same large batch.
            drains[way] = _touch(bench, current, _touched(way, rows, seed), day, seed)
        spark.stop()
    return {
        "trace_rows": sum(batch.rows for batch in trace),
        "trace_bytes": sum(batch.bytes for batch in trace),
        "touched": TOUCHED,
        "seed": seed,
        "drains": drains,
    }


def _touched(way: str, rows: int, seed: int) -> Ints:
    chance = np.random.default_rng([seed, 100])
    if way == "random":
        return np.sort(chance.choice(rows, TOUCHED, replace=False))
    return np.arange(TOUCHED) + int(chance.integers(0, rows - TOUCHED))


def _touch(bench: Bench, current: Rows, ids: Ints, day: int, seed: int) -> dict[str, Any]:
    """Change the keys `ids` on a day, in `current` too, and compare the collection with it."""
    changed = _rows(ids, day, seed)
    write_day(bench.landing, _interval(day), changed.table(Envelope.UPSERT))
    state = bench.job.log.load().state
    parts = parts_table.parts_of(bench.job.store, [batch for batch in state.trace if batch.rows])
    groups = _groups(parts, ids)
    bench.costs.pop("drain")
    bench.day(_interval(day))
    for column in fields(Rows):
        getattr(current, column.name)[ids] = getattr(changed, column.name)
    found, expected = fingerprint_of(as_of(bench.job.store, bench.job.log.load().state)), current.fingerprint()
    if found != expected:
        raise AssertionError(f"after touching {TOUCHED} keys the collection holds {found}, calculated were {expected}")
    drained = bench.results["drain"][-1]
    return {
        "bytes_read": drained["bytes_read"],
        "bytes_written": drained["bytes_written"],
        "rows_written": drained["rows"],
        "row_groups": sum(len(part.groups) for part in parts),
        "row_groups_that_can_hold": len(groups),
        "rows_in_those": sum(groups),
        "drain": bench.costs["drain"].as_dict(),
    }


def _groups(parts: Sequence[Part], ids: Ints) -> list[int]:
    """The rows of each row group that can hold one of the keys, by the parts' sparse index."""
    keys = [(number, code_of(number % CODES)) for number in ids.tolist()]
    return [part.groups[at][1] for part in parts for at in groups_holding(part, keys)]


def _interval(day: int) -> Interval:
    return Interval(START + day * DAY, START + (day + 1) * DAY)


def _rows(ids: Ints, day: int, seed: int) -> Rows:
    """One row for each id, changed in the course of the day."""
    chance = np.random.default_rng([seed, day])
    count = len(ids)
    happened = _interval(day).lower + np.arange(count)
    return Rows(
        ids.astype(np.int64),
        chance.integers(0, 1_000_000, count),
        chance.integers(0, 2**20, count) / 1024,
        chance.integers(0, LABELS, count),
        happened,
        happened.copy(),
        np.zeros(count, bool),
    )
