"""`make down` ends what `make up` started and nothing else; `make up` refuses what cannot work."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

PROJECT = Path(__file__).resolve().parents[2]
MARK = "TIDEMARK_AIRFLOW_INSTANCE"

# A component that starts a task in a session of its own, as a resident Spark is, and tells its pid.
COMPONENT = """
import subprocess, sys, time
task = subprocess.Popen([sys.executable, "-c", {task!r}], start_new_session=True)
print(task.pid, flush=True)
time.sleep(600)
"""
ORDINARY_TASK = "import time; time.sleep(600)"
STUBBORN_TASK = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "airflow home"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes to be ended with the test, whatever became of it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def local_airflow(command: str, home: Path, *, port: int = 8095) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROJECT / "tools" / "run", "python", PROJECT / "tools" / "local_airflow.py", command],
        env=os.environ | {"TIDEMARK_AIRFLOW_HOME": str(home), "PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def start(code: str, mark: str | None) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != MARK}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment | ({MARK: mark} if mark else {}),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def record(home: Path, supervisor: int, mark: str, *, port: int = 8095) -> None:
    home.mkdir()
    (home / "running.json").write_text(json.dumps({"pid": supervisor, "port": port, "instance": mark}))


@pytest.mark.measured
@pytest.mark.parametrize("supervisor_died", [False, True], ids=["in good order", "the supervisor was killed before"])
@pytest.mark.parametrize("task_code", [ORDINARY_TASK, STUBBORN_TASK], ids=["ordinary task", "stubborn task"])
def test_down_leaves_nothing_and_touches_nothing_else(
    home: Path, started: list[subprocess.Popen[str]], task_code: str, supervisor_died: bool
) -> None:
    supervisor = start(COMPONENT.format(task=task_code), f"{home}#this")
    bystander, other_instance = start(ORDINARY_TASK, None), start(ORDINARY_TASK, f"{home}#other")
    started += [supervisor, bystander, other_instance]
    assert supervisor.stdout is not None
    task = psutil.Process(int(supervisor.stdout.readline()))
    record(home, supervisor.pid, f"{home}#this")
    if supervisor_died:
        supervisor.kill()
        supervisor.wait()
        assert task.is_running()

    done = local_airflow("down", home)

    assert (done.returncode, done.stderr) == (0, "Airflow is down; nothing it started is left\n")
    supervisor.wait(timeout=5)
    assert not task.is_running() or task.status() == psutil.STATUS_ZOMBIE
    assert (bystander.poll(), other_instance.poll()) == (None, None)
    assert not (home / "running.json").exists()


def test_down_twice_is_a_success(home: Path) -> None:
    done = local_airflow("down", home)
    assert (done.returncode, done.stderr) == (0, "Airflow is not running\n")


def test_status_of_none_says_how_to_start_one(home: Path) -> None:
    done = local_airflow("status", home)
    assert (done.returncode, done.stderr) == (1, "Airflow is not running: make up\n")


def test_status_is_of_the_port_it_was_started_on(home: Path, started: list[subprocess.Popen[str]]) -> None:
    """`make status` needs no PORT; who asks need not read whether all is healthy."""
    supervisor = start(ORDINARY_TASK, f"{home}#this")
    started.append(supervisor)
    with healthy_airflow() as port:
        record(home, supervisor.pid, f"{home}#this", port=port)
        (home / "passwords.json").write_text('{"admin": "word"}')
        done = local_airflow("status", home)
    assert "  api-server: healthy\n" in done.stderr
    assert f"Airflow: http://127.0.0.1:{port}   login: admin   password: word" in done.stderr
    assert "  scheduler: NOT healthy\n" in done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("not healthy: postgres, scheduler, ")


@contextmanager
def healthy_airflow() -> Iterator[int]:
    """A port at which something answers as the Airflow API does when asked for its health."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_up_refuses_a_port_that_is_taken(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = local_airflow("up", home, port=port)
    assert done.returncode == 1
    assert done.stderr.startswith(f"port {port} is taken by another program")
    assert f"make up PORT={port + 1}" in done.stderr
    assert not (home / "running.json").exists()


def test_up_refuses_a_second_instance_of_one_home_on_another_port(
    home: Path, started: list[subprocess.Popen[str]]
) -> None:
    supervisor = start(ORDINARY_TASK, f"{home}#this")
    started.append(supervisor)
    record(home, supervisor.pid, f"{home}#this")
    done = local_airflow("up", home, port=8195)
    assert (done.returncode, done.stderr) == (
        1,
        "already up on port 8095, asked for 8195: `make down` first\n",
    )
    assert supervisor.poll() is None


def test_up_removes_no_log_but_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, sockets = home / "logs" / "components", home / "sockets"
    for folder in (logs, sockets, home / "postgres"):
        folder.mkdir(parents=True)
    sockets.chmod(0o755)  # so its database cannot start
    for name in ("scheduler.log", "notes.log"):
        (logs / name).write_text("before")
    monkeypatch.setenv("TIDEMARK_AIRFLOW_SOCKETS", str(sockets))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    refused = local_airflow("up", home, port=port)
    assert refused.returncode == 1
    assert "postgres cannot start" in refused.stderr
    assert {path.name for path in logs.iterdir() if path.read_text() == "before"} == {"notes.log"}
