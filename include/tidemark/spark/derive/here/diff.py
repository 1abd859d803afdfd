"""Small results are compared and written by this process: what a collection holds of few touched values, and what its
definition says of them. For so few rows a job of Spark's, its shuffles and compiled queries would be nearly all the
cost. Rows are read by the kernels that executors read with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, replaced, values
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, arrow_type, sort_columns, updates_schema
from tidemark.arrow.runs import Keep
from tidemark.model.collection import Collection, ColumnType
from tidemark.model.window.windows import WINDOW_END
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import Due, desired_at, differing, stored, stored_at
from tidemark.spark.derive.parts import at_rest
from tidemark.spark.derive.settings import IN_ONE_TASK, with_settings
from tidemark.spark.derive.touched import FEW, MOST_BYTES, Touched, named, own_of, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.workers import in_workers

Updates = DataFrame | list[pa.RecordBatch]
"""Updates of a computation: a frame, or few enough to be here, in the columns and the order they are to be at rest."""
ONE_TASK_ROWS = 2**22
"""Rows in the row groups that hold touched rows, mostly few of them, up to which one task brings groups together."""

EXACT = (ColumnType.INT, ColumnType.STRING, ColumnType.BOOL, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types of whose values none are equal but the same."""
_OF_ANY_LENGTH = (ColumnType.STRING, ColumnType.JSON, ColumnType.BYTES)


@dataclass(frozen=True)
class Reached:
    """The rows of a definition that changes reach, and the updates that the collection has of these: `here`, where they
    are few, and as a frame where it is asked for."""

    desired: DataFrame
    here: pa.Table | None
    own_frame: Callable[[], DataFrame]


def own_touched(
    views: Views,
    few: pa.Table | None,
    columns: Sequence[str],
    near: Callable[[pa.RecordBatch], Bools] | None = None,
) -> pa.Table | None:
    """The updates that the collection holds of few touched values, which are in its `columns`, and that are `near`,
    where that is asked; None where either is not little, or the values have another type."""
    batches = None if few is None else own_batches(views, few, columns, near)
    own = None if batches is None else _little(views, batches)
    found = None if few is None or own is None else match_keys(few, own, columns)
    return None if own is None or found is None else own.filter(pa.array(np.isin(found[1], found[0])))


def own_batches(
    views: Views, few: pa.Table, columns: Sequence[str], near: Callable[[pa.RecordBatch], Bools] | None = None
) -> Iterator[pa.RecordBatch] | None:
    """The same with updates of other values among them, none of which is read yet."""
    among = _among(views, few, columns)
    if among is None:
        return None
    keep = among if near is None else lambda rows: among(rows.filter(pa.array(near(rows))))
    ranges = ranges_holding(few, views, views.computation.name, views.computation.collection, named(columns))
    return views.own_rows(ranges, keep, most_rows=LOOKED_AT_ROWS, most_bytes=LOOKED_AT_BYTES)


def _among(views: Views, few: pa.Table, columns: Sequence[str]) -> Keep | None:
    """What leaves of updates those that have a touched value in each column of whose values none are equal but the
    same, others too; None where values have another type."""
    types = {column.name: column.type for column in stored(views.computation.collection)}
    alike = {name: few.column(k) for name, k in named(columns).items() if types[name] in EXACT}
    try:
        values = {name: of.cast(arrow_type(types[name])).combine_chunks() for name, of in alike.items()}
    except pa.ArrowException:
        return None

    def among(rows: pa.RecordBatch) -> pa.RecordBatch:
        found = [np.asarray(pc.is_in(rows.column(name), of)) for name, of in values.items()]
        return rows.filter(pa.array(np.logical_and.reduce(found))) if found else rows

    return among


def _little(views: Views, batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """Updates of the collection; None where they take more than MOST_BYTES."""
    found, size = list[pa.RecordBatch](), 0
    for rows in batches:
        found.append(rows)
        size += rows.nbytes
        if size > MOST_BYTES:
            return None
    return views.own_table(found)


def match_keys(few: pa.Table, own: pa.Table, columns: Sequence[str]) -> tuple[Ints, Ints] | None:
    """Numbers of touched values and of the stored rows, the same where these have them in `columns`; None where they
    have another type."""
    if not columns:
        return np.zeros(few.num_rows, np.int64), np.zeros(own.num_rows, np.int64)
    try:
        values = [few.column(k).cast(own.column(name).type) for name, k in named(columns).items()]
    except pa.ArrowException:
        return None
    both = [
        pa.chunked_array([*of.chunks, *own.column(name).chunks], of.type)
        for name, of in zip(columns, values, strict=True)
    ]
    numbers = ranks(pa.table(both, list(columns)), columns)
    return numbers[: few.num_rows], numbers[few.num_rows :]


def net_rows(own: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows that updates add up to, in some of their columns."""
    batches = own.select([*names, DIFF]).combine_chunks().to_batches()
    rows = pa.Table.from_batches(
        summed(batches, names, resort=True) if batches else [], own.select([*names, DIFF]).schema
    )
    return rows.filter(pa.array(integers(rows, DIFF) > 0)).select(names)


def compared_with_own(views: Views, desired: DataFrame, touched: Touched, columns: Sequence[str]) -> Updates:
    """By what the rows of touched values differ from the `desired` ones; these values are in `columns` of both."""
    own = own_touched(views, touched.few, columns)
    return compared(views, desired, columns, own, lambda: own_of(views, touched, columns))


def compared(
    views: Views, desired: DataFrame, columns: Sequence[str], own: pa.Table | None, own_frame: Callable[[], DataFrame]
) -> Updates:
    """By what updates of the collection differ from the `desired` rows of its definition: here, where these are few and
    `own` has the updates, which `own_frame` gives else. Of `columns` all values are here."""
    if own is not None and own.num_rows <= FEW:
        settings = IN_ONE_TASK if views.rows_read <= ONE_TASK_ROWS else {}
        found = differing_here(views, bounded(views.computation.collection, desired, columns), own, settings=settings)
        if found is not None:
            return found
    return differing(views.computation, [desired_of(views, desired), stored_at(own_frame(), views.computation)])


def bounded(collection: Collection, desired: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows, or at least so many as are not few where they amount to more than MOST_BYTES: texts may be of any
    length, but for those in `columns`, which were here already."""
    types = {column.name: column.type for column in stored(collection)}
    if all(types.get(name) not in _OF_ANY_LENGTH for name in desired.columns if name not in columns):
        return desired
    most, many = MOST_BYTES, FEW + 1

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        size = 0
        for rows in batches:
            size += rows.nbytes
            if size > most:
                yield pa.RecordBatch.from_arrays([pa.nulls(many, of.type) for of in rows.schema], rows.schema.names)
                return
            yield rows

    nullable = T.StructType([T.StructField(of.name, of.dataType) for of in desired.schema])
    return desired.limit(many).mapInArrow(in_workers(run), nullable)


def desired_of(views: Views, desired: DataFrame) -> DataFrame:
    """Rows of the definition as updates. InvalidUsage where they are not in the columns there are."""
    check_fits(views.computation.collection, our_columns(desired.schema))
    return desired_at(desired, views.computation)


def differing_here(
    views: Views, desired: DataFrame, own: pa.Table, *, settings: Mapping[str, str]
) -> list[pa.RecordBatch] | None:
    """By what updates of the collection differ from the rows of its definition; None where these are not few."""
    with with_settings(views.spark, settings):
        found = desired_of(views, desired).limit(FEW + 1).toArrow()
    return None if found.num_rows > FEW else diff_against_own(views, found, own)


def as_updates(views: Views, rows: pa.Table) -> pa.Table:
    """Rows of the definition, which are here in its columns and those that are hidden, as updates at u - 1; those
    of windows that are open then, at the time they close."""
    return updates_due(views.computation.collection, Due.of(views.computation), rows)


def updates_due(collection: Collection, due: Due, rows: pa.Table) -> pa.Table:
    """The same for who has no computation at hand, as executors have not."""
    at = pa.array(_times(due, rows))
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns |= {TIME: at, EVENT_TIME: at, DIFF: pa.array(np.ones(rows.num_rows, np.int64))}
    fields = [of for of in updates_schema(collection) if of.name in columns]
    return pa.table([columns[of.name].cast(of.type) for of in fields], [of.name for of in fields])


def _times(due: Due, rows: pa.Table) -> Ints:
    """When each row of the definition is to be there."""
    if due.closing is None:
        return np.full(rows.num_rows, due.at, np.int64)
    return due.times(values(contiguous(rows.column(WINDOW_END).cast(pa.int64()))))


def diff_against_own(views: Views, found: pa.Table, own: pa.Table) -> list[pa.RecordBatch]:
    """By what updates of the collection differ from the rows of its definition, which are `found` as updates."""
    computation = views.computation
    return diff(computation.collection, computation.previous, computation.upper - 1, found, own)


def diff(collection: Collection, previous: int, at: int, found: pa.Table, own: pa.Table) -> list[pa.RecordBatch]:
    """The same of a collection that was corrected to `previous`, and is to `at` + 1, for who has no computation at
    hand."""
    due = np.where(integers(own, TIME) >= previous, integers(own, TIME), at)
    times = np.maximum(integers(own, TIME), at)
    for name, numbers in ((TIME, times), (EVENT_TIME, times), (DIFF, -integers(own, DIFF))):
        own = replaced(own, name, numbers)
    schema, order = updates_schema(collection), sort_columns(collection, facts=False)
    both = [batch for table in (found, own) for batch in table.combine_chunks().to_batches()]
    rows = summed([at_rest(batch, collection, schema) for batch in both], order, resort=True) if both else []
    names = [column.name for column in stored(collection)]
    return [_retracted(some, own, due, at, names) for some in rows if some.num_rows]


def _retracted(diff: pa.RecordBatch, own: pa.Table, due: Ints, at: int, names: Sequence[str]) -> pa.RecordBatch:
    """What is left of a computation at `at`. What the collection had stored and became `due` since the frontier before
    is retracted when it did, as in `differing`: no reader is to find it between the frontiers."""
    times = integers(diff, TIME)
    back = (integers(diff, DIFF) < 0) & (times == at)
    if not back.any() or not (due < at).any():
        return diff
    schema = diff.select(names).schema
    both = pa.concat_tables([own.select(names).cast(schema), pa.Table.from_batches([diff.select(names)])])
    numbers = ranks(both, names)
    became = np.zeros(int(numbers.max()) + 1, np.int64)
    np.maximum.at(became, numbers[: own.num_rows], np.where(due < at, due, 0))
    since = became[numbers[own.num_rows :]]
    times = np.where(back & (since > 0), since, times)
    return replaced(replaced(diff, TIME, times), EVENT_TIME, times)
