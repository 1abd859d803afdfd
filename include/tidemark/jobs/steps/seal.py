"""Seal: promise that no more updates come below a frontier. Metadata only."""

from __future__ import annotations

from typing import Any

from tidemark.jobs.job import Job
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.seal import plan_seal


def seal(job: Job, interval: Interval) -> dict[str, Any]:
    """Seal at least to the interval's end less the grace, as far as no earlier interval is missing.

    Where one is, the seal waits and the result names it: the run that ingests it passes the waiting days too.
    Raises Uncertified if no gate has certified a batch below the new seal.
    """
    done = job.commit_until_fit(lambda head: plan_seal(head.state, interval.upper))
    state = done.head.state
    missing = state.hole_below(interval.upper)
    return {
        "outcome": str(done.outcome),
        "version": done.head.version,
        "seal": state.seal,
        "seal_text": format_instant(state.seal),
        "waiting_for": str(missing) if missing else None,
    }
