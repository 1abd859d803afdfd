"""Places in an order of several fields as bytes, which compare as the fields do one after the other.

A field is a byte that says whether it is null, and its value: whole numbers, times and the like with the most
significant byte first and the sign turned, texts with their zero bytes escaped and two more at their end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import first_true, of_bools, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools, contiguous, values
from tidemark.model.place import TEXTS, Text

_NULL, _VALUE, _LAST = 0, 1, 2
_HALF = 1 << 63
_EMPTY, _UNKNOWN = scalar_of("", pa.string()), scalar_of(None, pa.string())
_PAIR = r'^\s*\[\s*(?:null|"?(?P<commit>[0-9]+)"?)\s*,\s*(?:null|"?[0-9]+"?)\s*\]\s*$'
_NOTHING, _END = scalar_of(b"", pa.binary()), scalar_of(b"\0\0", pa.binary())


class NoPlace(Exception):
    """The value of a field in row `index` is not what its text must be."""

    def __init__(self, name: str, reason: str, index: int) -> None:
        super().__init__(name, reason, index)
        self.name, self.reason, self.index = name, reason, index


@dataclass(frozen=True)
class Field:
    """A column that puts rows in order.

    Attributes:
        text: What its texts are, where they are not compared by their characters.
        instead: The field whose number counts where this one is null.
    """

    name: str
    array: pa.Array
    text: Text | None = None
    instead: Field | None = None

    @classmethod
    def of(cls, name: str, array: pa.Array, instead: Field | None = None) -> Field:
        """A field of messages by its name, or another column."""
        return cls(name, array, TEXTS.get(name) if pa.types.is_string(array.type) else None, instead)


def places(fields: Sequence[Field], ranks: Bools | None = None, last: Bools | None = None) -> pa.BinaryArray:
    """The places of rows.

    Args:
        fields: The columns, most significant first.
        ranks: Which of the rows with equal fields come after the others.
        last: Of which rows the last field, and every field that is null, comes after all values.

    Raises:
        NoPlace: A text is not what it must be.
    """
    cells = []
    for number, field in enumerate(fields):
        array, text = contiguous(field.array), field.text
        if field.instead is not None or text is Text.SEQUENCE:
            array, text = _numbers(field), Text.NUMBER
        above = None
        if last is not None:
            above = last if number == len(fields) - 1 else last & np.asarray(values(array.is_null()), np.bool_)
        cells += _field(field.name, array, text, above)
    if ranks is not None:
        cells.append(_rows_of(ranks.astype(np.uint8)[:, None]))
    return pc.binary_join_element_wise(*cells, _NOTHING)


def _numbers(field: Field) -> pa.Array:
    """Numbers as texts of their digits: of a field, else of the one instead of it. Raises NoPlace."""
    array = contiguous(field.array)
    if field.text is Text.SEQUENCE:
        array = _commits(field.name, array)
    array = array.cast(pa.string())
    return array if field.instead is None else pc.coalesce(array, _numbers(field.instead))


def _commits(name: str, sequences: pa.Array) -> pa.Array:
    """Of pairs of LSNs the first ones, the last commits, as texts of their digits. Raises NoPlace."""
    pair = pc.extract_regex(sequences, _PAIR)
    wrong = pc.and_(sequences.is_valid(), pair.is_null())
    if (at := first_true(wrong)) >= 0:
        raise NoPlace(name, f"holds {sequences[at].as_py()!r}, which is not {Text.SEQUENCE}", at)
    commits = pair.field(0)
    return pc.if_else(pc.and_(pair.is_valid(), pc.not_equal(commits, _EMPTY)), commits, _UNKNOWN)


def _field(name: str, array: pa.Array, text: Text | None, above: Bools | None) -> list[pa.Array]:
    """The bytes of a column, as arrays to be joined; of rows `above` those of what comes after all values."""
    missing = np.asarray(values(array.is_null()), np.bool_)
    if above is not None:
        missing = missing | above
    marks = np.where(missing, _NULL, _VALUE).astype(np.uint8)
    if above is not None:
        marks[above] = _LAST
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        cells = pc.if_else(of_bools(~missing), _texts(name, array, text), _NOTHING)
        return [_rows_of(marks[:, None]), cells]
    digits = _bytes_of(array)
    digits[missing] = 0
    return [_rows_of(np.concatenate([marks[:, None], digits], axis=1))]


def _bytes_of(array: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of numbers, which compare as these do. Whatever they are where a number is null."""
    if pa.types.is_decimal(array.type):
        raw = np.frombuffer(array.buffers()[1], np.uint8, 16 * len(array), 16 * array.offset).reshape(-1, 16)
        digits = raw[:, ::-1].copy()
        digits[:, 0] ^= 0x80
        return digits
    if pa.types.is_floating(array.type):
        floats = np.asarray(values(array), np.float64)
        bits = floats.view(np.uint64)
        bits = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(_HALF))
        numbers = np.where(np.isnan(floats), np.uint64(0), bits)
    else:
        numbers = np.asarray(values(array), np.int64).view(np.uint64) ^ np.uint64(_HALF)
    return numbers.astype(">u8").view(np.uint8).reshape(-1, 8).copy()


def _rows_of(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    """Rows of as many bytes each."""
    data = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.Array.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, data]).cast(pa.binary())


def _texts(name: str, array: pa.Array, text: Text | None) -> pa.Array:
    """The bytes of texts, or of bytes. Raises NoPlace."""
    if text is None:
        escaped = pc.replace_substring(array.cast(pa.binary()), pattern=b"\0", replacement=b"\0\xff")
        return pc.binary_join_element_wise(escaped, _END, _NOTHING)
    return _by_value(name, array, text, _READ[text])


def _by_value(name: str, array: pa.Array, text: Text, read: Callable[[str], bytes]) -> pa.Array:
    """What each different text is read as. Raises NoPlace for one that is something else."""
    encoded = array.dictionary_encode()
    try:
        return of_values([read(value) for value in encoded.dictionary.to_pylist()], pa.binary()).take(encoded.indices)
    except ValueError as error:
        at = first_true(pc.equal(array, scalar_of(error.args[0], array.type)))
        raise NoPlace(name, f"holds {error.args[0]!r}, which is not {text}", at) from None


_BINLOG = re.compile(r"(.*?)\.?([0-9]*)", re.DOTALL)
_SEPARATED = re.compile(r"[:./ ]+")


def binlog_base(name: str) -> str:
    """The name of a binlog file without its number."""
    match = _BINLOG.fullmatch(name)
    return match[1] if match else name


def _of_binlog(name: str) -> bytes:
    match = _BINLOG.fullmatch(name)
    base, digits = (match[1], match[2]) if match else (name, "")
    return base.encode().replace(b"\0", b"\0\xff") + b"\0\0" + _of_number(digits or "0")


def _of_number(digits: str) -> bytes:
    """The digits of a number behind how many they are. Raises ValueError for any other text."""
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(digits)
    significant = digits.lstrip("0")
    return len(significant).to_bytes(4, "big") + significant.encode()


def _of_lsn(text: str) -> bytes:
    """Hexadecimal numbers one after the other, and where they end."""
    parts = [part.lower().removeprefix("0x").lstrip("0") for part in _SEPARATED.split(text.strip())]
    if not text.strip() or any(part.strip("0123456789abcdef") for part in parts):
        raise ValueError(text)
    return b"".join((len(part) + 1).to_bytes(4, "big") + part.encode() for part in parts) + b"\0\0\0\0"


_READ: dict[Text, Callable[[str], bytes]] = {
    Text.BINLOG: _of_binlog,
    Text.NUMBER: _of_number,
    Text.LSN: _of_lsn,
}
