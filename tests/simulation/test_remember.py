"""Remembered facts are merged: the result of later facts stays the same, and a state stays short."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.test_correct import corrections, day, rows_at, run, sealed, sound
from simulation.test_correct_keyed import made, merged, row
from simulation.waiting import HoldingLog, Waiting
from support.world import World, interval
from tidemark.jobs.queries.status import status
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.model.change import Remembered
from tidemark.model.collection import Late
from tidemark.model.transition import Stale
from tidemark.plan import remember

pytestmark = pytest.mark.simulation


@pytest.fixture(autouse=True)
def merged_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remember, "FAN_IN", 2)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Rows may come however late, so every fact is remembered; files may be corrected."""
    return made(tmp_path)


def days(world: World, first: int, end: int) -> None:
    for number in range(first, end):
        day(world, number, [row(1, f"{number}", 10 * number + 4), row(2, "same", 10 * number + 5)])
        merged(world, number)


def remembered(world: World) -> list[tuple[int, int]]:
    return [(batch.level, batch.rows) for batch in world.state.remembered]


def facts(world: World) -> int:
    return sum(batch.rows for batch in (*world.state.remembered, *world.state.unsealed))


def test_a_state_stays_short_though_every_fact_is_remembered(world: World) -> None:
    days(world, 0, 13)
    assert (remembered(world), len(world.state.unsealed)) == ([(3, 16), (2, 8)], 1)
    seen = status(world.head)
    assert (seen.unsealed.batches, seen.remembered.batches, seen.remembered.rows) == (0, 3, 26)
    day(world, 13, [row(1, "late", 135, 42)])
    assert [rows_at(world, None, event)[1, value] for event, value in ((41, "3"), (43, "late"), (44, "4"))] == [1, 1, 1]
    collect(world.job(), keep=0, graces=AT_ONCE)
    assert sound(world)


def test_the_bytes_that_merges_write_are_counted(world: World) -> None:
    total = 0
    for number in range(4):
        day(world, number, [row(1, f"{number}", 10 * number + 4)])
        before = {info.key for info in world.truth.list("data/")}
        result = world.run(lambda job, number=number: compact(job, interval(number)))
        parts = [info for info in world.truth.list("data/") if info.key.endswith(".parquet")]
        assert result["bytes_written"] == sum(info.bytes for info in parts if info.key not in before)
        total += result["bytes_written"]
        assert world.state.totals.bytes_compacted == total
    assert remembered(world) == [(2, 4)]


def test_what_was_merged_is_corrected(world: World) -> None:
    """Facts of a correction are merged with those they retract, in one merge or in several; then all is as said."""
    days(world, 0, 4)
    left = []
    for number, value in enumerate(("b", "c", "1"), 4):
        world.land(1, "a", [row(1, value, 14), row(2, "same", 15)])
        assert corrections(run(world, 1)) == (1, 1, 1, [14, 14])
        sealed(world, 1)
        merged(world, 1)
        days(world, number, number + 1)
        assert rows_at(world, None, 20) == {(1, value): 1, (2, "same"): 1}
        left.append(facts(world) - 2 * (number + 1))
    assert left == [2, 0, 2]  # one that is said and retracted in batches that are not merged yet
    days(world, 7, 12)
    assert facts(world) == 24
    world.land(1, "a", [])
    assert corrections(run(world, 1)) == (1, 2, 0, [14, 15])
    sealed(world, 1)
    assert [rows_at(world, None, event) for event in (14, 20)] == [{(1, "0"): 1, (2, "same"): 1}] * 2
    assert sound(world)


def test_what_is_forgotten_goes_with_a_merge(tmp_path: Path) -> None:
    world = made(tmp_path, reprocess_for=0, late=Late("reemit", 30))
    for number in range(12):
        days(world, number, number + 1)
        assert sum(rows for _, rows in remembered(world)) <= 16
        collect(world.job(), keep=0, graces=AT_ONCE)
    assert sound(world)
    day(world, 12, [row(1, "late", 125, 93)])
    assert (rows_at(world, None, 93)[1, "late"], rows_at(world, None, 94)[1, "9"]) == (1, 1)


@pytest.mark.parametrize("drained", [False, True])
def test_what_is_corrected_while_a_merge_is_on_its_way_is_not_forgotten(tmp_path: Path, drained: bool) -> None:
    world = made(tmp_path, reprocess_for=20, late=Late("reemit", 0))
    for number in range(4):
        day(world, number, [row(1, f"{number}", 10 * number + 4)])
    log = HoldingLog(world.truth, world.new_id, monotonic=world.clock, pause=world.clock.pause)
    log.holds = (Remembered,)
    with pytest.raises(Waiting) as waiting:
        world.run(lambda job: compact(job, interval(3)), log=log)
    world.land(2, "a", [row(1, "two", 24)])
    assert corrections(run(world, 2)) == (1, 1, 1, [24, 24])
    if drained:
        day(world, 4, [row(1, "4", 44)])
    outcome = world.log().commit(waiting.value.head, waiting.value.change)
    assert isinstance(outcome, Stale) == drained  # by then one of its inputs is not remembered any more
    day(world, 5 if drained else 4, [])
    assert rows_at(world, None, 30) == {(1, "two"): 1}
    assert sound(world)
