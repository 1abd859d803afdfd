"""The point-in-time join: to each key and time of a table the latest row, by what was known then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.answer import Answer
from tidemark.api.latest import Question, place_of_nan
from tidemark.api.selection import selection
from tidemark.api.timeline import span_on, timeline_of
from tidemark.arrow.point_in_time import Join, check_knowledge, joined_to, value_fields
from tidemark.arrow.rows.probes import Asking, Probes, Wanted, check_schema, probes_of
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage, TidemarkError, require
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.instant import format_instant
from tidemark.plan.latest import plan_known
from tidemark.plan.read import ReadRequest, plan_as_of, read_tasks
from tidemark.storage.sidecars import asked_reads, parts_table
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation

_INSTANT = pa.timestamp("us", "UTC")


class PointInTime(Answer):
    """The rows of a table, each with the latest row of its key at its time."""

    def __init__(
        self, pinned: Pinned, question: Question, table: Any, at_column: str | None = None, known_at: str | None = None
    ) -> None:
        collection = pinned.state.collection
        self._question, self._columns_given = question, (at_column, known_at)
        self._timeline = timeline_of(collection, question.timeline)
        shown = [column.name for column in collection.value] if question.columns is None else question.columns
        self._selection = selection(collection, shown, question.where)
        ask = question.ask(self._selection)
        self._join = Join(ask, span_on(self._timeline, question.within), known_at is not None)
        if known_at is not None and question.time is not None:
            raise InvalidUsage("time and known_at both say what was known; give one of them")
        self._asking = _asking(collection, self._timeline, at_column, known_at)
        self._probed = _probed(table)
        schema = self._probed.schema if isinstance(self._probed, pa.Table) else _spark_schema(self._probed)
        check_schema(schema, self._asking)
        # Of a table what is wrong is said now; a frame of Spark is looked at where it is.
        self._probes = probes_of(self._probed, self._asking) if isinstance(self._probed, pa.Table) else None
        super().__init__(pinned, _joined(schema, value_fields(collection, ask)))
        self._request = replace(self._planned(), spans=self._spans())

    @property
    def time(self) -> int:
        """As known then, in microseconds; with `known_at` the latest time that is looked at."""
        return self._request.upto

    def _here(self) -> Probes:
        """The probes, if they are not somewhere else."""
        if self._probes is not None:
            return self._probes
        raise InvalidUsage(
            "at is a data frame of Spark, so the answer is read by its executors: call to_spark(spark); or give a table"
        )

    def _spans(self) -> tuple[Span, ...]:
        """Between which values all rows that answer have some columns; of a frame of Spark that is not known here."""
        if not self._probes:
            return self._selection.spans
        return (*self._selection.spans, Span.of(self._timeline, (self._join.span(self._probes),)))

    def _planned(self) -> ReadRequest:
        """What to read. The times of knowledge of a frame of Spark are looked at where they are."""
        state = self._pinned.state
        keys, event_time = self._selection.keys, self._question.event_time
        if not self._join.by_knowledge:
            return plan_as_of(state, self._question.time, event_time, keys)
        known = None if self._probes is None else self._probes.known
        if self._probes is None or known is None or not len(known):
            return plan_known(state, None, event_time, keys)
        plan_known(state)  # something must be sealed
        check_knowledge(self._probes, state.function, state.seal)
        return plan_known(state, int(known.max()), event_time, keys)

    def explain(self) -> Explanation:
        from tidemark.arrow.explain import explained

        columns = self._join.columns(self._request.collection)
        try:
            words = f"{'; '.join(self._asked())}; version {self.version}"
            explanation = explained(self._pinned.read_store(), self._request, columns, words)
        except (Missing, TidemarkError) as error:
            self._pinned.check_kept(error)
            raise
        return replace(explanation, not_a_number=place_of_nan(self._request.collection, self._join.ask))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        pinned, probes = self._pinned, self._here()
        first = self._request.upto if probes.known is None or not len(probes) else int(probes.known.min())
        asked_reads.note(pinned.store, replace(self._request, upto=first, newest=False))
        store = pinned.read_store()
        tasks = read_tasks(*parts_table.opened_read(store, self._request))
        yield from joined_to(store, tasks, self._probed, probes, self._join, self._schema)

    def _frame(self, spark: Any) -> Any:
        require("pyspark", "spark")
        from tidemark.spark.point_in_time import joined_frame

        return joined_frame(
            spark, self._pinned.store, self._request, self._probed, self._asking, self._join, self._schema
        )

    def _asked(self) -> list[str]:
        join, asking = self._join, self._asking
        many = f"{self._probed.num_rows:,} rows" if isinstance(self._probed, pa.Table) else "a data frame of Spark"
        what = "latest values" if join.ask.each else "latest rows"
        asked = f"{what} of {self.collection} by {self._timeline.name} at {asking.upto.name} of {many}"
        at = format_instant(self._request.upto)
        known = f"as known at {at}" if asking.known is None else f"as known at {asking.known.name}"
        return [asked, known, *self._selection.words()]

    def __reduce__(self) -> tuple[Any, ...]:
        self._here()
        return PointInTime, (self._pinned, self._question, self._probed, *self._columns_given)


def _asking(collection: Collection, timeline: Column, at_column: Any, known_at: Any) -> Asking:
    """Which columns of the table are asked for."""
    for name, given in (("at_column", at_column), ("known_at", known_at)):
        if not (given is None or isinstance(given, str)):
            raise InvalidUsage(f"{name} is {given!r} ({type(given).__name__}); write the name of a column of the table")
    key = tuple(
        Wanted(column.name, f"the key column {column.name}", arrow_type(column.type), column.type is ColumnType.JSON)
        for column in collection.key
    )
    upto = Wanted(at_column or timeline.name, f"the timeline {timeline.name}", arrow_type(timeline.type))
    known = None if known_at is None else Wanted(known_at, "the time of what was known", _INSTANT)
    return Asking(key, upto, known)


def _probed(table: Any) -> Any:
    """A table of Arrow, or a data frame of Spark."""
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    library = type(table).__module__.partition(".")[0]
    if library == "pyspark" and hasattr(table, "mapInArrow"):
        return table
    if library == "pandas" and hasattr(table, "columns"):
        return pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table).replace_schema_metadata(None)
    raise InvalidUsage(
        f"at is {type(table).__name__}; give a table of keys and times: of pyarrow, pandas, polars or Spark"
    )


def _spark_schema(frame: Any) -> pa.Schema:
    from tidemark.spark.point_in_time import schema_of

    return schema_of(frame)


def _joined(probes: pa.Schema, values: pa.Schema) -> pa.Schema:
    """The columns of a table, and those of the answer behind them. InvalidUsage where two have one name."""
    for name in values.names:
        if name in probes.names:
            raise InvalidUsage(
                f"at: column {name} is in the table and in the answer; rename it in the table, or choose others by "
                "columns"
            )
    if twice := [name for name, times in Counter([*probes.names, *values.names]).items() if times > 1]:
        raise InvalidUsage(f"at: two columns of the answer are called {twice[0]}; choose others by columns, or rename")
    return pa.schema([*probes, *values])
