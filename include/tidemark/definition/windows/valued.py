"""The arguments of the aggregates of windows, as SQL over single rows, which Spark evaluates in front of a kernel.

count, sum(fare) where miles > 9      _v1 = CASE WHEN miles > 9 THEN fare END; count, sum(_v1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tidemark.definition.parse import parsed
from tidemark.definition.recipe import ValueColumn
from tidemark.definition.steps import column_type
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression, in_rows_that_count
from tidemark.model.collection import Column
from tidemark.model.window.aggregate import Aggregate, Function


def valued_of(declared: Checked, places: Sequence[str]) -> tuple[tuple[ValueColumn, ...], str]:
    """The aggregates, and the query over rows of the input that gives the columns that they aggregate, with those of
    `by` and `places`, which say where a row is. A count of different values is exact."""
    shown = {column: f"`{declared.input}`.`{column}`" for column in (*declared.windows.by, *places)}
    found: list[ValueColumn] = []
    for number, (one, of, where) in enumerate(declared.aggregates):
        exact = one.function is Function.APPROX_DISTINCT
        valued = ValueColumn(one.name, Function.COUNT_DISTINCT if exact else one.function, None, one.at)
        if of is not None or where is not None:
            valued = replace(valued, of=f"_v{number}")
            shown[valued.of or ""] = _value(one, of, where)
        if of is not None and one.function is Function.COLLECT:
            valued = replace(valued, texts=f"_t{number}")
            shown[valued.texts or ""] = _text(of, where)
        found.append(valued)
    columns = ", ".join(f"{sql} AS `{name}`" for name, sql in shown.items())
    return tuple(found), f"SELECT {columns} FROM `{declared.input}`"


def over_values(declared: Checked, valued: Sequence[ValueColumn]) -> Checked:
    """The same windows over the rows that the query gives. Raises LeftToSpark for values whose type is not known before
    Spark is asked."""
    columns, aggregates = list[Column](), []
    for (one, of, _), value in zip(declared.aggregates, valued, strict=True):
        shown = None
        if value.of is not None:
            counted = of is None or one.function is Function.COUNT
            its_type = "boolean" if of is None or counted else of.type
            columns.append(Column(value.of, column_type(its_type)))
            shown = RowExpression(f"`{declared.input}`.`{value.of}`", its_type)
        aggregates.append((replace(one, of=value.of or "", where=""), shown, None))
    windows = replace(declared.windows, where="", aggregates=tuple(one for one, _, _ in aggregates))
    shape = declared.shape.with_columns(*columns)
    return replace(declared, windows=windows, shape=shape, where=None, aggregates=tuple(aggregates))


def needed(declared: Checked, valued: str) -> tuple[str, ...]:
    """The columns of the input that a query for values looks at."""
    used = {column.name for column in parsed(valued).find_all(exp.Column)}
    return tuple(column.name for column in declared.shape.columns if column.name in used)


def _value(one: Aggregate, of: RowExpression | None, where: RowExpression | None) -> str:
    """The argument of an aggregate in a row: null where the row is not for it."""
    if of is None:
        assert where is not None, "a count of all rows has no value"
        return f"CASE WHEN {where.sql} THEN true END"
    if one.function is Function.COUNT:
        of = replace(of, sql=f"CASE WHEN ({of.sql}) IS NOT NULL THEN true END")
    return in_rows_that_count(of, where)


def _text(of: RowExpression, where: RowExpression | None) -> str:
    """A value as JSON; null where the value is, or is not for the aggregate."""
    listed = f"to_json(array({of.sql}))"
    text = f"CASE WHEN ({of.sql}) IS NOT NULL THEN substring({listed}, 2, length({listed}) - 2) END"
    return in_rows_that_count(replace(of, sql=text), where)
