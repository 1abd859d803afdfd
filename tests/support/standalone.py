"""A standalone Spark cluster on this machine: a master and its workers, of the installed pyspark."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyspark

from tests.support.scratch import JVM

CORES = 1
MEMORY_MIB = 1024
PATIENCE_S = 120.0
"""Of a machine that is busy with something else. Nothing waits for so long on one that is not."""
SPARK_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """Processes of this machine, on the loopback interface only: a master, and workers with an address each.

    Each worker has one core and 1 GiB. Use it as a context: at its end every process has ended, the executors too.
    """

    folder: Path
    port: int = field(default_factory=lambda: _free_port())
    page: int = field(default_factory=lambda: _free_port())
    _master: subprocess.Popen[bytes] | None = None
    _workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _started: int = 0
    _tasks_before: dict[str, int] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """The address for applications."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What master and workers have said."""
        return self.folder / "cluster.log"

    def __enter__(self) -> Self:
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.page)]
        self._master = self._start(f"{_DEPLOY}.master.Master", *place)
        return self

    def __exit__(self, *_: object) -> None:
        running = [*self._workers.values(), *([self._master] if self._master else [])]
        for process in running:
            _end(process)

    def ready(self, workers: int = 2) -> None:
        """Wait until so many workers are alive and no application is: what was killed is replaced."""
        self._workers = {host: process for host, process in self._workers.items() if process.poll() is None}
        while len(self._workers) < workers:
            self.add_worker()
        self.wait("its workers are alive", lambda state: len(_alive(state)) == workers)
        self.wait("no application is left", lambda state: not state["activeapps"])
        self._tasks_before = {host: self._tasks(host) for host in self._workers}

    def wait(self, what: str, fact: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The master's state once `fact` is true of it."""
        deadline = time.monotonic() + PATIENCE_S
        while (state := self.state()) is None or not fact(state):
            assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}\n{self.log.read_text()[-4000:]}"
            time.sleep(0.1)
        return state

    def state(self) -> dict[str, Any] | None:
        """What the master says of itself; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=10) as page:
                found: dict[str, Any] = json.load(page)
        except (OSError, ValueError):  # its page comes before what is on it
            return None
        return found

    def kill_worker(self, host: str) -> None:
        """End the worker at an address, and its executors with it, at once and without a word (SIGKILL)."""
        _end(self._workers.pop(host))

    def wait_for_task(self) -> str:
        """The address of a worker one of whose executors has begun a task since the cluster was last ready."""
        deadline = time.monotonic() + PATIENCE_S
        while not (busy := [host for host in self._workers if self._tasks(host) > self._tasks_before.get(host, 0)]):
            assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: an executor begins a task"
            time.sleep(0.02)
        return busy[0]

    def _tasks(self, host: str) -> int:
        """Tasks that the executors of a worker have begun, ever: they say so in their logs."""
        return sum(log.read_text().count(": Running task ") for log in (self.folder / host).glob("app-*/*/stderr"))

    @property
    def hosts(self) -> list[str]:
        """The addresses of the workers."""
        return list(self._workers)

    def add_worker(self) -> None:
        """Start one more."""
        self._started += 1
        host = f"127.0.0.{self._started + 1}"
        size = ["--webui-port", "0", "-c", str(CORES), "-m", f"{MEMORY_MIB}M", "-d", str(self.folder / host)]
        self._workers[host] = self._start(f"{_DEPLOY}.worker.Worker", "--host", host, *size, self.master)

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable}
        env["SPARK_LOCAL_IP"] = words[words.index("--host") + 1]  # pages too
        env["JDK_JAVA_OPTIONS"] = JVM  # of executors, too: the launcher of Java reads it
        env.pop("PYTHONPATH", None)
        with self.log.open("ab") as log:
            command = [str(SPARK_HOME / "bin" / "spark-class"), name, *words]
            return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def _alive(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [worker for worker in state.get("workers", ()) if worker["state"] == "ALIVE"]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it has started: its session is its own, and executors are in it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
