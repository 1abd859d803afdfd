"""Through Spark Connect: views and the format, on a server that knows of Tidemark only what a client has sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from tests.spark.support import APPEND, UPDATES, Made
from tests.spark.test_read import added_up, rows_of_table
from tests.support.bare_python import bare_python
from tests.support.connect_server import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
PROJECT = Path(__file__).resolve().parents[2]
CLIENT = PROJECT / "tests" / "spark" / "apps" / "connected.py"


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


def test_views_the_format_and_frames_of_answers(tmp_path: Path) -> None:
    events, stock = Made(tmp_path, APPEND), Made(tmp_path, UPDATES)
    for made in (events, stock):
        for day in (1, 2):
            made.land(day, 200, keys=40)
        made.moved(1, "ingest", "seal")
    opened = tidemark.open(events.root, events.name)
    each = [row for row in opened.as_of().to_arrow().to_pylist() for _ in range(row.pop("_multiplicity"))]
    env = {**os.environ, "PYTHONPATH": str(PROJECT / "include")}
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE"):
        env.pop(name, None)
    with ConnectServer(tmp_path, bare_python(tmp_path)) as server:
        command = [sys.executable, str(CLIENT), server.remote, str(events.root)]
        client = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        events.moved(2, "ingest", "seal")
        out, _ = client.communicate("\n", timeout=120)
    report = json.loads(out)
    assert "Failed to find the data source: tidemark" in report["unknown"]
    assert report["versions"] == {"events": opened.version}
    assert [counted(rows) for rows in report["rows"]] == [counted(each)] * 2
    assert report["sql"] == len(each) == 200
    assert report["later"] == [200, 200, 400]
    answer = tidemark.open(stock.root, stock.name).as_of(columns=["kind"]).to_arrow()
    assert added_up(rows_of_table(pa.Table.from_pylist(report["stock"], answer.schema))) == added_up(
        rows_of_table(answer)
    )
    assert "there is no option 'asof'; did you mean 'as_of'?" in report["wrong"]
    assert "Traceback" not in report["wrong"]
