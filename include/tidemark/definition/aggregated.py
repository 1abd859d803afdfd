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


def result_type(function: Function, of: ValueType) -> ValueType | None:
    """The type of an aggregate of values of a type; None where Spark SQL computes it."""
    decimal = isinstance(of, DecimalType)
    number, compared = of in (ColumnType.INT, ColumnType.FLOAT), decimal or of in _COMPARED
    match function:
        case Function.COUNT:
            return ColumnType.INT
        case Function.COUNT_DISTINCT if compared:
            return ColumnType.INT
        case Function.MIN | Function.MAX | Function.FIRST | Function.LAST if compared:
            return of
        case Function.AVG if number:
            return ColumnType.FLOAT
        case Function.SUM if number:
            return of
        case Function.APPROX_QUANTILE if number or decimal:
            return ColumnType.FLOAT
        case Function.COLLECT if of in _PLAIN_JSON:
            return ColumnType.STRING
    return _of_decimals(function, of) if isinstance(of, DecimalType) else None


def _of_decimals(function: Function, of: DecimalType) -> ValueType | None:
    fits = of.precision + SUM_DIGITS <= MAX_PRECISION
    match function:
        case Function.SUM if fits:
            return DecimalType(of.precision + SUM_DIGITS, of.scale)
        case Function.AVG if fits and of.scale <= _MOST_SCALE:
            return DecimalType(of.precision + _MORE_DIGITS, of.scale + _MORE_DIGITS)
        case Function.COLLECT if of.scale <= _MOST_JSON_SCALE:
            return ColumnType.STRING
    return None
