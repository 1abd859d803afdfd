"""Which aggregates kernels compute, of which types, and of which type the result is: all that are bit by bit Spark's.

What is left to Spark SQL: JSON of floats and times (Java writes them in its own way), sketches of groups and sessions,
and sums and means of decimals with so many digits that Spark rounds in between.
"""

from __future__ import annotations

from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.decimals import SUM_DIGITS
from tidemark.model.window.aggregate import Function

GROUPED_BY = (ColumnType.INT, ColumnType.STRING, ColumnType.BOOL, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types of whose values none are equal but the same."""
_COMPARED = (*GROUPED_BY, ColumnType.FLOAT)
"""Types whose order is Spark's, decimals besides."""
IN_ORDER = (Function.FIRST, Function.LAST, Function.COLLECT)
"""Functions that ask for the order of rows."""
_PLAIN_JSON = (ColumnType.INT, ColumnType.STRING, ColumnType.BOOL)
_MORE_DIGITS = 4
"""Of a mean of decimals behind the point."""
_MOST_SCALE = 14
"""Of decimals whose mean Spark, which rounds at 38 digits first, rounds as if it were once."""
_MOST_JSON_SCALE = 6
"""Of decimals that are never written with an exponent."""


def type_of(function: Function, of: ValueType) -> ValueType:
    """The type of an aggregate of values of a type."""
    match function:
        case Function.COUNT | Function.COUNT_DISTINCT | Function.APPROX_DISTINCT:
            return ColumnType.INT
        case Function.MIN | Function.MAX | Function.FIRST | Function.LAST:
            return of
        case Function.COLLECT:
            return ColumnType.STRING
        case Function.SUM:
            if not isinstance(of, DecimalType):
                return of
            return DecimalType(min(of.precision + SUM_DIGITS, MAX_PRECISION), of.scale)
        case Function.AVG if isinstance(of, DecimalType):
            return DecimalType(min(of.precision + _MORE_DIGITS, MAX_PRECISION), of.scale + _MORE_DIGITS)
        case Function.AVG | Function.APPROX_QUANTILE:
            return ColumnType.FLOAT


def result_type(function: Function, of: ValueType) -> ValueType | None:
    """The same; None where Spark SQL computes it."""
    decimal = of if isinstance(of, DecimalType) else None
    number, compared = of in (ColumnType.INT, ColumnType.FLOAT), decimal or of in _COMPARED
    match function:
        case Function.COUNT:
            exact = True
        case Function.COUNT_DISTINCT | Function.MIN | Function.MAX | Function.FIRST | Function.LAST:
            exact = bool(compared)
        case Function.SUM | Function.AVG:
            exact = number or (decimal is not None and _is_exact(function, decimal))
        case Function.APPROX_QUANTILE:
            exact = number or decimal is not None
        case Function.COLLECT:
            exact = of in _PLAIN_JSON or (decimal is not None and decimal.scale <= _MOST_JSON_SCALE)
        case Function.APPROX_DISTINCT:
            exact = False
    return type_of(function, of) if exact else None


def _is_exact(function: Function, of: DecimalType) -> bool:
    fits = of.precision + SUM_DIGITS <= MAX_PRECISION
    return fits and (function is Function.SUM or of.scale <= _MOST_SCALE)
