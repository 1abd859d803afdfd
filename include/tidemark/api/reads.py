"""The two questions: what rows a collection had as of a time, and what it learned between two."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.conditions import ALL, LEARNED, NOTHING
from tidemark.api.selection import Selection, selection
from tidemark.arrow.read import Answered, answer, as_of_schema, changes_schema
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.arrow.view import changes_in, each_row_in, rows_in
from tidemark.errors import InvalidUsage, TidemarkError, require
from tidemark.model.condition.tree import Condition
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.plan.read import ReadRequest, plan_as_of, plan_changes
from tidemark.plan.tasks import ReadTask
from tidemark.storage.sidecars import asked_reads
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    from tidemark.api.dataset import CollectionDataset
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation
    from tidemark.arrow.one_key import ChunkName
    from tidemark.storage.stores.store import ObjectStore


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
    """The rows of key and value of a collection, each with its `_multiplicity`."""

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

    def corrections(self) -> Changes:
        """What was learned of these rows since, up to the version that answers: the net changes after `time`."""
        _, _, columns, where = self._given
        return Changes(self._pinned, self.time, None, True, columns, where)

    def dataset(self) -> CollectionDataset:
        """The rows as a dataset of Arrow, which reads when it is scanned, and only the columns and chunks that it
        needs. Rows that are equal in the columns read may come several times; `_multiplicity` adds up."""
        from tidemark.api.dataset import CollectionDataset
        from tidemark.api.rows import AsOfRows

        return CollectionDataset(AsOfRows(self._pinned, *self._given, True))

    @property
    def kernel(self) -> Answered:
        """What makes the rows of a task (Tidemark's own). It may be pickled: of state and store it takes nothing."""
        return partial(rows_in, view=self._selection.view)

    @property
    def each_row(self) -> Answered:
        """As `kernel`, a row of multiplicity m as m rows, without that column (Tidemark's own)."""
        return partial(each_row_in, view=self._selection.view)

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.kernel(store, task)

    def _framed(self, spark: Any) -> Any:
        from tidemark.spark.read import as_of_rows
        from tidemark.spark.view import view_frame

        collection, view = self._request.collection, self._selection.view
        frame = as_of_rows(spark, self._pinned.store, self._request, columns=view.read(collection), keep=view.keep)
        return view_frame(frame, collection, view)

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
        merged: bool = False,
        also: Condition = ALL,
    ) -> None:
        state = pinned.state
        chosen = selection(state.collection, columns, where, NOTHING if net else LEARNED, also)
        self._given = (after, upto, net, columns, where, merged)
        if after is None and state.since and state.seal and not merged:
            raise InvalidUsage(
                f"the beginning is outside the readable [since {format_instant(state.since)}, seal "
                f"{format_instant(state.seal)}): what was learned before was merged; say after which time"
            )
        request = plan_changes(state, -1 if after is None else after, upto, chosen.keys, merged=merged)
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
        return partial(changes_in, view=self._selection.view, net=self.net)

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.kernel(store, task)

    def _framed(self, spark: Any) -> Any:
        from tidemark.spark.read import change_rows
        from tidemark.spark.view import changes_frame

        collection, view = self._request.collection, self._selection.view
        columns = view.read(collection)
        frame = change_rows(spark, self._pinned.store, self._request, net=self.net, columns=columns, keep=view.keep)
        return changes_frame(frame, collection, view, net=self.net)

    def _asked(self) -> list[str]:
        start = "the beginning" if self.after is None else format_instant(self.after)
        kind = "net changes" if self.net else "changes"
        learned = f"{kind} of {self.collection} learned after {start} up to {format_instant(self.upto)}"
        return [learned, *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return Changes, (self._pinned, *self._given)
