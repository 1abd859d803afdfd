"""A step over an interval of any length: once for each interval of the collection's schedule that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidemark.config.schedule import Schedule
from tidemark.errors import FileRefused, GateFailed, InvalidUsage, NotReady, TidemarkError, listed
from tidemark.jobs.job import Job, Outcome
from tidemark.model.change import NOTHING_CHANGED
from tidemark.model.collection import Collection
from tidemark.model.derived import Derived
from tidemark.model.interval import Interval

VERDICTS = (FileRefused, GateFailed, InvalidUsage, NotReady)
"""Errors that say something of one interval. Any other would meet the next interval, too."""
MOST_NAMED, SOME_NAMED = 10, 3
"""Reasons that a message lists, and intervals that it names of those with the same reason; it counts the others."""


def scheduled(collection: Collection, interval: Interval) -> list[Interval]:
    """The intervals of a collection's schedule that `interval` consists of, in order; of a derived collection, which
    has none, that one. InvalidUsage, naming the nearest boundaries, if it begins or ends between two."""
    if isinstance(collection.origin, Derived):
        return [interval]
    return Schedule.of(collection.landed).split(interval)


def each_interval(job: Job, interval: Interval, step: Callable[[Job, Interval], dict[str, Any]]) -> dict[str, Any]:
    """The result of `step` for `interval`; of several schedule intervals their results together.

    They are done in order, each committed on its own (`in_turn`): what was done stays done, and is nothing to do when
    this is run again. Raises what the step raises, and InvalidUsage as `scheduled`.
    """
    some = scheduled(job.log.load().state.collection, interval)
    results: list[dict[str, Any]] = []

    def note(one: Interval, number: int) -> None:
        if len(some) > 1:
            job.note(f"{one}: {number} of {len(some)}")

    in_turn(some, lambda one: results.append(step(job, one)), note)
    return results[0] if len(results) == 1 else _together(results)


def in_turn(
    intervals: Sequence[Interval], step: Callable[[Interval], object], note: Callable[[Interval, int], object]
) -> None:
    """Do a step for one interval after another; `note` gets each, and its number from 1, before it begins.

    A bad interval stops no other. Where the files of some cannot be taken, or have not landed, that is raised once the
    others are done: FileRefused or GateFailed if data were wrong, else InvalidUsage, else NotReady, of all of them
    together. Of a single interval its error is raised as it is, and any other error at once.
    """
    wrong: list[tuple[Interval, TidemarkError]] = []
    for number, one in enumerate(intervals, start=1):
        note(one, number)
        try:
            step(one)
        except VERDICTS as error:
            if len(intervals) == 1:
                raise
            wrong.append((one, error))
    if wrong:
        raise _all_that_was_wrong(wrong, len(intervals))


def _all_that_was_wrong(wrong: Sequence[tuple[Interval, TidemarkError]], count: int) -> TidemarkError:
    kind = next(kind for kind in VERDICTS if any(isinstance(error, kind) for _, error in wrong))
    said: dict[str, list[Interval]] = {}
    for interval, error in wrong:
        said.setdefault(str(error), []).append(interval)
    each = "; ".join(_named(intervals, text) for text, intervals in list(said.items())[:MOST_NAMED])
    more = f"; and {len(said) - MOST_NAMED:,} more" if len(said) > MOST_NAMED else ""
    left = count - len(wrong)
    others = "none is done" if not left else "the other one is done" if left == 1 else f"the other {left:,} are done"
    return kind(f"{len(wrong):,} of {count:,} intervals failed, {others}: {each}{more}")


def _named(intervals: Sequence[Interval], said: str) -> str:
    """What was wrong with some intervals alike; messages of a step may name theirs already."""
    return said if said.startswith(str(intervals[0])) else f"{listed(intervals, SOME_NAMED)}: {said}"


def _together(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts added up; batches as a count of them, since a task's result must stay small."""
    outcomes = {result["outcome"] for result in results}
    counts: dict[str, int] = {}
    for result in results:
        for name, value in result.items():
            if isinstance(value, int) and name != "version":
                counts[name] = counts.get(name, 0) + value
    return {
        "outcome": next(outcome for outcome in Outcome if outcome in outcomes),
        "version": results[-1]["version"],
        "intervals": len(results),
        "batches": sum(bool(result.get("batch")) for result in results),
        **counts,
        **_changed(results, counts),
    }


def _changed(results: Sequence[dict[str, Any]], counts: Mapping[str, int]) -> dict[str, Any]:
    """What running intervals again came to; nothing where none was run again."""
    changes = [result["changed"] for result in results if "changed" in result]
    if not changes:
        return {}
    differing = sum(words != NOTHING_CHANGED for words in changes)
    rows = f"{counts.get('retracted', 0):,} rows retracted and {counts.get('added', 0):,} added"
    words = f"{differing} of {len(changes)} intervals run again: {rows} by corrected files"
    times = [time for result in results for time in result.get("event_times") or ()]
    bounds = {"event_times": [min(times), max(times)]} if times else {}
    return {"changed": words if differing else NOTHING_CHANGED, **bounds}
