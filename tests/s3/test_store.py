"""The laws of stores against an S3 server in process, and what is S3's own: lost replies, conflicts, throttling."""

from __future__ import annotations

from uuid import uuid4

import botocore.exceptions
import pytest
from botocore.awsrequest import AWSResponse

from support.store_laws import StoreLaws, keys
from support.world import collection, interval
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Created
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.stores.s3 import S3Store
from tidemark.storage.stores.s3_output import PART_BYTES
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Unavailable

pytestmark = pytest.mark.s3


class TestS3Store(StoreLaws):
    pass


def test_what_a_killed_writer_left_is_listed_and_can_be_discarded(store: S3Store):
    store.create("data/whole", b"1")
    output = store.open_output("data/part")
    output.__enter__().write(b"1" * (PART_BYTES + 1))
    [left] = store.unfinished()
    assert left.key == "data/part"
    store.discard(left)
    store.discard(left)
    assert list(store.unfinished()) == []
    assert keys(store) == ["data/whole"]


class Replies:
    """Stands between the client and the wire: `answer` sees each request and may send it, answer it, or fail."""

    def __init__(self, store: S3Store, operation: str, answers: list[str]) -> None:
        self.answers, self.sent = answers, 0
        self.session = store.client._endpoint.http_session
        self.real = self.session.send
        store.client.meta.events.register(f"request-created.s3.{operation}", self.arm)
        self.session.send = self.send
        self.armed = False

    def arm(self, **_: object) -> None:
        self.armed = True

    def send(self, request):
        if not self.armed:
            return self.real(request)
        self.armed = False
        self.sent += 1
        answer = self.answers.pop(0) if self.answers else "send"
        if answer == "send":
            return self.real(request)
        if answer == "lose the reply":
            self.real(request)
            raise botocore.exceptions.ReadTimeoutError(endpoint_url=request.url)
        if answer == "lose the request":
            raise botocore.exceptions.ConnectTimeoutError(endpoint_url=request.url)
        status, code = answer.split()
        body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        response = AWSResponse(request.url, int(status), {"content-type": "application/xml"}, None)
        response._content = body
        return response


@pytest.fixture(autouse=True)
def impatient(no_waiting: None) -> None:
    """No test here waits."""


def test_the_client_s_own_retry_after_a_lost_reply_meets_its_own_object(store: S3Store):
    Replies(store, "PutObject", ["lose the reply"])
    with pytest.raises(AlreadyExists):
        store.create("a", b"1")
    assert store.read("a") == b"1"


def test_a_reply_that_never_comes_is_indeterminate(store: S3Store):
    Replies(store, "PutObject", ["lose the request"] * 20)
    with pytest.raises(Indeterminate):
        store.create("a", b"1")
    assert store.stat("a") is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("503 SlowDown", Unavailable),
        ("500 InternalError", Indeterminate),
        ("409 ConditionalRequestConflict", Indeterminate),
        ("412 PreconditionFailed", AlreadyExists),
        ("403 AccessDenied", InvalidUsage),
    ],
)
def test_what_a_create_s_answers_mean(store: S3Store, answer: str, error: type[Exception]):
    Replies(store, "PutObject", [answer] * 20)
    with pytest.raises(error):
        store.create("a", b"1")


@pytest.mark.parametrize(
    ("answer", "error"),
    [("503 SlowDown", Unavailable), ("500 InternalError", Unavailable), ("403 AccessDenied", InvalidUsage)],
)
def test_what_a_read_s_answers_mean(store: S3Store, answer: str, error: type[Exception]):
    store.create("a", b"1")
    Replies(store, "GetObject", [answer] * 20)
    with pytest.raises(error):
        store.read("a")


def test_a_bucket_that_does_not_exist_is_a_wrong_address():
    with pytest.raises(InvalidUsage, match="NoSuchBucket"):
        S3Store("s3://no-such-bucket/x").create("a", b"1")


@pytest.mark.parametrize(
    "answers",
    [
        ["lose the reply"],
        ["lose the request"] * 6,
        ["503 SlowDown"] * 7,
        ["500 InternalError"] * 5 + ["lose the reply"],
        ["409 ConditionalRequestConflict"],
    ],
    ids=lambda answers: answers[-1],
)
def test_a_commit_finds_out_what_became_of_it(store: S3Store, answers: list[str]):
    log = StateLog(store, lambda: uuid4().hex, pause=lambda seconds: None)
    log.commit(log.load(), Created(collection()))
    replies = Replies(store, "PutObject", answers)
    committed = log.commit(log.load(), Attempted(Fence("drain", interval(0), "token")))
    assert isinstance(committed, Committed)
    assert committed.fresh
    assert replies.sent >= 1
    assert keys(store) == [f"versions/00000000/{version:012d}.json" for version in (1, 2)]


@pytest.mark.parametrize("size", [PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 3])
def test_an_output_of_several_parts_is_whole(store: S3Store, size: int):
    data = bytes(range(251)) * (size // 251 + 1)
    with store.open_output("data/part") as sink:
        for start in range(0, size, 3_000_000):
            sink.write(data[start : min(size, start + 3_000_000)])
    assert store.read("data/part") == data[:size]


def fail_after(written: int) -> None:
    raise ZeroDivisionError(f"after {written} bytes")


def test_an_output_given_up_leaves_no_upload(store: S3Store):
    with pytest.raises(ZeroDivisionError), store.open_output("data/part") as sink:
        fail_after(sink.write(b"1" * (PART_BYTES + 1)))
    assert keys(store) == []
    assert list(store.unfinished()) == []


@pytest.mark.parametrize(
    ("operation", "error"),
    [("UploadPart", Unavailable), ("CompleteMultipartUpload", Indeterminate), ("CreateMultipartUpload", Unavailable)],
)
def test_an_output_that_fails_midway_says_whether_it_may_have_appeared(store: S3Store, operation: str, error):
    Replies(store, operation, ["500 InternalError"] * 20)
    with pytest.raises(error), store.open_output("data/part") as sink:
        sink.write(b"1" * (PART_BYTES + 1))


def test_a_listing_of_more_than_a_page(store: S3Store):
    names = [f"versions/{number}" for number in range(5)]
    for name in names:
        store.create(name, b"")
    store.client.meta.events.register(
        "provide-client-params.s3.ListObjectsV2", lambda params, **_: params | {"MaxKeys": 2}
    )
    assert keys(store, "versions/") == names
