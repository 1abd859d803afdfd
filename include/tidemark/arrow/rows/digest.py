"""The digest of rows: by it a batch is known to hold what was written, whichever way it is cut into parts.

This text is normative. All arithmetic is on unsigned 64-bit integers, modulo 2^64; `^` is exclusive or, `>>`
shifts in zeros, byte strings are read little-endian.

    mix(x):  x = x ^ (x >> 30);  x = x * 0xBF58476D1CE4E5B9
             x = x ^ (x >> 27);  x = x * 0x94D049BB133111EB
             x = x ^ (x >> 31)

    code of a cell, by the type of its column:
        null of any type    0x9FB21C651E98DF25
        bool                0 or 1
        int                 its two's complement
        timestamp           two's complement of its microseconds since the epoch, UTC
        date                two's complement of its days since the epoch
        float               the bits of the IEEE double; -0.0 counts as 0.0, every NaN as 0x7FF8000000000000
        string              its UTF-8 bytes, L of them, are filled up with zero bytes to a multiple of 8
                            and cut into words w(1), w(2), … of 8 bytes (none if L is 0); the code is
                            mix(L ^ (mix(w(1) ^ mix(1)) + mix(w(2) ^ mix(2)) + …))
        json                that of its canonical text, as a string
        bytes               as a string's, with its bytes in place of the UTF-8
        decimal(p, s)       n = the number times 10^s, two's complement in 16 bytes, little-endian: as a string's of
                            these 16 bytes. So it is another one once s has changed, and the same if only p has

    hash of a row:  h = 0x9E3779B97F4A7C15, then for each of its columns but `_bucket`, `_diff` and `_source`, in the
                    order of the schema (schema.py): h = mix(h ^ code)

The columns, and their types, are those of the part as it was written: where the declaration has changed since, the same
rows in today's columns have another sum.

    digest of rows of updates:  the sum of hash * `_diff` (its two's complement)
    digest of rows of facts:    the sum of hash

A digest *forwarded to* s is that of the same rows with `_time` and `_event_time` replaced by the greater of
themselves and s. Consolidating rows, or cutting and merging parts, leaves the sum as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemark.arrow.rows.columns import Ints, contiguous, encoded_texts, rows_within, valid, values, words
from tidemark.arrow.rows.schema import BUCKET, DIFF, EVENT_TIME, SOURCE, TIME

Words = npt.NDArray[np.uint64]

SEED = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0x9FB21C651E98DF25)
BLOCK_ROWS = 32_768
"""Rows hashed at a time, so that the intermediate arrays stay in the processor's cache."""
BLOCK_BYTES = 8 * 2**20
"""Most bytes hashed at a time: the intermediate arrays of strings are eight times as large as these."""
LONG = 65_536
"""Bytes of a string from which on it is hashed by itself, and words of it hashed at a time."""

_MASKS = np.array([2 ** (8 * length) - 1 for length in range(9)], np.uint64)


def digest(table: pa.Table | pa.RecordBatch, *, forward: int = 0) -> int:
    """The digest of a table of updates, or of facts (it has no `_diff`), forwarded to `forward`."""
    total = 0
    for block in _blocks(table):
        hashes = row_hashes(block, forward=forward)
        if DIFF in block.schema.names:
            hashes *= values(contiguous(block.column(DIFF))).view(np.uint64)
        total += int(hashes.sum())
    return total % 2**64


def _blocks(table: pa.Table | pa.RecordBatch) -> Iterator[pa.Table | pa.RecordBatch]:
    for start in range(0, table.num_rows, BLOCK_ROWS):
        block = table.slice(start, BLOCK_ROWS)
        while block.num_rows:
            length = rows_within(block, BLOCK_BYTES, least=1)
            yield block.slice(0, length)
            block = block.slice(length)


def row_hashes(table: pa.Table | pa.RecordBatch, *, forward: int = 0) -> Words:
    """One hash a row, over all columns but `_diff` and `_source`: the file a row belongs to does not say what it is."""
    hashes = np.full(table.num_rows, SEED)
    for name in table.schema.names:
        if name in (BUCKET, DIFF, SOURCE):
            continue
        array = contiguous(table.column(name))
        if forward and name in (TIME, EVENT_TIME):
            hashes ^= np.maximum(values(array), forward).view(np.uint64)
        else:
            hashes ^= _codes(array)
        _mix(hashes)
    return hashes


def _mix(x: Words) -> Words:
    """The finaliser of splitmix64, in place."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _codes(array: pa.Array) -> Words:
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        codes = _string_codes(array)
    else:
        codes = _decimal_codes(array) if pa.types.is_decimal(array.type) else _fixed_codes(array)
    known = valid(array)
    return codes if known is None else np.where(known, codes, NULL)


def _fixed_codes(array: pa.Array) -> Words:
    cells = values(array)
    if pa.types.is_floating(array.type):
        cells = np.where(np.isnan(cells), np.nan, cells + 0.0)  # -0.0 + 0.0 is 0.0, np.nan the quiet NaN
        return cells.view(np.uint64)
    return cells.astype(np.int64, copy=False).view(np.uint64)


def _decimal_codes(array: pa.Array) -> Words:
    halves = words(array) ^ _positions(2)
    codes = _mix(halves[:, 0].copy()) + _mix(halves[:, 1].copy())
    return _mix(codes ^ np.uint64(16))


def _string_codes(array: pa.Array) -> Words:
    """All words of all strings in one array: the cost is linear in bytes however lengths are spread."""
    if len(array) == 0:
        return np.empty(0, np.uint64)
    offsets, window = _window(array)
    lengths = np.diff(offsets)
    if lengths.max() <= 8:
        word = window[offsets[:-1]] & _MASKS[lengths]
        codes = np.where(lengths > 0, _mix(word ^ _positions(1)), np.uint64(0))
    elif not array.null_count and (encoded := encoded_texts(array)) is not None:
        return np.take(_string_codes(encoded.dictionary), values(encoded.indices))
    else:
        codes = _sums_of_words(offsets, lengths, window)
    codes ^= lengths.view(np.uint64)
    return _mix(codes)


def _window(array: pa.Array) -> tuple[Ints, Words]:
    """Where each string of a string array starts (and the last ends), and the eight bytes found at every place."""
    _, starts, data = array.buffers()
    offsets = np.frombuffer(starts, np.int32, count=len(array) + 1, offset=array.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, np.uint8, count=last - first, offset=first)
    # A view with a stride of one byte: element i is the eight bytes from i on.
    window: Words = np.ndarray((last - first + 1,), "<u8", padded.data, strides=(1,))
    return offsets - first, window


def _sums_of_words(offsets: Ints, lengths: Ints, window: Words) -> Words:
    """The sum in the code of a string, for strings of any lengths."""
    long = np.flatnonzero(lengths > LONG)
    if len(long):
        sums = _sums_of_words(offsets, np.where(lengths > LONG, 0, lengths), window)
        sums[long] = [_sum_of_words(window[offsets[at] :], int(lengths[at])) for at in long]
        return sums
    words = (lengths + 7) >> 3
    ends = np.cumsum(words)
    number = np.arange(ends[-1]) - np.repeat(ends - words, words)
    word = window[np.repeat(offsets[:-1], words) + (number << 3)]
    nonempty = words > 0
    if not nonempty.any():
        return np.zeros(len(words), np.uint64)
    word[ends[nonempty] - 1] &= _MASKS[(lengths - ((words - 1) << 3))[nonempty]]
    word ^= _positions(int(words.max()))[number]
    sums = np.zeros(len(word) + 1, np.uint64)
    np.cumsum(_mix(word), out=sums[1:])
    return np.asarray(sums[ends] - sums[ends - words])


def _sum_of_words(window: Words, length: int) -> np.uint64:
    """The sum in the code of one long string, some words at a time."""
    total, words = 0, (length + 7) >> 3
    for start in range(0, words, LONG):
        word = window[start << 3 : min(words, start + LONG) << 3 : 8].copy()
        if start + LONG >= words:
            word[-1] &= _MASKS[length - ((words - 1) << 3)]
        word ^= _mix(np.arange(start + 1, start + 1 + len(word), dtype=np.uint64))
        total += int(_mix(word).sum())
    return np.uint64(total % 2**64)


def _positions(count: int) -> Words:
    """mix(1) … mix(count)."""
    return _mix(np.arange(1, count + 1, dtype=np.uint64))
