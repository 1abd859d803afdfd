"""A few days of a collection as Airflow would run them: late rows, a quiet day, a quarantine and its way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.stores import Contents
from support.world import World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate
from tidemark.storage import ObjectStore

Step = Callable[[Job], Any]


def row(k: int, v: str | None, t: int, e: int | None = None, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": t, "e": t if e is None else e, "o": None, "gone": False, "d": 1} | more


DAYS = [
    {
        "a": [row(1, "a", 3), row(2, "b", 4, o=1), row(2, "c", 4, o=0)],
        "b": [row(1, "b", 5, 2), row(3, None, 9, d=2)],
    },
    {"a": [row(1, "c", 12), row(2, "b", 13, 4, o=2), row(1, "z", 14, 4, gone=True)], "empty": []},
    {},
    {"a": [row(3, "a", 31, 9, d=-2), row(2, "x", 32, 1, gone=True), row(4, "y", 33), row(1, "c", 38)]},
]


def world(folder: Path, envelope: Envelope, store: ObjectStore) -> World:
    """The collection in an empty store, with all its files landed."""
    made = World(folder, collection(envelope), store)
    for day, files in enumerate(DAYS):
        for name, rows in files.items():
            made.land(day, name, rows)
    return made


def steps(folder: Path, days: int = len(DAYS)) -> Iterator[Step]:
    """The tasks of the runs of the first days, in order."""

    def ingested(day: int) -> Step:
        return lambda job: ingest(job, interval(day), landing_root=str(folder))

    for day in range(days):
        yield ingested(day)
        yield lambda job: certify(job, Gate.UNSEALED)
        if day == 1:
            yield lambda job: quarantine(job, job.log.load().state.pending[-1].id) if _is_in(job) else None
            yield lambda job: release(job, job.log.load().state.quarantined[-1].id) if not _is_in(job) else None
            yield lambda job: certify(job, Gate.UNSEALED)
        yield lambda job, day=day: seal(job, interval(day))
        yield lambda job: certify(job, Gate.FRONTIER)
        yield lambda job, day=day: drain(job, interval(day))
        yield lambda job: certify(job, Gate.TRACE)
        yield lambda job, day=day: compact(job, interval(day))
    yield ingested(0)


def _is_in(job: Job) -> bool:
    """Whether the batch of day 1 is in the collection: the test's own check, so that a repeat does not go on."""
    return not job.log.load().state.quarantined


def answers(made: World) -> list[Any]:
    """What a reader can see: every time, every event time, and the changes between."""
    store = Contents(made.truth).as_memory()
    state = made.log(store).load().state
    by_time = [
        as_of(store, state, time=time, event_time=event).to_pylist()
        for time in range(0, state.seal, 3)
        for event in (2, 4, 9, None)
    ]
    totals = state.totals
    counts = (totals.rows_ingested, totals.rows_late_applied, totals.rows_late_discarded)
    frontiers = (state.seal, state.trace_upper, [batch.level for batch in state.trace], len(state.pending))
    return [by_time, changes(store, state, after=-1).to_pylist(), counts, frontiers]
