"""A store is asked before it is trusted: one that breaks a guarantee is refused by its name, and nothing is left."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from support.broken_stores import BREAKING, OverMemory
from support.faulty import WrappedStore
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


class Intermittent(WrappedStore):
    """Every other create does its work and says nothing, every third look is refused."""

    def __init__(self, inner) -> None:
        super().__init__(inner)
        self.calls = Counter()

    def _call(self, name, key, action, *, writes):
        self.calls[name] += 1
        if name == "create":
            action()
            if self.calls[name] % 2:
                raise Indeterminate(key)
            return None
        if not writes and self.calls[name] % 3 == 0:
            raise Unavailable(key)
        return action()


def test_lost_answers_and_refusals_are_no_verdict():
    store = MemoryStore()
    assert len(proved(Intermittent(store)).guarantees) == 8
    assert store.objects == {}


class Kept(OverMemory):
    """Nobody may delete here."""

    def delete(self, key):
        raise InvalidUsage(f"S3 refused {key}: AccessDenied")


def test_who_may_not_delete_is_notified_of_what_is_left():
    store = Kept()
    proof = proved(store)
    assert len(proof.left) == len(store.inner.objects) == 9
    assert leftover(proof).startswith("9 objects of the probe could not be deleted and may be removed: _probe-")


def test_who_may_not_delete_is_notified_of_what_a_refusal_left_too():
    class Both(Kept):
        def create(self, key, data):
            self.put(key, data)

    with pytest.raises(
        InvalidUsage, match=r"taken key .* use another store; 1 object of the probe could not be deleted"
    ):
        proved(Both())


@pytest.mark.parametrize("name", ["create", "read"])
@pytest.mark.parametrize("error", [InvalidUsage("AccessDenied"), Unavailable("no route")])
def test_what_was_never_created_is_not_reported_to_be_left(name: str, error: Exception):
    """Neither may be asked about: reads, lists and deletes fail, too."""

    class Closed(OverMemory):
        def _call(self, called, key, action, *, writes):
            if called == "read" and name == "create":
                return action()
            raise error

    with pytest.raises(type(error)) as raised:
        proved(Closed())
    assert ("could not be deleted" in str(raised.value)) == (name == "create" and isinstance(error, Unavailable))


def test_a_folder_that_cannot_be_made_is_a_wrong_root():
    with pytest.raises(InvalidUsage, match=r"/proc/self/_probe-.* cannot be created"):
        proved(LocalStore("/proc/self"))


def test_the_number_of_requests_is_the_one_that_the_decision_tells():
    class Counting(OverMemory):
        calls = 0

        def _call(self, name, key, action, *, writes):
            type(self).calls += 1
            return action()

    proved(Counting())
    assert Counting.calls == 59
    decision = Path(__file__).parents[3] / "docs/decisions/0046-the-store-is-asked.md"
    assert "59 requests" in decision.read_text()


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


def test_many_at_once_in_one_store_do_not_disturb_each_other(tmp_path: Path):
    store = LocalStore(str(tmp_path / "root/flights"))
    with ThreadPoolExecutor(6) as pool:
        proofs = list(pool.map(lambda name: prove(store, name), "abcdef"))
    assert [proof.left for proof in proofs] == [()] * 6
    assert names(tmp_path) == ["root", "root/flights"]


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


def test_a_collection_that_was_copied_elsewhere_has_no_certificate_there(tmp_path: Path):
    certified(LocalStore(str(tmp_path / "one")), unique="1", writer="", now=1)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert kept(LocalStore(str(tmp_path / "one"))) is not None
    assert kept(LocalStore(str(tmp_path / "two"))) is None


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


def test_a_root_that_is_a_file_is_said_to_be_that(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidUsage, match=r"file/_probe-\d+ is not a folder$"):
        proved(LocalStore(str(tmp_path / "file")))
