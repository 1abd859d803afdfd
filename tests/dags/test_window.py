"""A run's interval, whatever kind of run it is."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import DAG, Asset, CronPartitionTimetable

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


def run_of(kind: str, **more: Any) -> dict[str, Any]:
    """What a task sees of a run of day 2."""
    return CLASSIC | {"dag_run": SimpleNamespace(run_type=kind, run_after=day(9, 5)), "logical_date": day(2)} | more


def sealed(lower: str, upper: str) -> dict[str, Any]:
    """A run that two events of a Tidemark asset triggered, from `lower` over a time between to `upper`, beside one of
    another asset."""
    between = "2024-01-02T12:00:00Z"
    events = [SimpleNamespace(extra={"lower": a, "upper": b}) for a, b in ((lower, between), (between, upper))]
    other = {Asset("other", uri="s3://bucket/other"): [SimpleNamespace(extra={})]}
    none = {"data_interval_start": None, "data_interval_end": None}
    return {**none, "triggering_asset_events": {asset_of("flights"): events, **other}}


PARAMS = {"lower": "2024-01-05T00:00:00+00:00", "upper": "2024-01-07T02:00:00+02:00"}
SAME = {"lower": "2024-01-02", "upper": "2024-01-03"}
PARTITION = {"partition_key": "2024-02-01", "partition_date": day(1, month=2), "params": {}}
BARE = run_of("manual", data_interval_start=None, data_interval_end=None, logical_date=None)
HOURS = DAG("hours", schedule=CronPartitionTimetable("0 * * * *", timezone="UTC"))
LATE = sealed("2023-12-31T22:00:00Z", "2024-01-03T22:00:00Z")
"""An upstream with a grace of two hours seals between two days: the day that is not complete comes next time."""


@pytest.mark.parametrize(
    ("run", "options", "about"),
    [
        pytest.param(CLASSIC, {}, ("2024-01-02", "2024-01-03"), id="its data interval"),
        pytest.param(run_of("manual", params=PARAMS), {}, ("2024-01-05", "2024-01-07"), id="params come first"),
        pytest.param(CLASSIC | {"params": PARAMS}, {}, ("2024-01-05", "2024-01-07"), id="of no known kind"),
        pytest.param(run_of("scheduled"), {}, ("2024-01-02", "2024-01-03"), id="scheduled"),
        pytest.param(run_of("backfill"), {}, ("2024-01-02", "2024-01-03"), id="a backfill's"),
        pytest.param(run_of("backfill", params=SAME), {}, ("2024-01-02", "2024-01-03"), id="params that say the same"),
        pytest.param(BARE, {"schedule": "@daily"}, ("2024-01-08", "2024-01-09"), id="the last that was over"),
        pytest.param(
            {"params": {"lower": 0, "upper": 86_400_000_000}}, {}, ("1970-01-01", "1970-01-02"), id="microseconds"
        ),
        pytest.param(PARTITION, {"schedule": "@monthly"}, ("2024-02-01", "2024-03-01"), id="a partition"),
        pytest.param(
            {"partition_key": "k", "partition_date": day(1, hour=5), "dag": HOURS},
            {},
            ("2024-01-01T05:00:00", "2024-01-01T06:00:00"),
            id="a partition follows its DAG",
        ),
        pytest.param(sealed("2024-01-02", "2024-01-05"), {}, ("2024-01-02", "2024-01-05"), id="what was newly sealed"),
    ],
)
def test_a_run_is_about_an_interval(run: dict[str, Any], options: dict[str, Any], about: tuple[str, str]) -> None:
    assert window_of(run, **options) == interval(*about)


@pytest.mark.parametrize(
    ("run", "options", "bounds"),
    [
        (run_of("manual", params=PARAMS), {"schedule": "@daily"}, ["2024-01-05", "2024-01-06", "2024-01-07"]),
        (BARE, {"schedule": "@hourly"}, ["2024-01-09T04:00", "2024-01-09T05:00"]),
        (sealed("2024-01-01", "2024-01-04"), {"schedule": "@daily"}, [f"2024-01-0{at}" for at in (1, 2, 3, 4)]),
        (LATE, {"schedule": "@daily"}, ["2023-12-31", "2024-01-01", "2024-01-02", "2024-01-03"]),
        (LATE, {"schedule": "@monthly"}, ["2023-12-01", "2024-01-01"]),
        (LATE, {"schedule": "@yearly", "start": parse_instant("2024-01-01")}, []),
        (  # the first event of all begins with the collection that reads it
            sealed("1970-01-01", "2024-01-04"),
            {"schedule": "@daily", "start": parse_instant("2024-01-02"), "end": parse_instant("2024-01-03")},
            ["2024-01-02", "2024-01-03"],
        ),
    ],
)
def test_an_interval_of_several_is_split(run: dict[str, Any], options: dict[str, Any], bounds: list[str]) -> None:
    assert intervals_of(run, **options) == [interval(*pair) for pair in pairwise(bounds)]


@pytest.mark.parametrize(
    ("run", "schedule", "said"),
    [
        *(
            (
                run_of(kind, params=PARAMS),
                None,
                r"this run is for \[2024-01-02.*, but its params lower and upper say \[2024-01-05.*leave them empty",
            )
            for kind in ("scheduled", "backfill")
        ),
        (PARTITION | {"params": PARAMS}, "@monthly", "leave them empty"),
        # Airflow keeps the interval of the manual run: the day would be green and never ingested.
        (run_of("backfill", logical_date=day(3)), None, "triggered by hand once"),
        (CLASSIC | {"params": {"lower": "2024-01-05", "upper": None}}, None, "go together"),
        (CLASSIC | {"params": {"lower": "", "upper": "2024-01-05"}}, None, "go together"),
        ({"params": {"lower": "yesterday", "upper": "2024-01-05"}}, None, "yesterday"),
        ({"params": {"lower": "2024-01-05", "upper": "2024-01-05"}}, None, "2024-01-05"),
        ({"partition_key": "eu"}, None, "partition 'eu'"),
        ({"partition_key": "eu", "partition_date": day(1)}, None, "partition 'eu'"),
        ({}, None, "no data interval, no partition, no triggering asset event and no params"),
        (
            {"data_interval_start": None, "data_interval_end": None, "params": {}},
            None,
            "no data interval, no partition, no triggering asset event and no params",
        ),
        ({"data_interval_start": day(2), "data_interval_end": day(2)}, None, "CronDataIntervalTimetable"),
    ],
)
def test_a_run_about_no_interval_is_refused(run: dict[str, Any], schedule: str | None, said: str) -> None:
    with pytest.raises(InvalidUsage, match=said):
        window_of(run, schedule=schedule)


def test_params_between_two_intervals_are_refused() -> None:
    with pytest.raises(InvalidUsage, match="write 2024-01-01T00:00:00Z or 2024-02-01T00:00:00Z"):
        intervals_of(run_of("manual", params=PARAMS), schedule="@monthly")
