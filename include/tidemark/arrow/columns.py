"""Arrow columns as NumPy arrays, for the kernels that compute on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The table as one record batch; copies only what is in several chunks."""
    if isinstance(table, pa.RecordBatch):
        return table
    return pa.RecordBatch.from_arrays([contiguous(column) for column in table.columns], schema=table.schema)


def values(array: pa.Array) -> npt.NDArray[Any]:
    """Fixed-width values (timestamps as int64, dates as int32, bools as bool); anything where null."""
    if pa.types.is_boolean(array.type):
        array = array.fill_null(False) if array.null_count else array
        return np.asarray(array.to_numpy(zero_copy_only=False))
    width = np.dtype(f"{'f' if pa.types.is_floating(array.type) else 'i'}{array.type.bit_width // 8}")
    if len(array) == 0:
        return np.empty(0, width)
    return np.frombuffer(array.buffers()[1], width, count=len(array), offset=array.offset * width.itemsize)


def valid(array: pa.Array) -> Bools | None:
    """Where the array is not null; None if nowhere null."""
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else None


def integers(table: pa.Table | pa.RecordBatch, name: str) -> Ints:
    """An int64 column without nulls."""
    return np.asarray(values(contiguous(table.column(name))), np.int64)


def replaced(batch: pa.RecordBatch, name: str, column: npt.NDArray[Any]) -> pa.RecordBatch:
    """The batch with one column's values replaced."""
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), pa.array(column, batch.schema.field(at).type))
