"""Sessions so plain that rows at hand need no query: each aggregate is of one column of rows that were projected.

Which aggregates are the same bit by bit is what definition/grouped.py says of groups. First and last values are so
besides, where their type has an order that is Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.definition.grouped import GROUPED_BY, told_type
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.recipe import Aggregated
from tidemark.definition.windows.checked import Checked
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.window.aggregate import Aggregate, Function

_IN_ORDER = (Function.FIRST, Function.LAST)


def plain_sessions(told: Checked) -> tuple[Aggregated, ...]:
    """What aggregates tell of sessions of rows that were projected, where rows count for ever. Raises LeftToSpark where
    one is not plain."""
    types: dict[str, ValueType] = {column.name: column.type for column in told.shape.columns}
    for name in told.windows.by:
        if types[name] not in GROUPED_BY:
            raise LeftToSpark(f"by: {name} is {types[name]}")
    return tuple(_aggregated(one, types) for one, _, _ in told.aggregates)


def _aggregated(one: Aggregate, types: Mapping[str, ValueType]) -> Aggregated:
    if not one.of:
        return Aggregated(one.name, one.function, None, ColumnType.INT)
    # The first of a window is the least of an instant, the last the greatest: so their types need an order, too.
    of_values = told_type(Function.MIN if one.function in _IN_ORDER else one.function, types[one.of])
    if of_values is None:
        raise LeftToSpark(f"{one.name}: {one.function} of {types[one.of]}")
    return Aggregated(one.name, one.function, one.of, of_values)
