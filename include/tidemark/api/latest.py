"""The latest row of each key on a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.conditions import ALL
from tidemark.api.keys import is_one_key
from tidemark.api.reads import Read
from tidemark.api.selection import Selection, selection
from tidemark.api.timeline import lower_bound, span_on, ties_of, time_on, timeline_of
from tidemark.arrow.latest import latest_of, opened_by
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, arrow_type, column_of
from tidemark.arrow.winners import Latest, latest_schema
from tidemark.errors import InvalidUsage, listed
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.condition.tree import Condition
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.plan.read import plan_as_of
from tidemark.plan.tasks import ReadTask

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation
    from tidemark.arrow.one_key import ChunkName
    from tidemark.storage.stores.store import ObjectStore


@dataclass(frozen=True)
class Question:
    """What a caller asks of latest rows, as it was said: the arguments that `latest_at` has for one time and for a
    table of times."""

    timeline: Any
    where: Any = None
    within: Any = None
    columns: Any = None
    each: Any = False
    ties: Any = ()
    time: int | None = None
    event_time: int | None = None
    also: Condition = ALL
    """What else is asked of the keys."""

    def ask(self, chosen: Selection) -> Latest:
        """What is asked of the rows of each key. Raises InvalidUsage for what cannot be."""
        if not isinstance(self.each, bool):
            raise InvalidUsage(f"each is {self.each!r} ({type(self.each).__name__}); it is True or False")
        timeline, looked_at = timeline_of(chosen.collection, self.timeline), chosen.conditions.columns
        keep = chosen.conditions.fitting if looked_at else None
        ties = ties_of(chosen.collection, self.ties)
        one_key = is_one_key(chosen.collection, chosen.conditions)
        return Latest(timeline.name, ties, chosen.shown, self.each, looked_at, keep, one_key)


class LatestAt(Read):
    """The latest row of each key at one time on a timeline, or the latest value of each of its columns."""

    def __init__(self, pinned: Pinned, question: Question, at: Any) -> None:
        state = pinned.state
        self._given = (question, at)
        self._timeline = timeline_of(state.collection, question.timeline)
        chosen = selection(state.collection, question.columns, question.where, also=question.also)
        self._ask = question.ask(chosen)
        self._upper = time_on(self._timeline, at)
        self._lower = lower_bound(self._upper, span_on(self._timeline, question.within))
        schema = latest_schema(state.collection, self._ask)
        check_names(schema.names, state.collection)
        request = plan_as_of(state, question.time, question.event_time, chosen.keys)
        spans = (*chosen.spans, Span.of(self._timeline, ((self._lower, self._upper),)))
        super().__init__(pinned, chosen, replace(request, spans=spans), schema)

    @property
    def time(self) -> int:
        """As known then, in microseconds."""
        return self._request.upto

    @property
    def event_time(self) -> int | None:
        """What had happened by then, in microseconds; None: all that is known."""
        return None if self._request.event_upto == MAX_TIME else self._request.event_upto

    @property
    def at(self) -> Any:
        """The time on the timeline, as answers in JSON have it: a text, or a number of an int column."""
        return time_text(self._timeline, self._upper)

    @property
    def _columns(self) -> list[str]:
        return [*self._ask.read(self._request.collection), DIFF]

    def _opened(self, store: ObjectStore, task: ReadTask) -> frozenset[ChunkName] | None:
        return opened_by(store, task, self._ask)

    def _answered(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return latest_of(store, task, self._ask)

    def _framed(self, spark: Any) -> Any:
        if self._request.collection.layout:
            from tidemark.spark.scattered import latest_frame

            return latest_frame(spark, self._pinned.store, self._request, self._ask)
        from tidemark.spark.read import merged_rows

        return merged_rows(spark, self._pinned.store, self._request, self._schema, partial(latest_of, ask=self._ask))

    def _asked(self) -> list[str]:
        what = "latest values" if self._ask.each else "latest rows"
        since = "" if self._lower is None else f" and {time_text(self._timeline, self._lower)} or later"
        known = f"{what} of {self.collection} by {self._timeline.name} at {self.at}{since}"
        happened = [] if self.event_time is None else [f"what had happened by {format_instant(self.event_time)}"]
        return [known, f"as known at {format_instant(self.time)}", *happened, *self._selection.words()]

    def explain(self) -> Explanation:
        return replace(super().explain(), not_a_number=place_of_nan(self._request.collection, self._ask))

    def __reduce__(self) -> tuple[Any, ...]:
        return LatestAt, (self._pinned, *self._given)


def place_of_nan(collection: Collection, ask: Latest) -> str:
    """Where NaN is among rows of one time, in words; empty where no column of floats is compared."""
    compared = {*ask.ties, *ask.read(collection)}
    floats = [column.name for column in collection.value if column.type is ColumnType.FLOAT and column.name in compared]
    if not floats:
        return ""
    counts = "; NaN is a value" if ask.each else ""
    return f"the greatest row is the latest: in {listed(floats)} NaN is above null, and below every number{counts}"


def check_names(names: list[str], collection: Collection) -> None:
    """Raise InvalidUsage where two columns of an answer would have one name."""
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InvalidUsage(
            f"each: column {twice[0]} of collection {collection.name} has the name of the time of another column's "
            "value; choose columns without one of the two"
        )


def time_text(timeline: Column, time: int) -> Any:
    """A time on a timeline as JSON has it."""
    if timeline.type is ColumnType.DATE and not -(2**31) <= time < 2**31:
        return time  # the first day of a span may be before all days that a column holds
    return plain_values(column_of([time], arrow_type(timeline.type)))[0]
