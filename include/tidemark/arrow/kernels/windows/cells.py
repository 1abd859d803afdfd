"""The keys of rows, numbered, and the sliding windows of rows that are all here, in order of key and start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.windows.sliding import AT, Slide, sliding_in_order
from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.arrow.rows.order import ranks, starts, unsorted
from tidemark.definition.recipe import Aggregated
from tidemark.model.window.kind import Sliding

GROUP = "_group"
"""The column of rows and windows that numbers the keys of a table."""
_SLICE = 65_536
"""Rows that go through the kernel at once: what it needs besides them grows with these, not with all there are."""


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
    rows: pa.Table, numbers: Ints, at: Ints, kind: Sliding, aggregates: Sequence[Aggregated]
) -> Iterator[pa.RecordBatch]:
    """The sliding windows of rows at some instants, distinguished by the numbers of their keys: GROUP, START, END and
    the aggregates, in order of GROUP and START. Raises as the kernel does."""
    names = list(dict.fromkeys(one.of for one in aggregates if one.of))
    batch = one_batch(rows.select(names))
    if not ascend(numbers, at):
        order = np.lexsort((at, numbers))
        numbers, at, batch = numbers[order], at[order], batch.take(pa.array(order))
    columns = [pa.array(numbers), pa.array(at), *batch.columns]
    ordered = pa.RecordBatch.from_arrays(columns, [GROUP, AT, *names])
    slide = Slide((GROUP,), kind.size, tuple(aggregates), kind.clamp_start_at_zero)
    yield from sliding_in_order((ordered.slice(at, _SLICE) for at in range(0, len(numbers), _SLICE)), slide)


def ascend(numbers: Ints, at: Ints) -> bool:
    """Whether rows come in order of the numbers of their keys and of their instants."""
    same, more = numbers[1:] == numbers[:-1], numbers[1:] > numbers[:-1]
    return bool((more | (same & (at[1:] >= at[:-1]))).all())
