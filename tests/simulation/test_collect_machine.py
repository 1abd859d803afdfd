"""The state machine with hours between the steps and a collector among them, crashed like every other step.

Nothing else changes: every read must still be the oracle's, work that waited must commit or say why not, and what any
version that is retained names must be there.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import consumes, rule, run_state_machine_as_test

from simulation.machine import REACHED, Machine, Waiting, reached
from simulation.test_machine import PROFILES, declared
from support.faulty import WrappedStore
from tidemark.errors import Contention
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import SECOND, collect
from tidemark.storage.log.head import PLAN_LIMIT
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = pytest.mark.simulation
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
SEEDS = {"ci": (1, 2)}
HOUR = 3600.0
KEEP = 3600 * SECOND


ROW = {"k": 1, "v": "a", "dt": 1, "lag": 0, "o": 0, "gone": False, "d": 1}


class Postponing(WrappedStore):
    """A collector's store that takes its time: what it says was deleted is so later."""

    def __init__(self, inner):
        super().__init__(inner)
        self.postponed = []

    def delete(self, key):
        self.postponed.append(key)


class CollectingMachine(Machine):
    @rule(hours=st.sampled_from([0.2, 2, 7, 13, 25]))
    def time_passes(self, hours):
        self.world.clock.now += hours * HOUR
        self.world.forget()  # who acts next looks first; what waits in `work` has looked already

    @rule(hours=st.sampled_from([0, 2, 13, 25, 25, 49]))
    def collect(self, hours):
        self.time_passes(hours)
        report = self.run(lambda job: collect(job, keep=KEEP))
        for entry in report.removed:
            reached(f"removed: {entry.why}")
        self.nothing_is_missing()

    @rule(
        hours=st.sampled_from([2, 13, 25, 49]),
        landed=st.just([[ROW]]),
    )
    def collected_meanwhile(self, hours, landed):
        """While a step's result waits to be committed, a collector comes by twice."""
        waiting = self.start_work("ingest", self.day(0), landed)
        if waiting is not None:
            self.collect(hours)
            self.collect(hours)
            self.finish(waiting)

    @rule(hours=st.sampled_from([-1000, -25, -2, 2, 25, 49, 1000]))
    def the_clock_is_put(self, hours):
        """The wall clock, and with it the store's: no time passes."""
        self.world.stepped += hours * HOUR
        self.world.forget()

    @rule(hours=st.sampled_from([2, 25, 49]), late=st.booleans(), landed=st.just([[ROW]]))
    def the_clock_is_put_meanwhile(self, hours, late, landed):
        """While a step's result waits to be committed, and a collector knows no other clock than the one that was put;
        maybe it deletes only after the result was committed, if it is."""
        waiting = self.start_work("ingest", self.day(0), landed)
        if waiting is None:
            return
        self.collect(0)
        self.world.stepped += hours * HOUR
        store = Postponing(self.world.truth)
        log = self.world.log(store)
        log.monotonic, log.boot = self.world.wall, lambda: "another"
        try:
            collect(Job(store, log, self.world.job().runner, self.world.new_id(), self.world.new_id), keep=KEEP)
        except Contention:
            reached("a collector gave way")
        if late:
            self.finish(waiting)
        for key in store.postponed:
            self.world.truth.delete(key)
        self.world.forget()
        if not late:
            self.finish(waiting)
        self.nothing_is_missing()

    @rule(waiting=consumes(Machine.work))
    def finish(self, waiting: Waiting):
        waited = self.world.clock.now - waiting.head.seen_at
        try:
            super().finish(waiting)
        except Contention as error:
            reached("waited too long" if "planned more than" in str(error) else "its successor was collected")
            self.observe()
        else:
            assert waited <= PLAN_LIMIT or self.world.log().newest_version() > waiting.head.version

    def nothing_is_missing(self):
        log = self.world.log()
        assert list(verify_history(log)) == []
        oldest, newest = log.oldest_version(), log.newest_version()
        for version in {oldest, (oldest + newest) // 2, newest - 1, newest} - {oldest - 1}:
            found = list(verify_objects(self.world.truth, log.load(version).state))
            assert not found, f"version {version}: {found}"


def test_a_collector_that_trusts_a_clock_that_was_put_takes_what_a_step_still_needs():
    REACHED.pop("ingested: lost", None)
    machine = declared(CollectingMachine)
    for hours in (25, 49):
        machine.the_clock_is_put_meanwhile(hours=hours, late=False, landed=[[ROW]])
        machine.answers_are_the_oracle_s()
    machine.teardown()
    assert REACHED["ingested: lost"]


DEPTHS = (
    "removed: named by no version that is kept",
    "removed: version superseded longer ago than versions are kept",
    "waited too long",
    "crash",
    "merge of three and more",
)


@pytest.mark.parametrize("number", SEEDS.get(PROFILE, (None,)))
def test_any_order_of_work_with_a_collector_answers_as_the_oracle(number: int | None):
    REACHED.clear()
    machine = type("CollectingMachine", (CollectingMachine,), {})
    run_state_machine_as_test(machine if number is None else seed(number)(machine), settings=PROFILES[PROFILE])
    missed = [depth for depth in DEPTHS if not REACHED[depth]]
    assert PROFILE == "dev" or not missed, f"never reached: {missed}; reached were {dict(REACHED)}"
