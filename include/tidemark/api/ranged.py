"""A range of a timeline: the rows of an as-of whose value of one column is between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.conditions import Where
from tidemark.api.reads import AsOf
from tidemark.api.timeline import ordered_column, time_on
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.errors import InvalidUsage
from tidemark.model.condition.tree import And, Compare, IsNull, Not

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned


class InRange(AsOf):
    """The rows of a collection whose time on a timeline is in [lower, upper], both included."""

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
        column = ordered_column(pinned.state.collection, timeline)
        ends = [(op, at) for op, at in ((">=", lower), ("<=", upper)) if at is not None]
        within = (Compare(timeline, op, time_on(column, at)) for op, at in ends)
        self._range = (timeline, lower, upper, where, columns, in_order, time, event_time)
        super().__init__(pinned, time, event_time, columns, where, And((Not(IsNull(timeline)), *within)))
        if in_order and timeline not in self._selection.shown:
            raise InvalidUsage(f"in_order needs timeline {timeline} among the columns; add it to them")
        self.timeline, self._in_order = timeline, in_order

    def _batches(self) -> Iterator[pa.RecordBatch]:
        batches = super()._batches()
        if not self._in_order:
            return batches
        rows = list(batches)
        return sorted_pieces(rows, self._by(), most=PIECE_BYTES) if rows else iter(())

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
