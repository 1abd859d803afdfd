"""A value to compare with, in the type of its column: from text as answers write it, or from Python."""

from __future__ import annotations

import json
import operator
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tidemark.arrow.rows.arrays import scalar_of
from tidemark.arrow.rows.schema import ARROW_TYPES
from tidemark.errors import InvalidUsage, shortened
from tidemark.model import canonical_json, decimals, encoded_bytes
from tidemark.model.canonical_json import NotJson
from tidemark.model.collection import DecimalType
from tidemark.model.instant import digits_of_a_date, from_datetime

_TRUTHS = {"true": True, "false": False}
_TRUTHS_OF_NUMPY = ("bool_", "bool")
"""What a truth of numpy is called, by its release: data frames give them. numpy itself need not be here."""
_EPOCH = date(1970, 1, 1)
_SHOWN = 200
"""Characters of a value that a refusal shows."""


def value_of(name: str, value: Any, type_: pa.DataType, of_json: bool = False) -> pa.Scalar:
    """The value as one of the column `name`, exactly; None is null.

    Text is read as JSON, CSV and tables for people write values (arrow/rows/plain.py): times in ISO 8601, decimals in
    their
    digits, bytes as base64. Raises InvalidUsage for what is no value of the column's type, or only nearly one.
    """
    if value is None:
        return pa.nulls(1, type_)[0]
    try:
        if of_json:
            text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
            return scalar_of(canonical_json.canonical(text), type_)
        return _of_text(value, type_) if isinstance(value, str) else _of_python(value, type_)
    except NotJson as error:
        raise InvalidUsage(f"column {name} is json; {shortened(repr(value), _SHOWN)} holds {error}") from None
    except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowInvalid, pa.ArrowTypeError):
        text = shortened(repr(value), _SHOWN)
        raise InvalidUsage(f"column {name} is of type {_called(type_)}; {text} is no value of it") from None


def _called(type_: pa.DataType) -> str:
    """A type as a file declares it."""
    if pa.types.is_decimal(type_):
        return str(DecimalType(type_.precision, type_.scale))
    return next((str(of) for of, arrow in ARROW_TYPES.items() if arrow == type_), str(type_))


def _of_text(text: str, type_: pa.DataType) -> pa.Scalar:
    if pa.types.is_binary(type_):
        return scalar_of(encoded_bytes.decoded(text), type_)
    if pa.types.is_decimal(type_):
        units = decimals.units(text, DecimalType(type_.precision, type_.scale))
        return scalar_of(decimals.from_units(units, type_.scale), type_)
    if pa.types.is_timestamp(type_):
        return scalar_of(_far(text) or from_datetime(datetime.fromisoformat(text)), type_)
    if pa.types.is_date32(type_):
        days = _far(text)
        return scalar_of((date.fromisoformat(text) - _EPOCH).days if days is None else days, type_)
    if pa.types.is_boolean(type_):
        return scalar_of(_TRUTHS[text.lower()], type_)
    if pa.types.is_integer(type_):
        return scalar_of(int(_number(text)), type_)
    if pa.types.is_floating(type_):
        return scalar_of(float(_number(text)), type_)
    return scalar_of(text, type_)


def _number(text: str) -> str:
    """The text, if a file may write a number so. Python reads more: blanks around it, 1_000, digits of any script."""
    if "_" in text or not text.isascii() or text != text.strip():
        raise ValueError
    return text


def _of_python(value: Any, type_: pa.DataType) -> pa.Scalar:
    """Of nothing that would be rounded or guessed: TypeError for a float beside a decimal, a truth beside a number."""
    if type(value).__name__ in _TRUTHS_OF_NUMPY:
        value = bool(value)
    if isinstance(value, bool) != pa.types.is_boolean(type_):
        raise TypeError
    if pa.types.is_decimal(type_):
        exact = value if isinstance(value, Decimal) else operator.index(value)
        units = decimals.units(exact, DecimalType(type_.precision, type_.scale))
        return scalar_of(decimals.from_units(units, type_.scale), type_)
    if pa.types.is_timestamp(type_):
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        micros = from_datetime(value) if isinstance(value, datetime) else operator.index(value)
        return scalar_of(micros, type_)
    if pa.types.is_date32(type_):
        if isinstance(value, datetime):
            raise TypeError
        return scalar_of((value - _EPOCH).days, type_) if isinstance(value, date) else pa.scalar(value, type_)
    if pa.types.is_integer(type_):
        return scalar_of(operator.index(value), type_)
    if pa.types.is_floating(type_):
        return scalar_of(float(value), type_)
    return scalar_of(value, type_)


def _far(text: str) -> int | None:
    """A time or day beyond the years 1 to 9999, which is shown as the number it is; eight digits are a date."""
    if digits_of_a_date(text) and len(text) > len("20130102"):
        raise ValueError  # a time or microseconds
    return int(text) if re.fullmatch(r"-\d{6,19}|\d{7}|\d{9,19}", text) else None
