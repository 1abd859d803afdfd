"""Groups whose counts, sums and means are updated from the changes alone: this process adds by how much few changes
grow the sums of their groups to the sums that the collection holds. Sums add whole numbers and decimals, and means are
divided again.

An example: of 16 carriers' flights 20,000 changed. 20,000 updates and 16 rows are read, and no other flight.

A sum that might not fit its type, or a group with fewer rows than none, is left to Spark SQL, which reports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.schema import DIFF, arrow_type
from tidemark.definition.recipe import ByKey, DeltaPlan, MeanColumn, SumColumn
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.decimals import SUM_DIGITS
from tidemark.model.instant import MAX_TIME
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.here.diff import EXACT, as_updates, diff_against_own, net_rows, own_touched
from tidemark.spark.derive.touched import are_many
from tidemark.spark.derive.views import Views

_DIGITS = 100
"""More than any total has, in units of its mean."""


class _NotPlain(Exception):
    """It is for queries to say what comes out."""


def grown_here(views: Views, rule: ByKey) -> list[pa.RecordBatch] | None:
    """By what the rows of groups differ whose sums grew; None where that is not plain, or not little."""
    delta_plan, (given,) = rule.delta_plan, views.computation.inputs
    if delta_plan is None or not grows_here(views, rule):
        return None
    changed = views.changes_here(given.name)
    if changed is None:
        return None
    try:
        delta = _delta(changed, delta_plan, rule.key_columns)
        if delta is None:
            views.declines("too many groups changed")
            return None
        if not delta.num_rows:
            return []
        keys = delta.select(list(rule.key_columns)).rename_columns([f"k{at}" for at in range(len(rule.key_columns))])
        own = own_touched(views, keys, rule.key_columns)
        if own is None:
            return None
        current = net_rows(own, [column.name for column in stored(views.computation.collection)])
        grown = _added_up([delta, _counted(current, rule.key_columns, delta_plan.sums)], rule.key_columns)
        return diff_against_own(views, _rows(views, grown, delta_plan), own)
    except (_NotPlain, Overflowed, pa.ArrowInvalid):
        views.declines("a sum may be beyond its type, or a group has fewer rows than none")
        return None


def grows_here(views: Views, rule: ByKey) -> bool:
    """Whether sums can be added up here."""
    (source,) = views.computation.inputs
    return rule.delta_plan is not None and _fits(views, rule, rule.delta_plan, views.types_here(source.name))


def _fits(views: Views, rule: ByKey, delta_plan: DeltaPlan, types: Mapping[str, ValueType]) -> bool:
    """Whether the collection holds these columns, and as they come."""
    own_types = {column.name: column.type for column in stored(views.computation.collection)}
    keys = dict(zip(rule.key_columns, delta_plan.keys, strict=True))
    given_types = {one.name: one.type for one in delta_plan.sums} | {one.name: one.type for one in delta_plan.means}
    return (
        own_types.keys() == {*keys, *given_types}
        and all(own_types[name] == types[of] and types[of] in EXACT for name, of in keys.items())
        and all(own_types[name] == of for name, of in given_types.items())
        and all(_adds(one, types[one.of]) for one in delta_plan.sums if one.of and not one.count)
    )


def _adds(one: SumColumn, of: ValueType) -> bool:
    """Whether values of one type can be added to a sum of another as they are; whole numbers can be added to decimals,
    too."""
    if isinstance(one.type, DecimalType) and isinstance(of, DecimalType):
        return (of.precision + SUM_DIGITS, of.scale) == (one.type.precision, one.type.scale)
    return of is ColumnType.INT


def _delta(changed: Iterator[pa.RecordBatch], delta_plan: DeltaPlan, keys: Sequence[str]) -> pa.Table | None:
    """By how much the groups grew, one row each; None where they are many."""
    found: pa.Table | None = None
    for rows in changed:
        diffs = integers(rows, DIFF)
        columns = [rows.column(name) for name in delta_plan.keys]
        columns += [_growth(rows, diffs, one) for one in delta_plan.sums]
        new = pa.table(columns, [*keys, *(one.name for one in delta_plan.sums)])
        found = _added_up([new] if found is None else [found, new], keys)
        if are_many(found):
            return None
    return found if found is not None else pa.table({name: pa.nulls(0) for name in keys})


def _growth(rows: pa.RecordBatch, diffs: Ints, one: SumColumn) -> pa.Array:
    """What each update adds to a sum."""
    if one.of is None:
        return pa.array(diffs)
    values = rows.column(one.of)
    if one.count:
        return pa.array(np.where(np.asarray(pc.is_valid(values)), diffs, 0))
    if isinstance(one.type, DecimalType):
        # The queries multiply by a diff of so many digits (definition/delta.py).
        if _largest(diffs) >= 10 ** min(37 - one.type.precision + SUM_DIGITS, 18):
            raise _NotPlain
        scale = one.type.scale
        each = pc.fill_null(values, 0).cast(pa.decimal256(38, scale))
        return pc.multiply(each, pa.array(diffs).cast(pa.decimal256(19, 0))).cast(_exactly(one.type))
    numbers = np.asarray(pc.fill_null(values, 0))
    if _largest(numbers) * _largest(diffs) > MAX_TIME:
        raise _NotPlain
    return pa.array(numbers * diffs)


def _exactly(of: DecimalType) -> pa.DataType:
    """The type in which decimals are added up: no sum of so many rows as are here is too large for it."""
    return pa.decimal256(76, of.scale)


def _counted(rows: pa.Table, keys: Sequence[str], sums: Sequence[SumColumn]) -> pa.Table:
    """The current rows: a sum of no values is null in them, and counts as 0."""
    columns = [pc.fill_null(rows.column(one.name), 0) for one in sums]
    columns = [
        column.cast(_exactly(one.type)) if isinstance(one.type, DecimalType) else column
        for one, column in zip(sums, columns, strict=True)
    ]
    return pa.table([*(rows.column(name) for name in keys), *columns], [*keys, *(one.name for one in sums)])


def _added_up(tables: Sequence[pa.Table], keys: Sequence[str]) -> pa.Table:
    """One row a group; null is a value."""
    rows = pa.concat_tables([table.cast(tables[0].schema) for table in tables])
    sums = [name for name in rows.column_names if name not in keys]
    whole = [name for name in sums if pa.types.is_int64(rows.schema.field(name).type)]
    if any(_largest(np.asarray(rows.column(name))) * rows.num_rows > MAX_TIME for name in whole):
        raise _NotPlain
    added = rows.group_by(list(keys), use_threads=False).aggregate([(name, "sum") for name in sums])
    return pa.table(
        [added.column(name) for name in keys] + [added.column(f"{name}_sum") for name in sums], [*keys, *sums]
    )


def _largest(numbers: Ints) -> int:
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def _rows(views: Views, grown: pa.Table, delta_plan: DeltaPlan) -> pa.Table:
    """The groups that have rows, as updates of the collection."""
    rows = integers(grown, delta_plan.rows)
    if (rows < 0).any():
        raise _NotPlain
    grown = grown.filter(pa.array(rows > 0))
    columns = {name: grown.column(name) for name in grown.column_names}
    for one in delta_plan.sums:
        columns[one.name] = grown.column(one.name).cast(arrow_type(one.type))  # which raises where it does not fit
        if one.null_without is not None:
            none = pa.array(integers(grown, one.null_without) == 0)
            columns[one.name] = pc.if_else(none, None, columns[one.name])
    columns |= {mean.name: _mean(grown, mean) for mean in delta_plan.means}
    return as_updates(views, pa.table(columns))


def _mean(grown: pa.Table, mean: MeanColumn) -> pa.Array:
    """Totals divided by counts: as Spark divides floats, or rounds a quotient of decimals, half up."""
    counts = integers(grown, mean.count)
    if (counts < 0).any():
        raise _NotPlain
    totals = grown.column(mean.total).to_pylist()
    pairs = list(zip(totals, counts.tolist(), strict=True))
    if not isinstance(mean.type, DecimalType):
        return pa.array([float(total) / count if count else None for total, count in pairs], pa.float64())
    scale = mean.type.scale
    with localcontext(prec=_DIGITS):
        found = [_rounded(total.scaleb(scale), count).scaleb(-scale) if count else None for total, count in pairs]
    return pa.array(found, arrow_type(mean.type))


def _rounded(total: Decimal, count: int) -> Decimal:
    """The whole number next to a quotient of a whole number; of two the one that is further from 0."""
    units = abs(int(total))
    return Decimal((2 * units + count) // (2 * count)).copy_sign(total)
