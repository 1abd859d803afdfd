"""Groups: what of them each place computes. Rows are grouped as the definition's query would; the kernel is
arrow/kernels/aggregates/groups.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.groups import groups_by, groups_in
from tidemark.arrow.kernels.aggregates.parts import merged_groups, parts_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.computation import Computation
from tidemark.definition.recipe import AggregateColumn, ByKey, GroupPlan, WindowAssignment
from tidemark.definition.ways import Place
from tidemark.definition.windows.rows import END, START
from tidemark.model.derived import Mode
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.difference import Due, as_stored
from tidemark.spark.derive.executors.key_ranges import AT_ONCE, leading
from tidemark.spark.derive.footers import ranges_when
from tidemark.spark.derive.here.diff import (
    as_updates,
    diff_against_own,
    match_keys,
    own_batches,
    own_touched,
    updates_due,
)
from tidemark.spark.derive.here.rows import MOST_BUILT, RowBudget, check_size, repeated
from tidemark.spark.derive.kind import Gathering, Ranged, Refreshed, Shuffled
from tidemark.spark.derive.kinds.groups_shuffled import groups_shuffled, values_shuffled
from tidemark.spark.derive.kinds.grown import grown_here, grows_here
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.queries.by_key import few_touched
from tidemark.spark.derive.queries.lateness import computed_here, kept_upto
from tidemark.spark.derive.reach.stretches import spans_of
from tidemark.spark.derive.timeline import in_micros
from tidemark.spark.derive.touched import MOST_BYTES, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.read import LEAST_TASK_ROWS

_LONG_AGO = -(1 << 62)


@dataclass
class Groups:
    """Groups of rows by some columns, those of aligned windows among them. A build groups rows as they come, where
    groups of parts can be put together; a refresh recomputes the groups that changes touch from their rows, or adds up
    by how much they grew (grown.py)."""

    views: Views
    rule: ByKey

    @classmethod
    def of(cls, views: Views) -> Self | None:
        recipe = views.computation.recipe
        rule = None if recipe is None or recipe.windowed is not None else recipe.by_key
        if recipe is None or rule is None:
            return None
        of_values = recipe.in_windows is not None and recipe.in_windows.grouped is not None
        return cls(views, rule) if of_values or rule.grouped is not None or rule.delta is not None else None

    @property
    def input(self) -> str:
        (given,) = self.views.computation.inputs
        return given.name

    @property
    def on(self) -> str | None:
        return self._placing.on if self._placing else None

    @property
    def _placing(self) -> WindowAssignment | None:
        recipe = self.views.computation.recipe
        return None if recipe is None else recipe.placed

    def _grouped(self) -> GroupPlan | None:
        """How rows are grouped, where the collection holds what comes out."""
        grouped = self.rule.grouped
        return grouped if grouped is not None and _fits(self.views, self.rule, grouped) else None

    def gathering(self) -> Gathering | None:
        grouped, types = self._grouped(), self.views.types_here(self.input)
        if grouped is None:
            return None
        parts = parts_of(grouped.aggregates, {name: arrow_type(of) for name, of in types.items()})
        windows = self._placing.kind.windows_per_row if self._placing else 1
        most = (LEAST_TASK_ROWS if parts is None else MOST_BUILT) // windows
        return _Gathering(self.views, self.rule, grouped, parts, most)

    def refreshed(self) -> Refreshed | None:
        if self.rule.delta is not None:
            found = grown_here(self.views, self.rule)
        else:
            few = None if self._grouped() is None else few_touched(self.views, self.rule)
            found = None if few is None else _regrouped(self.views, self.rule, few)
        return None if found is None else Refreshed(found, Place.HERE)

    def opens(self) -> bool:
        grows = self.rule.delta is not None
        fits = grows_here(self.views, self.rule) if grows else self._grouped() is not None
        few = few_touched(self.views, self.rule) if fits else None
        if few is None:
            return False
        if not few.num_rows:
            return True
        own = own_batches(self.views, few, self.rule.key_columns)
        return own is not None and (grows or _batches_of(self.views, self.rule, few)[1] is not None)

    def ranged(self) -> Ranged | None:
        placing, grouped, computation = self._placing, self._grouped(), self.views.computation
        grows = computation.mode is Mode.BY_KEY and self.rule.delta is not None  # then what changed is enough
        if placing is None or placing.frozen_after is not None or grouped is None or grows:
            return None
        together = leading(computation, self.input, dict(zip(self.rule.key_columns, grouped.keys, strict=True)))
        used = [name for name in needed(grouped) if name not in (START, END)]
        windows, made = placing.kind.windows_per_row, _of_windows(computation, self.rule, grouped, placing)
        return Ranged(self.input, together, placing.on, used, made, windows)

    def shuffled(self) -> Shuffled | None:
        grouped, recipe = self._grouped(), self.views.computation.recipe
        if kept_upto(self.views) is not None:
            return None
        if grouped is not None:
            return groups_shuffled(self.views, self.rule, grouped, needed(grouped))
        rows = None if recipe is None else recipe.in_windows
        return None if rows is None or rows.grouped is None else values_shuffled(self.views, self.rule, rows)


def _regrouped(views: Views, rule: ByKey, few: pa.Table) -> list[pa.RecordBatch] | None:
    """By what the groups of few touched values, which are as k0, k1, …, differ from those stored; None where either
    is more than this process reads."""
    if not few.num_rows:
        return []
    own = own_touched(views, few, rule.key_columns)
    found = None if own is None else groups_of(views, rule, few)
    return None if own is None or found is None else diff_against_own(views, found, own)


def groups_of(views: Views, rule: ByKey, few: pa.Table) -> pa.Table | None:
    """The groups of few values, which are as k0, k1, …, as updates at u - 1; None where they have no kernel, or
    their rows are more than this process reads. Raises Overflowed where a sum might not fit its type."""
    if rule.grouped is None or not _fits(views, rule, rule.grouped):
        return None
    rows = _rows_of(views, rule, rule.grouped, few)
    return None if rows is None else _as_updates(views, rule, rule.grouped, groups_in(rows, rule.grouped))


def _of_windows(
    computation: Computation, rule: ByKey, grouped: GroupPlan, placing: WindowAssignment
) -> Callable[[pa.Table], list[pa.RecordBatch]]:
    """What makes windows of all rows of theirs, for executors."""
    collection, due, names = computation.collection, Due.of(computation), needed(grouped)
    order, called = [column.name for column in collection.key], _shown(rule, grouped)
    windows = placing.kind.windows_per_row

    def made(rows: pa.Table) -> list[pa.RecordBatch]:
        if rows.nbytes * windows > MOST_BYTES:
            raise Overflowed("rows that are grouped at once are too many")
        inside = pa.Table.from_batches([placed(one_batch(rows), placing).select(names)])
        found = pa.Table.from_batches([groups_in(inside, grouped)]).rename_columns(called)
        return [sort(updates_due(collection, due, found), order)]

    return made


def _shown(rule: ByKey, grouped: GroupPlan) -> list[str]:
    """What the columns of groups are called in the collection."""
    return [*rule.key_columns, *(one.name for one in grouped.aggregates)]


def _as_updates(views: Views, rule: ByKey, grouped: GroupPlan, found: pa.RecordBatch) -> pa.Table:
    """Groups as updates, in the columns the definition gives."""
    return as_updates(views, pa.Table.from_batches([found]).rename_columns(_shown(rule, grouped)))


def _fits(views: Views, rule: ByKey, grouped: GroupPlan) -> bool:
    """Whether the collection holds these columns, and as they come."""
    (given,) = views.computation.inputs
    types = views.types_here(given.name)
    given_types = {name: types[of] for name, of in zip(rule.key_columns, grouped.keys, strict=True)}
    given_types |= {one.name: one.type for one in grouped.aggregates}
    fits = as_stored(given_types, views.computation.collection)
    if not fits:
        views.declines_types()
    return fits


@dataclass
class _Gathering:
    """Groups of rows as these come, by `parts` of theirs, so that it is groups that are kept; or, without, the rows."""

    views: Views
    rule: ByKey
    grouped: GroupPlan
    parts: tuple[AggregateColumn, ...] | None
    most: int
    _rows: list[pa.RecordBatch] = field(default_factory=list)
    _groups: list[pa.RecordBatch] = field(default_factory=list)

    def updates(self, rows: Batches) -> list[pa.RecordBatch]:
        for batch in rows:
            for first in range(0, batch.num_rows, AT_ONCE):
                self._rows.append(self.views.placed(batch.slice(first, AT_ONCE)).select(needed(self.grouped)))
                if self.parts is not None and sum(some.num_rows for some in self._rows) >= AT_ONCE:
                    self._group(pa.Table.from_batches(self._rows))
            check_size([*self._rows, *self._groups])
        found = computed_here(self.views, _as_updates(self.views, self.rule, self.grouped, self._all()))
        return diff_against_own(self.views, found, found.slice(0, 0))

    def _all(self) -> pa.RecordBatch:
        rows = _table(self.views, needed(self.grouped), self._rows)
        if self.parts is None:
            return groups_in(rows, self.grouped)
        if rows.num_rows or not self._groups:
            self._group(rows)
        groups = pa.Table.from_batches(self._groups)
        return merged_groups(groups, self.grouped.keys, self.grouped.aggregates, self.parts)

    def _group(self, rows: pa.Table) -> None:
        self._groups.append(groups_by(rows, self.grouped.keys, self.parts or ()))
        self._rows = []


def needed(grouped: GroupPlan) -> list[str]:
    """The columns that groups are computed of, each once."""
    of = [one.of for one in grouped.aggregates if one.of]
    return list(dict.fromkeys([*grouped.keys, *of, *([grouped.on] if grouped.on else [])]))


def _table(views: Views, names: Sequence[str], found: Sequence[pa.RecordBatch]) -> pa.Table:
    """Rows of the one input in these of its columns, or none."""
    if found:
        return pa.Table.from_batches(found)
    (given,) = views.computation.inputs
    types = views.types_here(given.name)
    return pa.schema([(name, arrow_type(types[name])) for name in names]).empty_table()


def _rows_of(views: Views, rule: ByKey, grouped: GroupPlan, few: pa.Table) -> pa.Table | None:
    """The rows of the one input that have touched values, in the columns that are needed, each as often as it is there;
    None where they are more than this process reads, or one is there fewer times than none."""
    (given,) = views.computation.inputs
    ranges, batches = _batches_of(views, rule, few)
    if batches is None:
        return None
    names = needed(grouped)
    found, kept = [], RowBudget(views.rows_stored(given.name, ranges))
    for seen, rows in _touched(batches, few, grouped.keys, names):
        if kept.is_full(seen, rows):
            views.declines("too many rows are in the groups that changed")
            return None
        if rows.num_rows:
            found.append(rows)
    if not found:
        return _table(views, names, found)
    there = pa.Table.from_batches(found)
    both = match_keys(few, there, grouped.keys)
    if both is None:
        return None
    there = there.filter(pa.array(np.isin(both[1], both[0])))
    rows = repeated(one_batch(there.select([*names, MULTIPLICITY])), most_bytes=MOST_BYTES)
    return None if rows is None else pa.Table.from_batches([rows])


def _batches_of(views: Views, rule: ByKey, few: pa.Table) -> tuple[Sequence[KeyRange], Iterator[pa.RecordBatch] | None]:
    """Find the ranges of keys of the one input that can hold touched values (none: all), and open its rows there.

    None of the rows is read yet; None where they are more than this process looks at.
    """
    (source,) = views.computation.inputs
    ranges = ranges_holding(few, views, source.name, source.state.collection, dict(rule.clustered.get(source.name, ())))
    ranges = ranges or _ranges_of_windows(views, rule, few)
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    return ranges, views.input_rows_here(source.name, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)


def _ranges_of_windows(views: Views, rule: ByKey, few: pa.Table) -> Sequence[KeyRange]:
    """The ranges of keys outside which no row is in the windows that few values say; none: all, or there are none."""
    (given,) = views.computation.inputs
    placing = views.computation.recipe and views.computation.recipe.placed
    if not placing or not few.num_rows or not {WINDOW_START, WINDOW_END} <= set(rule.key_columns):
        return ()
    start, end = (in_micros(few.rename_columns(list(rule.key_columns)), name) for name in (WINDOW_START, WINDOW_END))
    if placing.grace_of_next is not None:  # a row that came late may have happened long before the one it counts in
        start = np.full_like(start, _LONG_AGO)
    return ranges_when(given, placing.on, *spans_of(start, end - 1))


def _touched(
    batches: Iterator[pa.RecordBatch], few: pa.Table, keys: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Of how many rows which have a touched value in each column; where keys are several columns, others too."""
    values = [few.column(f"k{at}").combine_chunks() for at in range(len(keys))]
    for rows in batches:
        among = [np.asarray(pc.is_in(rows.column(name), of)) for name, of in zip(keys, values, strict=True)]
        yield rows.num_rows, rows.select([*names, MULTIPLICITY]).filter(pa.array(np.logical_and.reduce(among)))
