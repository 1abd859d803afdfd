"""The law of full snapshots against counting: after each full snapshot the collection holds what it said, and writes no
more for it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Late, Source
from tidemark.model.full_snapshot import FullSnapshot, changes
from tidemark.model.interval import Interval
from tidemark.model.kind import FULL_SNAPSHOT
from tidemark.model.times import Times
from tidemark.model.update import Update, as_of

pytestmark = pytest.mark.pure


def differences(current, snapshots):
    """What full snapshots, each of a time, change of the current rows."""
    trace = [Update(key, value, 1, 1, count) for key, value, count in current]
    learned = [
        (FullSnapshot("", Interval(time, time + 1), len(rows)), [(*row, 1) for row in rows]) for time, rows in snapshots
    ]
    return changes(trace, Times(), learned)


row = st.tuples(st.tuples(st.integers(0, 2)), st.tuples(st.sampled_from([None, "a", "b"])))
contents = st.lists(row, max_size=8)


@given(current=contents, snapshots=st.lists(contents, max_size=4))
def test_after_each_full_snapshot_the_collection_holds_what_it_said(current, snapshots):
    """Written from counters alone: what is expected is never derived from the law."""
    times = [10 * (at + 1) for at in range(len(snapshots))]
    before = [Update(key, value, 1, 1, 1) for key, value in current]
    found = differences([(key, value, 1) for key, value in current], list(zip(times, snapshots, strict=True)))
    then = Counter(current)
    for time, rows in zip(times, snapshots, strict=True):
        now = Counter(rows)
        said = {(u.key, u.value): u.diff for u in found if u.time == time}
        assert said == {at: now[at] - then[at] for at in {*now, *then} if now[at] != then[at]}
        whole = as_of([*before, *found], time=time, event_time=time)
        assert {(key, value): count for key, value, count in whole} == dict(now)
        then = now
    assert {u.time for u in found} <= set(times)
    assert all(u.time == u.event_time and u.diff for u in found)


def test_an_unchanged_full_snapshot_says_nothing_and_an_empty_one_that_all_is_gone():
    a, b = ((1,), ("a",)), ((2,), ("b",))
    assert differences([(*a, 2)], [(9, [a, a])]) == []
    assert differences([(*a, 2)], [(9, []), (19, [b])]) == [
        Update((1,), ("a",), 9, 9, -2),
        Update((2,), ("b",), 19, 19, 1),
    ]
    assert differences([(*a, 2)], []) == []


def dumped(**changes):
    source = Source("*", Format.CSV, Envelope.SNAPSHOT, **changes.pop("source", {}))
    return Collection("stock", (Column("k", ColumnType.INT),), (), Landed(source, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time": "t"}, "remove time and event_time"),
        ({"event_time": "t"}, "remove time and event_time"),
        ({"late": Late("reemit", 3)}, "no row is late; remove late"),
        ({"source": {"order_by": "t"}}, "order_by belongs to the envelopes upsert and debezium"),
        ({"source": {"delete_when": "gone = TRUE"}}, "delete_when belongs to the upsert envelope"),
        ({"source": {"bad_files": "quarantine"}}, "would delete its rows"),
    ],
)
def test_what_full_snapshots_cannot_have_is_refused(changes, said):
    assert dumped().kind is FULL_SNAPSHOT
    with pytest.raises(InvalidUsage, match=said):
        dumped(**changes)
