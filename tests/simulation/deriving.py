"""Several collections in memory, some derived from others, and what computes these without Spark.

Definitions are known by their text here (PLAIN): what each makes of rows, in plain Python, of single rows, of some keys
or of all. How a run computes is decided by the real analysis of the same text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.faulty import Clock
from support.world import DAY, World, certify, collection, interval
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.read import as_of, changes_schema, told_of
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, updates_schema
from tidemark.definition.computation import Computation, Computed, Differing, Input
from tidemark.definition.recipe import Recipe
from tidemark.errors import InvalidUsage
from tidemark.jobs.derived import computation
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest, unsealed_batch
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.change import Corrected
from tidemark.model.collection import Collection, Column, ColumnType, Gate
from tidemark.model.derived import Definition, Derived, Mode, Validity
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.model.window.bounds import Window
from tidemark.model.window.close import closes_at, frozen_from
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kind import Aligned, Session, Sliding
from tidemark.model.window.lateness import NOT_LATE, Judged, Lateness, judge, judge_slid, lateness
from tidemark.model.window.sliding import may_be_held
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.plan.computed_as import computed_as
from tidemark.plan.read import ReadRequest, plan_changes, plan_updates, read_tasks
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

LEARNED, BEFORE = "_learned", -(2**62)
"""Up to where an input was complete when an update of it came; and what is before whatever is judged."""
Row = dict[str, Any]
Update = tuple[tuple[Any, ...], int, int]
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Plain:
    """A definition: `whole` of the rows of its inputs; by row, `each` row's own (None: it is not by row); `by`, of each
    input the columns that say which group or join key a row is of, and `held` where D has these; or `reach`, the groups
    that a row is of. A row that is not there at once is `due` from some time on."""

    whole: Callable[[Rows], list[Row]]
    each: Callable[[Row], list[Row]] | None = None
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    reach: Callable[[Row], list[tuple[Any, ...]]] | None = None
    due: Callable[[Row], int] = lambda row: 0

    def groups(self, name: str, row: Row) -> list[tuple[Any, ...]]:
        """The groups or join keys that a row of an input is of."""
        return self.reach(row) if self.reach else [tuple(row[one] for one in self.by[name])]


BIG = "SELECT k, v FROM tides WHERE v <> 'a'"
BIGGER = "SELECT k, v FROM tides WHERE v <> 'a' AND k > 2"
COUNTS = "SELECT v, count(*) AS n, sum(k) AS total, max(k) AS most FROM tides WHERE v IS NOT NULL GROUP BY v"
SUMS = "SELECT v, count(*) AS n, sum(k) AS total FROM tides WHERE v IS NOT NULL GROUP BY v"
TALLIES = "SELECT v, count(*) AS n FROM tides WHERE v IS NOT NULL GROUP BY v"
JOINED = "SELECT tides.k, tides.v AS v, moons.v AS w FROM tides JOIN moons ON tides.k = moons.k"
MEANS = "SELECT v, avg(w) AS mean FROM tides WHERE v IS NOT NULL GROUP BY v"
RANKED = "SELECT k, v, rank() OVER (ORDER BY k) AS place FROM tides WHERE v IS NOT NULL"
SOMETIMES = "SELECT k, v, CASE WHEN v <> 'b' THEN k END AS at FROM tides"
OFFERED = "SELECT k, v, 7 * k AS since FROM tides WHERE v IS NOT NULL"
MET = "SELECT big.k, big.v AS v, counts.n AS n FROM big JOIN counts ON big.v = counts.v"


def _groups(rows: Sequence[Row], name: str) -> Iterator[tuple[Any, list[Row]]]:
    for value in sorted({row[name] for row in rows if row[name] is not None}):
        yield value, [row for row in rows if row[name] == value]


def _counts(given: Rows) -> list[Row]:
    return [
        {"v": v, "n": len(some), "total": sum(row["k"] for row in some), "most": max(row["k"] for row in some)}
        for v, some in _groups(given["tides"], "v")
    ]


def _joined(left: str, right: str, on: tuple[str, str], make: Callable[[Row, Row], Row]) -> Callable[[Rows], list[Row]]:
    def whole(given: Rows) -> list[Row]:
        return [
            make(one, other)
            for one in given[left]
            for other in given[right]
            if one[on[0]] is not None and one[on[0]] == other[on[1]]
        ]

    return whole


def _ranked(given: Rows) -> list[Row]:
    some = [row for row in given["tides"] if row["v"] is not None]
    return [{"k": row["k"], "v": row["v"], "place": 1 + sum(one["k"] < row["k"] for one in some)} for row in some]


def _big(row: Row) -> list[Row]:
    return [{"k": row["k"], "v": row["v"]}] if row["v"] not in (None, "a") else []


def _offered(row: Row) -> list[Row]:
    return [{"k": row["k"], "v": row["v"], "since": 7 * row["k"]}] if row["v"] is not None else []


def _sometimes(row: Row) -> Row:
    return {"k": row["k"], "v": row["v"], "at": row["k"] if row["v"] not in (None, "b") else None}


PLAIN: dict[str, Plain] = {
    BIG: Plain(lambda given: [made for row in given["tides"] for made in _big(row)], _big),
    BIGGER: Plain(
        lambda given: [made for row in given["tides"] for made in _big(row) if row["k"] > 2],
        lambda row: [made for made in _big(row) if row["k"] > 2],
    ),
    COUNTS: Plain(_counts, by={"tides": ("v",)}, held=("v",)),
    SUMS: Plain(
        lambda given: [{name: row[name] for name in ("v", "n", "total")} for row in _counts(given)],
        by={"tides": ("v",)},
        held=("v",),
    ),
    TALLIES: Plain(
        lambda given: [{name: row[name] for name in ("v", "n")} for row in _counts(given)],
        by={"tides": ("v",)},
        held=("v",),
    ),
    MEANS: Plain(
        lambda given: [
            {"v": v, "mean": sum(row["w"] for row in some) / len(some)} for v, some in _groups(given["tides"], "v")
        ],
        by={"tides": ("v",)},
        held=("v",),
    ),
    JOINED: Plain(
        _joined("tides", "moons", ("k", "k"), lambda one, other: {"k": one["k"], "v": one["v"], "w": other["v"]}),
        by={"tides": ("k",), "moons": ("k",)},
        held=("k",),
    ),
    RANKED: Plain(_ranked),
    OFFERED: Plain(lambda given: [made for row in given["tides"] for made in _offered(row)], _offered),
    SOMETIMES: Plain(lambda given: [_sometimes(row) for row in given["tides"]], lambda row: [_sometimes(row)]),
    MET: Plain(
        _joined("big", "counts", ("v", "v"), lambda one, other: {"k": one["k"], "v": one["v"], "n": other["n"]}),
        by={"big": ("v",), "counts": ("v",)},
        held=("v",),
    ),
}


def plain_of(definition: Definition) -> Plain:
    return PLAIN[definition.select] if definition.windows is None else windowed(definition.windows)


def happened(windows: Windows, rows: Sequence[Row]) -> list[Happened]:
    """Rows as windows see them; updates where they say how often (DIFF) and when that was learned (LEARNED)."""
    there = [row for row in rows if all(row[name] is not None for name in (windows.on, *windows.by))]
    return [
        Happened(
            tuple(row[by] for by in windows.by),
            tuple((name, cell) for name, cell in row.items() if name not in (LEARNED, DIFF)),
            row[windows.on],
            row.get(LEARNED, 0),
            row.get(DIFF, 1),
        )
        for row in there
    ]


def windowed(windows: Windows) -> Plain:
    """Windows by the law of the model."""

    def made(rows: Sequence[Row]) -> list[Row]:
        names = [*windows.by, WINDOW_START, WINDOW_END, *(one.name for one in windows.aggregates)]
        told = window_rows(windows, happened(windows, rows), lambda one, row: dict(row)[one.of])
        return [dict(zip(names, (*key, *window, *values), strict=True)) for key, window, values in told]

    def reach(row: Row) -> list[tuple[Any, ...]]:
        rule, alone = Rule.of(windows), happened(windows, [row])
        if isinstance(windows.kind, Session):  # also one that is in no window by itself, as it came too late
            return [one.key for one in alone if isinstance(one.key, tuple)]
        if lying:
            return [one.row.key for one in judge(rule, alone) if not one.refused]
        return [(*key, *window) for key, window in contents(rule, alone)]

    def due(row: Row) -> int:
        return 0 if windows.early else closes_at(windows.kind, row[WINDOW_END], windows.grace) - 1

    # Windows that lie where rows are follow from all rows of their key.
    lying = not isinstance(windows.kind, Aligned)
    held = windows.by if lying else (*windows.by, WINDOW_START, WINDOW_END)
    return Plain(
        lambda given: made(next(iter(given.values()))),
        held=held,
        reach=reach,
        due=due,
    )


_INT, _STRING = ColumnType.INT, ColumnType.STRING
SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[Column, ...]]] = {
    BIG: (("tides",), ("k",), (Column("v", _STRING),)),
    BIGGER: (("tides",), ("k",), (Column("v", _STRING),)),
    COUNTS: (("tides",), ("v",), (Column("n", _INT), Column("total", _INT), Column("most", _INT))),
    SUMS: (("tides",), ("v",), (Column("n", _INT), Column("total", _INT))),
    TALLIES: (("tides",), ("v",), (Column("n", _INT),)),
    MEANS: (("tides",), ("v",), (Column("mean", ColumnType.FLOAT),)),
    JOINED: (("tides", "moons"), ("k",), (Column("v", _STRING), Column("w", _STRING))),
    RANKED: (("tides",), ("k",), (Column("v", _STRING), Column("place", _INT))),
    OFFERED: (("tides",), ("k",), (Column("v", _STRING), Column("since", _INT))),
    SOMETIMES: (("tides",), ("k",), (Column("v", _STRING), Column("at", _INT))),
    MET: (("big", "counts"), ("k",), (Column("v", _STRING), Column("n", _INT))),
}
"""Inputs, key and value of each."""


def derived(name: str, select: str, **changes: Any) -> Collection:
    """The declaration of a derived collection."""
    inputs, key, value = SHAPES[select]
    own = {of: changes.pop(of) for of in ("history", "max_lag", "refresh", "validity") if of in changes}
    keys = tuple(Column(one, _INT if one == "k" else _STRING) for one in key)
    return Collection(name, keys, value, Derived(inputs, Definition(select), **own), **changes)


def windows_of(name: str, windows: Windows, input: str = "tides", **changes: Any) -> Collection:
    """The declaration of a collection of windows on whole numbers."""
    own = {of: changes.pop(of) for of in ("history",) if of in changes}
    keys = [Column(one, _STRING) for one in windows.by] + [Column(one, _INT) for one in (WINDOW_START, WINDOW_END)]
    value = tuple(Column(one.name, _INT) for one in windows.aggregates)
    return Collection(name, tuple(keys), value, Derived((input,), Definition(windows=windows), **own), **changes)


def read_updates(store: ObjectStore, request: ReadRequest) -> Counter[Update]:
    """The updates of a request, by row and times."""
    found: Counter[Update] = Counter()
    names = [column.name for column in request.collection.columns]
    for task in read_tasks(*parts_table.opened_read(store, request)):
        for rows in told_of(store, task, net=False):
            assert rows.schema.names == changes_schema(request.collection, net=False).names
            for row in rows.to_pylist():
                value = tuple(row[name] for name in names)
                found[value, row["_commit_version"], row["_event_time"]] += row["diff"]
    return found


def happened_rows(store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What SQL sees where it is told when rows happened: each row as often as it is there at its `event_time`."""
    names = [column.name for column in state.collection.columns]
    found: Counter[tuple[Any, ...]] = Counter()
    for (row, _, event_time), diff in read_updates(store, plan_updates(state, time)).items():
        found[(*row, event_time)] += diff
    if negative := [row for row, many in found.items() if many < 0]:
        raise InvalidUsage(f"collection {state.collection.name} holds {negative[0]} fewer times than never")
    there = sorted((row for row, many in found.items() for _ in range(many)), key=repr)
    return [dict(zip((*names, "event_time"), row, strict=True)) for row in there]


def rows_seen(definition: Definition, store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What a definition sees of an input."""
    named = "event_time" in {column.name for column in state.collection.columns}
    on_event_time = definition.windows is not None and definition.windows.on == "event_time" and not named
    return (happened_rows if on_event_time else held_rows)(store, state, time)


def held_rows(store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What SQL sees: each row as often as it is there."""
    rows = as_of(store, state, time=time).to_pylist()
    if negative := [row for row in rows if row["_multiplicity"] < 0]:
        raise InvalidUsage(f"collection {state.collection.name} holds {negative[0]} fewer times than never")
    return [
        {name: cell for name, cell in row.items() if name != "_multiplicity"}
        for row in rows
        for _ in range(row["_multiplicity"])
    ]


def valid(validity: Validity | None, row: Row) -> tuple[int, int | None]:
    """From when to when a row is there."""
    if validity is None:
        return 0, None
    begins = row[validity.valid_from] if validity.valid_from else 0
    if validity.valid_for is not None:
        return begins, begins + validity.valid_for
    ends = row[validity.valid_to] if validity.valid_to else None
    return begins, None if ends is None else max(begins, ends)


def there_at(upper: int, definition: Definition, validity: Validity | None, rows: Sequence[Row]) -> list[Row]:
    """The rows of a definition that are there just before a frontier."""
    times = ((row, *valid(validity, row)) for row in rows)
    due = plain_of(definition).due
    return [row for row, begins, ends in times if max(begins, due(row)) < upper <= (ends or MAX_TIME)]


def _for_a_while(computation: Computation) -> bool:
    """Whether late rows count in windows for a while only."""
    windows = computation.definition.windows
    return windows is not None and windows.counts_late_for is not None


def _learned(given: Input, time: int) -> int:
    learned = given.judging.learned(time)
    return BEFORE if learned is None else learned


@dataclass
class PlainComputer:
    """As spark/derive, over the stores of a sea. `asked` are the computations there were."""

    sea: Sea
    store: ObjectStore
    new_id: Callable[[], str]
    asked: list[Computation] = field(default_factory=list)

    def shape(
        self, name: str, definition: Definition, recipe: Recipe | None, inputs: Sequence[Input]
    ) -> tuple[Column, ...]:
        raise AssertionError("declared by hand here")

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
        places = [names.index(name) for name in (windows.on, *windows.by) if name in names]
        changes = self._changes(given).items()
        return sum(diff for (row, _, _), diff in changes if any(row[at] is None for at in places))

    def compare(self, computation: Computation, *, keys: Any, most: int) -> tuple[Differing, ...]:
        names = [column.name for column in computation.collection.columns]
        there = there_at(computation.upper, computation.definition, computation.validity, self._whole(computation))
        there = [row for row in there if not self._stands(computation, row)]
        desired = Counter(tuple(row[name] for name in names) for row in there)
        held: Counter[tuple[Any, ...]] = Counter()
        for (row, time, _), diff in read_updates(self.store, plan_updates(computation.state)).items():
            if not self._stands(computation, dict(zip(names, row, strict=True))):
                held[row] += diff if time < computation.upper else 0
        width = len(computation.collection.key)
        rows = sorted(row for row in {*desired, *held} if keys is None or row[:width] in keys)
        return tuple(
            Differing(tuple(zip(names, map(str, row), strict=True)), desired[row], held[row])
            for row in rows
            if desired[row] != held[row]
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
                if self._stands(computation, row):
                    continue
                when = max(at, plain.due(row))
                wanted[tuple(row[name] for name in names), when, when] += 1
        own = read_updates(self.store, plan_updates(computation.state))
        due: dict[tuple[Any, ...], int] = {}
        for (row, time, event_time), diff in own.items():
            if touched is not None and tuple(row[names.index(name)] for name in plain.held) not in touched:
                continue
            if self._stands(computation, dict(zip(names, row, strict=True))):
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
        return [row for row in whole if tuple(row[name] for name in plain.held) in touched]

    def _changes(self, given: Input) -> Counter[Update]:
        if given.previous is None:
            return read_updates(self.sea.store(given.name), plan_updates(given.state, given.upper - 1))
        request = plan_changes(given.state, given.previous - 1, given.upper - 1)
        return read_updates(self.sea.store(given.name), request)

    def _touched(self, computation: Computation, plain: Plain) -> set[tuple[Any, ...]]:
        found = set()
        for given in computation.inputs:
            names = [column.name for column in given.state.collection.columns]
            for (row, time, event_time), diff in self._changes(given).items():
                told = {LEARNED: _learned(given, time), DIFF: diff} if _for_a_while(computation) else {}
                seen = {"event_time": event_time} | dict(zip(names, row, strict=True)) | told
                found.update(plain.groups(given.name, seen))
        return found

    def _rows(self, computation: Computation, given: Input) -> list[Row]:
        """The rows of an input as they are held; where they count for a while only, its updates."""
        store = self.sea.store(given.name)
        if not _for_a_while(computation):
            return rows_seen(computation.definition, store, given.state, given.upper - 1)
        names = [column.name for column in given.state.collection.columns]
        return [
            dict(zip(names, row, strict=True)) | {LEARNED: _learned(given, time), DIFF: diff}
            for (row, time, _), diff in read_updates(store, plan_updates(given.state, given.upper - 1)).items()
        ]

    def _stands(self, computation: Computation, row: Mapping[str, Any]) -> bool:
        """Whether the row of a window stays as it is held."""
        windows = computation.definition.windows
        if windows is None or not _for_a_while(computation):
            return False
        frozen = frozen_from(windows.kind, row[WINDOW_END], windows.grace, windows.counts_late_for)
        return computation.inputs[0].judging.stands(frozen)

    def _late(self, computation: Computation) -> Lateness:
        windows = computation.definition.windows
        if windows is None or not _for_a_while(computation):
            return NOT_LATE
        (given,) = computation.inputs
        told, below = self._changes(given), given.consumed or 0
        if isinstance(windows.kind, Session):  # what comes too late follows from all that came before
            told = read_updates(self.sea.store(given.name), plan_updates(given.state, given.upper - 1))
        else:
            told = Counter({update: diff for update, diff in told.items() if update[1] >= below})
        before = Counter({update: diff for update, diff in told.items() if update[1] < below})
        return self._came_late(computation, windows, told) - self._came_late(computation, windows, before)

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
        """Rows judged by the windows that there are: those that stay as they are held, and those that are computed."""
        names = [column.name for column in computation.collection.columns]
        there = [row for row in self._whole(computation) if not self._stands(computation, row)]
        own: Counter[tuple[Any, ...]] = Counter()
        for (row, _, _), diff in read_updates(self.store, plan_updates(computation.state)).items():
            own[row] += diff
        held = [dict(zip(names, row, strict=True)) for row, many in own.items() if many]
        there += [row for row in held if self._stands(computation, row)]
        starts: dict[Any, list[Window]] = defaultdict(list)
        for row in there:
            starts[tuple(row[by] for by in windows.by)].append(Window(row[WINDOW_START], row[WINDOW_END]))
        return [
            judge_slid(Rule.of(windows), kind, starts[row.key], row, row.at)
            for row in happened(windows, rows)
            if row.at is not None and may_be_held(kind, row.at)
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
            tell_consolidated=True,
            name=self.new_id,
        ) as writer:
            writer.write(ordered)
            return writer.close()


@dataclass
class Sea:
    """Collections by name, which share a clock, and ids that never come again. `stores` are what jobs see of each."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    ids: Any = field(default_factory=lambda: count(1))
    worlds: dict[str, World] = field(default_factory=dict)
    asked: list[Computation] = field(default_factory=list)

    def add(self, made: Collection, store: ObjectStore | None = None) -> World:
        """A collection, created."""
        truth = MemoryStore(f"memory://{made.name}")
        world = World(
            self.folder / made.name,
            made,
            truth,
            store(truth) if callable(store) else None,
            clock=self.clock,
            ids=self.ids,
        )
        self.worlds[made.name] = world
        return world

    def landed(self, name: str, **changes: Any) -> World:
        return self.add(collection(name=name, **changes))

    def store(self, name: str) -> ObjectStore:
        """What jobs see."""
        held = self.worlds[name].store
        assert held is not None
        return held

    def log(self, name: str) -> StateLog:
        """As a job opens it: a collection that was never created has an empty store."""
        if name not in self.worlds:
            store = MemoryStore(f"memory://{name}")
            return StateLog(store, self.new_id, wall=self.clock, monotonic=self.clock, pause=self.clock.pause)
        world = self.worlds[name]
        return world.log(world.store)

    def new_id(self) -> str:
        return f"id{next(self.ids):05}"

    def joined(self, job: Job) -> Job:
        """A job that knows its neighbours, and what computes."""
        computer = PlainComputer(self, job.store, self.new_id, self.asked)
        return replace(job, beside=self.log, computer_on=lambda runner: computer)

    def run(self, name: str, step: Callable[[Job], Any], **more: Any) -> Any:
        """A step of a collection as a DAG runs it, gated and tried again."""
        return self.worlds[name].run(lambda job: step(self.joined(job)), **more)

    def ingest(
        self, name: str, day: int, *files: tuple[str, Sequence[Row]], until: str = "compact", days: int = 1
    ) -> None:
        """A day of a landed collection (or several, as one interval), through all steps (or until one of them)."""
        world = self.worlds[name]
        (world.landing / str(day * DAY)).mkdir(parents=True, exist_ok=True)
        for file, rows in files:
            world.land(day, file, rows)
        steps: dict[str, Callable[[Job], Any]] = {
            "ingest": lambda job: ingest(job, Interval(day * DAY, (day + days) * DAY), landing_root=str(world.landing)),
            **self._moving(day + days - 1),
        }
        self._through(name, steps, until)

    def correct(self, name: str, *, until: str = "compact", **asked: Any) -> dict[str, Any]:
        """A run of a derived collection's DAG; what `correct` came to."""
        result: dict[str, Any] = {}

        def corrected(job: Job) -> None:
            result.update(correct(job, **asked))

        self._through(name, {"correct": corrected, **self._moving(0)}, until)
        return result

    def _moving(self, day: int) -> dict[str, Callable[[Job], Any]]:
        return {
            "seal": lambda job: seal(job, interval(day)),
            "drain": lambda job: drain(job, interval(day)),
            "compact": lambda job: compact(job, interval(day)),
        }

    def _through(self, name: str, steps: Mapping[str, Callable[[Job], Any]], until: str) -> None:
        for called, step in steps.items():
            self.run(name, step)
            if called == "drain":
                self.run(name, lambda job: certify(job, Gate.TRACE))
            if called == until:
                return

    def held(self, name: str, time: int) -> Counter[tuple[Any, ...]]:
        """What a collection holds as known at `time`, sealed or not."""
        world = self.worlds[name]
        found: Counter[tuple[Any, ...]] = Counter()
        for (row, known, _), diff in read_updates(world.truth, plan_updates(world.state)).items():
            found[row] += diff if known <= time else 0
        return Counter({row: many for row, many in found.items() if many})

    def law(self, name: str) -> int:
        """Check the law at every frontier that a derived collection records, and its inputs keep; how many did."""
        state, checked = self.worlds[name].state, 0
        origin = state.collection.derived
        for consumption in state.consumptions:
            known = [self.worlds[one.input].state.collection for one in consumption.inputs]
            in_force = consumption.definition == computed_as(state.collection, known)
            if not in_force or not state.function.keeps(consumption.upper - 1):
                continue
            given = {}
            for one in consumption.inputs:
                world = self.worlds[one.input]
                if not world.state.function.keeps(one.upper - 1) or world.state.seal < one.upper:
                    break
                given[one.input] = rows_seen(origin.definition, world.truth, world.state, one.upper - 1)
            else:
                names = [column.name for column in state.collection.columns]
                wanted = plain_of(origin.definition).whole(given)
                there = there_at(consumption.upper, origin.definition, origin.validity, wanted)
                desired = Counter(tuple(row[name] for name in names) for row in there)
                assert self.held(name, consumption.upper - 1) == desired, (name, consumption)
                checked += 1
        return checked


def write_by_hand(
    sea: Sea, name: str, rows: Mapping[tuple[Any, ...], int], *, time: int | None = None, told: int | None = None
) -> None:
    """A batch that nothing computed, committed as if it had been: rows that others wrote, and rows that they lost.
    Of the latter it says that it took back as many, or `told`."""
    world = sea.worlds[name]
    state = world.state
    upper = state.complete + 1
    at = upper - 1 if time is None else time
    asked = computation(state, world.truth.url, None, Mode.WHOLE, (), upper=upper)
    computer = PlainComputer(sea, world.truth, sea.new_id)
    batch = sea.new_id()
    parts = computer.written(
        replace(asked, prefix=f"data/{batch}"), Counter({(row, at, at): diff for row, diff in rows.items()})
    )
    job, lower = world.job(), state.complete
    made = unsealed_batch(job, batch, Interval(lower, upper), parts, learned_at=None)
    held = state.consumed
    assert held is not None
    consumption = replace(held, upper=upper, batch=batch)
    fence = Fence("correct", Interval(lower, upper), "by hand", unannounced=True)
    log = world.log()
    added, retracted = (sum(max(0, sign * diff) for diff in rows.values()) for sign in (1, -1))
    change = Corrected(
        fence,
        consumption,
        made,
        held,
        Mode.WHOLE,
        state.event_times_from,
        rows_added=added,
        rows_retracted=retracted if told is None else told,
    )
    assert isinstance(log.commit(log.load(), change), Committed)
