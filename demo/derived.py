"""The demo's derived collections: brought up through Airflow, every row compared with the independent calculation."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import tidemark
from demo import answers, independent
from demo import independent_windows as windows
from demo.airflow_api import AirflowApi
from tidemark.model.arrangement import Arrangement

CARRIERS = "carriers"
NAMED = "named_flights"
"""Needs CARRIERS too; the others follow `flights` alone."""
WINDOWED: dict[str, Callable[[Counter[Any], datetime], windows.Rows]] = {
    "delays_by_hour": windows.delays_by_hour,
    "busy_half_hours": windows.busy_half_hours,
    "aircraft_days": windows.aircraft_days,
}
"""Those that are defined by windows, and what is calculated for each."""
DERIVED = ("delays_by_carrier", NAMED, *WINDOWED)
SETTLE_SECONDS = 3600


class Compared(NamedTuple):
    """The rows a collection should have had at some time: how many, and how many rows differ from that."""

    name: str
    when: str
    rows: int
    differing: int
    corrected: int
    """Rows that were there at the time before, and are not what they were."""


def bring_up(api: AirflowApi) -> None:
    """Have each computed as far as its inputs are. Those that follow `flights` alone are triggered, as its events so
    far came while their DAGs were paused. NAMED needs CARRIERS too, and begins by itself when that has published."""
    alone = [name for name in DERIVED if name != NAMED]
    published = readable(CARRIERS)  # by a demo that was interrupted: there is no event to come
    for dag in (CARRIERS, *DERIVED):
        api.wait_for_dag(dag, seconds=600)
        api.unpause(dag)
    for dag in [*alone, NAMED] if published else alone:
        if not api.runs(dag):
            api.trigger(dag)
    day = independent.FIRST_DAY.isoformat()
    api.backfill(CARRIERS, day, day)
    wait(lambda: readable(CARRIERS), f"{CARRIERS} of {day}", api)
    settle(api)


def settle(api: AirflowApi) -> None:
    """Wait until each has followed its inputs as far as they are, and can be read so far."""
    for name in DERIVED:
        wait(lambda name=name: settled(name), name, api)  # type: ignore[misc]


def wait(done: Callable[[], bool], what: str, api: AirflowApi) -> None:
    """Until it is so. RuntimeError if a run fails, or it takes too long."""
    began = time.monotonic()
    while not done():
        for dag in (CARRIERS, *DERIVED):
            if any(run["state"] == "failed" for run in api.runs(dag)):
                raise RuntimeError(f"a run failed: see {api.address}/dags/{dag}")
        if time.monotonic() - began > SETTLE_SECONDS:
            raise RuntimeError(f"{what} was not done within {SETTLE_SECONDS} s: see {api.address}/dags")
        time.sleep(1)


def readable(name: str) -> bool:
    """Whether a collection is there, and all that was read of it is in its trace."""
    found = tidemark.collections(os.environ["TIDEMARK_ROOT"])
    if name not in found:
        return False
    return in_trace(opened(name).state)


def in_trace(state: Arrangement) -> bool:
    """Whether all that a collection has read, or was corrected by, is in its trace and was certified: a run of
    `correct` has consumed all of an input some steps before its rows are sealed and drained."""
    read = state.consumed.upper if state.consumed else state.seal
    return bool(read) and state.certified_trace_upper == read


def settled(name: str) -> bool:
    """Whether all of its inputs was consumed, and all it was corrected to can be read."""
    if not readable(name):
        return False
    status = opened(name).status()
    follows = status.follows
    return follows is not None and not follows.due and all(one.status == "all" for one in follows.inputs)


def opened(name: str) -> tidemark.OpenCollection:
    return tidemark.open(os.environ["TIDEMARK_ROOT"], name)


def compared(known: independent.Known, first: date, days: int) -> Iterator[Compared]:
    """Each derived collection as known at the end of each day, and now. `known` is what the CSV makes known by now."""
    before: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in DERIVED}
    for when, at, known_at in [*day_ends(first, days), ("now", None, None)]:
        flights = independent.as_of(known, time=known_at)
        for name in DERIVED:
            ours, theirs = rows(opened(name), at), calculated(name, flights, at)
            differing = (ours - theirs).total() + (theirs - ours).total()
            yield Compared(name, when, theirs.total(), differing, (before[name] - theirs).total())
            before[name] = theirs


def day_ends(first: date, days: int) -> list[tuple[str, int | None, datetime | None]]:
    """The last instants of so many days: the day, and the instant for Tidemark and for the calculation."""
    ends = [first + n * timedelta(days=1) for n in range(1, days + 1)]
    return [
        (str(end - timedelta(days=1)), answers.start_of(end) - 1, independent.start_of(end) - independent.INSTANT)
        for end in ends
    ]


def calculated(name: str, flights: Counter[Any], at: int | None) -> Counter[tuple[Any, ...]]:
    """The rows a collection should have, by the current flights; windows by how far all is complete as known `at`
    a time (None: now)."""
    if name in WINDOWED:
        return WINDOWED[name](flights, instant(opened(name).state.seal if at is None else at + 1))
    if name == NAMED:
        return independent.named_flights(flights)
    return Counter((*group, *found) for group, found in independent.delays_by_carrier(flights).items())


def instant(micros: int) -> datetime:
    return independent.EPOCH + micros * independent.INSTANT


def rows(collection: tidemark.OpenCollection, at: int | None) -> Counter[tuple[Any, ...]]:
    """The rows of a collection, as known at a time (None: now)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in collection.as_of(at).to_arrow().to_pylist():
        multiplicity = row.pop("_multiplicity")
        found[tuple(row.values())] += multiplicity
    return found


def learned(name: str, after: int) -> Counter[tuple[tuple[Any, ...], int]]:
    """The rows a collection learned after a time, each with +1 or -1."""
    changes = opened(name).changes(after=after).to_arrow()
    names = [column.name for column in opened(name).state.collection.columns]
    found: Counter[tuple[tuple[Any, ...], int]] = Counter()
    for row, diff in zip(changes.select(names).to_pylist(), changes["diff"].to_pylist(), strict=True):
        found[tuple(row.values()), 1 if diff > 0 else -1] += abs(diff)
    return found


def followed(
    before: independent.Known, after: independent.Known, known_before: dict[str, int]
) -> Iterator[tuple[str, int, int, int, int]]:
    """How each followed the mended file: its name, the rows it retracted and added, how many changes there should be,
    and how many of them differ."""
    was, now = independent.as_of(before), independent.as_of(after)
    for name in DERIVED:
        theirs_was, theirs_now = calculated(name, was, known_before[name]), calculated(name, now, None)
        should = Counter({(row, -1): count for row, count in (theirs_was - theirs_now).items()})
        should += Counter({(row, 1): count for row, count in (theirs_now - theirs_was).items()})
        found = learned(name, known_before[name])
        taken, added = (sum(count for (_, diff), count in found.items() if diff == sign) for sign in (-1, 1))
        wrong = (found - should).total() + (should - found).total()
        yield name, taken, added, should.total(), wrong


def revised(
    before: independent.Known, after: independent.Known, first: date, days: int, mended: int
) -> Iterator[tuple[str, int, int, int]]:
    """What each collection of windows says became of them, once the file was `mended` so often, each second time back
    to what it was: its name, how many there are, how many of them were corrected after they were there, and of how many
    the number of corrections differs."""
    times = [(independent.as_of(before, time=known_at), at) for _, at, known_at in day_ends(first, days)]
    was, now = independent.as_of(before), independent.as_of(after)
    for name in WINDOWED:
        days_of = [calculated(name, flights, at) for flights, at in times]
        turns = [calculated(name, flights, None) for flights in (now, was)]
        theirs = windows.revisions([*days_of, *(turns[turn % 2] for turn in range(mended))])
        ours = {
            tuple(row.values())[: windows.KEY_COLUMNS]: row["_revision"]
            for row in opened(name).windows().to_arrow().to_pylist()
        }
        wrong = sum(1 for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
        yield name, len(theirs), sum(1 for count in theirs.values() if count), wrong


def busiest() -> list[tuple[str, datetime, datetime, int]]:
    """The half hour with most flights at each airport, the first of several: origin, start, end, flights."""
    most: dict[str, tuple[str, datetime, datetime, int]] = {}
    for origin, start, end, flights, *_ in sorted(rows(opened("busy_half_hours"), None)):
        if origin not in most or flights > most[origin][-1]:
            most[origin] = origin, start, end, flights
    return list(most.values())
