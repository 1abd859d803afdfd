"""Which values of a column a row can have for which a condition is true: what need not be opened to find such rows.

An example: `a > 5 AND a <= 9 OR a IN (12, 20)` is true only where a is in [6, 20] and is not null. A range holds all
values that fit, and may hold others: rows are compared all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import reduce

from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or
from tidemark.model.update import Scalar

EXACT = Context(prec=1_000, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""More digits than a literal has, before its point and behind it."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class ValueRange:
    """Values from `lower` to `upper`, each included (None: unbounded), as keys hold them: microseconds of times, days
    of dates, units of decimals, bytes in hexadecimal digits. None at all without `values`; `nulls` says whether null is
    one of them, too."""

    lower: Scalar = None
    upper: Scalar = None
    nulls: bool = True
    values: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether no row fits."""
        return not self.values and not self.nulls

    def and_(self, other: ValueRange) -> ValueRange:
        """What is in both."""
        lower = _both(max, self.lower, other.lower)
        upper = _both(min, self.upper, other.upper)
        return _range(lower, upper, self.nulls and other.nulls, self.values and other.values)

    def or_(self, other: ValueRange) -> ValueRange:
        """What is in either, and what is between."""
        nulls = self.nulls or other.nulls
        if not (self.values and other.values):
            some = self if self.values else other
            return ValueRange(some.lower, some.upper, nulls, some.values)
        lower = None if self.lower is None or other.lower is None else min(self.lower, other.lower)
        upper = None if self.upper is None or other.upper is None else max(self.upper, other.upper)
        return ValueRange(lower, upper, nulls)


_OPPOSITE = {"!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WHOLE = (ColumnType.INT, ColumnType.DATE, ColumnType.TIMESTAMP)
ANYTHING = ValueRange()
_KNOWN = ValueRange(nulls=False)
_NULL = ValueRange(values=False)
_NOTHING = ValueRange(nulls=False, values=False)


def bounds(condition: Condition, column: str, of: ValueType) -> ValueRange:
    """Which values a row can have in a column `of` that type if a condition is true for it. The condition's literals
    are `bound` to the columns' types."""
    return _true(condition, column, of)


def _true(condition: Condition, column: str, of: ValueType) -> ValueRange:
    match condition:
        case And(conditions):
            return reduce(ValueRange.and_, (_true(one, column, of) for one in conditions), ANYTHING)
        case Or(conditions):
            return reduce(ValueRange.or_, (_true(one, column, of) for one in conditions), _NOTHING)
        case Not(inner):
            return _false(inner, column, of)
        case _ if condition.column != column:
            return ANYTHING
        case IsNull():
            return _NULL
        case In(_, literals):
            return reduce(ValueRange.or_, (_compared("=", one, of) for one in literals), _NOTHING)
        case Compare(_, op, literal):
            return _compared(op, literal, of)


def _false(condition: Condition, column: str, of: ValueType) -> ValueRange:
    """Where a condition is false, which is not where it is unknown."""
    match condition:
        case And(conditions):
            return reduce(ValueRange.or_, (_false(one, column, of) for one in conditions), _NOTHING)
        case Or(conditions):
            return reduce(ValueRange.and_, (_false(one, column, of) for one in conditions), ANYTHING)
        case Not(inner):
            return _true(inner, column, of)
        case _ if condition.column != column:
            return ANYTHING
        case Compare(_, op, literal) if of is not ColumnType.FLOAT and op in _OPPOSITE:
            return _compared(_OPPOSITE[op], literal, of)
        case _:  # NaN is neither below a number nor above it, so of floats no comparison is another's opposite
            return _KNOWN


def _compared(op: str, literal: Literal, of: ValueType) -> ValueRange:
    if op == "!=" or (isinstance(literal, Decimal) and literal.is_nan()):
        return _KNOWN
    if isinstance(of, DecimalType) or of in _WHOLE:
        return _among_whole(op, literal, of)
    value = _plain(literal)
    return ValueRange(value if op in ("=", ">", ">=") else None, value if op in ("=", "<", "<=") else None, nulls=False)


def _plain(literal: Literal) -> Scalar:
    if isinstance(literal, bytes):
        return literal.hex()
    return literal if isinstance(literal, str | bool) else float(literal)


def _among_whole(op: str, literal: Literal, of: ValueType) -> ValueRange:
    """Of a type whose values are whole numbers: the next one that fits, where the literal is none or does not."""
    scale, most = (of.scale, 10**MAX_PRECISION - 1) if isinstance(of, DecimalType) else (0, _LARGEST)
    least = -most if isinstance(of, DecimalType) else -most - 1
    below, above = whole_beside(literal, scale)
    lower = {"=": above, ">": below + 1, ">=": above}.get(op, least)
    upper = {"=": below, "<": above - 1, "<=": below}.get(op, most)
    if lower > most or upper < least:
        return _NOTHING
    return _range(None if lower <= least else lower, None if upper >= most else upper, nulls=False)


def whole_beside(literal: Literal, scale: int) -> tuple[int, int]:
    """The whole numbers of units next to a number, below it and above it; where it is one, twice that. A unit is the
    last of `scale` digits behind the point."""
    assert isinstance(literal, int | Decimal)
    with localcontext(EXACT):
        exact = Decimal(literal).scaleb(scale)
        return int(exact.to_integral_value(ROUND_FLOOR)), int(exact.to_integral_value(ROUND_CEILING))


def _both(choose: Callable[..., Scalar], one: Scalar, other: Scalar) -> Scalar:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _range(lower: Scalar, upper: Scalar, nulls: bool, values: bool = True) -> ValueRange:
    crossed = lower is not None and upper is not None and lower > upper  # type: ignore[operator]
    return ValueRange(lower, upper, nulls) if values and not crossed else ValueRange(nulls=nulls, values=False)
