"""Versions that were collected: what can still be loaded, and writers that stood still around a create."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import pytest

from pure.storage.test_log import attempted, created, log_of
from support.faulty import Clock, InterruptedStore, LostAckStore, WrappedStore
from support.world import collection
from tidemark.errors import CommitUnknown, Contention, Corruption, InvalidUsage
from tidemark.model.change import Created
from tidemark.plan.collect import GarbagePlan
from tidemark.storage.log import plans
from tidemark.storage.log.head import COLLECTION_GRACE, PLAN_LIMIT, STALL_LIMIT
from tidemark.storage.log.log import Committed
from tidemark.storage.log.versions import key_of
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import Indeterminate, ObjectStore
from tidemark.storage.verify.collection import verify_history

GONE = 32


def collect(store: ObjectStore, below: int = GONE, *, upto: int | None = None) -> None:
    """As the collector does: a plan, then the versions below, oldest first; `upto` is how far it got."""
    plans.save(store, GarbagePlan(len(plans.listed(store)) + 1, 40, below))
    for number in range(1, below if upto is None else upto + 1):
        store.delete(key_of(number))


@cache
def forty() -> dict[str, bytes]:
    store = MemoryStore()
    created(store, 40)
    return store.objects


def collected(below: int = GONE, *, upto: int | None = None) -> MemoryStore:
    store = MemoryStore()
    store.objects = dict(forty())
    collect(store, below, upto=upto)
    return store


def test_what_is_retained_loads_and_what_is_not_is_refused_by_name():
    store = collected()
    log = log_of(store)
    assert log.oldest_version() == GONE
    assert len(log.load().state.fences) == 39
    assert [len(log.load(version).state.fences) for version in range(GONE, 41)] == list(range(GONE - 1, 40))
    for version in (1, 15, 16, 31):
        with pytest.raises(InvalidUsage, match=f"version {version} was collected; the oldest retained is 32"):
            log.load(version)
    assert [record.version for record in log.history()] == list(range(40, GONE - 1, -1))
    assert log.replay().version == 40
    assert list(verify_history(log)) == []


@pytest.mark.parametrize("upto", range(1, GONE))
def test_a_collector_that_died_midway_leaves_a_history_that_loads(upto: int):
    store = collected(upto=upto)
    log = log_of(store)
    assert log.oldest_version() == (GONE if upto >= 16 else 16)
    assert log.load(GONE).version == GONE
    assert log.load().version == 40
    assert list(verify_history(log)) == []
    committed = log.commit(log.load(), attempted(99))
    assert isinstance(committed, Committed)


def test_a_version_that_was_never_planned_to_go_is_corruption():
    for victim in (33, 36, 39):
        store = collected()
        store.delete(key_of(victim))
        [finding] = verify_history(log_of(store))
        assert finding.detail == f"version {victim} is missing below 40"
        with pytest.raises(Corruption, match=f"version {victim} is missing below 40"):
            log_of(store).load()
    store = MemoryStore()
    created(store, 40)
    store.delete(key_of(7))
    [finding] = verify_history(log_of(store))
    assert finding.detail == "version 7 is missing below 40"
    with pytest.raises(Corruption, match="version 7 is missing below 40"):
        log_of(store).load(9)


# A writer is frozen between its last look and its create. Meanwhile others create its number, supersede and collect it.


def meanwhile(store: MemoryStore, clock: Clock, seconds: float = 2 * COLLECTION_GRACE) -> Callable[[], None]:
    def others() -> None:
        clock.now += seconds
        log = log_of(store, "others")
        if not log.newest_version():
            log.commit(log.load(), Created(collection()))
        head = log.load()
        for number in range(50, 90):
            committed = log.commit(head, attempted(number))
            assert isinstance(committed, Committed)
            head = committed.head
        collect(store)

    return others


def setup(versions: int = 3) -> tuple[MemoryStore, Clock]:
    store = MemoryStore()
    if versions:
        created(store, versions)
    return store, Clock()


def undisturbed(store: MemoryStore) -> None:
    """Readers see what the others committed, and nothing else."""
    log = log_of(store)
    assert [fence.interval.lower // 10 for fence in log.load().state.fences] == [0, 1, *range(50, 90)]
    assert [record.writer for record in log.history()] == ["others"] * (43 - GONE + 1)
    assert list(verify_history(log)) == []
    for version in range(1, GONE):
        with pytest.raises(InvalidUsage, match=f"version {version} was collected"):
            log.load(version)


def test_frozen_before_the_create_of_a_number_that_was_collected():
    """The create succeeds: what it made is a stray, and its writer says so instead of having committed."""
    store, clock = setup()
    log = log_of(InterruptedStore(store, "create", meanwhile(store, clock), after=False), clock=clock)
    with pytest.raises(Contention, match="version 4 was created after a stall, when the newest was 43, and is none of"):
        log.commit(log.load(), attempted(7))
    assert key_of(4) in store.objects
    undisturbed(store)


@pytest.mark.parametrize("version", [1, 4, 16, 31])
def test_no_stray_misleads_a_reader_whatever_its_number(version: int):
    """Not even one that holds a checkpoint, or the first version, or the number just below the oldest."""
    store, clock = setup(version - 1)
    change = attempted(700) if version > 1 else Created(collection())
    log = log_of(InterruptedStore(store, "create", meanwhile(store, clock), after=False), clock=clock)
    base = log.load()
    with pytest.raises(Contention, match=f"version {version} was created after a stall"):
        log.commit(base, change)
    assert key_of(version) in store.objects
    log = log_of(store)
    assert log.load().version == log.newest_version() >= 40
    assert {record.writer for record in log.history()} == {"others"}
    assert log.oldest_version() == GONE
    with pytest.raises(InvalidUsage, match=f"version {version} was collected; the oldest retained is {GONE}"):
        log.load(version)
    assert list(verify_history(log)) == []


def test_a_stray_that_holds_a_checkpoint_beside_what_follows_it_is_not_taken_for_the_oldest():
    """The collector died just after number 16, and 16 was created again: only the hash in 17 shows it."""
    store = collected(upto=16)
    other = MemoryStore()
    created(other, 15)
    log = log_of(other, "stray")
    log.commit(log.load(), attempted(77))
    store.create(key_of(16), other.read(key_of(16)))
    log = log_of(store)
    assert log.oldest_version() == GONE
    assert list(verify_history(log)) == []
    assert [record.version for record in log.history()] == list(range(40, 16, -1))
    for version in (16, 17, 31):
        with pytest.raises(InvalidUsage, match="the oldest retained is 32"):
            log.load(version)


def test_a_second_frozen_writer_is_not_misled_by_the_stray_of_the_first():
    store, clock = setup()
    second = log_of(store, "second", clock)
    seen = second.load()
    first = log_of(InterruptedStore(store, "create", meanwhile(store, clock), after=False), clock=clock)
    with pytest.raises(Contention):
        first.commit(first.load(), attempted(7))
    with pytest.raises(Contention, match="version 5 was collected during a stall"):
        second.commit(seen, attempted(7))
    undisturbed(store)


@pytest.mark.parametrize("error", [Indeterminate, ConnectionError])
def test_a_stray_whose_create_was_not_answered_is_no_commit(error: type[Exception]):
    store, clock = setup()
    inner = InterruptedStore(store, "create", meanwhile(store, clock), after=False)
    log = log_of(LostAckStore(inner, error), clock=clock)
    with pytest.raises((CommitUnknown, ConnectionError)):
        log.commit(log.load(), attempted(7))
    undisturbed(store)


class FreezingStore(WrappedStore):
    """Stands still at the `nth` call, before its effect or after."""

    def __init__(self, inner: ObjectStore, nth: int, others: Callable[[], None], *, after: bool) -> None:
        super().__init__(inner)
        self.left, self.others, self.after = nth, others, after

    def _call(self, name: str, key: str, action: Callable[[], Any], *, writes: bool) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            self.others()
        try:
            return action()
        finally:
            if self.left == 0 and self.after:
                self.others()


@pytest.mark.parametrize("after", [False, True])
def test_frozen_at_any_call_of_a_load_and_a_commit(after: bool):
    """Whatever call it stands still at: it commits after the others, or says that it may not have committed."""
    outcomes = []
    for nth in count(1):
        store, clock = setup(20)
        freezing = FreezingStore(store, nth, meanwhile(store, clock), after=after)
        log = log_of(freezing, clock=clock)
        try:
            committed = log.commit(log.load(), attempted(700))
        except (Contention, CommitUnknown) as error:
            outcomes.append(error.kind)
        else:
            assert isinstance(committed, Committed)
            outcomes.append(str(committed.head.version))
            assert [fence.interval.lower // 10 for fence in log_of(store).load().state.fences][-1] == 700
        reader = log_of(store)
        if freezing.left <= 0:
            assert [record.writer for record in reader.history(60)] == ["others"] * (60 - GONE + 1)
        assert list(verify_history(reader)) == []
        if freezing.left > 0:
            break
    assert {"Contention", "61", "21"} <= set(outcomes)
    assert after is ("CommitUnknown" in outcomes)


def test_a_load_whose_version_is_collected_under_it_starts_over():
    store, clock = setup(20)
    log = log_of(InterruptedStore(store, "keys", meanwhile(store, clock), after=True), clock=clock)
    assert log.load().version == 60


def test_what_was_planned_half_a_day_ago_is_not_committed():
    """On a quiet collection too: what the attempt wrote may have been collected."""
    store, clock = setup()
    log = log_of(store, clock=clock)
    base = log.load()
    clock.now += PLAN_LIMIT + 1
    with pytest.raises(Contention, match="planned more than 12 h ago, at version 3"):
        log.commit(base, attempted(7))
    assert log.newest_version() == 3


def test_planned_half_a_day_ago_counts_from_the_plan_not_from_the_last_look():
    store, clock = setup()
    log = log_of(store, clock=clock)
    base = log.load()
    for _ in range(30):
        clock.now += STALL_LIMIT
        log_of(store, "others").commit(log_of(store).load(), attempted(int(clock.now)))
        log.load()
    with pytest.raises(Contention, match="planned more than 12 h ago"):
        log.commit(base, attempted(7))
