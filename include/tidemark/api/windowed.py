"""The third question, of collections whose definition is windows: which windows there are, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.asked import selection
from tidemark.api.keys import keys_within
from tidemark.arrow.windows import Told, windows_schema, windows_told
from tidemark.errors import InvalidUsage, require
from tidemark.model.collection import Collection
from tidemark.model.derived import Derived
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.window.windows import Windows
from tidemark.plan.read import plan_as_of, plan_updates, read_tasks
from tidemark.plan.tasks import ReadTask
from tidemark.storage.sidecars import asked_reads, parts_table

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.storage.stores.store import ObjectStore


def windows_of(collection: Collection) -> Windows:
    """What windows a collection is defined by. InvalidUsage if it is not."""
    origin = collection.origin
    found = origin.definition.windows if isinstance(origin, Derived) else None
    if found is None:
        raise InvalidUsage(f"{collection.name} is not defined by windows; read it with as_of or changes")
    return found


class WindowRows(Answer):
    """The windows that a collection held, with what its history says of each (arrow/windows.py)."""

    def __init__(self, pinned: Pinned, time: int | None, open_too: bool, where: Any = None) -> None:
        state, windows = pinned.state, windows_of(pinned.state.collection)
        if open_too and time is not None:
            raise InvalidUsage("which windows were open at an earlier time is not kept; leave out the time, or open")
        self._selection = selection(state.collection, None, where)
        self._given = (time, open_too, where)
        keys = keys_within(state.collection, self._selection.conditions)
        self._noted = plan_as_of(state, time, None, keys)
        upto = self._noted.upto
        self._request = plan_updates(state, MAX_TIME - 1 if open_too else upto, keys)
        self._told = Told(windows, upto, min(state.complete_below, upto + 1), open_too)
        super().__init__(pinned, windows_schema(state.collection))

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._told.upto

    @property
    def windows(self) -> Windows:
        """What windows they are."""
        return self._told.windows

    def draw(self, path: str, value: str | None = None) -> int:
        """Draw the windows into a file (svg, png or pdf, by its name), as high as the column `value` of each (the first
        that is a number); those corrected after they were there are marked. How many it shows.

        Raises InvalidUsage for another kind of file, for a column that is no number, for no windows and for too many;
        MissingExtra without `tidemark[plot]`.
        """
        from tidemark.api.picture import Drawn, draw

        return draw(Drawn(self, self.windows, f"as known at {format_instant(self.time)}"), path, value)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        pinned = self._pinned
        asked_reads.note(pinned.store, pinned.state, self._noted, newest=self._given[0] is None)
        keep = self._selection.view.keep
        for task in read_tasks(*parts_table.opened_read(pinned.store, self._request)):
            told = windows_told(pinned.store, task, self._told)
            yield from (rows for rows in (map(keep, told) if keep else told) if rows.num_rows)

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        from tidemark.spark.read import merged_rows

        told = self._told

        def answered(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
            return windows_told(store, task, told)

        return merged_rows(spark, self._pinned.store, self._request, self._schema, answered, self._selection.view.keep)

    def _asked(self) -> list[str]:
        known = f"windows of {self.collection} as known at {format_instant(self.time)}"
        return [known, *(["open ones too"] if self._told.open else []), *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return WindowRows, (self._pinned, *self._given)
