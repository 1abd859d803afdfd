"""One run of a DAG over a bucket: landing, root and every step's parts on S3, real apps on a real Spark; then as-of by
Spark of what the run left there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.inprocess import InProcessRunner
from support.stores import Stores
from tests.dags.conftest import collections, database, locations
from tests.dags.support import PROJECT
from tests.dags.test_run import DAYS, head, resident, run
from tests.support.reading import as_of
from tidemark.airflow.location import location_of
from tidemark.jobs.queries.verify import verify
from tidemark.model.collection import Gate
from tidemark.quality.results import results_of

pytestmark = [pytest.mark.s3, pytest.mark.timeout(600)]

__all__ = ["collections", "database", "locations", "resident"]


@pytest.fixture
def orders(collections: Path, resident: Path, database: None, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The collection's file; a day landed in a bucket, and the collection lives there."""
    landing, root = stores(), stores()
    for number, row in enumerate(DAYS["2024-01-01"]):
        data = f"id,status,amount,happened_at\n{row}\n".encode()
        landing.create(f"orders/2024-01-01/{number}.csv", data)
    monkeypatch.setenv("TIDEMARK_LANDING", landing.url)
    monkeypatch.setenv("TIDEMARK_ROOT", root.url)
    monkeypatch.delenv("TIDEMARK_DOCS")  # so that gates leave their results in the root
    monkeypatch.setenv("TIDEMARK_LAUNCHER", "resident")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return collections / "orders.yaml"


def test_a_day_goes_from_landing_to_trace_in_a_bucket(orders: Path) -> None:
    state, tasks = run(orders, "2024-01-01", "2024-01-02")
    # What else this process's Airflow has published of a collection of that name may leave nothing new to publish.
    assert tasks.pop("published") in ("success", "skipped")
    assert (state, set(tasks.values())) == ("success", {"success"})
    job, after = location_of(orders).job(), head(orders).state
    assert job.store.url.startswith("s3://")
    assert after.trace_upper == after.seal == after.complete
    assert all(after.is_certified(batch) for batch in after.trace)
    assert verify(replace(job, runner=lambda: InProcessRunner(job.store)), data=True).findings == ()
    current = [[row["id"], row["status"], row["_multiplicity"]] for row in as_of(job.store, after).to_pylist()]
    assert sorted(current) == [[1, "open", 1], [2, "open", 1]]
    assert read_by_spark(os.environ["TIDEMARK_ROOT"], "orders") == sorted(current)
    kept = results_of(os.environ["TIDEMARK_ROOT"])
    assert kept is not None
    outcomes = {str(gate): [name.outcome for name in kept.names("orders", gate)] for gate in Gate}
    assert outcomes == {"unsealed": ["passed"], "frontier": ["passed"], "trace": ["passed"], "compaction": ["nothing"]}


def read_by_spark(root: str, name: str) -> list[list[object]]:
    """What Spark's own as-of answers, in a driver of its own."""
    app = Path(__file__).parent / "apps" / "read.py"
    done = subprocess.run(
        ["spark-submit", "--master", "local[2]", str(app), root, name],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "include")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    return found
