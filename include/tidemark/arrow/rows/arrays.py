"""Arrow's arrays from NumPy's and from Python's values, and back, without pandas.

Arrow imports pandas, where that is installed, the first time that it is given a list, a number or a NumPy array
(`pa.array`, `pa.scalar`, `from_pylist`, `pc.equal(column, 5)`), or is asked for a NumPy array (`to_numpy`,
`np.asarray`): it has to know whether it was given one of pandas' objects. That takes 0.25 seconds of CPU, and a process
that is started for one read takes 0.5 for all else. So what a read makes is made here, of buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Bools = npt.NDArray[np.bool_]
_NUMBERS = {pa.int64(): np.int64, pa.int32(): np.int32, pa.float64(): np.float64}
_PYTHON = {pa.int64(): int, pa.int32(): int, pa.float64(): float, pa.string(): str, pa.bool_(): bool}


def of_numbers(numbers: npt.NDArray[Any], missing: _Bools | None = None) -> pa.Array:
    """The array of whole or floating numbers, which is not copied; null where `missing`."""
    data = np.ascontiguousarray(numbers)
    valid = None if missing is None or not missing.any() else _bits(~missing)
    return pa.Array.from_buffers(pa.from_numpy_dtype(data.dtype), len(data), [valid, pa.py_buffer(data)])


def of_bools(bools: _Bools) -> pa.BooleanArray:
    """The array of truths."""
    return pa.Array.from_buffers(pa.bool_(), len(bools), [None, _bits(bools)])


def bools_of(array: pa.BooleanArray) -> _Bools:
    """The truths of an array without nulls."""
    if not len(array):
        return np.empty(0, bool)
    first, before = divmod(array.offset, 8)
    packed = np.frombuffer(array.buffers()[1], np.uint8, offset=first)
    return np.unpackbits(packed, count=before + len(array), bitorder="little")[before:].view(np.bool_)


def first_true(bools: pa.BooleanArray | pa.ChunkedArray) -> int:
    """The place of the first value that is true; -1: none is."""
    place: int = pc.index(bools, scalar_of(True, pa.bool_())).as_py()
    return place


def of_values(values: Sequence[Any], of: pa.DataType) -> pa.Array:
    """The column of a type that has these values; None is null. Times and dates are whole numbers here.

    Raises as Arrow does (TypeError, ValueError or ArithmeticError) for what is no value of the type: Arrow is asked
    then, and converts whatever has no plain type of Python.
    """
    if pa.types.is_temporal(of):
        return of_values(values, pa.int32() if of.bit_width == 32 else pa.int64()).cast(of)
    kinds = {type(one) for one in values if one is not None}
    if pa.types.is_decimal(of) and kinds <= {Decimal}:
        return _texts([None if one is None else format(one, "f") for one in values]).cast(of)
    if pa.types.is_binary(of) and kinds <= {bytes}:
        return _texts(values).view(of)
    if not kinds <= {_PYTHON.get(of)} or (pa.types.is_integer(of) and not _fit(values, of)):
        return pa.array(values, of)
    if of == pa.string():
        return _texts(values)
    missing = np.array([one is None for one in values], bool)
    known = [0 if one is None else one for one in values]
    if of == pa.bool_():
        return pa.Array.from_buffers(of, len(values), [_bits(~missing), _bits(np.array(known, bool))])
    return of_numbers(np.array(known, _NUMBERS[of]), missing)


def scalar_of(value: Any, of: pa.DataType) -> pa.Scalar:
    """The same of one value."""
    return of_values([value], of)[0]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _bits(bools: _Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bools, bitorder="little"))


def _fit(values: Sequence[int | None], of: pa.DataType) -> bool:
    beyond = 1 << (of.bit_width - 1)
    return all(one is None or -beyond <= one < beyond for one in values)


def _texts(values: Sequence[str | bytes | None]) -> pa.StringArray:
    texts = pa.lib.StringBuilder()
    texts.append_values(values)
    return texts.finish()
