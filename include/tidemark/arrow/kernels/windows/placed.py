"""Rows once for each window of an aligned kind that they are in, by the kernel of the kind (aligned/)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.aligned import kernel_of
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import WindowAssignment
from tidemark.definition.windows.rows import END, START


def placed(rows: pa.RecordBatch, rule: WindowAssignment) -> pa.RecordBatch:
    """The rows that are in windows, with START and END, in the order they have. Raises Overflowed where rows are in too
    many windows for one batch, and for a window whose bounds are beyond 64 bits."""
    rows = rows.filter(pc.is_valid(rows.column(rule.on)))
    of, start, end = kernel_of(rule.kind).windows_at(micros_of(rows.column(rule.on)))
    return in_window(rows if of is None else rows.take(pa.array(of)), rule, start, end)


def in_window(rows: pa.RecordBatch, rule: WindowAssignment, start: Ints, end: Ints) -> pa.RecordBatch:
    """Rows with these bounds of a window of each, in microseconds."""
    bound = arrow_type(rule.bound)
    return rows.append_column(START, pa.array(start).cast(bound)).append_column(END, pa.array(end).cast(bound))


def pieces(batches: Iterable[pa.RecordBatch], rule: WindowAssignment) -> Iterator[pa.RecordBatch]:
    """The same rows, so few at a time that those of each batch are not in too many windows, unless a row alone is."""
    most = kernel_of(rule.kind).most_rows
    for rows in batches:
        for first in range(0, rows.num_rows, most):
            yield rows.slice(first, most)


def first_after(rule: WindowAssignment, instants: Ints) -> tuple[Ints, Ints]:
    """Start and end of the first window that ends after each of some instants. Raises as `placed`."""
    return kernel_of(rule.kind).earliest_after(instants)
