"""Evaluating `delete_when` and `where` on rows: SQL's three-valued logic, null being unknown."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.columns import in_units
from tidemark.model import encoded_bytes
from tidemark.model.collection import MAX_PRECISION
from tidemark.model.predicate import And, Compare, In, IsNull, Literal, Not, Or, Predicate

_OPERATORS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EXACT = Context(prec=1_000, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""More digits than a literal has, before its point and behind it."""


def holds(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Where a condition is true, without nulls: what is false or unknown does not hold."""
    return _evaluated(predicate, batch).fill_null(False)


def _evaluated(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    match predicate:
        case And(left, right):
            return pc.and_kleene(_evaluated(left, batch), _evaluated(right, batch))
        case Or(left, right):
            return pc.or_kleene(_evaluated(left, batch), _evaluated(right, batch))
        case Not(inner):
            return pc.invert(_evaluated(inner, batch))
        case IsNull(column):
            return pc.is_null(batch.column(column))
        case In(column, literals):
            return reduce(pc.or_kleene, (_compared(batch.column(column), "=", literal) for literal in literals))
        case Compare(column, op, literal):
            return _compared(batch.column(column), op, literal)


def _compared(array: pa.Array, op: str, literal: Literal) -> pa.BooleanArray:
    of = array.type
    if (pa.types.is_integer(of) or pa.types.is_decimal(of)) and isinstance(literal, int | Decimal):
        return _among_units(array, op, literal)
    return _OPERATORS[op](array, scalar(of, literal))


def _among_units(array: pa.Array, op: str, literal: int | Decimal) -> pa.BooleanArray:
    """Integers and decimals beside a number, exactly: beside one between two of their values, or beyond all of them."""
    of_decimals = pa.types.is_decimal(array.type)
    units, scale = (in_units(array), array.type.scale) if of_decimals else (array, 0)
    with localcontext(_EXACT):
        exact = Decimal(literal).scaleb(scale)
        below, above = exact.to_integral_value(ROUND_FLOOR), exact.to_integral_value(ROUND_CEILING)
    if below != above and op in ("=", "!="):
        return _always(array, op == "!=")
    bound = int(above if op in ("<", ">=") else below)
    most = 10**MAX_PRECISION if of_decimals else 2**63
    if not -most < bound < most:
        if not of_decimals and bound == -most:
            return _OPERATORS[op](units, pa.scalar(bound, units.type))
        return _always(array, op == "!=" or (op != "=" and (bound > 0) == (op in ("<", "<="))))
    return _OPERATORS[op](units, pa.scalar(Decimal(bound) if of_decimals else bound, units.type))


def _always(array: pa.Array, answer: bool) -> pa.BooleanArray:
    """The answer for all but nulls."""
    return pc.if_else(array.is_valid(), answer, pa.scalar(None, pa.bool_()))


def scalar(of: pa.DataType, literal: Literal) -> pa.Scalar:
    """A literal in the type of the column beside it."""
    if pa.types.is_timestamp(of):
        moment = datetime.fromisoformat(str(literal))
        return pa.scalar(moment if moment.tzinfo else moment.replace(tzinfo=UTC), of)
    if pa.types.is_date(of):
        return pa.scalar(date.fromisoformat(str(literal)), of)
    if pa.types.is_binary(of):
        return pa.scalar(encoded_bytes.decoded(str(literal)), of)
    return pa.scalar(float(literal) if pa.types.is_floating(of) else literal, of)
