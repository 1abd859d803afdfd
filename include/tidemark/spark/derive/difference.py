"""By how much a derived collection differs from what it should hold: both sides as signed updates, added up.

    side      an update of it                                        sign
    desired   a row of the definition, at the time it is due         +
    stored    an update the collection has, forwarded to u - 1       -

What is equal cancels in one aggregation, which spills and collects nothing; what is left is written. A stored row that
was not yet due at the frontier before is retracted at its own time: so no reader finds it between the frontiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tidemark.arrow.rows.columns import Ints
from tidemark.definition.computation import Computation
from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME
from tidemark.model.collection import Collection, Column, ColumnType, ValueType
from tidemark.model.window.close import closes_at
from tidemark.model.window.windows import WINDOW_END
from tidemark.spark.derive.columns import value

_DUE = "_due"
"""When a stored row became due, where that was since the frontier before."""


def stored(collection: Collection) -> tuple[Column, ...]:
    """The columns a definition gives: those users see, and what is hidden behind them."""
    return (*collection.columns, *collection.hidden)


def as_stored(given: Mapping[str, ValueType], collection: Collection) -> bool:
    """Whether columns of these types are those that a collection holds, and as it does; a text may be JSON there, which
    is made canonical where it is written."""
    types = {column.name: column.type for column in stored(collection)}
    return given.keys() == types.keys() and all(
        of == types[name] or (of, types[name]) == (ColumnType.STRING, ColumnType.JSON) for name, of in given.items()
    )


def signed(
    frame: DataFrame, collection: Collection, times: Sequence[SparkColumn], sign: int, *more: SparkColumn
) -> DataFrame:
    """Rows as updates of the collection: its columns, and `times`, which are the time, the event time, the diff."""
    time, event_time, diff = times
    return frame.select(
        *(value(column) for column in stored(collection)),
        time.cast("long").alias(TIME),
        event_time.cast("long").alias(EVENT_TIME),
        (diff * sign).cast("long").alias(DIFF),
        *more,
    )


def desired_at(frame: DataFrame, computation: Computation) -> DataFrame:
    """Rows of the definition as updates at u - 1; those of windows that are open then, at the time they close."""
    at = _due(frame, computation)
    return signed(frame, computation.collection, (at, at, F.lit(1)), +1)


def there(frame: DataFrame, computation: Computation) -> DataFrame:
    """The rows of the definition that are to be there at u - 1."""
    return frame.where(_due(frame, computation) < F.lit(computation.upper))


@dataclass(frozen=True)
class Due:
    """When rows of a definition are to be there: at `at`; those of windows not before `closing` µs after their end, the
    last instant at which they are open, unless that is None."""

    at: int
    closing: int | None

    @classmethod
    def of(cls, computation: Computation) -> Due:
        """At u - 1; with `early` open windows too."""
        windows = computation.definition.windows
        if windows is None or windows.early:
            return cls(computation.upper - 1, None)
        return cls(computation.upper - 1, closes_at(windows.kind, 0, windows.grace) - 1)

    def times(self, ends: Ints) -> Ints:
        """The time of the row of each window, by when it ends."""
        now = np.full(len(ends), self.at, np.int64)
        return now if self.closing is None else np.maximum(now, ends + self.closing)


def _due(frame: DataFrame, computation: Computation) -> SparkColumn:
    """The same as a column."""
    due = Due.of(computation)
    if due.closing is None:
        return F.lit(due.at)
    end = F.col(WINDOW_END)
    micros = end.cast("long") if isinstance(frame.schema[WINDOW_END].dataType, LongType) else F.unix_micros(end)
    return F.greatest(F.lit(due.at), micros + F.lit(due.closing))


def stored_at(own: DataFrame, computation: Computation) -> DataFrame:
    """What the collection holds, to be taken off. By row the event times are kept, as far as the inputs have them."""
    now = F.lit(computation.upper - 1)
    time = F.greatest(F.col(TIME), now)
    if computation.rows_keep_times:
        event_time = F.greatest(F.col(EVENT_TIME), F.lit(kept_from(computation)))
        return signed(own, computation.collection, (time, event_time, F.col(DIFF)), -1)
    due = F.when((F.col(TIME) >= computation.previous) & (F.col(TIME) < now), F.col(TIME)).alias(_DUE)
    return signed(own, computation.collection, (time, time, F.col(DIFF)), -1, due)


def kept_from(computation: Computation) -> int:
    """Event times below were forwarded in an input, or in the collection: the two sides are compared as of then."""
    return max(computation.state.since, *(input_.state.since for input_ in computation.inputs))


def differing(computation: Computation, sides: Sequence[DataFrame]) -> DataFrame:
    """The updates that are left of all sides."""
    both = sides[0]
    for side in sides[1:]:
        both = both.unionByName(side, allowMissingColumns=True)
    names = [*(column.name for column in stored(computation.collection)), TIME, EVENT_TIME]
    grouped = both.groupBy(*(F.col(f"`{name}`") for name in names))
    if _DUE not in both.columns:
        return grouped.agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)
    left = grouped.agg(F.sum(DIFF).alias(DIFF), F.max(_DUE).alias(_DUE)).where(F.col(DIFF) != 0)
    at = F.when(F.col(DIFF) < 0, F.coalesce(F.col(_DUE), F.col(TIME))).otherwise(F.col(TIME))
    return left.withColumns({TIME: at, EVENT_TIME: at}).drop(_DUE)
