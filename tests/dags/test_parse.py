"""Every DAG parses, cheaply, has the shape it should, and explains itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import DAGS, ORDERS, PROJECT, parsed
from tests.support.shipped import COLLECTIONS

CHAIN = """\
ingest >> gate_unsealed
gate_unsealed >> seal
seal >> gate_frontier
gate_frontier >> drain
drain >> gate_trace
gate_trace >> compact
compact >> gate_compaction
gate_compaction >> published"""

PARSE_ONLY = """
import json, sys, time
import socket
from airflow.dag_processing.dagbag import DagBag

def refused(*args, **kwargs):
    raise AssertionError("a DAG file talks to the network at parse")

socket.socket.connect = refused
started = time.monotonic()
bag = DagBag(dag_folder=sys.argv[1])
seconds = time.monotonic() - started
heavy = {name.partition(".")[0] for name in sys.modules} & {
    "boto3", "duckdb", "great_expectations", "numpy", "pandas", "pyarrow", "pyspark"
}
print(json.dumps({"dags": sorted(bag.dags), "errors": bag.import_errors, "heavy": sorted(heavy), "seconds": seconds}))
"""


def shape(dag: Any) -> str:
    """The edges, a line each, in the order of the run."""
    return "\n".join(f"{t.task_id} >> {d}" for t in dag.topological_sort() for d in sorted(t.downstream_task_ids))


def test_every_dag_file_of_the_project_parses(project_dags: Any) -> None:
    assert project_dags.import_errors == {}
    assert set(project_dags.dags) == {*COLLECTIONS, "tidemark_maintenance"}


def test_a_collections_dag_is_the_chain_of_steps_and_gates(project_dags: Any) -> None:
    assert shape(project_dags.dags["flights"]) == CHAIN


def test_parsing_is_light_and_keeps_to_itself(collections: Path) -> None:
    """Of definitions, too."""
    root = collections.parent / "root"
    (collections / "totals.yaml").write_text(
        "name: totals\nfrom: orders\nselect: SELECT status, sum(amount) AS amount FROM orders GROUP BY ALL\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PARSE_ONLY, str(DAGS)],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "include")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"parsed in {found['seconds']:.2f} s, with what it imports")
    assert (found["dags"], found["errors"], found["heavy"]) == (["orders", "tidemark_maintenance", "totals"], {}, [])
    assert not root.exists()  # nor does it touch the store


def test_a_dag_can_be_serialised_for_the_scheduler(project_dags: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in project_dags.dags.values():
        again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        assert {task.task_id: task.downstream_task_ids for task in again.tasks} == {
            task.task_id: task.downstream_task_ids for task in dag.tasks
        }


def test_a_dag_explains_itself(project_dags: Any) -> None:
    for name, dag in project_dags.dags.items():
        assert all(task.doc_md for task in dag.tasks)
        if name == "tidemark_maintenance":
            continue
        assert dag.owner == "tidemark"
        assert "tidemark" in dag.tags
        assert dag.doc_md.startswith(f"# {name}\n")
        for part in ("### When a gate asks or fails", f"tidemark quarantine {name} BATCH", "idempotent", "**seal**"):
            assert part in dag.doc_md


def test_the_documentation_names_every_column(collections: Path) -> None:
    page = parsed().dags["orders"].doc_md
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == ["| `id` | int | key |", "| `status` | string | value |", "| `amount` | int | value |"]


def test_steps_are_retried_with_growing_pauses_and_never_run_for_ever(project_dags: Any) -> None:
    for task in project_dags.dags["flights"].tasks:
        assert task.retries > 0
        assert task.retry_exponential_backoff > 1
        assert task.execution_timeout is not None


def test_every_step_gets_the_same_place(collections: Path) -> None:
    dag = parsed().dags["orders"]
    root = str(collections.parent / "root")
    for task in dag.tasks[:-1]:
        assert task.app_args[:4] == ["--root", root, "--collection", "orders"]
    assert dag.get_task("ingest").app_args[4:] == ["--file", str(collections / "orders.yaml")]
    assert dag.get_task("gate_trace").app_args[4:] == ["--gate", "trace"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ORDERS.replace("name: orders", "name: other").replace("schedule:", "shedule:"), "did you mean 'schedule'?"),
        (ORDERS, "collection orders is declared by"),
        (ORDERS.replace("orders", "other").replace("2024-01-01", "2024-01-01T06:00:00"), "between two intervals"),
        (ORDERS.replace("orders", "other").replace("@daily", "every day"), "'every day' is no schedule"),
        ("", "a collection file"),
    ],
)
def test_a_wrong_file_is_an_import_error_and_takes_no_other_dag_down(collections: Path, wrong: str, said: str) -> None:
    file = collections / "wrong.yaml"
    file.write_text(wrong)
    bag = parsed()
    assert set(bag.dags) == {"orders", "tidemark_maintenance"}
    ((where, error),) = bag.import_errors.items()
    # Airflow stops scheduling the DAGs of a file that has an import error.
    assert Path(where).name != Path(bag.dags["orders"].fileloc).name
    assert str(file) in error
    assert said in error


def test_all_wrong_files_are_named_at_once(collections: Path) -> None:
    for name in ("one", "two"):
        (collections / f"{name}.yaml").write_text("name: 1")
    (error,) = parsed().import_errors.values()
    assert f"{collections}/one.yaml" in error
    assert f"{collections}/two.yaml" in error


def test_whatever_stands_in_the_folder_the_dags_stay_and_each_wrong_file_is_one_line(collections: Path) -> None:
    (collections / "nul.yaml").write_bytes(b"name: \0")
    (collections / "deep.yaml").write_text(ORDERS.replace("{{ ds }}", "{{ " + "(" * 450 + "ds" + ")" * 450 + " }}"))
    os.mkfifo(collections / "fifo.yaml")
    (collections / "folder.yaml").mkdir()
    (collections / "broken.yaml").symlink_to("nothing")
    (collections / "two\nlines.yaml").write_text(ORDERS.replace("orders", "lines"))
    Path(os.fsdecode(bytes(collections) + b"/\xff.yaml")).write_text(ORDERS.replace("orders", "latin"))
    (collections / "maintenance.yaml").write_text(ORDERS.replace("orders", "tidemark_maintenance"))
    bag = parsed()
    assert set(bag.dags) == {"orders", "tidemark_maintenance"}
    assert not {"orders", "maintenance"} & {task.task_id for task in bag.dags["tidemark_maintenance"].tasks}
    (error,) = bag.import_errors.values()
    error.encode("utf-8")  # as the database takes it
    said = {name: [line for line in error.splitlines() if name in line] for name in WRONG}
    assert {name: len(of) for name, of in said.items()} == dict.fromkeys(WRONG, 1), error


WRONG = (
    *("nul.yaml:1: not YAML", "deep.yaml:9: source.path", "fifo.yaml: cannot be read: it is a FIFO"),
    *("folder.yaml: cannot be read: it is a folder", "broken.yaml: there is no such file (a broken link)"),
    *(
        r"two\nlines.yaml: the file's name",
        r"\xff.yaml: the file's name",
        "maintenance.yaml: the DAG tidemark_maintenance",
    ),
)


def test_no_folder_of_collections_is_no_error(locations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_COLLECTIONS", str(locations / "nowhere"))
    bag = parsed()
    assert (bag.dags, bag.import_errors) == ({}, {})


ASKED = """
import json, runpy, sys, threading
runpy.run_path(sys.argv[1])
before = set(sys.modules)
from tidemark.airflow import collection_dags
dags = sorted(dag.dag_id for dag in collection_dags().values() if dag.tasks)
heavy = {"boto3", "duckdb", "great_expectations", "numpy", "pandas", "pyarrow", "pyspark", "sqlglot"} & {*sys.modules}
added = sorted(name for name in set(sys.modules) - before if name.startswith("tidemark"))
print(json.dumps({"dags": dags, "added": added, "heavy": sorted(heavy), "threads": threading.active_count()}))
"""


def test_a_task_of_a_landed_collection_imports_nothing_more(collections: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(PROJECT / "plugins" / "tidemark_plugin.py")],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "include"), "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "orders"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"dags": ["orders"], "added": [], "heavy": [], "threads": 1}
