"""A store is asked before it is trusted: one that breaks a guarantee is refused by its name, and nothing is left."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from itertools import count
from pathlib import Path

import pytest

from support.broken_stores import BREAKING, OverMemory
from tidemark.errors import InvalidUsage, Unavailable, Unwritable
from tidemark.model.guarantee import FILE_SYSTEMS_ONLY, Guarantee
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.probe.certificate import certified, kept, key_of
from tidemark.storage.probe.probe import leftover, prove
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import Indeterminate, Unsupported

ids = count()


def proved(store, pause=lambda seconds: None):
    return prove(store, f"{next(ids)}", pause)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_store_in_memory_keeps_what_is_asked_of_any_store():
    store = MemoryStore()
    proof = proved(store)
    assert set(proof.guarantees) == set(Guarantee) - FILE_SYSTEMS_ONLY
    assert (proof.left, store.objects) == ((), {})


def test_a_local_store_keeps_all_and_nothing_is_left(tmp_path: Path):
    proof = proved(LocalStore(str(tmp_path / "root/flights")))
    assert proof.guarantees == tuple(Guarantee)
    assert proof.left == ()
    assert names(tmp_path) == ["root", "root/flights"]


@pytest.mark.parametrize(
    ("guarantee", "broken"), [(guarantee, broken) for guarantee, all_ in BREAKING.items() for broken in all_]
)
def test_a_store_that_breaks_a_guarantee_is_refused_by_its_name(guarantee: Guarantee, broken):
    store = broken()
    with pytest.raises(InvalidUsage) as refused:
        proved(store)
    assert guarantee.promise in str(refused.value)
    assert str(refused.value).startswith(f"{getattr(store, 'address', store.url)} cannot hold collections: ")
    assert "\n" not in str(refused.value)
    assert store.inner.objects == {}


def unsupported(number: int):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def replaced(source, target) -> None:
    """A link as some file systems make it: whatever is there goes."""
    shutil.copy(source, target)


LINKS = [unsupported(errno.EPERM), unsupported(errno.ENOTSUP), unsupported(errno.ENOSYS), replaced]


@pytest.mark.parametrize("link", LINKS, ids=["EPERM", "ENOTSUP", "ENOSYS", "replaces"])
def test_a_file_system_without_hard_links_is_refused_by_that(tmp_path: Path, monkeypatch, link):
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(InvalidUsage, match=Guarantee.HARD_LINKS.promise):
        proved(LocalStore(str(tmp_path / "new/root")))
    assert names(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS], ids=["EINVAL", "ENOSYS"])
def test_a_file_system_that_cannot_sync_folders_is_refused_by_that(tmp_path: Path, monkeypatch, number: int):
    fail_for_folders(monkeypatch, number)
    with pytest.raises(InvalidUsage, match=Guarantee.FOLDER_SYNC.promise):
        proved(LocalStore(str(tmp_path / "new/root")))
    assert names(tmp_path) == []


def fail_for_folders(monkeypatch, number: int) -> None:
    real = os.fsync

    def sync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)


def test_each_of_ten_guarantees_has_a_store_that_breaks_it():
    assert len(Guarantee) == 10
    assert set(BREAKING) | FILE_SYSTEMS_ONLY == set(Guarantee)


class Failing(OverMemory):
    """The store fails at the nth call of some name, and from then on at all of that name."""

    def __init__(self, name: str, nth: int, error: Exception) -> None:
        super().__init__()
        self.name, self.left, self.error = name, nth, error

    def _call(self, name, key, action, *, writes):
        if name == self.name:
            self.left -= 1
            if self.left < 0:
                raise self.error
        return action()


@pytest.mark.parametrize("name", ["create", "read", "keys", "folders"])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("the disk is gone"), Unavailable),
        (Unwritable("the disk is gone"), Unwritable),
        (InvalidUsage("the disk is gone"), InvalidUsage),
    ],
)
def test_a_store_that_fails_is_not_one_that_breaks_its_word(name: str, error: Exception, kind: type[Exception]):
    for nth in range(5 if name in ("create", "read") else 1):
        store = Failing(name, nth, error)
        with pytest.raises(kind, match="the disk is gone") as raised:
            proved(store)
        assert not any(one.promise in str(raised.value) for one in Guarantee)
        assert store.inner.objects == {}


def test_a_store_that_never_says_what_became_of_a_create_is_unavailable():
    store = Failing("create", 3, Indeterminate("500 InternalError"))
    with pytest.raises(Unavailable, match=r"did not answer 6 creates of _probe-.*: 500 InternalError"):
        proved(store)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_disk_that_fails_is_not_one_that_cannot(tmp_path: Path, monkeypatch, number: int):
    fail_for_folders(monkeypatch, number)
    with pytest.raises(Unavailable, match=os.strerror(number)):
        proved(LocalStore(str(tmp_path / "new/root")))
    assert names(tmp_path) == []


class Kept(OverMemory):
    """Nobody may delete here."""

    def delete(self, key):
        raise InvalidUsage(f"S3 refused {key}: AccessDenied")


def test_who_may_not_delete_is_notified_of_what_is_left():
    store = Kept()
    proof = proved(store)
    assert len(proof.left) == len(store.inner.objects) == 9
    assert leftover(proof).startswith("9 objects of the probe could not be deleted and may be removed: _probe-")


def test_a_folder_that_cannot_be_made_is_a_wrong_root():
    with pytest.raises(InvalidUsage, match=r"/proc/self/_probe-.* cannot be created"):
        proved(LocalStore("/proc/self"))


class Thief(OverMemory):
    """A create that was cut takes its effect after its objects were deleted."""

    address = "memory://late"

    def another(self):
        return self

    def create_unheard(self, key, data):
        self.late = key, data

    def delete(self, key):
        super().delete(key)
        if key == self.late[0]:
            self.inner.objects.setdefault(*self.late)
            self.late = "", b""


def test_a_create_that_comes_late_leaves_nothing():
    store = Thief()
    assert proved(store).left == ()
    assert store.inner.objects == {}


def test_a_certificate_says_what_was_asked_where_and_when():
    store = MemoryStore()
    assert kept(store) is None
    proof = certified(store, unique="1", writer="me", now=5)
    assert list(store.objects) == [key_of("memory://")]
    certificate = json.loads(store.read(key_of("memory://")))
    assert (certificate["format"], certificate["address"], certificate["asked_at"], certificate["writer"]) == (
        FORMAT,
        "memory://",
        5,
        "me",
    )
    assert certificate["guarantees"] == [str(one) for one in proof.guarantees]
    certified(store, unique="2", writer="another", now=6)
    assert json.loads(store.read(key_of("memory://"))) == certificate, "the first stays"
    assert kept(store) is not None


def test_a_certificate_whose_create_was_not_answered_is_one():
    class Silent(OverMemory):
        def create(self, key, data):
            super().create(key, data)
            if key.startswith("store/"):
                raise Indeterminate(key)

    store = Silent()
    certified(store, unique="1", writer="", now=1)
    assert kept(store) is not None


def test_a_request_that_is_not_known_is_a_wrong_store_and_not_an_outage():
    assert issubclass(Unsupported, InvalidUsage)
