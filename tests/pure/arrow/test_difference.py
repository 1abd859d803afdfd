"""Full snapshots as updates, against the law of full snapshots in plain Python."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import SMALL, as_updates, keys, laws, of_updates, read, updates, values, write
from tidemark.arrow.kernels.difference import difference_range, differences
from tidemark.arrow.rows.digest import digest
from tidemark.model import full_snapshot as model
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.collection import Collection, Envelope
from tidemark.model.update import Row, Update, consolidate
from tidemark.plan.tasks import DifferenceTask, KeyRange, SnapshotRows
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

OF_SNAPSHOTS = relanded(SMALL, source=replace(SMALL.landed.source, envelope=Envelope.SNAPSHOT))
EVERYTHING = KeyRange()
TIMES = (19, 29, 49)


class Said(NamedTuple):
    """Updates the trace holds, in two batches, and the rows of full snapshots."""

    older: list[Update]
    newer: list[Update]
    snapshots: list[list[tuple[Row, Row]]]

    def expected(self) -> list[Update]:
        held = [(u.key, u.value, u.diff) for u in (*self.older, *self.newer)]
        return model.differences(held, list(zip(TIMES, self.snapshots, strict=False)))


content = st.lists(st.tuples(keys(OF_SNAPSHOTS, 4), values(OF_SNAPSHOTS)), max_size=12)
said = st.builds(Said, updates(OF_SNAPSHOTS), updates(OF_SNAPSHOTS), st.lists(content, min_size=1, max_size=3))


def snapshot_rows(rows: list[tuple[Row, Row]], time: int, of: Collection = OF_SNAPSHOTS) -> list[Update]:
    return [Update(key, value, time, time, 1) for key, value in rows]


def task_of(store: MemoryStore, case: Said, keys: KeyRange = EVERYTHING) -> DifferenceTask:
    """Each full snapshot from two files, so that its rows are in parts that overlap."""
    trace = tuple(
        part
        for some in (case.older, case.newer)
        for part in write(store, OF_SNAPSHOTS, of_updates(OF_SNAPSHOTS, consolidate(some)))
    )
    snapshots = tuple(
        SnapshotRows(time, tuple(p for half in (rows[::2], rows[1::2]) for p in parts_of(store, half, time)))
        for time, rows in zip(TIMES, case.snapshots, strict=False)
    )
    return DifferenceTask(OF_SNAPSHOTS, trace, snapshots, keys, "out")


def parts_of(store: MemoryStore, rows: list[tuple[Row, Row]], time: int) -> tuple[Part, ...]:
    return write(store, OF_SNAPSHOTS, of_updates(OF_SNAPSHOTS, snapshot_rows(rows, time)))


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
    assert sum(a.rows_read for a in answers) == sum(
        len(some) for some in (consolidate(case.older), consolidate(case.newer), *case.snapshots)
    )
    for answer in answers:
        assert sum(part.digest for part in answer.parts) % DIGEST_MODULUS == answer.digest_read
    last = of_updates(OF_SNAPSHOTS, snapshot_rows(case.snapshots[-1], TIMES[len(case.snapshots) - 1]))
    assert sum(a.digest_held for a in answers) % DIGEST_MODULUS == digest(last)


def test_what_is_left_out_shows_in_the_sum_held() -> None:
    """A part of the full snapshot that is not read would retract its rows; the sum says so."""
    store = MemoryStore()
    rows: list[tuple[Row, Row]] = [((k,), ("a",)) for k in range(20)]
    held = [Update(key, value, 3, 3, 1) for key, value in rows]
    task = task_of(store, Said(held, [], [rows]))
    whole = digest(of_updates(OF_SNAPSHOTS, snapshot_rows(rows, TIMES[0])))
    assert difference_range(store, task).digest_held == whole
    short = replace(task, snapshots=(replace(task.snapshots[0], parts=task.snapshots[0].parts[1:]),))
    answer = difference_range(store, short)
    assert sum(part.rows for part in answer.parts) == task.snapshots[0].parts[0].rows, "rows of the part are retracted"
    assert answer.digest_held != whole


def test_more_equal_rows_than_memory_are_counted_whole() -> None:
    store = MemoryStore()
    many: list[tuple[Row, Row]] = [((1,), ("a",))] * 1000 + [((2,), ("b",))]
    task = task_of(store, Said([], [], [many, many[1:]]))
    assert as_updates(OF_SNAPSHOTS, differences(store, task, buffered_rows=20)) == [
        Update((1,), ("a",), 19, 19, 1000),
        Update((1,), ("a",), 29, 29, -1),
        Update((2,), ("b",), 19, 19, 1),
    ]


def test_key_only_collections_and_history_forwarded_beyond_the_full_snapshots() -> None:
    """`since` beyond the seal: what was held stands at a later time than the full snapshot."""
    of = replace(OF_SNAPSHOTS, value=())
    store = MemoryStore()
    held = write(store, of, of_updates(of, [Update((k,), (), 99, 99, 2) for k in (1, 2)]))
    rows = write(store, of, of_updates(of, [Update((k,), (), 19, 19, 1) for k in (2, 2, 3)]))
    answer = difference_range(store, DifferenceTask(of, held, (SnapshotRows(19, rows),), KeyRange(), "out"))
    assert as_updates(of, read(store, answer.parts)) == [Update((1,), (), 19, 19, -2), Update((3,), (), 19, 19, 1)]
    assert answer.digest_held == sum(part.digest for part in rows) % DIGEST_MODULUS
