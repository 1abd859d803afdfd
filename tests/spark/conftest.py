"""One Spark for all tests of this folder: two cores, and a task may fail once before its job does. And one standalone
cluster for those that need executors which are processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.standalone import Cluster

PROJECT = Path(__file__).resolve().parents[2]
MASTER, DAEMON = "local[2,2]", "tests.support.loaded_daemon"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    before = dict(os.environ)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Workers find the package and the tests' own kernels as this process does: by its path.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT / "include"), str(PROJECT)])
    os.environ.pop("SPARK_HOME", None)
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {MASTER} --conf spark.python.daemon.module={DAEMON} pyspark-shell"
    from tidemark.spark.session import session

    running = session("tidemark tests")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {MASTER} pyspark-shell"  # programs that tests start have no DAEMON
    running.sparkContext.setLogLevel("ERROR")
    running.conf.set("spark.sql.shuffle.partitions", "2")  # the tests' rows are few: a task costs more than its rows
    running.conf.set("spark.sql.adaptive.enabled", "false")
    assert running.sparkContext.master == MASTER
    yield running
    running.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def _standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(_standalone: Cluster) -> Cluster:
    """A master and two workers without an application, whatever the test before has killed."""
    _standalone.ready()
    return _standalone
