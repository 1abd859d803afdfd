"""Groups of rows in memory: ranges of rows that are equal in their keys (ranges.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.aggregates.ranges import Ranges, aggregated
from tidemark.arrow.rows.columns import Ints, integers, one_batch
from tidemark.arrow.rows.order import sort, starts
from tidemark.definition.recipe import AggregateColumn, GroupPlan

_AT = "_at_of_rows"


def groups_by(
    rows: pa.Table, keys: Sequence[str], aggregates: Sequence[AggregateColumn], at: Ints | None = None
) -> pa.RecordBatch:
    """One row for each group of rows that are equal in `keys`, in order of these: the keys, null a value, and the
    aggregates. Each row counts once; those that ask for an order of rows have it by the instants `at`. Raises
    Overflowed where a sum might not fit its type."""
    if at is None:
        inside = sort(rows, keys)
        instants = np.zeros(inside.num_rows, np.int64)
    else:
        inside = sort(one_batch(rows).append_column(_AT, pa.array(at)), [*keys, _AT])
        instants = integers(inside, _AT)
    begins = starts(inside, keys)
    first = np.flatnonzero(begins)
    ranges = Ranges(first, np.append(first[1:], inside.num_rows)[: len(first)], instants, begins)
    columns = [inside.column(name).take(pa.array(first)) for name in keys]
    columns += [aggregated(one, inside, ranges) for one in aggregates]
    return pa.RecordBatch.from_arrays(columns, [*keys, *(one.name for one in aggregates)])


def groups_in(rows: pa.Table, rule: GroupPlan) -> pa.RecordBatch:
    """The groups of rows by a rule. Raises as `groups_by`."""
    return groups_by(rows, rule.keys, rule.aggregates, None if rule.on is None else micros_of(rows.column(rule.on)))
