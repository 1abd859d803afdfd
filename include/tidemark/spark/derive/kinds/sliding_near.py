"""Sliding windows near few changes, computed by this process.

They are those that start near an instant at which something changed (arrow/kernels/windows/reached.py). Their rows are
read, and the windows that the collection holds there; what differs is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.reached import rows_around, starts_reached
from tidemark.arrow.kernels.windows.regions import Regions, in_regions
from tidemark.arrow.kernels.windows.sliding import sliding_of
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.known_keys import numbers_among
from tidemark.arrow.rows.schema import arrow_type, key_scalars
from tidemark.definition.recipe import AggregateColumn, SlidingPlan
from tidemark.definition.windows.rows import START
from tidemark.model.window.windows import WINDOW_START
from tidemark.plan.ranges import ranges_between
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.footers import ranges_when
from tidemark.spark.derive.here.diff import as_updates, diff_against_own
from tidemark.spark.derive.here.rows import placed_rows, repeated
from tidemark.spark.derive.kinds.sliding_rows import fits, shown
from tidemark.spark.derive.reach.changed import changed_at, changed_here
from tidemark.spark.derive.reach.stretches import spans_of
from tidemark.spark.derive.timeline import in_micros
from tidemark.spark.derive.touched import MOST_BYTES, MOST_RANGES, named, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.read import LEAST_TASK_ROWS

MOST_ROWS = LEAST_TASK_ROWS // 2
"""Of at most so many rows windows are computed here. A row determines two windows, so of those stored twice as many are
looked at."""


def windows_touched_here(views: Views, rule: SlidingPlan) -> list[pa.RecordBatch] | None:
    """By what the windows that few changes reach differ from those stored; None where they have no kernel, or more is
    near than this process reads."""
    if rule.of_columns is None or not fits(views, rule, rule.of_columns):
        return None
    changed = changed_here(views, rule)
    if changed is None:
        return None
    few, unplaced = changed
    near = _Near.of(rule, few)
    found = _differing(views, rule, rule.of_columns, near) if few.num_rows else []
    if found is not None:
        views.unplaced = unplaced
    return found


@dataclass(frozen=True)
class _Near:
    """The stretches of time of keys in which windows of a `size` start that changes reach. Their groups are numbers of
    `keys`, which are k0, k1, … in order."""

    keys: pa.RecordBatch
    starts: Regions
    size: int

    @classmethod
    def of(cls, rule: SlidingPlan, few: pa.Table) -> _Near:
        keys, at = keys_in(few, list(named(rule.by).values())), integers(few, changed_at(rule))
        return cls(keys.values, starts_reached(keys.numbers, at, rule.kind.size), rule.kind.size)

    @cached_property
    def rows(self) -> Regions:
        """The stretches of time whose rows are in these windows, or say where these start."""
        return rows_around(self.starts, self.size)

    def numbers(self, rule: SlidingPlan, rows: pa.RecordBatch) -> Ints:
        """The numbers of the keys that rows have, -1 for any other."""
        return numbers_among(self.keys, rows.select(list(rule.by)))


def _differing(
    views: Views, rule: SlidingPlan, of_columns: Sequence[AggregateColumn], near: _Near
) -> list[pa.RecordBatch] | None:
    """By what they differ; None where they, or their rows, are more than this process reads. Raises as the kernel
    does."""
    own = _own_near(views, rule, near)
    rows = None if own is None else _rows_near(views, rule, of_columns, near)
    if own is None or rows is None:
        return None
    windows = list(_windows(rows, rule, of_columns, near))
    if not windows:
        return diff_against_own(views, own.schema.empty_table(), own)
    return diff_against_own(views, as_updates(views, pa.Table.from_batches(windows)), own)


def _windows(
    rows: pa.Table, rule: SlidingPlan, of_columns: Sequence[AggregateColumn], near: _Near
) -> Iterator[pa.RecordBatch]:
    """The windows of rows that start where changes reach, as the definition gives them."""
    at, numbers = micros_of(rows.column(rule.on)), integers(rows, GROUP)
    for windows in sliding_of(rows, numbers, at, rule.kind, of_columns):
        some = windows.filter(pa.array(in_regions(integers(windows, GROUP), integers(windows, START), near.starts)))
        keys = near.keys.take(some.column(GROUP)).columns
        yield pa.RecordBatch.from_pydict(shown(dict(zip(rule.by, keys, strict=True)), some, of_columns))


def _own_near(views: Views, rule: SlidingPlan, near: _Near) -> pa.Table | None:
    """The updates that the collection holds of windows that start where changes reach; None where they are more than
    this process reads."""
    ranges = _own_ranges(views, near)
    batches = views.own_rows(
        ranges, lambda rows: _starting(rule, near, rows), most_rows=LOOKED_AT_ROWS, most_bytes=LOOKED_AT_BYTES
    )
    if batches is None:
        return None
    found: list[pa.RecordBatch] = []
    count = size = 0
    for some in batches:
        found, count, size = [*found, some], count + some.num_rows, size + some.nbytes
        if count > 2 * MOST_ROWS or size > MOST_BYTES:
            views.declines(f"more than {2 * MOST_ROWS:,} windows are near what changed")
            return None
    return views.own_table(found)


def _starting(rule: SlidingPlan, near: _Near, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Those of the stored windows that start where changes reach."""
    start = in_micros(pa.Table.from_batches([rows.select([WINDOW_START])]), WINDOW_START)
    return rows.filter(pa.array(in_regions(near.numbers(rule, rows), start, near.starts)))


def _own_ranges(views: Views, near: _Near) -> Sequence[KeyRange]:
    """The ranges of keys of the collection that hold such windows: these are in order of their key, then of their
    start."""
    group, first, upto = (numbers.tolist() for numbers in near.starts)
    columns = [key_scalars(column) for column in near.keys.columns]
    keys = list(zip(*columns, strict=True)) if columns else [()]
    spans = sorted(((*keys[of], low), (*keys[of], high)) for of, low, high in zip(group, first, upto, strict=True))
    return ranges_between(spans, views.groups(views.computation.name), MOST_RANGES)


def _rows_near(views: Views, rule: SlidingPlan, of_columns: Sequence[AggregateColumn], near: _Near) -> pa.Table | None:
    """The rows of the input within the reach of changes, in the columns that are needed, and GROUP, the numbers of
    their keys, each as often as it is there; None where they are more than this process reads, or one is there fewer
    times than none."""
    ranges = _ranges(views, rule, near)
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    batches = views.input_rows_here(rule.input, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
    if batches is None:
        return None
    names = list(dict.fromkeys([rule.on, *(one.of for one in of_columns if one.of)]))
    types = views.types_here(rule.input)
    schema = pa.schema([*((name, arrow_type(types[name])) for name in names), (GROUP, pa.int64())])
    found: list[pa.RecordBatch] = []
    count = size = 0
    for rows in batches:
        rows = rows.filter(pa.array(placed_rows(rows, rule.on)))
        numbers = near.numbers(rule, rows)
        inside = in_regions(numbers, micros_of(rows.column(rule.on)), near.rows)
        some = rows.select([*names, MULTIPLICITY]).append_column(GROUP, pa.array(numbers)).filter(pa.array(inside))
        some = repeated(some, most=MOST_ROWS - count, most_bytes=MOST_BYTES - size)
        if some is None:
            views.declines(f"more than {MOST_ROWS:,} rows are near what changed")
            return None
        found, count, size = [*found, some.select(schema.names)], count + some.num_rows, size + some.nbytes
    return pa.Table.from_batches(found, None if found else schema)


def _ranges(views: Views, rule: SlidingPlan, near: _Near) -> Sequence[KeyRange]:
    """The ranges of keys outside which there are no such rows; none: all."""
    given, keys = views.computation.input(rule.input), pa.Table.from_batches([near.keys])
    ranges = ranges_holding(keys, views, rule.input, given.state.collection, named(rule.by))
    return ranges or ranges_when(given, rule.on, *spans_of(near.rows.first, near.rows.upto))
