"""A compaction of more than the heap: rows never pass through the JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).resolve().parents[2]
ROWS, WIDE = 28_000, 7_000


def test_a_merge_of_more_than_the_heap(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "include"), str(PROJECT)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 512m pyspark-shell",
    }
    env.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, str(PROJECT / "tests/spark/apps/small_heap.py"), str(tmp_path), str(ROWS), str(WIDE)],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["bytes"] > found["heap"] > 0
    assert found["heap"] <= 512 * 2**20
    assert (found["result"]["merges"], found["result"]["live_batches"], found["since"]) == (1, 1, 15)
    assert found["result"]["rows"] == 3 * ROWS
    assert found["sound"]
