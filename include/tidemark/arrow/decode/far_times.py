"""Times before the year 1 and after 9999: PostgreSQL's infinity, years BC, numbers that count further than a timestamp.

A column's `beyond` says what becomes of them: `refuse`, `null`, or `clip` to the first or the last time of these years.
Without it those that fit are taken, and strict.py refuses the others.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.strict import Misfit, is_text, shown, side
from tidemark.arrow.rows.arrays import first_true, of_values, scalar_of
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.epoch import first_and_last

BEYOND = "beyond the years 1 to 9999"
_Conversion = Callable[[pa.Array], pa.Array]
# Whatever `far_text` recognises has one of these.
_PERHAPS_FAR = r"(?i)^\s*[+-]|^\s*[0-9]{5}|^\s*0000|infinity|BC"


def within_years(array: pa.Array, declared: ValueType, unit: str | None, policy: str, convert: _Conversion) -> pa.Array:
    """Convert a column of times, with what a policy makes of those that are far away.

    Args:
        array: The values as the file has them: texts, times, or integers that count in `unit`.
        declared: The column's type, a timestamp or a date.
        unit: What integers count.
        policy: `refuse`, `null` or `clip`.
        convert: Converts the values that are left.

    Raises:
        Misfit: A value is refused, or is no time.
    """
    early, late = _far_texts(array, convert) if is_text(array.type) else _far_numbers(array, unit)
    far = pc.or_(early, late)
    nearby = pc.if_else(far, pa.nulls(1, array.type)[0], array) if _any(far) else array
    converted = convert(nearby)
    if is_text(array.type):  # of some texts only the zone moves them out of these years
        before, after = _far_numbers(converted, None)
        early, late = pc.or_(early, before), pc.or_(late, after)
        far = pc.or_(early, late)
    if not _any(far):
        return converted
    if policy == "refuse":
        at = first_true(far)
        raise Misfit(f"is declared {declared} and holds {_value(array, at, unit)}, {BEYOND}", at)
    if policy == "null":
        return pc.if_else(far, pa.nulls(1, converted.type)[0], converted)
    first, last = of_values(first_and_last("days" if declared is ColumnType.DATE else "us"), converted.type)
    return pc.if_else(early, first, pc.if_else(late, last, converted))


def first_far(array: pa.Array) -> tuple[str, int] | None:
    """The first time of a column that is not in these years, as a message has it, and its place; None if all are."""
    early, late = _far_numbers(array, None)
    at = first_true(pc.or_(early, late))
    return None if at < 0 else (f"holds {_value(array, at, None)}, {BEYOND}", at)


def _far_texts(array: pa.Array, convert: _Conversion) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Which texts are times before these years, and which after them."""
    sides = [0] * len(array)
    perhaps = pc.match_substring_regex(array, _PERHAPS_FAR)
    for at in pc.indices_nonzero(perhaps).to_pylist():
        sides[at] = side(array[at].as_py(), convert)
    numbers = of_values(sides, pa.int64())
    return pc.equal(numbers, scalar_of(-1, pa.int64())), pc.equal(numbers, scalar_of(1, pa.int64()))


def _far_numbers(array: pa.Array, unit: str | None) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Which numbers, or times, are before these years, and which after them."""
    if pa.types.is_timestamp(array.type):
        unit, array = array.type.unit, array.cast(pa.int64())
    elif pa.types.is_date(array.type):
        unit = "ms" if pa.types.is_date64(array.type) else "days"
        array = array.cast(pa.int64() if unit == "ms" else pa.int32()).cast(pa.int64())
    if unit is None or not pa.types.is_integer(array.type):
        nothing = pc.fill_null(pa.nulls(len(array), pa.bool_()), scalar_of(False, pa.bool_()))
        return nothing, nothing
    first, last = first_and_last(unit)
    no = scalar_of(False, pa.bool_())
    early = pc.fill_null(pc.less(array, _bound(first)), no)
    return early, pc.fill_null(pc.greater(array, _bound(last)), no)


def _bound(number: int) -> pa.Scalar:
    """A bound, or the nearest number of 64 bits: nanoseconds of that many are within these years."""
    return scalar_of(max(-(2**63), min(number, 2**63 - 1)), pa.int64())


def _any(bools: pa.BooleanArray) -> bool:
    return first_true(bools) >= 0


def _value(array: pa.Array, at: int, unit: str | None) -> str:
    """A value for a message."""
    if is_text(array.type):
        return shown(array[at].as_py())
    if pa.types.is_date32(array.type):
        unit, array = "days", array.cast(pa.int32())
    elif not pa.types.is_integer(array.type):
        unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
        array = array.cast(pa.int64())
    return f"{array[at].as_py()} {unit} since the epoch"
