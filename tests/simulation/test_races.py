"""Writers at once in threads: nothing is lost and nothing repeated. For processes see test_processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest

from support.stores import Stores
from support.world import World, certify, collection, interval
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Created
from tidemark.model.collection import Gate
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.stores.store import ObjectStore
from tidemark.storage.verify.collection import verify_history

pytestmark = pytest.mark.simulation
WRITERS, ROUNDS = 8, 6


def commit_all(store: ObjectStore, writer: int, start: Callable[[], object]) -> int:
    """Commit ROUNDS changes as one of many; the number of them that were new."""
    log = StateLog(store, lambda: uuid4().hex, str(writer))
    start()
    fresh = 0
    for number in range(ROUNDS):
        change = Attempted(Fence("drain", interval(writer * ROUNDS + number), "token"))
        outcome = log.commit(log.load(), change)
        fresh += isinstance(outcome, Committed) and outcome.fresh
    return fresh


def created(store: ObjectStore) -> ObjectStore:
    log = StateLog(store, lambda: uuid4().hex)
    log.commit(log.load(), Created(collection()))
    return store


def nothing_lost_or_repeated(store: ObjectStore, writers: int) -> None:
    log = StateLog(store, lambda: uuid4().hex)
    fences = [fence.interval for fence in log.load().state.fences]
    assert sorted(fences) == [interval(number) for number in range(writers * ROUNDS)]
    assert log.newest_version() == writers * ROUNDS + 1
    assert list(verify_history(log)) == []


def test_threads_that_commit_at_once(stores: Stores):
    store = created(stores())
    barrier = Barrier(WRITERS)
    with ThreadPoolExecutor(WRITERS) as pool:
        results = list(pool.map(lambda writer: commit_all(store, writer, barrier.wait), range(WRITERS)))
    assert results == [ROUNDS] * WRITERS
    nothing_lost_or_repeated(store, WRITERS)


def test_whole_runs_at_once_count_every_row_once(tmp_path: Path, stores: Stores):
    """Eight days ingested at once, twice each, while others gate, seal, drain and compact.

    Two runs of one day fence each other off, again and again where neither pauses: hence the many attempts."""
    world = World(tmp_path, collection(), stores())
    world.clock.pause = lambda seconds: None  # type: ignore[method-assign]
    for day in range(WRITERS):
        world.land(day, "a", [{"k": key, "v": "a", "t": day * 10 + key, "e": day * 10} for key in range(3)])

    def one(number: int) -> None:
        day = number % WRITERS
        world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)), attempts=200)
        world.run(lambda job: certify(job, Gate.UNSEALED), attempts=200)
        world.run(lambda job: seal(job, interval(day)), attempts=200)
        world.run(lambda job: drain(job, interval(day)), attempts=200)
        world.run(lambda job: compact(job, interval(day)), attempts=200)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(one, range(2 * WRITERS)))
    state = world.state
    assert state.totals.rows_ingested == 3 * WRITERS
    assert state.seal == WRITERS * 10
    world.run(lambda job: drain(job, interval(0)))
    assert world.state.trace_upper == WRITERS * 10
    assert sum(batch.rows for batch in world.state.trace) == 3 * WRITERS
    assert list(verify_history(world.log())) == []
