"""Answers as rows of plain values, exactly: what JSON, CSV and tables for people are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.plain import Plain, plain_rows
from tidemark.arrow.schema import arrow_type, plain_scalars
from tidemark.errors import InvalidUsage
from tidemark.model import canonical_json, decimals, encoded_bytes
from tidemark.model.canonical_json import NotJson
from tidemark.model.collection import Collection, ColumnType, DecimalType
from tidemark.model.instant import from_datetime
from tidemark.model.update import Scalar
from tidemark.plan.tasks import KeyRange

_TRUTHS = {"true": True, "false": False}


@dataclass
class Matching:
    """The rows of an answer that fit `conditions`, as plain values, at most `limit` (0: all), as the answer comes.

    Conditions are values by column, as text (`null` is null, but in a text column). `json` names the columns of JSON:
    Arrow does not know them from texts. Once iterated to the end, `count` says how many rows fit in all. Raises
    InvalidUsage for text that is no value of its column's type.
    """

    batches: Iterable[pa.RecordBatch]
    conditions: Mapping[str, str] = field(default_factory=dict)
    limit: int = 0
    json: frozenset[str] = frozenset()
    count: int = 0

    def __iter__(self) -> Iterator[Plain]:
        for batch in self.batches:
            rows = _filtered(batch, self.conditions, self.json)
            wanted = max(0, self.limit - self.count) if self.limit else rows.num_rows
            self.count += rows.num_rows
            yield from plain_rows(rows.slice(0, wanted))


def keys_within(collection: Collection, conditions: Mapping[str, str]) -> KeyRange:
    """The narrowest range of keys that holds all rows which fit the conditions."""
    first: tuple[Scalar, ...] = ()
    for column in collection.key:
        if column.name not in conditions:
            break
        of_json = column.name in json_columns(collection)
        value = _value(column.name, conditions[column.name], arrow_type(column.type), of_json)
        first = (*first, *plain_scalars(pa.array([value])))
    return KeyRange(first, (*first[:-1], _successor(first[-1]))) if first else KeyRange()


def json_columns(collection: Collection) -> frozenset[str]:
    """The names of the columns of JSON."""
    return frozenset(column.name for column in collection.columns if column.type is ColumnType.JSON)


def _successor(value: Scalar) -> Scalar:
    """The next value in the order of keys; there is none between."""
    return value + "\0" if isinstance(value, str) else int(value or 0) + 1


def _filtered(batch: pa.RecordBatch, conditions: Mapping[str, str], json: frozenset[str]) -> pa.RecordBatch:
    for name, text in conditions.items():
        column = batch.column(name)
        if text == "null" and (name in json or not pa.types.is_string(column.type)):
            batch = batch.filter(pc.is_null(column))
        else:
            batch = batch.filter(pc.equal(column, _value(name, text, column.type, name in json)))
    return batch


def _far(text: str) -> int | None:
    """A time or day beyond the years 1 to 9999, which is shown as the number it is; eight digits are a date."""
    return int(text) if re.fullmatch(r"-\d{6,19}|\d{7}|\d{9,19}", text) else None


def _value(name: str, text: str, type_: pa.DataType, of_json: bool = False) -> pa.Scalar:
    try:
        if of_json:
            return pa.scalar(canonical_json.canonical(text), type_)
        if pa.types.is_binary(type_):
            return pa.scalar(encoded_bytes.decoded(text), type_)
        if pa.types.is_decimal(type_):
            units = decimals.units(text, DecimalType(type_.precision, type_.scale))
            return pa.scalar(decimals.from_units(units, type_.scale), type_)
        if pa.types.is_timestamp(type_):
            return pa.scalar(_far(text) or from_datetime(datetime.fromisoformat(text)), pa.int64()).cast(type_)
        if pa.types.is_date32(type_):
            days = _far(text)
            return (
                pa.scalar(date.fromisoformat(text), type_) if days is None else pa.scalar(days, pa.int32()).cast(type_)
            )
        if pa.types.is_boolean(type_):
            return pa.scalar(_TRUTHS[text.lower()], type_)
        if pa.types.is_integer(type_):
            return pa.scalar(int(text), type_)
        if pa.types.is_floating(type_):
            return pa.scalar(float(text), type_)
    except NotJson as error:
        raise InvalidUsage(f"column {name} is json; {text!r} holds {error}") from None
    except (ValueError, KeyError, ArithmeticError, pa.ArrowInvalid):
        raise InvalidUsage(f"column {name} is of type {type_}; {text!r} is no value of it") from None
    return pa.scalar(text, type_)
