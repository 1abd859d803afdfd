"""One resident server for the folder, restarted by the tests that end it; Airflow at home in a temporary folder."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import Killing
from tidemark.resident.client import Resident
from tidemark.resident.server_folder import PACKAGE, ServerFolder, Settings

PROJECT = Path(__file__).resolve().parents[2]
LIGHT = Settings(first=("pyspark.sql.functions", "pyspark.sql.pandas.types", "pyarrow"), later=())
"""What the toy apps need: Great Expectations would only cost the tests time."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: a socket's path has 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="tm-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def place() -> Iterator[ServerFolder]:
    base = Path(tempfile.mkdtemp(prefix="tm-"))
    yield ServerFolder(base / "r.sock")
    Resident(LIGHT, ServerFolder(base / "r.sock")).stop(now=True)
    shutil.rmtree(base, ignore_errors=True)  # what was killed may still be tidying up


@pytest.fixture
def resident(place: ServerFolder) -> Resident:
    """A client of the folder's server."""
    return Resident(LIGHT, place)


@pytest.fixture
def on_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: ServerFolder) -> Any:
    """The environment of a worker: a connection, a project folder with the zip, Spark's programs on the path."""
    zipped = tmp_path / "tidemark.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        for path in sorted(PACKAGE.rglob("*.py")):
            archive.write(path, path.relative_to(PACKAGE.parent))
    for name, value in {
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "TIDEMARK_ZIP": str(zipped),
        "TIDEMARK_HOME": str(tmp_path),
        "TIDEMARK_RESIDENT_DIR": str(place.socket.parent),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)
    # The operator's own place and settings, but those of the folder's server.
    monkeypatch.setattr(ServerFolder, "default", classmethod(lambda cls, environ: place))
    monkeypatch.setattr(Settings, "from_environ", classmethod(lambda cls, environ, *, master: LIGHT))
    return tmp_path


@pytest.fixture(scope="module")
def killing() -> Iterator[Killing]:
    """The environment of a worker for the length of a module; its folder's name is short, as a socket's must be."""
    from tools.build_zip import build

    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    made = Killing.made(folder / "home")
    build(target=folder / "tidemark.zip")
    before = dict(os.environ)
    os.environ |= {
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "TIDEMARK_HOME": str(made.home),
        "TIDEMARK_KILLING": str(made.folder),
        "TIDEMARK_DOCS": str(folder / "docs"),
        "TIDEMARK_ZIP": str(folder / "tidemark.zip"),
        "TIDEMARK_RESIDENT_DIR": str(folder / "r"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT / "include"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    os.environ.pop("SPARK_HOME", None)
    try:
        yield made
        Resident(Settings.from_environ(os.environ, master="local[2]")).stop(now=True)
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)
