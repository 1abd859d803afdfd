"""What every object store promises, as tests: a subclass gives the `store` fixture."""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tidemark.errors import InvalidUsage
from tidemark.storage import open_store
from tidemark.storage.stores.store import AlreadyExists, Missing, ObjectStore


def keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return [info.key for info in store.list(prefix)]


class StoreLaws:
    """Laws of the protocol in storage/stores/store.py."""

    @pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 1000])
    def test_what_was_created_is_read(self, store: ObjectStore, data: bytes):
        store.create("a/b.json", data)
        assert store.read("a/b.json") == data
        info = store.stat("a/b.json")
        assert info is not None
        assert (info.key, info.bytes) == ("a/b.json", len(data))

    def test_the_second_create_changes_nothing(self, store: ObjectStore):
        store.create("a", b"first")
        for data in (b"second", b"first"):
            with pytest.raises(AlreadyExists):
                store.create("a", data)
        assert store.read("a") == b"first"
        assert keys(store) == ["a"]

    def test_a_missing_object_is_distinguished(self, store: ObjectStore):
        with pytest.raises(Missing):
            store.read("a/b")
        with pytest.raises(Missing):
            store.open_input("a/b")
        assert store.stat("a/b") is None
        assert keys(store, "a/") == []
        assert store.folders("a/") == []
        store.delete("a/b")

    def test_a_deleted_key_is_free_and_its_next_object_another(self, store: ObjectStore):
        store.create("a/b", b"one")
        before = store.stat("a/b")
        store.delete("a/b")
        assert store.stat("a/b") is None
        store.create("a/b", b"two")
        after = store.stat("a/b")
        assert before is not None
        assert after is not None
        assert before.token != after.token

    def test_an_object_says_when_it_appeared_by_the_store_s_clock(self, store: ObjectStore):
        store.create("a/1", b"1")
        with store.open_output("a/2") as sink:
            sink.write(b"1")
        listed = {info.key: info.modified for info in store.list("a/")}
        assert abs(listed["a/1"] - time.time()) < 60
        assert listed["a/1"] <= listed["a/2"] < listed["a/1"] + 60
        info = store.stat("a/1")
        assert info is not None
        assert abs(info.modified - listed["a/1"]) < 1, "S3 tells whole seconds in one of them"

    def test_nothing_is_unfinished_after_an_output(self, store: ObjectStore):
        with store.open_output("data/part") as sink:
            sink.write(b"1" * 100)
        assert list(store.unfinished()) == []

    def test_a_listing_is_by_prefix_at_any_depth_ascending(self, store: ObjectStore):
        for key in ("b/2", "b/10", "a/x/y", "a/x-y", "ab", "a/x/y.json"):
            store.create(key, b"1")
        assert keys(store) == ["a/x-y", "a/x/y", "a/x/y.json", "ab", "b/10", "b/2"]
        assert keys(store, "a/") == ["a/x-y", "a/x/y", "a/x/y.json"]
        assert keys(store, "a/x/y") == ["a/x/y", "a/x/y.json"]
        assert keys(store, "b/1") == ["b/10"]
        assert keys(store, "c") == []
        for prefix in ("", "a/", "a/x/y", "b/1", "c", "c/d/"):
            assert store.keys(prefix) == keys(store, prefix)

    def test_folders_are_the_immediate_ones(self, store: ObjectStore):
        for key in ("versions/1/a", "versions/1/b/c", "versions/0/x", "versions/file", "other/x"):
            store.create(key, b"1")
        assert store.folders("versions/") == ["0", "1"]
        assert store.folders("") == ["other", "versions"]

    def test_an_output_appears_whole_on_a_clean_exit(self, store: ObjectStore):
        with store.open_output("data/part") as sink:
            sink.write(b"PAR")
            assert keys(store) == []
            sink.write(b"1" * 100_000)
            assert store.stat("data/part") is None
        assert store.read("data/part") == b"PAR" + b"1" * 100_000
        assert keys(store) == ["data/part"]

    def test_an_output_left_on_an_error_never_appears(self, store: ObjectStore):
        class Interrupted(Exception):
            pass

        @contextmanager
        def writing() -> Iterator[None]:
            with store.open_output("data/part") as sink:
                sink.write(b"1" * 100_000)
                yield

        for error in (Interrupted("midway"), KeyboardInterrupt()):
            with pytest.raises(type(error)), writing():
                raise error
        gc.collect()
        assert keys(store) == []

    def test_what_fails_within_an_output_is_raised_as_it_is(self, store: ObjectStore):
        """A source file that is gone is not a missing object, whatever the store makes of such errors of its own."""
        for error in (
            FileNotFoundError(2, "gone", "source.csv"),
            PermissionError(13, "no", "source.csv"),
            OSError("io"),
        ):
            with pytest.raises(type(error)), store.open_output("data/part"):
                raise error
        assert keys(store) == []

    def test_an_input_is_read_at_random(self, store: ObjectStore):
        store.create("data/part", b"0123456789")
        with store.open_input("data/part") as source:
            assert source.size() == 10
            source.seek(7)
            assert source.read(2) == b"78"
            source.seek(0)
            assert source.read() == b"0123456789"

    @pytest.mark.parametrize("key", ["a b/ü–%41.json", "a+b=c&d", "x" * 200, "a/#1?x"])
    def test_any_name_is_taken_as_it_is(self, store: ObjectStore, key: str):
        store.create(key, b"1")
        assert store.read(key) == b"1"
        assert keys(store) == [key]
        assert keys(store, key) == [key]

    @pytest.mark.parametrize("key", ["../a", "a/../../b", "a/.."])
    def test_a_key_that_leaves_the_store_is_refused(self, store: ObjectStore, key: str):
        calls = (
            lambda: store.create(key, b"1"),
            lambda: store.read(key),
            lambda: store.stat(key),
            lambda: store.delete(key),
            lambda: store.open_input(key),
            lambda: store.open_output(key).__enter__(),
            lambda: list(store.list(key)),
            lambda: store.folders(key + "/"),
        )
        for call in calls:
            with pytest.raises(InvalidUsage, match="leaves the store"):
                call()

    def test_another_process_opens_the_same_store(self, store: ObjectStore):
        store.create("a", b"1")
        for other in (open_store(store.url), pickle.loads(pickle.dumps(store))):
            assert other.url == store.url
            assert other.read("a") == b"1"
