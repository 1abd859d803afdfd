"""The laws of stores in memory and on a file system, and what the latter promises beyond."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from support.store_laws import StoreLaws, keys
from tidemark.errors import InvalidUsage
from tidemark.storage import open_store
from tidemark.storage.stores.local import TEMPORARY, LocalStore, translated
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, ObjectStore, Unavailable, Unwritable

NAMES = count()


class TestMemoryStore(StoreLaws):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return open_store(f"memory://laws-{next(NAMES)}")

    def test_a_nameless_store_does_not_travel(self):
        with pytest.raises(TypeError, match="memory://name"):
            MemoryStore().__reduce__()


class TestLocalStore(StoreLaws):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(str(tmp_path / "root"))

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
    def test_what_a_person_must_mend_is_distinguished_from_what_passes_by_itself(self, number: int):
        with pytest.raises(Unwritable, match=f"a/b: {os.strerror(number)}"), translated("a/b"):
            raise OSError(number, os.strerror(number))

    def test_a_file_being_written_or_left_by_a_crash_is_no_object(self, store: LocalStore):
        store.create("a/b", b"1")
        (store.root / "a" / f"{TEMPORARY}x").write_bytes(b"half")
        assert keys(store) == ["a/b"]
        assert store.folders("") == ["a"]

    def test_what_a_killed_writer_left_is_listed_and_can_be_discarded(self, store: LocalStore):
        store.create("a/b", b"1")
        (store.root / "a" / f"{TEMPORARY}x").write_bytes(b"half")
        [left] = store.unfinished()
        assert (left.key, left.bytes) == (f"a/{TEMPORARY}x", 4)
        assert abs(left.modified - time.time()) < 60
        store.discard(left)
        store.discard(left)
        assert list(store.unfinished()) == []
        assert keys(store) == ["a/b"]

    def test_a_folder_goes_with_its_last_object_and_comes_back(self, store: LocalStore):
        store.create("data/a/1", b"1")
        store.create("data/a/2", b"2")
        store.delete("data/a/1")
        assert store.folders("data/") == ["a"]
        store.delete("data/a/2")
        assert store.folders("data/") == []
        store.create("data/a/3", b"3")
        assert keys(store) == ["data/a/3"]

    def test_a_folder_that_goes_while_one_writes_into_it_is_made_again(self, store: LocalStore, monkeypatch):
        store.create("data/a/1", b"1")
        real, left = os.open, [0, 1, 2]

        def late(path: object, *options: int) -> int:
            if TEMPORARY in str(path) and left.pop() == 2:
                store.delete("data/a/1")
            return real(path, *options)

        monkeypatch.setattr(os, "open", late)
        store.create("data/a/2", b"2")
        assert keys(store) == ["data/a/2"]
        assert left == [0], "made again"

    def test_no_temporary_file_stays(self, store: LocalStore):
        store.create("a/b", b"1")
        with pytest.raises(Exception, match="a/b"):
            store.create("a/b", b"2")
        with store.open_output("a/c") as sink:
            sink.write(b"1")
        with pytest.raises(ZeroDivisionError), store.open_output("a/d"):
            raise ZeroDivisionError
        assert sorted(path.name for path in store.root.rglob("*")) == ["a", "b", "c"]

    def test_file_and_folders_are_synced_before_a_write_returns(self, store: LocalStore, monkeypatch):
        synced: list[str] = []
        real = os.fsync

        def noting(handle: int) -> None:
            synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
            real(handle)

        monkeypatch.setattr(os, "fsync", noting)
        store.root.mkdir()
        store.create("a/b/c", b"1")
        root = str(store.root)
        assert synced[:2] == [root, f"{root}/a"], "new folders, each in its parent"
        assert TEMPORARY in synced[2], "the file, before it gets its name"
        assert synced[3:] == [f"{root}/a/b"], "its name"
        synced.clear()
        with store.open_output("a/b/d") as sink:
            sink.write(b"1")
        assert TEMPORARY in synced[0]
        assert synced[1:] == [f"{root}/a/b"]

    def test_a_full_disk_is_unavailable_and_leaves_nothing(self, store: LocalStore, monkeypatch):
        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        store.create("a/x", b"1")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(Unavailable, match="No space left"):
            store.create("a/b", b"1")
        with pytest.raises(Unavailable, match="No space left"), store.open_output("a/c") as sink:
            sink.write(b"1")
        assert sorted(path.name for path in store.root.rglob("*")) == ["a", "x"]

    @pytest.mark.parametrize("how", ["create", "output"])
    def test_a_name_that_may_not_last_is_indeterminate(self, store: LocalStore, monkeypatch, how: str):
        """The object is there, and nobody can say whether it survives a power cut."""
        store.create("a/x", b"1")
        real = os.fsync

        def no_folders(handle: int) -> None:
            if Path(f"/proc/self/fd/{handle}").is_dir():
                raise OSError(errno.EIO, "Input/output error")
            real(handle)

        monkeypatch.setattr(os, "fsync", no_folders)
        if how == "create":
            with pytest.raises(Indeterminate, match="Input/output error"):
                store.create("a/b", b"1")
        else:
            with pytest.raises(Indeterminate, match="Input/output error"), store.open_output("a/b") as sink:
                sink.write(b"1")

    def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(self, store: LocalStore, monkeypatch):
        """Versions that cannot be seen must not look like a collection that was never created."""
        store.create("versions/0/1", b"1")
        real = os.scandir

        def broken(path: object) -> object:
            if str(path).endswith("versions/0"):
                raise OSError(errno.EIO, "Input/output error", str(path))
            return real(path)

        monkeypatch.setattr(os, "scandir", broken)
        with pytest.raises(Unavailable, match="Input/output error"):
            list(store.list("versions/0/"))

    @pytest.mark.parametrize("look", ["read", "open_input"])
    def test_a_fifo_in_place_of_an_object_is_refused_at_once(self, store: LocalStore, look: str):
        """In a process of its own: one that waits for a writer does not come back."""
        store.create("versions/0/1", b"1")
        os.mkfifo(store.root / "versions/0/2")
        program = f"from tidemark.storage import open_store; open_store({store.url!r}).{look}('versions/0/2')"
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert f"Corruption: {store.root}/versions/0/2 is a FIFO, not a plain file" in ran.stderr

    def test_a_create_where_a_fifo_is_finds_the_name_taken(self, store: LocalStore):
        store.create("a", b"1")
        os.mkfifo(store.root / "b")
        with pytest.raises(AlreadyExists):
            store.create("b", b"1")

    def test_a_file_in_the_way_of_a_folder_is_named(self, store: LocalStore):
        store.create("a", b"1")
        with pytest.raises(InvalidUsage, match="is not a folder"):
            store.create("a/b", b"1")

    def test_an_absolute_key_is_refused(self, store: LocalStore):
        with pytest.raises(InvalidUsage, match="leaves the store"):
            store.create("/etc/x", b"1")


@pytest.mark.parametrize("url", ["ftp://x/y", "gs://bucket", "s3:///prefix"])
def test_an_address_of_another_kind_is_refused(url: str):
    with pytest.raises(InvalidUsage):
        open_store(url)


def test_a_file_address_is_a_local_path(tmp_path: Path):
    assert open_store(f"file://{tmp_path}").url == str(tmp_path)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_local_objects_have_the_mode_that_the_umask_allows(tmp_path: Path, umask: int, mode: int) -> None:
    store = LocalStore(str(tmp_path / "root"))
    before = os.umask(umask)
    try:
        store.create("a/created.json", b"{}")
        with store.open_output("b/written.parquet") as file:
            file.write(b"rows")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "root").rglob("*.*")}
    assert modes == {mode}
