"""Answers at scale in some columns only, and of some rows only: what arrow/view.py does, on DataFrames."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidemark.arrow.read import MULTIPLICITY, as_of_schema, changes_schema
from tidemark.arrow.view import Keep, View
from tidemark.model.collection import Collection


def held_frame(frame: DataFrame, collection: Collection, view: View) -> DataFrame:
    """A frame of `as_of` as the view has it."""
    frame = _fitting(frame, as_of_schema(collection), view.keep)
    if len(view.shown) < len(collection.columns):
        frame = frame.groupBy(*view.shown).agg(F.sum(MULTIPLICITY).alias(MULTIPLICITY)).where(F.col(MULTIPLICITY) != 0)
    return frame.select(*view.shown, MULTIPLICITY)


def told_frame(frame: DataFrame, collection: Collection, view: View, *, net: bool) -> DataFrame:
    """A frame of `changes` as the view has it."""
    names = [name.name for name in collection.columns if name.name in (*view.shown, *view.looked_at)]
    schema = changes_schema(collection, net=net, columns=names)
    times = [] if net else ["_commit_version", "_commit_timestamp", "_event_time"]
    if len(names) < len(collection.columns):
        frame = _told_anew(_summed(frame, [*names, *times]), collection, names, times).select(*schema.names)
    frame = _fitting(frame, schema, view.keep)
    shown = changes_schema(collection, net=net, columns=view.shown).names
    if len(view.shown) < len(names):
        frame = _summed(frame, [name for name in shown if name != "diff"])
    return frame.select(*shown)


def _summed(frame: DataFrame, by: list[str]) -> DataFrame:
    return frame.groupBy(*by).agg(F.sum("diff").alias("diff")).where(F.col("diff") != 0)


def _told_anew(frame: DataFrame, collection: Collection, names: list[str], times: list[str]) -> DataFrame:
    """The type of each change, of what changed in some columns."""
    sign = F.when(F.col("diff") > 0, "insert").otherwise("delete")
    key = [column.name for column in collection.key]
    if not collection.kind.one_value or not set(key) <= set(names):
        return frame.withColumn("_change_type", sign)
    at = Window.partitionBy(*key, *times)
    one_for_one = (F.count("*").over(at) == 2) & (F.min("diff").over(at) == -1) & (F.max("diff").over(at) == 1)
    image = F.when(F.col("diff") > 0, "update_postimage").otherwise("update_preimage")
    return frame.withColumn("_change_type", F.when(one_for_one, image).otherwise(sign))


def _fitting(frame: DataFrame, schema: pa.Schema, keep: Keep | None) -> DataFrame:
    """The rows that fit, told by the same kernel as anywhere else."""
    if keep is None:
        return frame

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            typed = [rows.column(field.name).cast(field.type) for field in schema]
            yield keep(pa.RecordBatch.from_arrays(typed, names=schema.names))

    return frame.select(*schema.names).mapInArrow(run, frame.select(*schema.names).schema)
