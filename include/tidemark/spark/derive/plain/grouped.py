"""Groups that are computed without a query. By this process: anew where few values are touched and what holds their
rows is little, or all of them for the first time, of few rows. By executors: of more rows, where they are windows. What
is read is grouped as the definition's query would; whatever is not as plain as that is left to the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.groups import grouped, groups_in
from tidemark.arrow.kernels.aggregates.parts import merged_groups, parts_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.computation import Written
from tidemark.definition.recipe import Aggregated, ByKey, Grouped, Placed
from tidemark.definition.ways import Place
from tidemark.definition.windows.assigned import END, START
from tidemark.definition.windows.explained import most_of_all
from tidemark.model.derived import Mode
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.difference import Due, stored
from tidemark.spark.derive.footers import holds_nothing, ranges_when
from tidemark.spark.derive.little import as_updates, left_of, numbered, own_touched, updates_due
from tidemark.spark.derive.parts import written_here
from tidemark.spark.derive.plain.apart import AT_ONCE, leading, written_apart
from tidemark.spark.derive.plain.groups_shuffled import groups_shuffled
from tidemark.spark.derive.plain.near import spans_of
from tidemark.spark.derive.plain.rows import MOST_BUILT, Kept, all_here, repeated
from tidemark.spark.derive.timeline import in_micros
from tidemark.spark.derive.touched import MOST_BYTES, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.read import LEAST_TASK_ROWS


def grouped_here(views: Views, rule: ByKey, few: pa.Table) -> list[pa.RecordBatch] | None:
    """By what the rows of few touched values, which are as k0, k1, …, differ from what the definition says of them;
    None where that is not plain, or not little."""
    if rule.grouped is None or not _fits(views, rule, rule.grouped):
        return None
    own = own_touched(views, few, rule.held) if few.num_rows else None
    found = None if own is None else groups_of(views, rule, few)
    if few.num_rows and (own is None or found is None):
        return None
    views.place = Place.HERE
    return [] if own is None or found is None else left_of(views, found, own)


def groups_of(views: Views, rule: ByKey, few: pa.Table) -> pa.Table | None:
    """The groups of few values, which are as k0, k1, …, as updates at u - 1; None where that is not plain, or what
    holds their rows is not little."""
    if rule.grouped is None or not _fits(views, rule, rule.grouped):
        return None
    try:
        rows = _rows_of(views, rule, rule.grouped, few)
        found = None if rows is None else groups_in(rows, rule.grouped)
    except Overflowed as why:
        views.declines(str(why))
        return None
    return None if found is None else _as_updates(views, rule, rule.grouped, found)


def groups_built_plainly(views: Views) -> list[Written] | None:
    """What was written of all groups, of a collection that holds nothing; None where that is not plain, or not little
    and no window: to plan and compile queries for few rows takes longer."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.by_key
    if computation.mode is not Mode.WHOLE or rule is None or rule.grouped is None:
        return None
    if not _fits(views, rule, rule.grouped) or not holds_nothing(computation):
        return None
    try:
        found = _of_all_rows(views, rule.grouped)
    except Overflowed as why:
        views.declines(str(why))
        return None
    if found is None:
        return None
    views.place = Place.HERE
    updates = _as_updates(views, rule, rule.grouped, found)
    return written_here(left_of(views, updates, updates.slice(0, 0)), computation)


def groups_apart(views: Views) -> list[Written] | None:
    """What executors wrote of groups: of windows by ranges of keys, where what tells them apart leads the input's key;
    of any others through a shuffle, where the collection holds nothing. None where something does not fit. What grows
    by what changed alone is left to that."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.by_key
    placing = None if computation.recipe is None else computation.recipe.placed
    if rule is None or rule.grouped is None or not _fits(views, rule, rule.grouped):
        return None
    whole = computation.mode is Mode.WHOLE
    if not whole and (placing is None or rule.delta is not None):
        return None
    found = None if placing is None else _windows_apart(views, placing, rule, rule.grouped)
    if found is not None or not whole or not holds_nothing(computation):
        return found
    return groups_shuffled(views, rule, rule.grouped, _needed(rule.grouped))


def _windows_apart(views: Views, placing: Placed, rule: ByKey, plain: Grouped) -> list[Written] | None:
    computation = views.computation
    (given,) = computation.inputs
    collection, due = computation.collection, Due.of(computation)
    names, order = _needed(plain), [column.name for column in collection.key]
    called = [*rule.held, *(one.name for one in plain.aggregates)]
    windows = most_of_all(placing.kind)

    def made(rows: pa.Table) -> list[pa.RecordBatch]:
        if rows.nbytes * windows > MOST_BYTES:
            raise Overflowed("rows that are grouped at once are too many")
        inside = pa.Table.from_batches([placed(one_batch(rows), placing).select(names)])
        found = pa.Table.from_batches([groups_in(inside, plain)]).rename_columns(called)
        return [sort(updates_due(collection, due, found), order)]

    together = leading(computation, given.name, dict(zip(rule.held, plain.keys, strict=True)))
    used = [name for name in names if name not in (START, END)]
    return written_apart(views, given.name, together, placing.on, used, made, windows=windows)


def _as_updates(views: Views, rule: ByKey, plain: Grouped, found: pa.RecordBatch) -> pa.Table:
    """Groups as updates, in the columns the definition gives."""
    called = [*rule.held, *(one.name for one in plain.aggregates)]
    return as_updates(views, pa.Table.from_batches([found]).rename_columns(called))


def _fits(views: Views, rule: ByKey, plain: Grouped) -> bool:
    """Whether the collection holds these columns, and as they come."""
    (given,) = views.computation.inputs
    types = views.types_here(given.name)
    told = {name: types[of] for name, of in zip(rule.held, plain.keys, strict=True)}
    told |= {one.name: one.type for one in plain.aggregates}
    if told != {column.name: column.type for column in stored(views.computation.collection)}:
        views.declines("the collection has columns of other types than the kernel computes")
        return False
    return True


def _of_all_rows(views: Views, plain: Grouped) -> pa.RecordBatch | None:
    """The groups of all rows of the one input; None where these are not little. Rows are grouped as they come, where
    their groups can be put together: so it is groups that are held, and not rows."""
    (given,) = views.computation.inputs
    rule = views.computation.recipe and views.computation.recipe.placed
    on, windows = (rule.on, most_of_all(rule.kind)) if rule else (None, 1)
    types = views.types_here(given.name)
    parts = parts_of(plain.aggregates, {name: arrow_type(of) for name, of in types.items()})
    held = _Held(plain, parts, _needed(plain), views.placed)
    most = (LEAST_TASK_ROWS if parts is None else MOST_BUILT) // windows
    if not all_here(views, given.name, on=on, most=most, keep=held.keep):
        return None
    return held.groups(_table(views, held.needed, []))


@dataclass
class _Held:
    """Groups of rows as these come, by `parts` of theirs, or, without, the rows, in the columns that are `needed`."""

    plain: Grouped
    parts: tuple[Aggregated, ...] | None
    needed: list[str]
    placed: Callable[[pa.RecordBatch], pa.RecordBatch]
    _rows: list[pa.RecordBatch] = field(default_factory=list)
    _groups: list[pa.RecordBatch] = field(default_factory=list)

    def keep(self, rows: pa.RecordBatch) -> int:
        """Take more rows; how many bytes all that is kept has."""
        for first in range(0, rows.num_rows, AT_ONCE):
            self._rows.append(self.placed(rows.slice(first, AT_ONCE)).select(self.needed))
            if self.parts is not None and sum(some.num_rows for some in self._rows) >= AT_ONCE:
                self._group(pa.Table.from_batches(self._rows))
        return sum(int(some.nbytes) for some in (*self._rows, *self._groups))

    def groups(self, nothing: pa.Table) -> pa.RecordBatch:
        """All groups."""
        rows = pa.Table.from_batches(self._rows) if self._rows else nothing
        if self.parts is None:
            return groups_in(rows, self.plain)
        if rows.num_rows or not self._groups:
            self._group(rows)
        return merged_groups(pa.Table.from_batches(self._groups), self.plain.keys, self.plain.aggregates, self.parts)

    def _group(self, rows: pa.Table) -> None:
        self._groups.append(grouped(rows, self.plain.keys, self.parts or ()))
        self._rows = []


def _needed(plain: Grouped) -> list[str]:
    """The columns that groups are told of, each once."""
    of = [one.of for one in plain.aggregates if one.of]
    return list(dict.fromkeys([*plain.keys, *of, *([plain.on] if plain.on else [])]))


def _table(views: Views, names: Sequence[str], found: Sequence[pa.RecordBatch]) -> pa.Table:
    """Rows of the one input in these of its columns, or none."""
    if found:
        return pa.Table.from_batches(found)
    (given,) = views.computation.inputs
    types = views.types_here(given.name)
    return pa.schema([(name, arrow_type(types[name])) for name in names]).empty_table()


def _rows_of(views: Views, rule: ByKey, plain: Grouped, few: pa.Table) -> pa.Table | None:
    """The rows of the one input that have touched values, in the columns that are needed, each as often as it is there;
    None where they are not little, or one is there fewer times than none."""
    (given,) = views.computation.inputs
    ranges = ranges_holding(few, views, given.name, given.state.collection, dict(rule.clustered.get(given.name, ())))
    ranges = ranges or _ranges_of_windows(views, rule, few)
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    held = views.held_here(given.name, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
    if held is None:
        return None
    names = _needed(plain)
    found, kept = [], Kept(views.rows_held(given.name, ranges))
    for seen, rows in _touched(held, few, plain.keys, names):
        if kept.is_full(seen, rows):
            views.declines("too many rows are in the groups that changed")
            return None
        if rows.num_rows:
            found.append(rows)
    if not found:
        return _table(views, names, found)
    there = pa.Table.from_batches(found)
    both = numbered(few, there, plain.keys)
    if both is None:
        return None
    there = there.filter(pa.array(np.isin(both[1], both[0])))
    rows = repeated(one_batch(there.select([*names, MULTIPLICITY])), most_bytes=MOST_BYTES)
    return None if rows is None else pa.Table.from_batches([rows])


def _ranges_of_windows(views: Views, rule: ByKey, few: pa.Table) -> Sequence[KeyRange]:
    """The ranges of keys outside which no row is in the windows that few values say; none: all, or there are none."""
    (given,) = views.computation.inputs
    placing = views.computation.recipe and views.computation.recipe.placed
    if not placing or not few.num_rows or not {WINDOW_START, WINDOW_END} <= set(rule.held):
        return ()
    start, end = (in_micros(few.rename_columns(list(rule.held)), name) for name in (WINDOW_START, WINDOW_END))
    return ranges_when(given, placing.on, *spans_of(start, end - 1))


def _touched(
    held: Iterator[pa.RecordBatch], few: pa.Table, keys: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Of how many rows which have a touched value in each column; where keys are several columns, others too."""
    values = [few.column(f"k{at}").combine_chunks() for at in range(len(keys))]
    for rows in held:
        among = [np.asarray(pc.is_in(rows.column(name), of)) for name, of in zip(keys, values, strict=True)]
        yield rows.num_rows, rows.select([*names, MULTIPLICITY]).filter(pa.array(np.logical_and.reduce(among)))
