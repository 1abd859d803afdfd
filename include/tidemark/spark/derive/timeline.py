"""Instants in microseconds, and stretches of them that are numbered."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T


def floored(sql: str, width: int) -> SparkColumn:
    """Which stretch of a width a whole number lies in: their quotient, rounded down."""
    return F.expr(f"({sql} - pmod({sql}, {width}L)) DIV {width}L")


def micros(frame: DataFrame, name: str) -> str:
    """A bound of windows in microseconds, as SQL."""
    whole = isinstance(frame.schema[name].dataType, T.LongType)
    return f"`{name}`" if whole else f"unix_micros(`{name}`)"
