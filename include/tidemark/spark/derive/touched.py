"""The values that changes touch: those of groups, of a join, of the columns a definition in Python is computed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.schema import arrow_type, key_scalars
from tidemark.model.collection import Collection
from tidemark.plan.ranges import ranges_of
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.settings import AS_IT_IS, IN_ONE_TASK, with_settings
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS

FEW = 20_000
"""Touched values that queries look up one by one: then only the row groups that can hold them are read."""
MOST_BYTES = 2**26
"""Of touched values, and of what a definition says of them, that this process holds, as Arrow has it in memory."""
MOST_RANGES = 1024
"""At most so many ranges of keys of one input are read separately."""
NOTHING = KeyRange(upper=())
"""No key."""


@dataclass(frozen=True)
class Touched:
    """The values whose rows are recomputed, as a view of k0, k1, …; and, where they are few, the values, as Arrow has
    them: Python's times would be those of the zone this process is in."""

    frame: DataFrame
    few: pa.Table | None

    @property
    def is_empty(self) -> bool:
        return self.few is not None and not self.few.num_rows

    def ranges(self, views: Views, name: str, collection: Collection, columns: Mapping[str, str]) -> Sequence[KeyRange]:
        """The ranges of keys of a collection that hold the values; none: all of them. `columns` says which of its
        columns is which of k0, k1, …."""
        return () if self.few is None else ranges_holding(self.few, views, name, collection, columns)

    def between(self, first: str, last: str) -> tuple[int, int] | None:
        """The least of one value and the greatest of another, in microseconds where they are times; None where values
        are too many to be known."""
        if self.few is None or not self.few.num_rows:
            return None
        found = [(pc.min(self.few.column(first))), (pc.max(self.few.column(last)))]
        least, most = (one.cast(pa.int64()).as_py() for one in found)
        return None if least is None or most is None else (least, most)

    def among(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The rows with touched values in their `columns`; null is a value."""
        same = [frame[f"`{name}`"].eqNullSafe(self.frame[f"k{at}"]) for at, name in enumerate(columns)]
        values = self.frame if self.few is None else F.broadcast(self.frame)
        return frame.join(values, reduce(lambda one, other: one & other, same), "left_semi")


def ranges_holding(
    few: pa.Table, views: Views, name: str, collection: Collection, columns: Mapping[str, str]
) -> Sequence[KeyRange]:
    """The same of few values. Where rows are laid out by time those of a key may be anywhere."""
    if collection.layout:
        return ()
    leading: dict[str, pa.ChunkedArray] = {}
    for column in collection.key:
        values = few.column(columns[column.name]) if column.name in columns else None
        if values is None or not _is_of(values.type, arrow_type(column.type)):
            break
        leading[column.name] = values.cast(arrow_type(column.type))
    if not leading:
        return ()
    once = different(None, pa.table(leading))
    prefixes = list(zip(*map(key_scalars, once.columns), strict=True))
    return ranges_of(prefixes, views.groups(name), MOST_RANGES) or (NOTHING,)


def touched_here(views: Views, columns: Mapping[str, Sequence[str]]) -> pa.Table | None:
    """The values, as k0, k1, …, that the changes of some inputs have in these of their columns, looked at without
    Spark; None where they are more than LEAST_TASK_ROWS or MOST_BYTES, or changes are not little, or the inputs'
    columns have several types."""
    found: pa.Table | None = None
    try:
        for name, those in columns.items():
            changed = views.changes_here(name)
            if changed is None:
                return None
            for rows in changed:
                values = pa.Table.from_batches([rows.select(list(those))]).rename_columns(list(named(those).values()))
                if found is not None and values.schema.types != found.schema.types:
                    return None
                found = different(found, values if found is None else values.cast(found.schema))
                if are_many(found):
                    return None
    except Overflowed:
        return None
    return found


def different(found: pa.Table | None, values: pa.Table) -> pa.Table:
    """The values that were found and others, each once; null is a value."""
    both = values if found is None else pa.concat_tables([found, values])
    return both.group_by(both.column_names, use_threads=False).aggregate([])


def are_many(values: pa.Table) -> bool:
    """Whether touched values are more than this process looks up."""
    return bool(values.num_rows > LEAST_TASK_ROWS or values.nbytes > MOST_BYTES)


def touched_few(views: Views, few: pa.Table) -> Touched:
    """Few values, which are here."""
    return Touched(views.spark.createDataFrame(few), few)


def touched_of(views: Views, values: DataFrame, rows: int) -> Touched:
    """Values, which are looked at; they come of so many rows at most."""
    return Touched(*looked_at(views, values, rows))


def looked_at(views: Views, frame: DataFrame, rows: int) -> tuple[DataFrame, pa.Table | None]:
    """A frame that is computed once, and its rows where they are few: then the frame consists of these. It is made of
    so many `rows` at most; where one task can read them, one computes it all."""
    settings: Mapping[str, str] = {}
    if rows > LEAST_TASK_ROWS:
        frame = views.kept(frame)
    else:
        settings = AS_IT_IS if rows <= FEW else IN_ONE_TASK
    with with_settings(views.spark, settings):
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


def own_of(views: Views, touched: Touched, columns: Sequence[str]) -> DataFrame:
    """What the collection holds of values, which are in its `columns`."""
    computation = views.computation
    own = views.own(touched.ranges(views, computation.name, computation.collection, named(columns)))
    return touched.among(own, columns)
