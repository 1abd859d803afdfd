"""An S3 server is asked before it is trusted: it passes, and over a wire that breaks a guarantee it is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.store_laws import keys
from support.trouble import CONFLICT, INTERNAL_ERROR, LOST_REPLY, LOST_REQUEST, SLOW_DOWN, Proxy, Trouble, answered
from support.wire import Message
from tests.cli.conftest import EVENTS, Shell, a_shell
from tests.launch.support import eventually
from tidemark.errors import InvalidUsage, Unavailable
from tidemark.model.guarantee import FILE_SYSTEMS_ONLY, Guarantee
from tidemark.storage.probe.certificate import key_of
from tidemark.storage.probe.probe import prove
from tidemark.storage.stores.s3 import S3Store
from tidemark.storage.stores.store import Unsupported

pytestmark = [pytest.mark.s3, pytest.mark.usefixtures("no_waiting")]


def proved(store: S3Store):
    return prove(store, "unique", lambda seconds: None)


@pytest.fixture
def wired(wire: Proxy, store: S3Store) -> Iterator[Proxy]:
    """The proxy, to which the store of the test speaks; idle before and after."""
    wire.arm(None)
    yield wire
    wire.arm(None)


def test_the_server_keeps_what_is_asked_of_any_store(store: S3Store):
    proof = proved(store)
    assert set(proof.guarantees) == set(Guarantee) - FILE_SYSTEMS_ONLY
    assert proof.address.startswith(f"{store.url} at http://127.0.0.1:")
    assert (proof.left, keys(store)) == ((), [])


def test_so_many_requests_are_made(store: S3Store, wired: Proxy):
    proved(store)
    assert len(wired.requests) == 59


def test_several_at_once_do_not_disturb_each_other(store: S3Store):
    with ThreadPoolExecutor(3) as pool:
        proofs = list(pool.map(lambda name: prove(store, name), "abc"))
    assert [proof.left for proof in proofs] == [()] * 3
    assert keys(store) == []


SUCCESS = Message("HTTP/1.1 200 OK", {"content-length": "0"})
NO_KEY = answered("404 NoSuchKey", passed=True)
TAKEN = answered("412 PreconditionFailed")


def forged(answer: Callable[[Message], Message]) -> Trouble:
    return Trouble("forged answer", forge=answer)


def succeeded(answer: Message) -> Message:
    return Message(SUCCESS.first, dict(SUCCESS.headers))


def with_items(change: Callable[[list[str]], list[str]]) -> Callable[[Message], Message]:
    """A listing whose objects are changed."""

    def forge(answer: Message) -> Message:
        text = answer.body.decode()
        items = re.findall(r"<Contents>.*?</Contents>", text, re.DOTALL)
        for item in items:
            text = text.replace(item, "", 1)
        text = text.replace("</Prefix>", "</Prefix>" + "".join(change(items)), 1)
        headers = {"content-length": str(len(text)), "content-type": "application/xml"}
        return Message(answer.first, headers, text.encode())

    return forge


def other_content(answer: Message) -> Message:
    return Message(answer.first, {"content-length": "5"}, b"other")


def looks(request: Message) -> bool:
    return request.method == "GET" and "list-type" not in request.target


def lists(request: Message) -> bool:
    return "list-type" in request.target and "delimiter" not in request.target


class Nth:
    """Trouble for the nth request that fits, and for all after it up to `last`."""

    def __init__(self, fits: Callable[[Message], bool], trouble: Trouble, nth: int = 1, last: int = 1000) -> None:
        self.fits, self.trouble, self.nth, self.last, self.seen = fits, trouble, nth, last, 0

    def __call__(self, request: Message) -> Trouble | None:
        if not self.fits(request):
            return None
        self.seen += 1
        return self.trouble if self.nth <= self.seen <= self.last else None


def creates(name: str) -> Callable[[Message], bool]:
    return lambda request: request.method == "PUT" and name in request.target


def reads(name: str) -> Callable[[Message], bool]:
    return lambda request: looks(request) and name in request.target


def not_done(answer: Message) -> Message:
    return Message("HTTP/1.1 200 OK", {"content-length": "0"})


BREAKING: dict[Guarantee, list[Callable[[], Callable[[Message], Trouble | None]]]] = {
    Guarantee.ONLY_IF_TAKEN: [
        lambda: Nth(creates("/b"), TAKEN),
        lambda: Nth(creates("/b"), CONFLICT),
    ],
    # The look before the create is the first one.
    Guarantee.READ_AFTER_WRITE: [
        lambda: Nth(reads("/b"), NO_KEY, nth=2),
        lambda: Nth(reads("/b"), forged(other_content), nth=2),
        lambda: Nth(creates("/b"), Trouble("not done", passed=False, forge=not_done), last=1),
    ],
    Guarantee.TAKEN_IS_REFUSED: [
        lambda: Nth(creates("/b"), forged(succeeded), nth=2),
        lambda: Nth(creates("/b"), answered("409 ConditionalRequestConflict", passed=True), nth=2),
        lambda: Nth(reads("/b"), forged(other_content), nth=3),
        lambda: Nth(creates(""), answered("501 NotImplemented")),
    ],
    Guarantee.LIST_AFTER_WRITE: [lambda: Nth(lists, forged(with_items(lambda items: items[:-1])), last=1)],
    Guarantee.LIST_IN_ORDER: [lambda: Nth(lists, forged(with_items(lambda items: items[::-1])), last=1)],
    Guarantee.OWN_CREATE_FOUND: [
        # It gives up what was cut, and refuses what comes then.
        lambda: lambda request: TAKEN if creates("/cut")(request) else None,
        lambda: Nth(reads("/cut"), forged(other_content)),
    ],
    Guarantee.ONE_WINNER: [
        lambda: Nth(creates("/race-2"), forged(succeeded)),
        lambda: Nth(creates("/race-0"), TAKEN),
    ],
    Guarantee.WINNER_STAYS: [lambda: Nth(reads("/race-3"), forged(other_content))],
}


@pytest.mark.parametrize(
    ("guarantee", "script"), [(guarantee, script) for guarantee, all_ in BREAKING.items() for script in all_]
)
def test_a_wire_that_breaks_a_guarantee_is_refused_by_its_name(
    store: S3Store, wired: Proxy, guarantee: Guarantee, script
):
    wired.arm(script())
    with pytest.raises(InvalidUsage) as refused:
        proved(store)
    wired.arm(None)
    assert guarantee.promise in str(refused.value)
    assert keys(store) == []


def test_all_but_those_of_file_systems_are_broken_on_the_wire():
    assert set(BREAKING) == set(Guarantee) - FILE_SYSTEMS_ONLY


@pytest.mark.parametrize("trouble", [LOST_REPLY, LOST_REQUEST, SLOW_DOWN, INTERNAL_ERROR, CONFLICT], ids=str)
def test_a_wire_that_is_seldom_well_is_no_verdict(store: S3Store, wired: Proxy, trouble: Trouble):
    """Every third create meets trouble, and is asked about again."""
    seen = 0

    def script(request: Message) -> Trouble | None:
        nonlocal seen
        seen += request.method == "PUT"
        return trouble if request.method == "PUT" and seen % 3 == 0 else None

    wired.arm(script)
    assert len(proved(store).guarantees) == 8
    assert wired.troubled
    wired.arm(None)
    assert keys(store) == []


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (answered("403 AccessDenied"), InvalidUsage),
        (answered("500 InternalError"), Unavailable),
        (SLOW_DOWN, Unavailable),
        (LOST_REQUEST, Unavailable),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_what_fails_for_another_reason_is_said_as_that(
    store: S3Store, wired: Proxy, trouble: Trouble, error: type[Exception], method: str
):
    wired.arm(lambda request: trouble if request.method == method else None)
    with pytest.raises(error) as raised:
        proved(store)
    wired.arm(None)
    assert not any(one.promise in str(raised.value) for one in Guarantee)
    assert keys(store) == []


def test_what_may_not_be_deleted_is_reported(store: S3Store, wired: Proxy):
    wired.arm(lambda request: answered("403 AccessDenied") if request.method == "DELETE" else None)
    proof = proved(store)
    wired.arm(None)
    assert list(proof.left) == keys(store)
    assert len(proof.left) == 9


def test_a_create_that_is_cut_off_is_sent_whole(store: S3Store, wired: Proxy):
    """The request was on its way when the connection ended: the server gets it, on a busy machine a moment later."""
    store.create_unheard("cut", b"1" * 1000)
    eventually("the server has it", lambda: store.stat("cut"))
    assert any(request.startswith("PUT ") for request in wired.requests)
    store.create("other", b"2")
    assert store.read("cut") == b"1" * 1000


def test_a_request_that_the_server_does_not_know_is_no_outage(store: S3Store, wired: Proxy):
    wired.arm(lambda request: answered("501 NotImplemented"))
    with pytest.raises(Unsupported, match="NotImplemented"):
        store.create("a", b"1")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return a_shell(tmp_path)


def test_init_asks_the_bucket_and_keeps_the_certificate(store: S3Store, shell: Shell):
    shell.ok("init", shell.declared(EVENTS), "--root", store.url)
    events = S3Store(f"{store.url}/events")
    assert keys(events) == [key_of(events.address), "versions/00000000/000000000001.json"]
    assert json.loads(events.read(key_of(events.address)))["address"] == events.address
    said = shell.ok("doctor", "--root", store.url)
    assert said.out.startswith(f"{store.address} may hold collections: it kept 8 of 8 guarantees")
    assert len(keys(store)) == 2


def test_init_refuses_a_bucket_that_breaks_a_guarantee_and_commits_nothing(store: S3Store, wired: Proxy, shell: Shell):
    wired.arm(Nth(creates("/race-2"), forged(succeeded)))
    refused = shell.refused("init", shell.declared(EVENTS), "--root", store.url)
    wired.arm(None)
    assert Guarantee.ONE_WINNER.promise in refused
    assert keys(store) == []
