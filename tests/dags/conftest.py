"""What a DAG file is parsed and run with, set before anything imports airflow; home and database are the session's."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import DAGS, ORDERS, PROJECT, parsed, run_steps_here, token
from tests.support import airflow_home
from tests.support.airflow_home import HOME

ENVIRONMENT = {
    "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
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


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What tasks have logged."""
    return lambda: caplog.text + "".join(capfd.readouterr())


@pytest.fixture
def quiet(collections: Path, locations: Path, database: None) -> Path:
    """A collection whose days need no files, with a name of its own: events of an asset stay in the database."""
    (locations / "landing").mkdir()
    name = f"quiet_{uuid.uuid4().hex[:8]}"
    file = collections / f"{name}.yaml"
    file.write_text(ORDERS.replace("ready: exists", "ready: always").replace("name: orders", f"name: {name}"))
    return file


@pytest.fixture
def declared(collections: Path) -> Path:
    """A collection of its own name, daily from 2024 on without an end, that may be three hours late."""
    name = f"late_{uuid.uuid4().hex[:8]}"
    file = collections / f"{name}.yaml"
    text = ORDERS.replace("name: orders", f"name: {name}").replace("end: 2024-01-04\n", "")
    file.write_text(text + "airflow: {overdue: 3h}\n")
    return file


@pytest.fixture
def days(
    collections: Path, locations: Path, database: None, monkeypatch: pytest.MonkeyPatch, said: Callable[[], str]
) -> Any:
    """Four days of a collection; its apps run in the tasks themselves, so that no Spark is started."""
    from tests.dags.test_bad_day import Days

    run_steps_here(monkeypatch)
    name = f"days_{uuid.uuid4().hex[:8]}"
    file = collections / f"{name}.yaml"
    text = ORDERS.replace("/orders/", f"/{name}/").replace("name: orders", f"name: {name}").replace("01-04", "01-05")
    file.write_text(text + "reprocess_for: 30d\n")
    return Days(file, locations / "landing", said)


@pytest.fixture
def asks(collections: Path, locations: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A day with a wrong row, ingested; its apps run in the tasks themselves, so that no Spark is started."""
    from airflow.sdk.execution_time import task_runner

    from tests.dags.test_gate_asks import Asks

    run_steps_here(monkeypatch, "correct")
    made = Asks(collections / "orders.yaml", locations / "landing")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", made, raising=False)
    made.land()
    made.run("ingest")
    return made


@pytest.fixture(scope="session")
def manager(database: None) -> Any:
    """Who says whom Airflow lets in."""
    from airflow.api_fastapi.app import create_auth_manager

    manager = create_auth_manager()
    manager.init()
    return manager


@pytest.fixture
def anonymous(manager: Any) -> Any:
    """A browser that has not logged in."""
    from fastapi.testclient import TestClient

    from tidemark.airflow.web.app import create_app

    return TestClient(create_app())


@pytest.fixture
def client(anonymous: Any, manager: Any) -> Any:
    """A browser that has, as somebody who may edit DAGs."""
    anonymous.headers["Authorization"] = f"Bearer {token(manager)}"
    return anonymous


@pytest.fixture
def root(locations: Path, collections: Path) -> Path:
    """A root with the collection `orders`: one batch of 7 rows, 2 of them late, not certified yet."""
    from tests.dags.test_web import orders_with_a_batch

    orders_with_a_batch(collections / "orders.yaml")
    return locations / "root"


@pytest.fixture
def hours(locations: Path) -> Any:
    """Two days of windows of two airports; every fifth hour of the first day was corrected on the second."""
    from tests.support.windowed import Windowed

    hours = Windowed(locations / "root")
    both = [("EWR",), ("JFK",)]
    hours.tell(*(hours.window(key, at, (at % 7, at / 4)) for key in both for at in range(24)))
    old = [hours.window(key, at, (at % 7, at / 4), -1) for key in both for at in range(0, 24, 5)]
    new = [hours.window(key, at, (40, 0.5)) for key in both for at in range(0, 24, 5)]
    hours.tell(*old, *new, *(hours.window(key, at, (at % 7, None)) for key in both for at in range(24, 48)))
    return hours


@pytest.fixture
def orders(locations: Path, collections: Path) -> Path:
    """Three days: a good one, one with a refused file, one with a row that came late. Nothing is read yet."""
    from tidemark.airflow.location import location_of

    text = ORDERS.replace("time: arrival\n", "time: {column: happened_at}\n").replace(
        "event_time: {column: happened_at}\n", ""
    )
    (collections / "orders.yaml").write_text(text.replace("2024-01-04", "2024-01-06") + "reprocess_for: 30d\n")
    for day, rows in (
        (1, "1,open,10,2024-01-01T09:00:00Z"),
        (2, "2,<script>alert(1)</script>,many,2024-01-02T09:00:00Z"),
        (3, "3,paid,30,2024-01-03T09:00:00Z\n4,paid,40,2024-01-01T09:00:00Z"),
    ):
        folder = locations / "landing" / "orders" / f"2024-01-0{day}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(f"id,status,amount,happened_at\n{rows}\n")
    location_of(collections / "orders.yaml").declare()
    return locations / "landing"
