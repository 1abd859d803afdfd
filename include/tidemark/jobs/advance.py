"""Advance: what a run of a collection's DAG does, in one process: its steps in their order, each with its gate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage, NotReady
from tidemark.jobs.intervals import in_turn
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.declared import STEPS, steps_of
from tidemark.jobs.steps.step import Intervals, Step, When
from tidemark.model.arrangement import Arrangement
from tidemark.model.instant import format_instant
from tidemark.model.interval import NOT_OVER, Interval
from tidemark.model.local_time import format_local

INGEST = "ingest"


def advance(job: Job, upto: int | None, values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Bring a collection on through all its steps and gates: one that files land for to where it is complete below
    `upto` (µs, a boundary of its schedule; None: as far as it was ingested), reading what has landed of each interval
    that is missing, be that nothing; a derived one as far as its inputs allow, at most below `upto`. With that windows
    close although nothing came.

    `values` are arguments of steps by their names. The result says how far it is now, and what each step came to.
    Whatever is done when a step fails stays done, and is nothing to do the next time. Raises what the steps raise, and
    InvalidUsage for a time that is no boundary.
    """
    state = job.log.load().state
    missing = (
        []
        if state.collection.is_derived
        else _missing(state, upto, not_over=bool(values.get(INGEST, {}).get("not_over")))
    )
    done = all_steps(job, missing, values)
    state = job.log.load().state
    applied = any(one["outcome"] == Outcome.APPLIED for one in done)
    return {
        "outcome": str(Outcome.APPLIED if applied else Outcome.NOTHING_TO_DO),
        "version": done[-1]["version"],
        "complete_below": state.complete_below,
        "complete_below_text": format_instant(state.complete_below),
        "known_up_to": state.seal,
        "known_up_to_text": format_instant(state.seal),
        "steps": done,
    }


def all_steps(
    job: Job, intervals: Sequence[Interval], values: Mapping[str, Mapping[str, Any]], *, only: str | None = None
) -> list[dict[str, Any]]:
    """What each step and gate of a run came to, in order, where a run ingests some intervals; or that step `only`.
    Raises what they raise."""
    done: list[dict[str, Any]] = []
    for step in steps_of(When.EACH_RUN, derived=job.log.load().state.collection.is_derived):
        if only not in (None, step.name):
            continue
        for result in _performed(job, step, intervals, dict(values.get(step.name, {}))):
            done.append({"step": step.name, **result})
        if step.gate is not None and only is None:
            done.append({"step": "gate", "gate": str(step.gate), **STEPS["gate"].function(job, step.gate)})
    return done


def _missing(state: Arrangement, upto: int | None, *, not_over: bool) -> list[Interval]:
    """The intervals below `upto` that were not ingested."""
    landed, by = state.collection.landed, Schedule.of(state.collection.landed)
    if upto is None:
        return []
    if upto <= landed.start:
        raise InvalidUsage(
            f"{state.collection.name} starts at {by.text_of(landed.start)}; it cannot be complete below "
            f"{by.text_of(upto)}"
        )
    if landed.end is not None and upto > landed.end:
        raise InvalidUsage(
            f"{state.collection.name} ends at {by.text_of(landed.end)}; nothing comes up to {by.text_of(upto)}"
        )
    intervals = by.split(Interval(landed.start, upto))
    missing = [one for one in intervals if not state.ingested.covers(one)]
    if missing and not not_over and not missing[-1].is_over(time.time_ns() // 1000):
        before = by.text_of(missing[-1].lower)
        raise NotReady(f"{missing[-1]} {NOT_OVER}; say --to {before}, or --not-over, and what has landed is all of it")
    return missing


def _performed(job: Job, step: Step, missing: Sequence[Interval], values: dict[str, Any]) -> list[dict[str, Any]]:
    if step.intervals is Intervals.EACH:
        found: list[dict[str, Any]] = []
        in_turn(
            missing,
            lambda one: found.append({"interval": str(one), **step.function(job, one, **values)}),
            lambda one, number: job.note(f"{step.name} {one}: {number} of {len(missing)}"),
        )
        return found
    job.note(step.name)
    if step.intervals is Intervals.UNUSED:
        return [step.function(job, **values)]
    return [step.function(job, _run(job.log.load().state, step), **values)]


def _run(state: Arrangement, step: Step) -> Interval:
    """The interval that a step of several is about: all that was ingested without a hole."""
    if state.collection.is_derived or step.intervals is Intervals.NAMES_RUN:
        return Interval(0, max(1, state.seal))
    start = state.collection.landed.start
    complete = state.ingested.complete_from(start)
    if complete == start:
        raise InvalidUsage(
            f"nothing of {state.collection.name} was ingested from its start, "
            f"{format_local(start, state.collection.zone)}; say up to when"
        )
    return Interval(start, complete)
