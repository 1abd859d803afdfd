"""Two days by the command line on a standalone cluster, whatever becomes of a worker; and runs that want its cores."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from tests.spark.support import ALL, Made
from tests.spark.test_submit import submitted, totals
from tests.support.standalone import Cluster
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.init import declare
from tidemark.resident.client import Resident
from tidemark.resident.server_folder import ServerFolder, Settings
from tidemark.spark.runner import SparkRunner
from tools.build_zip import build

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PROJECT = Path(__file__).resolve().parents[2]
APP = PROJECT / "tests" / "spark" / "apps" / "slowly.py"
ROWS = 20_000
KEYS = 500
CALM = {"TIDEMARK_SPARK": "", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


@contextmanager
def advancing(made: Made, day: int, master: str) -> Iterator[subprocess.Popen[str]]:
    """The command line at work: all steps of a collection until it is complete below the end of a day."""
    program = "from tidemark.cli import app; app()"
    words = ["--root", str(made.root), "--landing", str(made.landing), "--spark", master]
    upto = f"2024-01-{day + 1:02d}"
    env = {**os.environ, **CALM, "PYTHONPATH": str(PROJECT / "include")}
    env.pop("PYSPARK_SUBMIT_ARGS", None)  # of the Spark of this process
    running = subprocess.Popen(
        [sys.executable, "-c", program, "advance", made.name, "--to", upto, *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def said(running: subprocess.Popen[str]) -> str:
    """What a command has said, once it has ended well."""
    out, _ = running.communicate(timeout=180)
    assert running.returncode == 0, out[-4000:]
    return out


def pairs(table: pa.Table, *columns: str, times: str = "") -> Counter[tuple[Any, ...]]:
    """How often a table has each row of some columns, each of its rows as often as a column says. Zero has no sign."""
    found = Counter[tuple[Any, ...]]()
    counts = table[times].to_pylist() if times else [1] * len(table)
    rows = zip(*([_shown(value) for value in table[name].to_pylist()] for name in columns), strict=True)
    for row, count in zip(rows, counts, strict=True):
        found[row] += count
    return found


def _shown(value: Any) -> str:
    return repr(value + 0.0 if isinstance(value, float) else value)


def test_two_days_by_the_command_line_are_right_although_a_worker_is_killed(
    tmp_path: Path, cluster: Cluster, spark: Any
) -> None:
    made = Made(tmp_path / "cluster", ALL["append"])
    here = Made(tmp_path / "here", ALL["append"], runner=lambda store: SparkRunner(spark, store.url))
    for one in (made, here):
        for day in (1, 2):
            one.land(day, ROWS, keys=KEYS)
    declare(made.job(), str(made.file))
    with advancing(made, 1, cluster.master) as running:
        said(running)
    cluster.ready()
    with advancing(made, 2, cluster.master) as running:
        host = cluster.wait_for_task()
        cluster.kill_worker(host)
        out = said(running)
    assert "Lost executor" in out, f"nothing was lost, so nothing was tested:\n{out}"
    assert host not in cluster.hosts
    rows = ("id", "kind", "amount")
    expected = Counter[tuple[Any, ...]]()
    for file in sorted(made.landing.rglob("*.parquet")):
        expected += pairs(pa.parquet.read_table(file), *rows)
    found = tidemark.open(str(made.root), made.name).as_of().to_arrow()
    assert sum(expected.values()) == 2 * ROWS
    assert pairs(found, *rows, times="_multiplicity") == expected
    for day in (1, 2):
        here.moved(day)
    assert totals(made) == totals(here)
    assert verify(made.job(), data=True).findings == ()


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zip") / "tidemark.zip"
    build(target=path)
    return path


@pytest.fixture
def resident(cluster: Cluster, zipped: Path) -> Iterator[Resident]:
    """The resident server of a worker of Airflow, on the cluster; nothing is warmed up that its app does not need."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))  # short: a socket is in it
    conf = {"spark.driver.host": "127.0.0.1"}
    place = ServerFolder(folder / "r.sock")
    settings = Settings(master=cluster.master, conf=conf, py_files=str(zipped), first=("pyarrow",), later=())
    client = Resident(settings, place)
    yield client
    client.stop(now=True)
    shutil.rmtree(folder, ignore_errors=True)


def resides(resident: Resident, *words: str) -> list[str]:
    """What an app says that has ended well on the resident Spark."""
    lines: list[str] = []
    ended = resident.run(APP, words, cwd=PROJECT, out=lines.append, err=lines.append)
    assert ended.code == ended.signal == 0, "\n".join(lines)
    return lines


def test_a_resident_spark_and_a_submit_share_two_cores_and_say_how_they_get_on(
    cluster: Cluster, resident: Resident, zipped: Path
) -> None:
    resides(resident, "1", "0")  # now it has an executor, and keeps it for a while
    (warm,) = (cluster.state() or {})["activeapps"]
    assert (warm["name"], warm["cores"]) == ("tidemark resident", 1), "it leaves the other core"
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(resides, resident, "8", "1")
        conf = (f"spark.master={cluster.master}", "spark.driver.host=127.0.0.1")
        done = submitted(zipped, APP, "8", "1", conf=conf)
        lines = beside.result()
    assert done.returncode == 0, done.stderr[-4000:]
    assert [app["name"] for app in (cluster.state() or {})["activeapps"]] == ["tidemark resident"], "it was there"
    for said in (lines, (done.stdout + done.stderr).splitlines()):
        progress = [line for line in said if re.fullmatch(r"task [1-7] of 8, about [\d.]+ M rows/s", line)]
        assert 1 <= len(progress) <= 3, said
        assert len([line for line in said if line.startswith("Spark's page: http://127.0.0.1:")]) == 1, said
        assert '{"outcome": "applied"}' in said
        assert not any("no executor" in line for line in said)


def test_a_run_without_executors_says_so_and_goes_on_when_there_is_one(
    tmp_path: Path, cluster: Cluster, zipped: Path
) -> None:
    made = Made(tmp_path, ALL["append"])
    made.land(1, 300, keys=40)
    declare(made.job(), str(made.file))
    words = ["--conf", "spark.tidemark.share=1", "--conf", "spark.driver.host=127.0.0.1", "--name", "greedy"]
    env = {**os.environ, **CALM, "PYTHONPATH": str(zipped)}
    env.pop("PYSPARK_SUBMIT_ARGS", None)
    command = ["spark-submit", "--master", cluster.master, *words, str(APP), "1", "0", "stay"]
    greedy = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        cluster.wait("all cores are taken", lambda state: state["coresused"] == 2)
        with advancing(made, 1, cluster.master) as running:
            cluster.wait("it asks for cores", lambda state: len(state["activeapps"]) == 2)
            assert running.stdout is not None
            line = next(line for line in running.stdout if line.startswith("no executor for "))
            assert f"{cluster.master} has 0 of 2 cores and 0 of 2,048 MiB free on 2 workers" in line
            assert "asks for up to 1 cores, by executors of 1 cores and 1,024 MiB" in line
            assert "are used by slowly (2)" in line
            os.killpg(greedy.pid, signal.SIGKILL)
            said(running)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(greedy.pid, signal.SIGKILL)
        greedy.wait()
    assert len(tidemark.open(str(made.root), made.name).as_of().to_arrow()) > 0
