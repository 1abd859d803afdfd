"""The third question, of collections whose definition is windows: which windows there are, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.conditions import ALL
from tidemark.api.reads import Read
from tidemark.api.selection import selection
from tidemark.arrow.rows.schema import TIME, arrow_type
from tidemark.arrow.windows import WindowQuery, known_windows, windows_schema
from tidemark.errors import InvalidUsage, require
from tidemark.jobs.job import Job, fresh_id
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.condition.tree import Condition
from tidemark.model.derived import Derived
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.window.lateness import Lateness
from tidemark.model.window.statistics import FIRST, FIRST_ARRIVAL, LAST, LAST_ARRIVAL, MEAN_BYTES, STATISTICS
from tidemark.model.window.windows import Windows
from tidemark.plan.read import plan_as_of, plan_updates
from tidemark.plan.tasks import ReadTask

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation
    from tidemark.storage.stores.store import ObjectStore


def windows_of(collection: Collection) -> Windows:
    """What windows a collection is defined by. InvalidUsage if it is not."""
    origin = collection.origin
    found = origin.definition.windows if isinstance(origin, Derived) else None
    if found is None:
        raise InvalidUsage(f"{collection.name} is not defined by windows; read it with as_of or changes")
    return found


def late_by(state: Arrangement, time: int) -> Lateness | None:
    """What had come too late for the windows of a collection, as known at a time; None where that is not kept."""
    return next(
        (consumption.late for consumption in reversed(state.consumptions) if consumption.upper <= time + 1), None
    )


class WindowRows(Read):
    """The windows of a collection, with what its history says of each (arrow/windows.py)."""

    def __init__(
        self, pinned: Pinned, time: int | None, open_too: bool, where: Any = None, also: Condition = ALL
    ) -> None:
        state, windows = pinned.state, windows_of(pinned.state.collection)
        if open_too and time is not None:
            raise InvalidUsage("which windows were open at an earlier time is not kept; leave out the time, or open")
        chosen = selection(state.collection, None, where, also=also)
        self._given = (time, open_too, where)
        noted = plan_as_of(state, time, None, chosen.keys)
        upto = noted.upto
        request = plan_updates(state, MAX_TIME - 1 if open_too else upto, chosen.keys)
        self._query = WindowQuery(windows, upto, min(state.complete_below, upto + 1), open_too)
        request = replace(request, spans=chosen.key_spans)
        super().__init__(pinned, chosen, request, windows_schema(state.collection), noted)

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._query.upto

    @property
    def windows(self) -> Windows:
        """What windows they are."""
        return self._query.windows

    def with_statistics(self, spark: Any) -> WindowStatistics:
        """The same windows, and of each what the input has in it, as it was consumed for them: read from the input by
        the session `spark`, or one that it gives when it is called, in bounded memory, each time the answer is read.

        `_rows` are the different rows, `_distinct_keys` how many keys these have, `_net_diff` how many rows there are,
        each as often as it is there; `_bytes` those of the different rows' values (a number or a time has 8, a decimal
        16, a date 4, a truth 1, a text as many as in UTF-8, a null none), `_mean_bytes` of one row. `_first_event` and
        `_last_event` are from when the rows are, `_first_arrival` since when one of them was known first, and
        `_last_arrival` when one came last, as far as the input's history is kept: what was known before counts from
        there on. Of windows on event times, rows that happened at different times are different.

        With limited lateness these figures are about the rows that count in each window. `_window_updates_late` is how
        many rows came too late for a window, `_rows_late_for_all` those of them that were late for all their windows,
        and `_rows_late_for_some` those that another window counted. For a session these are the rows that it would
        have accepted and that no session accepted. With `late: next_window` a window's rows are those that count in
        it, so the first may be from before it began; they are still late for their own windows. Everything is null for
        windows that were frozen before the input's kept history begins: what counted in them is no longer known.

        The data frame of `to_spark` belongs to a session that is made from `spark`, with the settings that exact
        figures need. It can be joined with frames of `spark`. `createOrReplaceTempView` names it in that session alone:
        for SQL in `spark`, use `createOrReplaceGlobalTempView`.

        Raises InvalidUsage where the input is gone, or does not keep any more what was consumed of it; MissingExtra
        without the extra `spark`.
        """
        require("pyspark", "spark")
        return WindowStatistics(self, self._pinned, spark)

    def draw(self, path: str, value: str | None = None) -> int:
        """Draw the windows into a file (svg, png or pdf, by its name), as high as the column `value` of each (the first
        that is a number); those corrected after they were there are marked. How many it shows.

        Raises InvalidUsage for another kind of file, for a column that is no number, for no windows and for too many;
        MissingExtra without the extra `plot`.
        """
        from tidemark.api.picture import Drawn, draw

        return draw(Drawn(self, self.windows, f"as known at {format_instant(self.time)}"), path, value)

    @property
    def _columns(self) -> list[str]:
        return [*super()._columns, TIME]

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        found, keep = known_windows(store, task, self._query), self._selection.view.keep
        return (rows for rows in (map(keep, found) if keep else found) if rows.num_rows)

    def _framed(self, spark: Any) -> Any:
        from tidemark.spark.read import merged_rows

        query, keep = self._query, self._selection.view.keep

        def answered(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
            return known_windows(store, task, query)

        return merged_rows(spark, self._pinned.store, self._request, self._schema, answered, keep)

    def _asked(self) -> list[str]:
        known = f"windows of {self.collection} as known at {format_instant(self.time)}"
        return [known, *(["open ones too"] if self._query.open else []), *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        return WindowRows, (self._pinned, *self._given)


class WindowStatistics(Answer):
    """The rows of `windows`, and of each window what the input has in it."""

    def __init__(self, windows: WindowRows, pinned: Pinned, spark: Any) -> None:
        from tidemark.jobs.queries.window_statistics import statistics

        self._windows, self._spark = windows, spark
        job = Job(pinned.store, pinned.log, _no_tasks, fresh_id())
        self._asked_of = statistics(job, pinned.state, windows.time, open_too=windows._query.open)
        (given,) = self._asked_of[0].inputs
        on = windows.windows.on
        schema = _schema(windows.schema, given.state.collection, on)
        super().__init__(pinned, schema)

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._windows.time

    def explain(self) -> Explanation:
        """What is opened of the windows; what is read of the input is not shown."""
        return self._windows.explain()

    def to_spark(self, spark: Any) -> Any:
        """As of any answer, but the frame belongs to a session of its own: `with_statistics` says what follows."""
        return super().to_spark(spark)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        require("pyspark", "spark")
        from tidemark.spark.package import ship
        from tidemark.spark.streamed import streamed

        spark = self._spark() if callable(self._spark) else self._spark
        ship(spark)
        key = [column.name for column in self._pinned.state.collection.key]
        yield from streamed(self._frame(spark), self._schema, key)

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        from tidemark.spark.derive.queries.statistics import with_statistics
        from tidemark.spark.derive.settings import isolated_session

        own, (asked, how) = isolated_session(spark), self._asked_of
        return with_statistics(
            self._windows._frame(own), asked, how, narrowed=bool(self._windows._selection.conditions.columns)
        )

    def _asked(self) -> list[str]:
        return [*self._windows._asked(), "with statistics"]

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidUsage(
            "an answer with statistics needs its Spark session; send the windows, and ask for them there"
        )


def _no_tasks() -> Any:
    raise AssertionError("an answer is read by the session it was given")


def _schema(windows: pa.Schema, given: Collection, on: str) -> pa.Schema:
    arrived = pa.timestamp("us", "UTC")
    happened = next((arrow_type(column.type) for column in given.columns if column.name == on), arrived)
    types = {MEAN_BYTES: pa.float64(), FIRST: happened, LAST: happened, FIRST_ARRIVAL: arrived, LAST_ARRIVAL: arrived}
    return pa.schema([*windows, *(pa.field(name, types.get(name, pa.int64())) for name in STATISTICS)])
