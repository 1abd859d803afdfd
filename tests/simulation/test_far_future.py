"""One row a day that is far ahead: each drain reads what is due, whatever waits, and answers stay what they are."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from support.faulty import WrappedStore
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.batch import Part
from tidemark.model.collection import Envelope, Late
from tidemark.model.instant import MAX_TIME
from tidemark.model.retention import Retention
from tidemark.plan import ahead
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation
DAYS, COMPARED, ROWS = 30, 5, 30
YEAR_2100 = 4_102_444_800_000_000
HOW = {
    "both": lambda at, far: {"t": far, "e": far},
    "learned then": lambda at, far: {"t": far, "e": at},
    "happened then": lambda at, far: {"t": at, "e": far},
}
"""Which of a far row's times is far ahead."""


class CountedParts(WrappedStore):
    """Counts parts opened and what they hold."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def open_input(self, key: str) -> Any:
        info = self.inner.stat(key)
        self.counts.update(parts=1, bytes=info.bytes if info else 0)
        return super().open_input(key)


def made(folder: Path, envelope: Envelope) -> World:
    late = Late("reemit", 2 * DAY)
    world = World(folder, collection(envelope, late=late, retention=Retention("full_merge")))
    world.store = CountedParts(world.truth)
    return world


def lived(world: World, day: int, far: dict[str, int] | None = None, *, straddling: bool = False) -> Counter[str]:
    """One day; what its drain opened. `straddling`: its parts are cut as an earlier release did, not at all."""
    at = interval(day)
    rows = [{"k": day * ROWS + n, "v": f"{n}", "t": at.lower + n % DAY, "e": at.lower + n % DAY} for n in range(ROWS)]
    cells = {"o": 0, "gone": False, "d": 1}
    world.land(day, "a", [row | cells for row in rows] + ([{"k": day * ROWS, "v": "far"} | far | cells] if far else []))
    with pytest.MonkeyPatch.context() as patch:
        if straddling:
            patch.setattr(ahead, "SPARE_ROWS", 2**100)
        world.run(partial(ingest, interval=at, landing_root=str(world.landing)))
    world.run(partial(seal, interval=at))
    assert isinstance(world.store, CountedParts)
    before = Counter(world.store.counts)
    world.run(partial(drain, interval=at))
    spent = world.store.counts - before
    world.run(partial(compact, interval=at))
    return spent


def waiting(world: World) -> list[Part]:
    parts = parts_table.parts_of(world.truth, (*world.state.unsealed, *world.state.ahead))
    return [part for part in parts if part.last_time >= world.state.seal]


def answers(world: World) -> list[dict[str, Any]]:
    return as_of(world.truth, world.state).to_pylist()


@cache
def plainly(envelope: Envelope) -> tuple[Counter[str], list[dict[str, Any]]]:
    """What the last drains of as many days without far rows open, and what the collection holds then."""
    with TemporaryDirectory() as folder:
        world = made(Path(folder), envelope)
        costs = [lived(world, day) for day in range(DAYS)]
        return sum(costs[-COMPARED:], Counter()), answers(world)


@pytest.mark.parametrize(
    ("envelope", "how", "far"),
    [
        (Envelope.APPEND, "both", YEAR_2100),
        (Envelope.APPEND, "learned then", MAX_TIME),
        (Envelope.UPSERT, "both", MAX_TIME),
        (Envelope.UPSERT, "learned then", YEAR_2100),
        (Envelope.UPSERT, "happened then", YEAR_2100),
        (Envelope.DEBEZIUM, "both", YEAR_2100),
    ],
)
def test_a_far_row_a_day_costs_later_drains_no_more_than_the_first(
    tmp_path: Path, envelope: Envelope, how: str, far: int
):
    world = made(tmp_path, envelope)
    costs = [lived(world, day, HOW[how](interval(day).lower, far)) for day in range(DAYS)]
    usual, expected = plainly(envelope)
    spent = sum(costs[-COMPARED:], Counter())
    # The day's far row is in a part of its own, which is due with the day if only its event time is far.
    assert spent["parts"] <= usual["parts"] + COMPARED, (spent, usual)
    assert spent["bytes"] <= 2 * usual["bytes"], (spent, usual)
    assert world.state.trace_upper == world.state.seal == DAYS * DAY
    assert world.state.since > (DAYS - 4) * DAY
    if how != "happened then":
        assert sum(part.rows for part in waiting(world)) == DAYS
        assert answers(world) == expected
    assert verify(world.job(), data=True).sound


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
@pytest.mark.parametrize("how", HOW)
def test_parts_of_an_earlier_release_that_hold_far_rows_are_cut_once(tmp_path: Path, envelope: Envelope, how: str):
    world = made(tmp_path, envelope)
    for day in range(10):
        lived(world, day, HOW[how](interval(day).lower, YEAR_2100), straddling=True)
    for day in range(10, 14):
        lived(world, day)
    assert isinstance(world.store, CountedParts)
    before = Counter(world.store.counts)
    lived(world, 14)
    assert (world.store.counts - before)["parts"] < 12
    assert verify(world.job(), data=True).sound


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
def test_what_waited_comes_when_its_time_comes(tmp_path: Path, envelope: Envelope):
    """A hundred days ahead: nothing is lost, and nothing comes twice."""
    world, far = made(tmp_path, envelope), 100
    for day in range(5):
        at = interval(far + day).lower
        lived(world, day, {"t": at, "e": at})
    for day in range(5, far + 6):
        world.run(partial(ingest, interval=interval(day), landing_root=str(world.landing)))
        if day % 25 == 0 or day >= far:
            world.run(partial(seal, interval=interval(day)))
            world.run(partial(drain, interval=interval(day)))
    values = Counter(row["v"] for row in answers(world))
    assert values["far"] == 5
    assert world.state.pending == ()
    assert verify(world.job(), data=True).sound
