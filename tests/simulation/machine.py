"""The state machine: real jobs in any order, interrupted anywhere, against the oracle.

Work is also started (planned and executed) and finished (committed) apart, so that others commit in between. What was
committed is read from the log itself and told to the oracle, which then says what every read must answer.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise, takewhile
from math import prod
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from simulation.depths import REACHED as REACHED
from simulation.depths import reached
from simulation.keeping import Keeping, budgets, policies
from simulation.oracle import Oracle, Row
from support.faulty import Fault, FaultyStore
from support.relanded import relanded
from support.world import DAY, World, certify, collection, interval
from tidemark.arrow.read import as_of, changes
from tidemark.errors import Fenced, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import (
    REPLAY,
    Change,
    Compacted,
    CompactionAllowed,
    Drained,
    Ingested,
    Quarantined,
    Redefined,
    Released,
    Sealed,
    Trimmed,
)
from tidemark.model.collection import Column, ColumnType, Envelope, Gate, Late
from tidemark.model.evolution import evolved
from tidemark.model.ledger import late_identity, path_hash
from tidemark.model.transition import Overtaken, Stale
from tidemark.plan.compact import due
from tidemark.storage.log.log import Committed, Head, StateLog
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.memory import MemoryStore


def compare(found: Counter[Any], expected: Counter[Any], what: str) -> None:
    wrong = {at: (found[at], expected[at]) for at in {*found, *expected} if found[at] != expected[at]}
    assert not wrong, f"{what}: (found, expected) {wrong}"


class Held(Exception):
    """A change that is ready to be committed, and is not."""

    def __init__(self, head: Head, change: Change) -> None:
        self.head, self.change, self.day = head, change, 0


class HoldingLog(StateLog):
    """Stops where the result of an execution would be committed."""

    holds: tuple[type[Change], ...] = (Ingested, Drained, Compacted, Trimmed)

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        if isinstance(change, self.holds):
            raise Held(base, change)
        return super().commit(base, change)


def reaching_ahead(landed: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Files of a day that bring rows of a later one, too: once the day is drained, half of them can go."""
    told = landed or [[as_cells(0)]]
    return [[*rows, *({**row, "dt": row["dt"] + DAY + 2, "lag": 0} for row in rows)] for rows in told]


def is_replay(change: Change) -> bool:
    return isinstance(change, Ingested) and change.fence.step == REPLAY


CELLS = {
    "k": (0, 1, 2, 3),
    "v": ("a", "b", None),
    "dt": tuple(range(DAY)),
    "lag": (0, 0, 0, 1, 3, 3, 8, 15, 30, -2, -12),
    "o": (0, 1, None),
    "gone": (False, False, False, True),
    "d": (0, 1, 2, -1, -2),
}


def as_cells(number: int) -> dict[str, Any]:
    """A source row from one number: drawn cell by cell, a few days of rows would use up an example."""
    cells = {}
    for name, choices in CELLS.items():
        number, at = divmod(number, len(choices))
        cells[name] = choices[at]
    return cells


row = st.integers(0, prod(len(choices) for choices in CELLS.values()) - 1).map(as_cells)
rows = st.lists(row, max_size=5)
some_rows = st.lists(row, min_size=1, max_size=3)
files = st.lists(rows, min_size=0, max_size=2)
MEANWHILE = ("quiet day", "same step", "newer attempt", "quarantine", "release")
"""What others do while a step's result waits."""
lateness = st.sampled_from(
    [Late("discard"), Late("next_window"), Late("reemit"), Late("reemit", 3), Late("reemit", 14)]
)
runs = st.integers(0, 1)
"""Which run drains or compacts: work that waits belongs to run 0, so 0 fences it off, and 1 makes it stale."""
STEPS = ("ingest", "drain", "compact", "replay", "trim")


class Machine(Keeping):
    work = Bundle("work")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.files: dict[str, list[Row]] = {}
        self.owner: dict[str, str] = {}
        self.accepted: dict[str, list[Row]] = {}
        self.read: dict[str, dict[str, list[Row]]] = {}
        self.letters: dict[str, list[Row]] = {}
        self.revived: dict[str, dict[str, list[Row]]] = {}
        self.as_now = False
        self.seen = 1
        self.requested_seal = 0
        self.checked: set[str] = set()

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

    @rule(told=some_rows, happened=st.integers(0, 20), landed=files, merge=st.none() | st.integers(0, 12))
    def late_rows(self, told, happened, landed, merge):
        """Days later comes what happened at the very start, among keys that were drained and merged since; perhaps
        since moves, and a merge is done, while it waits to be drained."""
        if merge is None:
            self.quiet_day(landed)
        else:
            self.land(self.day(0), landed)
            self.run_ingest(self.day(0))
            self.seal(-1)
            self.drain(0)
        self.land_late(told, happened)
        self.run_ingest(self.day(-1))
        if merge is not None:
            self.allow_compaction(merge, None)
            self.compact(0)
        self.quiet_day([])

    @rule(told=some_rows, happened=st.integers(0, 20))
    def late_rows_wait(self, told, happened):
        """Late rows are judged, and before that is committed the seal moves on."""
        self.land_late(told, happened)
        held = self.start_work("ingest", self.day(-1), [])
        if held is not None:
            self.quiet_day([])
            self.finish(held)
            self.run_ingest(held.day)

    @precondition(lambda self: self.waiting)
    @rule(as_now=st.booleans(), landed=files)
    def replay(self, as_now, landed):
        """Dead letters are applied after all; those of files counted now that may be, and none of them twice."""
        self.as_now = as_now
        self.run(lambda job: replay(job, as_now=as_now))
        assert not (as_now and self.waiting)
        assert self.run(lambda job: replay(job, as_now=as_now))["outcome"] == "nothing to do"
        self.quiet_day(landed)

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
        grace = before.collection.landed.grace
        assert self.oracle.seal == max(before.seal, min(self.requested_seal, complete) - grace)

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

    @rule(late=lateness)
    def redefine_lateness(self, late):
        head = self.world.head
        if head.state.forgotten_below and late.reach > head.state.collection.landed.late.reach:
            reached("more lateness than is remembered")
        self.world.log().commit(head, Redefined(relanded(head.state.collection, late=late)))
        self.observe()

    @rule()
    def redefine_columns(self):
        """A column comes and goes: nobody sees it, and rows at rest have one more from then on."""
        for coming in (True, False):
            head = self.world.head
            held = head.state.collection
            kept = tuple(column for column in held.value if column.name == "v")
            value = (*kept, Column("w", ColumnType.BOOL)) if coming else kept
            self.world.log().commit(head, Redefined(evolved(held, replace(held, value=value))))
        if self.world.state.batches:
            reached("columns changed beside rows at rest")
        self.observe()

    @rule()
    def redefine_quality(self):
        head = self.world.head
        quality = json.dumps({"row_count": len(head.state.collection.quality), "version": head.version})
        declared = replace(head.state.collection, quality=(quality,))
        if any(not b.first_time < head.state.trace_upper and head.state.is_certified(b) for b in head.state.pending):
            reached("certificates lapse")
        self.world.log().commit(head, Redefined(declared))
        self.observe()

    # What goes wrong.

    @rule(nth=st.integers(1, 40), after=st.booleans(), dies=st.booleans())
    def crash_soon(self, nth, after, dies):
        self.world.store.arm(Fault(nth, after, dies))

    @rule(target=work, step=st.sampled_from(STEPS), ahead=st.sampled_from([0, 0, 1, -2]), landed=files)
    def start(self, step, ahead, landed):
        """Plan and execute a step, and keep its result."""
        held = self.start_work(step, self.day(ahead), landed)
        return multiple() if held is None else held

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
        held = self.start_work(step, day, landed)
        if held is None:
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
            newer = self.start_work(step, held.day, [], first=False)
            self.finish(held)
            if newer is not None:
                self.finish(newer)
            return
        else:
            again = {
                "ingest": lambda: self.run_ingest(held.day),
                "drain": lambda: self.drain(run),
                "replay": lambda: self.run(lambda job: replay(job, as_now=True)),
                "trim": lambda: self.trim(run),
            }
            self.as_now = True
            again.get(step, lambda: self.compact(run))()
        self.finish(held)

    @rule(held=consumes(work))
    def finish(self, held):
        kind = held.change.kind
        if is_replay(held.change):
            kind, self.as_now = "replayed", True
        try:
            outcome = self.world.log().commit(held.head, held.change)
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

    def start_work(self, step: str, day: int, landed: list[list[dict[str, Any]]], *, first: bool = True) -> Held | None:
        log = HoldingLog(self.world.store, self.world.new_id, monotonic=self.world.clock, pause=self.world.clock.pause)
        self.land(day, reaching_ahead(landed) if step == "trim" else landed)
        if step != "ingest":
            self.run_ingest(day)
            self.seal(-1)
        if step == "trim":
            log.holds = (Trimmed,)
        if step == "compact":
            self.drain(0)
            self.until_a_merge_is_due()
        called = {
            "ingest": lambda job: ingest(job, interval(day), landing_root=self.folder.name),
            "drain": lambda job: drain(job, interval(0)),
            "compact": lambda job: compact(job, interval(0)),
            "trim": lambda job: drain(job, interval(0)),  # which ends with a trim
            "replay": lambda job: replay(job, as_now=True),
        }[step]
        fault = self.world.store.fault
        self.world.store.arm(None)
        try:
            self.world.run(called, log=log, first=first)
            return None
        except Held as held:
            held.day = day
            return held
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
        trimmed = any(held.trimmed for held in state.unsealed if held.id == batch)
        out = {held.id for held in state.quarantined}
        held = {name for replayed, taken in self.revived.items() if replayed not in out for name in taken}
        try:
            self.run(lambda job: quarantine(job, batch))
        except InvalidUsage:
            if not trimmed and not held & set(names):
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

    def land_late(self, told: list[dict[str, Any]], happened: int) -> None:
        """A file of the newest day that tells of long ago."""
        day = self.day(-1)
        self.land(day, [[{**row, "lag": day * DAY + row["dt"] - happened} for row in told]])

    def write(self, name: str, day: int, content: list[dict[str, Any]]) -> None:
        told = []
        for row in content:
            time = day * DAY + row["dt"]
            happened = max(0, time - row["lag"]) if self.world.collection.landed.event_time else time
            told.append({**row, "t": time, "e": happened})
        self.world.land(day, name.split("/")[1].removesuffix(".jsonl"), told)
        self.files[name] = [self.as_row(name, number, row) for number, row in enumerate(told)]

    def as_row(self, name: str, number: int, row: dict[str, Any]) -> Row:
        declared = self.world.collection
        order = row["o"] if declared.landed.source.order_by and row["o"] is not None else -1
        value = None if declared.kind.facts and row["gone"] else (row["v"],)
        diff = row["d"] if declared.landed.source.envelope is Envelope.UPDATES else 1
        return Row(row["k"], value, row["t"], row["e"], (order, name, number), diff)

    def files_of(self, day: int) -> list[str]:
        return [name for name in self.files if name.startswith(f"{day * DAY}/")]

    def observe(self) -> None:
        """Tell the oracle what was committed since it last heard."""
        log = self.world.log()
        newest = log.newest_version()
        if newest == self.seen:
            return
        for record in reversed([*takewhile(lambda record: record.version > self.seen, log.history())]):
            self.tell(record.change, log.load(record.version - 1).state)
        self.seen = newest

    def tell(self, change: Change, before: Any) -> None:
        oracle = self.oracle
        if isinstance(change, Ingested):
            self.tell_ingested(change, before)
        elif isinstance(change, Sealed):
            assert change.upper >= oracle.seal
            oracle.seal = change.upper
        elif isinstance(change, CompactionAllowed):
            oracle.since, oracle.rungs = change.since, tuple((rung.lower, rung.interval) for rung in change.rungs)
        elif isinstance(change, Quarantined):
            gone = self.accepted[change.batch]
            oracle.rows = [row for row in oracle.rows if row not in gone]
            for name, batch in self.owner.items():
                if batch == change.batch:
                    self.owner[name] = ""
            for name, letters in self.revived.get(change.batch, {}).items():
                self.letters[name] += letters
        elif isinstance(change, Released):
            oracle.rows += self.accepted[change.batch]
            for name, letters in self.revived.get(change.batch, {}).items():
                self.letters[name] = [row for row in self.letters[name] if row not in letters]
            for name in self.named(change.sources):
                assert not self.owner[name]
                self.owner[name] = change.batch
        elif isinstance(change, Compacted):
            self.tell_compacted(change, before)
        elif isinstance(change, Trimmed):
            reached("trimmed")
        elif isinstance(change, Redefined):
            oracle.allow(change.collection.landed.late.policy, change.collection.landed.late.max_lateness)

    def tell_compacted(self, change: Compacted, before: Any) -> None:
        inputs = [batch for batch in before.trace if batch.id in change.inputs]
        if len(inputs) >= 3:
            reached("merge of three and more")
        if len(inputs) == 1:
            reached("a lone batch is rewritten")
        if change.batch.parts in [batch.parts for batch in inputs]:
            reached("a merge that moves no data")
        if change.batch.description.rungs:
            reached("a merge that keeps instants below since")

    def named(self, sources: tuple[int, ...]) -> list[str]:
        return [name for name in self.files if path_hash(name) in sources]

    def tell_replayed(self, change: Ingested, before: Any) -> None:
        oracle, batch = self.oracle, change.batch.id
        entries = {entry.path: entry for entry in ledger.entries(self.world.truth, before.ledger)}
        named = {path_hash(late_identity(entry.late)): entry for entry in entries.values() if entry.late}
        merged = max(min(before.since, before.seal), before.forgotten_below)
        taken: dict[str, list[Row]] = {}
        self.accepted[batch], self.read[batch], moved = [], {}, 0
        for source in change.sources:
            entry = named[source]
            while entry.replay_of is not None:
                reached("replayed of what a replay left")
                entry = entries[entry.replay_of]
            letters = self.letters[entry.path]
            kept = [row for row in letters if not oracle.two_times or row.event_time >= merged]
            taken[entry.path] = letters if self.as_now else kept
            moved += len(taken[entry.path]) - len(kept)
            self.letters[entry.path] = [row for row in letters if row not in taken[entry.path]]
            for row in taken[entry.path]:
                happened = row.event_time if row in kept and oracle.two_times else oracle.seal
                self.accepted[batch].append(row._replace(time=oracle.seal, event_time=happened))
        assert change.rows_replayed == len(self.accepted[batch])
        assert change.rows_late_moved == moved
        self.revived[batch] = taken
        oracle.rows += self.accepted[batch]
        reached("replayed and moved" if moved else "replayed")

    def tell_ingested(self, change: Ingested, before: Any) -> None:
        if is_replay(change):
            self.tell_replayed(change, before)
            return
        oracle = self.oracle
        oracle.forgotten_below = before.forgotten_below
        names = self.named(change.sources)
        assert len(names) == len(change.sources)
        for name in names:
            assert not self.owner.get(name), f"{name} is counted twice"
            self.owner[name] = change.batch.id if change.batch else "none"
        came = [row for name in names for row in self.files[name]]
        taken = oracle.judge(came)
        late = [row for row in taken if row.order in {r.order for r in came if r.event_time < oracle.seal}]
        assert change.rows_late_applied == len(late)
        assert change.rows_late_discarded == len(came) - len(taken)
        assert change.rows_late_moved == (len(late) if oracle.moves else 0)
        orders = {row.order for row in taken}
        for name in names:
            self.letters[name] = [row for row in self.files[name] if row.order not in orders]
        if change.batch:
            self.accepted[change.batch.id] = taken
            self.read[change.batch.id] = {name: self.files[name] for name in names}
        if late:
            reached("late and moved to the seal" if oracle.moves else "late and applied")
        if len(came) > len(taken):
            reached("late and discarded")
        if oracle.keyed:
            for row in late:
                deep = [b.description for b in before.trace if b.level > 0]
                later = [r for r in oracle.rows if r.key == row.key and r.event_time > row.event_time]
                if any(d.lower <= r.time < d.upper for d in deep for r in later):
                    reached("late fact before a compacted one")
        oracle.rows += taken

    @invariant()
    def answers_are_the_oracle_s(self):
        if not hasattr(self, "world"):
            return
        head = self.world.head
        state, oracle = head.state, self.oracle
        assert (state.seal, state.since) == (oracle.seal, oracle.since)
        if state.seal == 0 or getattr(self, "answered", 0) == head.version:
            return
        self.answered = head.version
        self.what_is_not_kept_is_refused()
        kept = oracle.kept()
        if not kept:
            return
        below = [time for time in kept if time < state.since]
        if below:
            reached("reads below since")
        first = -1 if state.since == 0 else kept[0]
        for after in {first, below[-1] if below else first}:
            told = changes(self.world.truth, state, after=after, upto=kept[-1]).to_pylist()
            found = Counter({(r["k"], (r["v"],), r["_commit_version"], r["_event_time"]): r["diff"] for r in told})
            compare(found, oracle.changes(after, kept[-1]), f"changes after {after}")
        drained = max(time for time in kept if time <= max(kept[0], state.trace_upper))
        times = {state.since if state.since < state.seal else kept[0], kept[-1], drained, *below[-1:]}
        happened = {kept[0], oracle.forward(max(0, state.trace_upper - 2)), 10**9}
        for time in times:
            for event_time in happened:
                told = as_of(self.world.truth, state, time=time, event_time=event_time).to_pylist()
                held = Counter({(r["k"], (r["v"],)): r["_multiplicity"] for r in told})
                compare(held, oracle.as_of(time, event_time), f"as_of({time}, {event_time})")

    @invariant()
    def the_trace_keeps_its_descriptions(self):
        if not hasattr(self, "world"):
            return
        state = self.world.state
        for batch in state.trace:
            if batch.id in self.checked or not batch.rows:
                continue
            self.checked.add(batch.id)
            found = [
                row
                for part in parts_table.load(self.world.truth, batch.parts)
                for row in pq.read_table(self.world.truth.open_input(part.file.key)).to_pylist()
            ]
            said = batch.description
            forward = Oracle.forwarding(said.since, tuple((rung.lower, rung.interval) for rung in said.rungs))
            assert len(found) == batch.rows
            assert all(row["_diff"] for row in found)
            assert batch.retractions == sum(row["_diff"] < 0 for row in found)
            assert all(said.lower <= row["_time"] <= max(said.upper - 1, forward(said.upper - 1)) for row in found)
            for row in found:
                assert (row["_time"], row["_event_time"]) == (forward(row["_time"]), forward(row["_event_time"]))
            places = [(r["k"], (r["v"] is not None, r["v"] or ""), r["_time"], r["_event_time"]) for r in found]
            assert all(a < b for a, b in pairwise(places))
