"""Whole runs in process, with real Spark behind them; what they did is read from the state log."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
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


def events() -> list[dict[str, Any]]:
    """The events of assets in this session, oldest first."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return [event.extra for event in session.scalars(select(AssetEvent).order_by(AssetEvent.id))]


@pytest.mark.timeout(600)
def test_a_run_of_two_days_has_the_late_rows_of_two_runs(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the resident Spark, to the end."""
    monkeypatch.setenv("TIDEMARK_SPARK_WHEN", "always")
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
