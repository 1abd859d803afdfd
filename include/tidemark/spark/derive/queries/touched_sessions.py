"""Where changes reach sessions, by Spark: the stored sessions are the map, and those near which nothing changed stay as
they are. Near are those that the changed instants connect, with what connects those in turn, and they are recomputed
from the rows within.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.rows.columns import integers
from tidemark.definition.recipe import DIFF, SessionPlan
from tidemark.definition.windows.rows import AT
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.footers import ranges_when
from tidemark.spark.derive.here.diff import Reached
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.sessions import keys_of, sessions_in
from tidemark.spark.derive.reach.changed import changed_at
from tidemark.spark.derive.reach.stretches import near_here, spans_of
from tidemark.spark.derive.timeline import floored, micros
from tidemark.spark.derive.touched import Touched, looked_at, named, touched_of
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS

FROM, UPTO = "_from", "_upto"
"""The columns of regions, stretches of time of a key, that say at which instants they begin and end."""
_CHANGED, _REACHED, _PART = "_changed", "_reached", "_part"
_OF_GAP = "_of_gap"
"""The column that says which stretch of a gap's length a row is in."""


def touched_sessions(views: Views, rule: SessionPlan) -> Reached | None:
    """The sessions near changed instants, and what is stored of those that were there; None where nothing changed."""
    keys = keys_of(rule)
    changed = queried(views, {rule.input: views.changes(rule.input)}, rule.rows)
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, keys, strict=True)]
    instants = changed.select(*by, F.col(AT).alias(changed_at(rule))).distinct()
    touched = touched_of(views, instants, views.rows_changed(rule.input))
    if touched.is_empty:
        return None
    near = _near_here(views, rule, touched) or _near(views, rule, touched)
    given, few = views.computation.input(rule.input), near.few
    ranges, between = touched.ranges(views, rule.input, given.state.collection, named(rule.by)), None
    if views.sees_event_times:
        between = _reaching(near.regions)
    elif not ranges and few is not None:
        ranges = ranges_when(given, rule.on, *spans_of(integers(few, FROM), integers(few, UPTO)))
    desired = sessions_in(views, rule, ranges, between, lambda rows: within(rows, near.regions, rule, AT))
    return Reached(desired, near.here, near.own_frame)


@dataclass(frozen=True)
class _Near:
    """The regions of changes, as a frame and where they are `few` here; and the updates of the sessions in them, here
    where they are few, and as a frame where it is asked for."""

    regions: DataFrame
    few: pa.Table | None
    here: pa.Table | None
    own_frame: Callable[[], DataFrame]


def _near_here(views: Views, rule: SessionPlan, touched: Touched) -> _Near | None:
    """The same found by this process, where that is little."""
    near = near_here(views, rule, touched.few)
    if near is None:
        return None
    of = pa.array(near.regions.group)
    columns = [*(key.take(of) for key in near.keys.columns), pa.array(near.regions.first), pa.array(near.regions.upto)]
    table = pa.table(columns, [*keys_of(rule), FROM, UPTO])
    schema = T.StructType([touched.frame.schema[key] for key in keys_of(rule)])
    frame = views.spark.createDataFrame(table, schema.add(FROM, T.LongType()).add(UPTO, T.LongType()))
    return _Near(frame, table, near.own, lambda: _own_in(views, rule, touched, frame))


def _near(views: Views, rule: SessionPlan, touched: Touched) -> _Near:
    """The same found by executors."""
    own = _own(views, rule, touched)
    found, few = _regions(_stored_spans(own, rule), touched, changed_at(rule), rule), None
    if touched.few is None or views.sees_event_times:
        found = views.kept(found)
    else:
        found, few = looked_at(views, found, LEAST_TASK_ROWS + 1)
    return _Near(found, few, None, lambda: _own_in(views, rule, touched, found))


def _own(views: Views, rule: SessionPlan, touched: Touched) -> DataFrame:
    """The updates that the collection has of touched values."""
    computation = views.computation
    own = views.own(touched.ranges(views, computation.name, computation.collection, named(rule.by)))
    return touched.among(own, rule.by) if rule.by else own


def _own_in(views: Views, rule: SessionPlan, touched: Touched, found: DataFrame) -> DataFrame:
    own = _own(views, rule, touched)
    return within(own, found, rule, micros(own, WINDOW_START))


def _stored_spans(own: DataFrame, rule: SessionPlan) -> DataFrame:
    """The sessions that the collection has, from their first row to as far as they may have connected others."""
    start, end, kind = micros(own, WINDOW_START), micros(own, WINDOW_END), rule.kind
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, keys_of(rule), strict=True)]
    each = own.select(*by, F.expr(start).alias(FROM), _reach(end, start, kind).alias(UPTO), DIFF)
    counted = each.groupBy(*keys_of(rule), FROM, UPTO).agg(F.sum(DIFF).alias(DIFF))
    return counted.where(F.col(DIFF) > 0).select(*keys_of(rule), FROM, UPTO, F.lit(False).alias(_CHANGED))


def _reach(end: str, start: str, kind: Session) -> SparkColumn:
    """One that was cut may end before its last row's gap does."""
    if kind.max_length is None:
        return F.expr(end)
    return F.expr(f"IF({end} - {start} = {kind.max_length}L, {end} + {kind.gap}L, {end})")


def _regions(stored_spans: DataFrame, touched: Touched, at: str, rule: SessionPlan) -> DataFrame:
    """Where the changed instants reach, with all that is connected: by key, the range that its rows are in."""
    keys = keys_of(rule)
    instants = touched.frame.select(
        *keys, F.col(at).alias(FROM), (F.col(at) + F.lit(rule.kind.gap)).alias(UPTO), F.lit(True).alias(_CHANGED)
    )
    ordered = Window.partitionBy(*keys).orderBy(FROM, UPTO, _CHANGED)
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    upto_here = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    spans = stored_spans.unionByName(instants).withColumn(_REACHED, F.max(UPTO).over(before))
    begins = F.when(F.col(_REACHED) >= F.col(FROM), 0).otherwise(1)
    parts = spans.withColumn(_PART, begins).withColumn(_PART, F.sum(_PART).over(upto_here))
    found = parts.groupBy(*keys, _PART).agg(
        F.min(FROM).alias(FROM), F.max(UPTO).alias(UPTO), F.max(_CHANGED).alias(_CHANGED)
    )
    last = F.col(UPTO) - F.lit(rule.kind.gap)
    return found.where(F.col(_CHANGED)).select(*keys, FROM, last.alias(UPTO))


def _reaching(regions: DataFrame) -> tuple[int, int] | None:
    """The first start and the last end of all regions."""
    found = regions.agg(F.min(FROM), F.max(UPTO)).first()
    return None if found is None or found[0] is None else (int(found[0]), int(found[1]))


def within(rows: DataFrame, regions: DataFrame, rule: SessionPlan, at: str) -> DataFrame:
    """The rows whose instant, an SQL expression, is in a region of their key. There is more than a gap between regions,
    so no range of a gap's width has rows of two."""
    gap = rule.kind.gap
    keys = keys_of(rule)
    stretches = F.sequence(floored(FROM, gap), floored(UPTO, gap))
    pieces = regions.select(*keys, FROM, UPTO, F.explode(stretches).alias("_of"))
    placed = rows.withColumn("_where", F.expr(at)).withColumn(_OF_GAP, floored("_where", gap))
    same = [placed[f"`{name}`"].eqNullSafe(pieces[key]) for name, key in zip(rule.by, keys, strict=True)]
    near = reduce(lambda one, other: one & other, [placed[_OF_GAP] == pieces["_of"], *same])
    joined = placed.join(pieces, near & placed["_where"].between(pieces[FROM], pieces[UPTO]))
    return joined.select(*(placed[f"`{name}`"] for name in rows.columns))
