"""Strict conversion of a source column to its declared type: what does not fit exactly is a Misfit, never rounded.

    declared   Parquet                              JSON                      CSV (empty is null, but for string)
    bool       bool                                 true, false               true, false in any case; 1, 0
    int        any integer within 64 bits, signed   12; not 12.0, not 1e3     12, -12; not +12
    float      any float; integers up to 2^53       any; NaN, Infinity        any number; nan, inf
    string     any string                           a text                    as it stands; empty is empty
    date       date                                 "2013-01-02"              2013-01-02
    timestamp  any, if no nanoseconds are lost      ISO 8601 text             ISO 8601

Decimal text is rounded to the nearest double, as everywhere; a number beyond the doubles is refused. A timestamp
without a zone or offset is UTC; INT96 timestamps are read as microseconds. Floats leave as one NaN and without -0.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.schema import ARROW_TYPES
from tidemark.model.collection import ColumnType

_Conversion = Callable[[pa.Array], pa.Array]
_UTC = ARROW_TYPES[ColumnType.TIMESTAMP]
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_PLUS = re.compile(r"\+[0-9.]")
_ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


class Misfit(Exception):
    """A column, or its value in row `index`, is not of the declared type."""

    def __init__(self, reason: str, index: int | None = None) -> None:
        super().__init__(reason, index)
        self.reason, self.index = reason, index


def fitted(array: pa.Array, declared: ColumnType) -> pa.Array:
    """A typed column of a file as the declared type. Raises Misfit."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), ARROW_TYPES[declared])
    if not _may_hold(array.type, declared):
        raise Misfit(f"is declared {declared}, the file has {array.type}")

    def convert(some: pa.Array) -> pa.Array:
        cast = some if some.type == ARROW_TYPES[declared] else some.cast(ARROW_TYPES[declared])
        if declared is ColumnType.STRING:
            cast.validate(full=True)
        return cast

    return canonical(_divided(convert, array, declared))


def since_epoch(array: pa.Array, declared: ColumnType, unit: str) -> pa.Array:
    """A column of integers that count since the epoch as the timestamp or date declared. Raises Misfit."""
    if declared is ColumnType.DATE:
        days = pa.int32()
        return _divided(lambda some: some.cast(days).cast(ARROW_TYPES[declared]), array, declared)
    return fitted(fitted(array, ColumnType.INT).cast(pa.timestamp(unit, "UTC")), declared)


def parsed(array: pa.Array, declared: ColumnType, *, empty_is_null: bool) -> pa.Array:
    """A column of texts as the declared type. Raises Misfit."""
    if declared is ColumnType.STRING:
        return fitted(array, declared)
    if empty_is_null:
        empty = pc.equal(pc.binary_length(array), 0)
        if pc.any(empty).as_py():
            array = pc.if_else(empty, pa.scalar(None, pa.string()), array)
    return canonical(_divided(_PARSERS[declared], array, declared))


def canonical(array: pa.Array) -> pa.Array:
    """Floats with one NaN and without -0.0; anything else as it is."""
    if not pa.types.is_floating(array.type):
        return array
    array = pc.add(array, 0.0)
    nans = pc.is_nan(array)
    return pc.if_else(nans, float("nan"), array) if pc.any(nans).as_py() else array


def _may_hold(of: pa.DataType, declared: ColumnType) -> bool:
    types = pa.types
    match declared:
        case ColumnType.BOOL:
            return bool(types.is_boolean(of))
        case ColumnType.INT:
            return bool(types.is_integer(of))
        case ColumnType.FLOAT:
            return bool(types.is_floating(of) or types.is_integer(of))
        case ColumnType.STRING:
            return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))
        case ColumnType.DATE:
            return bool(types.is_date(of))
        case ColumnType.TIMESTAMP:
            return bool(types.is_timestamp(of))


def _divided(convert: _Conversion, array: pa.Array, declared: ColumnType, first: int = 0) -> pa.Array:
    """Convert an array; what fails whole is halved until the first value that fails alone is found, or none is."""
    try:
        return convert(array)
    except pa.ArrowInvalid:
        if len(array) == 1:
            raise Misfit(_complaint(array, declared), first) from None
    half = len(array) // 2
    left = _divided(convert, array.slice(0, half), declared, first)
    return pa.concat_arrays([left, _divided(convert, array.slice(half), declared, first + half)])


def _complaint(one: pa.Array, declared: ColumnType) -> str:
    """Why a single value does not fit."""
    if pa.types.is_timestamp(one.type):
        value = one.cast(pa.timestamp(one.type.unit)).cast(pa.int64())[0].as_py()
        what = "nanoseconds that would be lost" if one.type.unit == "ns" else "a time out of range"
        return f"is declared timestamp and holds {what}: {value} {one.type.unit} since the epoch"
    if pa.types.is_date64(one.type):
        value = one.cast(pa.int64())[0].as_py()
        return f"is declared {declared} and holds a day out of range: {value} ms since the epoch"
    try:
        value = one[0].as_py()
    except UnicodeDecodeError:
        return "is declared string and holds bytes that are not UTF-8"
    if declared is ColumnType.INT and _beyond_64_bits(value):
        return f"is declared int and holds {shorter(str(value))}: integer overflow, beyond 64 bits"
    if declared in (ColumnType.INT, ColumnType.FLOAT) and isinstance(value, str) and _PLUS.match(value):
        return f"is declared {declared} and holds {shown(value)}; write it without the plus sign"
    if declared is ColumnType.FLOAT and isinstance(value, int):
        return f"is declared float and holds the integer {value}, which no float equals"
    return f"is declared {declared} and holds {shown(value)}"


def _beyond_64_bits(value: object) -> bool:
    if isinstance(value, str):
        return bool(_INTEGER.fullmatch(value)) and not -(2**63) <= int(value) < 2**63
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def shown(value: object) -> str:
    """A value for a message: its start, if it is long."""
    return shorter(repr(value[:100] if isinstance(value, str | bytes | list) else value))


def shorter(text: str) -> str:
    """The start of a text that is long."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _ints(array: pa.Array) -> pa.Array:
    ints = array.cast(pa.int64())
    # Arrow reads 0x1F as 31.
    if pc.any(pc.match_substring(array, "x")).as_py() or pc.any(pc.match_substring(array, "X")).as_py():
        raise pa.ArrowInvalid("hexadecimal")
    return ints


def _floats(array: pa.Array) -> pa.Array:
    floats = array.cast(pa.float64())
    infinite = array.filter(pc.is_inf(floats))
    # Arrow reads 1e400 as infinite.
    if len(infinite) and not pc.all(pc.match_substring(infinite, "inf", ignore_case=True)).as_py():
        raise pa.ArrowInvalid("beyond a double")
    return floats


def _timestamps(array: pa.Array) -> pa.Array:
    for unit in ("us", "ns"):
        for zone in ("UTC", None):
            try:
                return array.cast(pa.timestamp(unit, zone)).cast(_UTC)
            except pa.ArrowInvalid:
                continue
    zoned = pc.match_substring_regex(array, _ZONED)
    if len(array) == 1 or not pc.any(zoned).as_py() or pc.all(zoned).as_py():
        raise pa.ArrowInvalid("not all of them times")
    nothing = pa.scalar(None, pa.string())
    with_zone, without = pc.if_else(zoned, array, nothing), pc.if_else(zoned, nothing, array)
    return pc.coalesce(_timestamps(with_zone), _timestamps(without))


_PARSERS: dict[ColumnType, _Conversion] = {
    ColumnType.BOOL: lambda array: array.cast(pa.bool_()),
    ColumnType.INT: _ints,
    ColumnType.FLOAT: _floats,
    ColumnType.DATE: lambda array: array.cast(pa.date32()),
    ColumnType.TIMESTAMP: _timestamps,
}
