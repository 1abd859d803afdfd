"""Groups of a stream of rows that come in order of their keys and instants: however many rows a group has, little is
kept of it where the aggregates have parts (parts.py).

    rows    a at 1: 5    a at 2: 7 | a at 2: 1    a at 3: 2 | b at 1: 4
    kept    a at 1: n=1 sum=5, a at 2: n=1 sum=7
            a at 1: n=1 sum=5, a at 2: n=2 sum=8, a at 3: n=1 sum=2     what is before the last instant becomes one row
            a at 2: n=3 sum=13, a at 3: n=1 sum=2
    done    a: n=4 sum=15; at the end b: n=1 sum=4
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.at_instants import AtInstants, peeked
from tidemark.arrow.kernels.aggregates.parts import compacted_of
from tidemark.arrow.kernels.aggregates.ranges import Ranges, aggregated
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.order import last_start, starts
from tidemark.definition.recipe import AggregateColumn

ROWS = 65_536
"""Rows that are computed at once; of one group maybe more."""


def groups_in_order(
    batches: Iterable[pa.RecordBatch],
    keys: Sequence[str],
    at: str,
    aggregates: Sequence[AggregateColumn],
    *,
    rows: int = ROWS,
) -> Iterator[pa.RecordBatch]:
    """One row for each group of rows that are equal in `keys`: these and the aggregates, in the order they come in.
    Rows are in order of the keys, then of their instants `at`. Raises Overflowed where a sum might not fit its type."""
    schema, stream = peeked(batches)
    if schema is None:
        return
    groups = _Incomplete(tuple(keys), at, AtInstants.of(schema, [*keys, at], aggregates), rows)
    for batch in stream:
        yield from groups.completed(batch)
    yield from groups.rest()


@dataclass
class _Incomplete:
    """Rows, put together, whose groups are not complete yet: few of them, or those of one group."""

    keys: tuple[str, ...]
    at: str
    by: AtInstants
    most: int
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _again: int = 0

    def completed(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The groups that are complete with these rows."""
        if rows.num_rows:
            self._waiting.append(self.by.put_together(rows))
        count = sum(map(len, self._waiting))
        if count < max(self.most, 2 * self._again):
            return
        some = pa.concat_batches(self._waiting)
        last = last_start(some, self.keys) if self.keys else 0
        if last:
            yield self._groups(some.slice(0, last))
        # A copy: a slice would keep all rows that were yielded.
        rest = self._compacted(some.take(pa.array(np.arange(last, len(some)))))
        self._waiting, self._again = [rest], len(rest)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The groups that are left at the end."""
        if self._waiting:
            yield self._groups(pa.concat_batches(self._waiting))

    def _groups(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        first = np.flatnonzero(starts(rows, self.keys)) if self.keys else np.zeros(1, np.int64)
        columns = [rows.column(name).take(pa.array(first)) for name in self.keys]
        found = self._computed(rows, first, self.by.merged)
        results = self.by.finals(pa.RecordBatch.from_arrays(found, [one.name for one in self.by.merged]))
        return pa.RecordBatch.from_arrays([*columns, *results], [*self.keys, *(one.name for one in self.by.aggregates)])

    def _compacted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of one group, those before its last instant as one: more may come at that instant. What comes after is
        later than all of them, so that the first and last values stay what they are."""
        at = integers(rows, self.at)
        before = int(np.searchsorted(at, at[-1], "left"))
        if self.by.parts is None or before < 2:
            return rows
        first = rows.slice(0, before)
        parts = self._computed(first, np.zeros(1, np.int64), compacted_of(self.by.aggregates, self.by.parts))
        places = [first.column(name).slice(before - 1) for name in (*self.keys, self.at)]
        return pa.concat_batches([pa.RecordBatch.from_arrays([*places, *parts], rows.schema.names), rows.slice(before)])

    def _computed(self, rows: pa.RecordBatch, first: Ints, aggregates: Sequence[AggregateColumn]) -> list[pa.Array]:
        begins = np.zeros(rows.num_rows, bool)
        begins[first] = True
        ranges = Ranges(first, np.append(first[1:], rows.num_rows), integers(rows, self.at), begins)
        return [aggregated(one, rows, ranges) for one in aggregates]
