"""The bounds of timelines among the rows of a part, found while these are in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.columns import values
from tidemark.arrow.rows.fields import field_id
from tidemark.arrow.rows.schema import timelines_of
from tidemark.model.chunk.bounds import DAY, Bounds, TimelineBounds, union
from tidemark.model.chunk.footer import Present, TimelineChunks


class TimelinesSeen:
    """What is known of the timelines that a schema names, among the row groups that were added."""

    def __init__(self, schema: pa.Schema, key_width: int) -> None:
        timelines = timelines_of(schema)
        self._values = list(_value_columns(schema, key_width)) if timelines else []
        self._seen = [_Seen(number, at) for number, at in timelines]

    def add(self, rows: pa.RecordBatch) -> None:
        """Take the rows of a row group."""
        for seen in self._seen:
            seen.add(rows, self._values)

    def bounds(self) -> tuple[TimelineBounds, ...]:
        """What is known of all rows, as the record of their part has it."""
        return tuple(TimelineBounds.of(seen.id, union(seen.bounds)) for seen in self._recorded)

    def bounds_of_chunks(self) -> dict[int, list[Bounds]]:
        """The bounds of each row group, by the id of each timeline."""
        return {seen.id: seen.bounds for seen in self._recorded}

    def chunks(self) -> list[TimelineChunks]:
        """What is known of each row group, as the footer of the part has it."""
        return [TimelineChunks(seen.id, tuple(seen.ascends), seen.present()) for seen in self._recorded]

    @property
    def _recorded(self) -> Iterator[_Seen]:
        """Nothing is recorded of a timeline with a date whose microseconds are beyond 64 bits."""
        return (seen for seen in self._seen if not seen.is_beyond)


class _Seen:
    """One timeline."""

    def __init__(self, id: int, at: int) -> None:
        self.id, self._at = id, at
        self.bounds: list[Bounds] = []
        self.ascends: list[bool] = []
        self.is_beyond = False
        self._present: dict[int, dict[int, Present]] = {}

    def add(self, rows: pa.RecordBatch, values: list[tuple[int, int]]) -> None:
        times = rows.column(self._at)
        chunk = _Chunk(plain_ints(times), recorded_unit(times.type))
        self.bounds.append(chunk.bounds)
        ends = (chunk.bounds.first, chunk.bounds.last)
        self.is_beyond |= any(end is not None and not -(2**63) <= end < 2**63 for end in ends)
        self.ascends.append(chunk.ascends)
        for number, at in values:
            column = rows.column(at)
            if at != self._at and column.null_count:
                self._present.setdefault(number, {})[len(self.ascends) - 1] = chunk.present(column)

    def present(self) -> dict[int, tuple[Present | None, ...]]:
        groups = range(len(self.ascends))
        return {number: tuple(map(found.get, groups)) for number, found in sorted(self._present.items())}


def _value_columns(schema: pa.Schema, key_width: int) -> Iterator[tuple[int, int]]:
    """The id and the position of each value column that users see."""
    for at, column in enumerate(schema):
        number = field_id(column)
        if at >= key_width and number is not None and not column.name.startswith("_"):
            yield number, at


def plain_ints(column: pa.Array) -> pa.Array:
    """A column of ints, timestamps or dates as its plain values."""
    if pa.types.is_date32(column.type):
        return column.view(pa.int32()).cast(pa.int64())
    return column if pa.types.is_int64(column.type) else column.view(pa.int64())


def recorded_unit(column_type: pa.DataType) -> int:
    """As how many one plain value of a timeline is recorded: a date as the microseconds of its midnight."""
    return DAY if pa.types.is_date32(column_type) else 1


class _Chunk:
    """A timeline's values in one row group, as int64, each of which is recorded as so many."""

    def __init__(self, times: pa.Array, unit: int) -> None:
        self._times, self._unit = times, unit
        self.ascends = False
        self._ends: tuple[int, ...] = ()
        if times.null_count or not len(times):
            self.bounds = bounds_among(times).times(unit)
            return
        numbers = values(times)
        self._ends = int(numbers.argmin()), int(numbers.argmax())
        first, last = (int(numbers[at]) for at in self._ends)
        self.bounds = Bounds(first, last, 0).times(unit)
        self.ascends = bool((numbers[1:] >= numbers[:-1]).all())

    def present(self, column: pa.Array) -> Present:
        """Where on the timeline those rows are that have a value in a column that has nulls."""
        rows, times = len(column) - column.null_count, self._times
        if not rows:
            return Present(None, None, 0)
        if self._ends and all(column[at].is_valid for at in self._ends):
            return Present(self.bounds.first, self.bounds.last, rows)
        if times.null_count or times.offset != column.offset:
            of_these = times.filter(column.is_valid())
        else:  # the same times with the column's nulls: nothing is copied
            buffers = [column.buffers()[0], times.buffers()[1]]
            of_these = pa.Array.from_buffers(times.type, len(times), buffers, column.null_count, times.offset)
        bounds = bounds_among(of_these).times(self._unit)
        return Present(bounds.first, bounds.last, rows)


def bounds_among(values: pa.Array) -> Bounds:
    """The bounds of a column of int64."""
    first, last = pc.min_max(values).as_py().values()
    return Bounds(first, last, values.null_count)
