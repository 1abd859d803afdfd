"""Holds by tasks: placed before, let go after, whatever happens between."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidemark.airflow import HoldOperator, ReleaseHoldOperator, location
from tidemark.model.change import CompactionAllowed

RUN: Any = {"dag": SimpleNamespace(dag_id="Monthly Report"), "run_id": "scheduled__2024-01-01T00:00:00+00:00"}


@pytest.fixture
def declared(collections: Path, locations: Path) -> location.Location:
    found = location.location_of(collections / "orders.yaml")
    found.declare()
    return found


def holds(of: location.Location) -> dict[str, int]:
    return {hold.name: hold.since for hold in of.job().log.load().state.holds}


def test_a_run_holds_under_a_name_of_its_own_and_lets_go(declared: location.Location) -> None:
    placed = HoldOperator(collection="orders", at="2024-01-05", lasts="1d").execute(RUN)
    assert placed["since_text"] == "2024-01-05T00:00:00Z"
    assert holds(declared) == {placed["hold"]: placed["since"]}
    other = HoldOperator(collection="orders", hold="mine").execute({**RUN, "run_id": "manual"})
    assert other["hold"] == "mine"
    ReleaseHoldOperator(collection="orders").execute(RUN)
    assert holds(declared) == {"mine": 0}
    assert ReleaseHoldOperator(collection="orders").execute(RUN)["outcome"] == "nothing to do"


def test_a_hold_on_merged_history_is_refused_and_not_tried_again(declared: location.Location) -> None:
    log = declared.job().log
    log.commit(log.load(), CompactionAllowed(10))
    with pytest.raises(AirflowFailException, match=r"cannot hold .*merged already; nearest readable"):
        HoldOperator(collection="orders", at="5").execute(RUN)


def test_the_tasks_between_run_under_the_hold(declared: location.Location) -> None:
    with (
        DAG("report", schedule=None, start_date=datetime(2024, 1, 1)) as dag,  # noqa: DTZ001 airflow makes it UTC
        HoldOperator.around(collection="orders", at="{{ data_interval_start }}"),
    ):
        BaseOperator(task_id="report")
    assert dag.get_task("hold").is_setup
    assert dag.get_task("release_hold").is_teardown
    assert dag.get_task("report").upstream_task_ids == {"hold"}
    assert dag.get_task("report").downstream_task_ids == {"release_hold"}
