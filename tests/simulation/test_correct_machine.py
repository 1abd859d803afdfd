"""Random days, run in any order and again, with files that change in between, dead letters that are replayed, a column
that is added, batches that are taken out and put back, compactions and the collector: the collection is always a clean
build of what its files say, as they were first judged.

The oracle keeps versions of files in dictionaries and shares no code with the library.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Redefined
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Gate, Late

pytestmark = pytest.mark.simulation

DAYS = 4
STEPS = 80
REACH = 6
"""How late rows may be that are applied under `reemit`."""
Row = tuple[int, str, int, int, int, str | None]
Multiplicities = Counter[tuple[int, str, str | None]]


@dataclass(frozen=True)
class Letter:
    """A dead letter that a replay applied: when that was known, and by which batch it is."""

    row: Row
    known: int
    batch: str


@dataclass(frozen=True)
class Version:
    """What a file says, and how far things had come when it was first read: complete below, known below; of its letters
    those that were replayed; the batch that reported it; whether it was read with the column that is added."""

    rows: tuple[Any, ...]
    complete: int
    known: int
    text: str | None
    noted: bool = False
    letters: tuple[Letter, ...] = ()
    batch: str = ""

    def dead(self, policy: str) -> list[Row]:
        late = [row for row in self.rows if row[3] < self.complete]
        if policy == "reemit":
            return [row for row in late if self.complete - row[3] > REACH]
        return late if policy == "discard" else []

    def updates(self, policy: str) -> Counter[tuple[int, str, str | None, int, int]]:
        """Rows with when they are known and when they happened."""
        updates: Counter[tuple[int, str, str | None, int, int]] = Counter()
        dead = self.dead(policy)
        for row in self.rows:
            k, v, t, e, diff, note = row
            if row not in dead:
                late = e < self.complete
                happened = self.known if late and policy == "next_window" else e
                updates[k, v, note, self.known if late else max(t, self.known), happened] += diff
        for letter in self.letters:
            k, v, _, e, diff, note = letter.row
            updates[k, v, note, letter.known, e] += diff
        return updates

    def counts(self, policy: str, time: int, event_time: int) -> Multiplicities:
        found: Multiplicities = Counter()
        for (k, v, note, learned, happened), diff in self.updates(policy).items():
            if learned <= time and happened <= event_time:
                found[k, v, note] += diff
        return found

    def says(self, policy: str, seal: int) -> dict[tuple[int, str, str | None, int, int], int]:
        """As it counts from the seal on."""
        says: Counter[tuple[int, str, str | None, int, int]] = Counter()
        for (k, v, note, learned, happened), diff in self.updates(policy).items():
            says[k, v, note, max(learned, seal), happened] += diff
        return {row: diff for row, diff in says.items() if diff}

    def still(self, letters: tuple[Letter, ...], policy: str, *, noted: bool) -> tuple[Letter, ...]:
        """Of letters that were replayed of an earlier reading those that this one has still, oldest replays first."""
        kept = []
        there = list(letters)
        for row in self.dead(policy):
            same = [one for one in there if (one.row if noted else one.row[:5]) == (row if noted else row[:5])]
            if same:
                there.remove(same[0])
                kept.append(replace(same[0], row=row))
        return tuple(sorted(kept, key=lambda letter: letter.known))


@dataclass
class Oracle:
    """The files that count, and for each batch what it made of which file."""

    policy: str
    files: dict[str, Version | None] = field(default_factory=dict)
    made: dict[str, dict[str, tuple[Version | None, Version]]] = field(default_factory=dict)
    answers: list[tuple[int, int, Multiplicities]] = field(default_factory=list)

    def rows_at(self, time: int, event_time: int) -> Multiplicities:
        found: Multiplicities = Counter()
        for version in self.files.values():
            if version:
                found.update(version.counts(self.policy, time, event_time))
        return Counter({at: count for at, count in found.items() if count})


@dataclass
class Machine:
    """A world, its oracle, and a source of chance."""

    world: World
    oracle: Oracle
    chance: Random
    done: Counter[str] = field(default_factory=Counter)
    landed: dict[tuple[int, str], list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def updates(self) -> bool:
        return self.world.collection.landed.source.envelope is Envelope.UPDATES

    def land(self) -> None:
        day, name = self.chance.randrange(DAYS), self.chance.choice("ab")
        rows = []
        for _ in range(self.chance.randrange(4)):
            e = self.chance.randrange(10 * day, 10 * day + 13) - self.chance.choice([0, 0, 8, 12])
            t = max(e, 0) + self.chance.choice([0, 0, 1, 9])
            row = {"k": self.chance.randrange(3), "v": self.chance.choice("xy"), "t": t, "e": max(e, 0)}
            row |= {"note": self.chance.choice([None, None, "seen"])} if self.noted else {}
            rows.append(row | ({"d": self.chance.choice([1, 1, 2, -1])} if self.updates else {}))
        self.rewrite(day, name, rows)
        if self.chance.random() < 0.5:
            self.run(day)

    def rewrite(self, day: int, name: str, rows: list[dict[str, Any]]) -> None:
        """A file, of which some lines may be as they were."""
        before = self.landed.get((day, name), [])
        rows += [row | ({"note": None} if self.noted else {}) | row for row in before if self.chance.random() < 0.7]
        self.chance.shuffle(rows)
        self.landed[day, name] = rows
        self.world.land(day, name, rows)

    @property
    def noted(self) -> bool:
        return len(self.world.state.collection.value) > 1

    def said(self, row: dict[str, Any]) -> Any:
        """What a line of a file says."""
        return row["k"], row["v"], row["t"], row["e"], row.get("d", 1), row.get("note")

    def differ(self, before: Version, now: Version, known: int) -> bool:
        """Whether a reading of a file made it count otherwise from `known` on, and so is a batch's to take out."""
        return before.says(self.oracle.policy, known) != now.says(self.oracle.policy, known)

    def evolve(self) -> None:
        """A value column is added, once, and every file has it, empty so far."""
        if self.noted or self.chance.random() < 0.5:
            return
        declared = self.world.state.collection
        value = (*declared.value, Column("note", ColumnType.STRING, 9))
        self.world.log().commit(self.world.head, Redefined(replace(declared, value=value, schema=declared.schema + 1)))
        for path in sorted(self.world.landing.glob("*/*")):
            said = [json.loads(line) for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(row | {"note": None}) + "\n" for row in said))
        self.done["evolved"] += 1

    def replay(self) -> None:
        seal, before = self.world.state.seal, {batch.id for batch in self.world.state.unsealed}
        self.attempted(lambda job: replay(job))
        for batch in {batch.id for batch in self.world.state.unsealed} - before:
            touched = {}
            for name, version in self.oracle.files.items():
                if version is None:
                    continue
                left = Counter(version.dead(self.oracle.policy)) - Counter(letter.row for letter in version.letters)
                known = max(seal, int(name.partition("/")[0]))  # not before its interval's turn
                if fresh := tuple(Letter(row, known, batch) for row in left.elements()):
                    touched[name] = version, replace(version, letters=(*version.letters, *fresh))
            self.oracle.files |= {name: now for name, (_, now) in touched.items()}
            self.oracle.made[batch] = touched
            self.done["replayed"] += 1

    def unlink(self) -> None:
        if files := sorted(self.world.landing.glob("*/*")):
            self.chance.choice(files).unlink()

    def adds(self, day: int) -> bool:
        """Whether files of a day are gone and others came: these are added here (see test_replaced_days.py)."""
        landed = {f"{10 * day}/{path.name}" for path in (self.world.landing / str(10 * day)).glob("*")}
        count = {name for name, version in self.oracle.files.items() if version and version.text is not None}
        return bool(landed - count) and any(name.startswith(f"{10 * day}/") for name in count - landed)

    def run(self, day: int) -> None:
        state = self.world.state
        complete, known = max(state.complete_below, 10 * day), max(state.seal, 10 * day)
        before_run = {batch.id for batch in state.unsealed}
        added = self.adds(day)
        removed = self.chance.random() < 0.5 and not added
        asked = {"landing_root": str(self.world.landing), "removed": removed, "yes": removed, "added": added}
        self.attempted(lambda job: ingest(job, interval(day), **asked))
        touched: dict[str, tuple[Version | None, Version]] = {}
        for path in sorted((self.world.landing / str(10 * day)).glob("*")):
            name, text = f"{10 * day}/{path.name}", path.read_text()
            before = self.oracle.files.get(name)
            if before and before.text == text:
                continue
            rows = tuple(self.said(json.loads(line)) for line in text.splitlines())
            judged = (before.complete, before.known) if before else (complete, known)
            now = Version(rows, *judged, text, self.noted)
            if before:
                now = replace(now, letters=now.still(before.letters, self.oracle.policy, noted=before.noted))
                self.done["letters kept"] += len(now.letters)
                self.done["letters gone"] += len(before.letters) - len(now.letters)
            touched[name] = (before, now)
            self.done["corrected" if before else "new"] += 1
        for name, before in self.oracle.files.items():
            gone = name.startswith(f"{10 * day}/") and not (self.world.landing / name).exists()
            if removed and gone and before and before.text is not None:
                touched[name] = before, Version((), before.complete, before.known, None, self.noted)
                self.done["withdrawn"] += 1
        (batch,) = {batch.id for batch in self.world.state.unsealed} - before_run or {""}
        for name, (before, now) in touched.items():
            if not before or self.differ(before, now, known):
                touched[name] = before, self.of_batch(batch, now)
                self.oracle.made.setdefault(batch, {})[name] = touched[name]
                continue
            # The batch that tells of a file, or the last that replayed letters of it, tells of its newest bytes.
            others = [letter.batch for letter in before.letters if letter.batch != before.batch]
            touched[name] = before, self.of_batch(others[-1] if others else before.batch, now)
            for made in self.oracle.made.values():
                if name in made and made[name][1] == before:
                    made[name] = made[name][0], touched[name][1]
        self.oracle.files |= {name: now for name, (_, now) in touched.items()}

    @staticmethod
    def of_batch(batch: str, version: Version) -> Version:
        return replace(version, batch=batch, letters=tuple(replace(one, batch=batch) for one in version.letters))

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
        """Forget the answers about what is not drained: a batch that is taken out was never there."""
        self.oracle.answers = [answer for answer in self.oracle.answers if answer[0] < self.world.state.trace_upper]

    def compact(self) -> None:
        self.attempted(lambda job: compact(job, interval(0)))

    def collect(self) -> None:
        collect(self.world.job(), keep=0, graces=AT_ONCE)

    def step(self) -> None:
        days = range(DAYS)
        acts = [*4 * [self.land], *2 * [self.unlink], self.seal, self.drain, self.quarantine, self.release]
        acts += [self.compact, self.collect, *2 * [self.replay], self.evolve]
        self.chance.choice([*acts, *3 * [lambda: self.run(self.chance.choice(days))]])()

    def check(self) -> None:
        """What is known now is a clean build, at some event times; what was known before is as it was answered."""
        time = self.world.state.seal - 1
        if time < 0:
            return
        for event_time in sorted({self.chance.randrange(time + 1), time}):
            expected = self.oracle.rows_at(time, event_time)
            assert self.answer(time, event_time) == expected, (time, event_time)
            self.oracle.answers.append((time, event_time, expected))
        known, event_time, expected = self.chance.choice(self.oracle.answers)
        assert self.answer(known, event_time) == expected, ("as known before", known, event_time)

    def answer(self, time: int, event_time: int) -> Multiplicities:
        found: Multiplicities = Counter()
        for row in as_of(self.world.truth, self.world.state, time=time, event_time=event_time).to_pylist():
            found[row["k"], row["v"], row.get("note")] += row["_multiplicity"]
        return found


def of_files(envelope: Envelope, policy: str, *, reprocess_for: int = 1000) -> Collection:
    """A collection whose files can be corrected, if nothing else is said for ever."""
    late = Late(policy, REACH if policy == "reemit" else None)
    return collection(envelope, late=late, reprocess_for=reprocess_for)


def expected(policy: str) -> list[str]:
    """What is to have happened at least once; what is rarer only where many seeds are walked (by hand it is in
    test_correct_letters.py)."""
    always = ["corrected", "withdrawn", "new", "taken out", "died"]
    lettered = ["replayed", "letters kept", "letters gone"] if policy != "next_window" else []
    return [*always, *budget(ci=[], deep=lettered)]


def walk(machine: Machine) -> None:
    """Many steps at random; then all that has landed is read and can be answered, and nothing is amiss."""
    for _ in range(STEPS):
        machine.step()
    for day in range(DAYS):
        machine.run(day)
    for _ in range(2):
        machine.seal()
        machine.drain()
    assert verify(machine.world.job(), data=True).findings == ()


@pytest.mark.parametrize("policy", ["discard", "reemit", "next_window"])
@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES])
def test_the_collection_is_a_clean_build_of_what_its_files_say(tmp_path: Path, envelope: Envelope, policy: str) -> None:
    done: Counter[str] = Counter()
    for seed in range(budget(ci=3, deep=80)):
        (tmp_path / str(seed)).mkdir()
        world = World(tmp_path / str(seed), of_files(envelope, policy))
        walk(Machine(world, Oracle(policy), Random(f"{seed} {envelope} {policy}"), done))
    assert min(done[what] for what in (*expected(policy), "evolved")) > 0, done
