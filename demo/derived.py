"""The demo's derived collections: brought up through Airflow, every row held against the independent calculation."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import tidemark
from demo import answers, independent
from demo.airflow_api import AirflowApi

CARRIERS = "carriers"
DERIVED = ("delays_by_carrier", "named_flights")
SETTLE_SECONDS = 3600


def bring_up(api: AirflowApi) -> None:
    """Have each computed as far as its inputs are. The one follows `flights` alone, whose events so far came while its
    DAG was paused: it is triggered. The other needs CARRIERS too, and begins by itself when that has published."""
    alone, joined = DERIVED
    published = readable(CARRIERS)  # by a demo that was interrupted: there is no event to come
    for dag in (CARRIERS, *DERIVED):
        api.wait_for_dag(dag, seconds=600)
        api.unpause(dag)
    for dag in (alone, joined) if published else (alone,):
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
    state = opened(name).state
    return bool(state.seal) and state.certified_trace_upper == state.seal


def settled(name: str) -> bool:
    """Whether all of its inputs was consumed, and all it was corrected to can be read."""
    if not readable(name):
        return False
    status = opened(name).status()
    follows = status.follows
    return follows is not None and not follows.due and all(one.stands == "all" for one in follows.inputs)


def opened(name: str) -> tidemark.OpenCollection:
    return tidemark.open(os.environ["TIDEMARK_ROOT"], name)


def compared(known: independent.Known, first: date, days: int) -> Iterator[tuple[str, str, int, int]]:
    """Each derived collection as known at the end of each day, and now: its name, when, how many rows it should have,
    and how many differ. `known` is what the CSV makes known by now."""
    ends = [first + n * timedelta(days=1) for n in range(1, days + 1)]
    times: list[tuple[str, int | None, Any]] = [
        (str(end - timedelta(days=1)), answers.start_of(end) - 1, independent.start_of(end) - independent.INSTANT)
        for end in ends
    ]
    for when, at, known_at in [*times, ("now", None, None)]:
        held = independent.as_of(known, time=known_at)
        for name, ours, theirs in pairs(held, at):
            yield name, when, theirs.total(), (ours - theirs).total() + (theirs - ours).total()


def pairs(
    held: Counter[Any], at: int | None
) -> Iterator[tuple[str, Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]]:
    """Each collection's rows as known at a time, and those that follow from the flights that were held then."""
    delays = independent.delays_by_carrier(held)
    theirs = Counter((*group, *found) for group, found in delays.items())
    yield DERIVED[0], rows(opened(DERIVED[0]), at), theirs
    yield DERIVED[1], rows(opened(DERIVED[1]), at), independent.named_flights(held)


def rows(collection: tidemark.OpenCollection, at: int | None) -> Counter[tuple[Any, ...]]:
    """What a collection held, as known at a time (None: now)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in collection.as_of(at).to_arrow().to_pylist():
        multiplicity = row.pop("_multiplicity")
        found[tuple(row.values())] += multiplicity
    return found


def learned(name: str, after: int) -> Counter[tuple[tuple[Any, ...], int]]:
    """The rows a collection learned after a time, each with +1 or -1."""
    told = opened(name).changes(after=after).to_arrow()
    names = [column.name for column in opened(name).state.collection.columns]
    found: Counter[tuple[tuple[Any, ...], int]] = Counter()
    for row, diff in zip(told.select(names).to_pylist(), told["diff"].to_pylist(), strict=True):
        found[tuple(row.values()), 1 if diff > 0 else -1] += abs(diff)
    return found


def followed(
    before: independent.Known, after: independent.Known, known_before: dict[str, int]
) -> Iterator[tuple[str, int, int, int, int]]:
    """How each followed the mended file: its name, the rows it took back and added, how many changes there should be,
    and how many of them differ."""
    was, now = independent.as_of(before), independent.as_of(after)
    theirs_was = {name: theirs for name, _, theirs in pairs(was, None)}
    theirs_now = {name: theirs for name, _, theirs in pairs(now, None)}
    for name in DERIVED:
        should = Counter({(row, -1): count for row, count in (theirs_was[name] - theirs_now[name]).items()})
        should += Counter({(row, 1): count for row, count in (theirs_now[name] - theirs_was[name]).items()})
        found = learned(name, known_before[name])
        taken, added = (sum(count for (_, diff), count in found.items() if diff == sign) for sign in (-1, 1))
        wrong = (found - should).total() + (should - found).total()
        yield name, taken, added, should.total(), wrong
