"""docs/format.md suffices: a reader written from it answers as Tidemark does, at every stage of a collection."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.world import DAY, World, collection, interval
from tests.compat import second_reader
from tests.compat.second_reader import SecondReader, Unreadable
from tests.support.budget import budget
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model import commit_times
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, Late, Layout, ValueType
from tidemark.model.frontier import Rung
from tidemark.plan import remember, undue
from tidemark.storage.sidecars import commit_runs, parts_table
from tidemark.storage.stores.local import LocalStore

pytestmark = pytest.mark.simulation
DAYS = 5
ENVELOPES = [*Envelope]
ADDITIVE = (Envelope.APPEND, Envelope.UPDATES)


def test_it_imports_nothing_of_ours():
    tree = ast.parse(Path(second_reader.__file__).read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    standard = {"__future__", "base64", "collections", "functools", "io", "itertools", "json", "pathlib", "re"}
    standard |= {"datetime", "struct", "typing", "zlib"}
    assert imported == standard | {"pyarrow"}


TEXT, NUMBER, MONEY, DATE = ColumnType.STRING, ColumnType.INT, DecimalType(12, 2), ColumnType.DATE
DECLARED = {
    2: ((Column("v", TEXT), Column("w", NUMBER), Column("s", DATE)), (), ("w", "s")),
    3: ((Column("u", TEXT), Column("w", MONEY), Column("s", ColumnType.TIMESTAMP)), (("v", "u"),), ("s",)),
    4: ((Column("u", TEXT), Column("x", ColumnType.JSON), Column("y", ColumnType.BYTES)), (), ()),
}
"""Columns are added, timelines; another renamed and they made wider, then dropped as more come, on these days."""
CELLS: dict[ValueType, list[Any]] = {
    TEXT: ["a", "b", "é", None],
    NUMBER: [None, 1, 2],
    MONEY: [None, 1, 1.5, "0.01"],
    DATE: [None, "1969-12-31", "1970-01-01", "9999-12-31"],
    ColumnType.TIMESTAMP: [None, "1969-12-31T00:00:00Z", "2013-01-02T03:04:05Z"],
    ColumnType.JSON: [None, {"b": 1, "a": [1.0]}, [], "text"],
    ColumnType.BYTES: [None, "", "/w=="],
}


class Small:
    """A random small collection, step by step, compared after each."""

    def __init__(self, folder: Path, envelope: Envelope, seed: int, layout: Layout | None = None) -> None:
        self.dice = random.Random(seed)
        late = Late() if envelope is Envelope.SNAPSHOT else self.dice.choice([Late("reemit"), Late("reemit", 15)])
        self.corrects = (2 * DAY if envelope is Envelope.SNAPSHOT else DAYS * DAY) if seed else 0
        self.placed_by = (Column(layout.by, NUMBER),) if layout else ()
        timelines = tuple(column.name for column in self.placed_by)
        declared = collection(envelope, late=late, reprocess_for=self.corrects)
        declared = replace(declared, value=(*declared.value, *self.placed_by), timelines=timelines, layout=layout)
        self.world = World(folder / "landing", declared, LocalStore(str(folder / "tides")))
        self.folder, self.envelope = folder / "tides", envelope
        self.rungs = (Rung(0, 5),) if seed % 2 else ()
        self.ahead = random.Random(seed)
        self.compared = self.timed = self.ticks = self.corrected = self.merged = self.settled = self.stored = 0

    def row(self, day: int) -> dict[str, Any]:
        happened = self.dice.choice([day, day, self.dice.randint(0, day)]) * DAY + self.dice.randint(0, DAY - 1)
        return {
            "k": self.dice.randint(0, 4),
            **{column.name: self.cell(column) for column in self.world.state.collection.value},
            "t": max(happened, day * DAY) + DAY * (self.ahead.choice([0, 0, 1, 3]) if self.envelope in ADDITIVE else 0),
            "e": happened,
            "o": self.dice.choice([None, 0, 1]),
            "gone": self.dice.random() < 0.2,
            "d": self.dice.randint(-2, 2),
        }

    def rows(self, day: int) -> list[dict[str, Any]]:
        rows = [self.row(day) for _ in range(self.dice.randint(0, 6))]
        times = ("t", "e", "o", "gone", "d") if self.envelope is Envelope.SNAPSHOT else ()
        return [{name: cell for name, cell in row.items() if name not in times} for row in rows]

    def cell(self, column: Column) -> Any:
        return self.dice.choice(CELLS[column.type])

    def redefine(
        self, value: tuple[Column, ...], renames: tuple[tuple[str, str], ...], timelines: tuple[str, ...]
    ) -> None:
        value, timelines = (*value, *self.placed_by), (*timelines, *(column.name for column in self.placed_by))
        asked = replace(self.world.collection, value=value, renames=renames, timelines=timelines)
        self.step(lambda job: declare_collection(job, asked))

    def live(self) -> None:
        """Days in order; drains, compactions and moves of since at times, and a quarantine."""
        world = self.world
        for day in range(DAYS):
            # Change messages are made of one key and one value column (support/world.py).
            if day in DECLARED and self.envelope is not Envelope.DEBEZIUM:
                self.redefine(*DECLARED[day])
            for name in "ab"[: self.dice.randint(1, 2)]:
                world.land(day, name, self.rows(day))
            self.step(lambda job, day=day: ingest(job, interval(day), landing_root=str(world.landing)))
            unsealed = [batch.id for batch in world.state.pending if batch.first_time >= world.state.seal]
            if self.dice.random() < 0.3 and unsealed:
                batch = unsealed[-1]
                self.step(lambda job, batch=batch: quarantine(job, batch))
                self.step(lambda job, batch=batch: release(job, batch))
            self.step(lambda job, day=day: seal(job, interval(day)))
            if self.dice.random() < 0.7:
                self.step(lambda job, day=day: drain(job, interval(day)))
                self.step(lambda job, day=day: compact(job, interval(day)))
            if self.envelope is not Envelope.SNAPSHOT and day in (1, 3):
                self.learn(day)
            if self.corrects and day:
                self.correct(self.dice.randrange(max(0, day - self.corrects // DAY + 1), day))
            # Where full snapshots may be corrected, what they said stays separate.
            latest = day - 2 if self.corrects and self.envelope is Envelope.SNAPSHOT else day
            if self.dice.random() < 0.4 and latest >= world.state.since // DAY:
                since = self.dice.randint(world.state.since // DAY, latest) * DAY
                allowed = CompactionAllowed(since, self.rungs if since else ())
                self.step(lambda job, allowed=allowed: job.log.commit(job.log.load(), allowed))
        self.step(lambda job: drain(job, interval(DAYS)))

    def correct(self, day: int) -> None:
        """A file of a day that is over says something else; or a full snapshot of then is withdrawn."""
        world, withdrawn = self.world, self.envelope is Envelope.SNAPSHOT and self.dice.random() < 0.3
        file = world.landing / str(day * DAY) / "a.jsonl"
        before = file.read_text() if file.exists() else ""
        world.land(day, "a", [*self.rows(day), self.row(day)])
        for path in (world.landing / str(day * DAY)).glob("*") if withdrawn else ():
            path.unlink()
        asked = {"landing_root": str(world.landing), "removed": withdrawn, "yes": withdrawn}
        try:
            self.step(lambda job: ingest(job, interval(day), **asked))
        except InvalidUsage:  # since moves as it likes here, beyond what a correction may tell of
            assert world.collection.kind.facts
            file.write_text(before)
            return
        learned = (*world.state.pending, *world.state.pending_snapshots)
        self.corrected += sum(some.learned_at is not None for some in learned)
        self.step(lambda job: seal(job, interval(day)))

    def learn(self, day: int) -> None:
        """Late rows of a day that is complete, and a tick, after which they are read."""
        world, before = self.world, self.world.state
        rows = self.rows(day) or [self.row(day)]
        times = {"e": self.dice.randint(day * DAY - 5, day * DAY - 1), "t": day * DAY}
        world.land(day, f"late{day}", [{**row, **times} for row in rows])
        self.step(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
        self.step(lambda job: seal(job, interval(day)))
        self.ticks += world.state.seal - before.seal

    def step(self, step: Any) -> None:
        self.world.clock.now += 1
        self.world.run(step)
        self.compare()

    def compare(self) -> None:
        state = self.world.state
        self.merged += len(state.remembered)
        self.timed += any(part.timelines for part in parts_table.parts_of(self.world.truth, state.batches))
        self.settled += sum(batch.level for batch in state.ahead)
        theirs = SecondReader(self.folder)
        frontiers = [theirs.state[name] for name in ("complete_below", "seal", "since")]
        assert frontiers == [state.complete_below, state.seal, state.since]
        assert theirs.upper == state.trace_upper
        assert theirs.state["forgotten_below"] == state.forgotten_below
        assert [batch["id"] for batch in theirs.state["unsealed"]] == [batch.id for batch in state.unsealed]
        assert [batch["id"] for batch in theirs.state.get("remembered", [])] == [b.id for b in state.remembered]
        lines = [(line.at, line.seal) for line in commit_runs.all_lines(self.world.truth, state.commits)]
        assert theirs.commits() == lines
        self.stored += len(state.commits.runs)
        if lines and state.function.keeps(lines[0][1] - 1):
            assert theirs.committed(lines[0][0]) == theirs.as_of(lines[0][1] - 1)
        for time in {state.since - 1, state.since, state.trace_upper + 3, state.seal - 1}:
            for event_time in (None, self.dice.randint(0, state.seal + 3)):
                self.compared += self.same_answer(theirs, max(0, time), event_time)

    def same_answer(self, theirs: SecondReader, time: int, event_time: int | None) -> bool:
        try:
            table = as_of(self.world.truth, self.world.state, time=time, event_time=event_time)
        except InvalidUsage:
            with pytest.raises(Unreadable):
                theirs.as_of(time, *([] if event_time is None else [event_time]))
            return False
        ours = Counter(
            {
                tuple((name, row[name]) for name in table.column_names[:-1]): row["_multiplicity"]
                for row in table.to_pylist()
            }
        )
        found = theirs.as_of(time, *([] if event_time is None else [event_time]))
        assert found == ours, f"as of {time}, {event_time}"
        return bool(ours)


@pytest.mark.parametrize("seed", range(budget(ci=1, deep=3)))
@pytest.mark.parametrize(
    ("envelope", "layout"),
    [
        *((envelope, None) for envelope in ENVELOPES),
        *((envelope, Layout("at", 2)) for envelope in (*ADDITIVE, Envelope.SNAPSHOT)),
    ],
    ids=lambda each: str(each) if isinstance(each, Envelope) else "by time" if each else "by key",
)
def test_a_second_reader_answers_alike(
    tmp_path: Path, envelope: Envelope, layout: Layout | None, seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remember, "FAN_IN", 2)
    monkeypatch.setattr(remember, "LEAST_GROWTH", 1)
    monkeypatch.setattr(undue, "STAGE_ROWS", 2)
    monkeypatch.setattr(commit_times, "RECENT", 2)
    monkeypatch.setattr(commit_times, "FAN_IN", 2)
    small = Small(tmp_path, envelope, seed, layout)
    small.live()
    assert small.compared > 20
    assert small.stored
    assert (small.timed > 0) == (envelope is not Envelope.DEBEZIUM)
    assert (small.merged > 0) == (envelope in (Envelope.UPSERT, Envelope.DEBEZIUM))
    assert small.ticks == (0 if envelope is Envelope.SNAPSHOT else 2)
    assert (small.corrected > 0) == (small.corrects > 0)
    assert (small.settled > 0) == (envelope in ADDITIVE)
