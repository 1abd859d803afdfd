"""Constants that a collection file compares columns with, as the columns hold them.

Dates are days and timestamps are microseconds since the epoch, as they are stored: so every value of a column can be
judged, also those that no calendar of Python reaches. Decimals are whole numbers of their last digit, as Great
Expectations would make floats of them. Bytes are base64, json is its canonical text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model import canonical_json, decimals, encoded_bytes
from tidemark.model.collection import Collection, ColumnType, DecimalType, ValueType
from tidemark.model.instant import digits_of_a_date, from_datetime
from tidemark.quality.refusal import shown

Constant = bool | int | float | str

MOST = 2**63 - 1
_DIGITS = 18
_EXACT_IN_FLOAT = 15
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_EPOCH_DAY = date(1970, 1, 1)


def number(value: Any) -> bool:
    """Whether it is a number that a column could hold; a truth is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -MOST - 1 <= value <= MOST if isinstance(value, int) else math.isfinite(value)


def constant(value: Any, of_column: ValueType) -> Constant:
    """The value as a column of this type holds it. Raises InvalidUsage if it holds none such."""
    if isinstance(of_column, DecimalType):
        return _units(value, of_column)
    if of_column in (ColumnType.BYTES, ColumnType.JSON):
        return _read(value, of_column)
    fits, what = _KINDS[of_column]
    if not fits(value):
        raise InvalidUsage(f"{shown(value)} is no {what}, which the column holds")
    if of_column is ColumnType.TIMESTAMP:
        return _micros(value)
    return _days(value) if of_column is ColumnType.DATE else value


def constant_of(collection: Collection, column: str, value: Any) -> Constant:
    """The value as that column of the collection holds it."""
    return constant(value, next(declared.type for declared in collection.columns if declared.name == column))


def scaled(value: Any, of: DecimalType) -> int | float:
    """A number that is compared with figures of a column of decimals (its mean, say), in units of their last digit."""
    with localcontext(prec=100):
        exact = _written(value, of).scaleb(of.scale)
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def _units(value: Any, of: DecimalType) -> int:
    try:
        units = decimals.units(_written(value, of), of)
    except decimals.NoDecimal as error:
        raise InvalidUsage(f"{shown(value)} is no {of}: it is a number {error}") from None
    if abs(units) >= 10**_DIGITS:
        raise InvalidUsage(f"{shown(value)} has more than {_DIGITS} digits, counting {of.scale} behind the point")
    return units


def _written(value: Any, of: DecimalType) -> Decimal:
    """The number as it was written, which a float shows by its shortest text unless that was long."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidUsage(f"{shown(value)} is no number, which the column holds")
    text = repr(value) if isinstance(value, float) else str(value)
    if not decimals.NUMBER.fullmatch(text):
        raise InvalidUsage(f"{shown(value)} is no {of}; write 12.50, or '12.50'")
    if isinstance(value, float) and len(Decimal(text).as_tuple().digits) > _EXACT_IN_FLOAT:
        raise InvalidUsage(f"{shown(value)} has more digits than a float keeps; write it in quotes")
    return Decimal(text)


def _read(value: Any, of: ColumnType) -> str:
    read, what = _READERS[of]
    if not isinstance(value, str):
        raise InvalidUsage(f"{shown(value)} is no {what}, which the column holds")
    try:
        return read(value)
    except ValueError as error:
        raise InvalidUsage(f"{shown(value)} is no {what}: {error}") from None


def _micros(value: int | str) -> int:
    """A moment in microseconds; one without an offset is UTC."""
    _refuse_digits_of_a_date(value)
    if not isinstance(value, str):
        return value
    try:
        micros = int(value) if _WHOLE.fullmatch(value) else from_datetime(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        raise InvalidUsage(
            f"not a time: {shown(value)}; write 2013-01-02, 2013-01-02T03:04:05Z or microseconds"
        ) from None
    if not number(micros):
        raise InvalidUsage(f"time {shown(value)} is outside of what 64 bits of microseconds hold")
    return micros


def _refuse_digits_of_a_date(value: int | str) -> None:
    """Raise InvalidUsage for 20130102, which YAML has as a number: it may be meant as a date or as a count."""
    if day := digits_of_a_date(str(value)):
        raise InvalidUsage(f"{shown(value)} is a date or a count since 1970: write {day}")


def _days(value: int | str) -> int:
    _refuse_digits_of_a_date(value)
    if not isinstance(value, str):
        return value
    try:
        return int(value) if _WHOLE.fullmatch(value) else (date.fromisoformat(value) - _EPOCH_DAY).days
    except ValueError:
        raise InvalidUsage(f"not a date: {shown(value)}; write 2013-01-02") from None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and number(value))


_READERS: dict[ColumnType, tuple[Callable[[str], str], str]] = {
    ColumnType.BYTES: (lambda text: encoded_bytes.encoded(encoded_bytes.decoded(text)), "text in base64 (quote it)"),
    ColumnType.JSON: (canonical_json.canonical, "text that is JSON (quote it)"),
}
_KINDS: dict[ColumnType, tuple[Callable[[Any], bool], str]] = {
    ColumnType.BOOL: (lambda value: isinstance(value, bool), "truth (true or false)"),
    ColumnType.INT: (number, "number"),
    ColumnType.FLOAT: (number, "number"),
    ColumnType.STRING: (_is_text, "text (quote it)"),
    ColumnType.DATE: (_is_moment, "date"),
    ColumnType.TIMESTAMP: (_is_moment, "time"),
}
