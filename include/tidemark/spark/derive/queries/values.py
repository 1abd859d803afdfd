"""The values that are aggregated in windows, as Spark gives them, and windows as the definition shows them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.definition.recipe import AggregateColumn, SessionPlan, SlidingPlan, WindowedRows
from tidemark.definition.windows.aggregated import aggregates_of_values
from tidemark.definition.windows.rows import AT, END, START
from tidemark.model.collection import Column, ColumnType
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.columns import our_type, spark_type, value
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.views import Views

Rule = SlidingPlan | SessionPlan


def values_of(views: Views, rule: Rule | WindowedRows, rows: DataFrame) -> DataFrame:
    """The values of rows that `rows` of the rule gave, or that are where such rows are, as a collection holds them."""
    frame = queried(views, {rule.input: rows}, rule.valued)
    used = _used(rule)
    own = {name: Column(name, our_type(name, frame.schema[name].dataType)) for name in frame.columns if name in used}
    return frame.select(*(value(own[name]) if name in own else F.col(f"`{name}`") for name in frame.columns))


def aggregates_over(rule: Rule, values: DataFrame) -> tuple[AggregateColumn, ...]:
    """The aggregates of these values, whose types are known now."""
    types = {name: our_type(name, values.schema[name].dataType) for name in _used(rule)}
    return aggregates_of_values(rule.aggregates, types)


def in_order(rows: DataFrame, together: Sequence[str]) -> DataFrame:
    """Rows as kernels take them: those that are together in one partition, in order of their instants."""
    keys = [F.col(f"`{name}`") for name in together]
    return (rows.repartition(*keys) if keys else rows.repartition(1)).sortWithinPartitions(*keys, AT)


def found_by(rule: Rule, values: DataFrame, aggregates: Sequence[AggregateColumn]) -> T.StructType:
    """The columns of windows as a kernel has them."""
    fields = [T.StructField(name, values.schema[name].dataType) for name in rule.by]
    fields += [T.StructField(START, T.LongType()), T.StructField(END, T.LongType())]
    return T.StructType([*fields, *(T.StructField(one.name, spark_type(one.type)) for one in aggregates)])


def shown(rule: Rule, found: DataFrame) -> DataFrame:
    """Windows in the columns of the definition."""
    bounds = {WINDOW_START: F.col(START), WINDOW_END: F.col(END)}
    if rule.bound is ColumnType.TIMESTAMP:
        bounds = {name: F.timestamp_micros(of) for name, of in bounds.items()}
    names = (rule.by, [one.name for one in rule.aggregates])
    own, aggregates = ([F.col(f"`{name}`") for name in some] for some in names)
    return found.select(*own, *(of.alias(name) for name, of in bounds.items()), *aggregates)


def _used(rule: Rule | WindowedRows) -> set[str]:
    return {name for one in rule.aggregates for name in (one.of, one.texts) if name is not None}
