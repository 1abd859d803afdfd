"""Rows in aligned windows, by Spark: it says which rows of an input are in any, and a kernel on executors in which
(arrow/kernels/windows/placed.py), and which of them came too late (judged.py). All else is computed of these rows as of
any others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.kernels.windows.judged import counting, late, late_in_windows
from tidemark.arrow.kernels.windows.placed import pieces
from tidemark.definition.recipe import DIFF, TIME, Recipe, WindowAssignment, WindowedRows
from tidemark.definition.windows.rows import AT, END, START
from tidemark.model.collection import Column
from tidemark.model.window.judged import Judging
from tidemark.model.window.statistics import LATE
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.columns import spark_type
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.through_arrow import Batches, through
from tidemark.spark.derive.under_names import called, repeated
from tidemark.spark.derive.views import Views

_EVER = Judging(0, ())
"""Where late rows count for ever."""


def rows_of(
    views: Views, name: str, ranges: Sequence[KeyRange] = (), between: tuple[int, int] | None = None
) -> DataFrame:
    """The rows of an input, as `Views.rows_of` gives them; of aligned windows those that count, once in each window."""
    rule = rule_of(views)
    if rule is None:
        return views.rows_of(name, ranges, between)
    if rule.assignment.frozen_after is None:
        return in_windows(views, rule, views.rows_of(name, ranges, between))
    rows = in_windows(views, rule, views.updates(name, ranges)).drop(TIME)
    shown = [column for column in rows.columns if column != DIFF]
    summed = rows.groupBy(*(F.col(f"`{column}`") for column in shown)).agg(F.sum(DIFF).alias(DIFF))
    return repeated(summed.where(F.col(DIFF) != 0), name, [*rule.assignment.by, START, END], DIFF)


def changes(views: Views, name: str) -> DataFrame:
    """What changed of an input, for who adds it up or looks at it only."""
    rule = rule_of(views)
    if rule is None:
        return views.some_changes(name)
    bounded = rule.assignment.frozen_after is not None
    return in_windows(views, rule, views.changes(name) if bounded else views.some_changes(name))


def rule_of(views: Views) -> WindowedRows | None:
    """Which rows are in which windows, of aligned ones."""
    recipe = views.computation.recipe
    return recipe.in_windows if recipe else None


def in_windows(views: Views, rule: WindowedRows, frame: DataFrame, columns: Sequence[str] | None = None) -> DataFrame:
    """Rows of the input, or its updates with TIME and DIFF, once for each window that they count in: those of their
    `columns` (None: that are needed) that they have, these two, AT, START and END."""
    if rule.assignment.grace_of_next is not None:
        frame = frame.withColumn(DIFF, _added(rule, views.computation.input(rule.input).state.collection.key))
    rows = in_any(views, rule, frame, [*(rule.columns if columns is None else columns), AT, TIME, DIFF])
    return once_for_each(rows, rule.assignment, _judging(views, rule))


def once_for_each(rows: DataFrame, assignment: WindowAssignment, judging: Judging) -> DataFrame:
    """Rows once for each window that they count in, with START and END."""

    def kernel(batches: Batches) -> Batches:
        return (counting(some, assignment, judging) for some in pieces(batches, assignment))

    return through(rows, kernel, T.StructType([*rows.schema.fields, *_bounds(assignment)]))


def count_late(views: Views, rule: WindowedRows, updates: DataFrame) -> DataFrame:
    """How many of some updates came too late, in one row of the columns LATE."""
    assignment, judging = rule.assignment, _judging(views, rule)

    def kernel(batches: Batches) -> Batches:
        for some in pieces(batches, assignment):
            found = astuple(late(some, assignment, judging))
            yield pa.RecordBatch.from_pydict({name: [many] for name, many in zip(LATE, found, strict=True)})

    rows = in_any(views, rule, updates, [AT, TIME, DIFF])
    counted = through(rows, kernel, T.StructType(_numbers()))
    return counted.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in LATE))


def late_for_each(views: Views, rule: WindowedRows, updates: DataFrame) -> DataFrame:
    """Of each window for which some updates came too late: the columns of `by`, WINDOW_START, WINDOW_END and LATE."""
    assignment, judging, by = rule.assignment, _judging(views, rule), rule.assignment.by

    def kernel(batches: Batches) -> Batches:
        return (late_in_windows(some, assignment, judging) for some in pieces(batches, assignment))

    rows = in_any(views, rule, updates, [*by, AT, TIME, DIFF])
    found = through(rows, kernel, T.StructType([*rows.schema.fields, *_bounds(assignment), *_numbers()]))
    window = [F.col(START).alias(WINDOW_START), F.col(END).alias(WINDOW_END)]
    return found.groupBy(*(F.col(f"`{name}`") for name in by), *window).agg(*(F.sum(name).alias(name) for name in LATE))


def empty_rows(given: DataFrame, name: str, recipe: Recipe | None) -> DataFrame:
    """No rows, in the columns that a definition sees of an input; of an input without rows."""
    rule = recipe and (recipe.in_windows or recipe.windowed)
    if not rule:
        return given
    with called({name: given}):
        rows = analysed(given.sparkSession, name, rule.rows)
    bound = rule.assignment.bound if isinstance(rule, WindowedRows) else rule.bound
    nothing = F.lit(None).cast(spark_type(bound))
    return rows.withColumns({START: nothing, END: nothing})


def in_any(views: Views, rule: WindowedRows, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows of the input that are in any window, in those of these columns that they have."""
    rows = queried(views, {rule.input: frame}, rule.rows)
    return rows.select(*(F.col(f"`{name}`") for name in columns if name in rows.columns))


def _judging(views: Views, rule: WindowedRows) -> Judging:
    return _EVER if rule.assignment.frozen_after is None else views.computation.input(rule.input).judging


def _bounds(assignment: WindowAssignment) -> Iterator[T.StructField]:
    return (T.StructField(name, spark_type(assignment.bound)) for name in (START, END))


def _numbers() -> list[T.StructField]:
    return [T.StructField(name, T.LongType()) for name in LATE]


def _added(rule: WindowedRows, key: Sequence[Column]) -> SparkColumn:
    """How often a row was added, which is refused where it was retracted."""
    message = F.concat(
        F.lit(f"collection {rule.input} retracts a row of key "),
        F.to_json(F.struct(*(F.col(f"`{column.name}`") for column in key))),
        F.lit(", which late: next_window may have counted in another window; write late: discard, or reemit"),
    )
    return F.when(F.col(DIFF) < 0, F.raise_error(message).cast("long")).otherwise(F.col(DIFF))
