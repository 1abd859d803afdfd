"""How far a collection is complete, and how far the seal may move."""

from __future__ import annotations

from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.collection import Gate


def plan_seal(state: Arrangement, upper: int) -> Sealed | None:
    """Complete to `upper`, or to what an earlier run asked for and did not get, less the grace (at the collection's end
    all of it); and sealed to there, or one instant past what was learned at the seal, if that is later: a tick. None if
    both are there already.

    Completeness never passes the first interval that was not ingested, counted from the collection's start: it waits
    for what is missing, and `requested_seal` keeps what was asked for, so that the run which ingests the missing
    interval also completes the ones after it. What was learned of complete intervals does not wait for it.

    Raises Uncertified if a batch below the new seal is not certified under the current unsealed suite.
    """
    requested_seal = max(state.requested_seal, upper)
    if state.collection.is_derived:
        return _plan_derived(state)
    landed, complete = state.collection.landed, state.complete
    reached = landed.completed_by(min(requested_seal, complete))
    # Until the first interval is ingested nothing is complete, not even the times before the start: rows of that
    # interval may have happened then, and must not become late because another interval was ingested first.
    complete_below = max(state.complete_below, reached) if complete > landed.start else state.complete_below
    return _checked(state, Sealed(state.seal_for(complete_below), complete_below, requested_seal))


def _plan_derived(state: Arrangement) -> Sealed | None:
    """What a derived collection was corrected to is known, and complete as far as its inputs were. It has no intervals
    of its own: nothing is missing, and nothing is asked for."""
    consumed = state.consumed
    if consumed is None:
        return None
    complete_below = max(state.complete_below, consumed.complete_below)
    return _checked(state, Sealed(max(state.seal, consumed.upper), complete_below, state.requested_seal))


def _checked(state: Arrangement, plan: Sealed) -> Sealed | None:
    if uncertified := state.uncertified_below(plan.upper, plan.complete_below):
        raise Uncertified(
            f"batch {uncertified[0].id} below {plan.upper} is not certified; run the unsealed gate, or quarantine the "
            "batch",
            Gate.UNSEALED,
            tuple(batch.interval for batch in uncertified),
        )
    return None if plan == Sealed(state.seal, state.complete_below, state.requested_seal) else plan
