"""What a projection (model/expression.py) makes of one row, in plain Python: what every other way to compute it must
agree with. A row has times in microseconds, dates in days, and decimals as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Context, Decimal
from typing import Any

from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.condition.evaluate import truth
from tidemark.model.expression import (
    Arithmetic,
    Choice,
    Constant,
    Converted,
    FirstKnown,
    Length,
    Matches,
    Negated,
    Operand,
    Order,
    Projection,
    Step,
    TimePart,
    Truth,
)
from tidemark.model.instant import EPOCH, MICROSECOND

Row = Mapping[str, Any]
_DAY = 86_400_000_000
_EXACT = Context(prec=200)
"""More digits than a product of two decimals has."""


def projected_row(rule: Projection, types: Mapping[str, ValueType], row: Row) -> dict[str, Any] | None:
    """The columns that a projection shows of a row, whose own columns have these `types`; None for a row that does not
    count. Raises ArithmeticError where a value that is asked for is beyond its type, or is divided by zero."""
    seen = _Lazily(rule.steps, types, row)
    if truth(rule.where, seen) is not True:
        return None
    return {name: seen[name] for name in rule.shown}


class _Lazily(dict[str, Any]):
    """The row, and the steps that are asked for: what is not asked for is not computed, so that it cannot raise."""

    def __init__(self, steps: Mapping[str, Step], types: Mapping[str, ValueType], row: Row) -> None:
        super().__init__(row)
        self._steps, self._types = steps, types

    def __missing__(self, name: str) -> Any:
        step = self._steps[name]
        self[name] = _COMPUTE[type(step)](step, self)
        return self[name]

    def value(self, operand: Operand) -> Any:
        """The value of an operand."""
        if isinstance(operand, str):
            return self[operand]
        return _constant(operand)

    def is_date(self, operand: Operand) -> bool:
        """Whether an operand counts days."""
        if isinstance(operand, Constant):
            return operand.type is ColumnType.DATE
        step = self._steps.get(operand)
        of = self._types.get(operand) if step is None else getattr(step, "type", None)
        return of is ColumnType.DATE


def _constant(of: Constant) -> Any:
    if of.value is None:
        return None
    if of.type is ColumnType.FLOAT:
        return float(of.value)
    return Decimal(of.value) if isinstance(of.type, DecimalType) else of.value


def _arithmetic(step: Arithmetic, row: _Lazily) -> Any:
    left, right = row.value(step.left), row.value(step.right)
    if left is None or right is None:
        return None
    if isinstance(step.type, DecimalType):
        with_digits = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}[step.op](left, right)
        return _with_scale(with_digits, step.type)
    if step.op in ("/", "%", "div") and right == 0:
        raise ArithmeticError(f"{left} {step.op} 0")
    if step.type is ColumnType.FLOAT:
        return _floats(step.op, float(left), float(right))
    return _within(_whole(step.op, int(left), int(right)), step.bits)


def _whole(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if op == "div" else left - quotient * right


def _floats(op: str, left: float, right: float) -> float:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
    return math.nan if math.isinf(left) or math.isnan(left) or math.isnan(right) else math.fmod(left, right)


def _within(number: int, bits: int) -> int:
    most = 1 << (bits - 1)
    if not -most <= number < most:
        raise ArithmeticError(f"{number} is beyond {bits} bits")
    return number


def _with_scale(number: Decimal, of: DecimalType) -> Decimal:
    """A number as a decimal of a type that holds it exactly."""
    found = number.quantize(Decimal(1).scaleb(-of.scale), context=_EXACT)
    if found != number or abs(found) >= Decimal(10) ** of.whole_digits:
        raise ArithmeticError(f"{number} is no {of}")
    return found


def _negated(step: Negated, row: _Lazily) -> Any:
    value = row.value(step.of)
    if value is None:
        return None
    return _within(-value, step.bits) if step.type is ColumnType.INT else -value


def _converted(step: Converted, row: _Lazily) -> Any:
    value = row.value(step.of)
    if value is None:
        return None
    if isinstance(step.type, DecimalType):
        return _with_scale(Decimal(value), step.type)
    return _CONVERT[step.type](value, step.bits)


def _time_part(step: TimePart, row: _Lazily) -> int | None:
    value = row.value(step.of)
    if value is None:
        return None
    try:
        moment = EPOCH + (value * _DAY if row.is_date(step.of) else value) * MICROSECOND
    except OverflowError:
        raise ArithmeticError(f"{value} is outside the years 1 to 9999") from None
    return _PARTS[step.part](moment)


def _length(step: Length, row: _Lazily) -> int | None:
    value = row.value(step.of)
    return None if value is None else len(value)


def _order(step: Order, row: _Lazily) -> int | None:
    left, right = row.value(step.left), row.value(step.right)
    if left is None or right is None:
        return None
    one, other = _ordered(left), _ordered(right)
    return (one > other) - (one < other)


def _ordered(value: Any) -> tuple[bool, Any]:
    """A NaN equals itself and is greater than all floats."""
    return (True, 0.0) if isinstance(value, float) and math.isnan(value) else (False, value)


def _matches(step: Matches, row: _Lazily) -> bool | None:
    value = row.value(step.of)
    if value is None:
        return None
    found: dict[str, Callable[[], bool]] = {
        "start": lambda: value.startswith(step.text),
        "end": lambda: value.endswith(step.text),
        "anywhere": lambda: step.text in value,
    }
    return found[step.place]()


def _truth(step: Truth, row: _Lazily) -> bool | None:
    return truth(step.condition, row)


def _choice(step: Choice, row: _Lazily) -> Any:
    for condition, value in step.cases:
        if truth(condition, row) is True:
            return row.value(value)
    return row.value(step.otherwise)


def _first_known(step: FirstKnown, row: _Lazily) -> Any:
    return next((value for value in map(row.value, step.of) if value is not None), None)


_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
}
_CONVERT: dict[ValueType, Callable[[Any, int], Any]] = {
    ColumnType.INT: _within,
    ColumnType.FLOAT: lambda value, _: float(value),
    ColumnType.TIMESTAMP: lambda value, _: value * _DAY,
    ColumnType.DATE: lambda value, _: value // _DAY,
    ColumnType.STRING: lambda value, _: str(value),
}
_COMPUTE: dict[type[Step], Callable[[Any, _Lazily], Any]] = {
    Arithmetic: _arithmetic,
    Negated: _negated,
    Converted: _converted,
    TimePart: _time_part,
    Length: _length,
    Order: _order,
    Matches: _matches,
    Truth: _truth,
    Choice: _choice,
    FirstKnown: _first_known,
}
