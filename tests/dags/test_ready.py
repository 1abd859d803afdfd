"""An interval that has not landed is waited for without a worker, then said in one line."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from airflow.sdk.module_loading import import_string

from tidemark.airflow import launch, ready, tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant

pytestmark = pytest.mark.timeout(300)

DAY = {"lower": "2024-01-01T00:00:00Z", "upper": "2024-01-02T00:00:00Z"}


@pytest.fixture
def strict(quiet: Path) -> Path:
    """The collection's file, whose days must have a folder."""
    quiet.write_text(quiet.read_text().replace("ready: always", "ready: exists"))
    return quiet


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "FIRST_PAUSE", 0.05)


def landing_trigger(locations: Path, *, marker: str = "exists", seconds: float = 60, **patterns: str) -> Any:
    landing = str(locations / "landing")
    paths = {day: f"{landing}/{path}" for day, path in patterns.items()}
    made = ready.LandingTrigger(paths, marker, landing, since=0.5, until=time.time() + seconds)
    path, arguments = made.serialize()
    return import_string(path)(**arguments)


def event_of(trigger: Any, meanwhile: Callable[[], object] | None = None) -> Any:
    """What a trigger fires, with what happens while it waits."""

    async def fired() -> Any:
        waits = asyncio.ensure_future(anext(trigger.run()))
        if meanwhile:
            await asyncio.sleep(0.2)
            assert not waits.done()
            meanwhile()
        return (await waits).payload

    return asyncio.run(fired())


@pytest.mark.parametrize(("marker", "file"), [("exists", ""), ("_SUCCESS", "_SUCCESS")])
def test_it_fires_when_all_intervals_have_landed(locations: Path, hurried: None, marker: str, file: str) -> None:
    (locations / "landing" / "1").mkdir(parents=True)
    (locations / "landing" / "1" / "_SUCCESS").touch()

    def land() -> None:
        (locations / "landing" / "2").mkdir()
        if file:
            (locations / "landing" / "2" / file).touch()

    trigger = landing_trigger(locations, marker=marker, one="1/*.csv", two="2/*.csv")
    assert event_of(trigger, land) == {"ready": True, "since": 0.5}


def test_at_its_limit_it_says_what_is_missing(locations: Path, hurried: None) -> None:
    (locations / "landing" / "1").mkdir(parents=True)
    event = event_of(landing_trigger(locations, seconds=0.5, one="1/*.csv", two="2/*.csv"))
    missing = ["two", f"{locations}/landing/2/*.csv", ""]
    assert event == {"ready": False, "since": 0.5, "missing": missing, "awaited": "exists"}


def test_a_store_that_is_away_is_waited_for_too_and_named_at_the_end(locations: Path, hurried: None) -> None:
    event = event_of(landing_trigger(locations, seconds=0.5, one="1/*.csv"))
    assert (event["ready"], "does not exist" in event["missing"][2]) == (False, True)
    gone = landing_trigger(locations, one="1/*.csv")
    assert event_of(gone, lambda: (locations / "landing" / "1").mkdir(parents=True)) == {"ready": True, "since": 0.5}


@pytest.mark.parametrize(("kind", "waits"), [("NotReady", True), ("Contention", False), ("CommitUnknown", False)])
def test_an_app_of_either_launcher_that_finds_nothing_is_waited_for_and_no_other(kind: str, waits: bool) -> None:
    seen = launch.ResultLine()
    seen.see(f'{{"step": "ingest", "error": {{"kind": "{kind}", "message": "why"}}}}')
    with pytest.raises(AirflowException, match="why") as raised:
        launch.settle("ingest", 75, 0, seen)
    assert isinstance(raised.value, launch.InputNotReady) is waits
    assert not isinstance(raised.value, AirflowFailException)


@pytest.mark.parametrize(
    ("end", "within", "least", "most"),
    [
        # The last interval is just over: it may come for half a day.
        (timedelta(), None, timedelta(hours=11.9), timedelta(hours=12.1)),
        (timedelta(), timedelta(hours=3), timedelta(hours=2.9), timedelta(hours=3.1)),
        # One long past: nobody waits half a day for each day of a backfill.
        (timedelta(days=3), None, timedelta(minutes=9), timedelta(minutes=10)),
        (timedelta(days=3), timedelta(minutes=2), timedelta(minutes=2), timedelta(minutes=2)),
    ],
)
def test_the_limit_counts_from_the_end_of_the_interval(
    strict: Path, end: timedelta, within: timedelta | None, least: timedelta, most: timedelta
) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - end
    began = now - timedelta(days=10)
    strict.write_text(
        strict.read_text()
        .replace("@daily", "@hourly")
        .replace("end: 2024-01-04\n", "")
        .replace("2024-01-01", began.isoformat())
    )
    ingest = tidemark_dag(strict, ready_within=within).get_task("ingest")
    bounds = {"lower": (now - timedelta(hours=1)).isoformat(), "upper": now.isoformat()}
    started = time.time()
    with pytest.raises(TaskDeferred) as deferred:
        ingest.execute(a_run(bounds))
    assert deferred.value.method_name == "landed"
    base = now.timestamp() if end == timedelta() else started
    limit = timedelta(seconds=deferred.value.trigger.until - base)
    assert least - timedelta(minutes=1) <= limit <= most + timedelta(minutes=1)
    assert location_of(strict).job().log.load().state.ingested.members == ()


def test_an_interval_that_is_not_over_is_no_run_by_hand(strict: Path) -> None:
    """Its scheduled run is begun when Airflow's clock says that it is over, and asks no other."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    began = (now - timedelta(days=1)).isoformat()
    text = strict.read_text().replace("@daily", "@hourly").replace("end: 2024-01-04\n", "")
    strict.write_text(text.replace("2024-01-01", began))
    ingest = tidemark_dag(strict).get_task("ingest")
    bounds = {"lower": (now - timedelta(hours=1)).isoformat(), "upper": (now + timedelta(hours=2)).isoformat()}
    with pytest.raises(InvalidUsage, match="is not over: rows of it may still come; trigger the run for intervals"):
        ingest.args_of_run(a_run(bounds))
    assert "--not-over" in ingest.args_of_run(a_run(bounds | {"upper": now.isoformat()}))


def test_without_patience_it_fails_at_once_and_never_waits_in_a_circle(strict: Path) -> None:
    ingest = tidemark_dag(strict, ready_within=timedelta(0)).get_task("ingest")
    with pytest.raises(
        AirflowFailException, match=r"has not landed: .*; waited \d+s\. When it is there, clear this task"
    ):
        ingest.execute(a_run(DAY))
    # The triggerer saw it, the app does not: on another machine, or gone again.
    with pytest.raises(AirflowFailException, match=r"waited 1h\d*m?\d*s?\. When it is there"):
        ingest.landed(a_run(DAY), {"ready": True, "since": time.time() - 3600})


def a_run(params: dict[str, str]) -> dict[str, Any]:
    """As much of a task's context as an ingest needs."""
    return {"params": params, "ti": SimpleNamespace(run_id="r", task_id="ingest", map_index=-1, try_number=1)}


def test_a_limit_that_is_no_duration_is_refused(strict: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_READY_WITHIN", "a while")
    with pytest.raises(AirflowFailException, match="not a duration: 'a while'"):
        tidemark_dag(strict).get_task("ingest").execute(a_run(DAY))


def test_a_day_that_lands_late_is_ingested_by_the_run_that_waited(strict: Path, locations: Path, hurried: None) -> None:
    land = threading.Timer(3, (locations / "landing" / "orders" / "2024-01-01").mkdir, kwargs={"parents": True})
    land.start()
    done = tidemark_dag(strict).test(logical_date=datetime(2024, 1, 1, tzinfo=UTC))
    land.join()
    tries = {ti.task_id: (str(ti.state), ti.try_number) for ti in done.get_task_instances()}
    assert (str(done.state), tries["ingest"], tries["published"][0]) == ("success", ("success", 1), "success")
    state = location_of(strict).job().log.load().state
    assert state.seal == parse_instant("2024-01-02")
