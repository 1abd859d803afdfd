"""By how much a derived collection differs from what it should hold: both sides as signed updates, added up.

    side      an update of it                                        sign
    desired   a row of the definition, at the time it is due         +
    held      an update the collection has, forwarded to u - 1       -

What is equal cancels in one aggregation, which spills and collects nothing; what is left is written. A row that is held
and not yet due (its time is u or later) is taken back at its own time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.computation import Computation
from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME
from tidemark.model.collection import Collection, Column
from tidemark.spark.derive.columns import value


def stored(collection: Collection) -> tuple[Column, ...]:
    """The columns a definition gives: those users see, and what is hidden behind them."""
    return (*collection.columns, *collection.hidden)


def signed(frame: DataFrame, collection: Collection, times: Sequence[SparkColumn], sign: int) -> DataFrame:
    """Rows as updates of the collection: its columns, and `times`, which are the time, the event time, the diff."""
    time, event_time, diff = times
    return frame.select(
        *(value(column) for column in stored(collection)),
        time.cast("long").alias(TIME),
        event_time.cast("long").alias(EVENT_TIME),
        (diff * sign).cast("long").alias(DIFF),
    )


def desired_at(frame: DataFrame, computation: Computation) -> DataFrame:
    """Rows of the definition as updates at u - 1."""
    at = F.lit(computation.upper - 1)
    return signed(frame, computation.collection, (at, at, F.lit(1)), +1)


def held_at(own: DataFrame, computation: Computation) -> DataFrame:
    """What the collection holds, to be taken off. By row the event times are kept, as far as the inputs have them."""
    time = F.greatest(F.col(TIME), F.lit(computation.upper - 1))
    event_time = F.greatest(F.col(EVENT_TIME), F.lit(kept_from(computation))) if computation.rows_keep_times else time
    return signed(own, computation.collection, (time, event_time, F.col(DIFF)), -1)


def kept_from(computation: Computation) -> int:
    """Event times below were forwarded in an input, or in the collection: the two sides are compared as of then."""
    return max(computation.state.since, *(held.state.since for held in computation.inputs))


def differing(computation: Computation, sides: Sequence[DataFrame]) -> DataFrame:
    """The updates that are left of all sides."""
    both = sides[0]
    for side in sides[1:]:
        both = both.unionAll(side)
    names = [*(column.name for column in stored(computation.collection)), TIME, EVENT_TIME]
    grouped = both.groupBy(*(F.col(f"`{name}`") for name in names))
    return grouped.agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)
