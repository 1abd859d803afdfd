"""What to move from unsealed to the trace."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import Unvouched
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, TraceBatch, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.model.dump import Dump


@dataclass(frozen=True)
class DrainRequest:
    """Move `[lower, upper)` into one level-0 batch.

    `batches` hold rows of the interval; none means a batch without data. For a keyed collection `remembered` are the
    batches whose facts the new ones are placed among (they include `batches`), `horizon` is below all of those facts,
    and `trace` says what was held before. For a collection of dumps `dumps` are those of the interval, `trace` what the
    first of them is compared with; a dump without rows has no batch.
    """

    description: Description
    batches: tuple[UnsealedBatch, ...]
    remembered: tuple[UnsealedBatch, ...]
    trace: tuple[TraceBatch, ...]
    horizon: int
    dumps: tuple[Dump, ...] = ()


def plan_drain(state: Arrangement) -> DrainRequest | None:
    """Everything sealed and not yet in the trace; None if the trace upper is at the seal.

    Raises Unvouched if the frontier gate has not vouched for the seal, or a batch of the interval is not vouched for.
    """
    if state.seal == state.trace_upper:
        return None
    if state.vouched_upper < state.seal:
        raise Unvouched(
            f"the frontier is vouched for up to {state.vouched_upper}, the seal is {state.seal}; run the frontier gate",
            Gate.FRONTIER,
        )
    batches = tuple(batch for batch in state.pending if batch.first_time < state.seal)
    if unvouched := [batch.id for batch in batches if not state.is_vouched(batch)]:
        raise Unvouched(f"batch {unvouched[0]} is not vouched for; run the unsealed gate", Gate.UNSEALED)
    keyed = state.collection.keyed
    horizon = state.horizon if keyed else 0
    remembered = tuple(
        batch for batch in state.unsealed if batch in batches or (keyed and batch.last_event_time >= horizon)
    )
    dumps = tuple(dump for dump in state.pending_dumps if dump.time < state.seal)
    return DrainRequest(
        Description(state.trace_upper, state.seal),
        batches,
        remembered,
        tuple(batch for batch in state.trace if batch.rows) if keyed or dumps else (),
        horizon,
        dumps,
    )
