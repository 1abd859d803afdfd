"""The aggregates of windows over projected rows, of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidemark.definition.aggregated import GROUPED_BY, result_type, type_of
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.recipe import AggregateColumn, ValueColumn
from tidemark.definition.windows.checked import Checked
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.window.aggregate import Aggregate, Function


def aggregates_of(projected: Checked) -> tuple[AggregateColumn, ...]:
    """The aggregates of windows over projected rows; a count of different values is exact. Raises LeftToSpark for one
    of values that Spark evaluates."""
    types: dict[str, ValueType] = {column.name: column.type for column in projected.shape.columns}
    for name in projected.windows.by:
        if types[name] not in GROUPED_BY:
            raise LeftToSpark(f"by: {name} is {types[name]}")
    return tuple(_aggregated(one, types) for one, _, _ in projected.aggregates)


def _aggregated(one: Aggregate, types: Mapping[str, ValueType]) -> AggregateColumn:
    if not one.of:
        return AggregateColumn(one.name, one.function, None, ColumnType.INT)
    exact = one.function is Function.APPROX_DISTINCT
    function = Function.COUNT_DISTINCT if exact else one.function
    found = result_type(function, types[one.of])
    if found is None:
        raise LeftToSpark(f"{one.name}: {one.function} of {types[one.of]}")
    return AggregateColumn(one.name, function, one.of, found, at=one.at)


def aggregates_of_values(valued: Iterable[ValueColumn], types: Mapping[str, ValueType]) -> tuple[AggregateColumn, ...]:
    """The aggregates of columns of these types, which Spark gives."""
    return tuple(
        AggregateColumn(
            one.name,
            one.function,
            one.of,
            ColumnType.INT if one.of is None else type_of(one.function, types[one.of]),
            at=one.at,
            texts=one.texts,
        )
        for one in valued
    )
