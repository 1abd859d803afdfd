"""Backfill: a range of intervals through all steps and gates in one process, some intervals at a time.

It does what the wide runs do that Airflow makes of a backfill (airflow/wide_runs.py), with the same steps in the same
groups, so both end in the same collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidemark.jobs.advance import INGEST, all_steps
from tidemark.jobs.intervals import VERDICTS
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.declared import LANDING
from tidemark.model.interval import Interval

INTERVALS_OF_RUN = 31
"""How many intervals are ingested before they are sealed together, unless somebody says otherwise."""


def backfill(
    job: Job,
    intervals: Sequence[Interval],
    landing_root: str,
    *,
    most: int = INTERVALS_OF_RUN,
    begin: Callable[[int], object] = lambda done: None,
) -> dict[str, Any]:
    """Read some intervals, in order, and bring the collection on through its steps and gates after every `most`.

    `begin` is told before each group how many intervals are done. A bad interval stops no other: those behind it are
    ingested, too, and once all were tried its error is raised; then nothing behind it is sealed. All that was done
    stays done, and is nothing to do when the same is asked again. The result says how many steps did something, and
    `waits_for` which intervals before these are missing (None: none).
    """
    wrong: list[Exception] = []
    applied = 0
    for at in range(0, len(intervals), most):
        begin(at)
        some = intervals[at : at + most]
        # Behind a bad interval nothing can be sealed, and a hole before these is somebody else's to fill.
        whole = not wrong and _hole_before(job, some[0]) is None
        try:
            done = all_steps(job, some, {"ingest": {LANDING.parameter: landing_root}}, only=None if whole else INGEST)
        except VERDICTS as error:
            wrong.append(error)
        else:
            applied += sum(one["outcome"] == Outcome.APPLIED for one in done)
    if len(wrong) > 1:
        raise type(wrong[0])("; ".join(map(str, wrong)))
    if wrong:
        raise wrong[0]
    hole = _hole_before(job, intervals[0])
    outcome = str(Outcome.APPLIED if applied else Outcome.NOTHING_TO_DO)
    return {"outcome": outcome, "steps": applied, "waits_for": None if hole is None else str(hole)}


def _hole_before(job: Job, first: Interval) -> Interval | None:
    """What is missing before an interval; None if nothing is."""
    return job.log.load().state.hole_below(first.lower)
