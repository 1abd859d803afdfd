"""Rows as sliding windows, and these as updates of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sliding import sliding_of
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.definition.recipe import AggregateColumn, SlidingPlan
from tidemark.definition.windows.rows import END, START
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import Due, as_stored
from tidemark.spark.derive.views import Views


@dataclass(frozen=True)
class SlidingBuilder:
    """How rows become windows, and these updates, in the columns of `by` and the aggregates."""

    rule: SlidingPlan
    of_columns: tuple[AggregateColumn, ...]
    due: Due

    @property
    def columns(self) -> list[str]:
        """The columns of rows that are needed."""
        of = (one.of for one in self.of_columns if one.of is not None)
        return list(dict.fromkeys([*self.rule.by, self.rule.on, *of]))

    def of_all(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Of all rows of their keys, in order. Raises as the kernel does."""
        keys, at = keys_in(rows, self.rule.by), micros_of(rows.column(self.rule.on))
        for some in sliding_of(rows, keys.numbers, at, self.rule.kind, self.of_columns):
            yield updates(self.rule, self.due, keys.values.take(some.column(GROUP)).columns, some, self.of_columns)


def updates(
    rule: SlidingPlan,
    due: Due,
    keys: Sequence[pa.Array],
    windows: pa.RecordBatch,
    aggregates: Sequence[AggregateColumn],
) -> pa.RecordBatch:
    """Windows of some keys as updates, in the columns the definition gives."""
    columns = shown(dict(zip(rule.by, keys, strict=True)), windows, aggregates)
    at = pa.array(due.times(integers(windows, END)))
    columns |= {TIME: at, EVENT_TIME: at, DIFF: pa.array(np.ones(len(at), np.int64))}
    return pa.RecordBatch.from_pydict(columns)


def shown(
    by: Mapping[str, pa.Array], windows: pa.RecordBatch, of_columns: Sequence[AggregateColumn]
) -> dict[str, pa.Array]:
    """The columns that the definition gives of windows with these values of `by`."""
    columns = {**by, WINDOW_START: windows.column(START), WINDOW_END: windows.column(END)}
    return columns | {one.name: windows.column(one.name) for one in of_columns}


def fits(views: Views, rule: SlidingPlan, aggregates: Sequence[AggregateColumn]) -> bool:
    """Whether the collection holds these columns, as they come, and in order of them."""
    collection = views.computation.collection
    types = views.types_here(rule.input)
    given = {name: types[name] for name in rule.by} | {WINDOW_START: rule.bound, WINDOW_END: rule.bound}
    given |= {one.name: one.type for one in aggregates}
    fits = as_stored(given, collection)
    if not fits:
        views.declines_types()
    return fits and [column.name for column in collection.key] == [*rule.by, WINDOW_START, WINDOW_END]
