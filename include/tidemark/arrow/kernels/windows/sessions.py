"""Sessions: rows of a key that follow one another within a gap. Each is a range of rows in order of their instants, so
that its aggregates are computed of ranges (aggregates/ranges.py).

    rows     at 1: 5    at 3: 7    at 20: 1        gap 5
    sessions [1, 8] n=2 sum=12    [20, 25] n=1 sum=1

Rows are a table (`sessions_of`), a stream in order, of which little is kept (`sessions_in_order`), or several parts
whose sessions are put together (`merged_sessions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.groups_in_order import groups_in_order
from tidemark.arrow.kernels.aggregates.parts import MERGED
from tidemark.arrow.kernels.aggregates.parts import can_be_merged as mergeable
from tidemark.arrow.kernels.aggregates.ranges import Ranges, aggregated
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.gaps import FAR, FIRST, LAST, Gaps, in_sessions
from tidemark.arrow.kernels.windows.keys import GROUP, ascend
from tidemark.arrow.kernels.windows.regions import begins
from tidemark.arrow.rows.columns import Bools, Ints, integers, one_batch
from tidemark.definition.recipe import AggregateColumn
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Session

_MOST = 2**63 - 1
_LAST_AT = "_last_at"


def sessions_of(
    rows: pa.Table, numbers: Ints, at: Ints, kind: Session, aggregates: Sequence[AggregateColumn]
) -> pa.RecordBatch:
    """The sessions of rows at some instants, whose keys have these numbers: GROUP, START, END and the aggregates, in
    order of GROUP and START. Each row counts once. Raises Overflowed where a sum might not fit its type, or an end
    might not; InvalidUsage for an instant beyond 2^61."""
    if kind.gap > FAR:
        raise Overflowed("the end of a session may be beyond 64 bits")
    batch = one_batch(rows)
    if not ascend(numbers, at):
        order = np.lexsort((at, numbers))
        numbers, at, batch = numbers[order], at[order], batch.take(pa.array(order))
    found = _Found.of(numbers, at, kind)
    lo, hi = found.lo, found.hi
    start, last = found.begun[lo], at[hi - 1]
    columns = [pa.array(numbers[lo]), pa.array(start), pa.array(start + _lengths(kind, last - start))]
    ranges = Ranges(lo, hi, at, begins_of(numbers))
    columns += [aggregated(one, batch, ranges) for one in aggregates]
    return pa.RecordBatch.from_arrays(columns, [GROUP, START, END, *(one.name for one in aggregates)])


def sessions_in_order(
    batches: Iterable[pa.RecordBatch], by: Sequence[str], at: str, kind: Session, aggregates: Sequence[AggregateColumn]
) -> Iterator[pa.RecordBatch]:
    """The sessions of a stream of rows in order of `by` and of the instants `at`: the columns of `by`, START, END and
    the aggregates. However long one is, little is kept of it where the aggregates have parts. Raises Overflowed where a
    sum or an end might not fit, InvalidUsage for an instant beyond 2^61."""
    if kind.gap > FAR:
        raise Overflowed("the end of a session may be beyond 64 bits")
    gaps = Gaps(tuple(by), kind.gap, kind.exact_gap_merges, kind.max_length)
    cells = (rows.append_column(FIRST, rows.column(at)).append_column(LAST, rows.column(at)) for rows in batches)
    asked = (*aggregates, AggregateColumn(_LAST_AT, Function.MAX, at, ColumnType.INT))
    for found in groups_in_order(in_sessions(cells, gaps), [*by, START], at, asked):
        begun = integers(found, START)
        end = begun + _lengths(kind, integers(found, _LAST_AT) - begun)
        columns = [*(found.column(name) for name in by), pa.array(begun), pa.array(end)]
        columns += [found.column(one.name) for one in aggregates]
        yield pa.RecordBatch.from_arrays(columns, [*by, START, END, *(one.name for one in aggregates)])


def _lengths(kind: Session, distance: Ints) -> Ints:
    """The lengths of sessions, by the distance between their first and their last row."""
    return np.minimum(distance + kind.gap, _MOST if kind.max_length is None else min(kind.max_length, _MOST))


def can_be_merged(kind: Session, aggregates: Sequence[AggregateColumn]) -> bool:
    """Whether sessions of any parts of some rows say what those of all are: these are as long as they may be, and their
    sums the same in any order."""
    return kind.max_length is None and all(map(mergeable, aggregates))


def merged_sessions(parts: pa.Table, kind: Session, aggregates: Sequence[AggregateColumn]) -> pa.RecordBatch:
    """The sessions of rows, of some parts of which `sessions_of` computed these; where they `can_be_merged`. In the
    same columns and order. Raises Overflowed as that does."""
    numbers, start, end = (integers(parts, name) for name in (GROUP, START, END))
    order = np.lexsort((start, numbers))
    numbers, start, end, batch = numbers[order], start[order], end[order], one_batch(parts).take(pa.array(order))
    # Whether rows at a distance of exactly the gap are in one session decides how far the session before them reaches.
    lo = np.flatnonzero(begins(numbers, start, end if kind.exact_gap_merges else end - 1))
    hi = np.append(lo[1:], len(start))[: len(lo)]
    ends = np.maximum.reduceat(end, lo) if len(lo) else end
    columns = [pa.array(numbers[lo]), pa.array(start[lo]), pa.array(ends)]
    ranges = Ranges(lo, hi, start, begins_of(numbers))
    of_parts = (replace(one, function=MERGED[one.function], of=one.name) for one in aggregates)
    columns += [aggregated(one, batch, ranges) for one in of_parts]
    return pa.RecordBatch.from_arrays(columns, [GROUP, START, END, *(one.name for one in aggregates)])


@dataclass(frozen=True)
class _Found:
    """Sessions of rows in order: each is the range [lo, hi) of them. `begun` says of each row when its session
    begins."""

    begun: Ints
    lo: Ints
    hi: Ints

    @classmethod
    def of(cls, numbers: Ints, at: Ints, kind: Session) -> _Found:
        cells = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(at), pa.array(at)], [GROUP, FIRST, LAST])
        gaps = Gaps((GROUP,), kind.gap, kind.exact_gap_merges, kind.max_length)
        begun = np.concatenate([np.zeros(0, np.int64), *(integers(some, START) for some in in_sessions([cells], gaps))])
        first = np.ones(len(at), bool)
        first[1:] = (numbers[1:] != numbers[:-1]) | (begun[1:] != begun[:-1])
        lo = np.flatnonzero(first)
        return cls(begun, lo, np.append(lo[1:], len(at))[: len(lo)])


def begins_of(numbers: Ints) -> Bools:
    """Where rows of another key than the row before begin."""
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return first
