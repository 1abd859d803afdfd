"""Days whose gates fail, mended in any order: what can be read in the end is what it is where no day was ever bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import COUNTS, derived
from simulation.sea import Sea
from support.budget import budget
from support.world import DAY, World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import Uncertified
from tidemark.jobs.job import Job
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal, seal_so_far
from tidemark.model.change import Certified, Sealed
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval
from tidemark.plan.blocked import blocking_own, plan_seal_so_far
from tidemark.plan.gate import plan_gate

pytestmark = pytest.mark.simulation

DAYS = 4
ORDERS = [order for count in (1, 2) for order in permutations(range(DAYS), count)] + [(3, 2, 1, 0), (1, 3, 0, 2)]


@dataclass
class Runs:
    """Runs of days as their DAG makes them; a gate fails batches whose files had the value "bad"."""

    world: World
    neighbouring: bool
    """Whether each day's file has rows of the day before."""
    landed: dict[int, str] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)

    def land(self, day: int, value: str = "good") -> None:
        self.landed[day] = value
        times = [day * DAY, day * DAY + 7] + ([day * DAY - 3] if self.neighbouring and day else [])
        self.world.land(day, "a", [{"k": day, "v": value, "t": time, "e": time} for time in times])

    def take(self, day: int) -> None:
        batch = self.world.run(lambda job: ingest(job, interval(day), landing_root=str(self.world.landing))).get(
            "batch"
        )
        if self.landed[day] == "bad" and batch:
            self.bad.add(batch)

    def run(self, day: int) -> str:
        self.take(day)
        if not self.gate([interval(day)]):
            return "red"
        try:
            self.sealed(self.world.job(), day)
        except Uncertified:
            head = self.world.run(lambda job: seal_so_far(job, interval(day)))
            if blocking_own(head.state, interval(day).upper):
                return "waits"
        for step in (lambda job: certify(job, Gate.FRONTIER), lambda job: drain(job, interval(day))):
            self.world.run(step)
        self.world.run(lambda job: certify(job, Gate.TRACE))
        return "complete"

    def sealed(self, job: Job, day: int) -> Any:
        try:
            return seal(job, interval(day))
        except Uncertified as missing:
            self.gate(missing.intervals)
            return seal(job, interval(day))

    def gate(self, intervals: Sequence[Interval]) -> bool:
        """Whether all is certified."""
        job = self.world.job()
        head = job.log.load()
        request = plan_gate(head.state, Gate.UNSEALED, intervals)
        if request is None:
            return True
        good = tuple(batch.id for batch in request.unsealed if batch.id not in self.bad)
        if good:
            job.log.commit(head, Certified(Gate.UNSEALED, request.suite, good))
        return len(good) == len(request.unsealed)

    def mend(self, day: int) -> None:
        for batch in [batch.id for batch in self.world.state.pending if batch.interval == interval(day)]:
            self.world.run(lambda job, batch=batch: quarantine(job, batch))
        self.land(day)

    def answers(self) -> list[Any]:
        state = self.world.state
        times = [*range(DAY - 1, state.seal, DAY), None]
        rows = [as_of(self.world.truth, state, time=time).to_pylist() for time in times]
        return [state.complete_below, [sorted(map(str, each)) for each in rows]]


@pytest.mark.parametrize("neighbouring", [False, True])
@pytest.mark.parametrize("mended", ORDERS[:: budget(ci=4, deep=1)], ids=str)
def test_mended_in_any_order_it_is_what_a_clean_build_is(
    tmp_path: Path, mended: tuple[int, ...], neighbouring: bool
) -> None:
    clean = Runs(World(tmp_path / "clean", collection()), neighbouring)
    for day in range(DAYS):
        clean.land(day)
        assert clean.run(day) == "complete"
    runs = Runs(World(tmp_path / "bad", collection()), neighbouring)
    for day in range(DAYS):
        runs.land(day, "bad" if day in mended else "good")
        came = runs.run(day)
        assert came == ("red" if day in mended else "waits" if min(mended) < day else "complete")
    for number, day in enumerate(mended):
        runs.mend(day)
        left = mended[number + 1 :]
        # What a bad day says of the day before is learned in its own turn, so it stops no earlier day.
        in_the_way = [other for other in left if other < day]
        assert runs.run(day) == ("waits" if in_the_way else "complete")
        assert runs.world.state.complete_below <= min([*left, DAYS]) * DAY
    assert runs.answers() == clean.answers()
    assert runs.world.state.trace_upper == runs.world.state.seal
    assert verify(runs.world.job(), data=True).findings == ()


@pytest.fixture
def waiting(tmp_path: Path) -> Runs:
    """Day 0 is bad, and taken out and mended but for its run; day 1 is good and has not sealed yet."""
    runs = Runs(World(tmp_path, collection()), neighbouring=False)
    runs.land(0, "bad")
    assert runs.run(0) == "red"
    runs.land(1)
    runs.take(1)
    assert runs.gate([interval(1)])
    return runs


def between(job: Job, happens: Callable[[], Any]) -> Job:
    """The job, whose next commit comes after something that others do between its plan and that."""
    commit, left = job.log.commit, [happens]

    def late(*arguments: Any) -> Any:
        if left:
            left.pop()()
        return commit(*arguments)

    job.log.commit = late  # type: ignore[method-assign]
    return job


def test_a_day_that_is_mended_while_a_later_one_seals_passes_both(waiting: Runs) -> None:
    """The later one's plan knows of no certificate, and its commit comes after the other run is over."""

    def mended() -> None:
        waiting.mend(0)
        assert waiting.run(0) == "complete"

    head = seal_so_far(between(waiting.world.job(), mended), interval(1))
    assert blocking_own(head.state, 2 * DAY) == ()
    assert waiting.world.state.complete_below == 2 * DAY


def test_a_request_that_comes_while_the_mended_day_seals_is_passed_though_who_asked_died(waiting: Runs) -> None:
    planned = plan_seal_so_far(waiting.world.state, 2 * DAY)
    assert planned == Sealed(0, 0, 2 * DAY)
    waiting.mend(0)
    waiting.take(0)
    assert waiting.gate([interval(0)])
    asked = waiting.world.job()
    seal(between(waiting.world.job(), lambda: asked.log.commit(asked.log.load(), planned)), interval(0))
    assert waiting.world.state.complete_below == 2 * DAY


def test_the_request_is_recorded_once(waiting: Runs) -> None:
    for _ in range(3):
        assert waiting.run(1) == "waits"
    sealed = [record.change for record in waiting.world.log().history() if isinstance(record.change, Sealed)]
    assert [change.requested_seal for change in sealed] == [2 * DAY]


def test_what_is_computed_from_it_waits_and_then_gets_all_days_at_once(tmp_path: Path) -> None:
    sea = Sea(tmp_path)
    runs = Runs(sea.landed("tides"), neighbouring=True)
    sea.add(derived("d", COUNTS))
    for day, value in enumerate(("good", "bad", "good", "good")):
        runs.land(day, value)
        runs.run(day)
    sea.correct("d")
    assert sea.worlds["d"].state.complete_below == DAY
    commits = sea.correct("d").get("commits", 0)
    assert commits == 0, "nothing new"
    runs.mend(1)
    assert runs.run(1) == "complete"
    sea.correct("d")
    assert sea.worlds["d"].state.complete_below == DAYS * DAY
    assert sea.law("d") == 2
