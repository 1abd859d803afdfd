"""Files of some days, and schedules of first runs over them: grouped, out of order, cut, interrupted, retried. And what
a collection says of itself afterwards."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulation.script import row
from support.faulty import Fault, FaultyStore, InterruptedStore
from support.inprocess import InProcessRunner
from support.relanded import relanded
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of, changes
from tidemark.jobs.job import Job
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.batching.cutting import Batching
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.change import Ingested
from tidemark.model.collection import Envelope

DAYS = 5
COUNT = Cut(Reason.COUNT, opened=1, at=None)
Files = dict[tuple[int, str], list[dict[str, Any]]]
Step = Callable[[Job], Any]


def drawn_files(chance: random.Random) -> Files:
    """One or two files a day, about a third of their rows from before their day."""
    found: Files = {}
    for day in range(DAYS):
        for name in "ab"[: chance.randrange(3)]:
            rows = []
            for _ in range(chance.randrange(1, 5)):
                happened = max(0, chance.randrange(day * DAY, (day + 1) * DAY) - chance.choice([0, 0, 0, 6, 15, 30]))
                reported = max(0, happened + chance.choice([0, 0, 2, 9]))
                cells = {"o": chance.choice([None, 1, 2]), "gone": chance.random() < 0.2, "d": chance.choice([1, 2])}
                rows.append(row(chance.randrange(3), chance.choice("xyz"), reported, happened, **cells))
            found[day, name] = rows
    return found


def made(folder: Path, envelope: Envelope, **landed: Any) -> World:
    event_time = landed.pop("event_time", True)
    landed = {"batching": Batching(count=1, settle=0), **landed}
    folder.mkdir(parents=True, exist_ok=True)
    return World(folder, relanded(collection(envelope, event_time=event_time), **landed))


def read(world: World, day: int, cut: Cut | None = None) -> Step:
    return lambda job: ingest(job, interval(day), landing_root=str(world.landing), cut=cut)


def seal_and_drain(world: World, day: int) -> None:
    world.run(lambda job: seal(job, interval(day)))
    world.run(lambda job: drain(job, interval(day)))


def daily(world: World, files: Files, days: int = DAYS) -> World:
    """Each day's run, in order, as its files land."""
    for day in range(days):
        assert world.state.complete_below == world.state.collection.landed.complete_before(interval(day))
        for (at, name), rows in files.items():
            if at == day:
                world.land(day, name, rows)
        world.run(read(world, day))
        seal_and_drain(world, day)
        world.run(lambda job, day=day: compact(job, interval(day)))
    return world


@dataclass
class Schedule:
    """First runs of all days, at random."""

    world: World
    files: Files
    chance: random.Random

    def run(self) -> World:
        waiting = list(self.files)
        days = list(range(DAYS))
        if self.chance.random() < 0.7:
            self.chance.shuffle(days)
        while days:
            batch, days = days[: (many := self.chance.randrange(1, 4))], days[many:]
            self.range(batch, waiting)
        seal_and_drain(self.world, DAYS - 1)
        return self.world

    def range(self, days: list[int], waiting: list[tuple[int, str]]) -> None:
        """Some days in one run, whose files land one by one, with cuts and retried seals between."""
        for at in [one for one in waiting if one[0] in days]:
            waiting.remove(at)
            self.world.land(*at, self.files[at])
            if self.chance.random() < 0.4:
                self.attempted(read(self.world, at[0], COUNT))
            if self.chance.random() < 0.4:
                seal_and_drain(self.world, self.chance.choice([0, *days]))
        if len(days) > 1 and self.chance.random() < 0.5:
            self.at_once(*days[:2])
        for day in days:
            self.attempted(read(self.world, day))
        if self.chance.random() < 0.8:
            seal_and_drain(self.world, max(days))
        if self.chance.random() < 0.3:
            self.attempted(lambda job: compact(job, interval(0)))

    def at_once(self, slow: int, quick: int) -> None:
        """While one run reads a day, another reads and seals its own."""

        def meanwhile() -> None:
            self.world.run(read(self.world, quick))
            seal_and_drain(self.world, quick)

        job = self.world.job()
        job.store = store = InterruptedStore(self.world.truth, "create", meanwhile, after=self.chance.random() < 0.5)
        job.runner = lambda: InProcessRunner(store)
        job.log = self.world.log(store)
        read(self.world, slow)(job)

    def attempted(self, step: Step) -> None:
        """A step whose process dies at some call of the store, and which is run again."""
        if self.chance.random() < 0.3:
            fault = Fault(self.chance.randrange(1, 15), self.chance.random() < 0.5, self.chance.random() < 0.7)
            self.world.store = FaultyStore(self.world.truth, fault)
        self.world.run(step)
        self.world.store = self.world.truth


def history(world: World) -> Counter[str]:
    return Counter(repr(tuple(update.values())) for update in changes(world.truth, world.state, after=-1).to_pylist())


def late_table(world: World) -> Counter[str]:
    found = late_rows(world.truth, world.state, limit=1000).rows
    return Counter(repr({name: cell for name, cell in letter.items() if name != "_batch"}) for letter in found)


def rows_at(world: World, **when: int) -> Counter[str]:
    return Counter(repr(tuple(one.values())) for one in as_of(world.truth, world.state, **when).to_pylist())


def check_turns(world: World) -> None:
    """No batch has a time from before its interval's turn."""
    landed = world.state.collection.landed
    for record in world.log().history():
        change = record.change
        if isinstance(change, Ingested) and change.batch:
            assert change.batch.first_time >= landed.complete_before(change.batch.interval)


@dataclass(frozen=True)
class Answers:
    """What a collection says of itself. As-ofs are asked at each time at which something was learned, and at the ends:
    between two of those times nothing changes."""

    frontiers: tuple[int, ...]
    totals: tuple[int, ...]
    history: Counter[str]
    late: Counter[str]
    as_of: dict[int, Counter[str]]

    @classmethod
    def of(cls, world: World) -> Answers:
        check_turns(world)
        state, totals = world.state, world.state.totals
        versions = {version for _, version, _ in learned(world)}
        return cls(
            (state.complete_below, state.seal, state.trace_upper),
            (totals.rows_ingested, totals.rows_late_applied, totals.rows_late_discarded, totals.rows_late_moved),
            history(world),
            late_table(world),
            {time: rows_at(world, time=time) for time in sorted(versions | {0, state.seal - 1}) if time < state.seal},
        )


def learned(world: World) -> list[tuple[Any, ...]]:
    updates = changes(world.truth, world.state, after=-1).to_pylist()
    return [(r["k"], r["_commit_version"], r["_event_time"]) for r in updates]
