"""A collection's tasks as a group in a DAG of one's own, whole or in parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable, task

from tests.dags.support import ORDERS
from tidemark.airflow import TidemarkTaskGroup, asset_of, tidemark_dag
from tidemark.airflow.timetable import CollectionTimetable
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage

DAILY = CronDataIntervalTimetable("0 0 * * *", "UTC")


@pytest.fixture
def file(collections: Path) -> Path:
    return collections / "orders.yaml"


def edges(dag: Any) -> dict[str, set[str]]:
    return {one.task_id: set(one.downstream_task_ids) for one in dag.tasks}


def test_the_whole_has_the_tasks_of_the_collections_dag(file: Path) -> None:
    file.write_text(f"{ORDERS}airflow: {{owner: ann, retries: 2, pool: spark, after: {{seal: my_reports:refresh}}}}\n")
    with DAG("own", schedule=DAILY) as dag:
        TidemarkTaskGroup(file)
    whole = edges(tidemark_dag(file))
    assert edges(dag) == {f"orders.{name}": {f"orders.{one}" for one in behind} for name, behind in whole.items()}
    assert {(one.owner, one.retries, one.pool) for one in dag.tasks} == {("ann", 2, "spark")}


def test_parts_chain_with_tasks_of_ones_own(file: Path) -> None:
    with DAG("own", schedule=DAILY, default_args={"owner": "ann"}) as dag:

        @task
        def closed() -> None: ...

        first = TidemarkTaskGroup(file, parts=["ingest", "seal"], group_id="first", default_args={"retries": 1})
        rest = TidemarkTaskGroup(file, parts=["drain", "published"], group_id="rest")
        first >> closed() >> rest
    assert set(edges(dag)) == {
        *("first.ingest", "first.gate_unsealed", "first.seal", "first.gate_frontier", "closed"),
        *("rest.drain", "rest.gate_trace", "rest.published"),
    }
    assert edges(dag)["first.gate_frontier"] == {"closed"}
    assert dag.get_task("first.seal").retries == 1
    assert dag.get_task("first.seal").owner == "ann"


def test_a_derived_collection_has_correct_in_place_of_ingest(file: Path) -> None:
    totals = file.with_name("totals.yaml")
    totals.write_text("name: totals\nfrom: orders\nselect: SELECT id FROM orders\nkey: [id]\n")
    with DAG("own", schedule=[asset_of("orders")]) as dag:
        TidemarkTaskGroup(totals)
    assert "totals.correct" in edges(dag)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            ["ingest", "gate"],
            "'gate' is no part of the DAG of orders; write some of ingest, seal, drain, compact, publ",
        ),
        (["seal", "ingest"], "write some, in the order ingest, seal"),
        (["seal", "seal"], "write some, in the order"),
        ([], "write some, in the order"),
        (["drain", "after"], "the part after of orders is handed what published published; add published"),
        (["correct"], "'correct' is no part of the DAG of orders"),
    ],
)
def test_parts_that_make_no_sense_are_refused(file: Path, parts: list[str], message: str) -> None:
    with DAG("own", schedule=DAILY), pytest.raises(InvalidUsage, match=message):
        TidemarkTaskGroup(file, parts=parts)


def test_a_dag_whose_runs_are_about_no_interval_is_refused(file: Path) -> None:
    way_out = r'write schedule=CronDataIntervalTimetable\("0 0 \* \* \*", "UTC"\)'
    for schedule in ("@daily", timedelta(days=1)):
        with DAG("own", schedule=schedule), pytest.raises(InvalidUsage, match=f"are about no time.*{way_out}"):
            TidemarkTaskGroup(file, parts=["published"])
    noon = CronDataIntervalTimetable("0 12 * * *", "UTC")
    with DAG("own", schedule=noon), pytest.raises(InvalidUsage, match=f"between two intervals of orders.*{way_out}"):
        TidemarkTaskGroup(file, parts=["seal"])
    with pytest.raises(InvalidUsage, match="belongs into a DAG"):
        TidemarkTaskGroup(file)


def test_a_schedule_of_another_zone_than_the_collections_is_refused(file: Path) -> None:
    file.write_text(file.read_text() + "timezone: America/New_York\n")
    way_out = r'write schedule=CronDataIntervalTimetable\("0 0 \* \* \*", "America/New_York"\)'
    for zone in ("UTC", "Europe/Berlin"):
        schedule = CronDataIntervalTimetable("0 0 * * *", zone)
        with DAG("own", schedule=schedule), pytest.raises(InvalidUsage, match=f"between two intervals.*{way_out}"):
            TidemarkTaskGroup(file)
    for zone in ("America/New_York", "America/Toronto"):
        with DAG("own", schedule=CronDataIntervalTimetable("0 0 * * *", zone)):
            TidemarkTaskGroup(file)


@pytest.mark.parametrize(
    "schedule",
    [
        *(DAILY, CronDataIntervalTimetable("0 0 * * MON", "UTC"), None, [asset_of("others")]),
        CollectionTimetable(Schedule("0 0 * * *"), datetime(2024, 1, 1, tzinfo=UTC)),
        CronDataIntervalTimetable("0 1 * * *", "Europe/Berlin"),
    ],
)
def test_other_schedules_are_taken_and_each_run_is_compared_with_the_collections(file: Path, schedule: Any) -> None:
    with DAG("own", schedule=schedule):
        TidemarkTaskGroup(file)
