"""Strict conversion of a source column to its declared type: what does not fit exactly is a Misfit, never rounded.

    declared   Parquet                              JSON                      CSV (empty is null, but for string)
    bool       bool                                 true, false               true, false in any case; 1, 0
    int        any integer within 64 bits, signed   12; not 12.0, not 1e3     12, -12; not +12
    float      any float; integers up to 2^53       any; NaN, Infinity, also  any number; nan, inf
                                                    as texts
    string     any string                           a text                    as written; empty is empty
    date       date, and ISO 8601 texts             "2013-01-02", also with Z 2013-01-02
    timestamp  any, if no nanoseconds are lost,     ISO 8601 text             ISO 8601
               and ISO 8601 texts
    decimal    decimals, integers, texts of both;   12, -12.50, 1e2, "12.50"  12, -12.50, 1e2, .5, +1
               a float that is exactly one
    bytes      any binary                           base64 text               base64
    json       texts that are JSON; struct, list,   any value                 JSON
               map (jsontexts.py)

A decimal with more digits than declared is refused, behind the point and before it; zeros at its end are no digits.
JSON leaves as its canonical text (model/canonical_json.py), and its null as null. Text of a float is rounded to the
nearest double, as everywhere; a number beyond the doubles is refused. A timestamp without a zone or offset is UTC;
INT96 timestamps are read as microseconds. Floats leave as one NaN and without -0.0. Where a column has a unit its times
are integers, of CSV in texts; where its decimals are precise they are bytes, or {scale, value}.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import jsontexts
from tidemark.arrow.rows.fields import as_decimals
from tidemark.arrow.rows.schema import ARROW_TYPES, arrow_type
from tidemark.model import decimals, encoded_bytes
from tidemark.model.canonical_json import NotJson
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.epoch import far_text

_Conversion = Callable[[pa.Array], pa.Array]
_UTC = ARROW_TYPES[ColumnType.TIMESTAMP]
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_MOST_BYTES = 1000
"""Of a number beside its scale: about 2,400 digits, more than any decimal has with the zeros at its end."""
_MOST_SCALE = 20_000
"""Of a decimal beside its scale: a numeric of PostgreSQL has up to 16,383."""
_PLUS = re.compile(r"\+[0-9.]")
_ISO = {ColumnType.DATE: "2013-01-02", ColumnType.TIMESTAMP: "2013-01-02T03:04:05.123456Z"}
SCALED = "; if that is {scale, value}, write decimals: precise at the column"
FAR = "; say what becomes of such times: beyond: null, or clip, of the column"
ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


class Misfit(Exception):
    """A column, or its value in row `index`, is not of the declared type."""

    def __init__(self, reason: str, index: int | None = None) -> None:
        super().__init__(reason, index)
        self.reason, self.index = reason, index


def fitted(array: pa.Array, declared: ValueType) -> pa.Array:
    """A typed column of a file as the declared type. Raises Misfit."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(declared))
    if not may_hold(array.type, declared):
        advice = SCALED if isinstance(declared, DecimalType) and pa.types.is_struct(array.type) else ""
        raise Misfit(f"is declared {declared}, the file has {jsontexts.shortened(array.type)}{advice}")
    if declared is ColumnType.JSON:
        return _divided(_json, array, declared)
    if isinstance(declared, DecimalType):
        return _divided(lambda some: _decimals(some, declared), array, declared)

    def convert(some: pa.Array) -> pa.Array:
        cast = some if some.type == ARROW_TYPES[declared] else some.cast(ARROW_TYPES[declared])
        if declared is ColumnType.STRING:
            cast.validate(full=True)
        return cast

    return canonical(_divided(convert, array, declared))


@contextmanager
def described(instead: ValueType, declared: str) -> Iterator[None]:
    """Let a Misfit name the type that a file declares, and not the one that its values are read as first."""
    try:
        yield
    except Misfit as misfit:
        reason = misfit.reason.replace(f"is declared {instead}", f"is declared {declared}", 1)
        raise Misfit(reason, misfit.index) from None


def since_epoch(array: pa.Array, declared: ValueType, unit: str) -> pa.Array:
    """A column of integers that count since the epoch as the timestamp or date declared. Raises Misfit."""
    if declared is ColumnType.DATE:
        days = pa.int32()
        return _divided(lambda some: some.cast(days).cast(ARROW_TYPES[declared]), array, declared)
    return fitted(fitted(array, ColumnType.INT).cast(pa.timestamp(unit, "UTC")), declared)


def from_unscaled(array: pa.Array, declared: DecimalType, *, empty_is_null: bool = False) -> pa.Array:
    """Numbers as big-endian two's complement, binary or in base64, that count the last digit of the type declared, as
    decimals; or beside the scale that they have. What is a decimal already stays one. Raises Misfit."""
    if may_hold(array.type, declared) and not is_text(array.type):
        return fitted(array, declared)
    with described(declared, precise(declared)):
        if pa.types.is_struct(array.type) and {"scale", "value"} <= {field.name for field in array.type}:
            return _divided(lambda part: _scaled(part, declared), array, declared)
    with described(ColumnType.BYTES, precise(declared)):
        text = is_text(array.type)
        binary = parsed(array, ColumnType.BYTES, empty_is_null=empty_is_null) if text else array
        binary = fitted(binary, ColumnType.BYTES)
    with described(declared, precise(declared)):
        return _divided(lambda part: _counted(part, declared), binary, declared)


def precise(declared: ValueType) -> str:
    """A type whose decimals are precise, for a message."""
    return f"{declared} (decimals: precise)"


def counting(declared: ValueType, unit: str) -> str:
    """A type whose numbers count since the epoch, for a message."""
    return f"{declared} (unit: {unit})"


def parsed(array: pa.Array, declared: ValueType, *, empty_is_null: bool) -> pa.Array:
    """A column of texts as the declared type. Raises Misfit."""
    if declared is ColumnType.STRING:
        return fitted(array, declared)
    if empty_is_null:
        array = empty_as_null(array)
    if isinstance(declared, DecimalType):
        return _divided(lambda some: _decimals(some, declared), array, declared)
    return canonical(_divided(_PARSERS[declared], array, declared))


def empty_as_null(texts: pa.Array) -> pa.Array:
    """Texts, but null where they are empty."""
    empty = pc.invert(pc.binary_length(texts).cast(pa.bool_()))
    return pc.if_else(empty, pa.nulls(1, pa.string())[0], texts) if pc.any(empty).as_py() else texts


def canonical(array: pa.Array) -> pa.Array:
    """Floats with one NaN and without -0.0; anything else as it is."""
    if not pa.types.is_floating(array.type):
        return array
    array = pc.add(array, 0.0)
    nans = pc.is_nan(array)
    return pc.if_else(nans, float("nan"), array) if pc.any(nans).as_py() else array


def may_hold(of: pa.DataType, declared: ValueType) -> bool:
    """Whether a column of a file may be of a declared type, if its values are."""
    types = pa.types
    match declared:
        case ColumnType.BOOL:
            return bool(types.is_boolean(of))
        case ColumnType.INT:
            return bool(types.is_integer(of))
        case ColumnType.FLOAT:
            return bool(types.is_floating(of) or types.is_integer(of))
        case ColumnType.STRING:
            return is_text(of)
        case ColumnType.DATE:
            return bool(types.is_date(of))
        case ColumnType.TIMESTAMP:
            return bool(types.is_timestamp(of))
        case ColumnType.BYTES:
            return bool(
                types.is_binary(of)
                or types.is_large_binary(of)
                or types.is_fixed_size_binary(of)
                or types.is_binary_view(of)
            )
        case ColumnType.JSON:
            return is_text(of) or jsontexts.is_nested(of)
        case DecimalType():
            return bool(types.is_decimal(of) or types.is_integer(of) or types.is_floating(of)) or is_text(of)


def is_text(of: pa.DataType) -> bool:
    """Whether a column of a file has texts."""
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


def _divided(convert: _Conversion, array: pa.Array, declared: ValueType, first: int = 0) -> pa.Array:
    """Convert an array; what fails whole is halved until the first value that fails alone is found, or none is."""
    try:
        return convert(array)
    except (pa.ArrowInvalid, ValueError) as error:
        if len(array) == 1:
            raise Misfit(_complaint(array, declared, error), first) from None
    half = len(array) // 2
    left = _divided(convert, array.slice(0, half), declared, first)
    return pa.concat_arrays([left, _divided(convert, array.slice(half), declared, first + half)])


def _complaint(one: pa.Array, declared: ValueType, error: Exception) -> str:
    """Why a single value does not fit."""
    if declared is ColumnType.JSON and not isinstance(error, UnicodeDecodeError):
        return f"is declared json and holds {error if isinstance(error, NotJson) else shorter(str(error))}"
    if pa.types.is_floating(one.type) and isinstance(declared, DecimalType):
        return _of_float(one[0].as_py(), declared)
    if pa.types.is_timestamp(one.type):
        value = one.cast(pa.timestamp(one.type.unit)).cast(pa.int64())[0].as_py()
        what, advice = "nanoseconds that would be lost", ""
        if one.type.unit != "ns":
            what, advice = "a time out of range", FAR
        return f"is declared timestamp and holds {what}: {value} {one.type.unit} since the epoch{advice}"
    if pa.types.is_date64(one.type):
        value = one.cast(pa.int64())[0].as_py()
        return f"is declared {declared} and holds a day out of range: {value} ms since the epoch{FAR}"
    try:
        value = one[0].as_py()
    except UnicodeDecodeError:
        return f"is declared {declared} and holds bytes that are not UTF-8"
    if isinstance(declared, DecimalType):
        text = shorter(decimals.text(value)) if isinstance(value, Decimal) else shown(value)
        if isinstance(value, dict):
            text = shorter(json.dumps(value, default=encoded_bytes.encoded))
        which_is = "which is " if isinstance(error, encoded_bytes.NotBase64) else ""
        return f"is declared {declared} and holds {text}, {which_is}{error}"
    if declared is ColumnType.BYTES and isinstance(error, encoded_bytes.NotBase64):
        return f"is declared bytes and holds {shown(value)}, which is {error}"
    if declared is ColumnType.INT and _beyond_64_bits(value):
        return f"is declared int and holds {shorter(str(value))}: integer overflow, beyond 64 bits"
    if declared in (ColumnType.INT, ColumnType.FLOAT) and isinstance(value, str) and _PLUS.match(value):
        return f"is declared {declared} and holds {shown(value)}; write it without the plus sign"
    if declared is ColumnType.FLOAT and isinstance(value, int):
        return f"is declared float and holds the integer {value}, which no float equals"
    advice = ""
    if isinstance(declared, ColumnType) and declared in _ISO:
        advice = f"; write ISO 8601, as {_ISO[declared]}"
        if isinstance(value, str) and side(value, _PARSERS[declared]):
            advice = FAR
    return f"is declared {declared} and holds {shown(value)}{advice}"


def side(text: str, convert: _Conversion) -> int:
    """Whether a text is a time before the years 1 to 9999 (−1) or after them (1); 0 for any other text.

    Args:
        text: Any text.
        convert: Converts texts of these years; raises Misfit or ArrowInvalid.
    """
    far = far_text(text)
    if far is not None and far[1]:
        try:
            convert(pa.array([far[1]], pa.string()))
        except (Misfit, pa.ArrowInvalid):
            return 0
    return far[0] if far else 0


def _of_float(value: float, declared: DecimalType) -> str:
    """Why a float is not taken for a decimal."""
    if not math.isfinite(value):
        return f"is declared {declared} and holds {value}, which is no decimal number"
    exact = Decimal(value)
    try:
        decimals.units(exact, declared)
    except decimals.NoDecimal as error:
        if exact == Decimal(repr(value)):
            return f"is declared {declared} and holds {value}, {error}"
    return (
        f"is declared {declared} and holds the float {value}, which is {shorter(decimals.text(exact))} exactly: "
        "write decimals or texts at the source"
    )


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


def _decimals(array: pa.Array, declared: DecimalType) -> pa.Array:
    """Numbers, or their texts, as decimals. Arrow is quick, and refuses some that would fit. Raises NoDecimal."""
    if pa.types.is_floating(array.type):
        return _exact(array.cast(pa.float64()), declared)
    try:
        return as_decimals(array, arrow_type(declared))
    except pa.ArrowInvalid:
        return _exact(array, declared)


def _exact(array: pa.Array, declared: DecimalType) -> pa.Array:
    """As _decimals, value by value. Raises NoDecimal."""
    numbers = [Decimal(x) if isinstance(x, float) else x for x in array.to_pylist()]
    exact = [None if x is None else decimals.from_units(decimals.units(x, declared), declared.scale) for x in numbers]
    return pa.array(exact, arrow_type(declared))


def _counted(array: pa.Array, declared: DecimalType) -> pa.Array:
    counts = [None if x is None else int.from_bytes(x, "big", signed=True) for x in array.to_pylist()]
    for count in counts:
        if count is not None and abs(count) >= 10**declared.precision:
            units = f"{count:,}" if abs(count) < 10**60 else "more"
            raise decimals.NoDecimal(f"{units} units of its last digit; {declared} has {declared.precision} digits")
    exact = [None if x is None else decimals.from_units(x, declared.scale) for x in counts]
    return pa.array(exact, arrow_type(declared))


def _scaled(array: pa.Array, declared: DecimalType) -> pa.Array:
    scales, numbers = (array.field(name).to_pylist() for name in ("scale", "value"))
    valid = array.is_valid().to_pylist()
    exact = [
        decimals.from_units(variable_scale(scale, number, declared), declared.scale) if is_valid else None
        for scale, number, is_valid in zip(scales, numbers, valid, strict=True)
    ]
    return pa.array(exact, arrow_type(declared))


def variable_scale(scale: object, number: object, declared: DecimalType) -> int:
    """A number beside its own scale, in units of the last digit of the type declared.

    Raises:
        NoDecimal: It is not exactly one of the type's values, or nothing of that kind.
        NotBase64: It is a text, and not base64.
    """
    if not isinstance(scale, int) or isinstance(scale, bool) or not isinstance(number, str | bytes):
        raise decimals.NoDecimal("which is no {scale, value} of a decimal")
    data = encoded_bytes.decoded(number) if isinstance(number, str) else number
    if len(data) > _MOST_BYTES:
        raise decimals.NoDecimal(f"a number of {len(data):,} bytes; {declared} has {declared.precision} digits")
    count, shift = int.from_bytes(data, "big", signed=True), declared.scale - scale
    if abs(shift) <= MAX_PRECISION:
        tens: int = 10 ** abs(shift)
        units, rest = (count * tens, 0) if shift >= 0 else divmod(count, tens)
        if not rest and abs(units) < 10**declared.precision:
            return units
    if count and abs(scale) > _MOST_SCALE:
        raise decimals.NoDecimal(f"whose scale is {shorter(f'{scale:,}')}; that of {declared} is {declared.scale}")
    sign, digits, _ = Decimal(count).as_tuple()
    return decimals.units(Decimal((sign, digits, -scale if count else 0)), declared)


def _bytes(array: pa.Array) -> pa.Array:
    return pa.array([None if x is None else encoded_bytes.decoded(x) for x in array.to_pylist()], pa.binary())


def _json(array: pa.Array) -> pa.Array:
    return jsontexts.of_nested(array) if jsontexts.is_nested(array.type) else jsontexts.of_texts(array)


def _dates(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.date32())
    except pa.ArrowInvalid:  # 2013-01-02Z, as Debezium writes an io.debezium.time.IsoDate
        return pc.replace_substring_regex(array, r"^([0-9-]{10})Z$", r"\1").cast(pa.date32())


def _timestamps(array: pa.Array) -> pa.Array:
    for unit in ("us", "ns"):
        for zone in ("UTC", None):
            try:
                return array.cast(pa.timestamp(unit, zone)).cast(_UTC)
            except pa.ArrowInvalid:
                continue
    zoned = pc.match_substring_regex(array, ZONED)
    if len(array) == 1 or not pc.any(zoned).as_py() or pc.all(zoned).as_py():
        raise pa.ArrowInvalid("not all of them times")
    nothing = pa.scalar(None, pa.string())
    with_zone, without = pc.if_else(zoned, array, nothing), pc.if_else(zoned, nothing, array)
    return pc.coalesce(_timestamps(with_zone), _timestamps(without))


_PARSERS: dict[ColumnType, _Conversion] = {
    ColumnType.BOOL: lambda array: array.cast(pa.bool_()),
    ColumnType.INT: _ints,
    ColumnType.FLOAT: _floats,
    ColumnType.DATE: _dates,
    ColumnType.TIMESTAMP: _timestamps,
    ColumnType.BYTES: _bytes,
    ColumnType.JSON: _json,
}
