"""What keeps a collection from being complete: one interval, from the state and the results of gates alone."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import islice

from tidemark.config.environment import ready_within
from tidemark.errors import TidemarkError
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval
from tidemark.model.landed import Landed
from tidemark.plan.day import Day, Seen, day_of
from tidemark.quality.results import results_of_collection, wrong_batches
from tidemark.storage.stores.store import Indeterminate, ObjectStore, Unavailable

MOST_RESULTS = 10
"""Newest failures of a gate that are looked through."""


def found_wrong(store: ObjectStore, state: Arrangement) -> Set[str]:
    """The batches that the unsealed gate found wrong, as its newest failures say; none where these cannot be read."""
    try:
        results = results_of_collection(store.url) if state.uncertified else None
        if results is None:
            return set()
        name = state.collection.name
        names = (result for result in results.names(name, Gate.UNSEALED) if result.outcome == "failed")
        newest = [results.load(name, Gate.UNSEALED, failure) or {} for failure in islice(names, MOST_RESULTS)]
    except (TidemarkError, Unavailable, Indeterminate):
        return set()
    return {batch for result in newest for batch in wrong_batches(result)}


def blocked_by(state: Arrangement, now: int, wrong: Set[str] = frozenset()) -> Day | None:
    """The oldest interval that a collection waits for; None if it waits for none.

    That is the oldest which blocks (plan/day.py).

    Args:
        state: The collection's; a derived one has no intervals.
        now: The time, in microseconds.
        wrong: Batches that a gate found so (`found_wrong`).
    """
    if state.collection.is_derived:
        return None
    return min(_candidates(state, now, wrong), key=lambda day: day.interval, default=None)


def _candidates(state: Arrangement, now: int, wrong: Set[str]) -> Iterator[Day]:
    zone, landed = state.collection.zone, state.collection.landed
    failed = [each.interval for each in state.uncertified if each.id in wrong]
    if failed:
        yield day_of(Seen(min(failed).in_zone(zone), has_failed=True), now)
    if landed.end is not None and state.complete >= landed.end:
        return
    lower, is_hole = state.complete, state.complete < reached(state)
    stopped = next((each for each in state.stopped if each.interval.lower == lower), None)
    if stopped or is_hole:
        interval = stopped.interval.in_zone(zone) if stopped else _interval_from(lower, landed)
        yield day_of(Seen(interval, is_hole=is_hole, stopped=stopped), now, ready_within())


def reached(state: Arrangement) -> int:
    """Up to where a collection was read, or is asked to be complete, holes or not."""
    return max([state.requested_seal, *(each.upper for each in state.ingested)])


def _interval_from(lower: int, landed: Landed) -> Interval:
    """The interval that begins at a time. One that begins within a schedule of before ends with that of now."""
    from tidemark.config.schedule import Schedule  # parses cron: not for the status of a collection without a hole

    schedule = Schedule.of(landed)
    return Interval(lower, schedule.following(lower)).in_zone(schedule.zone)
