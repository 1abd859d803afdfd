"""Runs by hand and out of order, in process: what they ingest, and what they say at their end."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.dags.support import ORDERS
from tidemark.airflow import tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.model.instant import format_instant, parse_instant

pytestmark = pytest.mark.timeout(300)

QUIET = ORDERS.replace("ready: exists", "ready: always")
"""Days without files: every step is metadata, and no Spark is started."""


@pytest.fixture
def quiet(collections: Path, locations: Path, database: None) -> Path:
    """A collection file with a name of its own: the events of an asset stay in the session's database."""
    (locations / "landing").mkdir()
    name = f"quiet_{uuid.uuid4().hex[:8]}"
    file = collections / f"{name}.yaml"
    file.write_text(QUIET.replace("name: orders", f"name: {name}"))
    return file


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What tasks have logged."""
    return lambda: caplog.text + "".join(capfd.readouterr())


def run(file: Path, logical_date: str, *bounds: str) -> tuple[str, dict[str, str]]:
    """A manual run with the params lower and upper, if any: its state, and its tasks' states."""
    dag = tidemark_dag(file, default_args={"retries": 0})
    at = datetime.fromisoformat(logical_date).replace(tzinfo=UTC)
    done = dag.test(logical_date=at, run_conf=dict(zip(("lower", "upper"), bounds, strict=False)))
    return str(done.state), {ti.task_id: str(ti.state) for ti in done.get_task_instances()}


def ingested(file: Path) -> Sequence[tuple[str, str]]:
    members = location_of(file).job().log.load().state.ingested.members
    return [(format_instant(member.lower)[:10], format_instant(member.upper)[:10]) for member in members]


def seal(file: Path) -> str:
    return format_instant(location_of(file).job().log.load().state.seal)[:10]


def test_after_the_collections_end_a_run_with_params_does_them_all(quiet: Path) -> None:
    state, tasks = run(quiet, "2026-11-20T07:00:00", "2024-01-01T00:00:00Z", "2024-01-04T00:00:00Z")
    assert (state, len(tasks)) == ("success", 9)
    assert set(tasks.values()) == {"success"}
    assert (ingested(quiet), seal(quiet)) == ([("2024-01-01", "2024-01-04")], "2024-01-04")
    fences = location_of(quiet).job().log.history()
    days = {record.change.fence.interval.lower for record in fences if record.change.kind == "ingested"}
    assert days == {parse_instant(f"2024-01-0{day}") for day in (1, 2, 3)}, "each day on its own"


def test_after_the_end_a_run_without_params_is_not_green(quiet: Path, said: Callable[[], str]) -> None:
    state, tasks = run(quiet, "2026-11-20T07:00:00")
    assert (state, tasks["ingest"], len(tasks)) == ("failed", "failed", 9)
    outside = f"is outside {quiet.stem}, which starts at 2024-01-01T00:00:00Z and ends at 2024-01-04T00:00:00Z"
    assert f"{outside}; trigger the run with params lower and upper" in said()


def test_a_day_whose_predecessor_nobody_ingests_does_not_end_green(quiet: Path, said: Callable[[], str]) -> None:
    state, tasks = run(quiet, "2024-01-02")
    assert (state, tasks["published"], tasks["gate_compaction"]) == ("failed", "failed", "success")
    assert "waits for [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z), which no run is about to ingest" in said()
    assert run(quiet, "2024-01-01")[0] == "success"
    assert seal(quiet) == "2024-01-03"
    # The same run again: now it is complete, and its predecessor has said so.
    state, tasks = run(quiet, "2024-01-02")
    assert (state, tasks["published"]) == ("success", "skipped")


def test_a_day_whose_predecessors_are_queued_waits_for_them_quietly(quiet: Path) -> None:
    from airflow.models import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    run(quiet, "2024-01-03")
    with create_session() as session:
        for day in (1, 2):
            date = datetime(2024, 1, day, tzinfo=UTC)
            session.add(
                DagRun(
                    dag_id=quiet.stem,
                    run_id=f"backfill__{day}",
                    logical_date=date,
                    run_after=date,
                    run_type=DagRunType.BACKFILL_JOB,
                    state=DagRunState.QUEUED,
                    triggered_by=DagRunTriggeredByType.BACKFILL,
                )
            )
    try:
        state, tasks = run(quiet, "2024-01-03")
        assert (state, tasks["published"]) == ("success", "skipped")
        assert seal(quiet) <= "2024-01-01"
    finally:
        with create_session() as session:
            for day in (1, 2):
                session.query(DagRun).filter(DagRun.run_id == f"backfill__{day}").delete()
