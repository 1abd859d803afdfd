"""Full snapshots as updates, against the law of full snapshots in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import SMALL, as_updates, keys, of_updates, read, updates, values, write
from tests.support.budget import laws
from tidemark.arrow.kernels.difference import difference_range, differences
from tidemark.arrow.rows.digest import digest
from tidemark.model import full_snapshot as model
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.collection import Envelope
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.interval import Interval
from tidemark.model.times import Times
from tidemark.model.update import Row, Update, consolidate
from tidemark.plan.full_snapshots import difference_task
from tidemark.plan.tasks import DifferenceTask, KeyRange
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

OF_SNAPSHOTS = relanded(SMALL, source=replace(SMALL.landed.source, envelope=Envelope.SNAPSHOT))
EVERYTHING = KeyRange()
TIMES = (19, 29, 49)


class Said(NamedTuple):
    """Updates the trace holds, in two batches, the times of its full snapshots, and what is learned, with its rows."""

    older: list[Update]
    newer: list[Update]
    announced: Times
    learned: list[tuple[FullSnapshot, list[Update]]]

    def expected(self) -> list[Update]:
        stored = consolidate([*self.older, *self.newer])
        counted = [(snapshot, [(u.key, u.value, u.diff) for u in rows]) for snapshot, rows in self.learned]
        return model.changes(stored, self.announced, counted)


content = st.lists(st.tuples(keys(OF_SNAPSHOTS, 4), values(OF_SNAPSHOTS)), max_size=12)
differing = st.lists(
    st.tuples(keys(OF_SNAPSHOTS, 4), values(OF_SNAPSHOTS), st.sampled_from([-2, -1, 1, 2])), max_size=6
)


@st.composite
def learning(draw: st.DrawFn) -> tuple[Times, list[tuple[FullSnapshot, list[Update]]]]:
    """Full snapshots in the trace; then others come in their turn, and what is said of all is learned afterwards."""
    there = Times.of(draw(st.sets(st.sampled_from([3, 6, 9]))))
    announced, found, seal = set(there), [], 13
    for _ in range(draw(st.integers(1, 4))):
        seal += draw(st.integers(0, 3))
        effect = draw(st.sampled_from([*Effect, None]))
        time = draw(st.sampled_from([2, 3, 6, 8, 9, 11]))
        if effect is None:
            found.append(of_time(seal, Effect.ANNOUNCED, None, draw(content)))
            announced.add(seal)
            seal += 1
        elif (time in announced) != (effect is Effect.ANNOUNCED):
            rows = (
                draw(differing) if effect is Effect.CORRECTED else draw(content) if effect is Effect.ANNOUNCED else []
            )
            found.append(of_time(time, effect, seal, rows))
            (announced.remove if effect is Effect.WITHDRAWN else announced.add)(time)
    return there, found


def of_time(
    time: int, effect: Effect, learned_at: int | None, rows: Sequence[Any]
) -> tuple[FullSnapshot, list[Update]]:
    snapshot = FullSnapshot("", Interval(time, time + 1), len(rows), effect=effect, learned_at=learned_at)
    return snapshot, [Update(key, value, snapshot.known, time, *(count or [1])) for key, value, *count in rows]


@st.composite
def cases(draw: st.DrawFn) -> Said:
    older, newer, (announced, learned) = draw(updates(OF_SNAPSHOTS)), draw(updates(OF_SNAPSHOTS)), draw(learning())
    # Whatever is in the trace happened when a full snapshot was announced, or before all that are known.
    at = [1, *announced]
    older, newer = (
        [u._replace(event_time=max(t for t in at if t <= max(1, u.event_time))) for u in some]
        for some in (older, newer)
    )
    return Said(older, newer, announced, learned)


said = cases()


def whole(rows: list[tuple[Row, Row]], *more: list[tuple[Row, Row]]) -> list[tuple[FullSnapshot, list[Update]]]:
    """Full snapshots that come in their turn."""
    return [of_time(time, Effect.ANNOUNCED, None, some) for time, some in zip(TIMES, (rows, *more), strict=False)]


def task_of(store: MemoryStore, case: Said, keys: KeyRange = EVERYTHING) -> DifferenceTask:
    """Each full snapshot from two files, so that its rows are in parts that overlap."""
    trace = tuple(part for some in (case.older, case.newer) for part in parts_of(store, consolidate(some)))
    learned = [
        (snapshot, [p for half in (rows[::2], rows[1::2]) for p in parts_of(store, half)])
        for snapshot, rows in case.learned
    ]
    return difference_task(OF_SNAPSHOTS, trace, case.announced, learned, keys, "out")


def parts_of(store: MemoryStore, rows: list[Update]) -> tuple[Part, ...]:
    return write(store, OF_SNAPSHOTS, of_updates(OF_SNAPSHOTS, rows))


@laws
@given(said, st.integers(1, 20))
def test_the_kernel_is_the_law(case: Said, buffered: int) -> None:
    store = MemoryStore()
    task = task_of(store, case)
    assert as_updates(OF_SNAPSHOTS, differences(store, task, buffered_rows=buffered)) == case.expected()


@laws
@given(said, st.lists(keys(OF_SNAPSHOTS, 4), max_size=2, unique=True))
def test_key_ranges_add_up_and_the_sums_prove_it(case: Said, cuts: list[Row]) -> None:
    store = MemoryStore()
    ranges = [KeyRange(*bounds) for bounds in pairwise([None, *sorted(cuts), None])]  # type: ignore[type-var]
    answers = [difference_range(store, task_of(store, case, keys)) for keys in ranges]
    found = [u for answer in answers for u in as_updates(OF_SNAPSHOTS, read(store, answer.parts))]
    assert found == case.expected()
    learned = [rows for _, rows in case.learned]
    assert sum(a.rows_read for a in answers) == sum(
        len(some) for some in (consolidate(case.older), consolidate(case.newer), *learned)
    )
    for answer in answers:
        assert sum(part.digest for part in answer.parts) % DIGEST_MODULUS == answer.digest_read
    checked = model.last_announced([snapshot for snapshot, _ in case.learned])
    if checked:
        known, time = checked[0].known, checked[0].time
        there = [u._replace(time=known, event_time=time) for u in current_at(case, known, time)]
        assert sum(a.digest_checked for a in answers) % DIGEST_MODULUS == digest(of_updates(OF_SNAPSHOTS, there))


def current_at(case: Said, time: int, event_time: int) -> list[Update]:
    """What the trace holds with what is written, as known at a time, as of another."""
    every = [*case.older, *case.newer, *case.expected()]
    return consolidate(u._replace(time=0, event_time=0) for u in every if u.time <= time and u.event_time <= event_time)


def test_what_is_left_out_shows_in_the_checked_sum() -> None:
    """A part of the full snapshot that is not read would retract its rows; the sum says so."""
    store = MemoryStore()
    rows: list[tuple[Row, Row]] = [((k,), ("a",)) for k in range(20)]
    stored = [Update(key, value, 3, 3, 1) for key, value in rows]
    task = task_of(store, Said(stored, [], Times(), whole(rows)))
    sum_of_all = digest(of_updates(OF_SNAPSHOTS, [Update(key, value, TIMES[0], TIMES[0], 1) for key, value in rows]))
    assert difference_range(store, task).digest_checked == sum_of_all
    short = replace(task, snapshots=(replace(task.snapshots[0], parts=task.snapshots[0].parts[1:]),))
    answer = difference_range(store, short)
    assert sum(part.rows for part in answer.parts) == task.snapshots[0].parts[0].rows, "rows of the part are retracted"
    assert answer.digest_checked != sum_of_all


def test_what_happened_the_instant_before_the_next_full_snapshot_is_of_the_one_before() -> None:
    store = MemoryStore()
    stored = [Update((1,), ("a",), 2, 2, 1), Update((2,), ("b",), 3, 3, 1)]
    task = task_of(store, Said(stored, [], Times.of((2, 3)), [of_time(2, Effect.WITHDRAWN, 13, [])]))
    assert as_updates(OF_SNAPSHOTS, differences(store, task)) == [
        Update((1,), ("a",), 13, 2, -1),
        Update((1,), ("a",), 13, 3, 1),
    ]


def test_key_only_collections_and_history_forwarded_beyond_the_full_snapshots() -> None:
    """`since` beyond the seal: the stored rows are at a later time than the full snapshot."""
    of = replace(OF_SNAPSHOTS, value=())
    store = MemoryStore()
    stored = write(store, of, of_updates(of, [Update((k,), (), 99, 99, 2) for k in (1, 2)]))
    rows = write(store, of, of_updates(of, [Update((k,), (), 19, 19, 1) for k in (2, 2, 3)]))
    snapshot = FullSnapshot("", Interval(19, 20), 3)
    answer = difference_range(store, difference_task(of, stored, Times(), [(snapshot, rows)], KeyRange(), "out"))
    assert as_updates(of, read(store, answer.parts)) == [Update((1,), (), 19, 19, -2), Update((3,), (), 19, 19, 1)]
    assert answer.digest_checked == sum(part.digest for part in rows) % DIGEST_MODULUS
