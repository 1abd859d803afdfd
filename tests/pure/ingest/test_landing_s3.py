"""The same landing on S3, against a server in process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pure.ingest.landed import collection, task
from tidemark.arrow.decode import content
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.errors import InvalidUsage, NotReady
from tidemark.model.collection import Column, ColumnType, Format
from tidemark.model.ledger import Status
from tidemark.storage.landing import is_ready, list_sources, lying, open_source, sha256_of, token_of
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.s3

FILES = {
    "in/d1/a.csv": b"k,t,v\n1,5,x\n",
    "in/d1/b.csv": b"k,t,v\n2,6,y\n",
    "in/d1/_SUCCESS": b"",
    "in/d1/a.txt": b"",
    "in/d2/x/c.csv": b"k,t,v\n",
    "in/d2/": b"",
    "other/d1/a.csv": b"",
}


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    """A bucket with FILES on a server of its own, which the environment points at."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name, value in (("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "x"), ("DEFAULT_REGION", "us-east-1")):
            patch.setenv(f"AWS_{name}", value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="landing")
        for key, data in FILES.items():
            client.put_object(Bucket="landing", Key=key, Body=data)
        yield client
    server.stop()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in/d1/*.csv", ["in/d1/a.csv", "in/d1/b.csv"]),
        ("in/d1/a.csv", ["in/d1/a.csv"]),
        ("in/*/*", ["in/d1/a.csv", "in/d1/a.txt", "in/d1/b.csv"]),
        ("in/**/*.csv", ["in/d1/a.csv", "in/d1/b.csv", "in/d2/x/c.csv"]),
        ("in/d2/**", ["in/d2/x/c.csv"]),
        ("*/d1/a.csv", ["in/d1/a.csv", "other/d1/a.csv"]),
        ("in/d3/*", []),
    ],
)
def test_patterns(bucket: Any, pattern: str, found: list[str]) -> None:
    files = list_sources(f"s3://landing/{pattern}", within="s3://landing/in")
    assert [file.path for file in files] == [f"s3://landing/{key}" for key in found]
    assert [file.bytes for file in files] == [len(FILES[key]) for key in found]
    assert [file.token for file in files] == [token_of(file.path) for file in files]


def test_readiness(bucket: Any) -> None:
    assert is_ready("s3://landing/in/d1/*.csv", "exists")
    assert not is_ready("s3://landing/in/d3/*.csv", "exists")
    assert not is_ready("s3://landing/in/d/*.csv", "exists")
    assert is_ready("s3://landing/in/d3/*.csv", "always")
    assert is_ready("s3://landing/in/d1/*.csv", "_SUCCESS")
    assert not is_ready("s3://landing/in/d2/*.csv", "_SUCCESS")


def test_what_lies_where_a_pattern_looks(bucket: Any) -> None:
    assert lying("s3://landing/in/d1/*.parquet") == ["a.csv", "a.txt", "b.csv"]
    assert lying("s3://landing/in/d2/*.parquet") == []


def test_what_is_not_there_is_said_clearly(bucket: Any) -> None:
    with pytest.raises(InvalidUsage, match="NoSuchBucket"):
        list_sources("s3://none/in/*.csv")
    with pytest.raises(InvalidUsage, match="s3://bucket/key"):
        list_sources("s3:///in/*.csv")
    with pytest.raises(NotReady, match="is gone"):
        sha256_of("s3://landing/in/none.csv")
    assert token_of("s3://landing/in/none.csv") is None


@pytest.mark.parametrize("kept", [content.IN_MEMORY_BYTES, 0])
def test_files_are_ingested(bucket: Any, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "IN_MEMORY_BYTES", kept)
    files = list_sources("s3://landing/in/d1/*.csv")
    with open_source(files[0].path) as source:
        assert source.read() == FILES["in/d1/a.csv"]
    declared = collection(Column("v", ColumnType.STRING), file_format=Format.CSV)
    answer = ingest_files(MemoryStore(), task(declared, files))
    assert [(entry.status, entry.rows) for entry in answer.entries] == [(Status.INGESTED, 1)] * 2
    assert [entry.sha256 for entry in answer.entries] == [sha256_of(file.path) for file in files]
