"""Ten days of the demo's collections as a deployment runs them: Airflow with PostgreSQL, a standalone Spark cluster of
a master and two workers, collections on an S3 server. A worker and the scheduler are killed on the way.

Nobody helps but by another worker in place of the one that died. Every figure and every row of the derived collections
is then compared with the demo's calculation straight from the CSV.

    make s3-server                                                                  # a real one; else moto
    make test-deep PART=ten-days
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import boto3
import pytest

import tidemark
from demo import answers, derived, independent, layout
from tests.e2e.instance import Airflow, running
from tests.support.s3_server import ACCESS, chosen, s3_server
from tests.support.shipped import collection_files
from tests.support.standalone import Cluster

PROJECT = Path(__file__).parents[2]
BUCKET = "ten-days"
ROOT = f"s3://{BUCKET}/collections"
START, LAST = date(2012, 12, 31), date(2013, 1, 9)
DAYS = (LAST - START).days


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server that everything started from here on speaks to; which one it is."""
    server = chosen()
    with s3_server(server) as address:
        for name, value in {**ACCESS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield server


def test_ten_days_on_a_cluster_and_s3_are_as_calculated_whatever_dies(store: str, tmp_path: Path) -> None:
    took: dict[str, float] = {}
    began = time.monotonic()

    def done(part: str) -> None:
        nonlocal began
        took[part], began = time.monotonic() - began, time.monotonic()

    with Cluster(tmp_path) as cluster:
        cluster.ready()
        # The project's own apps: none of them is to be hit at a point of the test's choice.
        places = {"TIDEMARK_ROOT": ROOT, "TIDEMARK_HOME": str(PROJECT), "TIDEMARK_SPARK_MASTER": cluster.master}
        with running(**places) as airflow:
            declare(airflow)
            done("start")
            airflow.api.backfill("flights", str(START), str(LAST))
            cluster.kill_worker(cluster.wait_for_task())
            cluster.add_worker()
            airflow.until(
                "a run has ended", lambda: any(run["state"] == "success" for run in airflow.api.runs("flights"))
            )
            os.kill(airflow.components()["scheduler"]["pid"], signal.SIGKILL)
            airflow.until("every run has ended", lambda: all_ended(airflow), within=3600)
            done("ten days")
            assert {run["state"] for run in airflow.api.runs("flights")} == {"success"}
            assert airflow.components()["scheduler"]["restarts"] == 1
            try:
                derived.bring_up(airflow.api)
            except RuntimeError as error:
                raise AssertionError(f"{error}: {failures(airflow)}") from None
            done("derived")
            check()
            done("check")
    said = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in took.items())
    print(f"\nten days on a standalone cluster and {store}: {said}")


def declare(airflow: Airflow) -> None:
    """Lay out the days, and declare the demo's collections, `flights` with runs of two days."""
    layout.lay_out(airflow.landing, first=START, last=LAST)
    for file in collection_files():
        text = file.read_text()
        more = "airflow: {backfill_intervals: 2}\n" if file.stem == "flights" else ""
        (airflow.folder / "collections" / file.name).write_text(text + more)
    airflow.api.wait_for_dag("flights", seconds=600)
    airflow.api.unpause("flights")


def all_ended(airflow: Airflow) -> bool:
    runs = airflow.api.runs("flights")
    return bool(runs) and all(run["state"] in ("success", "failed") for run in runs)


def failures(airflow: Airflow) -> list[str]:
    """The end of the log of each task that failed."""
    found = []
    for dag in derived.DERIVED:
        for run in airflow.api.runs(dag):
            for name, task in airflow.tasks(dag, run["dag_run_id"]).items():
                if task["state"] == "failed":
                    found.append(airflow.log_of(dag, run["dag_run_id"], name, task["try_number"])[-6000:])
    return found


def check() -> None:
    """Every figure of `flights`, and every row of what is computed from it, now and as known at each day's end."""
    first = START + timedelta(days=1)
    reports = (row for flight in independent.flights() for row in independent.reports(flight))
    known = independent.ingest(reports, last=LAST)
    theirs = [independent.day_figures(known, first + n * timedelta(days=1)) for n in range(DAYS)]
    assert answers.figures(tidemark.open(ROOT, "flights"), first=first, days=DAYS) == theirs
    compared = list(derived.compared(known, first, DAYS))
    assert {found.name for found in compared if found.rows} == set(derived.DERIVED)
    assert [found for found in compared if found.differing] == []
