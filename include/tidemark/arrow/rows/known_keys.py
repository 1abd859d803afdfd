"""Which of some known keys rows have, without putting the rows in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.columns import Ints, contiguous, values


def numbers_among(keys: pa.RecordBatch, rows: pa.RecordBatch) -> Ints:
    """Of each row the number of the key whose values it has, -1 where it has none of them. Keys are different, and
    have the columns of the rows in the same order and types. Null is a value. Without columns all rows have the one
    key."""
    known, found = np.zeros(keys.num_rows, np.int64), np.zeros(rows.num_rows, np.int64)
    if not keys.num_columns:
        return found
    if not keys.num_rows:
        return found - 1
    for of, column in zip(keys.columns, rows.columns, strict=True):
        different = pc.unique(of)
        place = _places(column, different)
        pairs = found * len(different) + place
        distinct, known = np.unique(known * len(different) + _places(of, different), return_inverse=True)
        nearest = np.minimum(np.searchsorted(distinct, pairs), len(distinct) - 1)
        among = (found >= 0) & (place >= 0) & (distinct[nearest] == pairs)
        found = np.where(among, nearest, -1)
    number = np.empty(len(known), np.int64)
    number[known] = np.arange(len(known))
    return np.where(found >= 0, number[found], -1)


def _places(column: pa.Array, among: pa.Array) -> Ints:
    """The place of each value among different ones; -1 where it is none of them."""
    return values(contiguous(pc.index_in(column, among).fill_null(-1))).astype(np.int64)
