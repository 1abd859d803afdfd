"""A run's interval, whatever kind of run it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from tidemark.airflow import asset_of, intervals_of, window_of
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


def run_of(kind: str, **more: Any) -> dict[str, Any]:
    """What a task sees of a run of day 2."""
    return CLASSIC | {"dag_run": SimpleNamespace(run_type=kind, run_after=day(9, 5)), "logical_date": day(2)} | more


PARAMS = {"lower": "2024-01-05T00:00:00+00:00", "upper": "2024-01-07T02:00:00+02:00"}


def test_of_a_manual_run_explicit_params_come_first() -> None:
    assert window_of(run_of("manual", params=PARAMS)) == interval("2024-01-05", "2024-01-07")
    assert window_of(CLASSIC | {"params": PARAMS}) == interval("2024-01-05", "2024-01-07")


@pytest.mark.parametrize("kind", ["scheduled", "backfill"])
def test_a_run_made_for_an_interval_has_that_one_whatever_the_form_said(kind: str) -> None:
    assert window_of(run_of(kind)) == interval("2024-01-02", "2024-01-03")
    same = {"lower": "2024-01-02", "upper": "2024-01-03"}
    assert window_of(run_of(kind, params=same)) == interval("2024-01-02", "2024-01-03")
    said = r"this run is for \[2024-01-02.*, but its params lower and upper say \[2024-01-05.*leave them empty"
    with pytest.raises(InvalidUsage, match=said):
        window_of(run_of(kind, params=PARAMS))


def test_a_partition_does_not_let_itself_be_talked_into_another_interval() -> None:
    run = {"partition_key": "2024-02-01", "partition_date": day(1, month=2), "params": PARAMS}
    with pytest.raises(InvalidUsage, match="leave them empty"):
        window_of(run, schedule="@monthly")


def test_a_backfill_over_a_manual_run_of_another_day_is_refused() -> None:
    # Airflow keeps the interval of the manual run: the day would be green and never ingested.
    with pytest.raises(InvalidUsage, match="triggered by hand once"):
        window_of(run_of("backfill", logical_date=day(3)))


def test_a_manual_run_without_a_date_is_about_the_last_interval_that_was_over() -> None:
    bare = run_of("manual", data_interval_start=None, data_interval_end=None, logical_date=None)
    assert window_of(bare, schedule="@daily") == interval("2024-01-08", "2024-01-09")
    assert intervals_of(bare, schedule="@hourly") == [interval("2024-01-09T04:00", "2024-01-09T05:00")]


def test_an_interval_of_several_is_split_and_one_between_two_is_refused() -> None:
    assert intervals_of(run_of("manual", params=PARAMS), schedule="@daily") == [
        interval("2024-01-05", "2024-01-06"),
        interval("2024-01-06", "2024-01-07"),
    ]
    with pytest.raises(InvalidUsage, match="write 2024-01-01T00:00:00Z or 2024-02-01T00:00:00Z"):
        intervals_of(run_of("manual", params=PARAMS), schedule="@monthly")


def sealed(lower: str, upper: str) -> dict[str, Any]:
    """A run that two events of a Tidemark asset triggered, from `lower` over a time between to `upper`."""
    between = "2024-01-02T12:00:00Z"
    events = [SimpleNamespace(extra={"lower": a, "upper": b}) for a, b in ((lower, between), (between, upper))]
    return {"triggering_asset_events": {asset_of("flights"): events}}


def test_a_run_triggered_by_several_seals_gets_the_intervals_they_completed() -> None:
    assert intervals_of(sealed("2024-01-01", "2024-01-04"), schedule="@daily") == [
        interval("2024-01-01", "2024-01-02"),
        interval("2024-01-02", "2024-01-03"),
        interval("2024-01-03", "2024-01-04"),
    ]
    # An upstream with a grace of two hours seals between two days: the day that is not complete comes next time.
    late = sealed("2023-12-31T22:00:00Z", "2024-01-03T22:00:00Z")
    expected = [
        interval("2023-12-31", "2024-01-01"),
        interval("2024-01-01", "2024-01-02"),
        interval("2024-01-02", "2024-01-03"),
    ]
    assert intervals_of(late, schedule="@daily") == expected
    assert intervals_of(late, schedule="@monthly") == [interval("2023-12-01", "2024-01-01")]
    assert intervals_of(late, schedule="@yearly", start=parse_instant("2024-01-01")) == []


def test_the_first_event_of_all_begins_with_the_collection_that_reads_it() -> None:
    first = sealed("1970-01-01", "2024-01-04")
    found = intervals_of(first, schedule="@daily", start=parse_instant("2024-01-02"), end=parse_instant("2024-01-03"))
    assert found == [interval("2024-01-02", "2024-01-03")]


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
