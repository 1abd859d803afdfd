"""Literals of Spark SQL beside columns of a type, read as the tree of conditions has them.

What Spark would read otherwise, or round before it compares it, is left to it: a number with an exponent, a text that
is no plain date, decimals with more digits than one type has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from sqlglot import exp

from tidemark.definition.dialect import shown as sql_of
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import Literal, typed_literal

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


class LeftToSpark(Exception):
    """Only Spark can say what an expression gives; the message says why, to people."""


def shown(node: exp.Expr) -> str:
    """An expression for people: its columns by their names alone."""
    return sql_of(node.transform(lambda part: exp.column(part.name) if isinstance(part, exp.Column) else part))


def literals(of: ValueType, nodes: Sequence[exp.Expr]) -> tuple[Literal, ...]:
    """What a column of a type is compared with. Raises LeftToSpark."""
    if isinstance(of, DecimalType) or of is ColumnType.INT:
        numbers = tuple(map(number, nodes))
        _check_digits(of, numbers)
        return numbers
    if of not in _READ:
        raise LeftToSpark(f"a value of type {of} is compared")
    try:
        return tuple(_READ[of](node.unnest()) for node in nodes)
    except ValueError as error:
        raise LeftToSpark(str(error)) from None


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
        raise LeftToSpark(f"{of} is compared with more than {MAX_PRECISION} digits")


def number(node: exp.Expr) -> int | Decimal:
    """A number as it is written. Raises LeftToSpark for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return -number(node.this)
    if not isinstance(node, exp.Literal) or node.is_string or not _PLAIN_NUMBER.fullmatch(node.name):
        raise LeftToSpark(f"{shown(node)} is no plain number")
    if sum(map(str.isdigit, node.name)) > MAX_PRECISION:
        raise LeftToSpark(f"{shown(node)} has more than {MAX_PRECISION} digits")
    return int(node.name) if node.name.isdigit() else Decimal(node.name)


def _truth(node: exp.Expr) -> Literal:
    if not isinstance(node, exp.Boolean):
        raise LeftToSpark(f"{shown(node)} is compared with a boolean")
    return bool(node.this)


def _text(node: exp.Expr) -> Literal:
    if not is_text(node):
        raise LeftToSpark(f"{shown(node)} is compared with a text")
    return node.name


def is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _day(node: exp.Expr) -> Literal:
    """`'2013-01-02'` or `DATE '2013-01-02'`."""
    return _read(node, ("DATE",), _DATE, ColumnType.DATE)


def _moment(node: exp.Expr) -> Literal:
    """`'2013-01-02 03:04:05'`, the same behind TIMESTAMP, or a DATE; without an offset it is UTC, as sessions are."""
    dated = cast_to(node) == "DATE"
    return _read(node, ("DATE", "TIMESTAMPTZ"), _DATE if dated else _MOMENT, ColumnType.TIMESTAMP)


def _read(node: exp.Expr, typed: Sequence[str], text: re.Pattern[str], of: ColumnType) -> Literal:
    if cast_to(node) in typed:
        node = node.this.unnest()
    if not is_text(node) or not text.fullmatch(node.name):
        raise LeftToSpark(f"{shown(node)} is no plain {of}")
    return typed_literal(node.name, of)


def cast_to(node: exp.Expr) -> str:
    """The type that a literal is cast to; "" where it is not."""
    return node.to.this.name if isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType) else ""


_READ: dict[ValueType, Callable[[exp.Expr], Literal]] = {
    ColumnType.FLOAT: number,
    ColumnType.BOOL: _truth,
    ColumnType.STRING: _text,
    ColumnType.DATE: _day,
    ColumnType.TIMESTAMP: _moment,
}
