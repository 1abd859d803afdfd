"""Aggregates of windows as SQL over their rows."""

from __future__ import annotations

from sqlglot import exp

from tidemark.definition.parse import parsed
from tidemark.definition.types import UNKNOWN, is_number
from tidemark.definition.windows.expressions import RowExpression, in_rows_that_count
from tidemark.definition.windows.rows import AT
from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.quantile import DIGITS

_LEAST_EXPONENT = -1074
"""The smallest float is this power of two."""
_OF_NUMBERS = (Function.SUM, Function.AVG, Function.APPROX_QUANTILE)


def check_type(aggregate: Aggregate, of: RowExpression) -> None:
    """Raise InvalidUsage for a function that cannot take values of that type."""
    if aggregate.function not in _OF_NUMBERS or is_number(of.type):
        return
    message = f"aggregates.{aggregate.name}: {aggregate.function} takes numbers, and "
    if of.type == UNKNOWN:
        raise InvalidUsage(f"{message}the type of {aggregate.of} is not known; write CAST({aggregate.of} AS double)")
    raise InvalidUsage(f"{message}{aggregate.of} is {of.type}; use min, max, count or count_distinct, or CAST it")


def aggregate_sql(aggregate: Aggregate, of: RowExpression | None, where: RowExpression | None) -> str:
    """An aggregate over rows that have AT."""
    conditions = [f"({where.sql})"] if where else []
    value = _value(of, where) if of else "*"
    timed = f"named_struct('at', {AT}, 'value', {value})"
    call = {
        Function.COUNT: f"count({value})",
        Function.SUM: f"sum({value})",
        Function.MIN: f"min({value})",
        Function.MAX: f"max({value})",
        Function.AVG: f"avg({value})",
        Function.FIRST: f"min({timed})",
        Function.LAST: f"max({timed})",
        Function.COLLECT: f"collect_list({timed})",
        Function.COUNT_DISTINCT: f"count(DISTINCT {value})",
        Function.APPROX_DISTINCT: f"approx_count_distinct({value})",
        Function.APPROX_QUANTILE: f"percentile_disc({aggregate.at}) WITHIN GROUP (ORDER BY {on_a_grid(value)})",
    }[aggregate.function]
    if aggregate.function in (Function.FIRST, Function.LAST, Function.COLLECT):
        conditions.append(f"({value}) IS NOT NULL")
    called = f"{call} FILTER (WHERE {' AND '.join(conditions)})" if conditions else call
    if aggregate.function in (Function.FIRST, Function.LAST):
        return f"({called}).value"
    if aggregate.function is Function.COLLECT:
        return f"to_json(sort_array({called}).value)"
    return called


def _value(of: RowExpression, where: RowExpression | None) -> str:
    """The argument of an aggregate, evaluated only in rows that it is for, where it can raise: an aggregate that Spark
    gives its rows sorted or distinct evaluates it in all rows, whatever FILTER says."""
    is_column = isinstance(parsed(f"SELECT {of.sql}").selects[0].unnest(), exp.Column)
    return of.sql if is_column else in_rows_that_count(of, where)


def on_a_grid(value: str) -> str:
    """A number with so few binary digits that there are few different ones (model/window/quantile.py): a whole number
    of the power of two that its last digit is worth."""
    number = f"CAST({value} AS double)"
    worth = f"power(2D, greatest(floor(log2(abs({number}))) - {DIGITS - 1}, {_LEAST_EXPONENT}))"
    plain = f"{number} = 0 OR NOT abs({number}) < CAST('Infinity' AS double)"
    return f"CASE WHEN {plain} THEN {number} + 0D ELSE rint({number} / {worth}) * {worth} END"
