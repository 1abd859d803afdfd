"""All rows of an input, read by this process within bounds of rows and bytes, for a first build."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import Bools, integers, one_batch, row_bytes, size_of_rows
from tidemark.arrow.rows.order import sort, starts
from tidemark.errors import InvalidUsage
from tidemark.plan.task_size import BUILD_BYTES, COSTS
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.touched import MOST_BYTES
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS

AT_A_TIME, ONE_KEY = 2**17, 2**20
"""This process computes windows of so many rows of several keys at a time, and of at most so many rows of one key."""
MOST_BUILT, BUILT_BYTES = COSTS["build"].small_rows, COSTS["build"].bytes_within(BUILD_BYTES)
"""Rows of which this process builds a collection, and how many bytes it has of them in memory (plan/task_size.py)."""
READ_BYTES = 2**27
"""Bytes at rest that are read for it: what is read is kept, or added up, as it comes."""


def all_here(views: Views, name: str, *, on: str | None, most: int, keep: Callable[[pa.RecordBatch], int]) -> bool:
    """Let `keep` have the rows of an input that are not null in the column `on`, if there is one, each as often as it
    is there, those that are null counted as in no window. False where they are not little, which is `most` rows or what
    takes, as `keep` says of all it had, more than BUILT_BYTES in memory; and where one is there less often than
    never."""
    batches = views.rows_here(name, most_rows=most, most_bytes=READ_BYTES)
    if batches is None:
        return False
    rows = size = unplaced = 0
    for batch in batches:
        times, in_windows = integers(batch, MULTIPLICITY), placed_rows(batch, on)
        if (times < 0).any():
            return False
        unplaced += int(times[~in_windows].sum())
        placed = batch if in_windows.all() else batch.filter(pa.array(in_windows))
        some = repeated(placed, most=most - rows, most_bytes=BUILT_BYTES - size)
        if some is None:
            views.declines(f"{name}: more than {most:,} rows, or {BUILT_BYTES >> 20} MiB in memory")
            return False
        rows, size = rows + some.num_rows, keep(some)
        if size > BUILT_BYTES:
            views.declines(f"{name}: more than {BUILT_BYTES >> 20} MiB in memory")
            return False
    views.unplaced = unplaced
    return True


@dataclass
class RowsByKey:
    """All rows of an input, in some columns, of which `of_all` makes updates: of all rows of some keys `by` at a time,
    so only updates of AT_A_TIME rows, or of one key, are in memory. A `Gathering` (kind.py)."""

    columns: Sequence[str]
    by: Sequence[str]
    of_all: Callable[[pa.Table], Batches]
    _batches: list[pa.RecordBatch] = field(default_factory=list)

    @property
    def most(self) -> int:
        return MOST_BUILT

    def keep(self, rows: pa.RecordBatch) -> int:
        self._batches.append(rows.select(self.columns))
        return sum(int(some.nbytes) for some in self._batches)

    def updates(self) -> Batches:
        if self._batches:
            for rows in _keys_in_order(pa.Table.from_batches(self._batches), self.by):
                yield from self.of_all(rows)


def _keys_in_order(rows: pa.Table, by: Sequence[str]) -> Iterator[pa.Table]:
    """All rows of some keys at a time, in order of these: so only their windows are in memory. InvalidUsage where one
    key has more than ONE_KEY."""
    ordered = sort(rows, by) if by else one_batch(rows)
    ends = np.append(np.flatnonzero(starts(ordered, by))[1:] if by else [], ordered.num_rows).astype(np.int64)
    if (most := int(np.diff(ends, prepend=0).max(initial=0))) > ONE_KEY:
        raise InvalidUsage(f"{most:,} rows of one key; this process computes windows of up to {ONE_KEY:,}")
    first = 0
    while first < ordered.num_rows:
        end = int(ends[min(int(np.searchsorted(ends, first + AT_A_TIME)), len(ends) - 1)])
        yield pa.Table.from_batches([ordered.slice(first, end - first)])
        first = end


def placed_rows(rows: pa.RecordBatch, on: str | None) -> Bools:
    """Which rows are in windows that are `on` a column: those that are not null there."""
    return np.ones(rows.num_rows, bool) if on is None else np.asarray(pc.is_valid(rows.column(on)))


@dataclass
class RowBudget:
    """How many rows, and how many bytes of them, are kept of those that are `looked_at`: LEAST_TASK_ROWS and MOST_BYTES
    at most. Once an eighth was looked at, they are too many already if, at that rate, they would exceed these limits by
    half: who computes all that is near does so in less time than it takes to find out."""

    looked_at: int
    seen: int = 0
    rows: int = 0
    size: int = 0

    @property
    def room(self) -> int:
        """How many bytes more may be kept."""
        return MOST_BYTES - self.size

    def is_full(self, seen: int, kept: pa.RecordBatch) -> bool:
        """Whether they are too many, after so many more were looked at and some of these are kept."""
        self.seen, self.rows, self.size = self.seen + seen, self.rows + kept.num_rows, self.size + kept.nbytes
        share = min(1.0, 1.5 * self.seen / max(1, self.looked_at)) if 8 * self.seen >= self.looked_at else 1.0
        return self.rows > LEAST_TASK_ROWS * share or self.size > MOST_BYTES * share


def repeated(rows: pa.RecordBatch, *, most: float = math.inf, most_bytes: float) -> pa.RecordBatch | None:
    """Rows without their MULTIPLICITY, each so many times; None where that is more than `most` rows, or than so many
    bytes, or one is there fewer times than none."""
    times = integers(rows, MULTIPLICITY)
    rows = rows.drop_columns([MULTIPLICITY])
    if (times == 1).all():
        return None if len(times) > most or size_of_rows(rows) > most_bytes else rows
    often = times.astype(np.float64)
    if (times < 0).any() or often.sum() > most or row_bytes(rows) @ often > most_bytes:
        return None
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times)))
