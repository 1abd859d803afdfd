"""Collections of full snapshots through the real jobs: what is taken, what is refused, and what every read then
says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.inprocess import InProcessRunner
from support.world import DAY, World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.errors import Corruption, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope, Gate
from tidemark.plan.tasks import DifferenceTask

pytestmark = pytest.mark.simulation

A, B, C = ({"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": 2, "v": None})


@pytest.fixture
def made(tmp_path: Path) -> World:
    return World(tmp_path, collection(Envelope.SNAPSHOT))


def read_in(made: World, day: int, *files: list[dict[str, Any]]) -> dict[str, Any]:
    """A day's full snapshot, landed and ingested."""
    for number, rows in enumerate(files):
        made.land(day, f"{number}", rows)
    return ingested(made, day)


def ingested(made: World, day: int) -> dict[str, Any]:
    return made.run(lambda job: ingest(job, interval(day), landing_root=str(made.landing)))


def sealed(made: World, day: int) -> None:
    made.run(lambda job: seal(job, interval(day)))


def drained(made: World, day: int) -> dict[str, Any]:
    sealed(made, day)
    return made.run(lambda job: drain(job, interval(day)))


def rows_at(made: World, time: int | None = None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in as_of(made.truth, made.state, time=time).to_pylist()]


def updates(made: World, after: int = -1) -> list[tuple[Any, ...]]:
    names = ("k", "v", "_change_type", "_commit_version", "_event_time", "diff")
    return [tuple(row[n] for n in names) for row in changes(made.truth, made.state, after=after).to_pylist()]


FIRST = [(1, "a", "insert", 9, 9, 2), (1, "b", "insert", 9, 9, 1), (2, None, "insert", 9, 9, 1)]
SECOND = [(1, "a", "delete", 19, 19, -1), (2, None, "delete", 19, 19, -1)]


@pytest.mark.parametrize("drains", [True, False], ids=["drained", "sealed only"])
def test_the_files_of_a_day_are_one_full_snapshot_and_the_next_one_says_what_changed(made: World, drains: bool) -> None:
    step = drained if drains else sealed
    read_in(made, 0, [A, C], [A, B])
    step(made, 0)
    assert updates(made) == FIRST
    read_in(made, 1, [B, A])
    step(made, 1)
    assert updates(made) == sorted(FIRST + SECOND, key=lambda row: (row[0], row[1] or "", row[3]))
    assert rows_at(made, 18) == [(1, "a", 2), (1, "b", 1), (2, None, 1)]
    assert rows_at(made) == [(1, "a", 1), (1, "b", 1)]


def test_an_unchanged_full_snapshot_writes_nothing_and_a_day_without_files_says_nothing(made: World) -> None:
    read_in(made, 0, [A, B])
    drained(made, 0)
    read_in(made, 1, [B], [A])
    assert drained(made, 1)["rows"] == 0
    assert ingested(made, 2)["batch"] is None
    assert drained(made, 2)["rows"] == 0
    assert rows_at(made) == [(1, "a", 1), (1, "b", 1)]
    assert made.state.snapshots == ()


@pytest.mark.parametrize("drains", [True, False], ids=["drained", "sealed only"])
def test_a_full_snapshot_without_rows_empties_the_collection(made: World, drains: bool) -> None:
    read_in(made, 0, [A, B])
    drained(made, 0)
    result = read_in(made, 1, [], [])
    assert (result["rows"], result["files"]) == (0, 2)
    assert [(snapshot.batch, snapshot.rows) for snapshot in made.state.snapshots] == [(result["batch"], 0)]
    (drained if drains else sealed)(made, 1)
    assert rows_at(made) == []
    assert rows_at(made, 18) == [(1, "a", 1), (1, "b", 1)]


def test_a_full_snapshot_without_rows_is_said_aloud(made: World) -> None:
    said: list[str] = []
    made.land(0, "a", [])
    ingest(replace(made.job(), note=said.append), interval(0), landing_root=str(made.landing))
    assert any("has no rows: unless " in note for note in said), said


def test_a_file_more_or_another_content_is_refused_until_the_full_snapshot_is_quarantined(made: World) -> None:
    batch = read_in(made, 0, [A], [B])["batch"]
    made.land(0, "more", [C])
    refused = rf"full snapshot of .* was read already, as batch {batch}, without 0/more.jsonl; quarantine that batch"
    with pytest.raises(InvalidUsage, match=refused):
        ingested(made, 0)
    made.run(lambda job: quarantine(job, batch))
    assert ingested(made, 0)["rows"] == 3, "all files of the interval are read together"
    made.land(0, "more", [C, C])
    with pytest.raises(
        InvalidUsage, match=r"changed after it was ingested.*wait for the next full snapshot, or quarantine"
    ):
        ingested(made, 0)
    drained(made, 0)
    assert rows_at(made) == [(1, "a", 1), (1, "b", 1), (2, None, 1)]


def test_a_full_snapshot_below_the_seal_is_refused_and_the_next_one_says_it_all(made: World) -> None:
    read_in(made, 0, [A])
    ingested(made, 1)
    drained(made, 1)
    made.land(1, "late", [B])
    with pytest.raises(
        InvalidUsage,
        match=r"full snapshot of .*19Z, which the seal .*20Z has passed; the next full snapshot will",
    ):
        ingested(made, 1)
    batch = read_in(made, 2, [B])["batch"]
    sealed(made, 2)
    made.run(lambda job: quarantine(job, batch))
    with pytest.raises(InvalidUsage, match="has passed the full snapshot of 29; the next full snapshot will give"):
        made.run(lambda job: release(job, batch))
    assert rows_at(made) == [(1, "a", 1)], "in quarantine it said nothing"
    read_in(made, 3, [B, B])
    drained(made, 3)
    assert rows_at(made) == [(1, "b", 2)]


def test_a_file_of_two_intervals_is_refused(tmp_path: Path) -> None:
    source = replace(collection(Envelope.SNAPSHOT).landed.source, path="{{ landing }}/0/*.jsonl")
    made = World(tmp_path, collection(Envelope.SNAPSHOT, source=source))
    read_in(made, 0, [A])
    for more in ([], [B]):
        if more:
            made.land(0, "more", more)
        with pytest.raises(InvalidUsage, match=r"0/0.jsonl of .* was counted with another interval"):
            ingested(made, 1)


def test_history_forwarded_and_merged_between_full_snapshots_changes_no_answer(made: World) -> None:
    """`since` moves beyond the seal even; what is compared is the sum over all of the trace."""
    for day, rows in enumerate([[A, A], [A, B], [B, C]]):
        read_in(made, day, rows)
        drained(made, day)
        made.run(lambda job, day=day: compact(job, interval(day)))
        head = made.head
        made.log().commit(head, CompactionAllowed((day + 2) * DAY + 3))
        made.run(lambda job, day=day: compact(job, interval(day)))
    read_in(made, 3, [C, C])
    read_in(made, 4, [A, C])
    read_in(made, 5, [A, C])
    sealed(made, 5)
    before = rows_at(made)
    assert before == [(1, "a", 1), (2, None, 1)]
    drained(made, 5)
    assert rows_at(made) == before
    assert rows_at(made, 45) == [(2, None, 2)]


class ComparesOthers(InProcessRunner):
    """An executor that compares other parts than it was given: none of the trace or the full snapshot, or both
    exchanged."""

    def __init__(self, store: Any, mistake: str) -> None:
        super().__init__(store)
        self.mistake = mistake

    def run(self, name: str, tasks: Any) -> list[Any]:
        return super().run(name, [self._mistaken(task) for task in tasks])

    def _mistaken(self, task: Any) -> Any:
        if not isinstance(task, DifferenceTask):
            return task
        if self.mistake == "exchanged":
            return replace(
                task, trace=task.snapshots[0].parts, snapshots=(replace(task.snapshots[0], parts=task.trace),)
            )
        nothing = {
            "no trace": {"trace": ()},
            "no full snapshot": {"snapshots": (replace(task.snapshots[0], parts=()),)},
        }
        return replace(task, **nothing[self.mistake])


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("no trace", "the drain of .* read 2 rows, its batches hold 4 to 4"),
        ("no full snapshot", "the drain of .* read 2 rows, its batches hold 4 to 4"),
        ("exchanged", "after the drain of .* the collection holds a sum of .*, full snapshot .* has .*; refused"),
    ],
)
def test_a_drain_that_did_not_compare_what_it_should_is_not_committed(made: World, mistake: str, said: str) -> None:
    read_in(made, 0, [A, B])
    drained(made, 0)
    read_in(made, 1, [B, C])
    sealed(made, 1)
    made.run(lambda job: certify(job, Gate.FRONTIER))
    job = replace(made.job(), runner=lambda: ComparesOthers(made.truth, mistake))
    with pytest.raises(Corruption, match=said):
        drain(job, interval(1))
    assert made.state.trace_upper == 10
    drained(made, 1)
    assert rows_at(made) == [(1, "b", 1), (2, None, 1)]
