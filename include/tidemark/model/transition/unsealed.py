"""What arrives, is taken out, put back and trimmed: unsealed batches, full snapshots, and the ledger of their
sources."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from tidemark.model import admission
from tidemark.model.arrangement import Arrangement, Certificate, EmptyReading, LedgerRun, PassedOver, Stopped
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import (
    CUT,
    MOST_PASSED_OVER,
    MOST_STOPPED,
    MOST_UNDECLARED,
    REPLAY,
    Ingested,
    LedgerMerged,
    Quarantined,
    Refused,
    Released,
    Remembered,
    Trimmed,
)
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.interval import Interval
from tidemark.model.only import two_tables
from tidemark.model.ordering import with_senders
from tidemark.model.place import another_server
from tidemark.model.transition.derived import not_put_back, taken_out
from tidemark.model.transition.fences import fenced_off, unfenced
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale

_NEXT_SAYS = "the next full snapshot will give the current rows"


def ingested(state: Arrangement, change: Ingested) -> Outcome:
    """An interval was read: its batch is the last of the unsealed ones, its files are counted."""
    batch, fence, snapshot = change.batch, change.fence, change.snapshot
    if batch and any(batch.id == other.id for other in (*state.unsealed, *state.ahead, *state.quarantined)):
        return AlreadyApplied()
    if (snapshot and _snapshot(state, snapshot.batch)) or _reading(state, change.empty or ""):
        return AlreadyApplied()
    if off := fenced_off(state, fence):
        return off
    if fence.step == CUT and state.ingested.covers(fence.interval):
        return Stale(f"{fence.interval} was read to its end meanwhile")
    if snapshot and (reason := _misfit(state, snapshot)):
        return Stale(reason)
    if snapshot and snapshot.learned_at is not None and snapshot.interval.lower < state.correctable_from:
        return Stale(f"{snapshot.interval} begins before {state.correctable_from}, and cannot be corrected any more")
    for broken in admission.of_write(state.seal, batch.first_time) if batch else ():
        return Stale(broken.message)
    if reason := _misjudged(state, change):
        return Stale(reason)
    merged, facts = state.merged_below, state.collection.kind.facts
    if change.corrected and not facts and change.merged_below != merged:
        return Stale(f"history below {merged} was merged meanwhile, below {change.merged_below} before")
    if batch and change.corrected and facts and batch.first_event_time <= state.settled:
        return Stale(
            f"the batch corrects what happened at {batch.first_event_time}, and up to {state.settled} all stays"
        )
    if batch and batch.first_event_time < merged and not change.corrected:
        return Stale(
            f"the batch has rows that happened at {batch.first_event_time}, but history below {merged} was merged"
        )
    if change.server and another_server(source_server := _server(state), change.server):
        return Stale(f"messages from {source_server} were taken meanwhile, and these come from {change.server}")
    if change.table and (table := _table(state)) and table != change.table:
        return Stale(two_tables(change.table, table))
    placed = () if batch is None else (replace(batch, sequence=(state.sequence_upper, state.sequence_upper + 1)),)
    empty = _empty_after(state, change)
    totals = replace(
        state.totals,
        rows_ingested=state.totals.rows_ingested + (batch.rows if batch else 0),
        bytes_ingested=state.totals.bytes_ingested + (batch.bytes if batch else 0),
        rows_late_applied=state.totals.rows_late_applied + change.rows_late_applied,
        rows_late_discarded=state.totals.rows_late_discarded + change.rows_late_discarded,
        rows_late_moved=state.totals.rows_late_moved + change.rows_late_moved,
        rows_replayed=state.totals.rows_replayed + change.rows_replayed,
        rows_left_out=state.totals.rows_left_out + change.rows_left_out,
        images_unmatched=state.totals.images_unmatched + change.images_unfit,
    )
    return Applied(
        replace(
            state,
            collection=with_senders(state.collection, change.server, change.table),
            unsealed=(*state.unsealed, *placed),
            snapshots=(*state.snapshots, snapshot) if snapshot else state.snapshots,
            ingested=state.ingested if fence.step in (CUT, REPLAY) else state.ingested.add(fence.interval),
            ledger=(*state.ledger, change.run) if change.run else state.ledger,
            fences=unfenced(state, fence),
            totals=totals,
            empty=empty,
            undeclared=_undeclared_after(state, change),
            passed_over=_passed_over_after(state, change),
            stopped=state.stopped if fence.step == REPLAY else _going_on(state, fence.interval),
            certificates=_without(state, {each.id for each in state.empty} - {each.id for each in empty}),
        )
    )


def _server(state: Arrangement) -> str:
    """Whose messages were taken so far, where they are in the order of their connector."""
    return "" if state.collection.is_derived else state.collection.landed.source.server


def _table(state: Arrangement) -> str:
    """The table whose messages were taken so far, where that is known."""
    return "" if state.collection.is_derived else state.collection.landed.source.table or ""


def _undeclared_after(state: Arrangement, change: Ingested) -> tuple[str, ...]:
    """The columns that were reported, these of the change among them."""
    return tuple(dict.fromkeys((*state.undeclared, *(name for name, _ in change.undeclared))))[:MOST_UNDECLARED]


def _passed_over_after(state: Arrangement, change: Ingested) -> tuple[PassedOver, ...]:
    """What was passed over, that of the change's interval as it was seen now."""
    if change.fence.step in (CUT, REPLAY):
        return state.passed_over
    others = tuple(each for each in state.passed_over if each.interval != change.fence.interval)
    if not change.passed_over:
        return others
    seen = PassedOver(change.fence.interval, change.passed_over, change.files_passed_over)
    return (*others, seen)[-MOST_PASSED_OVER:]


def _empty_after(state: Arrangement, change: Ingested) -> tuple[EmptyReading, ...]:
    """The intervals without rows: that of the change is one now, or is none any more. One that is corrected stays so:
    the correction may be taken out again."""
    read = change.empty is not None or change.batch is not None
    if not read or change.corrected or change.fence.step in (CUT, REPLAY):
        return state.empty
    others = tuple(each for each in state.empty if each.quarantined or each.interval != change.fence.interval)
    return others if change.empty is None else (*others, EmptyReading(change.empty, change.fence.interval))


def _without(state: Arrangement, gone: Set[str]) -> tuple[Certificate, ...]:
    return tuple(c for c in state.certificates if c.batch not in gone)


def _misjudged(state: Arrangement, change: Ingested) -> str | None:
    """Why rows must be judged on time or late again: more is complete by now. The seal alone judges nobody."""
    complete = state.complete_below
    if change.first_on_time is not None and change.first_on_time < complete:
        return f"{change.first_on_time} was judged on time, and by now all below {complete} is complete"
    learned = change.rows_late_applied or change.corrected
    if learned and change.judged_below is not None and change.judged_below < complete:
        return f"late rows were judged by {change.judged_below}, and by now all below {complete} is complete"
    return None


def refused(state: Arrangement, change: Refused) -> Outcome:
    """The state remembers that an interval could not be read, and the ledger the files that stopped it."""
    run = change.run
    if run and any(other.object == run.object for other in state.ledger):
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    stopped = state.stopped
    # An interval that was read before is complete without what comes now.
    if change.reason and not state.ingested.covers(change.fence.interval):
        others = (*_going_on(state, change.fence.interval), change.stopped)
        stopped = tuple(sorted(others, key=lambda each: each.interval))[:MOST_STOPPED]
    if run is None and stopped == state.stopped:
        return AlreadyApplied()
    ledger = (*state.ledger, run) if run else state.ledger
    return Applied(replace(state, ledger=ledger, stopped=stopped, fences=unfenced(state, change.fence)))


def _going_on(state: Arrangement, interval: Interval) -> tuple[Stopped, ...]:
    """What stopped other intervals."""
    return tuple(each for each in state.stopped if each.interval != interval)


def ledger_merged(state: Arrangement, change: LedgerMerged) -> Outcome:
    """Neighbouring runs of the ledger become one."""
    keys = [run.object.key for run in state.ledger]
    if change.run.object.key in keys:
        return AlreadyApplied()
    if not set(change.inputs) <= set(keys):
        return Stale("a run of the ledger was merged by another job")
    at = keys.index(change.inputs[0])
    if tuple(keys[at : at + len(change.inputs)]) != change.inputs:
        return Stale("the runs of the ledger are no longer neighbours")
    return Applied(replace(state, ledger=(*state.ledger[:at], change.run, *state.ledger[at + len(change.inputs) :])))


def quarantined(state: Arrangement, change: Quarantined) -> Outcome:
    """A batch, or a full snapshot without rows, is taken out; what was drained cannot be."""
    if state.collection.is_derived or change.run is None:
        return taken_out(state, change)
    if any(other.id == change.batch for other in state.quarantined):
        return AlreadyApplied()
    batch, snapshot = _named(state.unsealed, change.batch), _snapshot(state, change.batch)
    reading = _reading(state, change.batch)
    if any(one.quarantined for one in (snapshot, reading) if one):
        return AlreadyApplied()
    state = replace(state, certificates=_without(state, {change.batch, *change.judged_again}))
    if snapshot and (newer := _built_upon(state, snapshot)):
        return Stale(
            f"the full snapshot of {snapshot.time} was {newer.effect} as batch {newer.batch}; "
            "quarantine that batch first"
        )
    if reading or (snapshot and not snapshot.rows):
        snapshots = _with_snapshot(state, snapshot and replace(snapshot, quarantined=True))
        return _with_reading(replace(state, snapshots=snapshots), change.batch, change.run, quarantined=True)
    batch = batch or _named(state.ahead, change.batch)
    if batch is None:
        return Stale(f"no unsealed batch {change.batch}")
    if batch in state.ahead or batch.trimmed or batch.first_time < state.trace_upper:
        return Stale(f"batch {batch.id} was drained up to {state.trace_upper}; correct it with a mended file instead")
    kept = tuple(other for other in state.unsealed if other.id != change.batch)
    totals = replace(state.totals, rows_ingested=state.totals.rows_ingested - batch.rows)
    return Applied(
        replace(
            state,
            unsealed=kept,
            quarantined=(*state.quarantined, batch),
            snapshots=_with_snapshot(state, snapshot and replace(snapshot, quarantined=True)),
            ledger=(*state.ledger, change.run),
            totals=totals,
        )
    )


def released(state: Arrangement, change: Released) -> Outcome:
    """A batch or full snapshot is put back, if the seal has not passed it."""
    if state.collection.is_derived:
        return not_put_back(state, change)
    if any(other.id == change.batch for other in state.unsealed):
        return AlreadyApplied()
    batch, snapshot = _named(state.quarantined, change.batch), _snapshot(state, change.batch)
    reading = _reading(state, change.batch)
    if any(not one.quarantined for one in (snapshot, reading) if one):
        return AlreadyApplied()
    if snapshot and (reason := _misfit(state, snapshot)):
        otherwise = f"run {snapshot.interval} again" if snapshot.effect is not Effect.ANNOUNCED else _NEXT_SAYS
        return Stale(f"{reason}; {otherwise}")
    if reading and not snapshot and state.complete_below > reading.interval.lower:
        return Stale(f"{reading.interval} is complete by now; ingest its files again")
    if reading or (snapshot and not snapshot.rows):
        snapshots = _last_snapshot(state, snapshot and replace(snapshot, quarantined=False))
        return _with_reading(replace(state, snapshots=snapshots), change.batch, change.run, quarantined=False)
    if batch is None:
        return Stale(f"no quarantined batch {change.batch}")
    if batch.first_time < state.seal:
        return Stale(
            f"the seal {state.seal} has passed the batch's first time {batch.first_time}; ingest its files again"
        )
    forgets_below = state.horizon + 1 if state.retracts_facts else state.forgets_below
    if batch.first_event_time < forgets_below:
        return Stale(
            f"the batch has facts of {batch.first_event_time}, but those below {forgets_below} are forgotten; "
            "ingest its files again"
        )
    placed = replace(batch, sequence=(state.sequence_upper, state.sequence_upper + 1))
    totals = replace(state.totals, rows_ingested=state.totals.rows_ingested + batch.rows)
    return Applied(
        replace(
            state,
            unsealed=(*state.unsealed, placed),
            quarantined=tuple(other for other in state.quarantined if other.id != change.batch),
            snapshots=_last_snapshot(state, snapshot and replace(snapshot, quarantined=False)),
            ledger=(*state.ledger, change.run),
            totals=totals,
        )
    )


def trimmed(state: Arrangement, change: Trimmed) -> Outcome:
    """A batch keeps its identity and place, and loses rows the trace holds."""
    current = _named(state.unsealed, change.batch.id)
    if current is not None and current.parts == change.batch.parts:
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    if current is None or current.parts != change.source:
        return Stale(f"unsealed batch {change.batch.id} was evicted, quarantined or trimmed meanwhile")
    if change.horizon > state.forgets_below:
        return Stale(
            f"facts from {state.forgets_below} on may be needed again; the trim forgets those below {change.horizon}"
        )
    placed = replace(change.batch, sequence=current.sequence)
    unsealed = tuple(placed if batch.id == current.id else batch for batch in state.unsealed)
    forgotten_below = max(state.forgotten_below, change.horizon)
    return Applied(
        replace(state, unsealed=unsealed, forgotten_below=forgotten_below, fences=unfenced(state, change.fence))
    )


def remembered(state: Arrangement, change: Remembered) -> Outcome:
    """Batches of drained facts become one, which is put where the oldest of them that was merged before was."""
    ids = {batch.id for batch in state.remembered}
    if change.batch and change.batch.id in ids:
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    if gone := set(change.inputs) - ids - {batch.id for batch in state.drained}:
        return Stale(f"remembered batch {min(gone)} was evicted or merged meanwhile")
    if change.horizon > state.forgets_below:
        return Stale(f"facts from {state.forgets_below} on may be needed again; the merge forgets to {change.horizon}")
    at = next((at for at, batch in enumerate(state.remembered) if batch.id in change.inputs), len(state.remembered))
    others = [batch for batch in state.remembered if batch.id not in change.inputs]
    totals = replace(state.totals, bytes_compacted=state.totals.bytes_compacted + change.bytes_written)
    return Applied(
        replace(
            state,
            unsealed=tuple(batch for batch in state.unsealed if batch.id not in change.inputs),
            remembered=(*others[:at], *((change.batch,) if change.batch else ()), *others[at:]),
            certificates=_without(state, set(change.inputs)),
            forgotten_below=max(state.forgotten_below, change.horizon),
            fences=unfenced(state, change.fence),
            totals=totals,
        )
    )


def _misfit(state: Arrangement, snapshot: FullSnapshot) -> str | None:
    """Why a full snapshot, or what was learned of one, cannot be taken, or put back, any more."""
    if snapshot.known < state.seal:
        return f"the seal {state.seal} has passed the full snapshot of {snapshot.known}"
    if state.is_announced(snapshot.time) == (snapshot.effect is Effect.ANNOUNCED):
        if snapshot.effect is not Effect.ANNOUNCED:
            return f"the full snapshot of {snapshot.time} was taken out or withdrawn meanwhile"
        name = "".join(f" {pending.batch}" for pending in state.pending_snapshots if pending.time == snapshot.time)
        return f"full snapshot{name} of {snapshot.time} was read already"
    if snapshot.learned_at is not None and snapshot.time <= state.since:
        return f"history below {state.since} was merged, and with it the full snapshot of {snapshot.time}"
    return None


def _built_upon(state: Arrangement, snapshot: FullSnapshot) -> FullSnapshot | None:
    """What was learned of a full snapshot since, and would be of none without it. Corrections add up in any order."""
    of_it = [entry for entry in state.snapshots if entry.time == snapshot.time and not entry.quarantined]
    since = of_it[of_it.index(snapshot) + 1 :]
    return next((later for later in since if not later.effect is snapshot.effect is Effect.CORRECTED), None)


def _snapshot(state: Arrangement, batch: str) -> FullSnapshot | None:
    return next((snapshot for snapshot in state.snapshots if snapshot.batch == batch), None)


def _reading(state: Arrangement, batch: str) -> EmptyReading | None:
    return next((reading for reading in state.empty if reading.id == batch), None)


def _with_snapshot(state: Arrangement, changed: FullSnapshot | None) -> tuple[FullSnapshot, ...]:
    return tuple(changed if changed and snapshot.batch == changed.batch else snapshot for snapshot in state.snapshots)


def _last_snapshot(state: Arrangement, changed: FullSnapshot | None) -> tuple[FullSnapshot, ...]:
    """As if it came only now."""
    if changed is None:
        return state.snapshots
    return (*(snapshot for snapshot in state.snapshots if snapshot.batch != changed.batch), changed)


def _with_reading(state: Arrangement, name: str, run: LedgerRun, *, quarantined: bool) -> Outcome:
    """An interval without rows, if it is one, is taken out or put back, and is to be judged again then."""
    empty = tuple(replace(each, quarantined=quarantined) if each.id == name else each for each in state.empty)
    ledger, certificates = (*state.ledger, run), _without(state, {name})
    return Applied(replace(state, empty=empty, certificates=certificates, ledger=ledger))


def _named(batches: Iterable[UnsealedBatch], identity: str) -> UnsealedBatch | None:
    return next((batch for batch in batches if batch.id == identity), None)
