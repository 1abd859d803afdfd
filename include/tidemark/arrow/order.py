"""One total order of rows: column by column, null first, NaN next, then ascending; strings by code point.

Arrow's `sort_indices` with nulls at the start orders so (stable, NaN between null and the least number, -0.0
equal to 0.0), and Python compares str by code point as Arrow compares UTF-8 bytes, so all layers agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.columns import Bools, contiguous, one_batch, valid, values
from tidemark.arrow.schema import plain


def sort(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The rows in order of `columns`; equal rows stay as they were."""
    batch = one_batch(table)
    keys = [(name, "ascending", "at_start") for name in columns]
    return batch.take(pc.sort_indices(batch, sort_keys=keys))


def starts(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Bools:
    """Where a row differs from the row before it in any of `columns`; the first row always does.

    Null equals null and NaN equals NaN.
    """
    differs = np.zeros(table.num_rows, bool)
    differs[:1] = True
    for name in columns:
        differs[1:] |= _differs(contiguous(table.column(name)))
    return differs


def unsorted(table: pa.Table | pa.RecordBatch, columns: Sequence[str], *, strictly: bool) -> int:
    """How many rows are before their predecessor in the order (`strictly`: or equal to it)."""
    if table.num_rows < 2:
        return 0
    undecided = np.ones(table.num_rows - 1, bool)
    wrong = 0
    for name in columns:
        array = contiguous(table.column(name))
        differs = _differs(array) & undecided
        wrong += int(np.count_nonzero(differs & _descends(array)))
        undecided &= ~differs
        if not undecided.any():
            return wrong
    return wrong + (int(np.count_nonzero(undecided)) if strictly else 0)


def place(table: pa.RecordBatch, row: int, columns: Sequence[str]) -> tuple[tuple[int, object], ...]:
    """A row's place in the order as a value that Python compares alike."""
    cells = (plain(table.column(name).slice(row, 1))[0].as_py() for name in columns)
    return tuple((0, 0) if x is None else (1, 0) if x != x else (2, x) for x in cells)


def _differs(array: pa.Array) -> Bools:
    """Whether each element but the first differs from the one before."""
    before, after = array.slice(0, len(array) - 1), array.slice(1)
    if pa.types.is_string(array.type):
        differs = _bools(pc.not_equal(before, after))
    else:
        left, right = values(before), values(after)
        differs = left != right
        if pa.types.is_floating(array.type):
            differs &= ~(np.isnan(left) & np.isnan(right))
    held = valid(array)
    if held is not None:
        differs = np.where(held[:-1] & held[1:], differs, held[:-1] != held[1:])
    return np.asarray(differs)


def _descends(array: pa.Array) -> Bools:
    """Whether each element but the first is below the one before; of use only where the two differ."""
    before, after = array.slice(0, len(array) - 1), array.slice(1)
    if pa.types.is_string(array.type):
        descends = _bools(pc.greater(before, after))
    else:
        left, right = values(before), values(after)
        descends = left > right
        if pa.types.is_floating(array.type):
            descends |= ~np.isnan(left) & np.isnan(right)
    held = valid(array)
    if held is not None:
        descends = np.where(held[:-1] & held[1:], descends, held[:-1])
    return np.asarray(descends)


def _bools(array: pa.Array) -> Bools:
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False))
