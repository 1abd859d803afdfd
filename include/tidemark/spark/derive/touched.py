"""The values that changes touch: those of groups, of a join, of the columns a definition in Python is computed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.rows.schema import arrow_type, plain_scalars
from tidemark.model.collection import Collection
from tidemark.plan.ranges import ranges_of
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.views import AS_IT_IS, IN_ONE_TASK, Views, told
from tidemark.spark.read import LEAST_TASK_ROWS

FEW = 20_000
"""Touched values that are looked up one by one: then only the row groups that can hold them are read."""
MOST_RANGES = 1024
"""Ranges of keys of one input that are read apart."""
NOTHING = KeyRange(upper=())
"""No key."""


@dataclass(frozen=True)
class Touched:
    """The values whose rows are computed anew, as a view of k0, k1, …; and, where they are few, the values, as Arrow
    has them: Python's times would be those of the zone this process is in."""

    frame: DataFrame
    few: pa.Table | None

    @property
    def is_empty(self) -> bool:
        return self.few is not None and not self.few.num_rows

    def ranges(self, views: Views, name: str, collection: Collection, columns: Mapping[str, str]) -> Sequence[KeyRange]:
        """The ranges of keys of a collection that hold the values; none: all of them. `columns` says which of its
        columns is which of k0, k1, …."""
        if self.few is None:
            return ()
        leading = []
        for column in collection.key:
            values = self.few.column(columns[column.name]) if column.name in columns else None
            if values is None or not _is_of(values.type, arrow_type(column.type)):
                break
            leading.append(plain_scalars(values.cast(arrow_type(column.type))))
        if not leading:
            return ()
        prefixes = [row for row in zip(*leading, strict=True) if None not in row]
        return ranges_of(prefixes, views.groups(name), MOST_RANGES) or (NOTHING,)

    def among(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The rows with touched values in their `columns`; null is a value."""
        same = [frame[f"`{name}`"].eqNullSafe(self.frame[f"k{at}"]) for at, name in enumerate(columns)]
        values = self.frame if self.few is None else F.broadcast(self.frame)
        return frame.join(values, reduce(lambda one, other: one & other, same), "left_semi")


def touched_of(views: Views, values: DataFrame, rows: int) -> Touched:
    """Values, which are looked at; they come of so many rows at most."""
    return Touched(*looked_at(views, values, rows))


def looked_at(views: Views, frame: DataFrame, rows: int) -> tuple[DataFrame, pa.Table | None]:
    """A frame that is computed once, and what it holds where that is few rows: the frame is of these then. It is made
    of so many `rows` at most; where one task can read them, one computes it all."""
    settings: Mapping[str, str] = {}
    if rows > LEAST_TASK_ROWS:
        frame = views.kept(frame)
    else:
        settings = AS_IT_IS if rows <= FEW else IN_ONE_TASK
    with told(views.spark, settings):
        few = frame.limit(FEW + 1).toArrow()
    if few.num_rows <= FEW:
        return views.spark.createDataFrame(few, frame.schema), few
    return frame if rows > LEAST_TASK_ROWS else views.kept(frame), None


def _is_of(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values are those of a column's type, or of a narrower one of whole numbers."""
    return bool(given == wanted or (pa.types.is_integer(given) and pa.types.is_int64(wanted)))


def named(columns: Sequence[str]) -> dict[str, str]:
    """Which of some columns is which of k0, k1, …, in their order."""
    return {name: f"k{at}" for at, name in enumerate(columns)}


def held_of(views: Views, touched: Touched, columns: Sequence[str]) -> DataFrame:
    """What the collection holds of values, which are in its `columns`."""
    computation = views.computation
    held = views.own(touched.ranges(views, computation.name, computation.collection, named(columns)))
    return touched.among(held, columns)
