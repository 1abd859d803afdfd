"""Conditions in Spark SQL as the tree that is evaluated without Spark, where both come to the same for every row.

What is not exactly the same is left to Spark: arithmetic, functions, columns beside columns, texts beside numbers, and
decimals whose digits Spark would round before it compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or, held

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`15 < delay` is `delay > 15`."""
_PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
"""A number of Spark's that is exact; one with an exponent is a double."""
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE = re.compile(_DAY)
_MOMENT = re.compile(
    _DAY + r"([ T]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])?)?"
)
"""Texts that Spark and Python read as the same date or time."""
_DIGITS_OF_AN_INT = 20
"""Which Spark gives a whole number beside a decimal."""
_NAN = Decimal("NaN")


class _Otherwise(Exception):
    """It is for Spark to say what comes out."""


def condition_of(node: exp.Expr, types: Mapping[str, ValueType]) -> Condition | None:
    """A condition over the columns of one table, which have these types, its literals bound to them; None for one that
    is left to Spark."""
    try:
        return _condition(node, types)
    except (_Otherwise, ValueError):
        return None


def _condition(node: exp.Expr, types: Mapping[str, ValueType]) -> Condition:
    node = node.unnest()
    match node:
        case exp.And():
            return And(tuple(_condition(one, types) for one in node.flatten()))
        case exp.Or():
            return Or(tuple(_condition(one, types) for one in node.flatten()))
        case exp.Not():
            return Not(_condition(node.this, types))
        case exp.Boolean():
            return And(()) if node.this else Or(())
        case exp.Column():
            column = _column(node, types)
            if types[column] is not ColumnType.BOOL:
                raise _Otherwise
            return Compare(column, "=", True)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return IsNull(_column(node.this, types))
        case exp.In():
            return _among(node, types)
        case exp.Between():
            column = _column(node.this, types)
            low, high = _literals(column, (node.args["low"], node.args["high"]), types)
            return And((_beside(column, ">=", low, types), _beside(column, "<=", high, types)))
    return _compared(node, types)


def _among(node: exp.In, types: Mapping[str, ValueType]) -> Condition:
    column, of = _column(node.this, types), types[node.this.unnest().name]
    if not node.expressions or any(node.args.get(part) for part in ("query", "unnest", "field")):
        raise _Otherwise
    # Spark's sets tell -0.0 from 0.0, and what texts become in a list of several types is its own affair.
    if of is ColumnType.FLOAT or (of in _TIMES and any(map(_is_text, node.expressions))):
        raise _Otherwise
    return In(column, _literals(column, node.expressions, types))


def _compared(node: exp.Expr, types: Mapping[str, ValueType]) -> Condition:
    op = _OPERATORS.get(type(node))
    if op is None:
        raise _Otherwise
    left, right = node.this.unnest(), node.expression.unnest()
    if not isinstance(left, exp.Column):
        left, right, op = right, left, _TURNED[op]
    if not isinstance(left, exp.Column):
        return _of_numbers(op, _number(left), _number(right))
    column = _column(left, types)
    (literal,) = _literals(column, (right,), types)
    return _beside(column, op, literal, types)


def _of_numbers(op: str, left: int | Decimal, right: int | Decimal) -> Condition:
    """`1 = 1`, which is true of every row."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise _Otherwise
    order = (left > right) - (left < right)
    answer = {"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return And(()) if answer[op] else Or(())


def _beside(column: str, op: str, literal: Literal, types: Mapping[str, ValueType]) -> Condition:
    compared = Compare(column, op, literal)
    if types[column] is ColumnType.BOOL and op not in ("=", "!="):
        raise _Otherwise
    if types[column] is ColumnType.FLOAT and op in (">", ">="):
        return Or((compared, Compare(column, "=", _NAN)))  # to Spark it is greater than all others
    return compared


def _column(node: exp.Expr, types: Mapping[str, ValueType]) -> str:
    node = node.unnest()
    if not isinstance(node, exp.Column) or node.args.get("db") or node.name not in types:
        raise _Otherwise
    return node.name


def _literals(column: str, nodes: Sequence[exp.Expr], types: Mapping[str, ValueType]) -> tuple[Literal, ...]:
    of = types[column]
    if isinstance(of, DecimalType) or of is ColumnType.INT:
        numbers = tuple(map(_number, nodes))
        _check_digits(of, numbers)
        return numbers
    return tuple(_READ[of](node.unnest()) for node in nodes) if of in _READ else _left()


def _left() -> tuple[Literal, ...]:
    raise _Otherwise


def _check_digits(of: ValueType, numbers: Sequence[int | Decimal]) -> None:
    """Beside a decimal all are brought to one type, which may have no more than so many digits."""
    if of is ColumnType.INT and all(isinstance(one, int) for one in numbers):
        return
    before, behind = (of.whole_digits, of.scale) if isinstance(of, DecimalType) else (_DIGITS_OF_AN_INT, 0)
    for one in numbers:
        _, digits, exponent = Decimal(one).as_tuple()
        assert isinstance(exponent, int)
        behind = max(behind, -exponent)
        before = max(before, len(digits) + exponent, _DIGITS_OF_AN_INT if isinstance(one, int) else 0)
    if before + behind > MAX_PRECISION:
        raise _Otherwise


def _number(node: exp.Expr) -> int | Decimal:
    """A number as it is written."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return -_number(node.this)
    if not isinstance(node, exp.Literal) or node.is_string or not _PLAIN_NUMBER.fullmatch(node.name):
        raise _Otherwise
    if sum(map(str.isdigit, node.name)) > MAX_PRECISION:
        raise _Otherwise
    return int(node.name) if node.name.isdigit() else Decimal(node.name)


def _truth(node: exp.Expr) -> Literal:
    if not isinstance(node, exp.Boolean):
        raise _Otherwise
    return bool(node.this)


def _text(node: exp.Expr) -> Literal:
    if not _is_text(node):
        raise _Otherwise
    return node.name


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _day(node: exp.Expr) -> Literal:
    """`'2013-01-02'` or `DATE '2013-01-02'`."""
    return _read(node, ("DATE",), _DATE, ColumnType.DATE)


def _moment(node: exp.Expr) -> Literal:
    """`'2013-01-02 03:04:05'`, the same behind TIMESTAMP, or a DATE; without an offset it is UTC, as sessions are."""
    dated = _typed(node) == "DATE"
    return _read(node, ("DATE", "TIMESTAMPTZ"), _DATE if dated else _MOMENT, ColumnType.TIMESTAMP)


def _read(node: exp.Expr, typed: Sequence[str], text: re.Pattern[str], of: ColumnType) -> Literal:
    if _typed(node) in typed:
        node = node.this.unnest()
    if not _is_text(node) or not text.fullmatch(node.name):
        raise _Otherwise
    return held(node.name, of)


def _typed(node: exp.Expr) -> str:
    """The type that a literal is cast to; "" where it is not."""
    return node.to.this.name if isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType) else ""


_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
_READ: dict[ValueType, Callable[[exp.Expr], Literal]] = {
    ColumnType.FLOAT: _number,
    ColumnType.BOOL: _truth,
    ColumnType.STRING: _text,
    ColumnType.DATE: _day,
    ColumnType.TIMESTAMP: _moment,
}
