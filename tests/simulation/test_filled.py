"""Columns that files had all along, declared afterwards: files are read again for them, and what differs is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.correcting import made, sealed, sound
from simulation.script import row as drawn_row
from support.budget import budget
from support.faulty import Fault, FaultyStore, InterruptedStore
from support.inprocess import InProcessRunner
from support.relanded import relanded
from support.world import World, interval
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.change import Redefined
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.evolution import evolved

pytestmark = pytest.mark.simulation
AT = Column("at", ColumnType.INT)
ENVELOPES = list(Envelope)


def row(k: int, v: str, t: int, **more: Any) -> dict[str, Any]:
    return drawn_row(k, v, t, **more) | {"at": 100 * k + t}


DAYS = [
    {"a": [row(1, "a", 3), row(2, "b", 4), row(2, "c", 4, o=1)], "b": [row(3, "d", 5), row(4, "e", 6, e=2)]},
    {"a": [row(1, "f", 13), row(5, "g", 14), row(4, "e", 15, gone=True)]},
]


def landed(world: World, without: str = "") -> None:
    for number, files in enumerate(DAYS):
        for name, rows in files.items():
            world.land(number, name, [{n: value for n, value in line.items() if n != without} for line in rows])


def take(world: World, day: int, *columns: str, **options: Any) -> Callable[[Job], dict[str, Any]]:
    return lambda job: ingest(job, interval(day), landing_root=str(world.landing), columns=columns, **options)


def with_column(current: Collection) -> Collection:
    return evolved(current, replace(current, value=(*current.value, AT)))


def read(folder: Path, envelope: Envelope, *, knows: bool = False, **landed_as: Any) -> World:
    """Days that were read and drained; the column was declared before (`knows`), or is from now on."""
    world = made(folder / "landing", envelope, **landed_as)
    landed(world)
    if knows:
        declare(world, with_column(world.state.collection))
    for number in range(len(DAYS)):
        world.run(take(world, number))
        sealed(world, number)
    if not knows:
        declare(world, with_column(world.state.collection))
    return world


def declare(world: World, declared: Collection) -> None:
    world.log().commit(world.head, Redefined(declared))


def filled(world: World) -> list[dict[str, Any]]:
    done = [world.run(take(world, number, "at")) for number in range(len(DAYS))]
    sealed(world, len(DAYS) - 1)
    return done


def rows_of(world: World, time: int, event_time: int | None = None) -> list[tuple[Any, ...]]:
    table = as_of(world.truth, world.state, time=time, event_time=event_time)
    return sorted((tuple(line.values()) for line in table.to_pylist()), key=repr)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_what_is_filled_is_what_it_were_had_the_column_been_declared_at_first(
    tmp_path: Path, envelope: Envelope
) -> None:
    world, clean = read(tmp_path / "a", envelope), read(tmp_path / "b", envelope, knows=True)
    before = [rows_of(world, time) for time in range(20)]
    done = filled(world)
    assert [(line["corrected"], line["left"], line["gone"]) for line in done] == [(2, 0, 0), (1, 0, 0)]
    for event_time in (*range(20), None):
        assert rows_of(world, world.state.seal - 1, event_time) == rows_of(clean, 19, event_time), event_time
    assert [rows_of(world, time) for time in range(20)] == before
    assert {line[2] for time in before for line in time} == {None}
    version = world.head.version
    assert [line["outcome"] for line in (world.run(take(world, day, "at")) for day in (0, 1))] == ["nothing to do"] * 2
    assert world.head.version == version
    assert sound(world)


def test_a_file_whose_bytes_changed_meanwhile_is_corrected_and_filled_at_once(tmp_path: Path) -> None:
    world = read(tmp_path, Envelope.APPEND)
    world.land(0, "a", [*DAYS[0]["a"][1:], row(9, "new", 8)])
    done = filled(world)
    assert (done[0]["corrected"], done[0]["retracted"], done[0]["added"]) == (2, 5, 5)
    assert (9, "new", 908, 1) in rows_of(world, world.state.seal - 1)
    assert (1, "a", 103, 1) not in rows_of(world, world.state.seal - 1)
    assert sound(world)


def test_files_that_are_gone_are_named_and_their_rows_stay_null(tmp_path: Path) -> None:
    world = read(tmp_path, Envelope.APPEND)
    (world.landing / "0" / "b.jsonl").unlink()
    notes: list[str] = []
    job = world.job()
    job.note = notes.append
    done = take(world, 0, "at")(job)
    assert (done["corrected"], done["left"], done["gone"]) == (1, 0, 1)
    assert "gone: 0/b.jsonl; its rows stay as they are in at" in notes
    sealed(world, 1)
    assert {line[2] for line in rows_of(world, world.state.seal - 1)} >= {None, 103}


@pytest.mark.parametrize("policy", ["stop", "quarantine"])
def test_a_file_that_lacks_the_column_is_left_and_the_others_are_filled(tmp_path: Path, policy: str) -> None:
    world = made(tmp_path)
    declare(world, relanded(world.state.collection, source=replace(world.collection.landed.source, bad_files=policy)))
    landed(world)
    world.land(0, "a", [{n: value for n, value in line.items() if n != "at"} for line in DAYS[0]["a"]])
    world.run(take(world, 0))
    sealed(world, 0)
    declare(world, with_column(world.state.collection))
    notes: list[str] = []
    for corrected, outcome in ((1, "applied"), (None, "nothing to do")):
        job = world.job()
        job.note = notes.append
        done = take(world, 0, "at")(job)
        assert (done.get("corrected"), done["outcome"], done["left"]) == (corrected, outcome, 1)
    assert any(
        note.startswith("left as it was: 0/a.jsonl: column at is") and note.endswith("stay as they are in at")
        for note in notes
    )
    sealed(world, 0)
    assert {(line[0], line[2]) for line in rows_of(world, world.state.seal - 1)} == {
        (1, None), (2, None), (3, 305), (4, 406),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "landed_as", "said"),
    [
        (["att"], {}, "att is no column of tides; files are read again for value columns; did you mean 'at'?"),
        (["k"], {}, "k is a column of the key of tides; files are read again for value columns; valid are v, at"),
        (["at"], {"reprocess_for": 0}, "tides keeps nothing by which its files could be read again for at: declare"),
        (["at"], {"reprocess_for": 5}, "0/a.jsonl cannot be read again; reprocess_for 5us lets intervals be corrected"),
    ],
)
def test_what_cannot_be_read_again_is_refused_in_one_line(
    tmp_path: Path, columns: list[str], landed_as: dict[str, Any], said: str
) -> None:
    world = read(tmp_path, Envelope.APPEND, **landed_as)
    with pytest.raises(InvalidUsage) as refused:
        world.run(take(world, 0, *columns))
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_taken_out_it_can_be_filled_again(tmp_path: Path) -> None:
    world = read(tmp_path, Envelope.UPSERT)
    batch = world.run(take(world, 0, "at"))["batch"]
    world.run(lambda job: quarantine(job, batch))
    assert world.run(take(world, 0, "at"))["corrected"] == 2
    sealed(world, 1)
    world.run(lambda job: compact(job, interval(1)))
    assert (3, "d", 305, 1) in rows_of(world, world.state.seal - 1)
    assert sound(world)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_call_and_run_twice_at_once_it_is_filled_once(tmp_path: Path, after: bool) -> None:
    expected = rows_of(read(tmp_path / "clean", Envelope.UPSERT, knows=True), 19)
    for nth in range(1, 400, budget(ci=9, deep=1)):
        world = read(tmp_path / str(nth), Envelope.UPSERT)
        fault = world.store = FaultyStore(world.truth, Fault(nth, after, dies=True))
        for number in range(len(DAYS)):
            world.run(take(world, number, "at"))
        world.store = world.truth
        sealed(world, 1)
        assert rows_of(world, world.state.seal - 1) == expected, f"call {nth}: {fault.fired}"
        if fault.fired is None:
            break
    world = read(tmp_path / "twice", Envelope.UPSERT)
    job = world.job()
    job.store = store = InterruptedStore(world.truth, "create", lambda: world.run(take(world, 0, "at")), after=after)
    job.runner = lambda: InProcessRunner(store)
    job.log = world.log(store)
    take(world, 0, "at")(job)
    assert store.interrupted
    world.run(take(world, 1, "at"))
    sealed(world, 1)
    assert rows_of(world, world.state.seal - 1) == expected
