"""What to move from unsealed to the trace."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement, EmptyReading
from tidemark.model.batch import Description, Part, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.plan.kinds import plan_of
from tidemark.plan.unsealed import PartsOf, UnsealedRequest


@dataclass(frozen=True)
class DrainRequest:
    """Move the rows of `unsealed` into one level-0 batch of `description`; none means a batch without data. What these
    batches hold beside, and the batches that are `still_to_come`, are stored ahead from then on."""

    description: Description
    unsealed: UnsealedRequest
    still_to_come: tuple[UnsealedBatch, ...] = ()

    def still_ahead(self, batch: UnsealedBatch, parts: PartsOf) -> tuple[Part, ...]:
        """The parts of a batch that may hold rows that are still to come."""
        return tuple(part for part in parts[batch.id] if part.last_time >= self.description.upper)


def plan_drain(state: Arrangement) -> DrainRequest | None:
    """Everything sealed and not yet in the trace; None if the trace upper is at the seal.

    Raises Uncertified if the frontier gate has not certified the seal, or a batch of the interval is not certified.
    """
    lower, upper = state.trace_upper, state.seal
    if upper == lower:
        return None
    if state.certified_upper < upper:
        raise Uncertified(
            f"the frontier is certified up to {state.certified_upper}, the seal is {upper}; run the frontier gate",
            Gate.FRONTIER,
        )
    unsealed = plan_of(state.collection.kind).request(state, lower, upper)
    said = {snapshot.batch for snapshot in unsealed.snapshots}
    empty = (reading for reading in state.without_rows if reading.id in said)
    needed: tuple[UnsealedBatch | EmptyReading, ...] = (*unsealed.batches, *empty)
    if uncertified := [each for each in needed if not state.is_certified(each)]:
        raise Uncertified(
            f"batch {uncertified[0].id} is not certified; run the unsealed gate",
            Gate.UNSEALED,
            tuple(batch.interval for batch in uncertified),
        )
    return DrainRequest(Description(lower, upper), unsealed, _still_to_come(state, upper))


def _still_to_come(state: Arrangement, upper: int) -> tuple[UnsealedBatch, ...]:
    """Batches of intervals that are sealed, of which nothing is due: they count as drained. One that no gate has seen
    waits for it."""
    if not state.collection.kind.waits_ahead:
        return ()
    undue = (batch for batch in state.pending if batch.first_time >= upper and batch.interval.upper <= upper)
    return tuple(batch for batch in undue if state.is_certified(batch))
