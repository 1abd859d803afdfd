"""Sliding windows by Spark: rows are first brought together by instant (cells), cells to chunks of time, and each chunk
goes as Arrow through the kernel (arrow/kernels/windows/sliding.py). So a key with many rows is many tasks' work.

A chunk of `width` holds the windows that start in it; it needs the cells from one before it to a window's size after
it, so that a cell is in one chunk or two. For changes chunks are as narrow as can be, and those are computed anew in
which a window starts that a changed instant can reach.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.kernels.windows.sliding import AT, CHUNK, END, START, Slide, sliding
from tidemark.definition.recipe import CELLED, Slid
from tidemark.definition.state import Op
from tidemark.model.window.windows import WINDOW_START
from tidemark.spark.derive.by_key import queried
from tidemark.spark.derive.through_arrow import through
from tidemark.spark.derive.timeline import floored, micros
from tidemark.spark.derive.touched import Touched, named, touched_of
from tidemark.spark.derive.views import Views

_BUCKET = "_bucket"
_WIDE = 64
"""How many times as wide as a window a chunk is, if all is computed: one cell in so many is in two chunks."""
_WIDEST = 1 << 61


def all_windows(views: Views, rule: Slid) -> DataFrame:
    """The windows over all rows of the input."""
    rows = queried(views, {rule.input: views.held(rule.input)}, rule.rows)
    size = rule.kind.size
    width = max(size + 2, min(_WIDE * (size + 1), _WIDEST))
    return _windows(views, rule, _chunked(_cells(views, rule, rows), size, width), width)


def touched_windows(views: Views, rule: Slid) -> tuple[DataFrame, DataFrame] | None:
    """The windows of chunks in which a window starts that a changed instant can reach, and what is held of them; None
    where nothing changed."""
    size, width = rule.kind.size, rule.kind.size + 2
    changed = queried(views, {rule.input: views.changes(rule.input)}, rule.rows)
    by = [F.col(f"`{name}`").alias(f"k{at}") for at, name in enumerate(rule.by)]
    chunk = f"k{len(rule.by)}"
    chunks = _chunked(changed.select(*by, AT).distinct(), size, width).withColumnRenamed(CHUNK, chunk).drop(AT)
    touched = touched_of(views, chunks.distinct(), views.rows_changed(rule.input))
    if touched.is_empty:
        return None
    cells = _cells(views, rule, _near(views, rule, touched, chunk, width))
    keys = [f"k{at}" for at in range(len(rule.by))]
    chunked = touched.among(_chunked(cells, size, width), [*keys, CHUNK])
    computation = views.computation
    own = views.own(touched.ranges(views, computation.name, computation.collection, named(rule.by)))
    own = own.withColumn(CHUNK, floored(micros(own, WINDOW_START), width))
    return _windows(views, rule, chunked, width), touched.among(own, [*rule.by, CHUNK]).drop(CHUNK)


def _near(views: Views, rule: Slid, touched: Touched, chunk: str, width: int) -> DataFrame:
    """The rows of which touched chunks have cells: they are in these, the one before or the one after."""
    collection = views.computation.input(rule.input).state.collection
    held = views.held(rule.input, touched.ranges(views, rule.input, collection, named(rule.by)))
    rows = queried(views, {rule.input: held}, rule.rows).withColumn(_BUCKET, floored(AT, width))
    keys = [F.col(f"k{at}") for at in range(len(rule.by))]
    around = F.explode(F.array(*(F.col(chunk) + F.lit(by) for by in (-1, 0, 1))))
    buckets = touched.frame.select(*keys, around.alias(chunk)).distinct()
    return replace(touched, frame=buckets).among(rows, [*rule.by, _BUCKET]).drop(_BUCKET)


def _cells(views: Views, rule: Slid, rows: DataFrame) -> DataFrame:
    return queried(views, {rule.input: rows}, rule.cells)


def _chunked(cells: DataFrame, size: int, width: int) -> DataFrame:
    """Each cell in the chunks of which windows may hold it, or be told by it."""
    first, last = floored(f"({AT} - {size}L)", width), floored(f"({AT} + 1L)", width)
    chunks = F.explode(F.when(first == last, F.array(first)).otherwise(F.array(first, last)))
    return cells.withColumn(CHUNK, chunks)


def _windows(views: Views, rule: Slid, chunked: DataFrame, width: int) -> DataFrame:
    keys = tuple(f"k{at}" for at in range(len(rule.by)))
    slide = Slide(keys, rule.kind.size, rule.states, rule.kind.clamp_start_at_zero, width)
    together = [*keys, CHUNK]
    ordered = chunked.repartition(*together).sortWithinPartitions(*together, AT)
    types = {field.name: field.dataType for field in chunked.schema.fields}
    fields = [T.StructField(name, types[name]) for name in keys]
    fields += [T.StructField(START, T.LongType()), T.StructField(END, T.LongType())]
    for state in rule.states:
        of = types[state.name]
        if state.op in (Op.DISTINCT, Op.QUANTILE):
            assert isinstance(of, T.ArrayType)
            of = T.LongType() if state.op is Op.DISTINCT else of.elementType
        fields.append(T.StructField(state.name, of))
    found = through(ordered, lambda batches: sliding(batches, slide), T.StructType(fields))
    return queried(views, {CELLED: found}, rule.windows)
