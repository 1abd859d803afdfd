"""Random days, run in any order and again, with files that change in between, batches that are taken out and put back,
compactions and the collector: the collection is always a clean build of what its files say, as they were first judged.

The oracle keeps versions of files in dictionaries and shares no code with the library.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, certify, collection, interval
from tidemark.arrow.read import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.questions.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate, Late

pytestmark = pytest.mark.simulation

DAYS = 4
STEPS = 80
Held = Counter[tuple[int, str]]


@dataclass(frozen=True)
class Version:
    """What a file says, and how far things had come when it was first read: complete below, known below."""

    rows: tuple[tuple[int, str, int, int, int], ...]
    complete: int
    known: int
    text: str | None

    def counts(self, policy: str, time: int, event_time: int) -> Held:
        held: Held = Counter()
        for k, v, t, e, diff in self.rows:
            late = e < self.complete
            happened = self.known if late and policy == "next_window" else e
            learned = self.known if late else max(t, self.known)
            if not (late and policy == "discard") and learned <= time and happened <= event_time:
                held[k, v] += diff
        return held


@dataclass
class Oracle:
    """The files that count, and for each batch what it made of which file."""

    policy: str
    files: dict[str, Version | None] = field(default_factory=dict)
    made: dict[str, dict[str, tuple[Version | None, Version]]] = field(default_factory=dict)
    told: list[tuple[int, int, Held]] = field(default_factory=list)

    def held(self, time: int, event_time: int) -> Held:
        held: Held = Counter()
        for version in self.files.values():
            if version:
                held.update(version.counts(self.policy, time, event_time))
        return Counter({at: count for at, count in held.items() if count})


@dataclass
class Machine:
    """A world, its oracle, and a source of chance."""

    world: World
    oracle: Oracle
    chance: Random
    done: Counter[str] = field(default_factory=Counter)

    @property
    def updates(self) -> bool:
        return self.world.collection.landed.source.envelope is Envelope.UPDATES

    def land(self) -> None:
        day, name = self.chance.randrange(DAYS), self.chance.choice("ab")
        rows = []
        for _ in range(self.chance.randrange(4)):
            e = self.chance.randrange(10 * day, 10 * day + 13) - self.chance.choice([0, 0, 0, 8])
            t = max(e, 0) + self.chance.choice([0, 0, 1, 9])
            row = {"k": self.chance.randrange(3), "v": self.chance.choice("xy"), "t": t, "e": max(e, 0)}
            rows.append(row | ({"d": self.chance.choice([1, 1, 2, -1])} if self.updates else {}))
        self.world.land(day, name, rows)

    def unlink(self) -> None:
        if files := sorted(self.world.landing.glob("*/*")):
            self.chance.choice(files).unlink()

    def run(self, day: int) -> None:
        state = self.world.state
        complete, known = state.complete_below, state.seal
        before_run = {batch.id for batch in state.unsealed}
        removed = self.chance.random() < 0.3
        asked = {"landing_root": str(self.world.landing), "removed": removed, "yes": removed}
        self.attempted(lambda job: ingest(job, interval(day), **asked))
        touched: dict[str, tuple[Version | None, Version]] = {}
        for path in sorted((self.world.landing / str(10 * day)).glob("*")):
            name, text = f"{10 * day}/{path.name}", path.read_text()
            before = self.oracle.files.get(name)
            if before and before.text == text:
                continue
            said = [json.loads(line) for line in text.splitlines()]
            rows = tuple((r["k"], r["v"], r["t"], r["e"], r.get("d", 1)) for r in said)
            judged = (before.complete, before.known) if before else (complete, known)
            touched[name] = (before, Version(rows, *judged, text))
            self.done["corrected" if before else "new"] += 1
        for name, before in self.oracle.files.items():
            gone = name.startswith(f"{10 * day}/") and not (self.world.landing / name).exists()
            if removed and gone and before and before.text is not None:
                touched[name] = before, Version((), before.complete, before.known, None)
                self.done["withdrawn"] += 1
        for name, (before, now) in touched.items():
            self.oracle.files[name] = now
            for made in self.oracle.made.values():  # the batch that tells of a file tells of its newest bytes
                if before and name in made and made[name][1] == before and sorted(before.rows) == sorted(now.rows):
                    made[name] = made[name][0], now
        for batch in {batch.id for batch in self.world.state.unsealed} - before_run:
            self.oracle.made[batch] = {n: pair for n, pair in touched.items() if changed(pair, self.oracle.policy)}

    def attempted(self, step: Any) -> Any:
        """A step whose process dies at a random call of the store now and then, and which is run again."""
        if self.chance.random() < 0.3:
            fault = Fault(self.chance.randrange(1, 12), self.chance.random() < 0.5, self.chance.random() < 0.8)
            self.world.store = FaultyStore(self.world.truth, fault)
        try:
            return self.world.run(step)
        finally:
            self.done["died"] += isinstance(self.world.store, FaultyStore) and self.world.store.fired is not None
            self.world.store = self.world.truth

    def seal(self) -> None:
        day = max(0, min(DAYS - 1, self.world.state.complete // 10 - 1))
        self.world.run(lambda job: seal(job, interval(day)))
        certify(self.world.job(), Gate.FRONTIER)
        self.check()

    def drain(self) -> None:
        self.attempted(lambda job: drain(job, interval(0)))

    def quarantine(self) -> None:
        unsealed = [batch.id for batch in self.world.state.unsealed]
        if not unsealed:
            return
        batch = self.chance.choice(unsealed)
        try:
            self.world.run(lambda job: quarantine(job, batch))
        except InvalidUsage:
            self.done["not taken out"] += 1
            return
        self.done["taken out"] += 1
        self.forget()
        self.oracle.files |= {name: before for name, (before, _) in self.oracle.made[batch].items()}

    def release(self) -> None:
        out = [batch.id for batch in self.world.state.quarantined]
        if not out:
            return
        batch = self.chance.choice(out)
        try:
            self.world.run(lambda job: release(job, batch))
        except InvalidUsage:
            self.done["not put back"] += 1
            return
        self.done["put back"] += 1
        self.forget()
        self.oracle.files |= {name: now for name, (_, now) in self.oracle.made[batch].items()}

    def forget(self) -> None:
        """What was told of what is not drained: a batch that is taken out was never there."""
        self.oracle.told = [told for told in self.oracle.told if told[0] < self.world.state.trace_upper]

    def compact(self) -> None:
        self.attempted(lambda job: compact(job, interval(0)))

    def collect(self) -> None:
        collect(self.world.job(), keep=0, graces=AT_ONCE)

    def step(self) -> None:
        days = range(DAYS)
        act = self.chance.choice(
            [
                self.land,
                self.land,
                self.unlink,
                self.seal,
                self.drain,
                self.quarantine,
                self.release,
                self.compact,
                self.collect,
            ]
            + 3 * [lambda: self.run(self.chance.choice(days))]
        )
        act()

    def check(self) -> None:
        """What is known now is a clean build, at some event times; what was known before is as it was told."""
        time = self.world.state.seal - 1
        if time < 0 or any(batch.learned_at == self.world.state.seal for batch in self.world.state.pending):
            return  # not certified yet
        for event_time in sorted({self.chance.randrange(time + 1), time}):
            expected = self.oracle.held(time, event_time)
            assert self.answer(time, event_time) == expected, (time, event_time)
            self.oracle.told.append((time, event_time, expected))
        known, event_time, expected = self.chance.choice(self.oracle.told)
        assert self.answer(known, event_time) == expected, ("as known before", known, event_time)

    def answer(self, time: int, event_time: int) -> Held:
        table = as_of(self.world.truth, self.world.state, time=time, event_time=event_time)
        names = ("k", "v", "_multiplicity")
        cells = zip(*(table[name].to_pylist() for name in names), strict=True)
        return Counter({(k, v): count for k, v, count in cells})


def changed(pair: tuple[Version | None, Version], policy: str) -> bool:
    """Whether a reading of a file made it count otherwise, and so is a batch's to take out."""
    before, now = pair
    return before is None or Counter(before.rows) != Counter(now.rows)


@pytest.mark.parametrize("policy", ["discard", "reemit", "next_window"])
@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES])
def test_the_collection_is_a_clean_build_of_what_its_files_say(tmp_path: Path, envelope: Envelope, policy: str) -> None:
    done: Counter[str] = Counter()
    for seed in range(budget(ci=3, deep=80)):
        (tmp_path / str(seed)).mkdir()
        world = World(tmp_path / str(seed), collection(envelope, late=Late(policy), reprocess_for=1000))
        machine = Machine(world, Oracle(policy), Random(f"{seed} {envelope} {policy}"), done)
        for _ in range(STEPS):
            machine.step()
        for day in range(DAYS):
            machine.run(day)
        for _ in range(2):
            machine.seal()
            machine.drain()
        assert verify(world.job(), data=True).findings == ()
    assert min(done[what] for what in ("corrected", "withdrawn", "new", "taken out", "died")) > 0, done
