"""Sliding windows are computed in chunks of time, so that a key with many rows is many tasks' work.

A chunk of `width` holds the windows that start in it; it needs the rows from one instant before it to a window's size
after it, so that a row is in one chunk or two."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.windows.sliding import CHUNK
from tidemark.definition.recipe import SlidingPlan
from tidemark.definition.windows.rows import AT
from tidemark.spark.derive.timeline import floored

WIDEST = 1 << 61
_WIDE = 64
"""How many times as wide as a window a chunk is, if all is computed: one row in so many is in two chunks."""


def whole_width(rule: SlidingPlan) -> int:
    """How wide chunks are if all is computed."""
    size = rule.kind.size
    return max(size + 2, min(_WIDE * (size + 1), WIDEST))


def earliest(rule: SlidingPlan) -> str:
    """The first start of windows that hold an instant."""
    return f"({AT} - {rule.kind.size}L)"


def chunked(rows: DataFrame, since: str, width: int) -> DataFrame:
    """Each row in the chunks of which windows may hold it, or be changed by it: the distance from `since` to AT is at
    most a window's length."""
    first, last = floored(since, width), floored(f"({AT} + 1L)", width)
    chunks = F.explode(F.when(first == last, F.array(first)).otherwise(F.array(first, last)))
    return rows.withColumn(CHUNK, chunks)
