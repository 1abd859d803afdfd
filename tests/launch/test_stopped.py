"""Whatever process is stopped or has failed without a word: the run ends, the next one works, nothing stays behind."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.launch.conftest import LIGHT
from tests.launch.support import context, eventually, is_dead, never_commits, started, toy
from tests.launch.test_resident import facts, jvm_of, lingering, run, server_of
from tidemark.airflow.app_operator import AppOperator
from tidemark.resident.client import Ended, Resident, ResidentLost
from tidemark.resident.server_folder import ServerFolder
from tidemark.resident.watch import OwnTime, Stopped

IMPATIENT = dataclasses.replace(LIGHT, later=("json",), patience_s=5)


@pytest.fixture(scope="module")
def place() -> Iterator[ServerFolder]:
    base = Path(tempfile.mkdtemp(prefix="tm-"))
    yield ServerFolder(base / "r.sock")
    Resident(IMPATIENT, ServerFolder(base / "r.sock")).stop(now=True)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def resident(place: ServerFolder) -> Resident:
    """A client of a server that soon loses its patience, and has grown its second fork server."""
    client = Resident(IMPATIENT, place)
    client.start()
    eventually(
        "both fork servers are ready", lambda: "json" in (client.status() or {"imported": ()})["imported"], within=90
    )
    return client


def helpers(place: ServerFolder) -> dict[str, psutil.Process]:
    """The server's processes by role."""
    server = server_of(place)
    fork_server = next(p for p in server.children() if p.name() != "java")
    context_owner, second = sorted(fork_server.children(), key=lambda p: p.create_time())[:2]
    return {
        "server": server,
        "jvm": jvm_of(server),
        "fork_server": fork_server,
        "context_owner": context_owner,
        "second fork server": second,
    }


@pytest.mark.measured
@pytest.mark.spark
@pytest.mark.parametrize("role", ["server", "jvm", "fork_server", "context_owner", "second fork server"])
def test_a_stopped_helper_ends_the_run_and_is_replaced(
    resident: Resident, place: ServerFolder, folder: Path, role: str
) -> None:
    with lingering(resident, folder) as (pid, end):
        before = helpers(place)
        before[role].suspend()
        (lost,) = eventually("the run ends", lambda: end, within=60)
        assert isinstance(lost, ResidentLost) or lost == Ended(0, signal.SIGKILL)
        never_commits(folder, pid, within=5)
        eventually("the stopped one is dead", lambda: is_dead(before[role].pid), within=10)
        if role != "second fork server":
            eventually("so are all others", lambda: all(is_dead(p.pid) for p in before.values()), within=20)
    assert facts(Resident(IMPATIENT, place))["pid"]


@pytest.mark.measured
@pytest.mark.spark
def test_a_stopped_run_ends_alone(resident: Resident, place: ServerFolder, folder: Path) -> None:
    server = server_of(place)
    with lingering(resident, folder) as (pid, end):
        psutil.Process(pid).suspend()
        assert eventually("the run ends", lambda: end, within=30) == [Ended(0, signal.SIGKILL)]
        never_commits(folder, pid, within=5)
    assert facts(resident)["pid"]
    assert not is_dead(server.pid)
    fork_server = helpers(place)["fork_server"]
    eventually("nobody is left unburied", lambda: not [p for p in fork_server.children(True) if is_dead(p.pid)])


@pytest.mark.spark
def test_a_run_of_a_stopped_worker_fails(resident: Resident, place: ServerFolder) -> None:
    run(resident, "arrow")  # from now on there are workers, which Spark keeps
    workers = helpers(place)["jvm"].children(recursive=True)
    for worker in workers:
        worker.suspend()
    assert len(workers) >= 2
    ended, _ = run(resident, "arrow")
    assert ended.code != 0
    assert run(resident, "arrow")[0] == Ended(0)


@pytest.mark.spark
def test_a_spark_without_its_executor_is_replaced(resident: Resident, place: ServerFolder) -> None:
    server = server_of(place)
    run(resident, "stop_executor")
    eventually("the server gives up", lambda: is_dead(server.pid), within=30)
    assert run(Resident(IMPATIENT, place), "arrow")[0] == Ended(0)


@pytest.mark.measured
@pytest.mark.spark
@pytest.mark.parametrize("role", ["driver", "jvm"])
def test_a_stopped_process_of_a_submit_ends_it(
    on_airflow: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("TIDEMARK_RESIDENT_PATIENCE_S", "5")
    task = AppOperator(task_id="t", app="linger", application=toy("linger"), app_args=[str(folder)], launcher="submit")
    ends: list[Any] = []

    def execute() -> None:
        try:
            task.execute(context())
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    pid = started(folder)
    jvm = psutil.Process(pid).ppid()
    psutil.Process(pid if role == "driver" else jvm).suspend()
    (error,) = eventually("the task fails", lambda: ends, within=30)
    assert "safe to run it again" in str(error)
    never_commits(folder, pid, within=3)
    assert is_dead(jvm)
    thread.join()


@pytest.mark.pure
class TestWatch:
    def test_only_who_is_stopped_at_every_look_for_so_long(self) -> None:
        process = subprocess.Popen(["sleep", "60"])
        try:
            watch, pids = Stopped(5), [process.pid, os.getpid()]
            stopped = psutil.Process(process.pid)
            assert watch.look(pids, 0) == set()
            stopped.suspend()
            eventually("it is stopped", lambda: stopped.status() == psutil.STATUS_STOPPED)
            assert watch.look(pids, 1) == set()
            assert watch.look(pids, 5.9) == set()
            assert watch.look(pids, 6) == {process.pid}
            stopped.resume()
            eventually("it goes on", lambda: stopped.status() != psutil.STATUS_STOPPED)
            assert watch.look(pids, 7) == set()
            stopped.suspend()
            eventually("it is stopped again", lambda: stopped.status() == psutil.STATUS_STOPPED)
            assert watch.look(pids, 8) == set()
        finally:
            process.kill()
            process.wait()
        assert watch.look(pids, 99) == set()

    def test_a_pause_of_everybody_counts_for_little(self) -> None:
        readings = iter([0.0, 1.0, 2.0, 3600.0, 3601.0])
        now = OwnTime(lambda: next(readings))
        assert [now() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
