"""Writers, readers and two collectors at once over a wire that loses, cuts and slows answers: what was acknowledged is
there, whatever was collected, and nobody reads less than was acknowledged before.

Graces are seconds here, as S3 says when an object appeared in whole ones.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event

import pytest

from support.inprocess import InProcessRunner
from support.stores import Stores
from support.trouble import CONFLICT, CUT_BODY, INTERNAL_ERROR, LOST_REPLY, LOST_REQUEST, SLOW_DOWN, Proxy, Trouble
from support.wire import Message
from support.world import collection, interval
from tidemark.errors import RETRY_SAFE, TidemarkError
from tidemark.jobs.job import Job, fresh_id
from tidemark.jobs.steps.collect import SECOND, collect
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Created, Ingested
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.collect import Graces
from tidemark.storage.log import log
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.store import Indeterminate, ObjectStore
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = [pytest.mark.s3, pytest.mark.usefixtures("nothing_is_small", "no_waiting"), pytest.mark.timeout(120)]

WRITERS, READERS, COLLECTORS = 4, 2, 2
WRITING, WAITING = 8.0, 20.0
"""Seconds for which is written, and at most after that until something was collected."""
VERSIONS, OBJECTS = 3.0, 4.0
"""Graces in seconds; writers have half of them, as with the real ones."""
SLOW = Trouble("slow", wait=0.2)
WRITES = [LOST_REQUEST, LOST_REPLY, SLOW_DOWN, INTERNAL_ERROR, CONFLICT, SLOW]
LOOKS = [LOST_REPLY, CUT_BODY, INTERNAL_ERROR, SLOW]


def state_log(store: ObjectStore) -> StateLog:
    return StateLog(store, fresh_id)


class Crowd:
    """What everybody did. Numbers of ingests are those of intervals, each tried by one writer until it is committed."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.done = Event()
        self.acknowledged: list[int] = []
        self.tried: set[int] = set()
        self.seen: Counter[str] = Counter()

    def write(self, writer: int) -> None:
        dice, at, end = random.Random(writer), 0, time.monotonic() + WRITING
        while time.monotonic() < end:
            number = writer * 1000 + at
            self.tried.add(number)
            if self.retrying(lambda number=number: self.ingest(number, dice)):
                self.acknowledged.append(number)
                at += 1

    def ingest(self, number: int, dice: random.Random) -> None:
        """As an ingest does: plan, write, wait a while, commit."""
        made, fence = state_log(self.store), Fence("ingest", interval(number), fresh_id())
        base = made.load()
        assert isinstance(made.commit(base, Attempted(fence)), Committed)
        entry = LedgerEntry(f"{number:05}", 1, "0" * 64, "", interval(number), Status.INGESTED)
        run = ledger.save_run(self.store, f"ledger/{fresh_id()}.json", [entry])
        time.sleep(dice.choice([0, 0, 0, 0.1, OBJECTS / 2 + 0.1]))
        assert isinstance(made.commit(base, Ingested(fence, None, run)), Committed)

    def read(self, reader: int) -> None:
        while not self.done.is_set():
            self.retrying(self.look)

    def look(self) -> None:
        before = [*self.acknowledged]
        state = state_log(self.store).load().state
        known = {entry.path for entry in ledger.entries(self.store, state.ledger)}
        assert {f"{number:05}" for number in before} <= known
        self.seen["read"] += 1

    def collect(self, collector: int) -> None:
        graces = Graces(round(VERSIONS * SECOND), round(OBJECTS * SECOND))
        while not self.done.is_set():
            self.retrying(lambda: self.swept(graces))
            time.sleep(0.1)

    def swept(self, graces: Graces) -> None:
        job = Job(self.store, state_log(self.store), lambda: InProcessRunner(self.store), fresh_id())
        said = collect(job, keep=graces.versions, graces=graces).summary()
        self.seen["versions removed"] += said["versions_removed"]
        self.seen["objects removed"] += said["objects_removed"]

    def retrying(self, call: Callable[[], None]) -> bool:
        """Whether the call came to its end; not if a retry is what helps."""
        try:
            call()
        except TidemarkError as error:
            if error.exit_code != RETRY_SAFE:
                raise
            self.seen[error.kind] += 1
            return False
        except Indeterminate:
            self.seen["in doubt"] += 1
            return False
        return True

    def waited(self) -> None:
        """Until a collector has removed versions, and what no version names."""
        end = time.monotonic() + WAITING
        while time.monotonic() < end and not (self.seen["versions removed"] and self.seen["objects removed"]):
            time.sleep(0.1)


def seldom_well() -> Callable[[Message], Trouble | None]:
    """Every so many requests meet trouble, of one kind after the other."""
    changing, looking = count(1), count(1)

    def script(request: Message) -> Trouble | None:
        changes = request.method in ("PUT", "DELETE")
        turn, left = divmod(next(changing if changes else looking), 7 if changes else 40)
        kinds = WRITES if changes else LOOKS
        return None if left else kinds[turn % len(kinds)]

    return script


def test_slow_and_lost_answers_beside_collectors_and_readers_lose_nothing(
    wire: Proxy, stores: Stores, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log, "STALL_LIMIT", VERSIONS / 2)
    monkeypatch.setattr(log, "PLAN_LIMIT", OBJECTS / 2)
    wire.arm(None)
    store = stores()
    made = state_log(store)
    made.commit(made.load(), Created(collection()))
    crowd = Crowd(store)
    wire.arm(seldom_well())
    with ThreadPoolExecutor(WRITERS + READERS + COLLECTORS) as pool:
        others = [pool.submit(crowd.read, number) for number in range(READERS)]
        others += [pool.submit(crowd.collect, number) for number in range(COLLECTORS)]
        try:
            list(pool.map(crowd.write, range(WRITERS)))
            crowd.waited()
        finally:
            crowd.done.set()
        for one in others:
            one.result()
    troubled = {name.partition(": ")[2] for name in wire.troubled}
    wire.arm(None)
    state = state_log(store).load().state
    assert list(verify_history(state_log(store))) == []
    assert list(verify_objects(store, state)) == []
    known = [int(entry.path) for entry in ledger.entries(store, state.ledger)]
    assert len(known) == len(set(known)), "counted twice"
    assert set(crowd.acknowledged) <= set(known) <= crowd.tried
    assert troubled >= {str(trouble) for trouble in WRITES}
    assert min(crowd.seen[what] for what in ("read", "versions removed", "objects removed")) > 0, crowd.seen
