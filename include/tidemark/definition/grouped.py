"""Groups of an input's rows as they are, by columns of it, where each aggregate has one column: so plain that rows at
hand are grouped without Spark, and the result is the same bit by bit.

What is not exactly the same is left out, whatever it is: averages of decimals, whose rounding would be written down a
second time; and sums of decimals of so many digits that they may not fit. So is all that says more of a row than its
columns do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tidemark.definition.aggregated import GROUPED_BY, result_type
from tidemark.definition.functions import name_of
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.literals import shown as shown_to_people
from tidemark.definition.recipe import AggregateColumn, GroupPlan, InputShape
from tidemark.definition.sums import distinct_of, is_big
from tidemark.model.collection import Column, ColumnType, ValueType
from tidemark.model.window.aggregate import Function

_NAMED = {
    "count": Function.COUNT,
    "min": Function.MIN,
    "max": Function.MAX,
    "sum": Function.SUM,
    "avg": Function.AVG,
    "mean": Function.AVG,
}


def grouped_of(
    query: exp.Query,
    grouped_by: Sequence[str],
    shapes: Mapping[str, InputShape],
    hidden: Sequence[tuple[Column, exp.Expr]] = (),
) -> GroupPlan:
    """What a resolved query says of projected rows, whose groups are distinguished by its columns `grouped_by`;
    `hidden` are further columns, each with the aggregate that it is. Raises LeftToSpark where that is more than is
    plain."""
    assert isinstance(query, exp.Select)  # as rows were projected for it
    shape = shapes[query.args["from_"].this.name]
    types: dict[str, ValueType] = {column.name: column.type for column in shape.columns}
    shown = {one.alias_or_name: one.unalias() for one in query.selects}
    keys = [_key(name, shown[name], types) for name in grouped_by]
    if set(keys) != {one.name for one in query.args["group"].expressions}:
        raise LeftToSpark("it does not show all that it groups by")
    kept = {column.name: _kept(column, node, types) for column, node in hidden}
    others = {name: node for name, node in shown.items() if name not in grouped_by}
    aggregates = [kept[name] if name in kept else _aggregated(name, node, types) for name, node in others.items()]
    return GroupPlan(tuple(keys), tuple(aggregates))


def _key(name: str, node: exp.Expr, types: Mapping[str, ValueType]) -> str:
    column = _column(node)
    if column is None or types.get(column) not in GROUPED_BY:
        raise LeftToSpark(f"it groups by {name}, of type {types.get(column or '', 'unknown')}")
    return column


def _column(node: exp.Expr) -> str | None:
    """The column that an expression is; None where it is another one."""
    return node.name if isinstance(node, exp.Column) else None


def _kept(column: Column, node: exp.Expr, types: Mapping[str, ValueType]) -> AggregateColumn:
    """An aggregate behind what is shown: whole numbers whose mean is shown are added up as decimals."""
    whole = node.copy()
    for cast in list(whole.find_all(exp.Cast)):
        if is_big(cast) and types.get(_column(cast.this) or "") is ColumnType.INT:
            cast.replace(cast.this)
    return replace(_aggregated(column.name, whole, types), type=column.type, kept=True)


def _aggregated(name: str, node: exp.Expr, types: Mapping[str, ValueType]) -> AggregateColumn:
    """An aggregate of a column, and nothing around it."""
    node = node.unnest()
    function = _NAMED.get(name_of(node))
    if not isinstance(node, exp.Anonymous | exp.AggFunc) or len(node.expressions) != 1 or function is None:
        raise LeftToSpark(f"{name}: {shown_to_people(node)}")
    of, distinct = distinct_of(node)
    if function is Function.COUNT and not distinct and isinstance(of, exp.Star | exp.Literal):
        return AggregateColumn(name, function, None, ColumnType.INT)
    column = _column(of)
    if column is None or column not in types:
        raise LeftToSpark(f"{name}: {shown_to_people(node)}")
    if distinct:
        if function is not Function.COUNT:
            raise LeftToSpark(f"{name}: {shown_to_people(node)}")
        function = Function.COUNT_DISTINCT
    result = result_type(function, types[column])
    if result is None:
        raise LeftToSpark(f"{name}: {function} of {types[column]}")
    return AggregateColumn(name, function, column, result)
