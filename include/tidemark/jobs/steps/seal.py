"""Seal: promise up to where intervals are complete, and that what was learned is final. Metadata only."""

from __future__ import annotations

from typing import Any

from tidemark.jobs.job import Job, Outcome
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval, IntervalSet
from tidemark.plan.blocked import blocking, blocking_own, plan_seal_so_far
from tidemark.plan.seal import plan_seal
from tidemark.storage.log.log import Head


def seal(job: Job, interval: Interval) -> dict[str, Any]:
    """Seal at least to the interval's end less the grace, as far as no earlier interval is missing; and past what was
    learned of complete intervals, late rows and replayed dead letters, which can be read from then on.

    Where an interval is missing, completeness waits and the result names it: the run that ingests it passes the waiting
    days too. What was learned does not wait. A derived collection is sealed to what it was corrected to, whatever the
    interval: it has none. `completed` in the result is what became complete and was not drained yet, and the interval
    itself, if it is complete.
    Raises Uncertified if no gate has certified a batch that is in the way. Where it is only in the way of what earlier
    runs asked for, the interval is sealed by then.
    """

    def plan(head: Head) -> Sealed | None:
        own_alone = blocking(head.state, interval.upper) and not blocking_own(head.state, interval.upper)
        return (plan_seal_so_far if own_alone else plan_seal)(head.state, interval.upper)

    while True:
        done = job.commit_until_fit(plan)
        # Others may have certified batches, or asked for more, between the plan and its commit.
        if plan_seal(done.head.state, interval.upper) is None:
            return seal_result(done.head, interval, done.outcome)


def seal_so_far(job: Job, interval: Interval) -> Head:
    """Seal as far as no batch without a certificate is in the way, and record what was asked for: who certifies the
    batch, or takes it out, and seals, seals all. Nothing is raised for it. Returns the head at which that is so."""
    while True:
        done = job.commit_until_fit(lambda head: plan_seal_so_far(head.state, interval.upper))
        if plan_seal_so_far(done.head.state, interval.upper) is None:
            return done.head


def seal_result(head: Head, interval: Interval, outcome: Outcome) -> dict[str, Any]:
    """What the step answers at a head."""
    state = head.state
    missing = None if state.collection.is_derived else state.hole_below(interval.upper)
    return {
        "outcome": str(outcome),
        "version": head.version,
        "complete_below": state.complete_below,
        "complete_below_text": format_instant(state.complete_below),
        "seal": state.seal,
        "seal_text": format_instant(state.seal),
        "waiting_for": str(missing) if missing else None,
        "completed": _completed(state, interval),
    }


def _completed(state: Arrangement, interval: Interval) -> list[dict[str, str]]:
    """The intervals of time that are complete by this seal: those that no drain has moved yet, so that who tries again
    says the same, and of `interval` what is complete."""
    if state.collection.is_derived:
        return []
    landed = state.collection.landed
    # No interval begins at the collection's end, where the grace is over.
    complete = min(state.complete_below + landed.grace, state.complete) if state.complete_below else landed.start
    drained = max(landed.start, min(state.trace_upper, state.complete_below) + landed.grace)
    some = IntervalSet()
    for lower, upper in ((drained, complete), (max(landed.start, interval.lower), min(interval.upper, complete))):
        some = some.add(Interval(lower, upper)) if lower < upper else some
    return [{"lower": format_instant(one.lower), "upper": format_instant(one.upper)} for one in some]
