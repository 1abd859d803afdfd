"""What is ahead: rows whose time is still to come, left by drains and merged among themselves."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import AheadMerged, Drained
from tidemark.model.transition.fences import fenced_off, unfenced
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale


def left_ahead(state: Arrangement, change: Drained) -> Arrangement | Stale:
    """The batches that a drain opened give way to what is left of them, which is ahead from now on; what is due goes.
    Stale if one of them is gone."""
    opened = set(change.opened)
    if gone := opened - {batch.id for batch in (*state.unsealed, *state.ahead)}:
        return Stale(f"batch {min(gone)} was evicted, quarantined or merged meanwhile")
    unsealed = tuple(batch for batch in state.unsealed if batch.id not in opened)
    others = tuple(batch for batch in state.ahead if batch.id not in opened)
    ahead = _to_come((*others, *change.ahead), change.batch.description.upper)
    return replace(state, unsealed=unsealed, ahead=ahead)


def ahead_merged(state: Arrangement, change: AheadMerged) -> Outcome:
    """Batches that are ahead become others, which are younger than all that stay."""
    ids = {batch.id for batch in state.ahead}
    if change.batches and ids.issuperset(batch.id for batch in change.batches):
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    if gone := set(change.inputs) - ids:
        return Stale(f"batch {min(gone)}, which was stored ahead, was drained or merged meanwhile")
    others = tuple(batch for batch in state.ahead if batch.id not in change.inputs)
    totals = replace(state.totals, bytes_compacted=state.totals.bytes_compacted + change.bytes_written)
    fences = unfenced(state, change.fence)
    ahead = _to_come((*others, *change.batches), state.trace_upper)
    return Applied(replace(state, ahead=ahead, fences=fences, totals=totals))


def _to_come(batches: tuple[UnsealedBatch, ...], upper: int) -> tuple[UnsealedBatch, ...]:
    return tuple(batch for batch in batches if batch.last_time >= upper)
