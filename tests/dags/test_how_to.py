"""The DAG files of docs/how-to: Airflow parses them, and they have the shape that is told. test_run.py runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dags import how_to
from tests.dags.support import parsed


@pytest.fixture
def dags(locations: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    bag = parsed(how_to.project(locations, monkeypatch) / "dags")
    assert bag.import_errors == {}
    return bag.dags


def test_every_file_of_the_pages_makes_a_dag(dags: Any) -> None:
    assert {name.removesuffix(".py") for name, _ in how_to.files()} == set(dags)
    assert len(dags) >= 4


def test_tasks_stand_before_between_and_behind(dags: Any) -> None:
    def before(dag: str, task: str) -> set[str]:
        return set(dags[dag].get_task(task).upstream_task_ids)

    assert before("flights", "ingest") == {"room"}
    assert before("flights", "closed") == {"gate_unsealed"}
    assert before("flights", "seal") == {"gate_unsealed", "closed"}
    assert before("flights", "tell") == {"gate_trace"}
    assert before("flights_export", "export") == {"hold"}
    assert before("flights_export", "release_hold") == {"hold", "export"}
