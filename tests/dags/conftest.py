"""An Airflow of the session's own: a temporary home and database, set before anything imports airflow."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS, PROJECT, parsed

HOME = Path(tempfile.mkdtemp(prefix="tm-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

ENVIRONMENT = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(HOME / "passwords.json"),
    "AIRFLOW__API_AUTH__JWT_SECRET": "of no use outside this session " * 3,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(HOME / "logs"),
    "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "great_expectations=WARNING",
    "TIDEMARK_SPARK_MASTER": "local[2]",
}
os.environ.update(ENVIRONMENT)

PLACES = ("HOME", "ROOT", "LANDING", "LANDINGS", "COLLECTIONS", "DOCS", "LAUNCHER", "READY_WITHIN")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a deployment of its own, whatever the session was started with; returns its folder."""
    for place in PLACES:
        monkeypatch.delenv(f"TIDEMARK_{place}", raising=False)
    monkeypatch.setenv("TIDEMARK_HOME", str(PROJECT))
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("TIDEMARK_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    return tmp_path


@pytest.fixture
def collections(places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of collection files with `orders` in it."""
    folder = places / "collections"
    folder.mkdir()
    (folder / "orders.yaml").write_text(ORDERS)
    monkeypatch.setenv("TIDEMARK_COLLECTIONS", str(folder))
    return folder


@pytest.fixture(scope="session")
def database() -> None:
    """A migrated database."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def project_dags() -> Any:
    """The project's own DAGs, parsed once."""
    return parsed()
