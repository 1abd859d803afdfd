"""Groups of parts of some rows, put together: each part is grouped where it is read, and what goes on are its groups.

    rows     carrier  delay        part 1   UA  n=2 delay=14       all   UA  n=3 delay=15 mean=5.0
             UA       5            part 2   UA  n=1 delay=1              AA  n=1 delay=4  mean=4.0
             UA       9                     AA  n=1 delay=4
             UA | AA  1 | 4

The result is the same only for aggregates that do not depend on how rows were divided into parts: all but those that
must see each value, which are counts of different values, quantiles and collections. Means go on as sums and counts,
sums of floats as lists that add up to them exactly (float_sums.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tidemark.arrow.kernels.aggregates.groups import groups_by
from tidemark.arrow.kernels.aggregates.ranges import means, total_type
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function

MERGED = {
    Function.COUNT: Function.SUM,
    Function.SUM: Function.SUM,
    Function.MIN: Function.MIN,
    Function.MAX: Function.MAX,
}
"""By what an aggregate of all rows is computed from those of parts of them."""
_AT_AN_INSTANT = {Function.FIRST: Function.MIN, Function.LAST: Function.MAX}
"""The functions that compute the first and the last value among rows at one instant."""
_COUNT = "_count_of_{}"


def can_be_merged(one: AggregateColumn) -> bool:
    """Whether an aggregate of all rows is computed from those of any parts of them as they are shown."""
    return one.function in MERGED and (one.function is not Function.SUM or one.type is not ColumnType.FLOAT)


def parts_of(
    aggregates: Sequence[AggregateColumn], types: Mapping[str, pa.DataType], *, of_instants: bool = False
) -> tuple[AggregateColumn, ...] | None:
    """What to compute of each part, or of each instant of a part, of columns of these types; None where all rows cannot
    be computed from that."""
    found: list[AggregateColumn] = []
    for one in aggregates:
        if one.function is Function.AVG and one.of is not None:
            found.append(_total(one, types[one.of]))
            found.append(AggregateColumn(_COUNT.format(one.name), Function.COUNT, one.of, ColumnType.INT))
        elif one.function in MERGED:
            found.append(replace(one, in_parts=one.function is Function.SUM and one.type is ColumnType.FLOAT))
        elif of_instants and one.function in _AT_AN_INSTANT:
            found.append(replace(one, function=_AT_AN_INSTANT[one.function]))
        else:
            return None
    return tuple(found)


def _total(mean: AggregateColumn, of: pa.DataType) -> AggregateColumn:
    """What is divided for a mean."""
    if pa.types.is_floating(of):
        return replace(mean, function=Function.SUM, type=ColumnType.FLOAT, in_parts=True)
    return replace(mean, function=Function.SUM, type=total_type(of))


def merged_of(aggregates: Sequence[AggregateColumn], parts: Sequence[AggregateColumn]) -> tuple[AggregateColumn, ...]:
    """What to compute of the columns of `parts`, which are those of these aggregates."""
    in_order = {one.name: one.function for one in aggregates if one.function in _AT_AN_INSTANT}
    return tuple(
        replace(one, function=in_order.get(one.name) or MERGED[one.function], of=one.name, in_parts=False)
        for one in parts
    )


def compacted_of(
    aggregates: Sequence[AggregateColumn], parts: Sequence[AggregateColumn]
) -> tuple[AggregateColumn, ...]:
    """What to compute of the columns of `parts`, so that what comes out are parts as they are."""
    merged = merged_of(aggregates, parts)
    return tuple(replace(one, in_parts=part.in_parts) for one, part in zip(merged, parts, strict=True))


def finals(found: pa.RecordBatch, aggregates: Sequence[AggregateColumn]) -> list[pa.Array]:
    """The aggregates, of what was computed of their parts."""
    return [
        means(one.type, found.column(one.name), integers(found, _COUNT.format(one.name)))
        if one.function is Function.AVG
        else found.column(one.name)
        for one in aggregates
    ]


def part_type(part: AggregateColumn) -> pa.DataType:
    """The type of a column of parts."""
    return pa.list_(pa.float64()) if part.in_parts else arrow_type(part.type)


def merged_groups(
    parts: pa.Table, keys: Sequence[str], aggregates: Sequence[AggregateColumn], of_parts: Sequence[AggregateColumn]
) -> pa.RecordBatch:
    """The groups of all rows, of the groups of parts, which have `of_parts`: as `groups_by` gives them of the rows.
    Raises Overflowed where a sum might not fit its type."""
    found = groups_by(parts, keys, merged_of(aggregates, of_parts))
    columns = [*(found.column(name) for name in keys), *finals(found, aggregates)]
    return pa.RecordBatch.from_arrays(columns, [*keys, *(one.name for one in aggregates)])
