"""Sessions by Spark: rows are first brought together by stretches of time that one session surely holds whole (cells),
so that few of them are put in order by key, also of a key with many rows; then rows are told the session of theirs.

For changes the sessions held are the map: those near which nothing changed stay as they are. Near are those that the
changed instants connect, with what connects those in turn, and they are computed anew from the rows within.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.kernels.windows.sessions import FIRST, LAST, START, Gaps, in_sessions
from tidemark.definition.recipe import DIFF, InSessions
from tidemark.definition.windows.assigned import AT
from tidemark.model.window.kind import Session
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.by_key import queried
from tidemark.spark.derive.through_arrow import through
from tidemark.spark.derive.timeline import floored, micros
from tidemark.spark.derive.touched import Touched, named, touched_of
from tidemark.spark.derive.views import Views

_BUCKET = "_bucket"
_FROM, _UPTO, _CHANGED, _REACHED, _PART = "_from", "_upto", "_changed", "_reached", "_part"


def all_sessions(views: Views, rule: InSessions) -> DataFrame:
    """The sessions of all rows of the input."""
    return _sessions(views, rule, queried(views, {rule.input: views.held(rule.input)}, rule.rows))


def touched_sessions(views: Views, rule: InSessions) -> tuple[DataFrame, DataFrame] | None:
    """The sessions near changed instants, and what is held of those that were there; None where nothing changed."""
    keys = _keys(rule)
    changed = queried(views, {rule.input: views.changes(rule.input)}, rule.rows)
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, keys, strict=True)]
    at = f"k{len(keys)}"
    instants = changed.select(*by, F.col(AT).alias(at)).distinct()
    touched = touched_of(views, instants, views.rows_changed(rule.input))
    if touched.is_empty:
        return None
    computation = views.computation
    own = views.own(touched.ranges(views, computation.name, computation.collection, named(rule.by)))
    own = touched.among(own, rule.by) if rule.by else own
    regions = views.kept(_regions(_standing(own, rule), touched, at, rule))
    collection = views.computation.input(rule.input).state.collection
    held = views.held(rule.input, touched.ranges(views, rule.input, collection, named(rule.by)))
    rows = queried(views, {rule.input: held}, rule.rows)
    return _sessions(views, rule, _within(rows, regions, rule, AT)), _within(
        own, regions, rule, micros(own, WINDOW_START)
    )


def _keys(rule: InSessions) -> list[str]:
    return [f"k{at}" for at in range(len(rule.by))]


def _sessions(views: Views, rule: InSessions, rows: DataFrame) -> DataFrame:
    kind, keys = rule.kind, _keys(rule)
    rows = rows.select(*(F.col(f"`{name}`") for name in rule.columns), AT)
    # A session may be cut within what is otherwise surely one: then each instant is a cell.
    bucket = floored(AT, kind.gap) if kind.max_length is None else F.col(AT)
    rows = views.kept(rows.withColumn(_BUCKET, bucket))
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, keys, strict=True)]
    cells = rows.groupBy(*by, F.col(_BUCKET)).agg(F.min(AT).alias(FIRST), F.max(AT).alias(LAST))
    ordered = (cells.repartition(*keys) if keys else cells.repartition(1)).sortWithinPartitions(*keys, FIRST)
    gaps = Gaps(tuple(keys), kind.gap, kind.exact_gap_merges, kind.max_length)
    schema = T.StructType([*ordered.schema.fields, T.StructField(START, T.LongType())])
    begun = through(ordered, lambda batches: in_sessions(batches, gaps), schema)
    begun = begun.select(*keys, F.col(_BUCKET).alias("_of"), START)
    same = [rows[f"`{name}`"].eqNullSafe(begun[key]) for name, key in zip(rule.by, keys, strict=True)]
    joined = rows.join(begun, reduce(lambda one, other: one & other, [rows[_BUCKET] == begun["_of"], *same]))
    told = joined.select(*(rows[f"`{name}`"] for name in rule.columns), rows[AT], begun[START])
    return queried(views, {rule.input: told}, rule.windows)


def _standing(own: DataFrame, rule: InSessions) -> DataFrame:
    """The sessions that the collection has, from their first row to as far as they may have connected others."""
    start, end, kind = micros(own, WINDOW_START), micros(own, WINDOW_END), rule.kind
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, _keys(rule), strict=True)]
    each = own.select(*by, F.expr(start).alias(_FROM), _reach(end, start, kind).alias(_UPTO), DIFF)
    counted = each.groupBy(*_keys(rule), _FROM, _UPTO).agg(F.sum(DIFF).alias(DIFF))
    return counted.where(F.col(DIFF) > 0).select(*_keys(rule), _FROM, _UPTO, F.lit(False).alias(_CHANGED))


def _reach(end: str, start: str, kind: Session) -> SparkColumn:
    """One that was cut may end before its last row's gap does."""
    if kind.max_length is None:
        return F.expr(end)
    return F.expr(f"IF({end} - {start} = {kind.max_length}L, {end} + {kind.gap}L, {end})")


def _regions(standing: DataFrame, touched: Touched, at: str, rule: InSessions) -> DataFrame:
    """Where the changed instants reach, with all that is connected: by key, the stretch that its rows lie in."""
    keys = _keys(rule)
    instants = touched.frame.select(
        *keys, F.col(at).alias(_FROM), (F.col(at) + F.lit(rule.kind.gap)).alias(_UPTO), F.lit(True).alias(_CHANGED)
    )
    ordered = Window.partitionBy(*keys).orderBy(_FROM, _UPTO, _CHANGED)
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    upto_here = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    spans = standing.unionByName(instants).withColumn(_REACHED, F.max(_UPTO).over(before))
    begins = F.when(F.col(_REACHED) >= F.col(_FROM), 0).otherwise(1)
    parts = spans.withColumn(_PART, begins).withColumn(_PART, F.sum(_PART).over(upto_here))
    found = parts.groupBy(*keys, _PART).agg(
        F.min(_FROM).alias(_FROM), F.max(_UPTO).alias(_UPTO), F.max(_CHANGED).alias(_CHANGED)
    )
    last = F.col(_UPTO) - F.lit(rule.kind.gap)
    return found.where(F.col(_CHANGED)).select(*keys, _FROM, last.alias(_UPTO))


def _within(rows: DataFrame, regions: DataFrame, rule: InSessions, at: str) -> DataFrame:
    """The rows whose instant, an SQL expression, is in a region of their key. Regions are more than a gap apart, so
    that no stretch of a gap's width has rows of two."""
    gap = rule.kind.gap
    keys = _keys(rule)
    stretches = F.sequence(floored(_FROM, gap), floored(_UPTO, gap))
    pieces = regions.select(*keys, _FROM, _UPTO, F.explode(stretches).alias("_of"))
    placed = rows.withColumn("_where", F.expr(at)).withColumn(_BUCKET, floored("_where", gap))
    same = [placed[f"`{name}`"].eqNullSafe(pieces[key]) for name, key in zip(rule.by, keys, strict=True)]
    near = reduce(lambda one, other: one & other, [placed[_BUCKET] == pieces["_of"], *same])
    joined = placed.join(pieces, near & placed["_where"].between(pieces[_FROM], pieces[_UPTO]))
    return joined.select(*(placed[f"`{name}`"] for name in rows.columns))
