"""Functions as tasks: they are handed what their run has newly sealed, under a hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from tests.dags.support import ORDERS, PROJECT, run_steps_here
from tidemark.airflow import tidemark_dag, with_as_of, with_changes
from tidemark.airflow.handed import span_published
from tidemark.airflow.location import location_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def orders(collections: Path, locations: Path, database: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of three days, a row each; its apps run in the tasks themselves."""

    run_steps_here(monkeypatch)
    name = f"handed_{uuid.uuid4().hex[:8]}"  # its events are those of this test
    file = collections / f"{name}.yaml"
    file.write_text(ORDERS.replace("name: orders", f"name: {name}").replace("/orders/", f"/{name}/"))
    for day in (1, 2, 3):
        folder = locations / "landing" / name / f"2024-01-0{day}"
        folder.mkdir(parents=True)
        row = f"{day},open,{day}0,2024-01-0{day}T09:00:00Z"
        (folder / "a.csv").write_text(f"id,status,amount,happened_at\n{row}\n")
    return file


def holds_of(file: Path) -> tuple[Any, ...]:
    return tuple(location_of(file).job().log.load().state.holds)


def run(file: Path, add: Callable[[DAG], None], first: int, last: int) -> dict[str, str]:
    """Run some days in one run of the collection's DAG, to which `add` adds tasks; the tasks' states."""
    dag = tidemark_dag(file, default_args={"retries": 0})
    add(dag)
    conf = {"lower": f"2024-01-0{first}T00:00:00Z", "upper": f"2024-01-0{last + 1}T00:00:00Z"}
    done = dag.test(logical_date=datetime(2024, 2, first, tzinfo=UTC), run_conf=conf)
    return {ti.task_id: str(ti.state) for ti in done.get_task_instances()}


def test_a_function_is_handed_what_its_run_sealed(orders: Path) -> None:
    seen: list[Any] = []

    def add(dag: DAG) -> None:
        with dag:

            @with_changes(orders.stem, columns=["id"])
            def changed(changes: pa.Table, factor: int) -> int:
                assert len(holds_of(orders)) == 1, "it reads under a hold"
                seen.append(("changed", [(row["id"], row["diff"]) for row in changes.to_pylist()]))
                return changes.num_rows * factor

            @with_as_of(orders.stem, where="id > 1", form="pandas")
            def all_of_it(frame: Any) -> None:
                seen.append(("as of", sorted(frame["id"])))

            dag.get_task("published") >> changed(7) >> all_of_it()

    assert set(run(orders, add, 1, 1).values()) == {"success"}
    assert set(run(orders, add, 2, 3).values()) == {"success"}
    assert seen == [
        ("changed", [(1, 1)]),
        ("as of", []),
        ("changed", [(2, 1), (3, 1)]),
        ("as of", [2, 3]),
    ]
    assert holds_of(orders) == ()
    seen.clear()
    again = run(orders, add, 2, 3)
    assert (again["published"], again["changed"], seen) == ("skipped", "skipped", [])


def test_what_retention_merged_in_the_same_run_is_handed_over_once(orders: Path) -> None:
    """History begins within the span by the time it is handed over: it is read in the version that sealed it."""
    orders.write_text(orders.read_text() + "retention: full_merge\n")
    seen: list[Any] = []

    def add(dag: DAG) -> None:
        with dag:

            @with_changes(orders.stem, columns=["id"])
            def changed(changes: pa.Table) -> None:
                seen.append([(row["id"], row["diff"]) for row in changes.to_pylist()])

            @with_as_of(orders.stem)
            def everything(rows: pa.Table) -> None:
                seen.append(rows["id"].to_pylist())

            dag.get_task("published") >> changed() >> everything()

    for first, last in ((1, 1), (2, 3)):
        assert set(run(orders, add, first, last).values()) == {"success"}
    assert location_of(orders).job().log.load().state.since > parse_instant("2024-01-03")
    assert seen == [[(1, 1)], [1], [(2, 1), (3, 1)], [1, 2, 3]]


def test_a_function_that_fails_lets_its_hold_go(orders: Path) -> None:
    def add(dag: DAG) -> None:
        with dag:

            @with_changes(orders.stem)
            def broken(changes: pa.Table) -> None:
                raise ValueError("no")

            dag.get_task("published") >> broken()

    assert run(orders, add, 1, 1)["broken"] == "failed"
    assert holds_of(orders) == ()


def test_in_a_dag_of_its_own_it_is_the_window_of_the_run() -> None:
    alone = SimpleNamespace(get_flat_relatives=lambda upstream: [])
    params = {"lower": "2024-01-01T00:00:00Z", "upper": "2024-01-03T00:00:00Z"}
    context = {"task": alone, "params": params, "dag_run": SimpleNamespace(run_type="manual")}
    assert span_published(context, "handed") == Interval(parse_instant("2024-01-01"), parse_instant("2024-01-03"))


def test_what_makes_no_sense_is_refused_when_the_file_is_parsed() -> None:
    with pytest.raises(InvalidUsage, match="form is 'csv'; write one of arrow, pandas"):
        with_changes("handed", form="csv")  # type: ignore[arg-type]
    with pytest.raises(InvalidUsage, match="nothing takes no argument"):

        @with_changes("handed")
        def nothing() -> None: ...


AS_A_DECORATOR = """
import json, sys
from airflow.sdk import DAG, task
from tidemark.errors import InvalidUsage

with DAG("any", schedule=None) as dag:

    @task.tidemark(changes="flights", columns=["id"], retries=7)
    def changed(changes): ...

    @task.tidemark(as_of="flights", form="pandas")
    def current(frame): ...

    changed() >> current()
said = []
for wrong in ({}, {"changes": "flights", "as_of": "flights"}):
    try:
        task.tidemark(**wrong)
    except InvalidUsage as error:
        said.append(str(error))
tasks = {one.task_id: one.retries for one in dag.tasks}
from airflow import plugins_manager
taken, refused = plugins_manager._get_plugins()
found = {plugin.name: [timetable.__name__ for timetable in plugin.timetables] for plugin in taken}
print(json.dumps({"tasks": tasks, "said": said, "plugin": found["tidemark"], "refused": refused}))
"""


def test_installed_as_a_package_it_is_a_decorator_and_a_plugin_of_airflows(tmp_path: Path) -> None:
    """The entry point as pyproject.toml has it, in a package's metadata as pip writes it."""
    entry = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = tmp_path / "tidemark-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tidemark\nVersion: 0\n")
    lines = [line for group in entry for line in (f"[{group}]", *(f"{k} = {v}" for k, v in entry[group].items()))]
    (metadata / "entry_points.txt").write_text("\n".join([*lines, ""]))
    done = subprocess.run(
        [sys.executable, "-c", AS_A_DECORATOR],
        env=os.environ
        | {"PYTHONPATH": f"{PROJECT / 'include'}:{tmp_path}", "AIRFLOW__CORE__PLUGINS_FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["tasks"] == {"changed": 7, "current": 0}
    assert (found["plugin"], found["refused"]) == (["CollectionTimetable", "InputsTimetable"], {})
    assert ['say what the function is handed: @task.tidemark(changes="flights")' in line for line in found["said"]] == [
        True,
        True,
    ]
