"""Sliding windows, compiled: which rows are in any, and of which values of these the aggregates are.

count, sum(fare) where miles > 9      _v1 = CASE WHEN miles > 9 THEN fare END; count, sum(_v1)
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemark.definition.parse import parsed
from tidemark.definition.recipe import BAND, ForAWhile, Slid, Valued
from tidemark.definition.types import decimal_digits
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.assigned import AT, happening
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kind import Sliding

_MOST_DIGITS = 22
"""Of a decimal, before and behind the point, of which an average is rounded as Spark does it."""


def slid(told: Checked) -> Slid:
    """How sliding windows over an input are computed. Raises InvalidUsage for an average of decimals with too many
    digits."""
    windows, name = told.windows, told.input
    assert isinstance(windows.kind, Sliding)
    bounded = windows.counts_late_for is not None
    rows = happening(name, windows.on, told.on, told.where.sql if told.where else "").sql
    aggregates, valued = _valued(told, (AT, BAND) if bounded else (AT,))
    bound = ColumnType.INT if told.on is ColumnType.INT else ColumnType.TIMESTAMP
    found = Slid(name, windows.by, windows.on, windows.kind, rows, valued, aggregates, bound)
    return replace(found, for_a_while=_for_a_while(told, valued)) if bounded else found


def slid_without_queries(rule: Slid, projected: Checked) -> Slid:
    """The same over projected rows, where these need no query. Raises LeftToSpark where they do."""
    return replace(rule, plain=aggregates_of(projected, sketches=False))


def _for_a_while(told: Checked, valued: str) -> ForAWhile:
    windows = told.windows
    assert windows.counts_late_for is not None
    used = {column.name for column in parsed(valued).find_all(exp.Column)}
    columns = tuple(column.name for column in told.shape.columns if column.name in used)
    return ForAWhile(windows.grace, windows.counts_late_for, columns)


def _valued(told: Checked, places: tuple[str, ...]) -> tuple[tuple[Valued, ...], str]:
    """The aggregates, and the query that gives the columns that they are of."""
    shown = {column: f"`{told.input}`.`{column}`" for column in (*told.windows.by, *places)}
    found: list[Valued] = []
    for number, (one, of, where) in enumerate(told.aggregates):
        exact = one.function is Function.APPROX_DISTINCT
        valued = Valued(one.name, Function.COUNT_DISTINCT if exact else one.function, None, one.at)
        if of is not None or where is not None:
            valued = replace(valued, of=f"_v{number}")
            shown[valued.of or ""] = _value(one, of, where)
        if of is not None and one.function is Function.COLLECT:
            valued = replace(valued, texts=f"_t{number}")
            shown[valued.texts or ""] = _text(of)
        found.append(valued)
    columns = ", ".join(f"{sql} AS `{name}`" for name, sql in shown.items())
    return tuple(found), f"SELECT {columns} FROM `{told.input}`"


def _value(one: Aggregate, of: RowExpression | None, where: RowExpression | None) -> str:
    """What an aggregate is of in a row: null where that is not for it."""
    if of is not None and one.function is Function.AVG:
        _check_digits(of)
    if of is None or one.function is Function.COUNT:
        given = [f"({held})" for held in (of and f"{of.sql} IS NOT NULL", where and where.sql) if held]
        return f"CASE WHEN {' AND '.join(given)} THEN true END"
    return of.sql if where is None else f"CASE WHEN {where.sql} THEN {of.sql} END"


def _text(of: RowExpression) -> str:
    """A value as JSON."""
    listed = f"to_json(array({of.sql}))"
    return f"CASE WHEN ({of.sql}) IS NOT NULL THEN substring({listed}, 2, length({listed}) - 2) END"


def _check_digits(of: RowExpression) -> None:
    digits = decimal_digits(of.type)
    if digits is not None and sum(digits) > _MOST_DIGITS:
        raise InvalidUsage(
            f"aggregates: the average of {of.sql} in sliding windows has more digits than can be exact; "
            "CAST it as decimal(18, 2)"
        )
