"""What tasks tell OpenLineage. Its provider is no part of the project: what it takes is compared where it is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_bad_day import Days
from tidemark.airflow import app_operator, lineage, publish, steps
from tidemark.airflow.lineage import Check, Dataset, Lineage, lineage_of_step, operator_lineage
from tidemark.airflow.location import location_of

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Lineage]]:
    """What the tasks of runs tell, asked as the provider's listener does: once they have ended."""
    found: list[tuple[str, Lineage]] = []
    asked = lineage.operator_lineage
    assert asked is operator_lineage
    monkeypatch.setattr(lineage, "operator_lineage", lambda one: one)

    def ask(task: Any, outcome: str) -> None:
        found.append((task.task_id, getattr(task, f"get_openlineage_facets_on_{outcome}")(None)))

    for of in (app_operator.AppOperator, publish.PublishOperator):
        execute = of.execute

        def traced(self: Any, context: Any, execute: Any = execute) -> Any:
            try:
                result = execute(self, context)
            except Exception:
                ask(self, "failure")
                raise
            ask(self, "complete")
            return result

        monkeypatch.setattr(of, "execute", traced)
    assert steps.StepOperator.get_openlineage_facets_on_complete
    return found


def test_each_task_of_a_run_tells_what_it_read_wrote_and_checked(
    days: Days, locations: Path, reported: list[tuple[str, Lineage]]
) -> None:
    days.land(1)
    assert days.run(1)[0] == "success"
    found = dict(reported)
    columns = {"id": "int", "status": "string", "amount": "int"}
    collection = Dataset("file", str(locations / "root" / days.name), columns)
    landing = Dataset("file", str(locations / "landing" / days.name))
    assert found["ingest"].inputs == (landing,)
    assert found["ingest"].outputs == (replace(collection, rows=1),)
    assert found["ingest"].run["outcome"] == "applied"
    (checked,) = found["gate_unsealed"].inputs
    assert (checked.name, checked.checks) == (collection.name, (Check("17 checks of the gate unsealed", True),))
    assert found["drain"].outputs == (replace(collection, rows=1),)
    assert found["published"].outputs == (collection,)
    assert found["published"].run["upper"] == "2024-01-02T00:00:00Z"


def test_a_gate_that_fails_tells_which_checks_did(days: Days, reported: list[tuple[str, Lineage]]) -> None:
    days.land(1, "lost")
    assert days.run(1)[0] == "failed"
    (checked,) = dict(reported)["gate_unsealed"].inputs
    (wrong,) = [one for one in checked.checks if not one.passed]
    assert "status" in wrong.rule
    assert wrong.message


def test_names_are_those_of_openlineage(collections: Path) -> None:
    assert lineage.named_dataset("s3://lake/collections/", "flights") == Dataset("s3://lake", "collections/flights")
    path = "{{ landing }}/flights/{{ ds }}/*.parquet"
    assert lineage.landing_dataset(path, "s3://landing") == Dataset("s3://landing", "flights")
    assert lineage.landing_dataset("/data/a*.csv", "/x") == Dataset("file", "/data")
    totals = collections / "totals.yaml"
    totals.write_text("name: totals\nfrom: orders\nselect: SELECT id FROM orders\nkey: [id]\n")
    found = lineage_of_step(location_of(totals, root="s3://lake"), "correct", {"rows": 3, "outcome": "applied"})
    assert (found.inputs, found.outputs) == (
        (Dataset("s3://lake", "orders"),),
        (Dataset("s3://lake", "totals", rows=3),),
    )
