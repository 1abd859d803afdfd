"""Values of columns as whole numbers in the same order, so that NumPy compares them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Bools, Ints, values
from tidemark.arrow.rows.order import ranks

_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def ordered(column: pa.Array) -> tuple[Ints, Callable[[Ints, Bools], pa.Array]]:
    """A number for each value, in Spark's order: equal where values are, NaN above all, -0.0 as 0.0; anything where
    null. And what makes values again of such numbers, and of where there is none."""
    of = column.type
    if pa.types.is_floating(of):
        return _of_floats(np.asarray(values(column), np.float64)), lambda numbers, none: pa.array(
            _floats(numbers), pa.float64(), mask=none
        ).cast(of)
    if pa.types.is_boolean(of):
        return values(column).astype(np.int64), lambda numbers, none: pa.array(numbers != 0, of, mask=none)
    if not (pa.types.is_integer(of) or pa.types.is_temporal(of)):
        return _by_rank(column)
    cells = values(column)

    def again(numbers: Ints, none: Bools) -> pa.Array:
        whole = pa.array(np.where(none, 0, numbers).astype(cells.dtype), mask=none)
        return whole if whole.type == of else whole.view(of)

    return cells.astype(np.int64), again


def _by_rank(column: pa.Array) -> tuple[Ints, Callable[[Ints, Bools], pa.Array]]:
    numbers = ranks(pa.record_batch([column], ["value"]), ["value"])
    of_each = np.zeros(int(numbers.max(initial=0)) + 1, np.int64)
    of_each[numbers] = np.arange(len(numbers))

    def again(some: Ints, none: Bools) -> pa.Array:
        return column.take(pa.array(of_each[np.where(none, 0, some)], mask=none))

    return numbers, again


def _of_floats(floats: np.typing.NDArray[np.float64]) -> Ints:
    """The bits of a float are in order of its value; those of a negative one are, the other way round."""
    floats = np.where(floats == 0, 0.0, np.where(np.isnan(floats), np.nan, floats))
    bits = floats.view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


def _floats(numbers: Ints) -> np.typing.NDArray[np.float64]:
    return np.where(numbers < 0, numbers ^ _SIGN, numbers).view(np.float64)
