"""What the scheduler would create, asked of the DAG as the scheduler sees it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pendulum
import pytest

from tests.dags.support import ORDERS
from tidemark.errors import InvalidUsage

Run = tuple[str, str]


@pytest.fixture
def scheduled(collections: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Run]]:
    """The first runs a scheduler creates for a collection file that is unpaused at `now`, as (lower, upper) days.

    The clock moves on to the moment each run may start, so that nothing is skipped after the first.
    """
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.timetables.base import DataInterval

    from tidemark.airflow import tidemark_dag

    def created(text: str, *, now: str, limit: int = 3, after: Run | None = None, **options: Any) -> list[Run]:
        file = collections / "asked.yaml"
        file.write_text(text)
        dag = DagSerialization.from_dict(DagSerialization.to_dict(tidemark_dag(file, **options)))
        clock = pendulum.parse(now)
        last = DataInterval(*map(pendulum.parse, after)) if after else None
        runs: list[Run] = []
        while len(runs) < limit:
            monkeypatch.setattr("airflow.timetables.interval.utcnow", lambda moment=clock: moment)
            info = dag.timetable.next_dagrun_info(last_automated_data_interval=last, restriction=dag._time_restriction)
            if info is None:
                break
            last = info.data_interval
            clock = max(clock, info.run_after)
            runs.append((text_of(last.start), text_of(last.end)))
        return runs

    return created


def text_of(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00").removesuffix("T00:00:00")


def days(*lowers: int) -> list[Run]:
    return [(f"2024-01-{lower:02d}", f"2024-01-{lower + 1:02d}") for lower in lowers]


ENDLESS = ORDERS.replace("end: 2024-01-04\n", "")
HOURLY = ORDERS.replace("@daily", "0 * * * *").replace("end: 2024-01-04", "end: 2024-01-01T02:00:00")
LONG_AFTER = "2026-11-21T07:00:00Z"


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        pytest.param(ORDERS, {"now": LONG_AFTER}, [], id="ended"),
        pytest.param(ORDERS, {"now": LONG_AFTER, "after": ("2024-01-02", "2024-01-03")}, [], id="after a backfill"),
        pytest.param(ORDERS, {"now": "2024-01-04T00:00:01Z"}, days(3), id="on the last day"),
        pytest.param(ORDERS, {"now": "2024-01-03T05:00:00Z"}, days(2, 3), id="in between"),
        pytest.param(ORDERS, {"now": "2023-06-01T00:00:00Z", "limit": 9}, days(1, 2, 3), id="ahead of time"),
        pytest.param(
            ENDLESS,
            {"now": LONG_AFTER},
            [("2026-11-20", "2026-11-21"), ("2026-11-21", "2026-11-22"), ("2026-11-22", "2026-11-23")],
            id="without an end",
        ),
        pytest.param(
            HOURLY,
            {"now": "2023-06-01T00:00:00Z", "limit": 9},
            [("2024-01-01", "2024-01-01T01:00:00"), ("2024-01-01T01:00:00", "2024-01-01T02:00:00")],
            id="hours",
        ),
        pytest.param(ORDERS, {"now": LONG_AFTER, "limit": 9, "catchup": True}, days(1, 2, 3), id="catching up"),
    ],
)
def test_unpaused_it_starts_with_the_latest_interval_and_ends_with_the_collection(
    scheduled: Callable[..., list[Run]], text: str, asked: dict[str, Any], expected: list[Run]
) -> None:
    assert scheduled(text, **asked) == expected


@pytest.mark.parametrize(
    ("zone", "now", "expected"),
    [
        # 23 hours, then 24.
        ("America/New_York", "2024-03-11T05:00:00Z", [("10T05:00:00", "11T04:00:00"), ("11T04:00:00", "12T04:00:00")]),
        ("Africa/Cairo", "2024-04-27T00:00:00Z", [("25T22:00:00", "26T21:00:00"), ("26T21:00:00", "27T21:00:00")]),
        # Midnight is shown twice: Airflow's own timetable begins the day an hour later.
        ("America/Havana", "2024-11-04T06:00:00Z", [("03T04:00:00", "04T05:00:00"), ("04T05:00:00", "05T05:00:00")]),
    ],
)
def test_days_are_those_of_the_collections_zone(
    scheduled: Callable[..., list[Run]], zone: str, now: str, expected: list[Run]
) -> None:
    runs = scheduled(f"timezone: {zone}\n{ENDLESS}", now=now, limit=2)
    assert [tuple(bound[8:] for bound in run) for run in runs] == expected


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("start: 2024-01-01", "start: 2024-01-01T12:00:00", "starts at 2024-01-01T12:00:00Z"),
        ("end: 2024-01-04", "end: 2024-01-03T12:00:00", "ends at 2024-01-03T12:00:00Z"),
        ('"@daily"', "0 3 * * *", "write 2023-12-31T03:00:00Z or 2024-01-01T03:00:00Z"),
    ],
)
def test_a_bound_between_two_intervals_is_refused(
    scheduled: Callable[..., list[Run]], before: str, after: str, said: str
) -> None:
    # Its interval would never be ingested, and the seal would wait for it for ever.
    with pytest.raises(InvalidUsage, match=said):
        scheduled(ORDERS.replace(before, after), now="2024-01-02T00:00:00Z")


def serialized(dag: Any) -> Any:
    """The DAG as the scheduler and the API server have it."""
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


def test_nothing_keeps_a_manual_run_from_having_tasks(collections: Any) -> None:
    # Beyond start_date and end_date Airflow makes a run without tasks, and calls it successful.
    from tidemark.airflow import tidemark_dag

    dag = serialized(tidemark_dag(collections / "orders.yaml"))
    assert dag.end_date is None
    assert all(task.end_date is None for task in dag.tasks)
    assert all(task.start_date <= datetime(1970, 1, 1, tzinfo=UTC) for task in dag.tasks)


@pytest.mark.parametrize(
    ("logical_date", "lower"),
    [
        ("2024-01-02T00:00:00Z", "2024-01-02"),
        ("2024-01-02T00:00:01Z", "2024-01-01"),
        ("2024-01-02T23:00:00Z", "2024-01-01"),
        ("2026-11-20T07:00:00Z", "2026-11-19"),
    ],
)
def test_the_date_of_a_manual_run_names_the_interval_the_scheduler_would_give_it(
    collections: Any, logical_date: str, lower: str
) -> None:
    from tidemark.airflow import tidemark_dag

    timetable = serialized(tidemark_dag(collections / "orders.yaml")).timetable
    interval = timetable.infer_manual_data_interval(run_after=pendulum.parse(logical_date))
    assert (text_of(interval.start), interval.end - interval.start) == (lower, timedelta(days=1))


def test_of_an_interval_that_is_not_over_a_manual_run_is_not_made(collections: Any) -> None:
    from tidemark.airflow import tidemark_dag

    timetable = serialized(tidemark_dag(collections / "orders.yaml")).timetable
    midnight = pendulum.now("UTC").start_of("day")
    assert timetable.infer_manual_data_interval(run_after=midnight).end == midnight


def test_a_timetable_survives_the_scheduler_and_equals_itself(collections: Any) -> None:
    from tidemark.airflow import tidemark_dag

    dag = tidemark_dag(collections / "orders.yaml")
    again = serialized(dag).timetable
    assert again == dag.timetable
    assert hash(again) == hash(dag.timetable)
    (collections / "orders.yaml").write_text(ORDERS.replace("2024-01-04", "2024-01-05"))
    assert tidemark_dag(collections / "orders.yaml").timetable != again


def test_presets_are_those_of_airflow() -> None:
    from airflow.utils.dates import cron_presets

    from tidemark.config.schedule import PRESETS

    assert PRESETS.items() >= cron_presets.items()


def test_the_scheduler_has_no_next_run_for_an_ended_collection(collections: Any, database: None) -> None:
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.models import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    from tests.dags.support import parsed

    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
    sync_bag_to_db(parsed(), "dags-folder", None)
    with create_session() as session:
        model = session.get(DagModel, "orders")
        assert model is not None
        assert model.next_dagrun_create_after is None
