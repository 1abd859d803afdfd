"""Collectors and writers at once, for real, with graces of a fraction of a second: slow writers are refused, none is
misled, and what was acknowledged is there."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest

from support.inprocess import InProcessRunner
from support.world import collection, interval
from tidemark.errors import RETRY_SAFE, TidemarkError
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import SECOND, collect
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Created, Ingested
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.collect import Graces
from tidemark.storage.log import log
from tidemark.storage.log.log import Committed, Lost, StateLog
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("nothing_is_small")]
WRITERS, INGESTS = 6, 15
VERSIONS, OBJECTS = 0.3, 0.8
"""Graces, in seconds; writers have half of them, as with the real ones."""


def fresh() -> str:
    return uuid4().hex


def state_log(store: ObjectStore) -> StateLog:
    return StateLog(store, fresh)


def ingested(store: ObjectStore, number: int, dice: random.Random) -> None:
    """As an ingest does: plan, write, wait a while, commit; again after all that a retry may help."""
    while True:
        try:
            made, fence = state_log(store), Fence("ingest", interval(number), fresh())
            base = made.load()
            assert isinstance(made.commit(base, Attempted(fence)), Committed)
            entry = LedgerEntry(f"{number:05}", 1, "0" * 64, "", interval(number), Status.INGESTED)
            run = ledger.save_run(store, f"ledger/{fresh()}.json", [entry])
            time.sleep(dice.choice([0, 0, 0.01, 0.1, OBJECTS / 2, OBJECTS]))
            outcome = made.commit(base, Ingested(fence, None, run))
            if isinstance(outcome, Lost):
                continue  # a step says so with an error that asks for a retry
            assert isinstance(outcome, Committed)
            return
        except TidemarkError as error:
            if error.exit_code != RETRY_SAFE:
                raise


def collecting(store: ObjectStore, done: Event) -> tuple[int, int]:
    """Run the collector again and again; how many versions and objects it removed."""
    removed = [0, 0]
    while not done.is_set():
        job = Job(store, state_log(store), lambda: InProcessRunner(store), fresh())
        graces = Graces(round(VERSIONS * SECOND), round(OBJECTS * SECOND))
        try:
            said = collect(job, keep=graces.versions, graces=graces).summary()
        except TidemarkError as error:
            if error.exit_code != RETRY_SAFE:
                raise
            continue
        removed[0] += said["versions_removed"]
        removed[1] += said["objects_removed"]
        time.sleep(0.02)
    return removed[0], removed[1]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_collectors_beside_writers_lose_nothing(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log, "STALL_LIMIT", VERSIONS / 2)
    monkeypatch.setattr(log, "PLAN_LIMIT", OBJECTS / 2)
    store: ObjectStore = MemoryStore() if kind == "memory" else LocalStore(str(tmp_path))
    made = state_log(store)
    made.commit(made.load(), Created(collection()))
    done = Event()

    def writer(number: int) -> None:
        dice = random.Random(number)
        for at in range(INGESTS):
            ingested(store, number * INGESTS + at, dice)

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        collectors = [pool.submit(collecting, store, done) for _ in range(2)]
        try:
            list(pool.map(writer, range(WRITERS)))
            time.sleep(OBJECTS)
        finally:
            done.set()
        removed = [sum(counts) for counts in zip(*(one.result() for one in collectors), strict=True)]
    state = made.load().state
    assert list(verify_history(made)) == []
    assert list(verify_objects(store, state)) == []
    known = [entry.path for entry in ledger.entries(store, state.ledger)]
    assert known == [f"{number:05}" for number in range(WRITERS * INGESTS)]
    assert removed[0] >= 16, "versions went meanwhile"
    assert removed[1] >= 5, "and what slow attempts wrote"
