"""A drain takes the parts of ingests over where they are what it would write: nothing is read, nothing is written."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from simulation.correcting import row, rows_at, sound
from support.world import World, certify, collection, interval
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation


def ingested(world: World, day: int, rows: list[dict[str, Any]]) -> set[str]:
    """The parts an ingest of these rows leaves, sealed up to the day's end."""
    world.land(day, "a", rows)
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    parts = files(world, world.state.unsealed[-1:])
    world.run(lambda job: seal(job, interval(day)))
    certify(world.job(), Gate.FRONTIER)
    return parts


def files(world: World, batches: Any) -> set[str]:
    return {part.file.key for part in parts_table.parts_of(world.truth, batches)}


def drained(world: World, day: int) -> dict[str, Any]:
    return world.run(lambda job: drain(job, interval(day)))


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path, collection(Envelope.APPEND))


@pytest.fixture
def signed(tmp_path) -> World:
    return World(tmp_path, collection(Envelope.UPDATES))


def test_what_an_append_brings_becomes_the_trace_as_it_is(world: World) -> None:
    parts = ingested(world, 0, [row(2, "b", 3), row(1, "a", 5), row(1, "a", 3)])
    before = set(world.truth.objects)

    job = world.job(first=True)
    job.runner = lambda: pytest.fail("nothing is to be read")
    result = drain(job, interval(0))

    assert files(world, world.state.trace) == parts
    assert {key.partition("/")[0] for key in set(world.truth.objects) - before} == {"versions"}
    assert (result["rows"], result["bytes_written"], world.state.totals.bytes_drained) == (3, 0, 0)
    assert rows_at(world) == {(1, "a"): 2, (2, "b"): 1}
    assert world.state.unsealed == ()
    assert sound(world)


@pytest.mark.parametrize(
    "rows",
    [
        [row(1, "a", 3, d=1), row(1, "a", 3, d=1)],
        [row(1, "a", 3, d=1), row(1, "a", 3, d=-1), row(2, "b", 3, d=1)],
        [row(1, "a", 3, d=0), row(2, "b", 3, d=1)],
    ],
    ids=["repeated", "retracted", "of no effect"],
)
def test_rows_that_a_drain_would_not_write_are_not_taken_over(signed: World, rows: list[dict[str, Any]]) -> None:
    parts = ingested(signed, 0, rows)
    drained(signed, 0)
    assert not files(signed, signed.state.trace) & parts
    expected: Counter[tuple[int, str]] = Counter()
    for one in rows:
        expected[one["k"], one["v"]] += one["d"] if one["t"] < 10 else 0
    assert rows_at(signed) == Counter({key: count for key, count in expected.items() if count})
    assert sound(signed)


def test_of_a_batch_that_reaches_ahead_the_part_that_is_due_is_taken_over(world: World) -> None:
    parts = ingested(world, 0, [row(1, "a", 3), row(2, "b", 10_000_000)])
    assert len(parts) == 2
    drained(world, 0)
    taken = files(world, world.state.trace)
    assert len(taken) == 1
    assert taken < parts
    assert rows_at(world) == {(1, "a"): 1}
    assert sound(world)
    with pytest.raises(InvalidUsage, match="was drained up to 10"):
        world.run(lambda job: quarantine(job, world.state.ahead[0].id))
    for _ in range(3):
        world.clock.now += 48 * 3600
        world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
    assert parts <= set(world.truth.objects)
    assert sound(world)
