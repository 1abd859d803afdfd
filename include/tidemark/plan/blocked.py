"""Where batches that no gate has certified are in the way of the seal: how far it may go, and whom that concerns."""

from __future__ import annotations

from dataclasses import replace

from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.interval import Interval, IntervalSet
from tidemark.plan.seal import plan_seal


def plan_seal_so_far(state: Arrangement, upper: int) -> Sealed | None:
    """As `plan_seal`, as far as no batch without a certificate is in the way. What was asked for is recorded whole.

    An interval whose batch is in the way counts as one that was not ingested: its mended file may hold other times than
    the batch does. Where times of it are in the way of earlier intervals, completeness stays where it is, and where it
    is in the way of what was learned, too, the request is all that is recorded. A derived collection has no interval
    that could wait for another: of one this is `plan_seal`, with what that raises.
    """
    if state.collection.is_derived or not (blocked := blocking(state, upper)):
        return plan_seal(state, upper)
    before = state.ingested.below(min(interval.lower for interval in blocked))
    for ingested in (before, IntervalSet()):
        seen = replace(state, ingested=ingested)
        if not blocking(seen, upper):
            return plan_seal(seen, upper)
    asked = max(state.requested_seal, upper)
    return Sealed(state.seal, state.complete_below, asked) if asked > state.requested_seal else None


def blocking(state: Arrangement, upper: int) -> tuple[Interval, ...]:
    """The intervals of the batches without a certificate that are in the way of the seal, to `upper` or to what earlier
    runs asked for; none if it can move, or has nowhere to go."""
    try:
        plan_seal(state, upper)
    except Uncertified as error:
        return error.intervals
    return ()


def blocking_own(state: Arrangement, upper: int) -> tuple[Interval, ...]:
    """As `blocking`, of a run's own: up to the end of its intervals, whatever others asked for."""
    return blocking(replace(state, requested_seal=0), upper)
