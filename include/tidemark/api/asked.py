"""The two questions: what a collection held as of a time, and what it learned between two."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.conditions import ALL, LEARNED, NOTHING, Conditions, Where, check_columns, conditions_of
from tidemark.api.keys import keys_within, spans_within
from tidemark.arrow.read import Answered, answer, as_of_schema, changes_schema
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.arrow.view import View, held_in, told_in
from tidemark.errors import InvalidUsage, TidemarkError, require
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, ValueType
from tidemark.model.condition.tree import Condition
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.plan.read import ReadRequest, plan_as_of, plan_changes
from tidemark.plan.tasks import KeyRange, ReadTask
from tidemark.storage.sidecars import asked_reads
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation
    from tidemark.arrow.one_key import ChunkName
    from tidemark.storage.stores.store import ObjectStore


@dataclass(frozen=True)
class Selection:
    """The columns and rows of a collection that are asked for, as the caller said it."""

    collection: Collection
    columns: tuple[str, ...] | None
    where: Where | Sequence[Where] | None
    beside: Mapping[str, ValueType]
    """What conditions may look at beside the columns."""
    also: Condition = ALL
    """What else is asked of the rows, whose literals are as the columns hold them."""

    @cached_property
    def conditions(self) -> Conditions:
        return conditions_of(self.collection, self.where, self.beside).and_also(self.also)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of the collection in the answer."""
        return self.columns or tuple(column.name for column in self.collection.columns)

    @property
    def view(self) -> View:
        looked_at = self.conditions.columns
        own = tuple(name for name in looked_at if name not in self.beside)
        return View(self.shown, own, self.conditions.fitting if looked_at else None)

    @property
    def keys(self) -> KeyRange:
        """The range that holds the keys of all rows that fit."""
        return keys_within(self.collection, self.conditions)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that hold the values of all rows that fit, beside the range of keys."""
        return spans_within(self.collection, self.conditions, self.collection.columns)

    @property
    def key_spans(self) -> tuple[Span, ...]:
        """Those of key columns: for who looks at all rows of a key."""
        return spans_within(self.collection, self.conditions, self.collection.key)

    def words(self) -> list[str]:
        return [f"where {self.where!r}"] if self.where else []


def selection(
    collection: Collection,
    columns: Sequence[str] | None,
    where: Any,
    beside: Mapping[str, ValueType] = NOTHING,
    also: Condition = ALL,
) -> Selection:
    """What a caller asks for, and what is asked for besides; conditions may look at what the answer has `beside` the
    columns.

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
    found = Selection(collection, chosen, where, beside, also)
    assert found.conditions is not None  # refused now, not when it is read
    return found


class Read(Answer):
    """What is made of the rows of one request: each task of it is answered alone, here or in an executor."""

    def __init__(
        self,
        pinned: Pinned,
        selection: Selection,
        request: ReadRequest,
        schema: pa.Schema,
        noted: ReadRequest | None = None,
    ) -> None:
        super().__init__(pinned, schema)
        self._selection, self._request, self._noted = selection, request, noted or request

    @property
    def request(self) -> ReadRequest:
        """What is read (Tidemark's own)."""
        return self._request

    @property
    def store(self) -> ObjectStore:
        """The store of the collection's objects (Tidemark's own)."""
        return self._pinned.store

    def note(self) -> None:
        """Remember that it was asked, where retention goes by that (Tidemark's own)."""
        asked_reads.note(self._pinned.store, self._noted)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self.note()
        return answer(self._pinned.read_store(), self._request, self._answered)

    def explain(self) -> Explanation:
        from tidemark.arrow.explain import explained

        try:
            words = f"{'; '.join(self._asked())}; version {self.version}"
            return explained(self._pinned.read_store(), self._request, self._columns, words, self._opened)
        except (Missing, TidemarkError) as error:
            self._pinned.check_kept(error)
            raise

    def _opened(self, store: ObjectStore, task: ReadTask) -> frozenset[ChunkName] | None:
        """The chunks that are opened for a task; None: all that can matter."""
        return None

    @property
    def _columns(self) -> list[str]:
        """The columns of updates that the rows are made of."""
        return [*self._selection.view.read(self._request.collection), DIFF]

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        self.note()
        return self._framed(spark)

    @abstractmethod
    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the columns of the answer."""

    @abstractmethod
    def _framed(self, spark: Any) -> Any:
        """The same rows of all tasks, as a data frame."""


class AsOf(Read):
    """The rows of key and value that a collection held, each with its `_multiplicity`."""

    def __init__(
        self,
        pinned: Pinned,
        time: int | None,
        event_time: int | None,
        columns: Any = None,
        where: Any = None,
        also: Condition = ALL,
    ) -> None:
        state = pinned.state
        chosen = selection(state.collection, columns, where, also=also)
        self._given = (time, event_time, columns, where)
        request = plan_as_of(state, time, event_time, chosen.keys)
        schema = as_of_schema(state.collection, chosen.shown)
        super().__init__(pinned, chosen, replace(request, spans=chosen.spans), schema)

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._request.upto

    @property
    def event_time(self) -> int | None:
        """What had happened by then, in microseconds; None: all that is known."""
        return None if self._request.event_upto == MAX_TIME else self._request.event_upto

    @property
    def kernel(self) -> Answered:
        """What makes the rows of a task (Tidemark's own). It may be pickled: of state and store it takes nothing."""
        return partial(held_in, view=self._selection.view)

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.kernel(store, task)

    def _framed(self, spark: Any) -> Any:
        from tidemark.spark.read import held_rows
        from tidemark.spark.view import held_frame

        collection, view = self._request.collection, self._selection.view
        frame = held_rows(spark, self._pinned.store, self._request, columns=view.read(collection), keep=view.keep)
        return held_frame(frame, collection, view)

    def _asked(self) -> list[str]:
        return [*self._of_when(), *self._selection.words()]

    def _of_when(self) -> list[str]:
        happened = [] if self.event_time is None else [f"what had happened by {format_instant(self.event_time)}"]
        return [f"{self.collection} as known at {format_instant(self.time)}", *happened]

    def __reduce__(self) -> tuple[Any, ...]:
        return AsOf, (self._pinned, *self._given)


class Changes(Read):
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
        chosen = selection(state.collection, columns, where, NOTHING if net else LEARNED)
        self._given = (after, upto, net, columns, where)
        if after is None and state.since and state.seal:
            raise InvalidUsage(
                f"the beginning is outside the readable [since {format_instant(state.since)}, seal "
                f"{format_instant(state.seal)}): what was learned before was merged; say after which time"
            )
        request = plan_changes(state, -1 if after is None else after, upto, chosen.keys)
        self.net = net
        schema = changes_schema(state.collection, net=net, columns=chosen.shown)
        super().__init__(pinned, chosen, replace(request, spans=chosen.key_spans), schema)

    @property
    def after(self) -> int | None:
        """Learned after this, in microseconds; None: from the beginning."""
        return None if self._request.after < 0 else self._request.after

    @property
    def upto(self) -> int:
        """Learned up to this, which is included, in microseconds."""
        return self._request.upto

    @property
    def _columns(self) -> list[str]:
        return super()._columns if self.net else [*super()._columns, TIME, EVENT_TIME]

    @property
    def kernel(self) -> Answered:
        """What makes the rows of a task (Tidemark's own). It may be pickled: of state and store it takes nothing."""
        return partial(told_in, view=self._selection.view, net=self.net)

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.kernel(store, task)

    def _framed(self, spark: Any) -> Any:
        from tidemark.spark.read import told_rows
        from tidemark.spark.view import told_frame

        collection, view = self._request.collection, self._selection.view
        columns = view.read(collection)
        frame = told_rows(spark, self._pinned.store, self._request, net=self.net, columns=columns, keep=view.keep)
        return told_frame(frame, collection, view, net=self.net)

    def _asked(self) -> list[str]:
        start = "the beginning" if self.after is None else format_instant(self.after)
        kind = "net changes" if self.net else "changes"
        learned = f"{kind} of {self.collection} learned after {start} up to {format_instant(self.upto)}"
        return [learned, *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return Changes, (self._pinned, *self._given)
