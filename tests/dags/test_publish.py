"""The task `publish_tables`, of a collection whose file declares tables: behind `published`, and in no one's way."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tests.dags.test_bad_day import GREEN, Days
from tests.dags.test_parse import CHAIN, shape
from tidemark.airflow import tidemark_dag
from tidemark.airflow.location import location_of

pytestmark = pytest.mark.timeout(300)


def test_only_where_tables_are_declared(days: Days) -> None:
    assert "publish_tables" not in tidemark_dag(days.file).task_ids
    days.file.write_text(days.file.read_text() + "publish: {delta: {}}\nairflow: {after: {seal: m:refresh}}\n")
    dag = tidemark_dag(days.file)
    assert shape(dag) == CHAIN + "\npublished >> publish_tables\npublished >> refresh"
    task = dag.get_task("publish_tables")
    assert "`tidemark publish COLLECTION --again`" in task.doc_md
    assert task.retries == 5


def test_a_run_publishes_what_it_sealed(days: Days) -> None:
    days.file.write_text(days.file.read_text() + "publish: {delta: {}, iceberg: {table: db.orders}}\n")
    for day in (1, 2):
        days.land(day)
        assert days.run(day) == ("success", GREEN | {"publish_tables": "success"})
    table = DeltaTable(f"{location_of(days.file).store_root}/_published/delta/{days.name}")
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == days.ids() == [1, 2]
    assert {one.format for one in days.state.publications} == {"delta", "iceberg"}


def test_a_catalog_that_is_down_fails_its_task_alone(days: Days) -> None:
    down = "{type: rest, uri: 'http://127.0.0.1:9'}"
    days.file.write_text(days.file.read_text() + f"publish: {{iceberg: {{table: db.orders, catalog: {down}}}}}\n")
    days.land(1)
    assert days.run(1) == ("failed", GREEN | {"publish_tables": "failed"})
    assert "the catalog or the store of table db.orders did not answer" in days.logged()
    assert days.ids() == [1]
