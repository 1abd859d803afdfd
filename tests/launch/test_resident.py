"""The resident launcher: what it runs, and who dies with whom."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.launch.conftest import LIGHT
from tests.launch.support import APPS, environment_of, eventually, is_dead, never_commits, started, toy
from tidemark.errors import InvalidUsage
from tidemark.resident.client import Ended, Resident, ResidentLost
from tidemark.resident.server_folder import PACKAGE, ServerFolder

pytestmark = pytest.mark.spark
OTHER = dataclasses.replace(LIGHT, conf={"spark.sql.shuffle.partitions": "7"})
"""The settings of another server at the same place."""


def run(resident: Resident, app: str, *argv: str, **options: Any) -> tuple[Ended, list[str]]:
    lines: list[str] = []
    ended = resident.run(Path(toy(app)), argv, cwd=APPS, out=lines.append, **options)
    return ended, lines


def facts(resident: Resident, *argv: str, **options: Any) -> dict[str, Any]:
    ended, lines = run(resident, "facts", *argv, **options)
    assert ended == Ended(0)
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@contextlib.contextmanager
def lingering(resident: Resident, folder: Path, *flags: str) -> Iterator[tuple[int, list[Any]]]:
    """A run under way in a thread: the pid of its child, and where its end will be: an Ended or an error."""
    end: list[Any] = []

    def follow() -> None:
        try:
            end.append(run(resident, "linger", str(folder), *flags)[0])
        except ResidentLost as e:
            end.append(e)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield started(folder), end
    finally:
        (folder / "go").touch()
        thread.join(30)


def server_of(place: ServerFolder) -> psutil.Process:
    status = Resident(LIGHT, place).status()
    assert status is not None
    return psutil.Process(status["pid"])


def jvm_of(server: psutil.Process) -> psutil.Process:
    return next(p for p in server.children() if p.name() == "java")


def test_runs_an_app_with_its_arguments_folder_and_the_allowed_environment(
    resident: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SECRET", "password")
    allowed = Resident(resident._settings, resident._place, environ={**os.environ, "TIDEMARK_WORD": "w", "LD_X": "no"})
    found = facts(allowed, "one", "two words", env={"EXPLICIT": "yes"})
    assert found["argv"] == ["one", "two words"]
    assert found["cwd"] == str(APPS)
    seen = found["environment"]
    assert seen["TIDEMARK_WORD"] == "w"
    assert seen["EXPLICIT"] == "yes"
    assert not {"AIRFLOW_CONN_SECRET", "LD_X", "PYSPARK_GATEWAY_SECRET"} & set(seen)


def test_runs_share_one_spark_and_nothing_else(resident: Resident) -> None:
    first = facts(resident, conf={"spark.sql.shuffle.partitions": "3"})
    second = facts(resident)
    assert first["application"] == second["application"]
    assert (first["partitions"], second["partitions"]) == ("3", "200")
    assert second["views"] == [], "the view of another run is visible"
    assert first["pid"] != second["pid"]


def test_python_workers_see_the_environment_of_the_run(resident: Resident) -> None:
    _, lines = run(resident, "arrow", env={"TIDEMARK_WORD": "hello"})
    assert json.loads(lines[-1])["words"] == ["hello"]


def test_what_a_session_cannot_set_is_refused(resident: Resident) -> None:
    ended, lines = run(resident, "facts", conf={"spark.executor.memory": "9g"})
    assert ended == Ended(1)
    assert "spark.executor.memory=9g cannot be set" in json.loads(lines[-1])["error"]["message"]


def test_exit_code_and_lines_come_as_the_app_gave_them(resident: Resident) -> None:
    err: list[str] = []
    ended, lines = run(resident, "answer", '{"step": "x"}', "75", err=err.append)
    assert ended == Ended(75)
    assert lines[-2:] == ["noise on stdout", '{"step": "x"}']
    assert "noise on stderr" in err


def test_two_clients_are_served_at_once(resident: Resident, place: ServerFolder, folder: Path) -> None:
    with lingering(resident, folder) as (pid, end):
        assert facts(Resident(LIGHT, place))["pid"] != pid
        assert not is_dead(pid)
        assert not end
        (folder / "go").touch()
        assert eventually("the first run ends", lambda: end) == [Ended(0)]
    assert (folder / "committed").exists()


def test_socket_and_folder_are_private(resident: Resident, place: ServerFolder) -> None:
    resident.start()
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.socket.parent.stat().st_mode) == 0o700
    place.socket.parent.chmod(0o755)
    try:
        with pytest.raises(InvalidUsage, match="mode 755"):
            resident.start()
    finally:
        place.socket.parent.chmod(0o700)


@pytest.mark.measured
def test_a_killed_client_takes_its_app_and_its_jobs_along(
    resident: Resident, place: ServerFolder, folder: Path
) -> None:
    resident.start()
    script = (
        "from pathlib import Path; from tests.launch.conftest import LIGHT;"
        "from tidemark.resident.client import Resident; from tidemark.resident.server_folder import ServerFolder;"
        f"Resident(LIGHT, ServerFolder(Path({str(place.socket)!r})))"
        f".run(Path({toy('linger')!r}), [{str(folder)!r}, '--job'], cwd=Path('/'))"
    )
    path = os.pathsep.join([str(PACKAGE.parent), str(APPS.parents[2])])
    client = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    pid = started(folder)
    assert facts(resident)["active"], "the endless job does not run"
    client.kill()
    client.wait()
    never_commits(folder, pid, within=3)
    eventually("its jobs are cancelled", lambda: not facts(resident)["active"])


@pytest.mark.measured
def test_a_cancelled_run_is_dead(resident: Resident, place: ServerFolder, folder: Path) -> None:
    with lingering(resident, folder) as (pid, end):
        resident.cancel()
        never_commits(folder, pid, within=3)
        assert "cancelled" in str(eventually("the client returns", lambda: end)[0])


@pytest.mark.measured
def test_a_killed_child_is_reported_and_its_jobs_are_cancelled(
    resident: Resident, place: ServerFolder, folder: Path
) -> None:
    with lingering(resident, folder, "--job") as (pid, end):
        os.kill(pid, signal.SIGKILL)
        assert eventually("the client learns of it", lambda: end, within=3) == [Ended(0, signal.SIGKILL)]
    eventually("its jobs are cancelled", lambda: not facts(Resident(LIGHT, place))["active"])
    assert not (folder / "committed").exists()


def test_another_fingerprint_waits_for_nobody_and_ends_nobody(
    resident: Resident, place: ServerFolder, folder: Path
) -> None:
    resident.start()
    old = server_of(place)
    with lingering(resident, folder) as (pid, end):
        other = Resident(OTHER, place)
        assert facts(other)["partitions"] == "7"
        assert server_of(place).pid != old.pid
        assert not is_dead(pid), "the run on the retired server was ended"
        (folder / "go").touch()
        assert eventually("the old run ends well", lambda: end) == [Ended(0)]
    eventually("the retired server ends", lambda: is_dead(old.pid), within=20)


@pytest.mark.measured
def test_a_killed_server_takes_everything_along_and_is_replaced(place: ServerFolder, folder: Path) -> None:
    with lingering(Resident(OTHER, place), folder) as (pid, end):
        server = server_of(place)
        jvm = jvm_of(server)
        descendants = server.children(recursive=True)
        server.kill()
        (lost,) = eventually("the client fails at once", lambda: end, within=3)
        assert isinstance(lost, ResidentLost)
        never_commits(folder, pid, within=3)
        eventually("the JVM is dead", lambda: is_dead(jvm.pid), within=3)
        eventually("all helpers are dead", lambda: all(is_dead(p.pid) for p in descendants), within=3)
    assert facts(Resident(LIGHT, place))["application"]
    assert len(list(place.scratch.iterdir())) == 1, "what the killed server left is still there"


@pytest.mark.measured
def test_a_dead_jvm_ends_the_server_and_the_run(resident: Resident, place: ServerFolder, folder: Path) -> None:
    with lingering(resident, folder) as (pid, end):
        server = server_of(place)
        jvm_of(server).kill()
        (lost,) = eventually("the client fails", lambda: end, within=5)
        assert isinstance(lost, ResidentLost)
        never_commits(folder, pid, within=5)
        eventually("the server ends", lambda: is_dead(server.pid), within=15)


@pytest.mark.measured
def test_a_hung_server_is_replaced(place: ServerFolder) -> None:
    Resident(LIGHT, place).start()
    hung = server_of(place)
    hung.suspend()
    status = Resident(LIGHT, place, hello_s=0.5).start()
    assert status["pid"] != hung.pid
    eventually("the hung one is dead", lambda: is_dead(hung.pid), within=5)


def test_only_one_server_starts_however_many_ask(folder: Path) -> None:
    place = ServerFolder(folder / "r.sock")
    pids: list[int] = []
    threads = [threading.Thread(target=lambda: pids.append(Resident(LIGHT, place).start()["pid"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(pids) == 4
    assert len(set(pids)) == 1
    Resident(LIGHT, place).stop(now=True)
    assert is_dead(pids[0]), "stop returned before the server had ended"


def test_an_idle_server_ends(folder: Path) -> None:
    place = ServerFolder(folder / "r.sock")
    pid = Resident(dataclasses.replace(LIGHT, idle_s=0.5), place).start()["pid"]
    assert "AIRFLOW_HOME" not in environment_of(pid)
    eventually("it ends", lambda: is_dead(pid), within=30)
    eventually("nothing of it is left", lambda: not folder.exists())
    assert Resident(LIGHT, place).status() is None
