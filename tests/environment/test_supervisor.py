"""The supervisor with toy components and a real PostgreSQL: what dies is started again, what stays dead is named."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

PROJECT = Path(__file__).resolve().parents[2]

SUPERVISOR = """
import json, sys
from tools import supervisor
supervisor.COMPONENTS = {"postgres": [], **json.loads(sys.argv[1])}
supervisor.PAUSES = (0.1, 0.1, 0.1)
supervisor.LOGS.mkdir(parents=True, exist_ok=True)
supervisor.DATABASE.make()
supervisor.keep()
"""

# Starts a worker in a session of its own, and tells both pids, and how often it was started.
COMPONENT = """
import os, subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(os.getpid(), worker.pid, flush=True)
time.sleep(600)
"""
# Has a worker as Airflow's LocalExecutor has, by its title.
WITH_WORKER = """
import os, shutil, subprocess, time
worker = subprocess.Popen(["airflow worker -- LocalExecutor: <idle>", "600"], executable=shutil.which("sleep"))
print(os.getpid(), worker.pid, flush=True)
time.sleep(600)
"""
BROKEN = "import sys; sys.exit('no such setting: colour')"


@pytest.fixture
def home() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tm-"))  # short: a socket's path has 103 bytes
    yield path
    shutil.rmtree(path)


@pytest.fixture
def supervisors() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for supervisor in started:
        supervisor.terminate()
        supervisor.wait(60)


def keep(home: Path, **components: str) -> subprocess.Popen[str]:
    commands = {name.replace("_", "-"): [sys.executable, "-c", code] for name, code in components.items()}
    environment = os.environ | {
        "AIRFLOW_HOME": str(home),
        "TIDEMARK_AIRFLOW_SOCKETS": str(home / "sockets"),
        "TIDEMARK_AIRFLOW_INSTANCE": f"{home}#toy",
    }
    words = [sys.executable, "-c", SUPERVISOR, json.dumps(commands)]
    return subprocess.Popen(words, cwd=PROJECT, env=environment, stderr=subprocess.PIPE, text=True)


def eventually(what: str, fact: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (value := fact()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return value


def local_airflow(command: str, home: Path, supervisor: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """What `make down` and `make status` do, for an instance that `supervisor` is or was the supervisor of."""
    record = {"pid": supervisor.pid, "port": 8095, "instance": f"{home}#toy"}
    (home / "running.json").write_text(json.dumps(record))
    return subprocess.run(
        [PROJECT / "tools/run", "python", PROJECT / "tools/local_airflow.py", command],
        env=os.environ | {"TIDEMARK_AIRFLOW_HOME": str(home), "TIDEMARK_AIRFLOW_SOCKETS": str(home / "sockets")},
        capture_output=True,
        text=True,
        check=False,
    )


def report_of(home: Path) -> dict[str, Any]:
    try:
        account: dict[str, Any] = json.loads((home / "components.json").read_text())
    except FileNotFoundError:
        return {"stayed_down": "", "components": {}}
    return account


def starts(home: Path, component: str) -> list[list[int]]:
    """The pids that each start of a component has printed."""
    log = home / "logs" / "components" / f"{component}.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [[int(word) for word in line.split()] for line in lines if line.count(" ") == 1]


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_killed_component_is_started_again_and_what_it_left_is_ended(
    home: Path, supervisors: list[subprocess.Popen[str]]
) -> None:
    supervisors.append(keep(home, one=COMPONENT, two=COMPONENT))
    [[first, worker]] = eventually("one is up", lambda: starts(home, "one"))
    [[other, _]] = eventually("two is up", lambda: starts(home, "two"))
    os.kill(first, signal.SIGKILL)
    [_, [second, _]] = eventually("one is up again", lambda: len(found := starts(home, "one")) == 2 and found)
    assert not lives(worker)
    assert lives(other)
    one = eventually("it is reported", lambda: (c := report_of(home)["components"]["one"])["pid"] == second and c)
    assert one["restarts"] == 1
    assert one["last_end"].startswith("killed by signal 9 at ")


def test_a_scheduler_that_loses_a_worker_is_started_again_however_often(
    home: Path, supervisors: list[subprocess.Popen[str]]
) -> None:
    """The worker may have had the lock of the queue that all of them read: then no task would ever start."""
    supervisors.append(keep(home, scheduler=WITH_WORKER))
    for count in range(1, 5):  # more often than a component may fail
        scheduler, worker = eventually(f"start {count}", lambda n=count: starts(home, "scheduler")[n - 1 : n])[0]
        eventually(
            "its worker is known", lambda pid=worker: report_of(home)["components"]["scheduler"]["workers"] == [pid]
        )
        os.kill(worker, signal.SIGKILL)
        eventually("the scheduler ended", lambda pid=scheduler: not lives(pid))
    eventually("one start more", lambda: len(starts(home, "scheduler")) == 5)
    assert report_of(home)["components"]["scheduler"]["last_end"].startswith(
        "ended with the death of one of its workers at"
    )


def test_a_killed_database_is_started_again(home: Path, supervisors: list[subprocess.Popen[str]]) -> None:
    supervisors.append(keep(home, one=COMPONENT))
    eventually("one is up", lambda: starts(home, "one"))
    first = report_of(home)["components"]["postgres"]["pid"]
    os.kill(first, signal.SIGKILL)
    eventually("it is up again", lambda: report_of(home)["components"]["postgres"]["pid"] not in (None, first))


def test_one_that_stays_down_is_named_and_takes_everything_along(
    home: Path, supervisors: list[subprocess.Popen[str]]
) -> None:
    supervisor = keep(home, one=COMPONENT, broken=BROKEN)
    supervisors.append(supervisor)
    assert supervisor.wait(60) == 1
    said = report_of(home)["stayed_down"]
    assert said.startswith("broken stays down: ended with exit code 1 at ")
    assert said.endswith(", after 3 new starts")
    assert (home / "logs/components/broken.log").read_text().count("no such setting: colour") == 4
    assert not any(lives(pid) for pid, _ in starts(home, "one"))
    assert not psutil.pid_exists(report_of(home)["components"]["postgres"]["pid"])
    status = local_airflow("status", home, supervisor)
    assert status.returncode == 1
    assert f"Airflow went down: {said}\n{home}/logs/components/broken.log:\n" in status.stderr
    assert "  no such setting: colour\n" in status.stderr


def test_down_ends_what_a_killed_supervisor_has_left(home: Path, supervisors: list[subprocess.Popen[str]]) -> None:
    supervisor = keep(home, one=COMPONENT)
    supervisors.append(supervisor)
    [[one, worker]] = eventually("one is up", lambda: starts(home, "one"))
    postgres = report_of(home)["components"]["postgres"]["pid"]
    supervisor.kill()
    supervisor.wait()
    assert lives(postgres)
    done = local_airflow("down", home, supervisor)
    assert (done.returncode, done.stderr) == (0, "Airflow is down; nothing it started is left\n")
    assert not any(lives(pid) for pid in (one, worker, postgres))
    assert not (home / "sockets").exists()


def test_its_end_is_everybodys_end(home: Path, supervisors: list[subprocess.Popen[str]]) -> None:
    supervisor = keep(home, one=COMPONENT)
    supervisors.append(supervisor)
    [[one, _]] = eventually("one is up", lambda: starts(home, "one"))
    postgres = report_of(home)["components"]["postgres"]["pid"]
    supervisor.terminate()
    supervisor.wait(60)
    assert not lives(one)
    assert not psutil.pid_exists(postgres)
