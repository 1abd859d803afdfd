"""Rows ahead, with real jobs: each counts from its time on, whatever was drained, merged or killed before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.world import DAY, World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import Corruption, InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import AheadMerged, Redefined
from tidemark.model.collection import Column, ColumnType, Envelope, Gate
from tidemark.model.evolution import evolved
from tidemark.model.instant import MAX_TIME
from tidemark.plan import undue
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation


@pytest.fixture(autouse=True)
def little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a handful of rows is sorted by buckets."""
    monkeypatch.setattr(undue, "STAGE_ROWS", 4)
    monkeypatch.setattr(undue, "STAGE_BATCHES", 2)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, collection(Envelope.UPDATES))


def row(k: int, t: int, d: int = 1) -> dict[str, Any]:
    return {"k": k, "v": "x", "t": t, "e": t, "d": d}


def steps(world: World, day: int, *, compacts: bool = True) -> Iterator[Any]:
    at = interval(day)
    yield partial(ingest, interval=at, landing_root=str(world.landing))
    yield lambda job: certify(job, Gate.UNSEALED)
    yield partial(seal, interval=at)
    yield partial(drain, interval=at)
    if compacts:
        yield partial(compact, interval=at)


def lived(world: World, day: int, rows: list[dict[str, Any]], *, compacts: bool = True) -> None:
    world.land(day, "a", rows)
    for step in steps(world, day, compacts=compacts):
        world.run(step)


def rows_at(world: World, time: int | None = None) -> Counter[int]:
    return Counter({r["k"]: r["_multiplicity"] for r in as_of(world.truth, world.state, time=time).to_pylist()})


def known(rows: list[dict[str, Any]], time: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for one in rows:
        found[one["k"]] += one["d"] if one["t"] <= time else 0
    return Counter({k: n for k, n in found.items() if n})


def sound(world: World) -> bool:
    return verify(world.job(), data=True).sound


@pytest.mark.parametrize("compacts", [True, False], ids=["sorted", "as it came"])
def test_each_row_counts_from_its_time_on(world: World, compacts: bool) -> None:
    """Bookings ahead, some cancelled before they are due, some retracted at their own time by another day's file."""
    said: list[dict[str, Any]] = []
    for day in range(24):
        at = DAY * day
        ahead = [row(day, at + n * n, 1 + n % 2) for n in range(8)]
        ahead += [row(day - 1, at - DAY + 49, -2), row(day - 2, at - 2 * DAY + 36, -1)] if day > 1 else []
        rows = [one for one in ahead if one["t"] >= at]
        said += rows
        lived(world, day, rows, compacts=compacts)
        for time in (at, at + DAY - 1):
            assert rows_at(world, time) == known(said, time)
    settled = [entry for entry in world.log().history() if isinstance(entry.change, AheadMerged)]
    assert bool(settled) == compacts
    assert world.state.pending == ()
    lived(world, 40, [])
    for day in range(24, 40):
        for step in steps(world, day):
            world.run(step)
    assert rows_at(world) == known(said, MAX_TIME)
    assert world.state.ahead == ()
    assert sound(world)


def test_parts_are_in_one_bucket_once_they_are_sorted(world: World) -> None:
    for day in range(12):
        lived(world, day, [row(day, DAY * day + n**3) for n in range(9)])
        buckets = undue.buckets_at(world.state.trace_upper, DAY)
        for batch in world.state.ahead:
            for part in parts_table.load(world.truth, batch.parts) if batch.level else ():
                assert (buckets.find(part.first_time) or buckets.buckets[0]) == (
                    buckets.find(part.last_time) or buckets.buckets[0]
                )
        assert undue.stage(world.state) == ()


def test_one_row_a_day_of_the_next_is_moved_and_never_rewritten(world: World) -> None:
    for day in range(10):
        lived(world, day, [row(day, DAY * day), row(100 + day, DAY * (day + 1))])
        assert len(world.state.ahead) == 1
    assert not [entry for entry in world.log().history() if isinstance(entry.change, AheadMerged)]
    assert sum(rows_at(world).values()) == 19


def test_what_a_drain_left_cannot_be_quarantined(world: World) -> None:
    """Its files would be free to be ingested again, and the rows that were drained would count twice."""
    world.land(0, "a", [row(1, 3), row(2, 95)])
    world.land(1, "a", [row(3, 95)])
    world.land(2, "a", [row(4, 95)])
    for day in range(3):
        world.run(partial(ingest, interval=interval(day), landing_root=str(world.landing)))
    first, second, third = (batch.id for batch in world.state.unsealed)
    certify(world.job(), Gate.UNSEALED)
    for step in (seal, drain):
        world.run(partial(step, interval=interval(1)))
    assert [batch.id for batch in world.state.ahead] == [second, first]
    for batch in (first, second):
        with pytest.raises(InvalidUsage, match="was drained up to 20"):
            quarantine(world.job(), batch)
    world.run(lambda job: quarantine(job, third))
    assert rows_at(world) == {1: 1}
    assert sound(world)


def test_a_batch_that_no_gate_has_seen_waits_for_it(world: World) -> None:
    lived(world, 0, [row(1, 3)])
    world.land(1, "a", [row(3, 95)])
    job = world.job()
    ingest(job, interval=interval(1), landing_root=str(world.landing))
    seal(job, interval=interval(1))
    certify(job, Gate.FRONTIER)
    drain(job, interval=interval(1))
    assert (len(world.state.unsealed), world.state.ahead, world.state.trace_upper) == (1, (), 20)
    certify(job, Gate.UNSEALED)
    lived(world, 2, [])
    assert (world.state.unsealed, len(world.state.ahead)) == ((), 1)


def test_columns_that_changed_while_rows_waited(world: World) -> None:
    lived(world, 0, [row(n, 95 + n) for n in range(4)], compacts=False)
    kept = world.state.collection
    log = world.log()
    log.commit(log.load(), Redefined(evolved(kept, replace(kept, value=(*kept.value, Column("w", ColumnType.STRING))))))
    lived(world, 1, [row(9, 300) | {"w": "y"}])
    for day in range(2, 10):
        lived(world, day, [])
    assert rows_at(world) == Counter(range(4))
    assert sound(world)


def test_a_merge_that_lost_rows_is_refused(world: World) -> None:
    lived(world, 0, [row(n, 95 + n) for n in range(9)], compacts=False)
    (batch,) = world.state.ahead
    parts = parts_table.load(world.truth, batch.parts)
    wrong = tuple(replace(part, rows=part.rows + 1) for part in parts)
    request = undue.plan_settle(world.state, [batch], {batch.id: parts})
    with pytest.raises(Corruption, match="read"):
        undue.check(request, wrong, [], 0)
    rows = undue.Rows(0, MAX_TIME, parts=parts)
    with pytest.raises(Corruption, match="sums"):
        undue.check_output(rows, parts, [], world.state.collection.schema)
