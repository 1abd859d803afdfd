"""What was answered at a time of the wall clock can be asked for ever after: lives of collections with random clocks.

Each answer is written down when it is given, and asked again at the end. Where history was merged meanwhile it is
refused, with a moment that can be asked.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tidemark
from simulation.plain_definitions import SUMS, derived
from simulation.script import row
from simulation.sea import Sea
from support.world import DAY
from tests.support.budget import budget
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.model import commit_times
from tidemark.model.change import Created, Dropped
from tidemark.model.collection import Envelope, Retention
from tidemark.model.instant import format_instant
from tidemark.storage.log import log as state_log
from tidemark.storage.sidecars import commit_runs
from tidemark.storage.verify.collection import verify_objects

pytestmark = pytest.mark.simulation
Rows = Counter[tuple[Any, ...]]


def rows(opened: tidemark.OpenCollection, **times: Any) -> Rows:
    answer = opened.as_of(**times).to_arrow().to_pylist()
    return Counter({tuple(each.values())[:-1]: each["_multiplicity"] for each in answer})


@dataclass
class Life:
    """A landed collection and one that is derived from it, and what each said when.

    The wall clock goes back where it `steps`; then the times of what was said are made ascending.
    """

    sea: Sea
    dice: random.Random
    steps: bool
    said: dict[str, list[tuple[int, int, Rows]]] = field(default_factory=lambda: {"tides": [], "sums": []})
    day: int = 0

    def __post_init__(self) -> None:
        retention = self.dice.choice([Retention(), Retention("tiered", 2), Retention("time_boundary", interval=DAY)])
        self.sea.landed("tides", envelope=Envelope.UPDATES, retention=retention)
        self.sea.add(derived("sums", SUMS, retention=retention))

    def opened(self, name: str) -> tidemark.OpenCollection:
        return tidemark.open(str(self.sea.root), name)

    def go_on(self) -> None:
        """One run of either collection, which may end after any of its steps; and what both know then."""
        self.sea.clock.now += self.dice.randint(1, 300)
        for world in self.sea.worlds.values():
            world.stepped = self.dice.randint(-400, 400) if self.steps else 0
        until = self.dice.choice(["ingest", "seal", "drain", "compact", "compact"])
        if self.dice.random() < 0.4 and self.day:
            self.sea.correct("sums", until="seal" if until == "ingest" else until)
        else:
            early = [self.dice.randint(0, self.day * DAY + DAY - 1) for _ in range(2)]
            times = [self.dice.randint(self.day * DAY, self.day * DAY + DAY - 1), *early[: self.dice.randint(0, 2)]]
            changes = [row(self.dice.randint(1, 4), self.dice.choice("abc"), time) for time in times]
            self.sea.ingest("tides", self.day, ("a", changes), until=until)
            self.day += 1
        for name in self.said:
            self.note(name)

    def note(self, name: str) -> None:
        world, said = self.sea.worlds[name], self.said[name]
        seal, now = world.state.seal, int(world.wall() * 1_000_000)
        if seal and (not self.steps or not said or said[-1][1] < seal):
            said.append((max([now, *(said[-1][:1] if said else ())]), seal, rows(self.opened(name))))

    def check(self, name: str) -> int:
        """Ask for every answer again, between them too; how many were given."""
        state, said, opened, answers = self.sea.worlds[name].state, self.said[name], self.opened(name), 0
        times = [at for at, _, _ in said]
        for at in [*times, *(at + 1 for at in times), times[-1] + 10**12]:
            _, seal, then = said[bisect_right(times, at) - 1]
            if state.function.keeps(seal - 1):
                assert rows(opened, committed=at) == then, f"{name} at {at}"
                answers += 1
                continue
            with pytest.raises(InvalidUsage, match="cannot be read") as refused:
                opened.as_of(committed=at)
            for moment in re.findall(r"can be asked is (\S+?)(?:;|$)", str(refused.value)):
                opened.as_of(committed=moment)
        with pytest.raises(InvalidUsage, match="cannot be read"):
            opened.as_of(committed=times[0] - 1)
        return answers


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short life has runs of several levels."""
    monkeypatch.setattr(commit_times, "RECENT", 2)
    monkeypatch.setattr(commit_times, "FAN_IN", 3)


@pytest.mark.parametrize("steps", [False, True], ids=["a clock", "a clock that steps back"])
@pytest.mark.parametrize("seed", range(budget(ci=2, deep=60)))
def test_every_answer_is_given_again(tmp_path: Path, seed: int, steps: bool) -> None:
    life = Life(Sea(tmp_path, root=tmp_path / "root"), random.Random(seed), steps)
    for _ in range(10):
        life.go_on()
    for name, world in life.sea.worlds.items():
        if life.said[name]:
            assert life.check(name)
            assert list(verify_objects(world.truth, world.state)) == []
            world.stepped, life.sea.clock.now = 0, life.sea.clock.now + 30 * 86_400
            world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
            assert life.check(name), "versions are gone, and commit times stay"
            objects = {run.object.key for run in world.state.commits.runs}
            assert {*world.truth.keys(commit_runs.PREFIX)} == objects, "what was merged is gone, too"


def test_commits_of_a_release_before_are_those_of_kept_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(Sea(tmp_path, root=tmp_path / "root"), random.Random(7), steps=False)
    monkeypatch.setattr(state_log, "committed_at", lambda change, at: change)
    for day in range(6):
        life.go_on()
        if day == 3:
            monkeypatch.undo()
            monkeypatch.setattr(commit_times, "RECENT", 99)
    assert life.check("tides") > 5
    world = life.sea.worlds["tides"]
    first = world.state.commits.first
    assert first is not None
    assert first.at > life.said["tides"][0][0]
    life.sea.clock.now += 30 * 86_400
    world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
    oldest = next(iter(reversed(life.opened("tides").history())))
    with pytest.raises(
        InvalidUsage, match=f"no commit by then .* earliest moment .* {format_instant(oldest.written_at)}"
    ):
        life.opened("tides").as_of(committed=life.said["tides"][0][0])


def test_another_collection_of_the_name_knew_other_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(Sea(tmp_path, root=tmp_path / "root"), random.Random(1), steps=False)
    monkeypatch.setattr(state_log, "committed_at", lambda change, at: change)
    life.sea.ingest("tides", 0, ("a", [row(1, "a", 1)]))
    life.note("tides")
    world = life.sea.worlds["tides"]
    for change in (Dropped("tides"), Created(world.collection, "another")):
        life.sea.clock.now += 10
        log = world.log()
        log.commit(log.load(), change)
    life.sea.ingest("tides", 0, ("b", [row(2, "b", 1)]))
    life.sea.clock.now += 10
    with pytest.raises(InvalidUsage, match="no commit by then is recorded; the earliest moment"):
        life.opened("tides").as_of(committed=life.said["tides"][0][0])
    assert rows(life.opened("tides"), committed=int(world.wall() * 1e6)) == {(1, "a"): 1, (2, "b"): 1}
