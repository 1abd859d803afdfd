"""Evaluating `delete_when` on rows: SQL's three-valued logic, null being unknown."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.model.predicate import And, Compare, In, IsNull, Literal, Not, Or, Predicate

_OPERATORS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


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
            return _any_equal(batch.column(column), literals)
        case Compare(column, op, literal):
            return _OPERATORS[op](*_comparable(batch.column(column), literal))


def _any_equal(array: pa.Array, literals: tuple[Literal, ...]) -> pa.BooleanArray:
    result = pc.equal(*_comparable(array, literals[0]))
    for literal in literals[1:]:
        result = pc.or_kleene(result, pc.equal(*_comparable(array, literal)))
    return result


def _comparable(array: pa.Array, literal: Literal) -> tuple[pa.Array, pa.Scalar]:
    """A column and a literal in one type. Integers are compared with other numbers as exactly as decimals can."""
    if pa.types.is_timestamp(array.type):
        moment = datetime.fromisoformat(str(literal))
        return array, pa.scalar(moment if moment.tzinfo else moment.replace(tzinfo=UTC), array.type)
    if pa.types.is_date(array.type):
        return array, pa.scalar(date.fromisoformat(str(literal)), array.type)
    if pa.types.is_integer(array.type) and isinstance(literal, int) and -(2**63) <= literal < 2**63:
        return array, pa.scalar(literal, array.type)
    if pa.types.is_integer(array.type):
        return array.cast(pa.float64(), safe=False), pa.scalar(float(literal), pa.float64())
    return array, pa.scalar(literal, array.type)
