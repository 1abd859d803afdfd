"""Instants in microseconds, stretches of them that are numbered, and when rows of an input came."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from tidemark.arrow.kernels.windows import judged
from tidemark.arrow.rows.columns import Ints, integers, values
from tidemark.definition.recipe import TIME
from tidemark.model.window.judged import Judging

_FEW = 32
"""Bounds that are distinguished by as many comparisons, without Python."""


def floored(sql: str, width: int) -> SparkColumn:
    """Which range of a width a whole number is in: their quotient, rounded down."""
    return F.expr(f"({sql} - pmod({sql}, {width}L)) DIV {width}L")


def micros(frame: DataFrame, name: str) -> str:
    """A bound of windows in microseconds, as SQL."""
    whole = isinstance(frame.schema[name].dataType, T.LongType)
    return f"`{name}`" if whole else f"unix_micros(`{name}`)"


def in_micros(rows: pa.Table, name: str) -> Ints:
    """Bounds of windows that are here, in microseconds."""
    return integers(pa.table([rows.column(name).cast(pa.int64())], [name]), name)


def learned(judging: Judging) -> SparkColumn:
    """Up to where the input was complete when an update of a time came; null: before whatever is judged."""
    time = F.col(TIME)
    if len(judging.ends) <= _FEW:
        found = F.lit(None).cast("long")
        for end in judging.ends:
            found = F.when(time >= F.lit(max(judging.known_from, end)), F.lit(end).cast("long")).otherwise(found)
        return found

    def learned_at(times: pa.Array) -> pa.Array:
        return judged.learned(judging, times)

    return arrow_udf(learned_at, T.LongType())(time)  # type: ignore[call-overload, no-any-return]


def passed(number: SparkColumn, bounds: Sequence[int]) -> SparkColumn:
    """How many of some bounds, which ascend, a whole number has reached; it is never null."""
    if len(bounds) <= _FEW:
        return reduce(add, [(number >= F.lit(bound)).cast("long") for bound in bounds], F.lit(0).cast("long"))
    ascending = np.asarray(bounds, np.int64)

    def count_passed(numbers: pa.Array) -> pa.Array:
        return pa.array(np.searchsorted(ascending, values(numbers), "right"), pa.int64())

    return arrow_udf(count_passed, T.LongType())(number)  # type: ignore[call-overload, no-any-return]
