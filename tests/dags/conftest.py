"""What a DAG file is parsed and run with, set before anything imports airflow; home and database are the session's."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS, PROJECT, parsed
from tests.support import airflow_home
from tests.support.airflow_home import HOME

ENVIRONMENT = {
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(HOME / "passwords.json"),
    "AIRFLOW__API_AUTH__JWT_SECRET": "of no use outside this session " * 3,
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(HOME / "logs"),
    "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "great_expectations=WARNING",
    "TIDEMARK_SPARK_MASTER": "local[2]",
}
os.environ.update(ENVIRONMENT)

PLACES = ("HOME", "ROOT", "LANDING", "LANDINGS", "COLLECTIONS", "DOCS", "LAUNCHER", "READY_WITHIN")


@pytest.fixture(autouse=True)
def locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a deployment of its own, whatever the session was started with; returns its folder."""
    for location in PLACES:
        monkeypatch.delenv(f"TIDEMARK_{location}", raising=False)
    monkeypatch.setenv("TIDEMARK_HOME", str(PROJECT))
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("TIDEMARK_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    return tmp_path


@pytest.fixture(autouse=True)
def runs_go_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dag.test` sleeps for a second when no task can be run yet, once or twice in each run. Here it looks ten times a
    second. Nothing else sleeps less."""
    ordinary = time.sleep

    def sleep(seconds: float) -> None:
        code = sys._getframe(1).f_code
        in_a_run = code.co_name == "test" and code.co_filename.endswith("airflow/sdk/definitions/dag.py")
        ordinary(min(seconds, 0.1) if in_a_run else seconds)

    monkeypatch.setattr(time, "sleep", sleep)


@pytest.fixture(autouse=True)
def children_are_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has threads, so its tasks would start an interpreter for each step, which takes a second. They fork,
    as tasks do in Airflow: what threads `dag.test` has here wait for it, and have no lock."""
    from tidemark.airflow import small_work

    monkeypatch.setattr(small_work, "_has_one_thread", lambda: True)


@pytest.fixture
def collections(locations: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of collection files with `orders` in it."""
    folder = locations / "collections"
    folder.mkdir()
    (folder / "orders.yaml").write_text(ORDERS)
    monkeypatch.setenv("TIDEMARK_COLLECTIONS", str(folder))
    return folder


@pytest.fixture(scope="session")
def database() -> Iterator[None]:
    """Airflow's database, running."""
    with airflow_home.database():
        yield


@pytest.fixture(scope="session")
def project_dags() -> Any:
    """The project's own DAGs, parsed once."""
    return parsed()
