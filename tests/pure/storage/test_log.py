"""The state log: races, lost replies, stalls (SlateDB's RFC 0026), and a history that proves itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from support.faulty import Clock, Fault, FaultyStore, InterruptedStore, LostAckStore, WrappedStore
from support.stores import Stores
from support.world import collection, interval
from tidemark.errors import CommitUnknown, Contention, Corruption, Fenced, InvalidUsage
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Created, Sealed
from tidemark.model.transition import Stale
from tidemark.storage.log.log import (
    ATTEMPTS,
    CHECKPOINT_EVERY,
    COLLECTION_GRACE,
    STALL_LIMIT,
    Committed,
    Head,
    StateLog,
)
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, ObjectStore, Unavailable, Unwritable
from tidemark.storage.verify.collection import verify_history

T = TypeVar("T")


class Ids:
    def __init__(self, prefix: str) -> None:
        self.prefix, self.given = prefix, 0

    def __call__(self) -> str:
        self.given += 1
        return f"{self.prefix}{self.given}"


def log_of(store: ObjectStore, writer: str = "a", clock: Clock | None = None) -> StateLog:
    clock = clock or Clock()
    return StateLog(store, Ids(writer), writer, wall=lambda: 0.0, monotonic=clock, pause=clock.pause)


def attempted(number: int) -> Attempted:
    return Attempted(Fence("drain", interval(number), "token"))


def created(store: ObjectStore, versions: int = 1, writer: str = "setup") -> StateLog:
    log = log_of(store, writer)
    log.commit(log.load(), Created(collection()))
    for number in range(versions - 1):
        log.commit(log.load(), attempted(number))
    return log


def remove_up_to(store: ObjectStore, version: int) -> None:
    """As the collector will: oldest first, never the head."""
    for key in [info.key for info in store.list("versions/")]:
        if int(key.rpartition("/")[2].removesuffix(".json")) <= version:
            store.delete(key)


def fences(store: ObjectStore) -> list[int]:
    return [fence.interval.lower // 10 for fence in log_of(store).load().state.fences]


def test_every_commit_is_one_version_and_every_version_can_be_loaded(stores: Stores):
    log = created(stores(), 40)
    assert [len(log.load(version).state.fences) for version in range(1, 41)] == list(range(40))
    assert [record.version for record in log.history()] == list(range(40, 0, -1))


class Asked(WrappedStore):
    """Notes what is asked of a store."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.asked: list[str] = []

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        self.asked.append(f"{name} {key}")
        return super()._call(name, key, action, writes=writes)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_second_load_asks_for_what_came_since_and_nothing_else(stores: Stores, others: int):
    store = stores()
    another, asked = created(store, 20), Asked(store)
    log = log_of(asked)
    log.load()
    for number in range(others):
        another.commit(another.load(), attempted(40 + number))
    asked.asked.clear()
    assert log.load() == log_of(store).load()
    assert asked.asked == [f"read versions/00000000/{version:012d}.json" for version in range(20, 22 + others)]


def test_what_a_log_committed_it_need_not_read(stores: Stores):
    store = Asked(stores())
    log = created(store, 20)
    store.asked.clear()
    assert len(log.load().state.fences) == 19
    assert store.asked == [f"read versions/00000000/{version:012d}.json" for version in (20, 21)]


@pytest.mark.parametrize("versions", [0, 2, 5, 40])
def test_a_collection_that_was_removed_and_made_again_is_seen(stores: Stores, versions: int):
    store = stores()
    created(store, 5)
    log = log_of(store)
    log.load()
    for key in store.keys("versions/"):
        store.delete(key)
    if versions:
        created(store, versions, writer="another")
    assert log.load() == log_of(store).load()


def test_after_a_stall_the_newest_is_looked_up_however_much_was_collected(stores: Stores):
    store, clock = stores(), Clock()
    created(store, CHECKPOINT_EVERY - 10)
    log = log_of(store, clock=clock)
    log.load()
    others(store, clock)
    assert store.keys("versions/") == ["versions/00000000/000000000016.json"]
    assert log.load() == log_of(store, clock=clock).load()


def test_a_stall_within_a_second_load_is_noticed(stores: Stores):
    """The next version was created and collected while it was being asked for."""
    store, clock = stores(), Clock()
    created(store, CHECKPOINT_EVERY - 10)
    interrupted = InterruptedStore(store, "read", lambda: others(store, clock), after=False)
    interrupted.interrupted = True
    log = log_of(interrupted, clock=clock)
    log.load()
    interrupted.interrupted = False
    assert log.load() == log_of(store, clock=clock).load()


@pytest.mark.parametrize("version", [-1, 0, 4])
def test_a_version_that_is_not_there_is_refused(stores: Stores, version: int):
    with pytest.raises(InvalidUsage, match=f"no version {version}; the newest is 3"):
        created(stores(), 3).load(version)


def test_the_loser_of_a_race_folds_what_the_winner_did_and_commits_after_it(stores: Stores):
    store = stores()
    base = created(store).load()
    one, two = log_of(store, "one"), log_of(store, "two")
    assert isinstance(one.commit(base, attempted(1)), Committed)
    committed = two.commit(base, attempted(2))
    assert isinstance(committed, Committed)
    assert committed.head.version == 3
    assert fences(store) == [1, 2]


def test_the_same_change_again_is_no_new_version(stores: Stores):
    log = created(stores())
    base = log.load()
    first, second = log.commit(base, attempted(1)), log.commit(base, attempted(1))
    assert isinstance(first, Committed)
    assert isinstance(second, Committed)
    assert (first.fresh, second.fresh, second.head.version) == (True, False, 2)


@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_a_lost_reply_is_found_to_be_one_s_own(stores: Stores, error: type[Exception]):
    store = stores()
    created(store)
    lossy = LostAckStore(store, error)
    log = log_of(lossy)
    committed = log.commit(log.load(), attempted(1))
    assert isinstance(committed, Committed)
    assert committed.fresh
    assert (lossy.lost, log.newest_version()) == (1, 2)


class SilentStore(LostAckStore):
    """Creates neither land nor fail."""

    def create(self, key: str, data: bytes) -> None:
        raise Indeterminate(key)


def test_a_store_that_never_says_gives_commit_unknown(stores: Stores):
    store = stores()
    created(store)
    log = log_of(SilentStore(store))
    with pytest.raises(CommitUnknown, match="version 2"):
        log.commit(log.load(), attempted(1))


def test_too_many_lost_races_give_contention(stores: Stores):
    store = stores()
    created(store)

    class Unlucky(FaultyStore):
        def create(self, key: str, data: bytes) -> None:
            created_by_other = log_of(store, f"other{self.calls}")
            created_by_other.commit(created_by_other.load(), attempted(100 + self.calls))
            super().create(key, data)

    log = log_of(Unlucky(store))
    with pytest.raises(Contention, match=f"lost {ATTEMPTS} races"):
        log.commit(log.load(), Sealed(1, 1, 1))


class Refusing(WrappedStore):
    """Takes no new version: each create fails with `answer`."""

    def __init__(self, inner: ObjectStore, *answers: Exception) -> None:
        super().__init__(inner)
        self.answers, self.creates = list(answers), 0

    def create(self, key: str, data: bytes) -> None:
        self.creates += 1
        raise self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_a_full_disk_is_said_at_once_and_is_no_lost_race(stores: Stores):
    inner = stores()
    created(inner)
    full = Refusing(inner, Unwritable("versions/0/2.json: No space left on device"))
    log = log_of(full)
    with pytest.raises(Unwritable, match="No space left on device"):
        log.commit(log.load(), attempted(1))
    assert full.creates == 1
    assert fences(inner) == []


def test_a_disk_that_fills_up_after_an_unsure_answer_leaves_the_commit_unknown(stores: Stores):
    inner = stores()
    created(inner)
    log = log_of(Refusing(inner, Indeterminate("timed out"), Unwritable("2.json: Read-only file system")))
    with pytest.raises(CommitUnknown, match="Read-only file system"):
        log.commit(log.load(), attempted(1))


def test_a_store_that_refuses_all_the_time_is_named_not_called_a_race(stores: Stores):
    inner = stores()
    created(inner)
    log = log_of(Refusing(inner, Unavailable("2.json: SlowDown")))
    with pytest.raises(Unavailable, match="SlowDown"):
        log.commit(log.load(), attempted(1))


def test_a_newer_attempt_fences_the_older_off(stores: Stores):
    store = stores()
    log = created(store)
    drain = Fence("drain", interval(0), "old")
    log.commit(log.load(), Attempted(drain))
    log.commit(log.load(), Attempted(Fence("drain", interval(0), "new")))
    from tidemark.model.batch import Description, TraceBatch
    from tidemark.model.change import Drained

    with pytest.raises(Fenced, match="new"):
        log.commit(log.load(), Drained(drain, TraceBatch("x", Description(0, 10), 0, 0, 0, 0)))


# Stalls. A writer stands still; meanwhile others commit and a collector removes old versions, so that the number it is
# about to create is free again. It must not take it.


def others(store: ObjectStore, clock: Clock, seconds: float = 2 * COLLECTION_GRACE) -> None:
    clock.now += seconds
    log = log_of(store, "others")
    for number in range(50, 60):
        log.commit(log.load(), attempted(number))
    remove_up_to(store, log.newest_version() - 1 if log.newest_version() % CHECKPOINT_EVERY == 0 else 5)


def refused(store: ObjectStore, stalled: StateLog, base: Head) -> None:
    before = written_by_a(store)
    with pytest.raises((Contention, Corruption)):
        stalled.commit(base, attempted(9))
    assert written_by_a(store) <= before


def written_by_a(store: ObjectStore) -> set[str]:
    return {info.key for info in store.list("") if b'"writer":"a"' in store.read(info.key)}


def test_stalled_between_load_and_commit(stores: Stores):
    store, clock = stores(), Clock()
    created(store, 3)
    log = log_of(store, clock=clock)
    base = log.load()
    others(store, clock)
    refused(store, log, base)


@pytest.mark.parametrize("after", [False, True])
def test_stalled_while_loading(stores: Stores, after: bool):
    """Between the listing that found the newest version and the reading of it, or just after the reading."""
    store, clock = stores(), Clock()
    created(store, 3)
    log = log_of(InterruptedStore(store, "keys", lambda: others(store, clock), after=True), clock=clock)
    try:
        base = log.load()
    except Corruption:
        return
    refused(store, log, base)


def test_stalled_after_reading_the_head(stores: Stores):
    store, clock = stores(), Clock()
    created(store, 1)
    log = log_of(InterruptedStore(store, "read", lambda: others(store, clock), after=True), clock=clock)
    refused(store, log, log.load())


def test_stalled_after_folding_what_others_did(stores: Stores):
    store, clock = stores(), Clock()
    setup = created(store, 1)
    log = log_of(store, clock=clock)
    base = log.load()
    setup.commit(setup.load(), attempted(7))
    interrupted = InterruptedStore(store, "read", lambda: others(store, clock), after=True)
    refused(store, log_of(interrupted, clock=clock), base)


def test_stalled_after_a_create_of_one_s_own(stores: Stores):
    store, clock = stores(), Clock()
    created(store, 1)
    interrupted = InterruptedStore(store, "create", lambda: others(store, clock), after=True)
    log = log_of(interrupted, clock=clock)
    with pytest.raises(CommitUnknown, match="version 2 was created after a stall, when the newest was 12, and was col"):
        log.commit(log.load(), attempted(7))
    refused(store, log, Head(2, "", None, 1000.0))


def test_a_version_was_seen_when_its_create_was_asked_for_not_when_that_was_answered(stores: Stores):
    store, clock = stores(), Clock()
    created(store)
    asked = clock.now

    def slowly() -> None:
        clock.now += STALL_LIMIT / 2

    log = log_of(InterruptedStore(store, "create", slowly, after=True), clock=clock)
    committed = log.commit(log.load(), attempted(7))
    assert isinstance(committed, Committed)
    assert committed.head.seen_at == asked < clock.now


def test_a_long_step_on_a_quiet_collection_commits(stores: Stores):
    """Nobody else wrote for hours: having looked again, the writer knows so."""
    store, clock = stores(), Clock()
    created(store, 3)
    log = log_of(store, clock=clock)
    base = log.load()
    clock.now += 3 * STALL_LIMIT
    committed = log.commit(base, attempted(9))
    assert isinstance(committed, Committed)
    assert committed.fresh


def test_a_long_step_on_a_busy_collection_commits_after_what_others_did(stores: Stores):
    store, clock = stores(), Clock()
    setup = created(store, 3)
    log = log_of(store, clock=clock)
    base = log.load()
    clock.now += 3 * STALL_LIMIT
    setup.commit(setup.load(), attempted(5))
    assert isinstance(log.commit(base, attempted(9)), Committed)
    assert fences(store) == [0, 1, 5, 9]


def test_collected_while_catching_up_after_a_stall(stores: Stores):
    """The next version is still there, the one after it is collected between two reads."""
    store, clock = stores(), Clock()
    created(store, 1)
    log = log_of(store, clock=clock)
    base = log.load()
    clock.now += 2 * STALL_LIMIT
    others_log = log_of(store, "others")
    for number in range(50, 60):
        others_log.commit(others_log.load(), attempted(number))
    collecting = InterruptedStore(store, "read", lambda: remove_up_to(store, 5), after=True)
    refused(store, log_of(collecting, clock=clock), base)


# Faults of single calls.


@pytest.mark.parametrize("after", [False, True])
def test_any_refused_or_unanswered_call_of_a_commit_is_tried_again(stores: Stores, after: bool):
    nth = 0
    while True:
        nth += 1
        store = stores()
        created(store, 20)
        faulty = FaultyStore(store, Fault(nth, after, dies=False))
        log = log_of(faulty)
        committed = log.commit(log.load(), attempted(77))
        assert isinstance(committed, Committed)
        assert committed.fresh
        assert log.newest_version() == 21
        if faulty.fired is None:
            break
    assert nth == 2 if after else nth > 5


# Storage that does not hold what was written.


def tamper(store: ObjectStore, key: str, written: bytes, other: bytes) -> None:
    """Change what an object holds."""
    data = store.read(key)
    assert written in data
    put(store, key, data.replace(written, other))


def put(store: ObjectStore, key: str, data: bytes) -> None:
    """Put another object in the place of one."""
    store.delete(key)
    store.create(key, data)


def test_a_tampered_version_is_found_wherever_it_is(stores: Stores):
    store = stores()
    log = created(store, 41)
    for version in range(1, 41):
        key = f"versions/00000000/{version:012d}.json"
        tamper(store, key, b'"written_at":0', b'"written_at":1')
        assert [finding.rule for finding in verify_history(log)] == ["history"], f"version {version}"
        tamper(store, key, b'"written_at":1', b'"written_at":0')


def test_a_tampered_checkpoint_is_found(stores: Stores):
    store = stores()
    log = created(store, CHECKPOINT_EVERY)
    key = f"versions/00000000/{CHECKPOINT_EVERY:012d}.json"
    tamper(store, key, b'"seal":0', b'"seal":7')
    assert list(verify_history(log))


def test_a_sound_history_verifies(stores: Stores):
    assert list(verify_history(created(stores(), 50))) == []


def test_a_gap_is_corruption(stores: Stores):
    store = stores()
    created(store, 5)
    store.delete("versions/00000000/000000000003.json")
    with pytest.raises(Corruption, match="version 3 is missing below 5"):
        log_of(store).load()


def test_stale_is_an_answer(stores: Stores):
    store = stores()
    log = created(store)
    from tidemark.model.arrangement import LedgerRun
    from tidemark.model.batch import ObjectRef
    from tidemark.model.change import LedgerMerged

    run = LedgerRun(ObjectRef("ledger/1.json", 1, "0"), 1, "a", "a")
    assert isinstance(log.commit(log.load(), LedgerMerged(("ledger/0.json",), run)), Stale)
