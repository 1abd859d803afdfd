"""Arrow columns as NumPy arrays, for the kernels that compute on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import bools_of, of_numbers, scalar_of
from tidemark.model import field_path

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
LEAST_TEXTS, SAMPLED = 4_096, 64
"""Texts are looked at by their different ones where there are so many or more, and of one in so many no more than half
are different."""
_NO_BYTES = scalar_of(0, pa.int32())
_FALSE = scalar_of(False, pa.bool_())


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def nested(schema: pa.Schema) -> pa.Schema:
    """The schema whose leaves are the fields given, where a name is a path: `source.ts_ms`."""
    tree: dict[str, Any] = {}
    for field in schema:
        *above, name = field_path.steps(field.name)
        at = tree
        for step in above:
            at = at.setdefault(step, {})
        at[name] = field.type

    def type_of(node: Any) -> pa.DataType:
        return pa.struct([(name, type_of(of)) for name, of in node.items()]) if isinstance(node, dict) else node

    return pa.schema([(name, type_of(node)) for name, node in tree.items()])


def leaves(rows: pa.Table | pa.RecordBatch, paths: Sequence[str]) -> pa.RecordBatch:
    """Columns by their paths, null where anything above them is."""
    columns: dict[tuple[str, ...], pa.Array] = {}
    row = pa.struct(list(rows.schema))

    def at(names: tuple[str, ...]) -> pa.Array:
        if names not in columns and len(names) == 1:
            columns[names] = contiguous(rows.column(names[0]))
        elif names not in columns:
            struct = at(names[:-1])
            columns[names] = struct.flatten()[struct.type.get_field_index(names[-1])]
        return columns[names]

    return pa.RecordBatch.from_arrays([at(names_within(row, path) or (path,)) for path in paths], list(paths))


def names_within(row: pa.DataType, path: str) -> tuple[str, ...] | None:
    """The names that lead to a path in rows of a type; None if there is no such field.

    A dot may belong to a name in Parquet, whose paths do not say so: a field within others goes before that.
    """
    names = field_path.steps(path)
    for count in range(1, len(names) + 1):
        name = ".".join(names[:count])
        at = row.get_field_index(name) if pa.types.is_struct(row) else -1
        if at < 0:
            continue
        if count == len(names):
            return (name,)
        if (below := names_within(row.field(at).type, field_path.of_steps(names[count:]))) is not None:
            return (name, *below)
    return None


def one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The table as one record batch; copies only what is in several chunks."""
    if isinstance(table, pa.RecordBatch):
        return table
    return pa.RecordBatch.from_arrays([contiguous(column) for column in table.columns], schema=table.schema)


def values(array: pa.Array) -> npt.NDArray[Any]:
    """Fixed-width values (timestamps as int64, dates as int32, bools as bool); anything where null."""
    if pa.types.is_boolean(array.type):
        array = array.fill_null(_FALSE) if array.null_count else array
        return bools_of(array)
    width = np.dtype(f"{'f' if pa.types.is_floating(array.type) else 'i'}{array.type.bit_width // 8}")
    if len(array) == 0:
        return np.empty(0, width)
    return np.frombuffer(array.buffers()[1], width, count=len(array), offset=array.offset * width.itemsize)


def words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """The two 64-bit words of each decimal's units, the low one first; anything where null."""
    if len(array) == 0:
        return np.empty((0, 2), np.uint64)
    flat = np.frombuffer(array.buffers()[1], "<u8", count=2 * len(array), offset=array.offset * 16)
    return flat.reshape(-1, 2)


def encoded_texts(column: pa.Array) -> pa.DictionaryArray | None:
    """Texts by their different ones; None where these are not few."""
    if len(column) < LEAST_TEXTS:
        return None
    sample = column.take(of_numbers(np.arange(0, len(column), SAMPLED)))
    return column.dictionary_encode() if 2 * len(sample.unique()) <= len(sample) else None


def in_units(array: pa.Array) -> pa.Array:
    """Decimals as the whole numbers, of 38 digits at most, that they are in units of their last digit."""
    buffers = [array.buffers()[0], array.buffers()[1]]
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(array), buffers, array.null_count, array.offset)


def valid(array: pa.Array) -> Bools | None:
    """Where the array is not null; None if nowhere null."""
    return bools_of(array.is_valid()) if array.null_count else None


def integers(table: pa.Table | pa.RecordBatch, name: str) -> Ints:
    """An int64 column without nulls."""
    return np.asarray(values(contiguous(table.column(name))), np.int64)


def replaced(batch: pa.RecordBatch, name: str, column: npt.NDArray[Any]) -> pa.RecordBatch:
    """The batch with one column's values replaced."""
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), of_numbers(column).cast(batch.schema.field(at).type))


def row_bytes(rows: pa.Table | pa.RecordBatch) -> Ints:
    """What each row takes in memory, its share of offsets included."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            sizes += 4 + values(contiguous(pc.binary_length(column).fill_null(_NO_BYTES)))
        else:
            sizes += (column.type.bit_width + 7) // 8
    return sizes


def size_of_rows(rows: pa.Table | pa.RecordBatch) -> int:
    """What all rows take in memory: the sum of `row_bytes`."""
    size = 0
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            size += 4 * len(column) + (pc.sum(pc.binary_length(column)).as_py() or 0)
        else:
            size += len(column) * ((column.type.bit_width + 7) // 8)
    return size


def rows_within(rows: pa.Table | pa.RecordBatch, room: int, *, least: int) -> int:
    """How many of the first rows fit into `room` bytes of memory, and `least` that many."""
    if rows.nbytes <= room:
        return int(rows.num_rows)
    fitting = int(np.searchsorted(np.cumsum(row_bytes(rows)), room, side="right"))
    return max(least, fitting)
