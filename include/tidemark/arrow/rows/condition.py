"""Evaluating conditions on rows: SQL's three-valued logic, null being unknown."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import of_values, scalar_of
from tidemark.arrow.rows.columns import in_units
from tidemark.model.collection import MAX_PRECISION
from tidemark.model.condition.bounds import whole_beside
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or

_OPERATORS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


_TRUE, _FALSE, _UNKNOWN = (scalar_of(truth, pa.bool_()) for truth in (True, False, None))


def holds(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Where a condition is true, without nulls: what is false or unknown does not hold. Its literals are `bound` to the
    types of the columns."""
    return evaluated(condition, batch).fill_null(_FALSE)


def evaluated(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Of each row whether a condition is true, false, or unknown, which is null; literals as of `holds`."""
    match condition:
        case And(conditions):
            return reduce(pc.and_kleene, (evaluated(one, batch) for one in conditions), _everywhere(batch, True))
        case Or(conditions):
            return reduce(pc.or_kleene, (evaluated(one, batch) for one in conditions), _everywhere(batch, False))
        case Not(inner):
            return pc.invert(evaluated(inner, batch))
        case IsNull(column):
            return pc.is_null(batch.column(column))
        case In(column, literals):
            return _among(batch.column(column), literals)
        case Compare(column, op, literal):
            return _compared(batch.column(column), op, literal)


def _among(array: pa.Array, literals: Sequence[Literal]) -> pa.BooleanArray:
    of = array.type
    if pa.types.is_floating(of) or pa.types.is_boolean(of):
        return reduce(pc.or_kleene, (_compared(array, "=", one) for one in literals), _always(array, False))
    if pa.types.is_integer(of) or pa.types.is_decimal(of):
        array, scale, beyond = _units(array)
        beside = (whole_beside(one, scale) for one in literals)
        found = [below for below, above in beside if below == above and -beyond <= below < beyond]
        values = of_values(list(map(Decimal, found)) if pa.types.is_decimal(of) else found, array.type)
    else:
        values = _typed(literals, of)
    return pc.if_else(array.is_valid(), pc.is_in(array, values), _UNKNOWN)


def _compared(array: pa.Array, op: str, literal: Literal) -> pa.BooleanArray:
    of = array.type
    if pa.types.is_integer(of) or pa.types.is_decimal(of):
        return _among_units(array, op, literal)
    if isinstance(literal, Decimal) and literal.is_nan():
        return pc.is_nan(array) if op == "=" else pc.invert(pc.is_nan(array))
    return _OPERATORS[op](array, _typed([literal], of)[0])


def _units(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Integers or decimals as whole numbers of units, how many digits behind the point a unit is, and the first whole
    number that is too large."""
    if pa.types.is_decimal(array.type):
        return in_units(array), array.type.scale, 10**MAX_PRECISION
    return array, 0, 2 ** (array.type.bit_width - 1)


def _among_units(array: pa.Array, op: str, literal: Literal) -> pa.BooleanArray:
    """Integers and decimals beside a number, exactly: beside one between two of their values, or beyond all of them."""
    units, scale, beyond = _units(array)
    below, above = whole_beside(literal, scale)
    if below != above and op in ("=", "!="):
        return _always(array, op == "!=")
    beside = above if op in ("<", ">=") else below
    if not -beyond < beside < beyond and (beside != -beyond or pa.types.is_decimal(array.type)):
        return _always(array, op == "!=" or (op != "=" and (beside > 0) == (op in ("<", "<="))))
    return _OPERATORS[op](units, scalar_of(Decimal(beside) if pa.types.is_decimal(units.type) else beside, units.type))


def _always(array: pa.Array, answer: bool) -> pa.BooleanArray:
    """The answer for all but nulls."""
    return pc.if_else(array.is_valid(), _TRUE if answer else _FALSE, _UNKNOWN)


def _everywhere(batch: pa.RecordBatch, answer: bool) -> pa.BooleanArray:
    return pa.repeat(_TRUE if answer else _FALSE, batch.num_rows)


def _typed(literals: Sequence[Literal], of: pa.DataType) -> pa.Array:
    """Literals as an array of the type of the column beside them."""
    return of_values(list(map(float, literals)) if pa.types.is_floating(of) else literals, of)
