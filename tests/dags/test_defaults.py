"""What a user says of retries and time-outs, anywhere, goes before what we say."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG, TaskGroup

from tests.dags.support import ORDERS
from tidemark.airflow import (
    HoldOperator,
    PublishOperator,
    ingest_group,
    maintenance_dag,
    maintenance_group,
    tidemark_dag,
)
from tidemark.errors import InvalidUsage

THEIRS = {"retries": 1, "retry_delay": timedelta(hours=2), "execution_timeout": timedelta(minutes=7), "owner": "ann"}
START = datetime(2024, 1, 1)  # noqa: DTZ001 airflow makes it UTC


def said(task: object) -> dict[str, object]:
    return {name: getattr(task, name) for name in THEIRS}


@pytest.fixture
def file(collections: Path) -> Path:
    return collections / "orders.yaml"


def test_the_dag_of_a_collection(file: Path) -> None:
    for task in tidemark_dag(file, default_args=THEIRS).tasks:
        assert said(task) == THEIRS
        # Whoever says how long to wait is not made to wait shorter, nor longer each time.
        assert (task.max_retry_delay, task.retry_exponential_backoff) == (None, 0)


def test_groups_and_operators_of_a_dag_of_ones_own(file: Path) -> None:
    with DAG("own", schedule=None, start_date=START, default_args=THEIRS) as dag:
        ingest_group(file)
        HoldOperator(collection="orders")
        PublishOperator(collection=file)
        maintenance_group(file)
        with TaskGroup("inner", default_args={"retries": 2}):
            ingest_group(file, execution_timeout=None)
    inner = [task for task in dag.tasks if task.task_id.startswith("inner.")]
    assert [said(task) for task in inner] == [THEIRS | {"retries": 2, "execution_timeout": None}] * 2
    outer = [task for task in dag.tasks if task not in inner]
    assert [said(task) for task in outer] == [THEIRS] * 6


def test_events_are_emitted_one_at_a_time_whatever_is_said_of_tasks(file: Path) -> None:
    """Two runs that end together would each tell all since the last event: the same."""
    generated = tidemark_dag(file, max_active_runs=5, default_args={"max_active_tis_per_dag": 5})
    with DAG("own", schedule=None, start_date=START):
        own = PublishOperator(collection=file)
    assert generated.get_task("published").max_active_tis_per_dag == own.max_active_tis_per_dag == 1
    assert generated.get_task("ingest").max_active_tis_per_dag == 5


def test_both_ends_of_a_hold() -> None:
    with DAG("own", schedule=None, start_date=START) as dag:
        HoldOperator.around(collection="orders", at="2024-01-01", **THEIRS)
    assert [said(task) for task in dag.tasks] == [THEIRS, THEIRS | {"owner": "airflow"}]


def test_what_is_not_said_stays_as_it_was(file: Path) -> None:
    for dag in (
        tidemark_dag(file, default_args={"retries": 3}),
        *maintenance_dag(default_args={"retries": 3}).values(),
    ):
        for task in dag.tasks:
            assert (task.retries, task.retry_delay) == (3, timedelta(seconds=15))
            assert task.execution_timeout == timedelta(hours=6)
            assert task.max_retry_delay == timedelta(minutes=30)
            assert task.owner == "tidemark"


def test_what_a_file_says_goes_before_ours_and_arguments_before_that(file: Path) -> None:
    text = "{owner: Logistik, tags: [gold], pool: spark, retries: 2, retry_delay: 1m, max_active_runs: 3}"
    file.write_text(f"{ORDERS}airflow: {text}\n")
    dag = tidemark_dag(file)
    assert (dag.tags, dag.max_active_runs) == ({"tidemark", "append", "gold"}, 3)
    for task in dag.tasks:
        assert (task.owner, task.pool, task.retries) == ("Logistik", "spark", 2)
        assert (task.retry_delay, task.retry_exponential_backoff) == (timedelta(minutes=1), 0)
    for task in tidemark_dag(file, default_args=THEIRS, max_active_runs=5, tags=("mine",)).tasks:
        assert said(task) == THEIRS
        assert (task.pool, task.dag.max_active_runs) == ("spark", 5)
        assert task.dag.tags == {"tidemark", "append", "gold", "mine"}


def test_a_file_says_how_wide_the_runs_of_a_backfill_are(file: Path) -> None:
    assert tidemark_dag(file).timetable.wide.most == 31
    file.write_text(f"{ORDERS}airflow: {{backfill_intervals: 7}}\n")
    assert tidemark_dag(file).timetable.wide.most == 7
    assert tidemark_dag(file, backfill_intervals=1).timetable.wide.most == 1
    with pytest.raises(InvalidUsage, match="backfill_intervals is 0"):
        tidemark_dag(file, backfill_intervals=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{retries: -1}", "airflow.retries: it must be 0 or more, found -1"),
        ("{backfill_intervals: 1001}", "it must be 1000 or less, found 1001"),
        ("{poool: spark}", "did you mean 'pool'?"),
        ('{owner: ""}', "airflow.owner: a text is expected"),
        ('{tags: ["a\\nb"]}', "tags"),
        ("{retry_delay: soon}", "not a duration: 'soon'"),
        ("{max_active_runs: 0}", "it must be 1 or more, found 0"),
        ("5", "airflow"),
        ("{after: {seal: a:published}}", "a task published is there already"),
        ("{after: {seal: [a:b, c:b]}}", "two tasks are called b; give one a name: {name: b_2}"),
        ("{after: {seal: {call: a:b, form: csv}}}", "'csv' is not valid"),
        ("{after: {seal: {call: a:b, name: b c}}}", "airflow.after.seal"),
        ("{after: {drain: a:b}}", "unknown field 'airflow.after.drain'"),
        ("{notify: {failure: os.system}}", "'os.system' names no function; write module:function, as my_alerts:page"),
        ("{notify: {failed: a:b}}", "did you mean 'failure'?"),
        ("{notify: {failure: []}}", "name 1 to 20 functions"),
        ("{notify: {failure: {cal: a:b}}}", "did you mean 'call'?"),
        ("{notify: {failure: {call: a:b, with: {x: [1]}}}}", "argument x is [1]; write a text, a number"),
        ("{notify: {failure: {call: a:b, with: {x y: 1}}}}", "'x y' is no name of an argument"),
        ("{overdue: soon}", "not a duration: 'soon'"),
    ],
)
def test_a_section_that_makes_no_sense_is_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(f"{ORDERS}airflow: {text}\n")
    with pytest.raises(InvalidUsage) as caught:
        tidemark_dag(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert f"{file}:{len(ORDERS.splitlines()) + 1}: " in str(caught.value)
