"""What becomes of intervals that a run is not about: which runs of its DAG are, and which of them found data wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from airflow.sdk import DagRunState

from tidemark.airflow.timetable import moment
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Gate
from tidemark.model.instant import from_datetime
from tidemark.model.interval import Interval
from tidemark.plan.gate import plan_gate
from tidemark.quality.results import results_of_collection, wrong_batches

IN_FLIGHT = (DagRunState.QUEUED, DagRunState.RUNNING)
SEEN_TO = (*IN_FLIGHT, DagRunState.FAILED)
"""A run in one of these is about to judge its intervals, or is red because of them."""
RESULTS_LOOKED_AT = 50
"""Newest failures of a gate among which those of a batch are looked for."""
RUNS_LOOKED_AT = 10
"""How many runs that begin before the first interval are asked how far they reach: runs of a backfill do not overlap,
and runs by hand are between."""
log = logging.getLogger(__name__)


def with_runs(
    context: Any, intervals: Sequence[Interval], states: Sequence[DagRunState], *, dag_id: str | None = None
) -> set[Interval]:
    """Which of some intervals of the schedule have a run of this DAG (or of `dag_id`) in one of the states that is made
    for them, alone or with others."""
    if not intervals:
        return set()
    first, last = min(intervals).lower, max(intervals).lower
    found: set[Interval] = set()
    for state in states:
        for lower, upper in _runs_down_from(dag_id or context["dag"].dag_id, last, first, state):
            found.update(interval for interval in intervals if lower <= interval.lower < upper)
    return found


def _runs_down_from(dag_id: str, last: int, first: int, state: DagRunState) -> Iterator[tuple[int, int]]:
    """What the runs in a state are about that begin at `last` or before, newest first: all down to `first`, and a few
    of those before that, as one of them may reach further."""
    from airflow.sdk.execution_time import task_runner  # which a task's process has, and nobody who parses needs
    from airflow.sdk.execution_time.comms import GetPreviousDagRun

    before, earlier = last + 1, 0
    while earlier < RUNS_LOOKED_AT:
        asked = GetPreviousDagRun(dag_id=dag_id, logical_date=moment(before), state=state)
        answer: Any = task_runner.SUPERVISOR_COMMS.send(asked)
        run = answer.dag_run
        if run is None:
            return
        before = from_datetime(run.logical_date)
        earlier += before < first
        begins = run.data_interval_start == run.logical_date and run.data_interval_end is not None
        # A run by hand may be about another time than its date, and have none: it counts for the interval of its date.
        yield before, from_datetime(run.data_interval_end) if begins else before + 1


def is_seen_to(context: Any, state: Arrangement, interval: Interval) -> bool:
    """Whether an interval has a run of its own that is queued or running, or red: nobody else has to be."""
    try:
        some = Schedule.of(state.collection.landed).split(interval)
    except InvalidUsage:  # it came by another schedule
        return False
    return bool(with_runs(context, some, SEEN_TO))


def is_found_wrong(context: Any, job: Job, state: Arrangement, interval: Interval) -> bool:
    """Whether another run of this DAG found a batch of the interval wrong, by today's suite, and is not green since. Of
    a run over several intervals, or with a date of its own, nothing else says which they were."""
    request = plan_gate(state, Gate.UNSEALED, [interval])
    if request is None:
        return False
    batches = set(request.names)
    runs = sorted(_who_found_wrong(job, batches, request.suite) - {context["ti"].run_id})
    count = context["ti"].get_dr_count(dag_id=context["dag"].dag_id, run_ids=runs, states=list(SEEN_TO)) if runs else 0
    return bool(count)


def _who_found_wrong(job: Job, batches: set[str], suite: str) -> set[str]:
    """The runs whose gates failed one of the batches, among the newest failures that were kept."""
    name = job.log.load().state.collection.name
    try:
        if (results := results_of_collection(job.store.url)) is None:
            return set()
        failures = (kept for kept in results.names(name, Gate.UNSEALED) if kept.outcome == "failed")
        newest = [results.load(name, Gate.UNSEALED, kept) or {} for kept in islice(failures, RESULTS_LOOKED_AT)]
    except Exception as problem:  # results are for people to look at: without them the gate judges again
        log.warning("what gates found before could not be read: %s", problem)
        return set()
    return {
        result["run_id"]
        for result in newest
        if result.get("suite") == suite and result.get("run_id") and batches & wrong_batches(result)
    }
