"""Seal: promise up to where intervals are complete, and that what was learned is final. Metadata only."""

from __future__ import annotations

from typing import Any

from tidemark.jobs.job import Job
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.seal import plan_seal


def seal(job: Job, interval: Interval) -> dict[str, Any]:
    """Seal at least to the interval's end less the grace, as far as no earlier interval is missing; and past what was
    learned of complete intervals, late rows and replayed dead letters, which can be read from then on.

    Where an interval is missing, completeness waits and the result names it: the run that ingests it passes the waiting
    days too. What was learned does not wait. A derived collection is sealed to what it was corrected to, whatever the
    interval: it has none.
    Raises Uncertified if no gate has certified a batch below the new seal.
    """
    done = job.commit_until_fit(lambda head: plan_seal(head.state, interval.upper))
    state = done.head.state
    missing = None if state.collection.is_derived else state.hole_below(interval.upper)
    return {
        "outcome": str(done.outcome),
        "version": done.head.version,
        "complete_below": state.complete_below,
        "complete_below_text": format_instant(state.complete_below),
        "seal": state.seal,
        "seal_text": format_instant(state.seal),
        "waiting_for": str(missing) if missing else None,
    }
