"""Windows over rows at hand: what their conditions say is said by a filter and by columns of the rows, so that what is
left to compute has no conditions, and may need no query."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from tidemark.definition.condition import condition_of
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import OnlyWhere, Sifted
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.model.collection import Column, ColumnType
from tidemark.model.condition.tree import And, Condition
from tidemark.model.window.aggregate import Aggregate

_ONLY = "_only{}"


@lru_cache(maxsize=64)
def at_hand(told: Checked) -> tuple[Checked, Sifted | None] | None:
    """The same windows over rows that were sifted, and how these are (None: they are as they are). None where a
    condition, or what an aggregate with one is of, is more than is evaluated without a query."""
    if told.where is None and all(only is None for _, _, only in told.aggregates):
        return told, None
    where = And(()) if told.where is None else _condition(told, told.where)
    if where is None:
        return None
    types = {column.name: column.type for column in told.shape.columns}
    more: list[OnlyWhere] = []
    aggregates: list[tuple[Aggregate, RowExpression | None, RowExpression | None]] = []
    for one, of, only in told.aggregates:
        if only is None:
            aggregates.append((one, of, None))
            continue
        condition, column = _condition(told, only), None if of is None else column_of(of)
        name = _ONLY.format(len(more))
        if condition is None or (column is not None and column not in types) or name in types:
            return None
        more.append(OnlyWhere(name, column, condition))
        shown = RowExpression(f"`{told.input}`.`{name}`", "boolean" if of is None else of.type)
        aggregates.append((replace(one, of=name, where=""), shown, None))
    columns = [Column(one.name, ColumnType.BOOL if one.of is None else types[one.of]) for one in more]
    windows = replace(told.windows, where="", aggregates=tuple(one for one, _, _ in aggregates))
    plain = replace(
        told, windows=windows, shape=told.shape.with_columns(*columns), where=None, aggregates=tuple(aggregates)
    )
    return plain, Sifted(where, tuple(more))


def column_of(of: RowExpression) -> str:
    """The column that an expression is; "" where it is another one: none has that name."""
    node = _node(of)
    return node.name if isinstance(node, exp.Column) else ""


def _condition(told: Checked, given: RowExpression) -> Condition | None:
    return condition_of(_node(given), {column.name: column.type for column in told.shape.columns})


def _node(given: RowExpression) -> exp.Expr:
    query = parsed(f"SELECT {given.sql} FROM w")
    assert isinstance(query, exp.Select)
    return query.selects[0].unalias().unnest()
