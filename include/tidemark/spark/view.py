"""Answers at scale in some columns only, and of some rows only: what arrow/view.py does, on DataFrames.

The reader is asked for the columns the view reads, and only these are read, and for the rows that fit. It adds up what
it meets; what is answered here is the sum over all, in one shuffle, where the columns leave out what distinguishes
rows. Rows that are added up are equal in all a condition looks at, so it does not matter that they are filtered before.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.read import CHANGE_TYPE, MULTIPLICITY, changes_schema, names_one_value
from tidemark.arrow.view import View
from tidemark.model.collection import Collection


def view_frame(frame: DataFrame, collection: Collection, view: View) -> DataFrame:
    """A frame of `as_of`, in the columns the view reads and of the rows that fit, as the view has it."""
    if len(view.shown) < len(collection.columns) and not names_one_value(collection, view.shown):
        frame = _summed(frame, view.shown, MULTIPLICITY)
    return frame.select(*view.shown, MULTIPLICITY)


def changes_frame(frame: DataFrame, collection: Collection, view: View, *, net: bool) -> DataFrame:
    """A frame of `changes`, in the columns the view reads and of the rows that fit, as the view has it."""
    read = view.read(collection)
    schema = changes_schema(collection, net=net, columns=read)
    if len(read) < len(collection.columns) and not names_one_value(collection, read):
        frame = _summed(frame, [name for name in schema.names if name not in (CHANGE_TYPE, "diff")], "diff")
        frame = frame.withColumn(CHANGE_TYPE, F.when(F.col("diff") > 0, "insert").otherwise("delete"))
    shown = changes_schema(collection, net=net, columns=view.shown).names
    if len(view.shown) < len(read):
        frame = _summed(frame, [name for name in shown if name != "diff"], "diff")
    return frame.select(*shown)


def _summed(frame: DataFrame, by: Sequence[str], count: str) -> DataFrame:
    """Equal rows as one; `count` is the column that says how many of each there are."""
    return frame.groupBy(*by).agg(F.sum(count).alias(count)).where(F.col(count) != 0)
