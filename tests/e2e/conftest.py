"""What both launchers need: a project folder with apps that can be hit, the zip, a resident Spark of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.killing import Killing

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def killing() -> Iterator[Killing]:
    """The environment of a worker for the length of a module; its folder's name is short, as a socket's must be."""
    from tidemark.resident.client import Resident
    from tidemark.resident.server_folder import Settings
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


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes to be ended with the test, whatever became of it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
