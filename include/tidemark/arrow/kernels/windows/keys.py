"""The keys of rows, numbered: kernels of windows distinguish rows by these numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.arrow.rows.order import ranks, starts, unsorted

GROUP = "_group"
"""The column of rows and windows that says which key is theirs, by its number."""


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


def ascend(numbers: Ints, at: Ints) -> bool:
    """Whether rows come in order of the numbers of their keys and of their instants."""
    same, more = numbers[1:] == numbers[:-1], numbers[1:] > numbers[:-1]
    return bool((more | (same & (at[1:] >= at[:-1]))).all())
