"""The state machine over a collection of full snapshots: the same jobs, races and crashes, another kind of source.

A day's files are one full snapshot. What is refused here is refused for ever, so a day is not landed in again once it
was read, but for a full snapshot in quarantine, whose files are free.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from simulation.depths import reached
from simulation.keeping import budgets, policies
from simulation.machine import Machine, Waiting, files, rows
from simulation.oracle import Oracle
from support.faulty import FaultyStore
from support.world import DAY, World, collection, interval
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.model.change import Change, Drained, Ingested, Quarantined, Released
from tidemark.model.collection import Envelope
from tidemark.storage.stores.memory import MemoryStore


class FullSnapshotOracle(Oracle):
    """What each full snapshot said, by its time."""

    def __init__(self) -> None:
        super().__init__(keyed=False, two_times=False)
        self.allow("discard", None)
        self.snapshots: dict[int, Counter] = {}

    def as_of(self, time: int, event_time: int) -> Counter:
        known = [at for at in self.snapshots if at <= min(time, event_time)]
        return self.snapshots[max(known)] if known else Counter()

    def changes(self, after: int, upto: int) -> Counter:
        found: Counter = Counter()
        times = sorted({self.forward(at) for at in self.snapshots if after < at <= upto})
        for before, at in pairwise([after, *times]):
            then, now = self.as_of(before, before), self.as_of(at, at)
            for key, value in {*then, *now}:
                found[key, value, at, at] += now[key, value] - then[key, value]
        return Counter({at: n for at, n in found.items() if n})


class FullSnapshotMachine(Machine):
    late_rows = late_rows_wait = learned_at_once = redefine_lateness = None

    @initialize(
        grace=st.sampled_from([0, 4]),
        ahead=st.booleans(),
        retention=policies,
        live_batches=budgets,
        past=st.lists(files, min_size=2, max_size=5),
    )
    def declare(self, grace, ahead, retention, live_batches, past):
        declared = collection(
            Envelope.SNAPSHOT, grace=grace, compact_ahead=ahead, retention=retention, live_batches=live_batches
        )
        self.world = World(Path(self.folder.name), declared, MemoryStore())
        self.world.store = FaultyStore(self.world.truth)
        self.oracle = FullSnapshotOracle()
        self.said: dict[str, tuple[int, Counter]] = {}
        for landed in past:
            self.quiet_day(landed)

    def teardown(self) -> None:
        """What a run leaves behind verifies, every row of it."""
        super().teardown()
        if hasattr(self, "world"):
            self.world.store = self.world.truth
            assert verify(self.world.job(), data=True).findings == ()

    @rule(landed=files, days=st.permutations([0, 1, 2]))
    def days_out_of_order(self, landed, days):
        """Full snapshots are read in any order, and drained together."""
        first = self.day(0)
        for day in days:
            self.land(first + day, landed if day == 1 else [landed[0]] if landed else [[]])
            self.run_ingest(first + day)
        self.seal(-1)
        self.drain(0)

    @rule(newest=st.booleans(), sealed=st.booleans(), mended=st.none() | rows, landed=files)
    def quarantine(self, newest, sealed, mended, landed):
        state = self.world.state
        if not state.pending_snapshots:
            self.land(self.day(0), landed)
            self.run_ingest(self.day(0))
            state = self.world.state
        if sealed:
            self.seal(-1)
            state = self.world.state
        if state.pending_snapshots:
            snapshot = state.pending_snapshots[-1 if newest else 0]
            if snapshot.time < state.seal:
                reached("sealed full snapshot quarantined")
            if not snapshot.rows:
                reached("empty full snapshot quarantined")
            self.run(lambda job: quarantine(job, snapshot.batch))
            if newest:
                self.lead_out(mended)

    @rule(mended=st.none() | rows)
    def lead_out(self, mended):
        quarantined = [snapshot for snapshot in self.world.state.snapshots if snapshot.quarantined]
        if not quarantined:
            return
        snapshot = quarantined[0]
        day = snapshot.interval.lower // DAY
        if mended is None:
            if any(self.files[name] != content for name, content in self.read[snapshot.batch].items()):
                return
            try:
                self.run(lambda job: release(job, snapshot.batch))
                reached("full snapshot released")
            except InvalidUsage:
                event("release refused")
            return
        freed = [name for name in self.files_of(day) if not self.owner.get(name)]
        if freed and snapshot.time >= self.world.state.seal:
            self.write(freed[0], day, mended)
            reached("mended full snapshot")
        self.run_ingest(day)

    # Behind the rules.

    def land(self, day: int, landed: list[list[dict[str, Any]]]) -> None:
        if (day + 1) * DAY <= self.world.state.seal or any(self.owner.get(name) for name in self.files_of(day)):
            return
        super().land(day, landed)

    def comes_too_late(self, day: int) -> bool:
        missing = [name for name in self.files_of(day) if not self.owner.get(name)]
        return bool(missing) and (day + 1) * DAY <= self.world.state.seal

    def start_work(
        self, step: str, day: int, landed: list[list[dict[str, Any]]], *, first: bool = True
    ) -> Waiting | None:
        if self.comes_too_late(day):
            self.run_ingest(day)
            return None
        # A file more would still be there, and be refused for ever, if the full snapshot were put back meanwhile.
        out = any(
            snapshot.quarantined and snapshot.interval.lower == day * DAY for snapshot in self.world.state.snapshots
        )
        return super().start_work(step, day, [] if out else landed, first=first)

    def run_ingest(self, day: int) -> dict[str, Any]:
        """A full snapshot whose time is sealed by now is refused, and waits for nothing."""
        if self.comes_too_late(day):
            with pytest.raises(InvalidUsage, match="which the seal"):
                self.run(lambda job: ingest(job, interval(day), landing_root=self.folder.name))
            self.observe()
            reached("late full snapshot refused")
            return {"outcome": "nothing to do"}
        return super().run_ingest(day)

    def tell(self, change: Change, before: Any) -> None:
        if isinstance(change, Quarantined):
            self.oracle.snapshots.pop(self.said[change.batch][0])
        elif isinstance(change, Released):
            time, content = self.said[change.batch]
            assert time not in self.oracle.snapshots
            self.oracle.snapshots[time] = content
        elif isinstance(change, Drained):
            drained = [d for d in before.pending_snapshots if d.time < change.batch.description.upper]
            if len(drained) > 1:
                reached("several full snapshots drained at once")
            if any(not d.rows for d in drained):
                reached("empty full snapshot drained")
            if drained and not change.batch.rows:
                reached("unchanged full snapshot writes nothing")
        super().tell(change, before)

    def tell_ingested(self, change: Ingested, before: Any) -> None:
        names = self.named(change.sources)
        assert sorted(names) == sorted(name for name in names if not self.owner.get(name)), "counted twice"
        assert (change.rows_late_applied, change.rows_late_discarded) == (0, 0)
        assert (change.snapshot is None) == (not names)
        if change.snapshot is None:
            return
        came = [row for name in names for row in self.files[name]]
        batch, time = change.snapshot.batch, change.fence.interval.upper - 1
        assert change.snapshot.rows == len(came)
        assert time not in self.oracle.snapshots, "two full snapshots of one time"
        for name in names:
            self.owner[name] = batch
        self.accepted[batch] = []
        self.read[batch] = {name: self.files[name] for name in names}
        self.said[batch] = time, Counter((row.key, row.value) for row in came)
        self.oracle.snapshots[time] = self.said[batch][1]
