"""Whether a condition is true of one row, in plain Python: what every other way to evaluate it must agree with."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(condition: Condition, row: Mapping[str, Any]) -> bool | None:
    """True, false, or None where it is unknown. Literals are `bound` to the types of the columns, and the row has times
    in microseconds and dates in days. What follows a condition that settles an AND or an OR is not looked at."""
    match condition:
        case And(conditions):
            return _settled(conditions, row, by=False)
        case Or(conditions):
            return _settled(conditions, row, by=True)
        case Not(inner):
            found = truth(inner, row)
            return None if found is None else not found
        case IsNull(column):
            return row[column] is None
        case In(column, literals):
            value = row[column]
            return None if value is None else any(_compared(value, "=", one) for one in literals)
        case Compare(column, op, literal):
            value = row[column]
            return None if value is None else _compared(value, op, literal)


def _settled(conditions: tuple[Condition, ...], row: Mapping[str, Any], *, by: bool) -> bool | None:
    """What several conditions say, one of which settles it where it is `by`."""
    found: bool | None = not by
    for one in conditions:
        said = truth(one, row)
        if said is by:
            return by
        found = None if said is None else found
    return found


def _compared(value: Any, op: str, literal: Literal) -> bool:
    """Numbers are exact; beside a float a literal is the double nearest to it. No float is no number but a NaN."""
    if isinstance(literal, Decimal) and literal.is_nan():
        return (isinstance(value, float) and math.isnan(value)) == (op == "=")
    if isinstance(value, float) and isinstance(literal, int | Decimal):
        return _OPERATORS[op](value, float(literal))
    return _OPERATORS[op](value, literal)
