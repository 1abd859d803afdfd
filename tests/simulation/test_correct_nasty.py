"""Corrections at the worst moment, of the worst files, and asked for in the wrong way: one clear line, nothing lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.correcting import corrections, day, made, row, rows_at, run, sound, without_the_gone
from support.faulty import WrappedStore
from support.relanded import relanded
from support.world import World, collection, interval
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage, NotReady, Unavailable
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.arrangement import Hold
from tidemark.model.change import HoldPlaced, Redefined
from tidemark.model.collection import Column, ColumnType, Envelope, Late
from tidemark.model.retention import Retention

pytestmark = pytest.mark.simulation


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


class Hooked(WrappedStore):
    """A store in which something happens once, before the table of what a file contributed is read."""

    happens: Callable[[], Any] | None = None

    def read(self, key: str) -> bytes:
        if self.happens and "/parts-" in key:
            happens, self.happens = self.happens, None
            happens()
        return super().read(key)


def once(world: World, day: int, happens: Callable[[], Any]) -> dict[str, Any]:
    """One attempt, in the middle of which something happens."""
    store = Hooked(world.truth)
    store.happens = happens
    world.store = store
    try:
        return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)), attempts=1)
    finally:
        world.store = world.truth
        assert store.happens is None


def test_a_file_that_is_replaced_while_it_is_compared_is_read_again(world: World) -> None:
    day(world, 0, [row(1, "x", 3)])
    world.land(0, "a", [row(1, "y", 3)])
    with pytest.raises(NotReady, match=r"a.jsonl changed since it was listed: .*; run the step again"):
        once(world, 0, lambda: world.land(0, "a", [row(1, "longer", 3), row(2, "z", 4)]))
    assert corrections(run(world, 0)) == (1, 1, 2, [3, 4])
    day(world, 1, [])
    assert rows_at(world) == {(1, "longer"): 1, (2, "z"): 1}


def test_a_file_that_goes_while_it_is_compared_is_no_withdrawal(world: World) -> None:
    path = world.land(0, "a", [row(1, "x", 3)])
    day(world, 0)
    world.land(0, "a", [row(1, "y", 3)])
    with pytest.raises(NotReady, match=r"a.jsonl is gone since it was listed; run the step again"):
        once(world, 0, (world.landing / path).unlink)
    assert run(world, 0)["outcome"] == "nothing to do"
    day(world, 1, [])
    assert rows_at(world) == {(1, "x"): 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="who may read everything can look away")
@pytest.mark.parametrize("policy", ["stop", "quarantine"])
def test_a_file_that_cannot_be_read_while_it_is_compared_is_no_bad_file(tmp_path: Path, policy: str) -> None:
    """No verdict, whatever the collection does with bad files: it is tried again, and counts as it did until then."""
    of = collection(Envelope.APPEND, reprocess_for=1000)
    world = World(tmp_path, relanded(of, source=replace(of.landed.source, bad_files=policy)))
    path = world.landing / world.land(0, "a", [row(1, "x", 3)])
    day(world, 0)
    world.land(0, "a", [row(1, "y", 3)])
    session = Path(tempfile.gettempdir())
    for folder in (tmp_path, *(above for above in tmp_path.parents if above.is_relative_to(session))):
        folder.chmod(0o755)

    def locked() -> None:
        path.chmod(0)
        os.seteuid(65534)

    try:
        with pytest.raises(Unavailable, match=r"a.jsonl cannot be read: Permission denied; run the step again when it"):
            once(world, 0, locked)
    finally:
        os.seteuid(0)
        path.chmod(0o644)
    assert corrections(run(world, 0)) == (1, 1, 1, [3, 3])
    day(world, 1, [])
    assert rows_at(world) == {(1, "y"): 1}


@pytest.mark.parametrize("other", ["a compaction", "a collector"])
def test_what_tidies_up_beside_a_correction_does_it_no_harm(tmp_path: Path, other: str) -> None:
    world = made(tmp_path)
    for number in range(3):
        day(world, number, [row(number, "a", 10 * number + 3), row(9, "all", 10 * number + 4)])
    world.land(0, "a", [row(0, "b", 3)])
    steps: dict[str, Callable[[], Any]] = {
        "a compaction": lambda: compact(world.job(), interval(2)),
        "a collector": lambda: [collect(world.job(), keep=0, graces=AT_ONCE) for _ in range(2)],
    }

    def happens() -> None:
        world.store = world.truth
        steps[other]()

    assert corrections(once(world, 0, happens)) == (1, 2, 1, [3, 4])
    day(world, 3, [])
    assert rows_at(world) == {(0, "b"): 1, (1, "a"): 1, (2, "a"): 1, (9, "all"): 2}
    assert sound(world)


def test_a_landing_that_is_not_there_withdraws_nothing(world: World, tmp_path: Path) -> None:
    """Also where --yes is said: what cannot be looked at is not taken for empty."""
    world.landing = tmp_path / "landing"
    day(world, 0, [row(1, "x", 3)])
    away = world.landing.rename(tmp_path / "away")
    with pytest.raises(InvalidUsage, match=r"landing .* does not exist; check the landing"):
        without_the_gone(world, 0, yes=True)
    away.rename(world.landing)
    assert without_the_gone(world, 0)["outcome"] == "nothing to do"
    assert rows_at(world) == {(1, "x"): 1}


def test_yes_without_removed_is_not_taken_in_silence(world: World) -> None:
    day(world, 0, [row(1, "x", 3)])
    with pytest.raises(InvalidUsage, match="--yes confirms --removed; say --removed, too"):
        world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing), yes=True))


def test_what_a_hold_keeps_is_as_it_was(tmp_path: Path) -> None:
    """History is merged but for what the hold asks for; a correction changes neither."""
    world = made(tmp_path, late=Late())
    world.log().commit(world.head, Redefined(replace(world.state.collection, retention=Retention("full_merge"))))
    for number in range(3):
        day(world, number, [row(number, "a", 10 * number + 3)])
        if number == 0:
            world.log().commit(world.head, HoldPlaced(Hold("report", 9)))
        world.run(lambda job, number=number: compact(job, interval(number)))
    assert world.state.since == 9
    world.land(0, "a", [row(0, "b", 3)])
    assert corrections(run(world, 0)) == (1, 1, 1, [9, 9])
    day(world, 3, [])
    world.run(lambda job: compact(job, interval(3)))
    assert rows_at(world, 9) == {(0, "a"): 1}
    assert rows_at(world) == {(0, "b"): 1, (1, "a"): 1, (2, "a"): 1}
    assert sound(world)


def test_a_value_column_is_dropped_and_another_widened_between_the_readings(tmp_path: Path) -> None:
    """Stored rows say something in the dropped column, new ones nothing: rewritten at rest, and no answer changes."""
    value = (Column("v", ColumnType.STRING, 2), Column("n", ColumnType.INT, 3))
    world = World(tmp_path, collection(Envelope.APPEND, reprocess_for=1000, value=value))
    rows = [row(1, "x", 3, n=1), row(2, "y", 4, n=2)]
    day(world, 0, rows)
    then = world.state.collection
    wide = replace(then, value=(Column("n", ColumnType.FLOAT, 3),), dropped=(value[0],), schema=then.schema + 1)
    world.log().commit(world.head, Redefined(wide))
    assert run(world, 0)["outcome"] == "nothing to do"
    world.land(0, "a", [rows[0], rows[1] | {"n": 2.5}])
    assert corrections(run(world, 0)) == (1, 2, 2, [3, 4])
    day(world, 1, [])
    table = as_of(world.truth, world.state)
    assert sorted(zip(table["k"].to_pylist(), table["n"].to_pylist(), strict=True)) == [(1, 1.0), (2, 2.5)]
    assert sound(world)


def test_a_row_is_late_as_it_was_though_the_collection_says_otherwise_by_now(tmp_path: Path) -> None:
    """The late policy changed between the readings, both ways: a corrected file is judged by that of its first."""
    world = made(tmp_path, late=Late("discard"))
    day(world, 0, [row(1, "x", 3)])
    world.land(1, "a", [row(2, "dead", 12, 4), row(3, "y", 13)])
    day(world, 1)
    redeclared(world, Late("reemit"))
    world.land(1, "a", [row(2, "dead", 12, 4), row(3, "z", 13)])
    assert corrections(run(world, 1)) == (1, 1, 1, [13, 13])
    day(world, 2, [row(4, "late", 22, 5)])
    redeclared(world, Late("next_window"))
    world.land(2, "a", [row(4, "late", 22, 5), row(5, "late", 23, 6)])
    assert corrections(run(world, 2)) == (1, 0, 1, [6, 6])
    day(world, 3, [])
    assert rows_at(world) == {(1, "x"): 1, (3, "z"): 1, (4, "late"): 1, (5, "late"): 1}
    assert late_rows(world.truth, world.state).discarded == 1


def redeclared(world: World, late: Late) -> None:
    world.log().commit(world.head, Redefined(relanded(world.state.collection, late=late)))
