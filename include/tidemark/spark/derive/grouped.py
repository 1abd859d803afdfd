"""Groups that are computed anew by this process: where few values are touched, and what holds their rows is little. It
groups what it reads as the definition's query would; whatever is not as plain as that is left to the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.grouped import grouped
from tidemark.arrow.kernels.windows.sums import Overflowed
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import integers, row_bytes
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import ByKey, Grouped
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.little import MOST_BYTES, as_updates, held_here, left_of, numbered
from tidemark.spark.derive.touched import FEW, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views


def grouped_here(views: Views, rule: ByKey, few: pa.Table) -> list[pa.RecordBatch] | None:
    """By what the rows of few touched values, which are as k0, k1, …, differ from what the definition says of them;
    None where that is not plain, or not little."""
    if rule.grouped is None or not _fits(views, rule, rule.grouped):
        return None
    if not few.num_rows:
        return []
    own = held_here(views, few, rule.held)
    if own is None or own.num_rows > FEW:
        return None
    try:
        rows = _rows_of(views, rule, rule.grouped, few)
        found = None if rows is None else grouped(rows, rule.grouped.keys, rule.grouped.aggregates)
    except Overflowed:
        return None
    if found is None:
        return None
    called = [*rule.held, *(one.name for one in rule.grouped.aggregates)]
    return left_of(views, as_updates(views, pa.Table.from_batches([found]).rename_columns(called)), own)


def _fits(views: Views, rule: ByKey, plain: Grouped) -> bool:
    """Whether the collection holds these columns, and as they come."""
    (given,) = views.computation.inputs
    types = views.types_here(given.name)
    told = {name: types[of] for name, of in zip(rule.held, plain.keys, strict=True)}
    told |= {one.name: one.type for one in plain.aggregates}
    return told == {column.name: column.type for column in stored(views.computation.collection)}


def _rows_of(views: Views, rule: ByKey, plain: Grouped, few: pa.Table) -> pa.Table | None:
    """The rows of the one input that have touched values, in the columns that are needed, each as often as it is there;
    None where they are not little, or one is there fewer times than none."""
    (given,) = views.computation.inputs
    ranges = ranges_holding(few, views, given.name, given.state.collection, dict(rule.clustered.get(given.name, ())))
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    held = views.held_here(given.name, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
    if held is None:
        return None
    names = list(dict.fromkeys([*plain.keys, *(one.of for one in plain.aggregates if one.of)]))
    found, size = [], 0
    for rows in _touched(held, few, plain.keys, names):
        size += rows.nbytes
        if size > MOST_BYTES:
            return None
        found.append(rows)
    if not found:
        types = views.types_here(given.name)
        return pa.schema([(name, arrow_type(types[name])) for name in names]).empty_table()
    there = pa.Table.from_batches(found)
    both = numbered(few, there, plain.keys)
    if both is None:
        return None
    there = there.filter(pa.array(np.isin(both[1], both[0])))
    return _repeated(there, names, one_value=given.state.collection.kind.one_value)


def _touched(
    held: Iterator[pa.RecordBatch], few: pa.Table, keys: Sequence[str], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows that have a touched value in each column; where keys are several columns, others too."""
    values = [few.column(f"k{at}").combine_chunks() for at in range(len(keys))]
    for rows in held:
        among = [np.asarray(pc.is_in(rows.column(name), of)) for name, of in zip(keys, values, strict=True)]
        some = rows.select([*names, MULTIPLICITY]).filter(pa.array(np.logical_and.reduce(among)))
        if some.num_rows:
            yield some


def _repeated(rows: pa.Table, names: Sequence[str], *, one_value: bool) -> pa.Table | None:
    """The rows as often as they are there, which is once where a key has one value."""
    often = integers(rows, MULTIPLICITY)
    rows = rows.select(names)
    if one_value or (often == 1).all():
        return rows
    if (often < 0).any() or float(row_bytes(rows) @ often.astype(np.float64)) > MOST_BYTES:
        return None
    return rows.take(pa.array(np.repeat(np.arange(len(often)), often)))
