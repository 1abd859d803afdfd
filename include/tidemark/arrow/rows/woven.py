"""Few rows added up with many that are in order: only what meets is sorted, all else is copied once.

Where small batches overlap a large one, most rows of the large one meet none of them. By the first column alone it is
found which do (*touched*); these are taken out, put in order and added up with the small ones, and what comes of it is
put back in their places.

An example, by `id`, with diffs: in 1, 2, 3, 4, each once, comes that 3 is taken away and 5 is added. Touched is 3; of
it and the two rows 5 is left, which belongs behind the fourth row of the large batch: 1, 2, 4, 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Bools, integers, values
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import DIFF

LARGE = 4
"""A batch is large that has so many times the rows of all others together."""
MOST_TOUCHED = 0.5
"""The share of touched rows above which it costs no less than to sort them all: where many share their first column."""


def woven(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> pa.RecordBatch | None:
    """The rows of two batches or more, each in order of `columns`, in this order, those equal in
    `columns` added up, just as sorting and consolidating all of them gives. None where that would cost no more; so
    where the first column is not of whole numbers or times, as places among texts cost more to find, or has nulls.

    Raises InvalidUsage, naming the rows, if a sum does not fit a 64-bit integer.
    """
    at = max(range(len(batches)), key=lambda at: batches[at].num_rows)
    large, first = batches[at], batches[at].column(columns[0])
    if not (pa.types.is_integer(first.type) or pa.types.is_temporal(first.type)):
        return None
    if any(rows.column(columns[0]).null_count for rows in batches):
        return None
    others = [rows.column(columns[0]) for rows in (*batches[:at], *batches[at + 1 :])]
    if LARGE * sum(map(len, others)) > large.num_rows:
        return None
    touched, most = _among(first, pa.concat_arrays(others)), MOST_TOUCHED * large.num_rows
    if np.count_nonzero(touched) > most:
        return None
    # Rows of the large batch that are equal to their neighbours, or add nothing, are not the answer either.
    odd = ~starts(large, columns) | (integers(large, DIFF) == 0)
    if odd.any():
        touched |= _among(first, first.filter(of_bools(odd)))
        if np.count_nonzero(touched) > most:
            return None
    some = [*batches[:at], large.filter(of_bools(touched)), *batches[at + 1 :]]
    fresh = consolidated(sort(joined(some), columns), columns)
    left = np.flatnonzero(~touched)
    places = np.searchsorted(values(first), values(fresh.column(columns[0])))
    order = np.insert(left, np.searchsorted(left, places), large.num_rows + np.arange(fresh.num_rows))
    return joined([large, fresh]).take(of_numbers(order))


def _among(array: pa.Array, some: pa.Array) -> Bools:
    """Which elements of an array in order are equal to one of some values."""
    inside, distinct = values(array), np.unique(values(some))
    begins, ends = np.searchsorted(inside, distinct), np.searchsorted(inside, distinct, "right")
    there = begins < ends
    steps = np.zeros(len(array) + 1, np.int8)
    steps[begins[there]] += 1
    steps[ends[there]] -= 1
    return np.asarray(np.cumsum(steps[:-1], dtype=np.int8).view(bool))
