"""How far the seal may move."""

from __future__ import annotations

from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.collection import Gate


def plan_seal(state: Arrangement, upper: int) -> Sealed | None:
    """Seal to `upper`, or to what an earlier run asked for and did not get, less the grace; None if already there.

    Never past the first interval that was not ingested, counted from the collection's start: the seal waits for what is
    missing, and `requested_seal` keeps what was asked for, so that the run which ingests the missing interval also
    seals the ones after it.

    Raises Uncertified if a batch below the new seal is not certified under the current unsealed suite.
    """
    requested_seal = max(state.requested_seal, upper)
    landed, complete = state.collection.landed, state.complete
    reached = min(requested_seal, complete) - landed.grace
    # Until the first interval is ingested nothing is complete, not even the times before the start: rows of that
    # interval may have happened then, and must not become late because another interval was ingested first.
    target = max(state.seal, reached) if complete > landed.start else state.seal
    below = [batch for batch in state.pending if batch.first_time < target]
    if uncertified := [batch.id for batch in below if not state.is_certified(batch)]:
        raise Uncertified(
            f"batch {uncertified[0]} below {target} is not certified; run the unsealed gate, or quarantine the batch",
            Gate.UNSEALED,
        )
    if (target, requested_seal) == (state.seal, state.requested_seal):
        return None
    return Sealed(target, requested_seal)
