"""The maintenance DAG: what it shows, and a run of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.world import KILLED
from tests.dags.support import ORDERS, parsed
from tidemark.airflow import maintenance_dag
from tidemark.airflow.location import Location, location_of
from tidemark.model.change import Created, Dropped
from tidemark.storage.log.versions import key_of


@pytest.fixture
def two(collections: Path) -> Path:
    """Two collections, of which `orders` is created."""
    (collections / "returns.yaml").write_text(ORDERS.replace("orders", "returns"))
    location_of(collections / "orders.yaml").declare()
    return collections


def orders(folder: Path) -> Location:
    return location_of(folder / "orders.yaml")


def test_it_has_a_group_for_each_collection(two: Path) -> None:
    dag = parsed().dags["tidemark_maintenance"]
    names = {f"{name}.{task}" for name in ("orders", "returns") for task in ("collect", "audit")}
    assert {task.task_id for task in dag.tasks} == names | {"on_time", "collect_dropped"}
    assert not any(task.downstream_task_ids for task in dag.tasks), "none waits for another"
    assert dag.owner == "tidemark"
    assert {"tidemark", "maintenance"} == set(dag.tags)
    for said in (
        "# tidemark_maintenance\n",
        "`orders`, `returns`",
        "**collect**",
        "**audit**",
        "--dry-run",
        "TIDEMARK_KEEP_VERSIONS",
    ):
        assert said in dag.doc_md
    assert all(task.doc_md and task.retries and task.execution_timeout for task in dag.tasks)


def test_a_wrong_file_is_left_out_and_no_collection_is_no_dag(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (two / "returns.yaml").write_text("name: 1")
    assert {task.task_id.split(".")[0] for task in maintenance_dag()["tidemark_maintenance"].tasks} == {
        "on_time",
        "collect_dropped",
        "orders",
    }
    assert maintenance_dag(two / "nowhere") == {}


def statuses(dag: Any) -> Iterator[tuple[str, str]]:
    done = dag.test(logical_date=datetime(2024, 1, 5, tzinfo=UTC))
    for ti in done.get_task_instances():
        yield ti.task_id, str(ti.state)


@pytest.mark.timeout(300)
def test_a_run_collects_without_spark_and_skips_what_was_never_created(two: Path, database: None) -> None:
    store = orders(two).job().store
    store.create(KILLED, b"1")
    gone = orders(two).job().neighbour("gone")
    gone.log.commit(gone.log.load(), Created(orders(two).collection))
    gone.log.commit(gone.log.load(), Dropped("gone"))
    (dag,) = maintenance_dag(default_args={"owner": "tidemark", "retries": 0}).values()
    found = dict(statuses(dag))
    assert found == {
        "orders.collect": "success",
        "orders.audit": "success",
        "returns.collect": "skipped",
        "returns.audit": "skipped",
        "on_time": "success",
        "collect_dropped": "success",
    }
    assert gone.log.newest_version() == 16, "the window ends, so that it can go"
    assert [info.key for info in store.list("collect/")] == ["collect/00000001.json"]
    assert KILLED.encode() in store.read("collect/00000001.json")
    assert store.stat(KILLED) is not None, "it waits for its grace"


@pytest.mark.timeout(300)
def test_an_audit_that_finds_something_fails_without_a_retry_and_alone(two: Path, database: None) -> None:
    store = orders(two).job().store
    store.delete(key_of(1))
    store.create(key_of(1), b"{}")
    (dag,) = maintenance_dag().values()
    found = dict(statuses(dag))
    assert (found["orders.audit"], found["orders.collect"]) == ("failed", "failed")
    assert (found["returns.audit"], found["returns.collect"]) == ("skipped", "skipped")
