"""What a process remembers: within its bytes, the least recently used goes first, and only for who reads so."""

from __future__ import annotations

import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemark.errors import InvalidUsage
from tidemark.storage.cache import ENTRY_BYTES, OF_PROCESS, SHARE, Cache, CachedStore, cache_of, remembered, with_cache
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
EACH = 1000
"""Bytes of a value with its entry."""


def filled(names: str, limit: int) -> Cache:
    cache = Cache(limit)
    for name in names:
        cache.put(name, name.upper(), EACH - ENTRY_BYTES)
    return cache


def names_in(cache: Cache, among: str) -> str:
    return "".join(name for name in among if cache.get(name))


def test_what_was_used_least_recently_goes_first():
    cache = filled("abc", 3 * EACH)
    assert cache.get("a") == ("A", EACH)
    cache.put("d", "D", EACH - ENTRY_BYTES)
    assert names_in(cache, "abcd") == "acd"
    assert cache.bytes == 3 * EACH


def test_a_value_larger_than_the_cache_is_not_remembered_and_displaces_nothing():
    cache = filled("abc", 3 * EACH)
    cache.put("whale", "W", 3 * EACH)
    assert cache.get("whale") is None
    assert (names_in(cache, "abc"), cache.bytes) == ("abc", 3 * EACH)


def test_a_large_value_displaces_as_many_as_it_needs():
    cache = filled("abcd", 4 * EACH)
    cache.put("e", "E", 2 * EACH - ENTRY_BYTES)
    assert (names_in(cache, "abcde"), cache.bytes) == ("cde", 4 * EACH)


def test_threads_that_put_and_get_leave_it_consistent():
    cache = Cache(50 * EACH)

    def work(thread: int) -> None:
        for turn in range(3000):
            name = (thread * 31 + turn * 17) % 200
            found = cache.get(name)
            assert found is None or found[0] == name
            cache.put(name, name, EACH - ENTRY_BYTES)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    contained = [found for name in range(200) if (found := cache.get(name))]
    assert cache.bytes == sum(size for _, size in contained) <= 50 * EACH


def test_one_read_leaves_most_of_the_cache_to_others():
    """A scan of everything does not displace what others come back to."""
    cache = filled("abc", 100 * EACH)
    store = CachedStore(MemoryStore(), cache)
    for number in range(1000):
        store.keep(("scan", number), EACH - ENTRY_BYTES, lambda: "row")
    assert names_in(cache, "abc") == "abc"
    assert 0 < len(cache) - 3 <= 100 // SHARE * EACH / (EACH - ENTRY_BYTES)


def test_what_has_no_room_is_not_even_copied():
    store = CachedStore(MemoryStore(), Cache(EACH))
    store.keep("a", EACH, lambda: pytest.fail("made for nothing"))


def test_a_read_without_a_cache_makes_everything_again():
    made = []
    for _ in range(2):
        remembered(MemoryStore(), "name", lambda: made.append(1) or "value", lambda _: 1)
    assert len(made) == 2


def test_a_read_with_a_cache_makes_a_value_once():
    made = []
    for _ in range(2):
        store = CachedStore(MemoryStore(), OF_PROCESS)
        assert remembered(store, "name", lambda: made.append(1) or "value", lambda _: 1) == "value"
    assert len(made) == 1


def test_what_fails_is_not_remembered():
    store = CachedStore(MemoryStore(), OF_PROCESS)

    def fail() -> str:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        remembered(store, "name", fail, lambda _: 1)
    assert remembered(store, "name", lambda: "value", lambda _: 1) == "value"


def test_sent_to_another_process_it_is_the_plain_store():
    store = MemoryStore.named("memory://sent")
    with_one = with_cache(store)
    assert cache_of(with_one) is not None
    assert pickle.loads(pickle.dumps(with_one)) is store


def test_a_child_that_is_forked_in_the_middle_is_not_stuck():
    """The thread that had the lock is not in the child."""
    with OF_PROCESS._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)
            OF_PROCESS.put("a", "A", 1)
            os._exit(0 if OF_PROCESS.get("a") else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("text", ["lots", "-1", "1.5GiB", "64MB", "64 TiB", "iB", "MiB", "1e9", "٣"])
def test_a_setting_that_is_no_number_of_bytes_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIDEMARK_CACHE", text)
    with pytest.raises(InvalidUsage) as refused:
        with_cache(MemoryStore())
    assert str(refused.value) == f"TIDEMARK_CACHE is {text!r}; write bytes, such as 256MiB, or 0 for no cache"
