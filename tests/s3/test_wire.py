"""What the wire does to S3 requests, at the wire: lost, cut, shortened, slow and refused ones, and what a store says.

Requests in doubt are distinguished from those that surely did nothing, and no reader takes less than there is.
"""

from __future__ import annotations

import pytest

from support.store_laws import keys
from support.stores import Stores
from support.trouble import (
    CONFLICT,
    CUT_BODY,
    INTERNAL_ERROR,
    LOST_REPLY,
    LOST_REQUEST,
    SHORT_BODY,
    SLOW_DOWN,
    Proxy,
    Trouble,
    answered,
)
from support.wire import Message
from tidemark.storage.stores import s3
from tidemark.storage.stores.s3 import S3Store
from tidemark.storage.stores.s3_output import PART_BYTES
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Unavailable, Unwritable

pytestmark = pytest.mark.s3

DATA = bytes(range(251)) * 4000
SLOW = Trouble("slow", wait=1.5)
LOOKS = [LOST_REQUEST, LOST_REPLY, CUT_BODY, SHORT_BODY, SLOW_DOWN, INTERNAL_ERROR, SLOW]


@pytest.fixture(autouse=True)
def impatient(request: pytest.FixtureRequest, no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store waits a minute for bytes; a test of a slow answer has no time for that, and others no hurry."""
    if SLOW in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        monkeypatch.setattr(s3, "SILENCE", 0.5)


@pytest.fixture
def store(wire: Proxy, stores: Stores) -> S3Store:
    wire.arm(None)
    store = stores()
    assert isinstance(store, S3Store)
    store.create("stored", DATA)
    return store


@pytest.mark.parametrize("trouble", LOOKS, ids=str)
def test_one_trouble_with_a_read_is_not_noticed(store: S3Store, wire: Proxy, trouble: Trouble):
    wire.arm_nth(1, trouble)
    assert store.read("stored") == DATA
    assert wire.troubled


@pytest.mark.parametrize("trouble", LOOKS, ids=str)
def test_one_trouble_with_a_range_is_not_noticed(store: S3Store, wire: Proxy, trouble: Trouble):
    with store.open_input("stored") as source:
        wire.arm_nth(1, trouble)
        source.seek(100_000)
        assert source.read(70_000) == DATA[100_000:170_000]
        assert wire.troubled
        assert source.read() == DATA[170_000:]


@pytest.mark.parametrize("trouble", LOOKS, ids=str)
def test_lasting_trouble_with_a_range_is_unavailable_and_nothing_is_made_up(
    store: S3Store, wire: Proxy, trouble: Trouble
):
    with store.open_input("stored") as source:
        wire.arm(lambda request: trouble)
        with pytest.raises(Unavailable):
            source.read(70_000)
        wire.arm(None)
        assert source.read(70_000) == DATA[:70_000]


@pytest.mark.parametrize("trouble", [LOST_REQUEST, LOST_REPLY, CUT_BODY, SLOW_DOWN, INTERNAL_ERROR, SLOW], ids=str)
def test_one_trouble_with_a_look_is_not_noticed(store: S3Store, wire: Proxy, trouble: Trouble):
    for look in (
        lambda: keys(store),
        lambda: store.folders(""),
        lambda: store.stat("stored"),
        lambda: store.stat("no"),
    ):
        expected = look()
        wire.arm_nth(1, trouble)
        assert look() == expected
        assert wire.troubled


@pytest.mark.parametrize("trouble", [LOST_REQUEST, SLOW_DOWN, answered("500 InternalError")], ids=str)
def test_a_create_that_did_nothing_at_first_is_made_again(store: S3Store, wire: Proxy, trouble: Trouble):
    wire.arm_nth(1, trouble)
    store.create("a", b"1")
    assert wire.troubled
    assert store.read("a") == b"1"


@pytest.mark.parametrize("trouble", [LOST_REPLY, INTERNAL_ERROR, SLOW], ids=str)
def test_a_create_whose_reply_is_lost_meets_its_own_object(store: S3Store, wire: Proxy, trouble: Trouble):
    wire.arm_nth(1, trouble)
    with pytest.raises(AlreadyExists):
        store.create("a", b"1")
    assert store.read("a") == b"1"


class FirstThen:
    """The first request of a method meets one trouble, all that follow another."""

    def __init__(self, method: str, first: Trouble, then: Trouble) -> None:
        self.method, self.first, self.then = method, first, then
        self.count = 0

    def __call__(self, request: Message) -> Trouble | None:
        if request.method != self.method:
            return None
        self.count += 1
        return self.first if self.count == 1 else self.then


@pytest.mark.parametrize("first", [LOST_REPLY, INTERNAL_ERROR, LOST_REQUEST], ids=str)
def test_a_create_in_doubt_stays_in_doubt_whatever_is_answered_later(store: S3Store, wire: Proxy, first: Trouble):
    """Throttled in the end, the client cannot say that nothing happened: the first request may have had its effect."""
    wire.arm(FirstThen("PUT", first, SLOW_DOWN))
    with pytest.raises(Indeterminate):
        store.create("a", b"1")


@pytest.mark.parametrize("trouble", [SLOW_DOWN, answered("429 TooManyRequests")], ids=str)
def test_a_create_that_was_always_refused_surely_did_nothing(store: S3Store, wire: Proxy, trouble: Trouble):
    wire.arm(lambda request: trouble)
    with pytest.raises(Unavailable):
        store.create("a", b"1")
    wire.arm(None)
    assert store.stat("a") is None


FULL = [answered("507 XMinioStorageFull"), answered("403 QuotaExceeded")]


@pytest.mark.parametrize("trouble", FULL, ids=str)
def test_a_full_store_is_distinguished_from_a_busy_one(store: S3Store, wire: Proxy, trouble: Trouble):
    wire.arm(lambda request: trouble)
    with pytest.raises(Unwritable, match=trouble.name.split()[1]):
        store.create("a", b"1")
    wire.arm(None)
    assert store.stat("a") is None


def test_a_create_that_races_another_one_is_not_known_to_have_lost(store: S3Store, wire: Proxy):
    wire.arm(lambda request: CONFLICT)
    with pytest.raises(Indeterminate):
        store.create("a", b"1")


WRITES = [LOST_REQUEST, LOST_REPLY, SLOW_DOWN, INTERNAL_ERROR, answered("500 InternalError")]


@pytest.mark.parametrize("trouble", WRITES, ids=str)
def test_one_trouble_anywhere_in_an_output_is_not_noticed(store: S3Store, wire: Proxy, trouble: Trouble):
    """Create the upload, two parts, complete it: any of the requests."""
    data = b"1" * (PART_BYTES + 1)
    for nth in range(1, 5):
        wire.arm_nth(nth, trouble)
        with store.open_output(f"data/{nth}") as sink:
            sink.write(data)
        assert wire.troubled
        info = store.stat(f"data/{nth}")
        assert info is not None
        assert info.bytes == len(data)
    wire.arm_nth(1, trouble)
    with store.open_output("data/small") as sink:
        sink.write(b"1")
    assert store.read("data/small") == b"1"


def test_an_upload_that_was_complete_when_the_reply_was_lost_is_an_output(store: S3Store, wire: Proxy):
    """Asked again, S3 may say that it knows no such upload: it is an object now."""
    gone = FirstThen("POST", LOST_REPLY, answered("404 NoSuchUpload"))
    with store.open_output("data/part") as sink:
        sink.write(b"1" * (PART_BYTES + 1))
        wire.arm(gone)
    assert gone.count == 2
    assert len(store.read("data/part")) == PART_BYTES + 1


def test_an_upload_that_is_gone_without_having_become_an_object_is_no_output(store: S3Store, wire: Proxy):
    gone = answered("404 NoSuchUpload")

    def given_up() -> None:
        with store.open_output("data/part") as sink:
            sink.write(b"1" * (PART_BYTES + 1))
            wire.arm(lambda request: gone if request.method == "POST" else None)

    with pytest.raises(Unavailable, match="data/part"):
        given_up()
    assert store.stat("data/part") is None


def test_no_trouble_of_a_delete_is_noticed(store: S3Store, wire: Proxy):
    for number, trouble in enumerate(WRITES):
        store.create(f"a/{number}", b"1")
        wire.arm_nth(1, trouble)
        store.delete(f"a/{number}")
        assert wire.troubled
    assert keys(store) == ["stored"]
