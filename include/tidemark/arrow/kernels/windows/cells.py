"""Cells made of rows without a query, of rows that come in order, or that are all here; of these the sliding windows,
too, in order of key and start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.windows.merged import merged
from tidemark.arrow.kernels.windows.sliding import AT, START, Slide, sliding
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, one_batch
from tidemark.arrow.rows.order import ranks, starts, unsorted
from tidemark.definition.recipe import Taken
from tidemark.definition.state import Op, State
from tidemark.model.collection import MAX_PRECISION
from tidemark.model.decimals import SUM_DIGITS
from tidemark.model.window.kind import Sliding

GROUP = "_group"
"""The column of cells and windows that numbers the keys of a table."""
_SLICE = 65_536
"""Cells that go through the kernel at once: what it needs besides them grows with these, not with all there are."""
_OF_INSTANTS = {Op.FIRST: Op.MIN, Op.LAST: Op.MAX}
"""By what the rows of one instant are put together, where that is not as instants are."""


@dataclass(frozen=True)
class Keys:
    """The different values of some columns in order, and of each row the number of its own."""

    values: pa.RecordBatch
    numbers: Ints


def keys_in(rows: pa.Table, by: Sequence[str]) -> Keys:
    """The keys of rows by some columns, by none too."""
    if not by:
        return Keys(one_batch(rows.select([])), np.zeros(rows.num_rows, np.int64))
    keys = one_batch(rows.select(list(by)))
    if unsorted(keys, by):
        numbers = ranks(keys, by)
        first = np.unique(numbers, return_index=True)[1]
    else:  # as where they lead the key of a collection
        begins = starts(keys, by)
        numbers, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    return Keys(keys.take(pa.array(first)), numbers)


def windows_in_order(
    rows: pa.Table, numbers: Ints, at: Ints, kind: Sliding, taken: Sequence[Taken]
) -> Iterator[pa.RecordBatch]:
    """The sliding windows of rows at some instants, told apart by the numbers of their keys: GROUP, START, END and the
    states, in order of GROUP and START. Raises as the kernel does."""
    states = tuple(one.state for one in taken)
    slide = Slide((GROUP,), kind.size, states, kind.clamp_start_at_zero)
    cells = cells_of(rows, numbers, at, taken)
    slices = (cells.slice(first, _SLICE) for first in range(0, cells.num_rows, _SLICE))
    found = list(sliding(slices, slide, rows=_SLICE))
    if not found:
        return
    together = one_batch(pa.Table.from_batches(found))
    order = pa.array(np.lexsort((integers(together, START), integers(together, GROUP))))
    for first in range(0, len(order), _SLICE):
        yield together.take(order.slice(first, _SLICE))


def cells_of(rows: pa.Table, numbers: Ints, at: Ints, taken: Sequence[Taken]) -> pa.RecordBatch:
    """The cells of rows: GROUP, AT and the states of each, in this order. Raises Overflowed (sums.py)."""
    order = None if ascend(numbers, at) else np.lexsort((at, numbers))
    if order is not None:
        numbers, at = numbers[order], at[order]
    begins = np.ones(len(at), bool)
    begins[1:] = (numbers[1:] != numbers[:-1]) | (at[1:] != at[:-1])
    columns = [_values(rows, one) for one in taken]
    if order is not None:
        columns = [column.take(pa.array(order)) for column in columns]
    if not begins.all():
        numbers, at = numbers[begins], at[begins]
        columns = [_of_instants(one.state, column, begins) for one, column in zip(taken, columns, strict=True)]
    names = [GROUP, AT, *(one.state.name for one in taken)]
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(at), *columns], names)


def cells_in_order(
    batches: Iterable[pa.RecordBatch], together: Sequence[str], taken: Sequence[Taken]
) -> Iterator[pa.RecordBatch]:
    """The cells of rows that come in order of the columns `together` and of AT, wherever their batches end. Raises
    Overflowed."""
    columns, carried = [*together, AT], None
    for rows in batches:
        if not rows.num_rows:
            continue
        arrays = [*(rows.column(name) for name in columns), *(_values(rows, one) for one in taken)]
        some = pa.RecordBatch.from_arrays(arrays, [*columns, *(one.state.name for one in taken)])
        if carried is not None:
            some = pa.concat_batches([carried, some])
        begins = starts(some, columns)
        if not begins.all():
            keys = [some.column(name).filter(pa.array(begins)) for name in columns]
            states = [_of_instants(one.state, some.column(one.state.name), begins) for one in taken]
            some = pa.RecordBatch.from_arrays([*keys, *states], schema=some.schema)
        # More of its last cell may come; a copy, as a slice would keep all of the batch.
        carried = some.take(pa.array([some.num_rows - 1]))
        yield some.slice(0, some.num_rows - 1)
    if carried is not None:
        yield carried


def types_of(rows: pa.Schema, taken: Sequence[Taken]) -> dict[str, pa.DataType]:
    """The types of states of rows with these columns."""
    return {one.state.name: _values(rows.empty_table(), one).type for one in taken}


def ascend(numbers: Ints, at: Ints) -> bool:
    """Whether rows come in order of the numbers of their keys and of their instants."""
    same, more = numbers[1:] == numbers[:-1], numbers[1:] > numbers[:-1]
    return bool((more | (same & (at[1:] >= at[:-1]))).all())


def _of_instants(state: State, column: pa.Array, begins: Bools) -> pa.Array:
    first = np.flatnonzero(begins)
    of_rows = State(state.name, _OF_INSTANTS.get(state.op, state.op))
    return merged(of_rows, column, first, np.append(first[1:], len(begins)))


def _values(rows: pa.Table | pa.RecordBatch, one: Taken) -> pa.Array:
    """What each row adds to a state, in the type of the state."""
    if one.of is None:
        return pa.array(np.ones(rows.num_rows, np.int64))
    column = contiguous(rows.column(one.of))
    if one.count:
        return pc.is_valid(column).cast(pa.int64())
    if one.state.op is Op.ADD and pa.types.is_decimal(column.type):
        return column.cast(pa.decimal128(min(MAX_PRECISION, column.type.precision + SUM_DIGITS), column.type.scale))
    return column
