"""Tables in a bucket: parts are named by their addresses there, and rows are copied there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from simulation.script import row
from simulation.test_publish import day
from support.publishing import kept_rows, published, shown
from support.world import World, collection
from tests.s3.conftest import BUCKET
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Envelope
from tidemark.model.publication import Destination, TableFormat
from tidemark.storage.stores.s3 import S3Store

pytestmark = pytest.mark.s3


@pytest.mark.parametrize("by_reference", [True, False], ids=["named", "copied"])
def test_tables_in_a_bucket(tmp_path: Path, server: str, environment: pytest.MonkeyPatch, by_reference: bool) -> None:
    environment.setenv("AWS_ALLOW_HTTP", "true")
    environment.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")  # moto keeps nothing of what has a trailer
    root = f"s3://{BUCKET}/published/{by_reference}".lower()
    catalog = {
        "name": "bucket",
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"{root}/warehouse",
        "s3.endpoint": server,
    }
    iceberg = Destination(TableFormat.ICEBERG, "db.tides", tuple(sorted(catalog.items())), by_reference)
    delta = Destination(TableFormat.DELTA, "", by_reference=False)
    declared = collection(Envelope.APPEND, publish=(iceberg, delta), live_batches=2)
    world = World(tmp_path / "landing", declared, S3Store(f"{root}/tides"))
    for at in range(3):
        day(world, at, [row(at, "a", at * 10 + 1), row(at + 1, "b", at * 10 + 2)])
        published(world)
        properties = {name: value for name, value in catalog.items() if name != "name"}
        table = load_catalog("bucket", **properties).load_table("db.tides")
        assert Counter(map(shown, table.scan().to_arrow().to_pylist())) == kept_rows(world)
        files = [task.file.file_path for task in table.scan().plan_files()]
        assert all(file.startswith(f"{root}/tides/data/") == by_reference for file in files)
        copied = DeltaTable(f"{root}/_published/delta/tides").to_pyarrow_table()
        assert Counter(map(shown, copied.to_pylist())) == kept_rows(world)


def test_without_a_catalog_there_is_no_sqlite_in_a_bucket(tmp_path: Path) -> None:
    declared = collection(Envelope.APPEND, publish=(Destination(TableFormat.ICEBERG, "db.tides"),))
    world = World(tmp_path / "landing", declared, S3Store(f"s3://{BUCKET}/published/none/tides"))
    day(world, 0, [row(1, "a", 1)])
    with pytest.raises(InvalidUsage, match=r"is no local folder, so no SQLite catalog can be in it; declare publish"):
        published(world)
