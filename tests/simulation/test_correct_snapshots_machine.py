"""Random days of full snapshots, run in any order and again, while files change, come and go, batches are taken out and
put back, and other steps commit in between: the collection is always what its files say now, from when that was known.

The oracle replays what was said of each day from a list, and shares no code with the library.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simulation.waiting import HoldingLog, Waiting
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import Fenced, InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Ingested
from tidemark.model.collection import Envelope, Gate
from tidemark.model.retention import Retention, Step
from tidemark.storage.log.log import Committed

pytestmark = pytest.mark.simulation

DAYS = 5
STEPS = 90
Multiplicities = Counter[tuple[int, str]]
Files = dict[str, Multiplicities]


@dataclass
class Event:
    """What a batch says of a day from `known` on: all its files, some that changed (None: gone), or nothing more."""

    day: int
    known: int
    effect: str
    files: dict[str, Multiplicities | None]
    silent: set[tuple[int, str]] = field(default_factory=set)


@dataclass
class Oracle:
    """The batches that count, in the order in which they came, and those that were taken out."""

    events: dict[str, Event] = field(default_factory=dict)
    out: dict[str, Event] = field(default_factory=dict)
    silent: set[tuple[int, str]] = field(default_factory=set)
    answers: list[tuple[int, int, Multiplicities]] = field(default_factory=list)

    def says(self, day: int, time: int) -> Files | None:
        """The files that count of a day as known at a time; None: it says nothing."""
        files: Files | None = None
        for event in sorted(self.events.values(), key=lambda event: event.known):
            if event.day != day or event.known > time:
                continue
            if event.effect == "announced":
                files = {name: rows for name, rows in event.files.items() if rows is not None}
            elif event.effect == "withdrawn":
                files = None
            else:
                assert files is not None
                changed = {**files, **event.files}
                files = {name: rows for name, rows in changed.items() if rows is not None}
        return files

    def rows_at(self, time: int, event_time: int) -> Multiplicities:
        for day in reversed(range(DAYS)):
            files = self.says(day, time)
            if 10 * day + 9 <= event_time and files is not None:
                return sum(files.values(), Counter())
        return Counter()


@dataclass
class Machine:
    """A world, its oracle, and a source of chance."""

    world: World
    reach: int
    chance: Random
    oracle: Oracle = field(default_factory=Oracle)
    done: Counter[str] = field(default_factory=Counter)

    def land(self) -> None:
        day, name = self.chance.randrange(DAYS), self.chance.choice("ab")
        rows = [
            {"k": self.chance.randrange(2), "v": self.chance.choice("xy")}
            for _ in range(self.chance.choice([0, 1, 2, 3]))
        ]
        self.world.land(day, name, rows)

    def unlink(self) -> None:
        if files := sorted(self.world.landing.glob("*/*")):
            self.chance.choice(files).unlink()

    def listed(self, day: int) -> Files:
        found: Files = {}
        for path in sorted((self.world.landing / str(10 * day)).glob("*")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[path.name] = Counter((row["k"], row["v"]) for row in rows)
        return found

    def expected(self, day: int, removed: bool) -> Event | None:
        """What a run of a day is to say."""
        known = max(10 * day + 9, self.world.state.seal)
        listed, files = self.listed(day), self.oracle.says(day, 10**6)
        if files is None:
            return Event(day, known, "announced", dict(listed)) if listed else None
        silent = {name for of, name in self.oracle.silent if of == day}
        if removed and not listed and (files or silent):
            return Event(day, known, "withdrawn", {})
        changed: dict[str, Multiplicities | None] = {
            n: rows for n, rows in listed.items() if files.get(n, Counter()) != rows
        }
        if removed:
            changed |= {name: None for name, rows in files.items() if name not in listed and rows}
        return Event(day, known, "corrected", changed) if changed else None

    def quiet(self, day: int, removed: bool) -> None:
        """Files without rows come and go, and nothing is said."""
        listed, files = self.listed(day), self.oracle.says(day, 10**6)
        for name in {*listed, *(of for _, of in self.oracle.silent)} if files is not None else ():
            here = name in listed and not listed[name] and name not in (files or {})
            if here:
                self.oracle.silent.add((day, name))
            elif removed and name not in listed:
                self.oracle.silent.discard((day, name))

    def asked(self, day: int, removed: bool) -> Any:
        options = {"landing_root": str(self.world.landing), "removed": removed, "yes": removed}
        return lambda job: ingest(job, interval(day), **options)

    def run(self, day: int) -> None:
        removed = self.chance.random() < 0.4
        event, before = self.expected(day, removed), self.named()
        try:
            self.attempted(self.asked(day, removed))
        except InvalidUsage:
            if 10 * day >= self.world.state.complete_below - self.reach:
                raise
            self.done["refused"] += 1
            return
        self.quiet(day, removed)
        self.said(event, self.named() - before)

    def said(self, event: Event | None, made: set[str]) -> None:
        assert len(made) == (event is not None), (event, made)
        if event is not None:
            (batch,) = made
            self.oracle.events[batch] = event
            self.done[
                "announced afterwards"
                if event.effect == "announced" and event.known > 10 * event.day + 9
                else event.effect
            ] += 1
            if event.effect == "announced":
                self.oracle.silent -= {(event.day, name) for name in event.files}

    def named(self) -> set[str]:
        return {snapshot.batch for snapshot in self.world.state.snapshots}

    def race(self) -> None:
        """An ingest waits to be committed while others commit."""
        day, removed = self.chance.randrange(DAYS), self.chance.random() < 0.4
        event = self.expected(day, removed)
        log = HoldingLog(self.world.truth, self.world.new_id, wall=self.world.wall, monotonic=self.world.clock)
        log.holds = (Ingested,)
        try:
            self.world.run(self.asked(day, removed), log=log)
            return
        except InvalidUsage:
            return
        except Waiting as waiting:
            ready = waiting
        for _ in range(self.chance.choice([1, 1, 2])):
            self.chance.choice([self.quarantine, self.release, self.seal, self.drain, self.compact, self.rerun])()
        before = self.named()
        outcome: Any = None
        with suppress(Fenced):  # the day was run again meanwhile, by a newer attempt
            outcome = self.world.log().commit(ready.head, ready.change)
        if isinstance(outcome, Committed):
            self.world.forget()
            self.quiet(day, removed)
            self.said(event, self.named() - before)
            self.done["committed after others"] += 1
        else:
            self.done["planned again"] += 1

    def rerun(self) -> None:
        self.run(self.chance.randrange(DAYS))

    def attempted(self, step: Any) -> Any:
        """A step whose process dies at a random call of the store now and then, and which is run again."""
        if self.chance.random() < 0.2:
            fault = Fault(self.chance.randrange(1, 12), self.chance.random() < 0.5, self.chance.random() < 0.8)
            self.world.store = FaultyStore(self.world.truth, fault)
        try:
            return self.world.run(step)
        finally:
            self.done["died"] += isinstance(self.world.store, FaultyStore) and self.world.store.fired is not None
            self.world.store = self.world.truth

    def seal(self) -> None:
        self.world.run(lambda job: seal(job, interval(self.chance.randrange(DAYS))))
        certify(self.world.job(), Gate.FRONTIER)
        self.check()

    def drain(self) -> None:
        self.attempted(lambda job: drain(job, interval(0)))

    def quarantine(self) -> None:
        named = sorted(snapshot.batch for snapshot in self.world.state.pending_snapshots)
        if not named:
            return
        batch = self.chance.choice(named)
        try:
            self.world.run(lambda job: quarantine(job, batch))
        except InvalidUsage:
            self.done["not taken out"] += 1
            return
        self.done["taken out"] += 1
        event = self.oracle.out[batch] = self.oracle.events.pop(batch)
        if event.effect == "announced":
            event.silent = {each for each in self.oracle.silent if each[0] == event.day}
            self.oracle.silent -= event.silent
        self.oracle.answers = [answer for answer in self.oracle.answers if answer[0] < self.world.state.trace_upper]

    def release(self) -> None:
        out = sorted(self.oracle.out)
        if not out:
            return
        batch = self.chance.choice(out)
        try:
            self.world.run(lambda job: release(job, batch))
        except InvalidUsage:
            self.done["not put back"] += 1
            return
        self.done["put back"] += 1
        event = self.oracle.events[batch] = self.oracle.out.pop(batch)
        self.oracle.silent |= event.silent
        self.oracle.answers = [answer for answer in self.oracle.answers if answer[0] < self.world.state.trace_upper]

    def compact(self) -> None:
        self.attempted(lambda job: compact(job, interval(0)))

    def collect(self) -> None:
        collect(self.world.job(), keep=0, graces=AT_ONCE)

    def step(self) -> None:
        others = [self.unlink, self.drain, self.quarantine, self.release, self.compact, self.collect, self.race]
        self.chance.choice([*others, *2 * [self.seal, self.land], *4 * [self.rerun]])()

    def check(self) -> None:
        """What is known now is what the files say, at some event times; what was known before is as it was answered."""
        state = self.world.state
        time, since = state.seal - 1, max(state.since, 0)
        for event_time in sorted({self.chance.randrange(10 * DAYS), time}):
            if time >= since and event_time >= since:
                expected = self.oracle.rows_at(time, event_time)
                assert self.answer(time, event_time) == expected, (time, event_time)
                self.oracle.answers.append((time, event_time, expected))
        answers = [answer for answer in self.oracle.answers if min(answer[:2]) >= since]
        if answers:
            known, event_time, expected = self.chance.choice(answers)
            assert self.answer(known, event_time) == expected, ("as known before", known, event_time)

    def answer(self, time: int, event_time: int) -> Multiplicities:
        table = as_of(self.world.truth, self.world.state, time=time, event_time=event_time)
        names = ("k", "v", "_multiplicity")
        cells = zip(*(table[name].to_pylist() for name in names), strict=True)
        return Counter({(k, v): count for k, v, count in cells})


LADDER = Retention("ladder", steps=(Step(None, 20), Step(10, None)))


@pytest.mark.parametrize(("reach", "retention"), [(1000, Retention()), (20, LADDER)], ids=["all", "some"])
def test_the_collection_is_what_its_files_say(tmp_path: Path, reach: int, retention: Retention) -> None:
    done: Counter[str] = Counter()
    for seed in range(budget(ci=6, deep=150)):
        (tmp_path / str(seed)).mkdir()
        declared = collection(Envelope.SNAPSHOT, reprocess_for=reach, retention=retention, live_batches=2)
        machine = Machine(World(tmp_path / str(seed), declared), reach, Random(f"{seed} {reach}"), done=done)
        for _ in range(STEPS):
            machine.step()
        for day in range(DAYS):
            machine.run(day)
        for _ in range(2):
            machine.seal()
            machine.drain()
        machine.check()
        assert verify(machine.world.job(), data=True).findings == ()
    wanted = ["announced", "announced afterwards", "corrected", "withdrawn", "taken out", "put back", "died"]
    assert min(done[what] for what in [*wanted, "planned again", "committed after others"]) > 0, done
    assert (done["refused"] > 0) == (reach < 10 * DAYS), done
