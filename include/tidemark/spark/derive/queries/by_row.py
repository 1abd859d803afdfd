"""By row: each update of the input becomes updates of its own rows, with its times and its diff. What the collection
holds is not read, unless all of it is compared."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME, ByRow, changes_of
from tidemark.model.derived import Validity
from tidemark.model.instant import MAX_TIME
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import kept_from, signed
from tidemark.spark.derive.raised import row_that_raises
from tidemark.spark.derive.under_names import called
from tidemark.spark.derive.views import Views

_TIMES = (TIME, EVENT_TIME, DIFF)


def learned(views: Views) -> DataFrame:
    """The result of the input's changes since it was consumed before. None of it is due before the frontier that was
    promised by then."""
    rule = _rule(views)
    return _as_updates(views, _queried(views, rule, views.changes(rule.input)), not_before=views.computation.previous)


def all_of(views: Views) -> DataFrame:
    """The result of all updates of the input, those of the past as of u - 1."""
    rule = _rule(views)
    rows = _queried(views, rule, views.changes(rule.input))
    at = views.computation.upper - 1
    return _as_updates(views, rows, not_before=at, happened_from=kept_from(views.computation))


def row(views: Views) -> str:
    """Which row of the input the query raises for, for a message."""
    rule = _rule(views)
    key = [column.name for column in views.computation.input(rule.input).state.collection.key]
    shown = views.changes(rule.input, all_columns=True)
    return row_that_raises(shown, key, lambda some: _queried(views, rule, some))


def _rule(views: Views) -> ByRow:
    recipe = views.computation.recipe
    assert recipe is not None
    assert recipe.by_row is not None  # the mode says so
    return recipe.by_row


def _queried(views: Views, rule: ByRow, changes: DataFrame) -> DataFrame:
    with called({changes_of(rule.input): changes}):
        frame = analysed(views.spark, views.computation.name, rule.select)
    given = T.StructType([field for field in frame.schema.fields if field.name not in _TIMES])
    check_fits(views.computation.collection, our_columns(given))
    return frame


def _as_updates(views: Views, rows: DataFrame, *, not_before: int, happened_from: int = 0) -> DataFrame:
    computation = views.computation
    rows = while_valid(rows, computation.validity) if computation.validity else rows
    time = F.greatest(F.col(TIME), F.lit(not_before))
    event_time = F.greatest(F.col(EVENT_TIME), F.lit(happened_from))
    return signed(rows, computation.collection, (time, event_time, F.col(DIFF)), +1)


def while_valid(rows: DataFrame, validity: Validity) -> DataFrame:
    """A row with diff d at t as +d from when it is valid and -d when it is not any more: at max(t, from) and at
    max(t, to), both coordinates. One that is never valid cancels."""
    names = [name for name in rows.columns if name not in _TIMES]
    begins = _micros(rows, validity.valid_from) if validity.valid_from else F.lit(0).cast("long")
    if validity.valid_for is not None:
        ends: SparkColumn = begins + F.lit(validity.valid_for)
    elif validity.valid_to:
        ends = _micros(rows, validity.valid_to)
    else:
        ends = F.lit(None).cast("long")
    begins = F.coalesce(begins, F.lit(0).cast("long"))

    def at(bound: SparkColumn) -> Callable[[str], SparkColumn]:
        return lambda name: F.greatest(F.col(name), bound).alias(name)

    starts = F.struct(at(begins)(TIME), at(begins)(EVENT_TIME), F.col(DIFF).alias(DIFF))
    over = F.greatest(begins, ends)
    stops = F.struct(at(over)(TIME), at(over)(EVENT_TIME), (-F.col(DIFF)).alias(DIFF))
    stops_ever = ends.isNotNull() & (ends <= F.lit(MAX_TIME))
    both = F.explode(F.when(stops_ever, F.array(starts, stops)).otherwise(F.array(starts))).alias("_at")
    return rows.select(*(F.col(f"`{name}`") for name in names), both).select(
        *(F.col(f"`{name}`") for name in names), *(F.col(f"_at.{name}") for name in _TIMES)
    )


def _micros(rows: DataFrame, name: str) -> SparkColumn:
    """A time of a row as microseconds."""
    cell = F.col(f"`{name}`")
    of = rows.schema[name].dataType
    if isinstance(of, T.DateType | T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(cell.cast("timestamp"))
    return cell.cast("long")
