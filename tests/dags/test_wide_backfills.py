"""Which runs a backfill makes: of some intervals each, around the runs that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from tests.dags.support import ORDERS
from tests.dags.test_schedule import serialized, text_of
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant, parse_instant

ENDLESS = ORDERS.replace("end: 2024-01-04\n", "")
Days = tuple[str, str]


@pytest.fixture
def runs(database: None) -> Iterator[Callable[..., None]]:
    """Makes a run of the DAG `orders` that exists: its logical date, and its data interval."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType
    from sqlalchemy import delete

    def forget() -> None:
        with create_session() as session:
            session.execute(delete(DagRun).where(DagRun.dag_id.in_(["orders", "asked_of", "others"])))

    def make(date: str, lower: str, upper: str, run_type: str = "scheduled", **also: Any) -> None:
        begin, start, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (date, lower, upper))
        with create_session() as session:
            session.add(
                DagRun(
                    run_id=f"{run_type}__{date}",
                    logical_date=begin,
                    data_interval=(start, end),
                    run_after=end,
                    run_type=DagRunType(run_type),
                    **{"dag_id": "orders", "state": DagRunState.SUCCESS, **also},
                )
            )

    forget()
    yield make
    forget()


@pytest.fixture
def asked(collections: Path, runs: Callable[..., None]) -> Callable[..., list[Days]]:
    """The runs that a backfill of a range would be, as days."""
    from tidemark.airflow import tidemark_dag

    def between(first: str, last: str, text: str = ENDLESS, most: int = 7, **options: Any) -> list[Days]:
        file = collections / "orders.yaml"
        file.write_text(text)
        dag = serialized(tidemark_dag(file, backfill_intervals=most, **options))
        infos = list(dag.iter_dagrun_infos_between(pendulum.parse(first), pendulum.parse(last)))
        assert all(i.logical_date == i.data_interval.start and i.run_after == i.data_interval.end for i in infos)
        return [(text_of(info.data_interval.start), text_of(info.data_interval.end)) for info in infos]

    return between


def cut(*bounds: str) -> list[Days]:
    """Runs side by side."""
    return list(pairwise(bounds))


HOURLY = ENDLESS.replace("@daily", "@hourly")
NEW_YORK, KATHMANDU = (f"timezone: {zone}\n{ENDLESS}" for zone in ("America/New_York", "Asia/Kathmandu"))


@pytest.mark.parametrize(
    ("first", "last", "options", "runs"),
    [
        ("2024-02-01", "2024-02-20", {}, cut("2024-02-01", "2024-02-08", "2024-02-15", "2024-02-21")),
        ("2024-02-01", "2024-02-03", {"most": 1}, cut("2024-02-01", "2024-02-02", "2024-02-03", "2024-02-04")),
        ("2024-02-01", "2024-02-01", {}, cut("2024-02-01", "2024-02-02")),
        (
            *("2024-02-01T22:00:00", "2024-02-02T08:00:00", {"text": HOURLY}),
            cut("2024-02-01T22:00:00", "2024-02-02T05:00:00", "2024-02-02T09:00:00"),
        ),
        ("2023-12-01", "2024-02-01", {"text": ORDERS}, cut("2024-01-01", "2024-01-04")),
        ("2024-01-02", "2024-01-02", {"text": ORDERS}, cut("2024-01-02", "2024-01-03")),
        ("2024-01-04", "2024-01-31", {"text": ORDERS}, []),
        # Dates without a time are local days, east and west; other times are what they say.
        ("2024-03-09", "2024-03-11", {"text": NEW_YORK}, cut("2024-03-09T05:00:00", "2024-03-12T04:00:00")),
        (
            "2024-03-09T05:00:00",
            "2024-03-10T04:59:00",
            {"text": NEW_YORK},
            cut("2024-03-09T05:00:00", "2024-03-10T05:00:00"),
        ),
        ("2024-02-01", "2024-02-02", {"text": KATHMANDU}, cut("2024-01-31T18:15:00", "2024-02-02T18:15:00")),
    ],
)
def test_a_run_is_of_some_intervals_within_start_and_end(
    asked: Callable[..., list[Days]], first: str, last: str, options: dict[str, Any], runs: list[Days]
) -> None:
    assert asked(first, last, **options) == runs


def test_a_day_that_is_not_over_is_left_out(asked: Callable[..., list[Days]]) -> None:
    today = pendulum.now("UTC").start_of("day")
    days = asked(text_of(today.subtract(days=2)), text_of(today.add(days=40)))
    assert days == [(text_of(today.subtract(days=2)), text_of(today))]
    assert asked(text_of(today), text_of(today.add(days=40))) == []


def test_days_that_have_a_run_stay_its_own(asked: Callable[..., list[Days]], runs: Callable[..., None]) -> None:
    runs("2024-02-10", "2024-02-10", "2024-02-11")
    runs("2024-02-11", "2024-02-11", "2024-02-14", "backfill")
    assert asked("2024-02-01", "2024-02-20") == cut(
        "2024-02-01", "2024-02-08", "2024-02-10", "2024-02-11", "2024-02-14", "2024-02-21"
    )


def test_a_day_within_a_wide_run_is_that_run(asked: Callable[..., list[Days]], runs: Callable[..., None]) -> None:
    runs("2024-02-05", "2024-02-05", "2024-02-12", "backfill")
    expected = cut("2024-02-05", "2024-02-12", "2024-02-15")
    assert asked("2024-02-07", "2024-02-14") == expected
    assert asked("2024-02-07", "2024-02-08") == expected[:1]
    assert asked("2024-02-12", "2024-02-14") == expected[1:]
    runs("2024-02-06T07:00:00", "2024-02-05", "2024-02-06", "manual")
    assert asked("2024-02-07", "2024-02-14") == expected


def test_runs_of_other_dags_and_about_other_times_are_in_nobodys_way(
    asked: Callable[..., list[Days]], runs: Callable[..., None]
) -> None:
    runs("2024-02-03", "2024-02-03", "2024-02-05", dag_id="others")
    runs("2024-02-04T07:00:00", "2024-02-03", "2024-02-04", "manual")  # it read the day before, or what its params say
    assert asked("2024-02-05", "2024-02-06") == [("2024-02-05", "2024-02-07")]
    # Airflow makes no second run of one logical date: a run by hand at midnight is that of its day.
    runs("2024-02-06", "2024-02-05", "2024-02-06", "manual")
    assert asked("2024-02-05", "2024-02-07") == cut("2024-02-05", "2024-02-06", "2024-02-07", "2024-02-08")


def test_a_dag_that_catches_up_until_an_end_is_no_backfill(collections: Path, runs: Callable[..., None]) -> None:
    from tidemark.airflow import tidemark_dag

    end = pendulum.parse("2024-01-20")
    (collections / "orders.yaml").write_text(ENDLESS)
    dag = serialized(tidemark_dag(collections / "orders.yaml", catchup=True, end_date=end))
    first = dag.next_dagrun_info(last_automated_run_info=None)
    assert (text_of(first.data_interval.start), text_of(first.data_interval.end)) == ("2024-01-01", "2024-01-02")
    second = dag.next_dagrun_info(last_automated_run_info=first)
    assert (text_of(second.data_interval.start), text_of(second.data_interval.end)) == ("2024-01-02", "2024-01-03")
    (some,) = dag.iter_dagrun_infos_between(pendulum.parse("2024-01-01"), pendulum.parse("2024-01-05"))
    assert text_of(some.data_interval.end) == "2024-01-06"


def test_a_task_sees_which_intervals_other_runs_are_about(
    runs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.execution_api.routes.dag_runs import get_previous_dagrun
    from airflow.sdk import DagRunState
    from airflow.sdk.execution_time import task_runner
    from airflow.utils.session import create_session

    from tidemark.airflow.other_runs import IN_FLIGHT, with_runs

    sent: list[Any] = []

    def send(asked: Any) -> Any:
        sent.append(asked)
        with create_session() as session:
            return SimpleNamespace(
                dag_run=get_previous_dagrun(asked.dag_id, asked.logical_date, session, state=asked.state)
            )

    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(send=send), raising=False)
    monkeypatch.setattr("tidemark.airflow.other_runs.RUNS_LOOKED_AT", 2)
    context = {"dag": SimpleNamespace(dag_id="orders")}
    queued, running, failed = DagRunState.QUEUED, DagRunState.RUNNING, DagRunState.FAILED
    runs("2024-02-01", "2024-02-01", "2024-02-06", "backfill", state=queued)
    runs("2024-02-04T07:00:00", "2024-02-03", "2024-02-04", "manual", state=queued)
    runs("2024-02-06", "2024-02-06", "2024-02-07", "backfill", state=running)
    runs("2024-02-07", "2024-02-07", "2024-02-09", "backfill", state=failed)
    days = Schedule("@daily").beginning(parse_instant("2024-02-03"), parse_instant("2024-02-10"))

    def found(*states: DagRunState) -> list[str]:
        return sorted(format_instant(one.lower)[:10] for one in with_runs(context, days, states))

    assert found(*IN_FLIGHT) == ["2024-02-03", "2024-02-04", "2024-02-05", "2024-02-06"]
    assert found(failed) == ["2024-02-07", "2024-02-08"]
    assert len(sent) <= 8
    assert with_runs(context, [], IN_FLIGHT) == set()
    assert with_runs({"dag": SimpleNamespace(dag_id="others")}, days, IN_FLIGHT) == set()


@pytest.mark.parametrize(("value", "said"), [("0", "backfill_intervals is 0"), ("1001", "is 1001"), ("many", "'many'")])
def test_a_number_of_intervals_that_makes_no_sense_is_refused(
    collections: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    from tidemark.airflow import tidemark_dag

    monkeypatch.setenv("TIDEMARK_BACKFILL_INTERVALS", value)
    with pytest.raises(InvalidUsage, match=said):
        tidemark_dag(collections / "orders.yaml")


def test_what_an_earlier_release_serialized_is_read(collections: Path) -> None:
    from tidemark.airflow import tidemark_dag
    from tidemark.airflow.timetable import CollectionTimetable, InputsTimetable

    now: Any = tidemark_dag(collections / "orders.yaml").timetable
    data = {name: value for name, value in now.serialize().items() if name != "wide"}
    assert CollectionTimetable.deserialize(data).wide is None
    inputs = InputsTimetable.of(["orders"])
    data = {name: value for name, value in inputs.serialize().items() if name != "wide"}
    assert InputsTimetable.deserialize(data) == inputs
