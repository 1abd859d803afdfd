"""What statistics of windows must be, counted from the updates of the input one by one; and what they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import tidemark
from tests.oracles.law.missed import missed
from tests.spark.support import DAY, Made
from tests.spark.test_derived import Deriving
from tests.support.presence import presence
from tidemark.arrow.read import changes_of
from tidemark.model.instant import from_datetime
from tidemark.model.window.close import frozen_from
from tidemark.model.window.contents import Rule, rows_by_window
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.storage.sidecars import parts_table

Row = dict[str, Any]
BEFORE = -(2**62)
"""Before whatever is judged."""


def updates(events: Made, upto: int) -> Iterator[tuple[tuple[Any, ...], int, int, int]]:
    """What became of the input's rows: a row, when that was learned and when it happened, and how often it came."""
    request = plan_updates(events.log.load().state, upto)
    names = [column.name for column in request.collection.columns]
    for task in read_tasks(*parts_table.opened_read(events.store, request)):
        for row in (row for rows in changes_of(events.store, task, net=False) for row in rows.to_pylist()):
            cells = tuple((name, _plain(row[name])) for name in names)
            yield cells, row["_commit_version"], row["_event_time"], row["diff"]


class Float(str):
    """A float by how it is written: a NaN is then equal to itself."""


def _plain(value: Any) -> Any:
    return Float(value + 0.0) if isinstance(value, float) else value


def _bytes(value: Any) -> int:
    if isinstance(value, str) and not isinstance(value, Float):
        return len(value.encode())
    return 0 if value is None else BYTES.get(type(value), 16)


BYTES = {bool: 1, int: 8, Float: 8, datetime: 8}


class Cells(tuple[Any, ...]):
    """A row's values, which know the time of the update that has them: as values they are equal whenever that was."""

    time: int

    @classmethod
    def at(cls, cells: tuple[Any, ...], time: int) -> Cells:
        """Values of an update at a time."""
        made = cls(cells)
        made.time = time
        return made


@dataclass(frozen=True)
class Input:
    """The rows that fit as windows see them, of Cells; and up to where the input was complete when those came that its
    history begins with (None: it has all of it)."""

    rows: list[Happened]
    merged: int | None


def given(windows: Windows, events: Made, upto: int, fits: Callable[[Row], bool]) -> Input:
    """The updates of an input that comes by days. Those that are merged came before whatever is judged."""
    state, found = events.log.load().state, []
    since = None if state.function.changes_nothing else state.since
    for row, time, event_time, diff in updates(events, upto):
        cells = dict(row)
        at = event_time if windows.on == "event_time" else _micros(cells[windows.on])
        if fits(cells) and at is not None:
            learned = BEFORE if since is not None and time <= since else time // DAY * DAY
            by = tuple(cells[name] for name in windows.by)
            found.append(Happened(by, Cells.at(row, time), at, learned, diff))
    return Input(found, None if since is None else since // DAY * DAY)


def counted(windows: Windows, events: Made, seen: Input) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By `by`, start and end what is in each window: different rows, keys, rows, bytes, first and last event, first and
    last arrival. A row is there since it last came to be, of what counts in that window."""
    key = [column.name for column in events.log.load().state.collection.key]
    found = {}
    for (by, window), rows in rows_by_window(Rule.of(windows), seen.rows).items():
        changes: dict[tuple[Any, Any], Counter[int]] = defaultdict(Counter)
        for one in rows:
            assert isinstance(one.value, Cells)
            changes[one.value, one.at][one.value.time] += one.diff
        there = {row: state for row, state in ((row, presence(of)) for row, of in changes.items()) if state[0]}
        size = sum(_bytes(cell) for row, _ in there for _, cell in row)
        keys = {tuple(dict(row)[name] for name in key) for row, _ in there}
        at = [at for _, at in there]
        net, arrived, grew = zip(*there.values(), strict=True)
        found[(*by, *window)] = len(there), len(keys), sum(net), size, min(at), max(at), min(arrived), max(grew)
    return found


def too_late(windows: Windows, seen: Input) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """By `by`, start and end how many rows came too late for each window: for all, for some, and both."""
    rule = Rule.of(windows)
    if rule.lateness is None:
        return {}
    found = missed(rule, seen.rows)
    return {
        (*by, *window): (one.rows_late_for_all, one.rows_late_for_some, one.window_updates_late)
        for (by, window), one in found.items()
    }


def known(windows: Windows, seen: Input, end: int) -> tuple[bool, bool]:
    """Whether it must be known, and whether it may be, what counted in a window of that end: the history of the input
    tells what came when it took no more. Of a sliding one that took no more an instant after what is merged it is known
    what counted, and not from the input where it starts: it may be left out."""
    frozen = frozen_from(windows.kind, end, windows.grace, Rule.of(windows).lateness)
    if frozen is None or seen.merged is None:
        return True, True
    return frozen > seen.merged + isinstance(windows.kind, Sliding), frozen > seen.merged


def _micros(at: Any) -> Any:
    return from_datetime(at) if isinstance(at, datetime) else at


NAMES = ("_rows", "_distinct_keys", "_net_diff", "_bytes", "_first_event", "_last_event", "_first_arrival")
LATE = ("_rows_late_for_all", "_rows_late_for_some", "_window_updates_late")


@dataclass(frozen=True)
class Checked:
    """For how many windows statistics were reported, for how many not, and how many rows came too late for these."""

    reported: int
    missing: int
    late: int


def check_statistics(
    one: Deriving, windows: Windows, fits: Callable[[Row], bool], *, time: int | None = None, where: Any = None
) -> Checked:
    """Check the statistics of each window that is there."""
    opened = tidemark.open(str(one.events.root), one.name)
    answer = opened.windows(time, where=where)
    upper = next(each for each in reversed(opened.state.consumptions) if each.upper <= answer.time + 1).inputs[0].upper
    seen = given(windows, one.events, upper - 1, fits)
    right, late = counted(windows, one.events, seen), too_late(windows, seen)
    rows = answer.with_statistics(one.spark).to_arrow()
    own = rows.select(answer.schema.names)
    assert (own.schema, repr(own.to_pylist())) == (answer.schema, repr(answer.to_arrow().to_pylist()))  # a NaN is one
    missing = lost = 0
    for row in rows.to_pylist():
        of = tuple(_micros(row[column.name]) for column in opened.state.collection.key)
        found = tuple(_micros(row[name]) for name in (*NAMES, "_last_arrival", *LATE))
        must, may = known(windows, seen, of[-1])
        if {*found, row["_mean_bytes"]} == {None}:
            assert not must, (one.name, of)
            missing += 1
            continue
        assert may, (one.name, of)
        assert found == (*right[of], *late.get(of, (0, 0, 0))), (one.name, of)
        assert row["_mean_bytes"] == row["_bytes"] / row["_rows"]
        lost += row["_window_updates_late"]
    return Checked(rows.num_rows - missing, missing, lost)
