"""The state of one collection: an immutable value that cannot be wrong, because it checks itself on construction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tidemark.model.batch import ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Covers, Gate
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.full_snapshot import FullSnapshot
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.invariants import Invariant, Violation, broken, check, shown
from tidemark.model.ledger import LedgerEntry


@dataclass(frozen=True)
class Certificate:
    """A gate's word: under `suite`, these batches are good. A batch is named by its id, which survives trimming."""

    batch: str
    suite: str


@dataclass(frozen=True)
class FrontierCertificate:
    """The frontier gate's word: up to `upper` there is no hole and every unsealed batch is certified."""

    upper: int
    suite: str


@dataclass(frozen=True)
class Fence:
    """Of the attempts at one step of one interval only the newest, `token`, may commit.

    The first attempt of a run has nobody to fence off: its change carries its token `unannounced`, no state holds it,
    and it gives way to any that is announced.
    """

    step: str
    interval: Interval
    token: str
    unannounced: bool = False


@dataclass(frozen=True)
class SmallLeaf:
    """A leaf of the ledger so small that it is kept here and not in an object of its own. Nothing else is called `key`,
    and nothing lies there."""

    key: str
    held: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class LedgerRun:
    """A sorted run of the ledger of source files: an immutable object, the paths it spans, how often it was merged."""

    object: ObjectRef | SmallLeaf
    entries: int
    first_path: str
    last_path: str
    level: int = 0


@dataclass(frozen=True)
class Hold:
    """Somebody reads at `since` and later: times from there on are not forwarded, until it is let go or `expires`
    (wall-clock microseconds; None: durable)."""

    name: str
    since: int
    expires: int | None = None


@dataclass(frozen=True)
class Totals:
    """Counters over the life of the collection; bytes and rows are those of data files written."""

    rows_ingested: int = 0
    rows_late_applied: int = 0
    rows_late_discarded: int = 0
    rows_late_moved: int = 0
    rows_replayed: int = 0
    bytes_ingested: int = 0
    bytes_drained: int = 0
    bytes_compacted: int = 0
    drains: int = 0
    rows_drained: int = 0
    rows_compacted: int = 0


@dataclass(frozen=True)
class Arrangement:
    """A collection's state.

    Invariants, checked in this order: every batch id is unique; unsealed sequence intervals do not overlap and ascend;
    each trace batch has since <= the state's since and upper <= the seal; neighbours touch; levels do not rise from
    old to new; the trace starts at 0; `trace_upper <= seal`; no two full snapshots outside of quarantine are of
    one time, and each that has rows has its unsealed batch.
    """

    collection: Collection
    seal: int = 0
    requested_seal: int = 0
    since: int = 0
    rungs: tuple[Rung, ...] = ()
    holds: tuple[Hold, ...] = ()
    seals: tuple[int, ...] = ()
    forgotten_below: int = 0
    unsealed: tuple[UnsealedBatch, ...] = ()
    trace: tuple[TraceBatch, ...] = ()
    quarantined: tuple[UnsealedBatch, ...] = ()
    snapshots: tuple[FullSnapshot, ...] = ()
    ingested: IntervalSet = field(default_factory=IntervalSet)
    ledger: tuple[LedgerRun, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    frontier_certificate: FrontierCertificate | None = None
    fences: tuple[Fence, ...] = ()
    totals: Totals = field(default_factory=Totals)

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
        yield from self._trace_violations()
        yield from self._snapshot_violations()

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
        """Full snapshots that count, in order of time: no two are of one time, and each has its batch, unless it has no
        rows."""
        snapshots = self.pending_snapshots
        for older, newer in pairwise(snapshots):
            if older.time == newer.time:
                message = f"full snapshots {older.batch} and {newer.batch} are both of {newer.time}"
                yield broken(Invariant.FULL_SNAPSHOTS_ASCEND, message, older=older.time, newer=newer.time)
        unsealed = {batch.id for batch in self.unsealed} if snapshots else set()
        for snapshot in snapshots:
            if snapshot.rows and snapshot.batch not in unsealed:
                message = f"full snapshot {snapshot.batch} of {snapshot.rows} rows has no unsealed batch"
                yield broken(Invariant.FULL_SNAPSHOTS_HAVE_ROWS, message, snapshot=snapshot.batch, rows=snapshot.rows)

    @property
    def function(self) -> CompactionFunction:
        """What compaction may forward, and which times below `since` can still be read."""
        return CompactionFunction(self.since, self.rungs)

    @property
    def pending_snapshots(self) -> tuple[FullSnapshot, ...]:
        """What the source was said to hold at times the trace does not cover yet, in order of time."""
        return tuple(
            sorted(
                (snapshot for snapshot in self.snapshots if not snapshot.quarantined),
                key=lambda snapshot: snapshot.time,
            )
        )

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
    def horizon(self) -> int:
        """No fact that may still be resolved happened below here, so older facts need not be remembered.

        Rows ingested later happened at or above seal - reach and since, or at the seal (or are discarded); rows
        ingested already and not yet drained have recorded bounds. Non-decreasing: where more lateness is allowed than
        before, what was forgotten at an earlier horizon stays so.
        """
        floor = max(min(self.since, self.seal), self.seal - self.collection.lateness)
        return max(self.forgotten_below, min([floor, *(batch.first_event_time for batch in self.pending)]))

    @property
    def remembered_from(self) -> int:
        """Unsealed rows that happened from here on are kept though they were drained; EMPTY: none are."""
        return self.collection.kind.remembered_from(self.horizon)

    @property
    def forgets_below(self) -> int:
        """What a change that forgets by the horizon of now is recorded to forget: rows that happened below here."""
        return self.collection.kind.forgets_below(self.horizon)

    @property
    def complete(self) -> int:
        """Up to where every interval was ingested, counted from the collection's start."""
        return self.ingested.complete_from(self.collection.landed.start)

    def hole_below(self, upper: int) -> Interval | None:
        """The first interval below `upper` that was not ingested, counted from the collection's start."""
        return self.ingested.first_hole(self.collection.landed.start, upper)

    def is_certified(self, batch: UnsealedBatch | TraceBatch) -> bool:
        """Whether a certificate under the current suite covers the batch."""
        suites = self._suites(Covers.UNSEALED if isinstance(batch, UnsealedBatch) else Covers.TRACE)
        return any(c.batch == batch.id and c.suite in suites for c in self.certificates)

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
        """The batches that answer reads: unsealed, then the trace from old to new."""
        return self.unsealed + self.trace

    @property
    def batches(self) -> tuple[UnsealedBatch | TraceBatch, ...]:
        """Every batch the state names, quarantined ones too."""
        return self.unsealed + self.trace + self.quarantined

    def objects(self) -> Iterator[ObjectRef]:
        """The objects the state names itself: parts tables, which name data files in turn, and the files of those that
        are kept here; roots of the ledger."""
        for batch in self.batches:
            if isinstance(batch.parts, ObjectRef):
                yield batch.parts
            else:
                yield from (part.file for part in batch.parts or ())
        yield from (run.object for run in self.ledger if isinstance(run.object, ObjectRef))


def evicted(state: Arrangement) -> Arrangement:
    """Forget unsealed batches the trace covers: those wholly below the trace upper. Where later rows are placed among
    those that were drained, a batch is kept until all it says happened below the horizon; `forgotten_below` records how
    far
    that was."""
    remembered, pending = state.remembered_from, state.trace_upper
    kept = tuple(b for b in state.unsealed if b.last_time >= pending or b.last_event_time >= remembered)
    alive = {batch.id for batch in kept + state.trace + state.quarantined}
    certificates = tuple(c for c in state.certificates if c.batch in alive)
    snapshots = tuple(snapshot for snapshot in state.snapshots if snapshot.time >= pending)
    return replace(
        state, unsealed=kept, snapshots=snapshots, certificates=certificates, forgotten_below=state.forgets_below
    )
