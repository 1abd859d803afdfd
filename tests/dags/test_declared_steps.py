"""A step that is declared is a task of every collection's DAG, with its gate, its arguments and its words."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from tests.dags.support import PROJECT
from tests.support import toy_step
from tidemark.airflow import location, maintenance_group, step_group, tidemark_dag
from tidemark.airflow.documentation import gate_doc, step_doc
from tidemark.airflow.gate import GateOperator
from tidemark.airflow.maintenance import MaintenanceOperator
from tidemark.airflow.steps import IngestOperator, StepOperator, declared_by
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.declared import STEPS
from tidemark.model.collection import Gate

START = datetime(2024, 1, 1)  # noqa: DTZ001 airflow makes it UTC
BOUNDS = {"lower": "2024-01-01T00:00:00Z", "upper": "2024-01-02T00:00:00Z"}
INTERVAL = ["--lower", BOUNDS["lower"], "--upper", BOUNDS["upper"]]


@pytest.fixture
def orders(collections: Path) -> location.Location:
    return location.location_of(collections / "orders.yaml")


def context(**params: Any) -> dict[str, Any]:
    ti = SimpleNamespace(run_id="r", task_id="t", map_index=-1, try_number=1)
    return {"ti": ti, "params": {**BOUNDS, **params}}


def test_no_argument_hides_one_of_airflows() -> None:
    """A parameter of that name would never reach Airflow's operator."""
    classes = {of for operator in (GateOperator, IngestOperator, MaintenanceOperator) for of in operator.__mro__}
    theirs = {
        name for of in classes - {StepOperator, GateOperator} for name in inspect.signature(of.__init__).parameters
    }
    assert {name for step in STEPS.values() for name in declared_by(step)} & theirs == set()


def test_a_step_of_ones_own_follows_the_others_in_every_run(
    orders: location.Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, counted = toy_step.declared(monkeypatch)
    dag = tidemark_dag(orders)
    names = [task.task_id for task in dag.topological_sort()]
    assert names[-5:] == ["compact", "gate_compaction", "tally", "gate_counted", "published"]
    tally, gate = dag.get_task("tally"), dag.get_task("gate_counted")
    assert tally.doc_md == step_doc(step) == f"Counts batches. {tally.doc_md.partition('. ')[2]}"
    assert gate.doc_md == gate_doc(counted)
    assert gate.doc_md.startswith("Batches are few enough to count. **Data docs**, on the task instance's tab ")
    assert gate.doc_md.endswith("Learn to count.")
    assert gate.app_args[-2:] == ["--gate", "counted"]
    assert (tally.retries, gate.retries) == (5, 5)


def test_its_arguments_are_its_operators_and_templates(
    orders: location.Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_step.declared(monkeypatch)
    with DAG("own", schedule=None, start_date=START) as dag:
        given = {"least": "{{ params.least }}", "wait_for": timedelta(hours=2), "aloud": True}
        step_group("tally", orders.collection, retries=1, **given)
    tally, gate = dag.get_task("tally.tally"), dag.get_task("tally.gate_counted")
    assert (tally.retries, gate.retries) == (1, 1)
    assert {"least", "wait_for", "aloud"} <= set(tally.template_fields)
    assert {"least"} & set(gate.template_fields) == set()
    tally.render_template_fields(context(least=7))
    assert tally.declared_args() == ["--least", "7", "--wait-for", "2h", "--aloud"]


def test_it_is_done_in_its_task(orders: location.Location, monkeypatch: pytest.MonkeyPatch) -> None:
    toy_step.declared(monkeypatch)
    orders.declare()
    result = StepOperator(task_id="t", location=orders, step="tally", least=3).execute(context())
    assert (result["step"], result["at_least"], result["aloud"]) == ("tally", 3, False)
    assert result["of"] == "[2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)"


def test_it_needs_no_file_of_its_own(orders: location.Location, monkeypatch: pytest.MonkeyPatch) -> None:
    toy_step.declared(monkeypatch)
    file, words = StepOperator(task_id="t", location=orders, step="tally")._app(["--root", "r"])
    assert (file, words) == (PROJECT / "spark_apps" / "step.py", ["tally", "--root", "r"])
    file, words = StepOperator(task_id="t", location=orders, step="seal")._app(["--root", "r"])
    assert (file, words) == (PROJECT / "spark_apps" / "seal.py", ["--root", "r"])


def test_a_wrong_argument_is_an_import_error_of_the_dag(
    orders: location.Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_step.declared(monkeypatch)
    with pytest.raises(InvalidUsage, match="not a whole number: 'many'"):
        StepOperator(task_id="t", location=orders, step="tally", least="many")
    with pytest.raises(TypeError, match="loud"):
        StepOperator(task_id="t", location=orders, step="tally", loud=True)
    with pytest.raises(InvalidUsage, match="there is no step 'tallie'"), DAG("own", schedule=None, start_date=START):
        step_group("tallie", orders.collection)
    with pytest.raises(InvalidUsage, match="step gate of orders needs gate"):
        StepOperator(task_id="t", location=orders, step="gate")


def test_a_template_that_makes_a_wrong_value_fails_without_a_retry(
    orders: location.Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_step.declared(monkeypatch)
    orders.declare()
    task = StepOperator(task_id="t", location=orders, step="tally", least="{{ params.least }}")
    task.render_template_fields(context(least="many"))
    with pytest.raises(AirflowFailException, match="tally does not take the arguments"):
        task.execute(context())


def test_steps_outside_of_runs_are_operators_too(orders: location.Location) -> None:
    replay = StepOperator(
        task_id="t", location=orders, step="replay", path="/b.csv", as_now="{{ params.now }}", **BOUNDS
    )
    replay.render_template_fields(context(now=True))
    assert replay.args_of_run(context()) == []
    assert replay.declared_args() == [*INTERVAL, "--path", "/b.csv", "--as-now"]
    replay = StepOperator(task_id="t", location=orders, step="replay", as_now="{{ params.now }}")
    replay.render_template_fields(context(now=False))
    assert replay.declared_args() == []
    replay.as_now = "perhaps"
    with pytest.raises(InvalidUsage, match="--as-now is given or not: 'perhaps' is neither true nor false"):
        replay.declared_args()


def test_what_a_step_of_maintenance_declares_is_said_to_its_group(collections: Path) -> None:
    with DAG("own", schedule=None, start_date=START) as dag:
        maintenance_group(collections / "orders.yaml", keep_versions="30d", retries=2)
    collect, audit = dag.get_task("orders.collect"), dag.get_task("orders.audit")
    assert collect.app_args[-2:] == ["--keep-versions", "30d"]
    assert "--keep-versions" not in audit.app_args
    assert (collect.retries, audit.retries) == (2, 2)
    with pytest.raises(TypeError, match="path"), DAG("own", schedule=None, start_date=START):
        maintenance_group(collections / "orders.yaml", path="no step of these takes it")


def test_the_gates_task_takes_any_gate(orders: location.Location) -> None:
    for gate in Gate:
        task = GateOperator(task_id="t", location=orders, gate=gate)
        assert task.app_args[-2:] == ["--gate", str(gate)]
