"""Splitting off rows that are ahead, by the rules of plan/ahead.py; updates by those of plan/undue.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.schema import EVENT_TIME, TIME
from tidemark.plan import undue
from tidemark.plan.ahead import Cut, bucket_starts, cuts


def cut_of(tables: Iterable[pa.Table | pa.RecordBatch], frontier: int, width: int, *, facts: bool) -> Cut:
    """How to cut rows, of which only the time columns are looked at, at a frontier that moves on by about `width`."""
    starts = bucket_starts(frontier, width)
    times, event_times = np.zeros((2, len(starts) + 1), np.int64)
    for rows in tables:
        buckets = _found(starts, integers(rows, TIME))
        times += np.bincount(buckets, minlength=len(times))
        if facts:
            event_times += np.bincount(_found(starts, integers(rows, EVENT_TIME)[buckets == 0]), minlength=len(times))
    return Cut(cuts(times.tolist(), starts), cuts(event_times.tolist(), starts))


def cut_by_buckets(tables: Iterable[pa.Table | pa.RecordBatch], frontier: int, width: int) -> Cut:
    """How to cut updates, as a drain at the frontier is to find them: what is due, and what is ahead by buckets."""
    starts = undue.starts_at(frontier, width)
    counts = np.zeros(len(starts) + 1, np.int64)
    for rows in tables:
        counts += np.bincount(_found(starts, integers(rows, TIME)), minlength=len(counts))
    return Cut(undue.cuts(counts.tolist(), starts))


def split_ahead(rows: pa.RecordBatch, cut: Cut) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each part they belong to, by its number below `cut.parts`, in the order they have."""
    if cut.parts == 1:
        yield 0, rows
        return
    numbers = _found(cut.times, integers(rows, TIME))
    if cut.event_times:
        far = len(cut.times) + _found(cut.event_times, integers(rows, EVENT_TIME))
        numbers = np.where((numbers == 0) & (far > len(cut.times)), far, numbers)
    for number in np.unique(numbers).tolist():
        here = numbers == number
        yield number, rows if here.all() else rows.filter(pa.array(here))


def _found(starts: tuple[int, ...], times: Ints) -> Ints:
    return np.searchsorted(np.asarray(starts, np.int64), times, side="right")
