"""The state machine: real jobs in any order, interrupted anywhere, against the oracle.

Work is also started (planned and executed) and finished (committed) separately, so that others commit in between
(waiting.py). What was committed is reported to the oracle (telling.py), which then says what every read must answer
(answering.py). The rules about what is kept of the past are in keeping.py, about declarations that change in
redefining.py, all others here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
)

from simulation.depths import REACHED as REACHED
from simulation.depths import reached
from simulation.drawn_files import as_cells as as_cells
from simulation.drawn_files import files, reaching_ahead, rows, some_rows
from simulation.keeping import budgets, policies
from simulation.oracle import Oracle
from simulation.redefining import Redefining, lateness
from simulation.waiting import HoldingLog, Waiting, is_replay
from support.faulty import Fault, FaultyStore
from support.world import DAY, World, certify, collection, interval
from tidemark.errors import Fenced, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import AheadMerged, Trimmed
from tidemark.model.collection import Envelope, Gate
from tidemark.model.transition import Overtaken
from tidemark.plan.compact import due
from tidemark.storage.stores.memory import MemoryStore

MEANWHILE = ("quiet day", "same step", "newer attempt", "quarantine", "release")
"""What others do while a step's result waits."""
runs = st.integers(0, 1)
"""Which run drains or compacts: work that waits belongs to run 0, so 0 fences it off, and 1 makes it stale."""
STEPS = ("ingest", "drain", "compact", "replay", "trim", "settle")


class Machine(Redefining):
    work = Bundle("work")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.requested_seal = 0

    @initialize(
        envelope=st.sampled_from([Envelope.UPSERT, Envelope.DEBEZIUM, Envelope.APPEND, Envelope.UPDATES]),
        late=lateness,
        grace=st.sampled_from([0, 4]),
        event_time=st.sampled_from([True, True, True, False]),
        order_by=st.booleans(),
        ahead=st.sampled_from([True, True, False]),
        retention=policies,
        live_batches=budgets,
        past=st.lists(files, min_size=2, max_size=5),
    )
    def declare(self, envelope, late, grace, event_time, order_by, ahead, retention, live_batches, past):
        declared = collection(
            envelope,
            late=late,
            grace=grace,
            event_time=event_time,
            order_by=order_by,
            compact_ahead=ahead,
            retention=retention,
            live_batches=live_batches,
            # So that days without rows are certified, too.
            quality=('{"expect_table_row_count_to_be_between": {"max_value": 9}}',),
        )
        self.world = World(Path(self.folder.name), declared, MemoryStore())
        self.world.store = FaultyStore(self.world.truth)
        self.oracle = Oracle(keyed=declared.kind.facts, two_times=event_time)
        self.oracle.allow(late.policy, late.max_lateness)
        reached(f"{envelope}, grace {grace}, {late.policy} {late.max_lateness}")
        for landed in past:
            self.quiet_day(landed)

    def teardown(self) -> None:
        self.folder.cleanup()

    # What a data engineer or Airflow does.

    @rule(ahead=st.sampled_from([0, 0, 0, 1, 2, -1, -2, -4]), landed=files)
    def ingest(self, ahead, landed):
        day = self.day(ahead)
        self.land(day, landed)
        self.run_ingest(day)

    @precondition(lambda self: any(self.owner.values()))
    @rule(data=st.data())
    def rerun_finished_interval(self, data):
        days = sorted({int(name.split("/")[0]) // DAY for name, batch in self.owner.items() if batch})
        day = data.draw(st.sampled_from(days))
        new = [name for name in self.files_of(day) if not self.owner.get(name)]
        result = self.run_ingest(day)
        assert new or result["outcome"] == "nothing to do"

    @rule(updates=some_rows, happened=st.integers(0, 20), landed=files, merge=st.none() | st.integers(0, 12))
    def late_rows(self, updates, happened, landed, merge):
        """Days later comes what happened at the very start, among keys that were drained and merged since; perhaps
        since moves, and a merge is done, while it waits to be drained."""
        if merge is None:
            self.quiet_day(landed)
        else:
            self.land(self.day(0), landed)
            self.run_ingest(self.day(0))
            self.seal(-1)
            self.drain(0)
        self.land_late(updates, happened)
        self.run_ingest(self.day(-1))
        if merge is not None:
            self.allow_compaction(merge, None)
            self.compact(0)
        self.quiet_day([])

    @rule(updates=some_rows, happened=st.integers(0, 20))
    def late_rows_wait(self, updates, happened):
        """Late rows are judged, and before that is committed the seal moves on."""
        self.land_late(updates, happened)
        waiting = self.start_work("ingest", self.day(-1), [])
        if waiting is not None:
            self.quiet_day([])
            self.finish(waiting)
            self.run_ingest(waiting.day)

    @precondition(lambda self: self.waiting)
    @rule(as_now=st.booleans(), landed=files)
    def replay(self, as_now, landed):
        """Dead letters are applied after all; those of files counted now that may be, and none of them twice."""
        self.as_now = as_now
        self.run(lambda job: replay(job, as_now=as_now))
        assert not (as_now and self.waiting)
        assert self.run(lambda job: replay(job, as_now=as_now))["outcome"] == "nothing to do"
        self.quiet_day(landed)

    @rule(
        updates=some_rows, happened=st.integers(0, 20), ahead=st.sampled_from([-1, -1, -2, 1]), times=st.integers(1, 3)
    )
    def learned_at_once(self, updates, happened, ahead, times):
        """Late rows come for a day that was read, or beyond a hole; they can be read without a day more."""
        for _ in range(times):
            day = self.day(ahead)
            self.land(day, [[{**row, "lag": day * DAY + row["dt"] - happened} for row in updates]])
            self.run_ingest(day)
            self.seal(-1)
            complete = self.oracle.complete
            ticked = [batch for batch in self.learned_batches() if self.ticks(batch, complete)]
            assert all(row.time < self.oracle.seal for batch in ticked for row in self.late_of(batch))
            self.drain(0)

    @rule(gate=st.sampled_from(list(Gate)))
    def gate(self, gate):
        self.run(lambda job: certify(job, gate))

    @rule(ahead=st.sampled_from([-1, -1, 0, 1, -3]))
    def seal(self, ahead):
        day = self.day(ahead)
        before = self.world.state
        self.run(lambda job: seal(job, interval(day)))
        self.requested_seal = max(self.requested_seal, (day + 1) * DAY)
        ingested = {at for member in self.world.state.ingested for at in range(member.lower, member.upper)}
        complete = next(at for at in range(10**6) if at not in ingested)
        oracle, reach = self.oracle, min(self.requested_seal, complete) - before.collection.landed.grace
        assert oracle.complete == max(before.complete_below, reach)
        least = max(before.seal, oracle.complete)
        learned = [batch for batch in self.learned_batches() if self.learned[batch] == least]
        ticks = any(self.ticks(batch, oracle.complete) for batch in learned)
        assert oracle.seal == least + ticks
        if ticks and oracle.seal > oracle.complete:
            reached("a tick")
            if before.seal > before.complete_below:
                reached("a tick upon a tick")
        if before.complete_below < oracle.complete < oracle.seal:
            reached("complete below the ticks")

    @rule(day=runs)
    def drain(self, day):
        self.run(lambda job: drain(job, interval(day)))
        state = self.world.state
        assert state.trace_upper == state.seal

    @rule(day=runs)
    def compact(self, day):
        self.run(lambda job: compact(job, interval(day)))
        self.compacted()

    @rule(landed=files)
    def quiet_day(self, landed):
        day = self.day(0)
        self.land(day, landed)
        self.run_ingest(day)
        self.seal(-1)
        self.drain(0)
        self.compact(0)

    @rule(newest=st.booleans(), mended=st.none() | rows, landed=files)
    def quarantine(self, newest, mended, landed):
        """A batch is taken out before the seal, life goes on, and it is led out of quarantine or not."""
        batches = self.unsealed_batches() or self.batches_of_one_more_day(landed)
        if batches and self.take_out(batches[-1 if newest else 0]) and newest:
            self.lead_out(mended)

    @rule(mended=st.none() | rows)
    def lead_out(self, mended):
        """Release a quarantined batch, or mend one of its files and ingest again."""
        quarantined = self.world.state.quarantined
        if not quarantined:
            return
        batch = quarantined[0]
        if mended is None:
            if any(self.files[name] != content for name, content in self.read[batch.id].items()):
                # Put back, it would claim a file that is mended already, whose next ingest is refused.
                return
            try:
                self.run(lambda job: release(job, batch.id))
                reached("released")
            except InvalidUsage:
                reached("release refused")
            return
        day = batch.interval.lower // DAY
        freed = [name for name in self.files_of(day) if not self.owner.get(name)]
        if freed:
            self.write(freed[0], day, mended)
            reached("mended file")
        self.run_ingest(day)

    # What goes wrong.

    @rule(nth=st.integers(1, 40), after=st.booleans(), dies=st.booleans())
    def crash_soon(self, nth, after, dies):
        self.world.store.arm(Fault(nth, after, dies))

    @rule(target=work, step=st.sampled_from(STEPS), ahead=st.sampled_from([0, 0, 1, -2]), landed=files)
    def start(self, step, ahead, landed):
        """Plan and execute a step, and keep its result."""
        waiting = self.start_work(step, self.day(ahead), landed)
        return multiple() if waiting is None else waiting

    @rule(
        step=st.sampled_from(STEPS),
        landed=files,
        meanwhile=st.sampled_from(MEANWHILE),
        run=runs,
        ahead=st.sampled_from([0, -1]),
    )
    def overtaken(self, step, meanwhile, landed, run, ahead=0):
        """While a step's result waits to be committed, others go on."""
        if meanwhile == "release":
            if not self.world.state.quarantined:
                # Left to luck, a quarantine is over before this rule comes, and the wait is never tried.
                for batch in self.batches_of_one_more_day(landed)[-1:]:
                    self.take_out(batch)
            quarantined = self.world.state.quarantined
            if not quarantined:
                return
            step, day = "ingest", quarantined[0].interval.lower // DAY
        else:
            day = self.day(ahead)
        waiting = self.start_work(step, day, landed)
        if waiting is None:
            return
        reached(f"{step} waits through a {meanwhile}")
        if meanwhile == "quiet day":
            self.quiet_day([])
        elif meanwhile == "release":
            self.lead_out(None)
        elif meanwhile == "quarantine":
            state = self.world.state
            pending = [b.id for b in state.unsealed if b.first_time >= state.trace_upper and not b.trimmed]
            if pending:
                self.take_out(pending[0])
        elif meanwhile == "newer attempt":
            newer = self.start_work(step, waiting.day, [], first=False)
            self.finish(waiting)
            if newer is not None:
                self.finish(newer)
            return
        else:
            again = {
                "ingest": lambda: self.run_ingest(waiting.day),
                "drain": lambda: self.drain(run),
                "replay": lambda: self.run(lambda job: replay(job, as_now=True)),
                "trim": lambda: self.trim(run),
            }
            self.as_now = True
            again.get(step, lambda: self.compact(run))()
        self.finish(waiting)

    @rule(waiting=consumes(work))
    def finish(self, waiting):
        kind = waiting.change.kind
        if is_replay(waiting.change):
            kind, self.as_now = "replayed", True
        try:
            outcome = self.world.log().commit(waiting.head, waiting.change)
            what = "stale" if isinstance(outcome, Overtaken) else type(outcome).__name__.lower()
            reached(f"{kind}: {what}")
        except Fenced:
            reached(f"{kind}: fenced")
        self.observe()

    # Behind the rules.

    def day(self, ahead: int) -> int:
        """A day, counted from the first one not ingested."""
        ingested = self.world.state.ingested
        first = next(day for day in range(10**6) if not ingested.covers(interval(day)))
        return max(0, first + ahead)

    def start_work(
        self, step: str, day: int, landed: list[list[dict[str, Any]]], *, first: bool = True
    ) -> Waiting | None:
        log = HoldingLog(self.world.store, self.world.new_id, monotonic=self.world.clock, pause=self.world.clock.pause)
        self.land(day, reaching_ahead(landed) if step in ("trim", "settle") else landed)
        if step != "ingest":
            self.run_ingest(day)
            self.seal(-1)
        if step == "trim":
            # What was remembered of the day before goes with the day after.
            self.run_ingest(self.day(0))
            self.seal(-1)
            log.holds = (Trimmed,)
        if step == "settle":
            self.drain(0)
            log.holds = (AheadMerged,)
        if step == "compact":
            self.drain(0)
            self.until_a_merge_is_due()
        called = {
            "ingest": lambda job: ingest(job, interval(day), landing_root=self.folder.name),
            "drain": lambda job: drain(job, interval(0)),
            "compact": lambda job: compact(job, interval(0)),
            "settle": lambda job: compact(job, interval(0)),
            "trim": lambda job: drain(job, interval(0)),  # which ends with a trim
            "replay": lambda job: replay(job, as_now=True),
        }[step]
        fault = self.world.store.fault
        self.world.store.arm(None)
        try:
            self.world.run(called, log=log, first=first)
            return None
        except Waiting as waiting:
            waiting.day = day
            return waiting
        finally:
            self.world.store.arm(fault)
            self.observe()

    @property
    def waiting(self) -> bool:
        """Whether there are dead letters of files that are counted now."""
        return any(letters for name, letters in self.letters.items() if self.owner[name])

    def until_a_merge_is_due(self) -> None:
        """Days go by that are not compacted."""
        for _ in range(3):
            if not due(self.world.state):
                self.run_ingest(self.day(0))
                self.seal(-1)
                self.drain(0)

    def unsealed_batches(self) -> list[str]:
        """Batches that may be quarantined: nothing of them is sealed."""
        state = self.world.state
        return [batch.id for batch in state.unsealed if batch.first_time >= state.seal and not batch.trimmed]

    def batches_of_one_more_day(self, landed: list[list[dict[str, Any]]]) -> list[str]:
        day = self.day(0)
        self.land(day, landed)
        self.run_ingest(day)
        return self.unsealed_batches()

    def take_out(self, batch: str) -> bool:
        """Quarantine a batch, unless it was drained in part or dead letters of its files were replayed."""
        names = [name for name, owner in self.owner.items() if owner == batch]
        state = self.world.state
        trimmed = any(each.trimmed for each in state.unsealed if each.id == batch)
        trimmed = trimmed or any(each.id == batch for each in state.ahead)
        out = {each.id for each in state.quarantined}
        revived = {name for replayed, taken in self.revived.items() if replayed not in out for name in taken}
        try:
            self.run(lambda job: quarantine(job, batch))
        except InvalidUsage:
            if not trimmed and not revived & set(names):
                raise
            return False
        return True

    def run(self, step: Any) -> Any:
        version = self.world.log().newest_version()
        result = self.world.run(step)
        if self.world.store.fired:
            reached("crash" if self.world.log().newest_version() > version else "crash without effect")
            self.world.store.arm(None)
        self.observe()
        return result

    def run_ingest(self, day: int) -> dict[str, Any]:
        result = self.run(lambda job: ingest(job, interval(day), landing_root=self.folder.name))
        missing = [name for name in self.files_of(day) if not self.owner.get(name)]
        assert not missing, f"{missing} not ingested"
        return result

    def land(self, day: int, landed: list[list[dict[str, Any]]]) -> None:
        for content in landed:
            # Names do not ascend with arrival: ties are broken by name, whatever came first.
            name = f"{day * DAY}/{7 * len(self.files) % 10}-{len(self.files)}.jsonl"
            self.write(name, day, content)

    def land_late(self, updates: list[dict[str, Any]], happened: int) -> None:
        """A file of the newest day that tells of long ago."""
        day = self.day(-1)
        self.land(day, [[{**row, "lag": day * DAY + row["dt"] - happened} for row in updates]])
