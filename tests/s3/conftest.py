"""One S3 server for the tests of this folder, and its address in the environment while they run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import boto3
import pytest

from simulation.script import DAYS
from support.s3_server import ACCESS, chosen, s3_server
from support.stores import Stores
from support.trouble import Proxy, proxy
from tidemark.storage.stores.s3 import S3Store

BUCKET = "tides"
_names = count()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"the S3 server of these tests was {chosen()}")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Its address; the bucket is there."""
    with s3_server(chosen()) as address:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=address, **keys).create_bucket(Bucket=BUCKET)
        yield address


@pytest.fixture(scope="module", autouse=True)
def environment(server: str) -> Iterator[pytest.MonkeyPatch]:
    """The AWS environment of these tests: every client made in them speaks to the server."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ACCESS.items() | {("AWS_ENDPOINT_URL", server)}:
            patch.setenv(name, value)
        yield patch


@pytest.fixture(scope="module")
def stores(environment: pytest.MonkeyPatch) -> Stores:
    """Makes empty stores, each below a prefix of its own."""
    return lambda: S3Store(f"s3://{BUCKET}/root/{next(_names)}")


@pytest.fixture
def store(stores: Stores) -> S3Store:
    store = stores()
    assert isinstance(store, S3Store)
    return store


@pytest.fixture(scope="module")
def days() -> int:
    """How many days of the simulation ring's script are run."""
    return len(DAYS)


@pytest.fixture
def writes() -> int:
    """Of the calls that write, one in so many is made to fail."""
    return 1


@pytest.fixture
def looks() -> int:
    """Of the calls that only look, one in so many is made to fail: a request takes milliseconds."""
    return 6


@pytest.fixture(scope="module")
def wire(environment: pytest.MonkeyPatch, server: str) -> Iterator[Proxy]:
    """Between the stores of this module and the server."""
    with proxy(server) as between:
        environment.setenv("AWS_ENDPOINT_URL", between.address)
        yield between


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client pauses before it tries again; a test has no time for that."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0)
