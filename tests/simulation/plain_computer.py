"""What computes derived collections without Spark. How a run computes is decided by the real analysis of the same
text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from simulation.plain_definitions import LEARNED, Plain, happened, plain_of, there_at, valid
from simulation.rows_read import Row, Update, read_updates, rows_seen
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.order import sort, sort_key_of
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, updates_schema
from tidemark.definition.computation import Computation, Computed, Differing, Input
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import Recipe
from tidemark.definition.resolve import resolved, sql_type
from tidemark.definition.steps import column_type
from tidemark.definition.types import type_of
from tidemark.model.collection import Column, ColumnType
from tidemark.model.derived import Definition, Mode
from tidemark.model.key import plain_scalar
from tidemark.model.window.close import frozen_from
from tidemark.model.window.contents import Rule
from tidemark.model.window.kinds import Session, Sliding, Window
from tidemark.model.window.lateness import NOT_LATE, Judged, Lateness, judge, judge_slid, lateness
from tidemark.model.window.sliding import fits_a_window
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.plan.read import plan_changes, plan_updates
from tidemark.storage.stores.store import ObjectStore

BEFORE = -(2**62)
"""What is before whatever is judged."""


def _for_a_while(computation: Computation) -> bool:
    """Whether late rows count in windows for a while only."""
    windows = computation.definition.windows
    return windows is not None and windows.counts_late_for is not None


def _learned(given: Input, time: int) -> int:
    learned = given.judging.learned(time)
    return BEFORE if learned is None else learned


@dataclass
class PlainComputer:
    """As spark/derive, over the stores of collections by name. `asked` are the computations there were."""

    stores: Callable[[str], ObjectStore]
    store: ObjectStore
    new_id: Callable[[], str]
    asked: list[Computation] = field(default_factory=list)

    def shape(
        self, name: str, definition: Definition, recipe: Recipe | None, inputs: Sequence[Input]
    ) -> tuple[Column, ...]:
        """The columns of a select whose types its text shows; of windows, as `windows_of` declares them."""
        if definition.windows is not None and recipe is not None:
            by = definition.windows.by
            return tuple(Column(c, ColumnType.STRING if c in by else ColumnType.INT) for c in recipe.columns)
        shapes = {source.name: source.shape for source in inputs}
        columns = {(name, c.name): sql_type(c.type) for name, shape in shapes.items() for c in shape.columns}
        select = resolved(parsed(definition.select), shapes)
        types = [column_type(type_of(node, columns)) for node in select.query.selects]
        return (*map(Column, select.columns, types), *(recipe.hidden if recipe else ()))

    def compute(self, computation: Computation) -> Computed:
        self.asked.append(computation)
        difference = self._difference(computation)
        parts = self.written(computation, difference) if difference else ()
        added = sum(diff for diff in difference.values() if diff > 0)
        retracted = -sum(diff for diff in difference.values() if diff < 0)
        return Computed(parts, added, retracted, 0, 0, self._unplaced(computation), self._late(computation))

    def _unplaced(self, computation: Computation) -> int:
        if (windows := computation.definition.windows) is None:
            return 0
        (given,) = computation.inputs
        names = [column.name for column in given.state.collection.columns]
        if windows.on not in names:
            return 0
        at = names.index(windows.on)
        return sum(diff for (row, _, _), diff in self._changes(given).items() if row[at] is None)

    def compare(self, computation: Computation, *, keys: Any, most: int) -> tuple[Differing, ...]:
        names = [column.name for column in computation.collection.columns]
        there = there_at(computation.upper, computation.definition, computation.validity, self._whole(computation))
        there = [row for row in there if not self._stays(computation, row)]
        desired = Counter(tuple(row[name] for name in names) for row in there)
        stored: Counter[tuple[Any, ...]] = Counter()
        for (row, time, _), diff in read_updates(self.store, plan_updates(computation.state)).items():
            if not self._stays(computation, dict(zip(names, row, strict=True))):
                stored[row] += diff if time < computation.upper else 0
        width = len(computation.collection.key)
        asked = None if keys is None else {tuple(map(plain_scalar, key)) for key in keys}
        rows = sorted((row for row in {*desired, *stored} if asked is None or row[:width] in asked), key=sort_key_of)
        return tuple(
            Differing(tuple(zip(names, map(str, row), strict=True)), desired[row], stored[row])
            for row in rows
            if desired[row] != stored[row]
        )[:most]

    def _difference(self, computation: Computation) -> Counter[Update]:
        plain, at = plain_of(computation.definition), computation.upper - 1
        names = [column.name for column in computation.collection.columns]
        if computation.mode is Mode.BY_ROW:
            return self._by_row(computation, plain, not_before=computation.previous)
        since = max(computation.state.since, *(given.state.since for given in computation.inputs))
        touched = self._touched(computation, plain) if computation.mode is Mode.BY_KEY else None
        if computation.rows_keep_times:
            wanted = Counter()
            for (row, time, event_time), diff in self._by_row(computation, plain, not_before=at).items():
                wanted[row, time, max(event_time, since)] += diff
        else:
            made = self._whole(computation, touched, plain)
            wanted = Counter()
            for row in made:
                if self._stays(computation, row):
                    continue
                when = max(at, plain.due(row))
                wanted[tuple(row[name] for name in names), when, when] += 1
        own = read_updates(self.store, plan_updates(computation.state))
        due: dict[tuple[Any, ...], int] = {}
        for (row, time, event_time), diff in own.items():
            if touched is not None and tuple(row[names.index(name)] for name in plain.group_columns) not in touched:
                continue
            if self._stays(computation, dict(zip(names, row, strict=True))):
                continue
            now = max(time, at)
            wanted[row, now, max(event_time, since) if computation.rows_keep_times else now] -= diff
            if computation.previous <= time < at and not computation.rows_keep_times:
                due[row] = max(time, due.get(row, 0))
        left: Counter[Update] = Counter()
        for (row, time, event_time), diff in wanted.items():
            if diff < 0 and time == at and row in due:  # no reader is to find it between the frontiers
                time = event_time = due[row]
            left[row, time, event_time] += diff
        return Counter({update: diff for update, diff in left.items() if diff})

    def _whole(
        self, computation: Computation, touched: set[tuple[Any, ...]] | None = None, plain: Plain | None = None
    ) -> list[Row]:
        plain = plain or plain_of(computation.definition)
        given = {}
        for one in computation.inputs:
            rows = self._rows(computation, one)
            if touched is not None:
                rows = [row for row in rows if not touched.isdisjoint(plain.groups(one.name, row))]
            given[one.name] = rows
        whole = plain.whole(given)
        if touched is None or plain.reach is None:
            return whole
        return [row for row in whole if tuple(row[name] for name in plain.group_columns) in touched]

    def _changes(self, given: Input) -> Counter[Update]:
        if given.previous is None:
            return read_updates(self.stores(given.name), plan_updates(given.state, given.upper - 1))
        request = plan_changes(given.state, given.previous - 1, given.upper - 1)
        return read_updates(self.stores(given.name), request)

    def _touched(self, computation: Computation, plain: Plain) -> set[tuple[Any, ...]]:
        found = set()
        for given in computation.inputs:
            names = [column.name for column in given.state.collection.columns]
            for (row, time, event_time), diff in self._changes(given).items():
                more = {LEARNED: _learned(given, time), DIFF: diff} if _for_a_while(computation) else {}
                seen = {"event_time": event_time} | dict(zip(names, row, strict=True)) | more
                found.update(plain.groups(given.name, seen))
        return found

    def _rows(self, computation: Computation, given: Input) -> list[Row]:
        """The current rows of an input; where they count for a while only, its updates."""
        store = self.stores(given.name)
        if not _for_a_while(computation):
            return rows_seen(computation.definition, store, given.state, given.upper - 1)
        names = [column.name for column in given.state.collection.columns]
        return [
            dict(zip(names, row, strict=True)) | {LEARNED: _learned(given, time), DIFF: diff}
            for (row, time, _), diff in read_updates(store, plan_updates(given.state, given.upper - 1)).items()
        ]

    def _stays(self, computation: Computation, row: Mapping[str, Any]) -> bool:
        """Whether the row of a window stays as it is stored."""
        windows = computation.definition.windows
        if windows is None or not _for_a_while(computation):
            return False
        frozen = frozen_from(windows.kind, row[WINDOW_END], windows.grace, windows.counts_late_for)
        return computation.inputs[0].judging.stays(frozen)

    def _late(self, computation: Computation) -> Lateness:
        windows = computation.definition.windows
        if windows is None or not _for_a_while(computation):
            return NOT_LATE
        (given,) = computation.inputs
        updates, below = self._changes(given), given.consumed or 0
        if isinstance(windows.kind, Session):  # what comes too late follows from all that came before
            updates = read_updates(self.stores(given.name), plan_updates(given.state, given.upper - 1))
        else:
            updates = Counter({update: diff for update, diff in updates.items() if update[1] >= below})
        before = Counter({update: diff for update, diff in updates.items() if update[1] < below})
        return self._came_late(computation, windows, updates) - self._came_late(computation, windows, before)

    def _came_late(self, computation: Computation, windows: Windows, updates: Counter[Update]) -> Lateness:
        (given,) = computation.inputs
        names = [column.name for column in given.state.collection.columns]
        rows = [
            dict(zip(names, row, strict=True)) | {LEARNED: _learned(given, time), DIFF: diff}
            for (row, time, _), diff in updates.items()
        ]
        if isinstance(windows.kind, Sliding):
            return lateness(self._slid(computation, windows, windows.kind, rows))
        return lateness(judge(Rule.of(windows), happened(windows, rows)))

    def _slid(self, computation: Computation, windows: Windows, kind: Sliding, rows: Sequence[Row]) -> list[Judged]:
        """Rows judged by the windows that there are: those that stay as stored, and those that are computed."""
        names = [column.name for column in computation.collection.columns]
        there = [row for row in self._whole(computation) if not self._stays(computation, row)]
        own: Counter[tuple[Any, ...]] = Counter()
        for (row, _, _), diff in read_updates(self.store, plan_updates(computation.state)).items():
            own[row] += diff
        stored = [dict(zip(names, row, strict=True)) for row, many in own.items() if many]
        there += [row for row in stored if self._stays(computation, row)]
        starts: dict[Any, list[Window]] = defaultdict(list)
        for row in there:
            starts[tuple(row[by] for by in windows.by)].append(Window(row[WINDOW_START], row[WINDOW_END]))
        return [
            judge_slid(Rule.of(windows), kind, starts[row.key], row, row.at)
            for row in happened(windows, rows)
            if row.at is not None and fits_a_window(kind, row.at)
        ]

    def _by_row(self, computation: Computation, plain: Plain, *, not_before: int) -> Counter[Update]:
        (given,) = computation.inputs
        assert plain.each is not None
        columns = [column.name for column in given.state.collection.columns]
        names = [column.name for column in computation.collection.columns]
        found: Counter[Update] = Counter()
        for (row, time, event_time), diff in self._changes(given).items():
            for made in plain.each(dict(zip(columns, row, strict=True))):
                begins, ends = valid(computation.validity, made)
                value = tuple(made[name] for name in names)
                found[value, max(time, not_before, begins), max(event_time, begins)] += diff
                if ends is not None:
                    found[value, max(time, not_before, ends), max(event_time, ends)] -= diff
        return Counter({update: diff for update, diff in found.items() if diff})

    def written(self, computation: Computation, difference: Counter[Update]) -> tuple[Any, ...]:
        """The parts that hold some updates."""
        collection = computation.collection
        schema = updates_schema(collection)
        names = [column.name for column in collection.columns]
        rows = [
            {**dict(zip(names, row, strict=True)), TIME: time, EVENT_TIME: event_time, DIFF: diff}
            for (row, time, event_time), diff in difference.items()
        ]
        full = [{name: row.get(name) for name in schema.names} for row in rows]
        table = pa.Table.from_pylist(full, schema=schema)
        ordered = sort(table, [name for name in schema.names if name != DIFF])
        width = len(collection.key)
        with PartWriter(
            self.store,
            computation.prefix,
            schema,
            key_width=width,
            facts=False,
            records_consolidated=True,
            name=self.new_id,
        ) as writer:
            writer.write(ordered)
            return writer.close()
