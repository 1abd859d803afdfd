"""Files of facts that are corrected: what they no longer say uncovers what it hid, as of what is known by then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.test_correct import corrections, day, objects, rows_at, run, sealed, sound, without_the_gone
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, certify, collection, interval
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate, Late
from tidemark.model.retention import Retention, Step
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation


def made(folder: Path, envelope: Envelope = Envelope.UPSERT, *, reprocess_for: int = 1000, **landed: Any) -> World:
    return World(folder, collection(envelope, reprocess_for=reprocess_for, **landed))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def row(k: int, v: str, t: int, e: int | None = None, *, gone: bool = False) -> dict[str, Any]:
    return {"k": k, "v": v, "t": t, "e": t if e is None else e, "o": None, "gone": gone}


def merged(world: World, number: int) -> None:
    world.run(lambda job: compact(job, interval(number)))


@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.DEBEZIUM])
@pytest.mark.parametrize("merging", [False, True])
def test_what_is_withdrawn_uncovers_what_it_hid(tmp_path: Path, envelope: Envelope, merging: bool) -> None:
    """A@1, B@3 from file 2, B@5 from file 3, drained; file 2 is withdrawn: event 4 is A, event 5 is B."""
    world = made(tmp_path, envelope)
    world.land(0, "1", [row(1, "A", 1)])
    gone = world.land(0, "2", [row(1, "B", 3)])
    day(world, 0, [row(1, "B", 5)], "3")
    day(world, 1, [])
    if merging:
        merged(world, 1)
    (world.landing / gone).unlink()
    assert corrections(without_the_gone(world, 0)) == (1, 1, 0, [3, 3])
    sealed(world, 1)
    assert [rows_at(world, None, event) for event in (0, 1, 2, 3, 4)] == [{}, *4 * [{(1, "A"): 1}]]
    assert [rows_at(world, None, event) for event in (5, 6, 19)] == 3 * [{(1, "B"): 1}]
    assert rows_at(world, 19, 4) == {(1, "B"): 1}
    assert sound(world)


def test_a_line_more_at_the_top_of_a_file_moves_no_others(world: World) -> None:
    lines = [row(k, "a", 3) for k in range(5)]
    day(world, 0, lines)
    world.land(0, "a", [row(9, "new", 2), *lines])
    assert corrections(run(world, 0)) == (1, 0, 1, [2, 2])
    world.land(0, "a", [row(9, "new", 2), *lines[::-1]])
    before = {key for key in objects(world) if key.startswith("data/")}
    assert corrections(run(world, 0)) == (1, 0, 0, None)
    assert {key for key in objects(world) if key.startswith("data/")} == before


KEPT = Retention("ladder", steps=(Step(None, 30), Step(10, None)))


@pytest.fixture
def merging(tmp_path: Path) -> World:
    """Every time is kept for just as long as a correction may reach back."""
    return made(tmp_path, reprocess_for=20, late=Late("reemit", 10), retention=KEPT)


def test_what_happened_at_the_very_bound_of_what_is_merged_is_retracted(merging: World) -> None:
    """Interval 2 is the oldest that may be corrected, and a row of it is as late as may be: it stands at since."""
    for number in range(2):
        day(merging, number, [row(1, f"{number}", 10 * number + 4)])
        merged(merging, number)
    day(merging, 2, [row(1, "2", 24), row(1, "late", 25, 10)])
    merged(merging, 2)
    day(merging, 3, [row(2, "x", 33)])
    merged(merging, 3)
    state = merging.state
    assert (state.since, state.correctable_from, state.horizon) == (10, 20, 9)
    merging.land(2, "a", [row(1, "2", 24)])
    assert corrections(run(merging, 2)) == (1, 1, 0, [10, 10])
    sealed(merging, 3)
    expected = {10: "0", 13: "0", 14: "1", 23: "1", 24: "2"}
    assert {event: rows_at(merging, None, event) for event in expected} == {e: {(1, v): 1} for e, v in expected.items()}
    assert sound(merging)


def test_what_cannot_be_corrected_any_more_is_merged_and_collected(merging: World) -> None:
    written: list[set[str]] = []
    for number in range(8):
        before = objects(merging)
        day(merging, number, [row(1, f"{number}", 10 * number + 4), row(2, "b", 10 * number + 5)])
        written.append({key for key in objects(merging) - before if key.endswith(".parquet")})
        merged(merging, number)
        collect(merging.job(), keep=0, graces=AT_ONCE)
        assert sound(merging)
    merging.land(4, "a", [])
    with pytest.raises(InvalidUsage, match="reprocess_for 20us lets intervals be corrected"):
        run(merging, 4)
    merging.land(6, "a", [row(1, "six", 64)])
    assert corrections(run(merging, 6)) == (1, 2, 1, [64, 65])
    sealed(merging, 7)
    assert rows_at(merging, None, 70) == {(1, "six"): 1, (2, "b"): 1}
    assert rows_at(merging) == {(1, "7"): 1, (2, "b"): 1}
    assert sound(merging)


def test_history_that_is_final_is_not_corrected_by_a_file_that_was_read_too_early(tmp_path: Path) -> None:
    """Where intervals share their files, whichever is read first takes them. Its rows of long ago were on time; what it
    says of long ago by now is refused by name."""
    shared = collection(Envelope.UPSERT).landed.source
    shared = replace(shared, path="{{ landing }}/*/*.jsonl")
    merging = made(tmp_path, reprocess_for=20, late=Late("reemit", 10), retention=KEPT, source=shared)
    merging.land(9, "a", [row(1, "early", 94)])
    run(merging, 9)
    for number in range(10):
        day(merging, number, [row(1, f"{number}", 10 * number + 3)], "b")
        merged(merging, number)
    merging.land(9, "a", [row(1, "early", 94), row(1, "of long ago", 2)])
    with pytest.raises(InvalidUsage, match=r"happened at .*00:00:00.000002Z, and what .* is final; put"):
        run(merging, 9)
    merging.land(9, "a", [row(1, "late", 94)])
    assert corrections(run(merging, 9)) == (1, 1, 1, [94, 94])


def test_retracted_facts_are_trimmed_as_retracted(tmp_path: Path) -> None:
    """A correction says and retracts rows of now and rows far ahead; its batch is trimmed between."""
    world = made(tmp_path, reprocess_for=20, late=Late())
    rows = [row(k, "a", 3) for k in range(50)] + [row(99, "far", 5000)]
    day(world, 0, rows)
    world.land(0, "a", [row(k, "b", 3) for k in range(50)])
    run(world, 0)
    for number in range(1, 5):
        day(world, number, [row(200 + number, "c", 10 * number)])
        merged(world, number)
        assert rows_at(world, None, 9) == {(k, "b"): 1 for k in range(50)}
        assert sound(world)
    trimmed = {batch.id: parts_table.parts_of(world.truth, [batch]) for batch in world.state.unsealed if batch.trimmed}
    counts = sorted((part.rows, part.retractions) for parts in trimmed.values() for part in parts)
    assert counts == [(1, 1), (50, 0), (50, 50)]


def corrected_day(world: World) -> None:
    world.land(0, "a", [row(1, "B", 3), row(2, "new", 4)])
    run(world, 0)
    world.run(lambda job: seal(job, interval(0)))
    world.run(lambda job: certify(job, Gate.FRONTIER))
    world.run(lambda job: drain(job, interval(0)))


@pytest.mark.parametrize("after", [False, True])
def test_a_run_again_that_dies_anywhere_is_run_again(tmp_path: Path, after: bool) -> None:
    for nth in range(1, 400, budget(ci=1 if after else 5, deep=1)):
        (tmp_path / str(nth)).mkdir()
        world = made(tmp_path / str(nth))
        day(world, 0, [row(1, "A", 1), row(1, "B", 3), row(2, "old", 4)])
        fault = world.store = FaultyStore(world.truth, Fault(nth, after, dies=True))
        corrected_day(world)
        world.store = world.truth
        assert (rows_at(world, None, 2), rows_at(world)) == ({}, {(1, "B"): 1, (2, "new"): 1})
        assert rows_at(world, 9) == {(1, "B"): 1, (2, "old"): 1}
        if fault.fired is None:
            assert sound(world)
            return
    raise AssertionError("never ended")


@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.DEBEZIUM])
def test_replayed_dead_letters_of_facts_count_on_as_long_as_their_file_says_them(
    tmp_path: Path, envelope: Envelope
) -> None:
    world = made(tmp_path, envelope, late=Late("discard"))
    letter, first = row(1, "late", 12, 4), row(2, "a", 13)
    day(world, 0, [row(1, "x", 3), row(1, "y", 6)])
    day(world, 1, [letter, first])
    assert world.run(lambda job: replay(job))["rows"] == 1
    day(world, 2, [])
    assert [rows_at(world, None, event) for event in (3, 4, 6)] == [{(1, "x"): 1}, {(1, "late"): 1}, {(1, "y"): 1}]
    world.land(1, "a", [row(2, "b", 13), row(3, "new", 14), letter])
    assert corrections(run(world, 1)) == (1, 1, 2, [13, 14])
    day(world, 3, [])
    assert [rows_at(world, None, event) for event in (3, 4, 6)] == [{(1, "x"): 1}, {(1, "late"): 1}, {(1, "y"): 1}]
    world.land(1, "a", [row(2, "b", 13), row(3, "new", 14)])
    assert corrections(run(world, 1)) == (1, 1, 0, [4, 4])
    day(world, 4, [])
    assert [rows_at(world, None, event) for event in (3, 4, 6)] == [{(1, "x"): 1}, {(1, "x"): 1}, {(1, "y"): 1}]
    assert rows_at(world) == {(1, "y"): 1, (2, "b"): 1, (3, "new"): 1}
    assert sound(world)
