"""The state of one collection: an immutable value that cannot be wrong, because it checks itself on construction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tidemark.model.acceptance import Acceptance
from tidemark.model.batch import ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Covers, Gate
from tidemark.model.commit_times import CommitTimes
from tidemark.model.derived import Consumption
from tidemark.model.frontier import EMPTY, CompactionFunction, Rung
from tidemark.model.full_snapshot import Effect, FullSnapshot, after
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.invariants import Invariant, Violation, broken, check, shown
from tidemark.model.landed import Landed
from tidemark.model.publication import Publication
from tidemark.model.records import Certificate as Certificate
from tidemark.model.records import EmptyReading as EmptyReading
from tidemark.model.records import Fence as Fence
from tidemark.model.records import FrontierCertificate as FrontierCertificate
from tidemark.model.records import Hold as Hold
from tidemark.model.records import LedgerRun as LedgerRun
from tidemark.model.records import PassedOver as PassedOver
from tidemark.model.records import SmallLeaf as SmallLeaf
from tidemark.model.records import Stopped as Stopped
from tidemark.model.records import Totals as Totals
from tidemark.model.shrunk import Compared, compared, rows_remembered
from tidemark.model.shrunk import SnapshotRows as SnapshotRows
from tidemark.model.times import Times


@dataclass(frozen=True)
class Arrangement:
    """A collection's state: which batches hold its rows, and up to where it is complete, indexed and merged.

    **Shelves.** An ingest puts what it read on the *unsealed* shelf, as one batch, whatever times its rows have. These
    batches are never merged with each other: each can be taken out again as long as none of it was drained. A drain
    copies the rows that are complete into one batch at the young end of the
    *trace*: there each batch holds all updates of an interval of time, sorted by key and value and added up. The
    intervals touch, from 0 on, so each time is in one trace batch. A compaction replaces neighbours by one batch of
    their intervals together (plan/compact.py). Where rows are updates already, the drain puts those *ahead* whose time
    is still to come: there they are merged by how far ahead they are (plan/undue.py). What was *quarantined* is kept
    and not read.

    An interval that was read and had no rows has no batch. Where a gate judges that, it is listed as `empty` until it
    is drained, and has a certificate like a batch (docs/decisions/0070). Of full snapshots that were drained
    `drained_snapshots` are the rows, which later ones are compared with.

    Of columns that files have and nothing declares the names are kept in `undeclared`, so that each is reported once.
    `passed_over` are files that lay beside those of an interval, of the last intervals that had any; `stopped`
    says which intervals could not be read, the oldest ones. `commits` says when the seal was moved, by the wall clock.

    Facts that were drained and are *remembered*, as later ones are placed among them, stay with their batches, until
    some of these are merged into one of a shelf of their own (plan/remember.py).

    **Frontiers**, each a time. Below `complete_below` no on-time row comes any more: by it rows are judged late, and
    history is kept. Below `seal` what was learned is final, so readable. The two are the same, unless something was
    learned since of what is complete, such as a late row: the seal step moves the seal one instant past that, a *tick*
    (docs/decisions/0040). Below `trace_upper` all rows are in the trace: a read takes the trace, and of unsealed rows
    only those from `trace_upper` on. So an unsealed batch may stay when some or all of it was drained. Below `since`
    times may have been merged (`rungs` say which stay distinct): reads begin there.

    **An example**, in a collection that appends and gets no late rows, so that `complete_below` is the seal. A trace
    batch is shown as [lower][upper][since]:

        change                     seal  trace_upper  since  unsealed  trace
        ingest a, times 0 to 9        0            0      0  a
        ingest b, times 5 to 25       0            0      0  a b
        seal to 20                   20            0      0  a b
        drain                        20           20      0  (b)       [0][20][0]
        allow compaction to 15       20           20     15  (b)       [0][20][0]
        seal to 30                   30           20     15  (b)       [0][20][0]
        drain                        30           30     15            [0][20][0] [20][30][0]
        compact                      30           30     15            [0][30][15]

    The first drain copies a, and the rows of b from 5 to 19. Then a is evicted; b is put ahead for its rows from 20 to
    25, and what it has below 20 is no longer read. From the fifth line on a read as of 14 is refused, though its rows
    are still distinct until the compaction comes: an answer must not depend on whether it has. In the last batch what
    was learned before 15 is at 15, so reads as of 15 to 29 are what they were.

    **Invariants**, checked in this order on construction: every batch id is unique, as certificates go by it; unsealed
    sequence intervals ascend and do not overlap; `complete_below <= seal`; each trace batch has since <= the state's
    since and upper <= the seal; neighbours in the trace touch; levels do not rise from old to new; the trace starts at
    0; outside of quarantine a full snapshot is announced once, and before it is corrected or withdrawn, and each that
    has rows has its unsealed batch; what is ahead has times from the trace upper on, in a collection whose rows count
    wherever they are. It follows that `trace_upper <= seal`.

    **Costs.** A state names batches, not rows: in the trace as many as the budget of compaction allows, O(log n) after
    n drains, of what is ahead O(log n) for each doubling of the distance, and of a keyed collection as few whose
    facts are remembered; of unsealed ones those that wait. Checking is linear in that. A commit stores the change
    alone, and every sixteenth the state with it (storage/log/log.py).
    """

    collection: Collection
    complete_below: int = 0
    seal: int = 0
    requested_seal: int = 0
    since: int = 0
    rungs: tuple[Rung, ...] = ()
    holds: tuple[Hold, ...] = ()
    seals: tuple[int, ...] = ()
    forgotten_below: int = 0
    corrected_from: int = 0
    unsealed: tuple[UnsealedBatch, ...] = ()
    ahead: tuple[UnsealedBatch, ...] = ()
    remembered: tuple[UnsealedBatch, ...] = ()
    trace: tuple[TraceBatch, ...] = ()
    quarantined: tuple[UnsealedBatch, ...] = ()
    snapshots: tuple[FullSnapshot, ...] = ()
    told: Times = field(default_factory=Times)
    ingested: IntervalSet = field(default_factory=IntervalSet)
    ledger: tuple[LedgerRun, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    frontier_certificate: FrontierCertificate | None = None
    fences: tuple[Fence, ...] = ()
    totals: Totals = field(default_factory=Totals)
    incarnation: str = ""
    consumptions: tuple[Consumption, ...] = ()
    event_times_from: int = 0
    accepted: tuple[Acceptance, ...] = ()
    publications: tuple[Publication, ...] = ()
    empty: tuple[EmptyReading, ...] = ()
    drained_snapshots: tuple[SnapshotRows, ...] = ()
    undeclared: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    commits: CommitTimes = field(default_factory=CommitTimes)

    def __post_init__(self) -> None:
        check(self.violations())

    def violations(self) -> Iterator[Violation]:
        """What is broken; its batches one by one have checked themselves."""
        ids = [batch.id for batch in self.batches]
        for name in sorted({name for name in ids if ids.count(name) > 1}) if len(ids) != len(set(ids)) else ():
            yield broken(Invariant.BATCHES_NAMED_ONCE, f"a batch is named twice: {name}", batch=name)
        for left, right in pairwise(self.unsealed):
            if left.sequence[1] > right.sequence[0]:
                yield broken(
                    Invariant.SEQUENCES_ASCEND,
                    f"unsealed sequence intervals overlap: {left.sequence} and {right.sequence}",
                    upper=left.sequence[1],
                    lower=right.sequence[0],
                )
        if self.complete_below > self.seal:
            message = f"complete below {shown(self.complete_below)}, but known up to {shown(self.seal)} only"
            params = {"complete_below": self.complete_below, "seal": self.seal}
            yield broken(Invariant.COMPLETE_IS_KNOWN, message, **params)
        yield from self._trace_violations()
        yield from self._snapshot_violations()
        yield from self._consumption_violations()
        yield from self._ahead_violations()

    def _trace_violations(self) -> Iterator[Violation]:
        for batch in self.trace:
            since, upper = batch.description.since, batch.description.upper
            if since > self.since:
                message = f"trace batch {batch} has since beyond the collection's {shown(self.since)}"
                yield broken(Invariant.SINCE_OF_THE_STATE, message, batch_since=since, since=self.since)
            if upper > self.seal:
                message = f"trace batch {batch} reaches beyond the seal {shown(self.seal)}"
                yield broken(Invariant.UPPER_BELOW_THE_SEAL, message, upper=upper, seal=self.seal)
        for older, newer in pairwise(self.trace):
            upper, lower = older.description.upper, newer.description.lower
            if upper != lower:
                message = f"trace has a gap or overlap at {upper}: {newer.description}"
                yield broken(Invariant.NEIGHBOURS_TOUCH, message, upper=upper, lower=lower)
            if older.level < newer.level:
                message = f"trace level rises from {older} to {newer}"
                yield broken(Invariant.LEVELS_DO_NOT_RISE, message, older=older.level, newer=newer.level)
        if self.trace and (lower := self.trace[0].description.lower) != 0:
            yield broken(Invariant.TRACE_FROM_ZERO, f"the trace starts at {lower}, not at 0", lower=lower)

    def _snapshot_violations(self) -> Iterator[Violation]:
        """Full snapshots that count, as they are learned: each is announced once, unless it was withdrawn, and before
        it is corrected or withdrawn; and each has its batch, unless it has no rows."""
        snapshots = self.pending_snapshots
        said: dict[int, bool] = {}
        for snapshot in snapshots:
            there, time = said.get(snapshot.time, snapshot.time in self.told), snapshot.time
            if there == (snapshot.effect is Effect.ANNOUNCED):
                why = "was applied before" if there else "was never applied"
                message = f"full snapshot {snapshot.batch} of {time} is {snapshot.effect.name.lower()}, and {why}"
                yield broken(Invariant.FULL_SNAPSHOTS_APPLY_ONCE, message, time=time, effect=str(snapshot.effect))
            said[time] = snapshot.effect is not Effect.WITHDRAWN
        unsealed = {batch.id for batch in self.unsealed} if snapshots else set()
        for snapshot in snapshots:
            if snapshot.rows and snapshot.batch not in unsealed:
                message = f"full snapshot {snapshot.batch} of {snapshot.rows} rows has no unsealed batch"
                yield broken(Invariant.FULL_SNAPSHOTS_HAVE_ROWS, message, snapshot=snapshot.batch, rows=snapshot.rows)

    def _consumption_violations(self) -> Iterator[Violation]:
        for older, newer in pairwise(self.consumptions):
            if older.upper >= newer.upper or older.complete_below > newer.complete_below:
                was, now = (f"{each.upper} (complete below {each.complete_below})" for each in (older, newer))
                message = f"the consumption of {now} follows that of {was}"
                yield broken(Invariant.CONSUMPTIONS_ASCEND, message, older=older.upper, newer=newer.upper)
        for last in self.consumptions[-1:]:
            if not last.complete_below <= last.upper <= self.complete:
                message = (
                    f"consumed to {last.upper}, complete below {last.complete_below}, corrected to {self.complete}"
                )
                yield broken(Invariant.CONSUMED_IS_CORRECTED, message, upper=last.upper, complete=self.complete)

    @property
    def consumed(self) -> Consumption | None:
        """How far the inputs of a derived collection were consumed last; None if they never were."""
        return self.consumptions[-1] if self.consumptions else None

    @property
    def recorded_below(self) -> int:
        """What a derived collection holds below here stays as it is: it was recorded, or can be read. A frontier whose
        batch was taken out before it was sealed is neither."""
        return self.complete if self.consumed is None else max(self.consumed.upper, self.seal)

    @property
    def certified_trace_upper(self) -> int:
        """What has been moved into the trace below here, all of it has passed its gate."""
        first = next((batch for batch in self.trace if not self.is_certified(batch)), None)
        return self.trace_upper if first is None else first.description.lower

    def _ahead_violations(self) -> Iterator[Violation]:
        for batch in self.ahead:
            if batch.last_time < self.trace_upper:
                message = f"batch {batch.id} is stored ahead until {batch.last_time}, below the trace upper"
                params = {"last_time": batch.last_time, "trace_upper": self.trace_upper}
                yield broken(Invariant.AHEAD_OF_THE_TRACE, f"{message} {self.trace_upper}", **params)
        if self.ahead and not self.collection.kind.waits_ahead:
            name = self.collection.kind.name
            message = (
                f"rows of kind {name} are stored ahead, in batch {self.ahead[0].id}; they belong to their own batches"
            )
            yield broken(Invariant.AHEAD_OF_THE_TRACE, message, batch=self.ahead[0].id)

    @property
    def function(self) -> CompactionFunction:
        """What compaction may forward, and which times below `since` can still be read."""
        return CompactionFunction(self.since, self.rungs)

    @property
    def pending_snapshots(self) -> tuple[FullSnapshot, ...]:
        """What was learned of full snapshots that the trace does not cover yet: by when, and as it came."""
        return tuple(
            sorted(
                (snapshot for snapshot in self.snapshots if not snapshot.quarantined),
                key=lambda snapshot: snapshot.known,
            )
        )

    def is_announced(self, time: int) -> bool:
        """Whether the full snapshot of a time counts, in the trace or not yet: one that can be corrected."""
        pending = [snapshot.effect for snapshot in self.pending_snapshots if snapshot.time == time]
        return pending[-1] is not Effect.WITHDRAWN if pending else time in self.told

    @property
    def snapshots_remembered_from(self) -> int:
        """From this time on it is remembered which full snapshots were announced: those that may be corrected, and
        those of which something was learned that is not in the trace yet."""
        kept = max(self.corrected_from, self.complete_below - self.collection.correctable_for)
        return min([kept, *(snapshot.time for snapshot in self.snapshots)])

    @property
    def trace_upper(self) -> int:
        """What has been moved into the trace is complete below here."""
        return self.trace[-1].description.upper if self.trace else 0

    @property
    def sequence_upper(self) -> int:
        """Where the next unsealed batch's sequence interval starts. Derived and not monotone: never an identity."""
        return self.unsealed[-1].sequence[1] if self.unsealed else 0

    @property
    def pending(self) -> tuple[UnsealedBatch, ...]:
        """Unsealed batches that hold times the trace does not cover yet."""
        return tuple(batch for batch in self.unsealed if batch.last_time >= self.trace_upper)

    @property
    def drained(self) -> tuple[UnsealedBatch, ...]:
        """Unsealed batches of which all was drained, and is remembered."""
        return tuple(batch for batch in self.unsealed if batch.last_time < self.trace_upper)

    @property
    def learned_below(self) -> int:
        """Where the seal must be for what was learned at it to be read: one instant past it, a *tick*; the seal itself
        if nothing was. A batch of an interval whose turn is still to come needs no tick: its own seal passes it."""
        return self.seal_for(self.complete_below)

    def seal_for(self, complete_below: int) -> int:
        """Where the seal must be once all is complete below a time: there, and past what was learned at that instant.

        Ticks may have brought the seal to the end of an interval, which then does not pass what it learned there.
        """
        reached = max(self.seal, complete_below)
        learned = [batch.learned_at for batch in self.pending if not self._awaits_its_seal(batch, complete_below)]
        learned += [snapshot.learned_at for snapshot in self.pending_snapshots]
        return reached + 1 if reached in learned else reached

    def _awaits_its_seal(self, batch: UnsealedBatch, complete_below: int) -> bool:
        origin = self.collection.origin
        return isinstance(origin, Landed) and origin.complete_before(batch.interval) >= complete_below

    @property
    def horizon(self) -> int:
        """No fact that may still be resolved happened below here, so older facts need not be remembered.

        Rows ingested later happened at or above complete_below - reach and since, or, moved, at the seal (or are
        discarded); rows ingested already and not yet drained have recorded bounds. Ticks of the seal do not raise it:
        on-time rows may come for what is between. Non-decreasing: where more lateness is allowed than before, what
        was forgotten at an earlier horizon stays so. Where facts may be retracted, of files that are corrected, or
        depend on the row before them, as those of transactions, it is strictly below these, as recorded, and -1 where
        one may have happened at 0.
        """
        complete = self.complete_below
        reach = max(self.collection.lateness, self.collection.corrected_reach)
        floor = max(min(self.since, complete), complete - reach)
        if not self.retracts_facts:
            earliest = min([floor, *(batch.first_event_time for batch in self.pending)])
            return max(self.settled, earliest - 1) if self.has_transactions else max(self.forgotten_below, earliest)
        kept, trace_upper = self.correctable_from, self.trace_upper
        batches = (*self.unsealed, *self.remembered)
        first_times = [b.first_event_time for b in batches if b.last_time >= trace_upper or b.interval.upper > kept]
        return max(self.settled, min([floor, *first_times]) - 1)

    @property
    def has_transactions(self) -> bool:
        """Whether facts may depend on the row before them (model/transaction.py)."""
        return self.collection.has_transactions

    @property
    def retracts_facts(self) -> bool:
        """Whether files may be corrected whose rows are facts: then the horizon is strictly below all that may be
        retracted, as what one hid must not have been moved to where it is (docs/decisions/0041)."""
        return self.collection.kind.facts and self.collection.correctable_for > 0

    @property
    def settled(self) -> int:
        """Facts that happened here or before cannot be retracted: forgotten, or merged here. -1: there are none."""
        return max(self.forgotten_below, *(batch.description.since for batch in self.trace), 0) or -1

    @property
    def remembered_from(self) -> int:
        """Unsealed rows that happened from here on are kept though they were drained; EMPTY: none are."""
        return self.collection.kind.remembered_from(self.horizon)

    @property
    def forgets_below(self) -> int:
        """What a change that forgets by the horizon of now is recorded to forget: rows that happened below here."""
        return max(0, self.collection.kind.forgets_below(self.horizon))

    @property
    def correctable_from(self) -> int:
        """Files of intervals that begin here or later may be corrected, and what that needs is kept; EMPTY: none may.
        `corrected_from` is where that was when `reprocess_for` was raised last: what went by then stays gone."""
        reach = self.collection.correctable_for
        return max(self.corrected_from, self.complete_below - reach) if reach else EMPTY

    @property
    def merged_below(self) -> int:
        """Below here what happened was merged, or its facts are forgotten: rows to come are not placed there."""
        return max(min(self.since, self.complete_below), self.forgotten_below)

    @property
    def complete(self) -> int:
        """Up to where every interval was ingested, counted from the collection's start; of a derived one, the frontier
        up to which it was corrected last, whether or not that was taken out again."""
        return self.ingested.complete_from(self.collection.start)

    def hole_below(self, upper: int) -> Interval | None:
        """The first interval below `upper` that was not ingested, counted from the collection's start. A derived one
        has no intervals that could be missing."""
        if self.collection.is_derived:
            return None
        hole = self.ingested.first_hole(self.collection.start, upper)
        return hole and hole.in_zone(self.collection.zone)

    @property
    def without_rows(self) -> tuple[EmptyReading, ...]:
        """Intervals without rows that a gate judges, and so the seal waits for."""
        return tuple(reading for reading in self.empty if not reading.quarantined)

    @property
    def taken_out(self) -> tuple[UnsealedBatch | EmptyReading, ...]:
        """What is in quarantine: batches, and intervals and full snapshots without rows."""
        empty = {reading.id: reading for reading in self.empty if reading.quarantined}
        for one in self.snapshots:
            if one.quarantined and not one.rows:
                empty[one.batch] = EmptyReading(one.batch, one.interval, quarantined=True)
        return (*self.quarantined, *empty.values())

    def compared_snapshots(self) -> dict[str, Compared]:
        """What is learned of full snapshots beside what there was before, by the ids of their batches."""
        suites = self._suites(Covers.UNSEALED)
        certified = {certificate.batch for certificate in self.certificates if certificate.suite in suites}
        pending = [snapshot for snapshot in self.snapshots if not snapshot.quarantined]
        share = self.collection.min_share
        return compared(pending, lambda snapshot: snapshot.batch in certified, self.drained_snapshots, share)

    @property
    def uncertified(self) -> tuple[UnsealedBatch | EmptyReading, ...]:
        """What the unsealed gate has not certified yet."""
        judged: tuple[UnsealedBatch | EmptyReading, ...] = (*self.pending, *self.without_rows)
        return tuple(each for each in judged if not self.is_certified(each))

    def uncertified_below(self, seal: int, complete_below: int) -> tuple[UnsealedBatch | EmptyReading, ...]:
        """What keeps the frontiers from being there: batches with rows below the seal, intervals without rows that
        would be complete, full snapshots without rows that would be known."""
        known = {snapshot.batch: snapshot.known for snapshot in self.snapshots}

        def is_below(each: UnsealedBatch | EmptyReading) -> bool:
            if isinstance(each, UnsealedBatch):
                return each.first_time < seal
            return known[each.id] < seal if each.id in known else each.interval.lower < complete_below

        waiting: tuple[UnsealedBatch | EmptyReading, ...] = (*self.pending, *self.without_rows)
        return tuple(each for each in waiting if is_below(each) and not self.is_certified(each))

    def is_certified(self, batch: UnsealedBatch | EmptyReading | TraceBatch) -> bool:
        """Whether a certificate under the current suite covers the batch; what a drain put ahead had one by then."""
        suites = self._suites(Covers.TRACE if isinstance(batch, TraceBatch) else Covers.UNSEALED)
        return batch in self.ahead or any(c.batch == batch.id and c.suite in suites for c in self.certificates)

    @property
    def certifiable(self) -> frozenset[str]:
        """The ids of what certificates are about."""
        return frozenset({batch.id for batch in self.live} | {reading.id for reading in self.without_rows})

    @property
    def certified_upper(self) -> int:
        """Up to where the frontier gate has certified under the current suite."""
        return (
            self.frontier_certificate.upper
            if self.frontier_certificate and self.frontier_certificate.suite in self._suites(Covers.FRONTIER)
            else 0
        )

    def _suites(self, kind: Covers) -> set[str]:
        """The current suites of the gates that cover a kind of thing."""
        return {self.collection.suite(gate) for gate in Gate if gate.covers is kind}

    def fence(self, step: str, interval: Interval) -> str | None:
        """The token of the newest attempt at a step of an interval, or None."""
        return next((f.token for f in self.fences if (f.step, f.interval) == (step, interval)), None)

    @property
    def live(self) -> tuple[UnsealedBatch | TraceBatch, ...]:
        """The batches that answer reads: unsealed, ahead, then the trace from old to new."""
        return self.unsealed + self.ahead + self.trace

    @property
    def batches(self) -> tuple[UnsealedBatch | TraceBatch, ...]:
        """Every batch the state names, quarantined ones too."""
        return self.unsealed + self.ahead + self.remembered + self.trace + self.quarantined

    @property
    def has_no_data(self) -> bool:
        """Whether no row has ever come, in time or late: then the declaration may change in every field."""
        totals = self.totals
        rows = totals.rows_ingested or totals.rows_late_discarded or totals.rows_late_moved
        snapshots = self.snapshots or self.drained_snapshots
        return not (rows or snapshots or self.publications or any(batch.rows for batch in self.batches))

    def objects(self) -> Iterator[ObjectRef]:
        """The objects the state names itself: parts tables, which name data files in turn, and the files of those that
        are kept here; roots of the ledger; commit times."""
        pins = (pin for publication in self.publications for pin in publication.pins)
        for holder in (*self.batches, *pins):
            if isinstance(holder.parts, ObjectRef):
                yield holder.parts
            else:
                yield from (part.file for part in holder.parts or ())
        yield from (run.object for run in self.ledger if isinstance(run.object, ObjectRef))
        yield from (run.object for run in self.commits.runs)


def evicted(state: Arrangement) -> Arrangement:
    """The state without the unsealed batches that the trace covers: those wholly below the trace upper.

    Where later rows are placed among those that were drained (keyed collections), a batch is kept until all it says
    happened below the horizon; `forgotten_below` records how far that was.
    """
    remembered, pending = state.remembered_from, state.trace_upper
    kept = tuple(b for b in state.unsealed if b.last_time >= pending or b.last_event_time >= remembered)
    remaining = tuple(b for b in state.remembered if b.last_event_time >= remembered)
    snapshots = tuple(snapshot for snapshot in state.snapshots if snapshot.known >= pending)
    waiting = {snapshot.batch for snapshot in snapshots}
    empty = tuple(one for one in state.empty if one.interval.upper > pending or one.id in waiting)
    alive = {batch.id for batch in kept + remaining + state.trace + state.quarantined}
    alive |= {snapshot.batch for snapshot in snapshots} | {reading.id for reading in empty}
    certificates = tuple(c for c in state.certificates if c.batch in alive)
    learned = [snapshot for snapshot in state.pending_snapshots if snapshot.known < pending]
    announced, known, forgotten = after(state.told, learned), state.drained_snapshots, state.forgets_below
    state = replace(
        state,
        unsealed=kept,
        remembered=remaining,
        snapshots=snapshots,
        told=announced,
        certificates=certificates,
        empty=empty,
    )
    since = state.snapshots_remembered_from
    return replace(
        state,
        told=announced.since(since),
        forgotten_below=forgotten,
        drained_snapshots=rows_remembered(known, learned, since),
    )
