"""Sessions so plain that rows at hand need no query: told by the columns of an input's rows as they are, each aggregate
by one of them.

Which aggregates are the same bit by bit is what definition/grouped.py says of groups. First and last values are so
besides, where their type has an order that is Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.definition.grouped import GROUPED_BY, told_type
from tidemark.definition.recipe import Aggregated
from tidemark.definition.windows.at_hand import column_of
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.window.aggregate import Aggregate, Function

_IN_ORDER = (Function.FIRST, Function.LAST)


def plain_sessions(told: Checked) -> tuple[Aggregated, ...] | None:
    """What aggregates tell of sessions of rows that are sifted, where all are plain and rows count for ever; None
    else."""
    types: dict[str, ValueType] = {column.name: column.type for column in told.shape.columns}
    if told.happened or told.windows.counts_late_for is not None:
        return None
    if any(types[name] not in GROUPED_BY for name in told.windows.by):
        return None
    found = [_aggregated(one, of, types) for one, of, _ in told.aggregates]
    plain = tuple(one for one in found if one is not None)
    return plain if len(plain) == len(told.aggregates) else None


def _aggregated(one: Aggregate, of: RowExpression | None, types: Mapping[str, ValueType]) -> Aggregated | None:
    if of is None:
        return Aggregated(one.name, one.function, None, ColumnType.INT)
    column = column_of(of)
    if column not in types:
        return None
    # The first of a window is the least of an instant, the last the greatest: so their types need an order, too.
    of_values = told_type(Function.MIN if one.function in _IN_ORDER else one.function, types[column])
    return None if of_values is None else Aggregated(one.name, one.function, column, of_values)
