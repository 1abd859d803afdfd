"""A run's interval, whatever kind of run it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from tidemark.airflow import asset_of, window_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval


def interval(lower: str, upper: str) -> Interval:
    return Interval(parse_instant(lower), parse_instant(upper))


def day(number: int, hour: int = 0, month: int = 1) -> pendulum.DateTime:
    """As Airflow gives it: no plain datetime."""
    return pendulum.datetime(2024, month, number, hour)


CLASSIC = {"data_interval_start": day(2), "data_interval_end": day(3), "params": {"lower": None, "upper": None}}


def test_a_scheduled_or_backfilled_run_has_its_data_interval() -> None:
    assert window_of(CLASSIC) == interval("2024-01-02", "2024-01-03")


def test_explicit_params_come_first() -> None:
    params = {"lower": "2024-01-05T00:00:00+00:00", "upper": "2024-01-07T02:00:00+02:00"}
    assert window_of(CLASSIC | {"params": params}) == interval("2024-01-05", "2024-01-07")


def test_params_may_be_microseconds() -> None:
    assert window_of({"params": {"lower": 0, "upper": 86_400_000_000}}) == interval("1970-01-01", "1970-01-02")


@pytest.mark.parametrize("params", [{"lower": "2024-01-05", "upper": None}, {"lower": "", "upper": "2024-01-05"}])
def test_one_param_alone_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage, match="go together"):
        window_of(CLASSIC | {"params": params})


@pytest.mark.parametrize(
    "params", [{"lower": "yesterday", "upper": "2024-01-05"}, {"lower": "2024-01-05", "upper": "2024-01-05"}]
)
def test_params_that_are_no_interval_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage):
        window_of({"params": params})


def test_a_partition_reaches_to_the_next_boundary_of_the_schedule() -> None:
    run = {"partition_key": "2024-02-01", "partition_date": day(1, month=2), "params": {}}
    assert window_of(run, schedule="@monthly") == interval("2024-02-01", "2024-03-01")


def test_without_a_schedule_a_partition_follows_its_dag() -> None:
    from airflow.sdk import DAG, CronPartitionTimetable

    dag = DAG("hours", schedule=CronPartitionTimetable("0 * * * *", timezone="UTC"))
    run = {"partition_key": "k", "partition_date": day(1, hour=5), "dag": dag}
    assert window_of(run) == interval("2024-01-01T05:00:00", "2024-01-01T06:00:00")


@pytest.mark.parametrize("run", [{"partition_key": "eu"}, {"partition_key": "eu", "partition_date": day(1)}])
def test_a_partition_without_date_or_length_is_refused(run: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage, match="partition 'eu'"):
        window_of(run)


def test_a_run_triggered_by_our_assets_covers_what_they_newly_sealed() -> None:
    from airflow.sdk import Asset

    def event(lower: str, upper: str) -> Any:
        return SimpleNamespace(extra={"lower": lower, "upper": upper, "seal": upper})

    events = {
        asset_of("flights"): [event("2024-01-02", "2024-01-03"), event("2024-01-03", "2024-01-05")],
        Asset("other", uri="s3://bucket/other"): [SimpleNamespace(extra={})],
    }
    run = {"data_interval_start": None, "data_interval_end": None, "triggering_asset_events": events}
    assert window_of(run) == interval("2024-01-02", "2024-01-05")


@pytest.mark.parametrize("run", [{}, {"data_interval_start": None, "data_interval_end": None, "params": {}}])
def test_a_run_that_names_no_interval_fails_loudly(run: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage, match="no data interval, no partition, no triggering asset event and no params"):
        window_of(run)


def test_the_empty_interval_of_a_bare_cron_string_is_refused() -> None:
    with pytest.raises(InvalidUsage, match="CronDataIntervalTimetable"):
        window_of({"data_interval_start": day(2), "data_interval_end": day(2)})
