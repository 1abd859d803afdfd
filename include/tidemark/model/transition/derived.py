"""What a derived collection is corrected by, and how the youngest of that is taken out again."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Corrected, Quarantined, Released
from tidemark.model.corrected import CORRECT
from tidemark.model.derived import Consumption
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.transition.fences import fenced_off
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale

CONSUMPTIONS_KEPT = 64
"""Drained consumptions that are remembered: those who consume several collections of one root look among them for where
all had consumed it as far. Who is further behind than that many meets the others later."""


def corrected(state: Arrangement, change: Corrected) -> Outcome:
    """The inputs were consumed to new frontiers: what differs is the last unsealed batch, and the frontier moved on.

    Planned from another consumption than the newest there is, or under another definition, it is stale: so of two runs
    side by side one commits. Nothing is written below what is recorded, and the frontier is above all
    there were.
    """
    batch, lower = change.batch, state.recorded_below
    consumption = replace(change.consumption, batch=batch.id if batch else None)
    taken_out = batch is not None and any(batch.id == other.id for other in state.quarantined)
    if taken_out or consumption in state.consumptions:
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    derived, recorded = state.collection.derived, consumption.definition.partition(".")[0]
    if recorded not in (derived.fingerprint, derived.before_null_was_a_value):
        return Stale(f"collection {state.collection.name} was defined otherwise meanwhile")
    if change.previous != state.consumed or change.fence.interval.lower != lower:
        return Stale(f"collection {state.collection.name} was corrected to {format_instant(lower)} by another run")
    if consumption.upper <= state.complete:
        return Stale(f"collection {state.collection.name} had the frontier {state.complete} already")
    if batch and batch.first_time < lower:
        return Stale(f"the batch has changes of {batch.first_time}, but what is below {lower} was corrected already")
    since, rungs = state.since, state.rungs
    if change.previous is None:
        # What it would have been before was never computed: such reads are refused, not answered with nothing.
        readable = change.readable or CompactionFunction(consumption.upper - 1)
        since, rungs = max(since, readable.since), readable.rungs
    placed = () if batch is None else (replace(batch, sequence=(state.sequence_upper, state.sequence_upper + 1)),)
    totals = replace(
        state.totals,
        rows_ingested=state.totals.rows_ingested + (batch.rows if batch else 0),
        bytes_ingested=state.totals.bytes_ingested + (batch.bytes if batch else 0),
    )
    return Applied(
        replace(
            state,
            since=since,
            rungs=rungs,
            unsealed=(*state.unsealed, *placed),
            ingested=state.ingested.add(Interval(lower, consumption.upper)),
            consumptions=kept_consumptions((*state.consumptions, consumption), state.trace_upper),
            event_times_from=max(state.event_times_from, change.event_times_from),
            fences=tuple(fence for fence in state.fences if fence.step != CORRECT),
            totals=totals,
        )
    )


def kept_consumptions(consumptions: tuple[Consumption, ...], trace_upper: int) -> tuple[Consumption, ...]:
    """All that are not drained, and the newest of the others."""
    drained = sum(consumption.upper <= trace_upper for consumption in consumptions)
    return consumptions[max(0, drained - CONSUMPTIONS_KEPT) :]


def taken_out(state: Arrangement, change: Quarantined) -> Outcome:
    """The youngest batch goes, with the consumption it came by and those since that found nothing to differ from it.
    The frontier stays: the next consumption is above. What was drained may have been consumed in turn, and stays."""
    if any(other.id == change.batch for other in state.quarantined):
        return AlreadyApplied()
    batch = next((candidate for candidate in (*state.unsealed, *state.ahead) if candidate.id == change.batch), None)
    at = next((at for at, consumption in enumerate(state.consumptions) if consumption.batch == change.batch), None)
    if batch is None:
        return Stale(f"no unsealed batch {change.batch}")
    if at is None or state.consumptions[at].upper <= state.trace_upper:
        return Stale(
            f"batch {batch.id} was drained up to {state.trace_upper}; mend the inputs or the definition and run "
            "correct, or correct --check"
        )
    if newer := next((consumption.batch for consumption in state.consumptions[at + 1 :] if consumption.batch), None):
        return Stale(f"batch {newer} was made after batch {batch.id}, by how its rows differ; quarantine {newer} first")
    return Applied(
        replace(
            state,
            unsealed=tuple(other for other in state.unsealed if other.id != change.batch),
            quarantined=(*state.quarantined, batch),
            consumptions=state.consumptions[:at],
            certificates=tuple(certificate for certificate in state.certificates if certificate.batch != change.batch),
            totals=replace(state.totals, rows_ingested=state.totals.rows_ingested - batch.rows),
        )
    )


def not_put_back(state: Arrangement, change: Released) -> Outcome:
    """What a later run has recomputed cannot be put back beside it."""
    if any(batch.id == change.batch for batch in state.unsealed):
        return AlreadyApplied()
    return Stale(f"batch {change.batch} of a derived collection is not put back; run correct again")
