"""A random machine of landed and derived collections: whatever happens to them, at every frontier that was recorded a
derived collection holds what its definition says of its inputs as it had consumed them.

    tides, moons   landed: on-time and late rows, files corrected, several days at once; an interval of moons may be
                   two days long, and moons may end
    big, counts    derived of tides: by row, by key
    joined         of tides and moons: a join that both change
    met            of big and counts, which share a root
    sums           of tides: by key, sums that are subtracted
    offered        of tides: by row, each row there for a while, most of them in days to come
    ranked         of tides: whole, each row compared with all others

Of each is drawn whether its first build has a history.

Runs are killed at any call, frontiers are left unsealed, batches quarantined, definitions changed, holds lost. Some
rows of tides and moons are days ahead. The
oracle is `Sea.law`: the plain definition over the inputs' rows as of the frontiers consumed; and what was recorded of a
frontier once is looked at again at the end, so that nothing later changes it.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from simulation.plain_definitions import BIG, BIGGER, COUNTS, JOINED, MET, OFFERED, RANKED, SUMS, TALLIES, derived
from simulation.script import row
from simulation.sea import Sea
from support.budget import budget
from support.faulty import Fault, FaultyStore, WrappedStore
from support.world import DAY
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.change import CompactionAllowed, HoldDropped
from tidemark.model.collection import Collection
from tidemark.model.derived import Validity

SEEDS, STEPS = budget(ci=(1, 60), deep=(30, 150))
DERIVED = {"big": BIG, "counts": COUNTS, "sums": SUMS, "joined": JOINED, "met": MET, "offered": OFFERED}
DERIVED |= {"ranked": RANKED}
WHILE = {"offered": Validity(valid_from="since", valid_for=2 * DAY)}
OTHERS = {"big": [BIG, BIGGER], "sums": [SUMS, TALLIES]}
"""What they may be defined as; of a column that went and came back nothing is left."""
HISTORIES = [0, 0, 0, DAY, 25]
ENDS = [None, None, 6 * DAY]


class Together(WrappedStore):
    """Calls of several stores, counted as one's."""

    def __init__(self, inner: Any, counted: FaultyStore) -> None:
        super().__init__(inner)
        self.counted = counted

    def _call(self, name: str, key: str, action: Any, *, writes: bool) -> Any:
        return self.counted._call(name, key, action, writes=writes)


class Machine:
    derived: ClassVar[Mapping[str, Collection]] = {
        name: derived(name, select, **({"validity": WHILE[name]} if name in WHILE else {}))
        for name, select in DERIVED.items()
    }
    others: ClassVar[Mapping[str, Sequence[Collection]]] = {
        name: [derived(name, select) for select in some] for name, some in OTHERS.items()
    }

    def __init__(self, folder: Path, seed: int) -> None:
        self.sea, self.chance = Sea(folder), random.Random(seed)
        self.before = random.Random(seed + 1)
        self.days = {"tides": 0, "moons": 0}
        self.long = {"tides": 1, "moons": self.chance.choice([1, 2])}
        self.end = self.chance.choice(ENDS)
        self.files: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self.recorded: dict[tuple[str, int], Counter[tuple[Any, ...]]] = {}
        self.happened: Counter[str] = Counter()
        self.sea.landed("tides", reprocess_for=1_000 * DAY)
        self.sea.landed("moons", reprocess_for=1_000 * DAY, end=self.end)
        self.histories = {name: self.chance.choice(HISTORIES) for name in self.derived}
        for declared in self.derived.values():
            self.sea.add(self.built(declared))

    def built(self, declared: Collection) -> Collection:
        """A collection with the history of its first build that was drawn for it."""
        return replace(declared, origin=replace(declared.derived, history=self.histories[declared.name]))

    def step(self) -> None:
        what = self.chance.choices(
            (self.day, self.late, self.again, self.corrects, self.killed, self.taken_out, self.redefined, self.lost),
            (5, 2, 1, 12, 3, 1, 1, 1),
        )[0]
        what()
        self.happened[what.__name__] += 1

    def rows(self, day: int, many: int) -> list[dict[str, Any]]:
        chance = self.chance
        ahead = [0, 0, 0, DAY, 3 * DAY, 20 * DAY]
        return [
            row(
                chance.randrange(6),
                chance.choice(["a", "b", "c", None]),
                day * DAY + chance.randrange(DAY) + chance.choice(ahead),
            )
            for _ in range(many)
        ]

    def day(self) -> None:
        name = self.chance.choice(sorted(self.days))
        day = self.days[name]
        if name == "moons" and self.end is not None and day * DAY >= self.end:
            self.happened["ended"] += 1
            return
        self.days[name] += self.long[name]
        rows = self.rows(day, self.chance.choice([0, 2, 4]))
        self.files[name, day] = rows
        self.sea.ingest(name, day, ("a", rows), days=self.long[name])

    def late(self) -> None:
        name = self.chance.choice(sorted(self.days))
        if days := self.days[name]:
            day = self.chance.randrange(0, days, self.long[name])
            late = [one | {"t": day * DAY, "e": day * DAY} for one in self.rows(day, 2)]
            self.sea.ingest(name, day, (f"late{self.sea.new_id()}", late), days=self.long[name])

    def again(self) -> None:
        """A file that was counted says something else."""
        if self.files:
            name, day = self.chance.choice(sorted(self.files))
            self.files[name, day] = rows = self.rows(day, 3)
            self.sea.ingest(name, day, ("a", rows), days=self.long[name])

    def corrects(self) -> None:
        name = self.chance.choice(sorted(self.derived))
        self.ran(name, until=self.chance.choice(["correct", "seal", "drain", "compact", "compact"]))

    def ran(self, name: str, **asked: Any) -> None:
        report = self.sea.correct(name, check=self.chance.random() < 0.1, **asked)
        self.happened[report["outcome"]] += 1
        self.happened.update(report.get("modes", {}))
        self.happened["repaired"] += report.get("repaired", 0)
        self.record(name)

    def killed(self) -> None:
        name, nth = self.chance.choice(sorted(self.derived)), self.chance.randrange(1, 120)
        counted = FaultyStore(self.sea.worlds[name].truth, Fault(nth, self.chance.random() < 0.3))
        for world in self.sea.worlds.values():
            world.store = Together(world.truth, counted)
        try:
            self.sea.run(name, correct)
        finally:
            for world in self.sea.worlds.values():
                world.store = world.truth
        self.happened["fired"] += counted.fired is not None
        self.record(name)

    def taken_out(self) -> None:
        name = self.chance.choice(sorted(self.derived))
        world = self.sea.worlds[name]
        state = world.state
        if not state.unsealed or state.consumptions[-1].upper <= state.trace_upper:
            return
        batch = state.unsealed[-1].id
        try:
            self.sea.run(name, lambda job: quarantine(job, batch))
        except InvalidUsage:
            return
        kept = {one.upper for one in world.state.consumptions}
        self.recorded = {at: was for at, was in self.recorded.items() if at[0] != name or at[1] in kept}
        self.happened["really taken out"] += 1

    def redefined(self) -> None:
        """Twice before any run looks: there and back, too."""
        asked = [(name, dice.choice(some)) for name, some in self.others.items() for dice in (self.before, self.chance)]
        for name, declared in asked:
            other = self.built(declared)
            report = self.sea.run(name, lambda job, other=other: declare_collection(job, other))
            if report["columns"]:
                # What was recorded has a column less from now on, or one of which nothing is left.
                self.recorded = {at: was for at, was in self.recorded.items() if at[0] != name}
                self.happened["columns changed"] += 1

    def lost(self) -> None:
        """An input's history is merged whatever holds it."""
        name = self.chance.choice(sorted(self.days))
        log = self.sea.log(name)
        state = log.load().state
        if state.complete_below > state.since + 1:
            for hold in state.holds:
                log.commit(log.load(), HoldDropped(hold.name))
            log.commit(log.load(), CompactionAllowed(state.complete_below - 1, (), 0))
            self.happened["really lost"] += 1

    def record(self, name: str) -> None:
        """The law now; and what was recorded stays so."""
        self.sea.law(name)
        world = self.sea.worlds[name]
        self.happened["ahead"] += len(world.state.ahead)
        for consumption in world.state.consumptions:
            if world.state.function.keeps(consumption.upper - 1):
                now = self.sea.rows_as_of(name, consumption.upper - 1)
                was = self.recorded.setdefault((name, consumption.upper), now)
                assert was == now, (name, consumption.upper)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_the_law_holds_at_every_frontier(tmp_path: Path, seed: int) -> None:
    machine = Machine(tmp_path, seed)
    for _ in range(STEPS):
        machine.step()
    for name in machine.derived:
        machine.ran(name)
    assert machine.happened["repaired"] == 0
    assert machine.happened["applied"] > 5
    assert seed or machine.happened["ahead"] > 0
    if os.environ.get("SHOW"):
        print(machine.happened)
