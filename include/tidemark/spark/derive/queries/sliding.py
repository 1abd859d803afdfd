"""Sliding windows by Spark: it gives the values that are aggregated, and brings rows together by chunk of time
(spark/derive/queries/chunks.py); each chunk goes as Arrow through the kernel (arrow/kernels/windows/sliding.py).

For changes chunks are as narrow as can be, and those are recomputed in which a window starts that a changed instant can
reach. Where late rows count for a while only, rows are there for each band of starts (spark/derive/queries/bands.py),
so that a band of a chunk is what goes through the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.windows.sliding import CHUNK, Slide, sliding
from tidemark.arrow.rows.columns import integers
from tidemark.definition.recipe import SlidingPlan
from tidemark.definition.windows.rows import AT
from tidemark.model.window.windows import WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.footers import ranges_when
from tidemark.spark.derive.here.diff import Reached, match_keys, own_touched
from tidemark.spark.derive.queries.bands import FROM, bands_of, counting, in_bands, with_learned
from tidemark.spark.derive.queries.chunks import WIDEST, chunked, earliest, whole_width
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.through_arrow import through
from tidemark.spark.derive.queries.values import aggregates_over, found_by, in_order, shown, values_of
from tidemark.spark.derive.timeline import floored, in_micros, micros
from tidemark.spark.derive.touched import Touched, named, touched_of
from tidemark.spark.derive.views import Views

_BUCKET = "_bucket"


def all_windows(views: Views, rule: SlidingPlan) -> DataFrame:
    """The windows over all rows of the input."""
    return windows_of(views, rule, valued(views, rule, placed(views, rule)))


def windows_of(views: Views, rule: SlidingPlan, rows: DataFrame) -> DataFrame:
    """The windows over all rows there are, which are `valued`."""
    width = whole_width(rule)
    return _windows(views, rule, chunked(rows, earliest(rule), width), width)


def touched_windows(views: Views, rule: SlidingPlan) -> Reached | None:
    """The windows of chunks in which a window starts that a changed instant can reach, and what is stored of them; None
    where nothing changed."""
    width, chunk = rule.kind.size + 2, f"k{len(rule.by)}"
    changed, since = asked(views, rule, views.changes(rule.input)), earliest(rule)
    if rule.bounded_lateness is not None:
        changed, since = counting(views, rule, changed), FROM
    by = [F.col(f"`{name}`").alias(f"k{at}") for at, name in enumerate(rule.by)]
    reached = changed.select(*by, F.expr(since).alias(FROM), AT).distinct()
    chunks = chunked(reached, FROM, width).withColumnRenamed(CHUNK, chunk).drop(FROM, AT)
    touched = touched_of(views, chunks.distinct(), views.rows_changed(rule.input))
    if touched.is_empty:
        return None
    here = _touched_windows(views, rule, touched)
    return Reached(of_chunks(views, rule, touched), here, lambda: own_in_chunks(views, rule, touched))


def _touched_windows(views: Views, rule: SlidingPlan, touched: Touched) -> pa.Table | None:
    """The updates that the collection holds of windows that start in touched chunks, where they are few."""
    own = own_touched(views, touched.few, rule.by)
    if own is None or touched.few is None:
        return None
    chunks = own.append_column(CHUNK, pa.array(in_micros(own, WINDOW_START) // (rule.kind.size + 2)))
    found = match_keys(touched.few, chunks, [*rule.by, CHUNK])
    return None if found is None else own.filter(pa.array(np.isin(found[1], found[0])))


def own_in_chunks(views: Views, rule: SlidingPlan, touched: Touched) -> DataFrame:
    """The updates that the collection holds of windows that start in touched chunks."""
    computation = views.computation
    own = views.own(touched.ranges(views, computation.name, computation.collection, named(rule.by)))
    own = own.withColumn(CHUNK, floored(micros(own, WINDOW_START), rule.kind.size + 2))
    return touched.among(own, [*rule.by, CHUNK]).drop(CHUNK)


def windows_near(views: Views, rule: SlidingPlan, keys: Touched, count: int) -> DataFrame:
    """The windows of the chunks in which those of some keys, `count` at most, start: k0, k1, … are the columns of `by`
    and where the window starts."""
    start = f"k{len(rule.by)}"
    chunk = floored(micros(keys.frame, start), rule.kind.size + 2).alias(start)
    chunks = keys.frame.select(*(F.col(f"k{at}") for at in range(len(rule.by))), chunk)
    return of_chunks(views, rule, touched_of(views, chunks.distinct(), count))


def of_chunks(views: Views, rule: SlidingPlan, touched: Touched) -> DataFrame:
    """The windows that start in touched chunks, which are as narrow as can be."""
    width, chunk = rule.kind.size + 2, f"k{len(rule.by)}"
    rows = valued(views, rule, _near(views, rule, touched, chunk, width))
    return _windows(views, rule, touched.among(chunked(rows, earliest(rule), width), [*rule.by, CHUNK]), width)


def _near(views: Views, rule: SlidingPlan, touched: Touched, chunk: str, width: int) -> DataFrame:
    """The rows that touched chunks hold: they are in these, the one before or the one after."""
    given, between = views.computation.input(rule.input), None
    ranges = touched.ranges(views, rule.input, given.state.collection, named(rule.by))
    if views.sees_event_times:
        chunks = touched.between(chunk, chunk)
        between = None if chunks is None else ((chunks[0] - 1) * width, (chunks[1] + 2) * width - 1)
    elif not ranges and touched.few is not None and width < WIDEST // 4:
        few = np.unique(integers(touched.few, chunk)).astype(np.int64)
        gone = rule.bounded_lateness is not None
        ranges = ranges_when(given, rule.on, (few - 1) * width, (few + 2) * width - 1, gone=gone)
    rows = placed(views, rule, ranges, between).withColumn(_BUCKET, floored(AT, width))
    keys = [F.col(f"k{at}") for at in range(len(rule.by))]
    around = F.explode(F.array(*(F.col(chunk) + F.lit(by) for by in (-1, 0, 1))))
    buckets = touched.frame.select(*keys, around.alias(chunk)).distinct()
    return replace(touched, frame=buckets).among(rows, [*rule.by, _BUCKET]).drop(_BUCKET)


def placed(
    views: Views, rule: SlidingPlan, ranges: Sequence[KeyRange] = (), between: tuple[int, int] | None = None
) -> DataFrame:
    """The rows of the input that windows are computed from, at their instants; where they count for a while only, its
    updates."""
    if rule.bounded_lateness is not None:
        return asked(views, rule, views.updates(rule.input, ranges))
    return asked(views, rule, views.rows_of(rule.input, ranges, between))


def asked(views: Views, rule: SlidingPlan, rows: DataFrame) -> DataFrame:
    """Rows of the input, or updates of it, at their instants."""
    updates = rows if rule.bounded_lateness is None else with_learned(views, rule, rows)
    return queried(views, {rule.input: updates}, rule.rows)


def valued(views: Views, rule: SlidingPlan, placed: DataFrame) -> DataFrame:
    """The values that are aggregated, of rows at their instants, in their bands."""
    return values_of(views, rule, placed if rule.bounded_lateness is None else in_bands(views, rule, placed))


def slide_of(views: Views, rule: SlidingPlan, values: DataFrame, width: int) -> Slide:
    """How windows are made of values of rows in chunks of a width."""
    bounds = None if rule.bounded_lateness is None else bands_of(views, rule).bounds
    aggregates = aggregates_over(rule, values)
    return Slide(rule.by, rule.kind.size, aggregates, rule.kind.clamp_start_at_zero, width, bounds)


def _windows(views: Views, rule: SlidingPlan, values: DataFrame, width: int) -> DataFrame:
    slide = slide_of(views, rule, values, width)
    schema = found_by(rule, values, slide.aggregates)
    return shown(rule, through(in_order(values, slide.together), lambda batches: sliding(batches, slide), schema))
