"""An input as a query finds it: under its name, each row as often as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.definition.computation import Input
from tidemark.definition.recipe import HAPPENED, Recipe
from tidemark.model.collection import Column, ColumnType
from tidemark.spark.derive.columns import spark_schema


def repeated(frame: DataFrame, name: str, key: Sequence[str] | None, count: str) -> DataFrame:
    """Rows of an input as often as `count` says, which is refused where it is negative. Without a key, it is 1."""
    if key is None:
        return frame.drop(count)
    happened = HAPPENED in frame.columns
    at = (F.lit(" that happened at "), F.col(HAPPENED).cast("string")) if happened else ()
    message = F.concat(
        F.lit(f"collection {name} holds a row of key "),
        F.to_json(F.struct(*(F.col(f"`{column}`") for column in key))),
        *at,
        F.lit(" "),
        F.col(count).cast("string"),
        F.lit(" times; a definition sees rows that are there: correct the input"),
        F.lit(", where a row is retracted at the event time it has" if happened else ""),
    )
    times = F.when(F.col(count) < 0, F.raise_error(message).cast("int")).otherwise(F.col(count).cast("int"))
    shown = [F.col(f"`{name}`") for name in frame.columns if name != count]
    return frame.select(*shown, F.explode(F.array_repeat(F.lit(True), times)).alias(count)).drop(count)


@contextmanager
def called(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as views of their names."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name, frame in frames.items():
            frame.sparkSession.catalog.dropTempView(name)


def empty(spark: SparkSession, computed: Input, recipe: Recipe | None) -> DataFrame:
    """The view of an input without rows: what a definition is analysed over."""
    happened = (Column(HAPPENED, ColumnType.TIMESTAMP),) if recipe is not None and recipe.happened else ()
    return spark.createDataFrame([], spark_schema((*computed.state.collection.columns, *happened)))
