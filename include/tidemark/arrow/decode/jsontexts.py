"""Columns as canonical JSON (model/canonical_json.py): texts that are JSON, and Arrow's nested values.

    struct        an object of all its fields, null ones as null      int, decimal, finite float    a number
    list          an array                                            string                        a text
    map           an object; its keys are texts                       binary                        a text, base64
    bool, null    true, false, null                                   date, timestamp               a text, ISO 8601 UTC

A float becomes the shortest number that reads back as it; one of 16 bits keeps all its digits, which are few. What has
no JSON is a Misfit: NaN, a name twice, a time of nanoseconds or beyond the years 1 to 9999, other types (times of day,
durations, maps by anything but texts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tidemark.arrow.rows.arrays import of_values
from tidemark.arrow.rows.columns import contiguous
from tidemark.model import canonical_json, encoded_bytes
from tidemark.model.canonical_json import MAX_LEVELS, NotJson
from tidemark.model.epoch import FIRST_DAY, LAST_DAY
from tidemark.model.instant import format_instant

Texts = list[str]
DAY = 86_400_000_000


def of_texts(array: pa.Array) -> pa.Array:
    """Texts that are JSON as their canonical texts; JSON's null is null. Raises NotJson."""
    texts = [None if text is None else or_null(canonical_json.canonical(text)) for text in array.to_pylist()]
    return of_values(texts, pa.string())


def or_null(canonical: str) -> str | None:
    """A canonical text, None for that of null."""
    return None if canonical == "null" else canonical


def of_nested(array: pa.Array) -> pa.Array:
    """Structs, lists and maps as canonical texts; null stays null. Raises NotJson."""
    return of_values([or_null(text) for text in _texts(array, 0)], pa.string())


def is_nested(of: pa.DataType) -> bool:
    """Whether it is a type of several values, all of types that JSON has."""
    types = pa.types
    if types.is_struct(of):
        return all(_has_json(of.field(at).type) for at in range(of.num_fields))
    if types.is_map(of):
        return bool(types.is_string(of.key_type) or types.is_large_string(of.key_type)) and _has_json(of.item_type)
    return _is_list(of) and _has_json(of.value_type)


def _is_list(of: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of))


def _has_json(of: pa.DataType) -> bool:
    if pa.types.is_dictionary(of):
        return _has_json(of.value_type)
    return is_nested(of) or any(is_of(of) for is_of, _ in _LEAVES)


def _texts(array: pa.Array | pa.ChunkedArray, level: int) -> Texts:
    """The canonical text of each value, `null` for null."""
    array = contiguous(array)
    of = array.type
    if pa.types.is_dictionary(of):
        return _texts(array.dictionary_decode(), level)
    if not is_nested(of):
        write = next(write for is_of, write in _LEAVES if is_of(of))
        return ["null" if value is None else value for value in write(array)]
    if level == MAX_LEVELS:
        raise NotJson(f"more than {MAX_LEVELS} levels of arrays and objects")
    if pa.types.is_struct(of):
        written = _structs(array, level)
    else:
        written = _maps(array, level) if pa.types.is_map(of) else _lists(array, level)
    if not array.null_count:
        return written
    return [text if known else "null" for text, known in zip(written, array.is_valid().to_pylist(), strict=True)]


def _structs(array: pa.Array, level: int) -> Texts:
    names = [field.name for field in array.type]
    if not names:
        return ["{}"] * len(array)
    fields = dict(zip(names, array.flatten(), strict=True))
    if len(fields) < len(names):
        raise NotJson(f"one name twice in {shortened(array.type)}")
    columns = []
    for name in canonical_json.in_order(names):
        head = f"{canonical_json.text(name)}:"
        columns.append([head + text for text in _texts(fields[name], level + 1)])
    return [f"{{{','.join(row)}}}" for row in zip(*columns, strict=True)]


def _lists(array: pa.Array, level: int) -> Texts:
    starts, stops, first, last = _places(array)
    items = _texts(array.values.slice(first, last - first), level + 1)
    return [f"[{','.join(items[a - first : b - first])}]" for a, b in zip(starts, stops, strict=True)]


def _maps(array: pa.Array, level: int) -> Texts:
    starts, stops, first, last = _places(array)
    names = array.keys.slice(first, last - first).to_pylist()
    items = list(zip(names, _texts(array.items.slice(first, last - first), level + 1), strict=True))
    return [canonical_json.members(items[a - first : b - first]) for a, b in zip(starts, stops, strict=True)]


def _places(array: pa.Array) -> tuple[Sequence[int], Sequence[int], int, int]:
    """Where in its values each list begins and ends, and where the first begins and the last ends; a null is empty."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        starts = [(array.offset + at) * size for at in range(len(array))]
        stops = [start + size for start in starts]
    else:
        offsets = array.offsets.to_pylist()
        starts, stops = offsets[:-1], offsets[1:]
    if array.null_count:
        known = array.is_valid().to_pylist()
        stops = [stop if here else start for start, stop, here in zip(starts, stops, known, strict=True)]
    return starts, stops, starts[0] if starts else 0, max(stops, default=0)


def shortened(of: pa.DataType) -> str:
    """A type for a message: its start, if it is long."""
    return str(of) if len(str(of)) <= 80 else f"{str(of)[:77]}..."


def _each(write: Callable[[Any], str]) -> Callable[[pa.Array], list[str | None]]:
    return lambda array: [None if value is None else write(value) for value in array.to_pylist()]


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise NotJson(f"{value}, which is no number of JSON")
    return canonical_json.number(repr(value))


def _single(array: pa.Array) -> list[str | None]:
    """Floats of 32 bits, whose 0.1 is the shortest text of its own type, not of the double it becomes; or of 16."""
    return [None if text is None else _shortest(text) for text in array.cast(pa.string()).to_pylist()]


def _shortest(text: str) -> str:
    return canonical_json.number(text) if math.isfinite(float(text)) else _float(float(text))


def _days(array: pa.Array) -> list[str | None]:
    return [
        None if days is None else f'"{_moment(days * DAY)[:10]}"'
        for days in array.cast(pa.date32()).cast(pa.int32()).to_pylist()
    ]


def _moments(array: pa.Array) -> list[str | None]:
    micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    return [None if at is None else f'"{_moment(at)}"' for at in micros]


def _moment(micros: int) -> str:
    if not FIRST_DAY * DAY <= micros < (LAST_DAY + 1) * DAY:
        raise NotJson(f"a time beyond the years 1 to 9999: {micros} µs since the epoch")
    return format_instant(micros)


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[str | None]]], ...] = (
    (pa.types.is_null, lambda array: [None] * len(array)),
    (pa.types.is_boolean, _each(lambda value: "true" if value else "false")),
    (pa.types.is_integer, _each(str)),
    (pa.types.is_float64, _each(_float)),
    (pa.types.is_floating, _single),
    (pa.types.is_decimal, _each(lambda value: canonical_json.number(f"{value:f}"))),
    (pa.types.is_date, _days),
    (pa.types.is_timestamp, _moments),
    *((is_text, _each(canonical_json.text)) for is_text in (pa.types.is_string, pa.types.is_large_string)),
    (pa.types.is_string_view, _each(canonical_json.text)),
    *(
        (is_bytes, _each(lambda value: f'"{encoded_bytes.encoded(value)}"'))
        for is_bytes in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    ),
)
"""How values of the simple types are written."""
