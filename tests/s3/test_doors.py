"""Datasets, SQL and exports of a collection in a bucket: read by the same reader, row group by row group."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

import tidemark
from simulation.script import row
from simulation.test_publish import day
from support.world import World, collection
from tests.s3.conftest import BUCKET
from tidemark.model.collection import Envelope
from tidemark.storage.stores.s3 import S3Store

pytestmark = pytest.mark.s3


def test_a_collection_in_a_bucket_by_every_door(tmp_path: Path) -> None:
    root = f"s3://{BUCKET}/doors"
    world = World(tmp_path / "landing", collection(Envelope.APPEND), S3Store(f"{root}/tides"))
    for at in range(2):
        day(world, at, [row(at, "a", at * 10 + 1), row(at + 5, "b", at * 10 + 2)])
    opened = tidemark.open(root, "tides")
    assert sorted(opened.dataset().to_table(columns=["k"], filter=pc.field("v") == "b")["k"].to_pylist()) == [5, 6]
    answer = tidemark.sql(root, "SELECT v, count(*) AS n FROM tides FOR TIMESTAMP AS OF 9 GROUP BY v")
    assert sorted(row["n"] for row in answer.to_arrow().to_pylist()) == [1, 1]
    assert tidemark.sql(root, "SELECT max(k) AS k FROM tides").to_arrow()["k"].to_pylist() == [6]
    opened.export(tmp_path / "out.jsonl", where="v = 'a'")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(line["k"] for line in lines) == [0, 1]
