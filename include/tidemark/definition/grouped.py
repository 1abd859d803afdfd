"""Groups of an input's rows as they are, by columns of it, of which each aggregate is of one column: so plain that rows
at hand are grouped without Spark, and it comes to the same bit by bit.

What is not exactly the same is left out, whatever it is: averages of decimals, whose rounding would be told a second
time; and sums of decimals of so many digits that they may not fit. So is all that says more of a row than its columns
do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tidemark.definition.functions import name_of
from tidemark.definition.keys import is_plain
from tidemark.definition.recipe import Aggregated, Grouped, InputShape
from tidemark.definition.sums import distinct_of, is_big
from tidemark.model.collection import MAX_PRECISION, Column, ColumnType, DecimalType, ValueType
from tidemark.model.decimals import SUM_DIGITS
from tidemark.model.window.aggregate import Function

GROUPED_BY = (ColumnType.INT, ColumnType.STRING, ColumnType.BOOL, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types of whose values none are equal but the same."""
_COMPARED = (*GROUPED_BY, ColumnType.FLOAT)
"""Types whose order is Spark's, decimals besides."""
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
    held: Sequence[str],
    shapes: Mapping[str, InputShape],
    hidden: Sequence[tuple[Column, exp.Expr]] = (),
) -> Grouped | None:
    """What a resolved query says, whose columns `held` tell its groups; None where that is more than is plain. Of its
    columns that are `hidden` it is told which aggregates they are."""
    if not isinstance(query, exp.Select) or not is_plain(query):
        return None
    if {part for part, said in query.args.items() if said} != {"expressions", "from_", "group"}:
        return None
    group, source = query.args["group"], query.args["from_"].this
    shape = shapes.get(source.name)
    if shape is None or {part for part, said in group.args.items() if said} != {"expressions"}:
        return None
    types: dict[str, ValueType] = {column.name: column.type for column in shape.columns}
    shown = {one.alias_or_name: one.unalias() for one in query.selects}
    keys = [_column(shown[name]) for name in held]
    by = [_column(one) for one in group.expressions]
    if None in by or set(keys) != set(by) or not all(types.get(name or "") in GROUPED_BY for name in keys):
        return None
    kept = {column.name: _kept(column, node, types) for column, node in hidden}
    others = {name: node for name, node in shown.items() if name not in held}
    aggregates = [kept[name] if name in kept else _aggregated(name, node, types) for name, node in others.items()]
    if any(one is None for one in aggregates):
        return None
    return Grouped(tuple(filter(None, keys)), tuple(filter(None, aggregates)))


def _column(node: exp.Expr) -> str | None:
    """The column that an expression is; None where it is another one."""
    return node.name if isinstance(node, exp.Column) else None


def _kept(column: Column, node: exp.Expr, types: Mapping[str, ValueType]) -> Aggregated | None:
    """An aggregate behind what is shown: whole numbers whose mean is shown are added up as decimals."""
    whole = node.copy()
    for cast in list(whole.find_all(exp.Cast)):
        if is_big(cast) and types.get(_column(cast.this) or "") is ColumnType.INT:
            cast.replace(cast.this)
    found = _aggregated(column.name, whole, types)
    return None if found is None else replace(found, type=column.type, kept=True)


def _aggregated(name: str, node: exp.Expr, types: Mapping[str, ValueType]) -> Aggregated | None:
    """An aggregate of a column, and nothing around it: no FILTER, no arithmetic."""
    if not isinstance(node, exp.Anonymous | exp.AggFunc) or len(node.expressions) != 1:
        return None
    function = _NAMED.get(name_of(node))
    if function is None:
        return None
    of, distinct = distinct_of(node)
    if function is Function.COUNT and not distinct and isinstance(of, exp.Star | exp.Literal):
        return Aggregated(name, function, None, ColumnType.INT)
    column = _column(of)
    if column is None or column not in types:
        return None
    if distinct:
        if function is not Function.COUNT or len(node.expressions[0].expressions) != 1:
            return None
        function = Function.COUNT_DISTINCT
    told = told_type(function, types[column])
    return None if told is None else Aggregated(name, function, column, told)


def told_type(function: Function, of: ValueType) -> ValueType | None:
    """The type of an aggregate of values of a type; None where it is not told of rows at hand."""
    number, compared = of in (ColumnType.INT, ColumnType.FLOAT), isinstance(of, DecimalType) or of in _COMPARED
    match function:
        case Function.COUNT:
            return ColumnType.INT
        case Function.COUNT_DISTINCT if compared:
            return ColumnType.INT
        case Function.MIN | Function.MAX if compared:
            return of
        case Function.AVG if number:
            return ColumnType.FLOAT
        case Function.SUM if number:
            return of
        case Function.SUM if isinstance(of, DecimalType) and of.precision + SUM_DIGITS <= MAX_PRECISION:
            return DecimalType(of.precision + SUM_DIGITS, of.scale)
    return None
