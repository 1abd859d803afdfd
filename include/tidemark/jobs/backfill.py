"""Backfill: a range of intervals through all steps and gates in one process, some intervals at a time.

It does what the wide runs do that Airflow makes of a backfill (airflow/wide_runs.py), with the same steps in the same
groups, so both end in the same collection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidemark.errors import NotReady, TidemarkError
from tidemark.jobs.advance import INGEST, all_steps
from tidemark.jobs.intervals import VERDICTS
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.declared import COLUMNS, LANDING
from tidemark.model.interval import INTERVALS_OF_RUN, NOT_OVER, Interval


def backfill(
    job: Job,
    intervals: Sequence[Interval],
    landing_root: str,
    *,
    most: int = INTERVALS_OF_RUN,
    columns: Sequence[str] | None = None,
    not_over: bool = False,
    begin: Callable[[int], object] = lambda done: None,
) -> dict[str, Any]:
    """Read some intervals, in order, and bring the collection on through its steps and gates after every `most`.

    Files that were read before are read again for `columns`, if any (jobs/steps/ingest.py); the result counts those
    that were `left`, and those that are `gone`. `begin` is called before each group with how many intervals are done.
    A bad interval stops no other: those behind it are ingested, too, and once all were tried its error is raised; then
    nothing behind it is sealed. All that was done stays done, and is nothing to do when the same is asked again. The
    result says how many steps did something, and `waits_for` which intervals before these are missing (None: none).
    Intervals that are not over by the clock are left, and counted, unless `not_over` takes them, too. NotReady where
    that is all.
    """
    files = {INGEST: {LANDING.parameter: landing_root, COLUMNS.parameter: columns, "not_over": not_over}}
    over = [each for each in intervals if not_over or each.is_over(time.time_ns() // 1000)]
    if intervals and not over:
        raise NotReady(f"{intervals[0]} {NOT_OVER}; --not-over takes what has landed for all of it")
    open_ones, intervals = intervals[len(over) :], over
    if open_ones:
        job.note(f"{open_ones[0]} {NOT_OVER}; it is left, and what is after it")
    applied = at = 0
    unread = dict.fromkeys(("left", "gone"), 0) if columns else {}
    while at < len(intervals):
        begin(at)
        some, rest = intervals[at : at + most], intervals[at + most :]
        at += most
        # A hole before these is somebody else's to fill, and nothing is sealed beyond it.
        whole = _hole_before(job, some[0]) is None
        try:
            done = all_steps(job, some, files, only=None if whole else INGEST)
        except VERDICTS as error:
            raise _with_the_rest(job, rest, files, error) from None
        applied += sum(one["outcome"] == Outcome.APPLIED for one in done)
        unread = {name: count + sum(result.get(name, 0) for result in done) for name, count in unread.items()}
    hole = _hole_before(job, intervals[0])
    outcome = str(Outcome.APPLIED if applied else Outcome.NOTHING_TO_DO)
    waits_for = None if hole is None else str(hole)
    return {"outcome": outcome, "steps": applied, "waits_for": waits_for, "not_over": len(open_ones), **unread}


def _with_the_rest(
    job: Job, rest: Sequence[Interval], files: Mapping[str, Mapping[str, Any]], wrong: TidemarkError
) -> TidemarkError:
    """Ingest what is left behind a bad interval, where nothing can be sealed; what was wrong in all."""
    try:
        if rest:
            all_steps(job, rest, files, only=INGEST)
    except VERDICTS as more:
        return type(wrong)(f"{wrong}; and behind these: {more}")
    return wrong


def _hole_before(job: Job, first: Interval) -> Interval | None:
    """What is missing before an interval; None if nothing is."""
    return job.log.load().state.hole_below(first.lower)
