"""A stretch of a timeline: the rows of an as-of whose value of one column lies between two."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.asked import AsOf
from tidemark.api.conditions import Where, check_columns
from tidemark.api.values import value_of
from tidemark.arrow.parts.chunks import spannable
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.instant import EPOCH, MICROSECOND

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned


class InRange(AsOf):
    """The rows that a collection held whose time on a timeline is in [lower, upper], both included."""

    def __init__(
        self,
        pinned: Pinned,
        timeline: str,
        lower: Any,
        upper: Any,
        where: Where | Sequence[Where] | None = None,
        columns: Any = None,
        in_order: bool = False,
        time: int | None = None,
        event_time: int | None = None,
    ) -> None:
        column = timeline_of(pinned.state.collection, timeline)
        ends = [(op, at) for op, at in ((">=", lower), ("<=", upper)) if at is not None]
        within = [f'"{timeline}" {op} {literal_of(column, at)}' for op, at in ends]
        several = [] if where is None else list(where) if isinstance(where, list | tuple) else [where]
        self._range = (timeline, lower, upper, where, columns, in_order, time, event_time)
        super().__init__(pinned, time, event_time, columns, [*several, *(within or [f'"{timeline}" IS NOT NULL'])])
        if in_order and timeline not in self._selection.shown:
            raise InvalidUsage(f"in_order needs timeline {timeline} among the columns; add it to them")
        self.timeline, self._in_order = timeline, in_order

    def _batches(self) -> Iterator[pa.RecordBatch]:
        batches = super()._batches()
        if not self._in_order:
            return batches
        held = list(batches)
        return sorted_pieces(held, self._by(), most=PIECE_BYTES) if held else iter(())

    def _framed(self, spark: Any) -> Any:
        frame = super()._framed(spark)
        return frame.orderBy(*self._by()) if self._in_order else frame

    def _asked(self) -> list[str]:
        timeline, lower, upper, where, *_ = self._range
        first, last = ("…" if end is None else str(end) for end in (lower, upper))
        return [*self._of_when(), f"{timeline} in [{first}, {last}]", *([f"where {where!r}"] if where else [])]

    def _by(self) -> list[str]:
        """The columns by which rows are in order of time: the timeline, then as they are at rest."""
        names = (column.name for column in self._request.collection.columns if column.name in self._selection.shown)
        return list(dict.fromkeys([self.timeline, *names]))

    def __reduce__(self) -> tuple[Any, ...]:
        return InRange, (self._pinned, *self._range)


def timeline_of(collection: Collection, name: str) -> Column:
    """The column of a collection by whose values rows are in time. Raises InvalidUsage, with the nearest name, for one
    that there is not, and for one whose type has no order in whole steps."""
    check_columns(collection, [name], "timeline")
    column = next(column for column in collection.columns if column.name == name)
    if not spannable(arrow_type(column.type)):
        raise InvalidUsage(
            f"column {name} of {collection.name} is of type {column.type}; a timeline is of type int, date or timestamp"
        )
    return column


def literal_of(column: Column, value: Any) -> str:
    """A time on a timeline as conditions write it: of a timestamp, text, a date, a datetime or whole microseconds.
    Raises InvalidUsage for what is none."""
    if column.type is ColumnType.TIMESTAMP and not isinstance(value, str | datetime):
        value = _moment(column, value)
    held = value_of(column.name, value, arrow_type(column.type)).as_py()
    return str(held) if column.type is ColumnType.INT else f"'{held.isoformat()}'"


def _moment(column: Column, value: Any) -> datetime:
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        if isinstance(value, bool):
            raise TypeError
        return EPOCH + operator.index(value) * MICROSECOND
    except (TypeError, OverflowError):
        raise InvalidUsage(
            f"column {column.name} is of type timestamp; {value!r} is no time of it: write text like "
            "'2013-01-02T03:04:05Z', a datetime, or whole microseconds since 1970"
        ) from None
