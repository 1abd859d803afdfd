"""In which windows updates count, and for how many they came too late, against a loop over the law of windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kinds import aligned
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.judged import counting, late, late_in_windows, net_in_windows
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.definition.recipe import WindowAssignment
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import ColumnType
from tidemark.model.window.close import closes_at
from tidemark.model.window.judged import Judging
from tidemark.model.window.kinds import AlignedKind, Tumbling
from tidemark.model.window.lateness import Lateness
from tidemark.model.window.statistics import LATE

pytestmark = pytest.mark.pure

JUDGING = Judging(4, (0, 4, 8, 20))
UPDATES = st.lists(
    st.tuples(st.none() | st.integers(0, 30), st.integers(0, 30), st.sampled_from(["a", "b"]), st.integers(-2, 2)),
    max_size=15,
)
SCHEMA = pa.schema(
    [("at", pa.int64()), (TIME, pa.int64()), (EVENT_TIME, pa.int64()), ("k", pa.string()), (DIFF, pa.int64())]
)


def batch(updates: list[Any]) -> pa.RecordBatch:
    rows = [dict(zip(SCHEMA.names, (at, time, time, key, diff), strict=True)) for at, time, key, diff in updates]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def assignment(kind: AlignedKind, lateness: int) -> WindowAssignment:
    return WindowAssignment(kind, "at", ("k",), ColumnType.INT, closes_at(kind, 0, 1) + lateness)


def takes(kind: AlignedKind, lateness: int, end: int, time: int) -> bool:
    """By hand: whether the window was still open to changes when the update came."""
    came = JUDGING.learned(time)
    return came is None or closes_at(kind, end, 1) + lateness > came


@given(aligned, st.integers(0, 9), UPDATES)
def test_updates_count_where_the_law_says(kind: AlignedKind, lateness: int, updates: list[Any]) -> None:
    wanted: Counter[Any] = Counter()
    numbers = [0, 0, 0]
    for at, time, key, diff in updates:
        windows = [] if at is None else kind.windows_at(at)
        open_ = [window for window in windows if takes(kind, lateness, window.end, time)]
        for window in open_:
            wanted[at, time, key, diff, window.start, window.end] += 1
        missed = len(windows) - len(open_)
        numbers[0] += abs(diff) if missed and not open_ else 0
        numbers[1] += abs(diff) if missed and open_ else 0
        numbers[2] += abs(diff) * missed
    rule = assignment(kind, lateness)
    found = counting(batch(updates), rule, JUDGING).to_pylist()
    assert Counter((row["at"], row[TIME], row["k"], row[DIFF], row[START], row[END]) for row in found) == wanted
    assert late(batch(updates), rule, JUDGING) == Lateness(*numbers)


@given(aligned, st.integers(0, 9), st.integers(0, 3), UPDATES)
def test_what_is_late_for_all_counts_in_the_window_that_is_open_next(
    kind: AlignedKind, lateness: int, grace: int, updates: list[Any]
) -> None:
    wanted: Counter[Any] = Counter()
    added = [(at, time, key, abs(diff)) for at, time, key, diff in updates]
    for at, time, key, diff in added:
        own = [] if at is None else kind.windows_at(at)
        counts = [window for window in own if takes(kind, lateness, window.end, time)]
        if own and not counts:
            came = JUDGING.learned(time)
            assert came is not None, "else it would count"
            counts = [kind.earliest_after(came - grace)]
        for window in counts:
            wanted[at, time, key, diff, window.start, window.end] += 1
    rule = replace(assignment(kind, lateness), grace_of_next=grace)
    found = counting(batch(added), rule, JUDGING).to_pylist()
    assert Counter((row["at"], row[TIME], row["k"], row[DIFF], row[START], row[END]) for row in found) == wanted
    if any(diff < 0 for *_, diff in updates):
        with pytest.raises(Overflowed, match="retracted"):
            counting(batch(updates), rule, JUDGING)


@given(aligned, st.integers(0, 9), UPDATES)
def test_of_each_window_it_is_known_what_came_too_late(kind: AlignedKind, lateness: int, updates: list[Any]) -> None:
    wanted: Counter[Any] = Counter()
    for at, time, key, diff in updates:
        windows = [] if at is None else kind.windows_at(at)
        missed = [window for window in windows if not takes(kind, lateness, window.end, time)]
        for window in missed:
            wanted[key, window.start, window.end, len(missed) == len(windows)] += abs(diff)
    found: Counter[Any] = Counter()
    for row in late_in_windows(batch(updates), assignment(kind, lateness), JUDGING).to_pylist():
        for_all, for_some, total = (row[name] for name in LATE)
        assert total == for_all + for_some
        for each, many in ((True, for_all), (False, for_some)):
            found[row["k"], row[START], row[END], each] += many
    assert +found == +wanted


@given(aligned, st.integers(0, 9), UPDATES, st.integers(1, 5))
def test_updates_add_up_to_rows_however_they_come_in_batches(
    kind: AlignedKind, lateness: int, updates: list[Any], size: int
) -> None:
    """Those in no window, too, but for those that cancel each other."""
    wanted: Counter[Any] = Counter()
    for at, time, key, diff in updates:
        windows = [(None, None)] if at is None else [(one.start, one.end) for one in kind.windows_at(at)]
        for start, end in windows:
            if end is None or takes(kind, lateness, end, time):
                wanted[at, key, start, end] += diff
    batches = [batch(updates[first : first + size]) for first in range(0, len(updates), size)]
    found = [
        row
        for rows in net_in_windows(batches, None, assignment(kind, lateness), JUDGING, 2**20)
        for row in rows.to_pylist()
    ]
    assert {(row["at"], row["k"], row[START], row[END]): row[DIFF] for row in found} == {
        row: many for row, many in wanted.items() if many
    }


def test_updates_that_take_too_much_are_refused() -> None:
    rows = batch([(1, 1, "a", 1)])
    with pytest.raises(Overflowed, match="take more than"):
        list(net_in_windows([rows] * 9, None, assignment(Tumbling(5), 0), JUDGING, 100))
