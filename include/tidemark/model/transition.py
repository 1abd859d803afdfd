"""The pure transition `apply(state, change)`: the only way a state becomes another.

Every transition is total, a no-op the second time, and indifferent to the stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tidemark.errors import InvalidUsage
from tidemark.model import invariants
from tidemark.model.arrangement import Arrangement, Certificate, Fence, FrontierCertificate, evicted
from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.change import (
    REPLAY,
    Attempted,
    Certified,
    Change,
    Compacted,
    CompactionAllowed,
    Created,
    Drained,
    HoldDropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Sealed,
    Trimmed,
)
from tidemark.model.collection import Collection
from tidemark.model.dump import Dump
from tidemark.model.evolution import check_successor
from tidemark.model.frontier import CompactionFunction


@dataclass(frozen=True)
class Applied:
    """The change fits: the state after it."""

    state: Arrangement


@dataclass(frozen=True)
class AlreadyApplied:
    """The state already holds what the change says."""


@dataclass(frozen=True)
class Stale:
    """The change no longer fits; plan and execute again."""

    reason: str


@dataclass(frozen=True)
class FencedOff:
    """A newer attempt has taken over; stop."""

    reason: str


Outcome = Applied | AlreadyApplied | Stale | FencedOff


def apply(state: Arrangement | None, change: Change) -> Outcome:
    """What `change` makes of `state` (None before the collection was created)."""
    if isinstance(change, Created):
        return _created(state, change)
    if state is None:
        return Stale("the collection was never created")
    match change:
        case Redefined():
            return _redefined(state, change)
        case Attempted():
            return _attempted(state, change)
        case Ingested():
            return _ingested(state, change)
        case Refused():
            return _refused(state, change)
        case Certified():
            return _certified(state, change)
        case Sealed():
            return _sealed(state, change)
        case Drained():
            return _drained(state, change)
        case Compacted():
            return _compacted(state, change)
        case LedgerMerged():
            return _ledger_merged(state, change)
        case Quarantined():
            return _quarantined(state, change)
        case Released():
            return _released(state, change)
        case CompactionAllowed():
            return _compaction_allowed(state, change)
        case HoldPlaced():
            return _hold_placed(state, change)
        case HoldDropped():
            return _hold_dropped(state, change)
        case Trimmed():
            return _trimmed(state, change)


def conflict(mine: Change, theirs: Change) -> str | None:
    """Why `mine`, planned before `theirs` was committed, must be planned anew; None if the two commute.

    What a state cannot show is checked here: source files taken meanwhile by another ingest, rows read by a drain and
    then quarantined, and another declaration than the one a result was made under.
    """
    if isinstance(mine, Ingested | Released | Refused) and isinstance(theirs, Ingested | Released | Refused):
        shared = set(mine.sources) & set(theirs.sources)
        if shared:
            return f"{len(shared)} of the source files were ingested by another run meanwhile"
    if _moves_sources(mine) and _moves_sources(theirs) and not _is_same_move(mine, theirs):
        return "another run took batches out, put them back or replayed dead letters meanwhile"
    if isinstance(mine, Drained) and isinstance(theirs, Quarantined):
        return f"batch {theirs.batch} was quarantined meanwhile"
    if isinstance(mine, Ingested | Drained | Compacted) and isinstance(theirs, Redefined):
        return f"collection {theirs.collection.name} was redefined meanwhile"
    if isinstance(mine, Redefined) and isinstance(theirs, Redefined | Ingested):
        # A column's number is not given twice; and what was ingested may not fit a column that gets wider.
        return f"collection {mine.collection.name} was redefined or ingested into meanwhile"
    return None


def _moves_sources(change: Change) -> bool:
    """Whether a change rests on what became of the sources of other batches: dead letters are a batch's only as long as
    the file they came in is another's."""
    return isinstance(change, Quarantined | Released) or (isinstance(change, Ingested) and change.fence.step == REPLAY)


def _is_same_move(mine: Change, theirs: Change) -> bool:
    moves = (Quarantined, Released)
    return (
        isinstance(mine, moves) and isinstance(theirs, moves) and (mine.kind, mine.batch) == (theirs.kind, theirs.batch)
    )


def _created(state: Arrangement | None, change: Created) -> Outcome:
    if state is None:
        return Applied(Arrangement(change.collection))
    if state.collection == change.collection:
        return AlreadyApplied()
    return Stale(f"collection {state.collection.name} exists with another declaration")


def _redefined(state: Arrangement, change: Redefined) -> Outcome:
    if state.collection == change.collection:
        return AlreadyApplied()
    check_successor(state.collection, change.collection)
    _check_intervals(state, change.collection)
    return Applied(replace(state, collection=change.collection))


def _check_intervals(state: Arrangement, collection: Collection) -> None:
    """History kept at the ends of one interval can be kept at those of another only if one divides the other."""
    if collection.retention == state.collection.retention:
        return
    for rung in state.rungs:
        for interval in collection.retention.intervals:
            if interval % rung.interval and rung.interval % interval:
                raise InvalidUsage(
                    f"retention of collection {collection.name} cannot keep every {interval} µs: history is kept at "
                    f"every {rung.interval} µs already; choose an interval that divides it or is a multiple"
                )


def _attempted(state: Arrangement, change: Attempted) -> Outcome:
    fence = change.fence
    if state.fence(fence.step, fence.interval) == fence.token:
        return AlreadyApplied()
    return Applied(replace(state, fences=(*_unfenced(state, fence), fence)))


def _unfenced(state: Arrangement, fence: Fence) -> tuple[Fence, ...]:
    return tuple(f for f in state.fences if (f.step, f.interval) != (fence.step, fence.interval))


def _fenced_off(state: Arrangement, fence: Fence) -> FencedOff | None:
    holder = state.fence(fence.step, fence.interval)
    if holder == fence.token:
        return None
    return FencedOff(
        f"{fence.step} of {fence.interval}: attempt {fence.token} was overtaken by {holder or 'a finished one'}"
    )


def _ingested(state: Arrangement, change: Ingested) -> Outcome:
    batch, fence, dump = change.batch, change.fence, change.dump
    if batch and any(batch.id == held.id for held in (*state.unsealed, *state.quarantined)):
        return AlreadyApplied()
    if dump and _dump(state, dump.batch):
        return AlreadyApplied()
    if off := _fenced_off(state, fence):
        return off
    if dump and (reason := _misfit(state, dump)):
        return Stale(reason)
    for broken in invariants.of_write(state.seal, batch.first_time) if batch else ():
        return Stale(broken.message)
    if change.first_on_time is not None and change.first_on_time < state.seal:
        return Stale(f"the seal {state.seal} has passed {change.first_on_time}, judged on time before")
    merged = max(min(state.since, state.seal), state.forgotten)
    if batch and batch.first_event_time < merged:
        return Stale(f"the batch tells of {batch.first_event_time}, and history below {merged} was merged")
    placed = () if batch is None else (replace(batch, sequence=(state.sequence_upper, state.sequence_upper + 1)),)
    totals = replace(
        state.totals,
        rows_ingested=state.totals.rows_ingested + (batch.rows if batch else 0),
        bytes_ingested=state.totals.bytes_ingested + (batch.bytes if batch else 0),
        rows_late_applied=state.totals.rows_late_applied + change.rows_late_applied,
        rows_late_discarded=state.totals.rows_late_discarded + change.rows_late_discarded,
        rows_late_moved=state.totals.rows_late_moved + change.rows_late_moved,
        rows_replayed=state.totals.rows_replayed + change.rows_replayed,
    )
    return Applied(
        replace(
            state,
            unsealed=(*state.unsealed, *placed),
            dumps=(*state.dumps, dump) if dump else state.dumps,
            ingested=state.ingested if fence.step == REPLAY else state.ingested.add(fence.interval),
            ledger=(*state.ledger, change.run) if change.run else state.ledger,
            fences=_unfenced(state, fence),
            totals=totals,
        )
    )


def _misfit(state: Arrangement, dump: Dump) -> str | None:
    """Why a dump cannot be taken, or put back, any more."""
    if dump.time < state.seal:
        return f"the seal {state.seal} has passed the dump of {dump.time}"
    other = next((held for held in state.pending_dumps if held.time == dump.time), None)
    return f"dump {other.batch} of {dump.time} was read already" if other else None


def _dump(state: Arrangement, batch: str) -> Dump | None:
    return next((dump for dump in state.dumps if dump.batch == batch), None)


def _with_dump(state: Arrangement, changed: Dump | None) -> tuple[Dump, ...]:
    return tuple(changed if changed and dump.batch == changed.batch else dump for dump in state.dumps)


def _refused(state: Arrangement, change: Refused) -> Outcome:
    if any(run.object == change.run.object for run in state.ledger):
        return AlreadyApplied()
    if off := _fenced_off(state, change.fence):
        return off
    fences = _unfenced(state, change.fence)
    return Applied(replace(state, ledger=(*state.ledger, change.run), fences=fences))


def _certified(state: Arrangement, change: Certified) -> Outcome:
    if change.suite != state.collection.suite(change.gate):
        return Stale(f"the {change.gate} suite changed from {change.suite} to {state.collection.suite(change.gate)}")
    vouched = state.vouched
    if change.upper is not None and change.upper > state.vouched_upper:
        vouched = FrontierCertificate(change.upper, change.suite)
    alive = {batch.id for batch in state.live}
    added = {Certificate(batch, change.suite) for batch in change.batches if batch in alive} - set(state.certificates)
    if not added and vouched == state.vouched:
        return AlreadyApplied()
    certificates = (*state.certificates, *sorted(added, key=lambda c: c.batch))
    return Applied(replace(state, certificates=certificates, vouched=vouched))


def _sealed(state: Arrangement, change: Sealed) -> Outcome:
    seal, wanted = max(state.seal, change.upper), max(state.wanted, change.wanted)
    if (seal, wanted) == (state.seal, state.wanted):
        return AlreadyApplied()
    for batch in state.pending:
        if batch.first_time < seal and not state.is_vouched(batch):
            return Stale(f"batch {batch.id} came below {seal} and no gate has vouched for it")
    recent = state.collection.retention.recent
    seals = (*state.seals, seal)[-recent:] if recent and seal > state.seal else state.seals
    return Applied(replace(state, seal=seal, wanted=wanted, seals=seals))


def _drained(state: Arrangement, change: Drained) -> Outcome:
    batch = change.batch
    if any(held.id == batch.id for held in state.trace):
        return AlreadyApplied()
    if off := _fenced_off(state, change.fence):
        return off
    for broken in invariants.of_trace_append(state, batch.description):
        return Stale(broken.message)
    if batch.description.upper > state.seal:
        return Stale(f"the drain reaches {batch.description.upper}, beyond the seal {state.seal}")
    totals = replace(
        state.totals,
        drains=state.totals.drains + 1,
        rows_drained=state.totals.rows_drained + batch.rows,
        bytes_drained=state.totals.bytes_drained + batch.bytes,
    )
    fences = _unfenced(state, change.fence)
    return Applied(evicted(replace(state, trace=(*state.trace, batch), fences=fences, totals=totals)))


def _compacted(state: Arrangement, change: Compacted) -> Outcome:
    ids = [batch.id for batch in state.trace]
    if change.batch.id in ids and change.inputs != (change.batch.id,):
        return AlreadyApplied()
    if off := _fenced_off(state, change.fence):
        return off
    if not set(change.inputs) <= set(ids):
        return Stale(f"compaction input {next(i for i in change.inputs if i not in ids)} is gone")
    at = ids.index(change.inputs[0])
    if tuple(ids[at : at + len(change.inputs)]) != change.inputs:
        return Stale("the compaction's inputs are no longer neighbours")
    inputs = state.trace[at : at + len(change.inputs)]
    for held in inputs:
        if held.rows:
            invariants.check(invariants.of_merge([held.description], change.batch.description.function))
    trace = merged_trace(state.trace, inputs, change.batch)
    rewritten = not any(held.parts == change.batch.parts for held in inputs)
    totals = replace(
        state.totals,
        rows_compacted=state.totals.rows_compacted + change.batch.rows * rewritten,
        bytes_compacted=state.totals.bytes_compacted + change.batch.bytes * rewritten,
    )
    gone = set(change.inputs) - {change.batch.id}
    certificates = tuple(c for c in state.certificates if c.batch not in gone)
    if not rewritten:
        certificates = (*certificates, *_taken_over(state, change, inputs))
    fences = _unfenced(state, change.fence)
    return Applied(replace(state, trace=trace, fences=fences, certificates=certificates, totals=totals))


def merged_trace(
    trace: tuple[TraceBatch, ...], inputs: tuple[TraceBatch, ...], batch: TraceBatch
) -> tuple[TraceBatch, ...]:
    """The trace with neighbours replaced by the batch they became. What stood apart for its size is lifted to the level
    of what grew up behind it: levels never rise from old to new."""
    at = trace.index(inputs[0])
    older = tuple(replace(held, level=max(held.level, batch.level)) for held in trace[:at])
    return (*older, batch, *trace[at + len(inputs) :])


def _taken_over(state: Arrangement, change: Compacted, inputs: tuple[TraceBatch, ...]) -> Iterator[Certificate]:
    """The word on the one input with data is good for the output, which has the same parts."""
    data = next((held.id for held in inputs if held.rows), inputs[0].id)
    yield from (Certificate(change.batch.id, c.suite) for c in state.certificates if c.batch == data)


def _ledger_merged(state: Arrangement, change: LedgerMerged) -> Outcome:
    keys = [run.object.key for run in state.ledger]
    if change.run.object.key in keys:
        return AlreadyApplied()
    if not set(change.inputs) <= set(keys):
        return Stale("a run of the ledger was merged by another job")
    at = keys.index(change.inputs[0])
    if tuple(keys[at : at + len(change.inputs)]) != change.inputs:
        return Stale("the runs of the ledger are no longer neighbours")
    return Applied(replace(state, ledger=(*state.ledger[:at], change.run, *state.ledger[at + len(change.inputs) :])))


def _quarantined(state: Arrangement, change: Quarantined) -> Outcome:
    if any(held.id == change.batch for held in state.quarantined):
        return AlreadyApplied()
    batch, dump = _named(state.unsealed, change.batch), _dump(state, change.batch)
    if dump and dump.quarantined:
        return AlreadyApplied()
    if dump and not dump.rows:
        dumps = _with_dump(state, replace(dump, quarantined=True))
        return Applied(replace(state, dumps=dumps, ledger=(*state.ledger, change.run)))
    if batch is None:
        return Stale(f"no unsealed batch {change.batch}")
    if batch.trimmed or batch.first_time < state.trace_upper:
        return Stale(f"batch {batch.id} was drained up to {state.trace_upper}; correct it with a mended file instead")
    kept = tuple(held for held in state.unsealed if held.id != change.batch)
    certificates = tuple(c for c in state.certificates if c.batch != change.batch)
    totals = replace(state.totals, rows_ingested=state.totals.rows_ingested - batch.rows)
    return Applied(
        replace(
            state,
            unsealed=kept,
            quarantined=(*state.quarantined, batch),
            dumps=_with_dump(state, dump and replace(dump, quarantined=True)),
            ledger=(*state.ledger, change.run),
            certificates=certificates,
            totals=totals,
        )
    )


def _released(state: Arrangement, change: Released) -> Outcome:
    if any(held.id == change.batch for held in state.unsealed):
        return AlreadyApplied()
    batch, dump = _named(state.quarantined, change.batch), _dump(state, change.batch)
    if dump and not dump.quarantined:
        return AlreadyApplied()
    if dump and (reason := _misfit(state, dump)):
        return Stale(f"{reason}; the next dump will say what there is")
    if dump and not dump.rows:
        dumps = _with_dump(state, replace(dump, quarantined=False))
        return Applied(replace(state, dumps=dumps, ledger=(*state.ledger, change.run)))
    if batch is None:
        return Stale(f"no quarantined batch {change.batch}")
    if batch.first_time < state.seal:
        return Stale(
            f"the seal {state.seal} has passed the batch's first time {batch.first_time}; ingest its files again"
        )
    if state.collection.keyed and batch.first_event_time < state.horizon:
        return Stale(
            f"facts since {batch.first_event_time} are forgotten below {state.horizon}; ingest its files again"
        )
    placed = replace(batch, sequence=(state.sequence_upper, state.sequence_upper + 1))
    totals = replace(state.totals, rows_ingested=state.totals.rows_ingested + batch.rows)
    return Applied(
        replace(
            state,
            unsealed=(*state.unsealed, placed),
            quarantined=tuple(held for held in state.quarantined if held.id != change.batch),
            dumps=_with_dump(state, dump and replace(dump, quarantined=False)),
            ledger=(*state.ledger, change.run),
            totals=totals,
        )
    )


def _compaction_allowed(state: Arrangement, change: CompactionAllowed) -> Outcome:
    new, old = CompactionFunction(change.since, change.rungs), state.function
    holds = tuple(hold for hold in state.holds if hold.expires is None or hold.expires > change.now)
    if new == old and holds == state.holds:
        return AlreadyApplied()
    for broken in invariants.of_since(old, new):
        return Stale(broken.message)
    for hold in holds:
        if not old.then(new.capped(hold.since)).absorbs(new):
            return Stale(f"hold {hold.name} stands at {hold.since}, since would move from {old.since} to {new.since}")
    return Applied(replace(state, since=new.since, rungs=new.rungs, holds=holds))


def _hold_placed(state: Arrangement, change: HoldPlaced) -> Outcome:
    if change.hold in state.holds:
        return AlreadyApplied()
    if change.hold.since < state.since:
        return Stale(f"since {state.since} has passed {change.hold.since}, where hold {change.hold.name} would stand")
    others = tuple(hold for hold in state.holds if hold.name != change.hold.name)
    return Applied(replace(state, holds=(*others, change.hold)))


def _hold_dropped(state: Arrangement, change: HoldDropped) -> Outcome:
    kept = tuple(hold for hold in state.holds if hold.name != change.name)
    return AlreadyApplied() if kept == state.holds else Applied(replace(state, holds=kept))


def _trimmed(state: Arrangement, change: Trimmed) -> Outcome:
    held = _named(state.unsealed, change.batch.id)
    if held is not None and held.parts == change.batch.parts:
        return AlreadyApplied()
    if off := _fenced_off(state, change.fence):
        return off
    if held is None or held.parts != change.source:
        return Stale(f"unsealed batch {change.batch.id} was evicted, quarantined or trimmed meanwhile")
    if change.horizon > state.horizon:
        return Stale(f"facts below {change.horizon} may be needed again: the horizon is at {state.horizon}")
    placed = replace(change.batch, sequence=held.sequence)
    unsealed = tuple(placed if batch.id == held.id else batch for batch in state.unsealed)
    forgotten = max(state.forgotten, change.horizon)
    return Applied(replace(state, unsealed=unsealed, forgotten=forgotten, fences=_unfenced(state, change.fence)))


def _named(batches: Iterable[UnsealedBatch], identity: str) -> UnsealedBatch | None:
    return next((batch for batch in batches if batch.id == identity), None)
