"""Whole runs in process, with real Spark behind them; what they did is read from the state log."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidemark
from tests.dags import how_to
from tests.dags.support import parsed
from tidemark.airflow import tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.jobs.queries.late import late_rows
from tidemark.model.instant import parse_instant

DAYS = {
    "2024-01-01": ["1,open,10,2024-01-01T09:00:00Z", "2,open,20,2024-01-01T10:00:00Z"],
    "2024-01-02": ["1,paid,10,2024-01-02T09:00:00Z", "3,open,30,2023-12-31T10:00:00Z"],
    "2024-01-03": ["4,lost,40,2024-01-03T09:00:00Z"],
}
"""The second day brings a row that is late, the third one that the collection's own expectation refuses."""


@pytest.fixture(scope="module")
def resident() -> Iterator[Path]:
    """A warm Spark of this module's own; its socket's path must be short."""
    from tidemark.resident.client import Resident
    from tidemark.resident.server_folder import ServerFolder, Settings

    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    os.environ["TIDEMARK_RESIDENT_DIR"] = str(folder)
    yield folder
    Resident(Settings.from_environ(os.environ, master="local[2]"), ServerFolder.default(os.environ)).stop(now=True)
    del os.environ["TIDEMARK_RESIDENT_DIR"]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def orders(collections: Path, locations: Path, resident: Path, database: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The collection's file, with three days landed; apps run by the resident launcher."""
    monkeypatch.setenv("TIDEMARK_LAUNCHER", "resident")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for day, rows in DAYS.items():
        folder = locations / "landing" / "orders" / day
        folder.mkdir(parents=True)
        for number, row in enumerate(rows):
            (folder / f"{number}.csv").write_text(f"id,status,amount,happened_at\n{row}\n")
    file = collections / "orders.yaml"
    file.write_text(file.read_text() + "reprocess_for: 30d\n")
    return file


def run(file: Path, day: str, upper: str) -> tuple[str, dict[str, str]]:
    """A manual run over `[day, upper)`: its state, and its tasks' states."""
    dag = tidemark_dag(file, default_args={"retries": 0})
    conf = {"lower": f"{day}T00:00:00Z", "upper": f"{upper}T00:00:00Z"}
    done = dag.test(logical_date=datetime.fromisoformat(day).replace(tzinfo=UTC), run_conf=conf)
    return str(done.state), {ti.task_id: str(ti.state) for ti in done.get_task_instances()}


def head(file: Path) -> Any:
    return location_of(file).job().log.load()


def returned(run_of: str, task: str) -> Any:
    """What the newest try of a task of a DAG returned."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    wanted = (XComModel.dag_id == run_of, XComModel.task_id == task, XComModel.key == "return_value")
    with create_session() as session:
        newest = session.scalars(select(XComModel).where(*wanted).order_by(XComModel.timestamp.desc())).first()
        return XComModel.deserialize_value(newest)


def events() -> list[dict[str, Any]]:
    """The events of assets in this session, oldest first."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return [event.extra for event in session.scalars(select(AssetEvent).order_by(AssetEvent.id))]


@pytest.mark.timeout(600)
def test_a_run_of_two_days_has_the_late_rows_of_two_runs(orders: Path) -> None:
    ranged = orders.with_name("ranged.yaml")  # its asset's events are its own
    ranged.write_text(orders.read_text().replace("name: orders", "name: ranged"))
    state, tasks = run(ranged, "2024-01-01", "2024-01-03")
    assert (state, set(tasks.values())) == ("success", {"success"})
    newest = head(ranged).state
    assert newest.totals.rows_late_discarded == 1
    (late,) = late_rows(location_of(ranged).job().store, newest, limit=9).rows
    assert (late["id"], late["_reason"]) == (3, "before its interval")
    assert late["_complete_below"] == parse_instant("2024-01-02")


@pytest.mark.timeout(600)
def test_days_are_ingested_gated_sealed_drained_and_published(orders: Path) -> None:
    before = len(events())  # what other tests published is theirs
    state, tasks = run(orders, "2024-01-01", "2024-01-02")
    assert (state, set(tasks.values())) == ("success", {"success"})
    assert len(tasks) == 9
    first = head(orders).state
    assert (first.seal, first.trace_upper) == (first.complete,) * 2
    assert [batch.rows for batch in first.trace] == [2]
    assert all(first.is_certified(batch) for batch in first.trace)

    # The same day again: nothing new is written, nothing is reported twice.
    version = head(orders).version
    state, tasks = run(orders, "2024-01-01", "2024-01-02")
    assert (state, tasks.pop("published"), set(tasks.values())) == ("success", "skipped", {"success"})
    assert head(orders).version == version
    assert returned("orders", "ingest")["changed"] == "nothing changed"

    state, tasks = run(orders, "2024-01-02", "2024-01-03")
    assert (state, set(tasks.values())) == ("success", {"success"})
    assert head(orders).state.totals.rows_late_discarded == 1
    bounds = [(event["lower"], event["upper"]) for event in events()[before:]]
    assert bounds == [
        ("1970-01-01T00:00:00Z", "2024-01-02T00:00:00Z"),
        ("2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"),
    ]

    # A bad row: the gate stops the run, shows why, and a quarantine with a mended file leads out of it.
    state, tasks = run(orders, "2024-01-03", "2024-01-04")
    assert (state, tasks["gate_unsealed"], tasks["seal"]) == ("failed", "failed", "upstream_failed")
    stopped = head(orders).state
    assert stopped.seal == parse("2024-01-03")
    (failed,) = (Path(os.environ["TIDEMARK_DOCS"]) / "orders" / "unsealed").glob("*-failed.json")
    assert "lost" in failed.read_text()
    failure = json.loads(failed.read_text())
    assert (failure["task_id"], failure["map_index"], failure["try_number"]) == ("gate_unsealed", -1, 1)
    assert failure["run_id"].startswith("manual__")

    from tidemark.jobs.steps.quarantine import quarantine

    quarantine(location_of(orders).job(), stopped.pending[0].id)
    bad = Path(os.environ["TIDEMARK_LANDING"]) / "orders" / "2024-01-03" / "0.csv"
    bad.write_text(bad.read_text().replace("lost", "open"))
    state, tasks = run(orders, "2024-01-03", "2024-01-04")
    assert (state, set(tasks.values())) == ("success", {"success"})
    assert head(orders).state.seal == parse("2024-01-04")

    # The collection is over. What it discarded is applied after all, and read once the last day's run is cleared.
    from tidemark.jobs.in_process_runner import InProcess
    from tidemark.jobs.steps.replay import replay

    job = location_of(orders).job()
    assert replay(replace(job, runner=lambda: InProcess(job.store)))["rows"] == 1
    state, tasks = run(orders, "2024-01-03", "2024-01-04")
    assert (state, set(tasks.values())) == ("success", {"success"})
    end, ticked = head(orders).state, parse("2024-01-04") + 1
    assert (end.complete_below, end.seal, end.trace_upper, end.certified_upper) == (ticked - 1, ticked, ticked, ticked)
    untouched = {"files": 0, "retracted": 0, "added": 0, "event_times": None, "changed": "nothing changed"}
    assert events()[-1] == {
        "lower": "2024-01-04T00:00:00Z",
        "upper": "2024-01-04T00:00:00.000001Z",
        "seal": "2024-01-04T00:00:00.000001Z",
        "complete_below": "2024-01-04T00:00:00Z",
        "corrected": untouched,
    }

    # The first day was wrong: its file is mended, its run is cleared, and all who look see what changed.
    wrong = Path(os.environ["TIDEMARK_LANDING"]) / "orders" / "2024-01-01" / "0.csv"
    wrong.write_text(wrong.read_text().replace(",10,", ",11,") + "9,open,90,2024-01-01T12:00:00Z\n")
    state, tasks = run(orders, "2024-01-01", "2024-01-02")
    assert (state, set(tasks.values())) == ("success", {"success"})
    words = "1 file corrected, 1 row retracted and 2 added, happened 2024-01-01T09:00:00Z to 2024-01-01T12:00:00Z"
    times = ["2024-01-01T09:00:00Z", "2024-01-01T12:00:00Z"]
    ingested = returned("orders", "ingest")
    assert (ingested["retracted"], ingested["added"], ingested["changed"]) == (1, 2, words)
    assert events()[-1]["corrected"] == {
        **{"files": 1, "retracted": 1, "added": 2},
        **{"event_times": times, "changed": words},
    }
    assert (events()[-1]["lower"], events()[-1]["complete_below"]) == (
        "2024-01-04T00:00:00.000001Z",
        "2024-01-04T00:00:00Z",
    )
    (warning,) = returned("orders", "gate_unsealed")["warnings"]
    assert (warning["rule"], warning["message"][:20]) == ("corrected share, usual", "retracts 1 of 2 rows")
    rows = tidemark.open(os.environ["TIDEMARK_ROOT"], "orders").as_of(where="id IN (1, 9)").to_arrow().to_pylist()
    assert sorted((row["id"], row["status"], row["amount"]) for row in rows) == [
        (1, "open", 11),
        (1, "paid", 10),
        (9, "open", 90),
    ]


@pytest.mark.timeout(600)
def test_a_day_goes_through_the_dags_of_the_how_tos(
    locations: Path, resident: Path, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = how_to.project(locations, monkeypatch)
    monkeypatch.setenv("TIDEMARK_LAUNCHER", "resident")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    dags = parsed(folder / "dags").dags
    for task in dags["flights"].tasks:
        task.retries = 0

    def ran(dag: str, day: str) -> dict[str, str]:
        lower = datetime.fromisoformat(day).replace(tzinfo=UTC)
        conf = {"lower": lower.isoformat(), "upper": (lower + timedelta(days=1)).isoformat()}
        done = dags[dag].test(logical_date=lower, run_conf=conf)
        return {ti.task_id: str(ti.state) for ti in done.get_task_instances()}

    stopped = ran("flights", "2012-12-31")
    assert (stopped["gate_unsealed"], stopped["closed"], stopped["seal"]) == ("success", "failed", "upstream_failed")
    day = "[2012-12-31T00:00:00Z, 2013-01-01T00:00:00Z)"
    assert (folder / "alerts.txt").read_text() == f"everyone: flights: closed failed for {day}\n"
    unpause("flights_daily")
    for day in how_to.LANDED:
        (folder / "landing" / "flights" / f"{day}.closed").touch()
    assert set(ran("flights", "2012-12-31").values()) == {"success"}
    assert set(ran("flights_in_groups", "2013-01-01").values()) == {"success"}
    flights = tidemark.open(os.environ["TIDEMARK_ROOT"], "flights")
    assert flights.status().as_dict()["seal_text"] == "2013-01-02T00:00:00Z"
    again = ran("flights_in_parts", "2013-01-01")
    assert again.pop("rest.published") == "skipped", "it is published"
    assert set(again.values()) == {"success"}
    assert set(ran("flights_report", "2013-01-01").values()) == {"success"}
    assert partitions_due("flights_daily") == ["2012-12-31T00:00:00", "2013-01-01T00:00:00"]
    replayed = ran("flights_late", "2012-12-31")
    assert set(replayed.values()) == {"success"}

    for day in how_to.LANDED:
        assert set(ran("flights_export", day).values()) == {"success"}
    assert flights.refresh().status().holds == ()
    assert set(ran("flights_by_status", "2013-01-01").values()) == {"success"}
    exported = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "exports").iterdir()))
    assert sorted(exported.to_pylist(), key=str) == sorted(flights.changes().to_arrow().to_pylist(), key=str)
    assert exported.num_rows == 3 * how_to.ROWS  # scheduled; and of each update what it was and what it became


def unpause(dag_id: str) -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.get(DagModel, dag_id).is_paused = False  # type: ignore[union-attr]


def partitions_due(dag_id: str) -> list[str]:
    """The partitions of which Airflow's scheduler is about to make a run of a DAG."""
    from airflow.models.asset import AssetPartitionDagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = select(AssetPartitionDagRun.partition_key).where(AssetPartitionDagRun.target_dag_id == dag_id)
        return sorted(session.scalars(found))


def parse(day: str) -> int:
    from tidemark.model.instant import parse_instant

    return parse_instant(day)
