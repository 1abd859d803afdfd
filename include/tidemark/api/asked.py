"""The two questions: what a collection held as of a time, and what it learned between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.conditions import LEARNED, NOTHING, Conditions, Where, check_columns, conditions_of
from tidemark.api.keys import keys_within
from tidemark.arrow.read import as_of_schema, changes_schema
from tidemark.arrow.view import View, held_in, told_in
from tidemark.errors import InvalidUsage, require
from tidemark.model.collection import Collection, ValueType
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.plan.read import plan_as_of, plan_changes, read_tasks
from tidemark.storage.sidecars import asked_reads, parts_table

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned


@dataclass(frozen=True)
class Selection:
    """The columns and rows of a collection that are asked for, as the caller said it."""

    collection: Collection
    columns: tuple[str, ...] | None
    where: Where | Sequence[Where] | None
    beside: Mapping[str, ValueType]
    """What conditions may look at beside the columns."""

    @cached_property
    def conditions(self) -> Conditions:
        return conditions_of(self.collection, self.where, self.beside)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of the collection in the answer."""
        return self.columns or tuple(column.name for column in self.collection.columns)

    @property
    def view(self) -> View:
        looked_at = self.conditions.columns
        own = tuple(name for name in looked_at if name not in self.beside)
        return View(self.shown, own, self.conditions.fitting if looked_at else None)

    def words(self) -> list[str]:
        return [f"where {self.where!r}"] if self.where is not None else []


def selection(
    collection: Collection, columns: Sequence[str] | None, where: Any, beside: Mapping[str, ValueType] = NOTHING
) -> Selection:
    """What a caller asks for; conditions may look at what the answer has `beside` the columns.

    Raises InvalidUsage for columns that are none, with the nearest, or named twice."""
    if not (columns is None or isinstance(columns, str | list | tuple)):
        raise InvalidUsage(f"columns is {columns!r} ({type(columns).__name__}); write a list of names, in their order")
    chosen = None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if chosen is not None:
        if not chosen:
            raise InvalidUsage("columns is empty; name some, or leave it out for all")
        check_columns(collection, chosen, "columns")
        if len(set(chosen)) < len(chosen):
            raise InvalidUsage(f"columns names some twice: {', '.join(chosen)}")
    found = Selection(collection, chosen, where, beside)
    assert found.conditions is not None  # refused now, not when it is read
    return found


class AsOf(Answer):
    """The rows of key and value that a collection held, each with its `_multiplicity`."""

    def __init__(
        self, pinned: Pinned, time: int | None, event_time: int | None, columns: Any = None, where: Any = None
    ) -> None:
        state = pinned.state
        self._selection = selection(state.collection, columns, where)
        self._given = (time, event_time, columns, where)
        keys = keys_within(state.collection, self._selection.conditions)
        self._request = plan_as_of(state, time, event_time, keys)
        super().__init__(pinned, as_of_schema(state.collection, self._selection.shown))

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._request.upto

    @property
    def event_time(self) -> int | None:
        """What had happened by then, in microseconds; None: all that is known."""
        return None if self._request.event_upto == MAX_TIME else self._request.event_upto

    def _batches(self) -> Iterator[pa.RecordBatch]:
        pinned = self._pinned
        newest = self._given[:2] == (None, None)
        asked_reads.note(pinned.store, pinned.state, self._request, newest=newest)
        for task in read_tasks(*parts_table.opened_read(pinned.store, self._request)):
            yield from held_in(pinned.store, task, self._selection.view)

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        from tidemark.spark.read import as_of
        from tidemark.spark.view import held_frame

        state, view = self._pinned.state, self._selection.view
        time, event_time, *_ = self._given
        frame = as_of(
            spark,
            self._pinned.store,
            state,
            time=time,
            event_time=event_time,
            keys=self._request.keys,
            columns=view.read(state.collection),
            keep=view.keep,
        )
        return held_frame(frame, state.collection, view)

    def _asked(self) -> list[str]:
        happened = [] if self.event_time is None else [f"what had happened by {format_instant(self.event_time)}"]
        known = f"{self.collection} as known at {format_instant(self.time)}"
        return [known, *happened, *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return AsOf, (self._pinned, *self._given)


class Changes(Answer):
    """What a collection learned, in the columns of Spark's CHANGES."""

    def __init__(
        self,
        pinned: Pinned,
        after: int | None,
        upto: int | None,
        net: bool = False,
        columns: Any = None,
        where: Any = None,
    ) -> None:
        state = pinned.state
        self._selection = selection(state.collection, columns, where, NOTHING if net else LEARNED)
        self._given = (after, upto, net, columns, where)
        if after is None and state.since and state.seal:
            raise InvalidUsage(
                f"the beginning is outside the readable [since {format_instant(state.since)}, seal "
                f"{format_instant(state.seal)}): what was learned before was merged; say after which time"
            )
        keys = keys_within(state.collection, self._selection.conditions)
        self._request = plan_changes(state, -1 if after is None else after, upto, keys)
        self.net = net
        super().__init__(pinned, changes_schema(state.collection, net=net, columns=self._selection.shown))

    @property
    def after(self) -> int | None:
        """Learned after this, in microseconds; None: from the beginning."""
        return None if self._request.after < 0 else self._request.after

    @property
    def upto(self) -> int:
        """Learned up to this, which is included, in microseconds."""
        return self._request.upto

    def _batches(self) -> Iterator[pa.RecordBatch]:
        pinned = self._pinned
        asked_reads.note(pinned.store, pinned.state, self._request, newest=False)
        for task in read_tasks(*parts_table.opened_read(pinned.store, self._request)):
            yield from told_in(pinned.store, task, self._selection.view, net=self.net)

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        from tidemark.spark.read import changes
        from tidemark.spark.view import told_frame

        state, view, asked = self._pinned.state, self._selection.view, self._request
        frame = changes(
            spark,
            self._pinned.store,
            state,
            after=asked.after,
            upto=asked.upto,
            net=self.net,
            keys=asked.keys,
            columns=view.read(state.collection),
            keep=view.keep,
        )
        return told_frame(frame, state.collection, view, net=self.net)

    def _asked(self) -> list[str]:
        start = "the beginning" if self.after is None else format_instant(self.after)
        kind = "net changes" if self.net else "changes"
        learned = f"{kind} of {self.collection} learned after {start} up to {format_instant(self.upto)}"
        return [learned, *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return Changes, (self._pinned, *self._given)
