"""Counts, and sums of whole numbers, of groups told by columns of the input: so plain that the driver adds up by how
much few changes let them grow. Whatever is not as plain as that, a sum that might not fit its 64 bits or a group of
fewer rows than none, is left to the queries, which say what is wrong, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.windows.sums import Overflowed
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.schema import DIFF
from tidemark.definition.recipe import Added, ByKey, Plain
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.instant import MAX_TIME
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.little import as_updates, left_of, own_touched, standing
from tidemark.spark.derive.touched import FEW
from tidemark.spark.derive.views import Views

_KEYS = (ColumnType.INT, ColumnType.STRING, ColumnType.BOOL, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types of whose values none are equal but the same."""


class _NotPlain(Exception):
    """It is for queries to say what comes out."""


def grown_here(views: Views, rule: ByKey) -> list[pa.RecordBatch] | None:
    """By what the rows of groups differ whose sums grew; None where that is not plain, or not little."""
    plain, (given,) = rule.plain, views.computation.inputs
    types = views.types_here(given.name)
    if plain is None or not _fits(views, rule, plain, types):
        return None
    changed = views.changes_here(given.name)
    if changed is None:
        return None
    try:
        delta = _delta(changed, plain, rule.held)
        if delta is None or not delta.num_rows:
            return None if delta is None else []
        keys = delta.select(list(rule.held)).rename_columns([f"k{at}" for at in range(len(rule.held))])
        own = own_touched(views, keys, rule.held)
        if own is None or own.num_rows > FEW:
            return None
        stand = standing(own, [column.name for column in stored(views.computation.collection)])
        grown = _added_up([delta, _counted(stand, rule.held, plain.sums)], rule.held)
        return left_of(views, _rows(views, grown, plain), own)
    except (_NotPlain, Overflowed):
        return None


def _fits(views: Views, rule: ByKey, plain: Plain, types: Mapping[str, ValueType]) -> bool:
    """Whether the collection holds these columns, and as they come."""
    held = {column.name: column.type for column in stored(views.computation.collection)}
    keys = dict(zip(rule.held, plain.keys, strict=True))
    sums = [one.name for one in plain.sums]
    return (
        held.keys() == {*keys, *sums}
        and all(held[name] == types[of] and types[of] in _KEYS for name, of in keys.items())
        and all(held[name] is ColumnType.INT for name in sums)
        and all(types[one.of] is ColumnType.INT for one in plain.sums if one.of and not one.count)
    )


def _delta(changed: Iterator[pa.RecordBatch], plain: Plain, held: Sequence[str]) -> pa.Table | None:
    """By how much the groups grew, one row each; None where they are not few."""
    found: pa.Table | None = None
    for rows in changed:
        diffs = integers(rows, DIFF)
        columns = [rows.column(name) for name in plain.keys]
        columns += [pa.array(_growth(rows, diffs, one)) for one in plain.sums]
        new = pa.table(columns, [*held, *(one.name for one in plain.sums)])
        found = _added_up([new] if found is None else [found, new], held)
        if found.num_rows > FEW:
            return None
    return found if found is not None else pa.table({name: pa.nulls(0) for name in held})


def _growth(rows: pa.RecordBatch, diffs: Ints, one: Added) -> Ints:
    """What each update adds to a sum."""
    if one.of is None:
        return diffs
    values = rows.column(one.of)
    if one.count:
        return np.where(np.asarray(pc.is_valid(values)), diffs, 0)
    numbers = np.asarray(pc.fill_null(values, 0))
    if _largest(numbers) * _largest(diffs) > MAX_TIME:
        raise _NotPlain
    return numbers * diffs


def _counted(rows: pa.Table, held: Sequence[str], sums: Sequence[Added]) -> pa.Table:
    """The rows that stand: what is the sum of no values there is null, and counts as 0."""
    columns = [pc.fill_null(rows.column(one.name), 0) for one in sums]
    return pa.table([*(rows.column(name) for name in held), *columns], [*held, *(one.name for one in sums)])


def _added_up(tables: Sequence[pa.Table], held: Sequence[str]) -> pa.Table:
    """One row a group; null is a value."""
    rows = pa.concat_tables([table.cast(tables[0].schema) for table in tables])
    sums = [name for name in rows.column_names if name not in held]
    if any(_largest(np.asarray(rows.column(name))) * rows.num_rows > MAX_TIME for name in sums):
        raise _NotPlain
    added = rows.group_by(list(held), use_threads=False).aggregate([(name, "sum") for name in sums])
    return pa.table(
        [added.column(name) for name in held] + [added.column(f"{name}_sum") for name in sums], [*held, *sums]
    )


def _largest(numbers: Ints) -> int:
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def _rows(views: Views, grown: pa.Table, plain: Plain) -> pa.Table:
    """The groups that have rows, as updates of the collection."""
    rows = integers(grown, plain.rows)
    if (rows < 0).any():
        raise _NotPlain
    grown = grown.filter(pa.array(rows > 0))
    columns = {name: grown.column(name) for name in grown.column_names}
    for one in plain.sums:
        if one.null_without is not None:
            none = pa.array(integers(grown, one.null_without) == 0)
            columns[one.name] = pc.if_else(none, None, grown.column(one.name))
    return as_updates(views, pa.table(columns))
