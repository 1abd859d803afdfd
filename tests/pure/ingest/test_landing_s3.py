"""The same landing on S3, against a server in process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import tidemark
from support.inprocess import InProcessRunner
from tests.pure.ingest.landed import collection, task
from tidemark.arrow.decode import content
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.cli import app
from tidemark.cli.command import Settings
from tidemark.errors import CommitUnknown
from tidemark.model.collection import Column, ColumnType, Format
from tidemark.model.ledger import Status
from tidemark.storage.landing import list_sources, open_source, sha256_of
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.s3 import S3Store
from tidemark.storage.stores.store import Indeterminate

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


def test_an_appender_lands_whole_objects_once(bucket: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One conditional put each; a lost answer is noticed by the name that is taken."""
    declared = (
        "name: readings\nkey: [k]\nvalue: [v]\ncolumns: {k: int, v: string, t: timestamp}\nstart: 2024-01-01\n"
        "time: {column: t}\n"
        "source: {path: '{{ landing }}/r/{{ ds }}/*.csv', format: csv, envelope: append, ready: always}\n"
    )
    (tmp_path / "readings.yaml").write_text(declared)
    words = [
        "init",
        str(tmp_path / "readings.yaml"),
        "--root",
        str(tmp_path / "root"),
        "--landing",
        "s3://landing/appended",
    ]
    done = CliRunner().invoke(app, words, obj=Settings(runner=InProcessRunner))
    assert done.exit_code == 0, done.output
    noon = 1_704_110_400_000_000

    def opened() -> tidemark.Appender:
        return tidemark.appender(
            tmp_path / "root", "readings", landing="s3://landing/appended", producer="p", clock=lambda: noon
        )

    create = S3Store.create

    def lost(store: S3Store, key: str, data: bytes) -> None:
        create(store, key, data)
        raise Indeterminate("no answer")

    with opened() as readings:
        readings.append({"k": 1, "v": "x, y", "t": noon})
        with monkeypatch.context() as broken:
            broken.setattr(S3Store, "create", lost)
            with pytest.raises(CommitUnknown, match="try again"):
                readings.flush()
        [chunk] = readings.flush()
        assert chunk.path == "s3://landing/appended/r/2024-01-01/chunk.p.000000000000-000000000000.csv"
        readings.append({"k": 2, "v": "", "t": noon})
    assert opened().position == 2
    found = list_sources("s3://landing/appended/r/2024-01-01/*.csv")
    assert [open_source(file.path).read() for file in found] == [
        b'k,v,t\n1,"x, y",2024-01-01T12:00:00Z\n',
        b'k,v,t\n2,"",2024-01-01T12:00:00Z\n',
    ]
