"""Events of intervals: one for each that became complete, with the interval as its partition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.dags.test_bad_day import GREEN, Days
from tidemark.airflow import intervals_asset_of, tidemark_dag, window_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval

pytestmark = pytest.mark.timeout(300)


def events_of(name: str) -> list[tuple[str | None, str]]:
    """The partitions of the events of a collection's intervals, and up to where each says it is complete."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    asked = (
        select(AssetEvent)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.uri == f"tidemark://{name}/intervals")
        .order_by(AssetEvent.id)
    )
    with create_session() as session:
        return sorted((event.partition_key, event.extra["complete_below"][:10]) for event in session.scalars(asked))


def test_an_event_for_each_interval_that_became_complete(days: Days) -> None:
    days.file.write_text(days.file.read_text() + 'airflow: {partitions: "@daily"}\n')
    for day in (1, 2, 3):
        days.land(day)
    assert days.run(2, upper=3)[1]["published"] == "failed"
    assert events_of(days.name) == [], "the first day is missing"
    assert days.run(1) == ("success", GREEN)
    both = [("2024-01-01T00:00:00", "2024-01-03"), ("2024-01-02T00:00:00", "2024-01-03")]
    assert events_of(days.name) == both
    days.land(1, "paid")
    assert days.run(1) == ("success", GREEN), "a correction is reported by the collection's own asset"
    assert events_of(days.name) == both
    assert days.run(3) == ("success", GREEN)
    assert events_of(days.name) == [*both, ("2024-01-03T00:00:00", "2024-01-04")]


def test_without_the_field_there_is_no_such_asset(days: Days) -> None:
    (own,) = tidemark_dag(days.file).get_task("published").outlets
    assert own.name == days.name
    days.file.write_text(days.file.read_text() + 'airflow: {partitions: "every day"}\n')
    with pytest.raises(InvalidUsage, match="'every day' is no schedule"):
        tidemark_dag(days.file)


def test_a_run_of_a_partition_without_a_date_is_about_its_interval() -> None:
    context: dict[str, Any] = {"partition_key": "2024-01-02T00:00:00", "dag_run": SimpleNamespace(run_type="asset")}
    second = Interval(parse_instant("2024-01-02"), parse_instant("2024-01-03"))
    assert window_of(context, schedule="@daily") == second
    midnight = Interval(parse_instant("2024-01-02T05:00"), parse_instant("2024-01-03T05:00"))
    assert window_of(context, schedule="@daily", timezone="America/New_York") == midnight
    again = {**context, "partition_key": "2024-11-03T01:00:00-0500"}
    hour = Interval(parse_instant("2024-11-03T06:00"), parse_instant("2024-11-03T07:00"))
    assert window_of(again, schedule="@hourly", timezone="America/New_York") == hour
    with pytest.raises(InvalidUsage, match="has no date"):
        window_of({**context, "partition_key": "eu"}, schedule="@daily")


def test_a_dag_of_partitions_is_made_of_the_asset() -> None:
    from airflow.sdk import DAG, PartitionedAssetTimetable

    with DAG("own", schedule=PartitionedAssetTimetable(assets=intervals_asset_of("flights"))) as dag:
        pass
    assert intervals_asset_of("flights").name == "flights.intervals"
    assert dag.timetable is not None
