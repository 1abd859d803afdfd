"""All rows of an input, read by this process within bounds of rows and bytes, for a first build."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import Bools, integers, row_bytes, size_of_rows
from tidemark.arrow.rows.cuts import joined, size_of, wholes
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import key_at_rest
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


def all_here(views: Views, name: str, *, on: str | None, most: int) -> Batches | None:
    """The rows of an input that are not null in the column `on`, if there is one, each as often as it is there; those
    that are null are counted as in no window. None where they are not little, which is `most` rows; InvalidUsage where
    they turn out to be more, or one is there less often than never."""
    batches = views.rows_here(name, most_rows=most, most_bytes=READ_BYTES)
    return None if batches is None else _rows(views, name, batches, on, most)


def _rows(views: Views, name: str, batches: Batches, on: str | None, most: int) -> Batches:
    unplaced = 0
    for batch in batches:
        times, in_windows = integers(batch, MULTIPLICITY), placed_rows(batch, on)
        if (times < 0).any():
            raise InvalidUsage(f"{name}: a row is there fewer times than none")
        unplaced += int(times[~in_windows].sum())
        placed = batch if in_windows.all() else batch.filter(pa.array(in_windows))
        repeats = repeated(placed, most=most, most_bytes=BUILT_BYTES)
        if repeats is None:
            raise InvalidUsage(f"{name}: more than {most:,} rows, or {BUILT_BYTES >> 20} MiB in memory")
        most -= repeats.num_rows
        yield repeats
    views.unplaced = unplaced


def check_size(batches: Iterable[pa.RecordBatch]) -> None:
    """Raise InvalidUsage where what is kept of rows takes more than BUILT_BYTES in memory."""
    if size_of(batches) > BUILT_BYTES:
        raise InvalidUsage(f"what is kept of rows takes more than {BUILT_BYTES >> 20} MiB in memory")


@dataclass(frozen=True)
class RowsByKey:
    """All rows of an input, in some columns, of which `of_all` makes updates: of all rows of some keys `by` at a time,
    so only updates of AT_A_TIME rows, or of one key, are in memory; and only these rows, where the input is `in_order`
    of these columns. A `Gathering` (kind.py)."""

    columns: Sequence[str]
    by: Sequence[str]
    of_all: Callable[[pa.Table], Batches]
    in_order: bool

    @classmethod
    def of(
        cls, views: Views, name: str, columns: Sequence[str], by: Sequence[str], of_all: Callable[[pa.Table], Batches]
    ) -> Self:
        """The same of an input by its name."""
        order = key_at_rest(views.computation.input(name).state.collection)[: len(by)]
        return cls(columns, by, of_all, bool(by) and order == list(by) and views.lateness is None)

    @property
    def most(self) -> int:
        return MOST_BUILT

    def updates(self, rows: Batches) -> Batches:
        selected = (batch.select(self.columns) for batch in rows if batch.num_rows)
        for together in self._keys_in_order(selected if self.in_order else self._sorted(selected)):
            yield from self.of_all(pa.Table.from_batches([together]))

    def _sorted(self, rows: Batches) -> Batches:
        """All rows in order of their keys."""
        gathered = list[pa.RecordBatch]()
        for batch in rows:
            gathered.append(batch)
            check_size(gathered)
        if gathered:
            yield sort(joined(gathered), self.by) if self.by else joined(gathered)

    def _keys_in_order(self, rows: Batches) -> Batches:
        """All rows of some keys at a time: so only their windows are in memory.

        Raises InvalidUsage where one key has more than ONE_KEY.
        """
        slices = (batch.slice(at, AT_A_TIME) for batch in rows for at in range(0, batch.num_rows, AT_A_TIME))
        for together in wholes(slices, self.by, rows=AT_A_TIME, room=BUILT_BYTES):
            if together.num_rows > ONE_KEY:
                ends = np.append(np.flatnonzero(starts(together, self.by)), together.num_rows)
                if (most := int(np.diff(ends).max())) > ONE_KEY:
                    raise InvalidUsage(f"{most:,} rows of one key; this process computes windows of up to {ONE_KEY:,}")
            yield together


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
