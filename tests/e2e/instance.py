"""An Airflow of the tests' own: four real components, every file below one folder, gone at the end."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import tidemark
from demo.airflow_api import AirflowApi
from tests.support.killing import Killing
from tidemark.jobs.job import collection_store, fresh_id
from tidemark.storage import ObjectStore
from tidemark.storage.log.log import StateLog

PROJECT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 600
T = TypeVar("T")


@dataclass(frozen=True)
class Airflow:
    """The running instance, seen through its REST API, its collections and its command line."""

    folder: Path
    api: AirflowApi
    killing: Killing

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def declare(self, text: str) -> str:
        """Add a collection file, and wait until its DAG is there; the collection's name."""
        name = text.split("name: ")[1].split()[0]
        (self.folder / "collections" / f"{name}.yaml").write_text(text)
        self.api.wait_for_dag(name, seconds=RUN_SECONDS)
        return name

    def land(self, path: str, *rows: Sequence[object]) -> Path:
        """Put a CSV below the landing, the first row being its header."""
        file = self.landing / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
        return file

    def components(self) -> dict[str, dict[str, Any]]:
        """What became of each component: its pid, how often it was started again, how it last ended."""
        found: dict[str, dict[str, Any]] = json.loads((self.folder / "airflow/components.json").read_text())[
            "components"
        ]
        return found

    def status(self, *, healthy: bool = False) -> str:
        """What `make status` says; that it fails is an error only where all is to be `healthy`."""
        return _local_airflow("status", ends=(0,) if healthy else (0, 1))

    def store(self, collection: str) -> ObjectStore:
        return collection_store(str(self.folder / "root"), collection)

    def log(self, collection: str) -> StateLog:
        return StateLog(self.store(collection), fresh_id)

    def opened(self, collection: str) -> tidemark.OpenCollection:
        return tidemark.open(self.folder / "root", collection)

    def tidemark(self, *words: str) -> Any:
        """Run the command line; the JSON document it prints."""
        done = subprocess.run(["tidemark", *words, "--json"], capture_output=True, text=True, check=True, timeout=120)
        return json.loads(done.stdout)

    def until(self, what: str, fact: Callable[[], T | None], *, within: float = RUN_SECONDS) -> T:
        """The first true value of `fact`; fails naming `what` if there is none in time."""
        deadline = time.monotonic() + within
        while not (value := fact()):
            assert time.monotonic() < deadline, f"not within {within} s: {what}"
            time.sleep(0.5)
        return value

    def trigger(self, dag: str, lower: str, upper: str) -> str:
        """A single run over an interval, as from the UI's form; its id."""
        run_id = f"single_{lower}"
        body = {"dag_run_id": run_id, "logical_date": None, "conf": {"lower": lower, "upper": upper}}
        self.api.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)
        return run_id

    def run(self, dag: str, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api.call("GET", f"/api/v2/dags/{dag}/dagRuns/{quote(run_id, safe='')}")
        return found

    def ended(self, dag: str, run_id: str, *, state: str = "success") -> dict[str, Any]:
        """Wait for the end of a run, which must be in `state`."""

        def over() -> dict[str, Any] | None:
            run = self.run(dag, run_id)
            return run if run["state"] in ("success", "failed") else None

        run = self.until(f"{run_id} of {dag} ends", over)
        assert run["state"] == state, f"{run_id} of {dag} is {run['state']}: {self.states(dag, run_id)}"
        return run

    def tasks(self, dag: str, run_id: str) -> dict[str, dict[str, Any]]:
        return {task["task_id"]: task for task in self.api.tasks(dag, run_id)}

    def states(self, dag: str, run_id: str) -> dict[str, str]:
        return {name: task["state"] for name, task in self.tasks(dag, run_id).items()}

    def question(self, dag: str, run_id: str, task: str) -> dict[str, Any]:
        """What a task asks, once it is parked and the scheduler has seen that: a task that is answered before, and runs
        again by then, it takes for one that was lost, and tries once more."""
        self.until(f"{task} asks", lambda: self.states(dag, run_id).get(task) == "awaiting_input")
        self.until(f"the scheduler has seen {task} ask", lambda: self._has_seen_parked(dag, run_id, task))
        found: dict[str, Any] = self.api.call("GET", self._question_of(dag, run_id, task))
        return found

    def _has_seen_parked(self, dag: str, run_id: str, task: str) -> bool:
        """Whether the scheduler has taken note of every end of a task that asked."""
        log = (self.folder / "airflow" / "logs" / "components" / "scheduler.log").read_text(errors="replace")
        lines = [line for line in log.splitlines() if run_id in line and task in line]
        asked = sum("Pausing task as AWAITING_INPUT" in line and f"dag_id={dag} " in line for line in lines)
        seen = sum(f"Finished: dag_id={dag}," in line and "state=awaiting_input" in line for line in lines)
        return seen >= asked

    def answer(self, dag: str, run_id: str, task: str, chosen: str, **form: str) -> None:
        """Answer what a task asks, as the button does."""
        body = {"chosen_options": [chosen], "params_input": form}
        self.api.call("PATCH", self._question_of(dag, run_id, task), body)

    def _question_of(self, dag: str, run_id: str, task: str) -> str:
        return f"/api/v2/dags/{dag}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task}/-1/hitlDetails"

    def clear(self, dag: str, run_id: str) -> None:
        """What the button *Clear* of a run does."""
        self.api.clear(dag, run_id)

    def returned(self, dag: str, run_id: str, task: str) -> Any:
        """What a task returned."""
        return self.api.returned(dag, run_id, task)

    def log_of(self, dag: str, run_id: str, task: str, number: int) -> str:
        """What a try of a task has logged."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task}/logs/{number}"
        return json.dumps(self.api.call("GET", f"{path}?full_content=true"))


@contextmanager
def running(**places: str) -> Iterator[Airflow]:
    """Start it; however this ends, it is down afterwards with everything it started. `places` are variables of its
    environment, as a store that is no folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    killing = Killing.made(folder / "home")
    (folder / "collections").mkdir()
    before = dict(os.environ)
    os.environ.update(_environment(folder, killing) | places)
    try:
        _local_airflow("init")
        try:
            _local_airflow("up")
            yield Airflow(folder, AirflowApi.local(), killing)
        finally:
            _local_airflow("down")
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path, killing: Killing) -> dict[str, str]:
    """What tools/env.sh makes of places of the tests' own, and a project folder whose apps can be hit."""
    asked = {
        "PORT": str(_free_port()),
        "TIDEMARK_AIRFLOW_HOME": str(folder / "airflow"),
        "TIDEMARK_ROOT": str(folder / "root"),
        "TIDEMARK_LANDING": str(folder / "landing"),
        "TIDEMARK_LAUNCHER": "resident",
    }
    printed = subprocess.run(
        [PROJECT / "tools/run", "env", "-0"], env=os.environ | asked, capture_output=True, check=True
    )
    variables = dict(line.split("=", 1) for line in printed.stdout.decode().split("\0") if line)
    return variables | {
        "TIDEMARK_HOME": str(killing.home),
        "TIDEMARK_KILLING": str(killing.folder),
        "TIDEMARK_ZIP": str(PROJECT / "build" / "tidemark.zip"),
        "TIDEMARK_COLLECTIONS": str(folder / "collections"),
        "TIDEMARK_DOCS": str(folder / "data-docs"),
        "TIDEMARK_RESIDENT_DIR": str(folder / "r"),
    }


def _local_airflow(command: str, ends: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, PROJECT / "tools/local_airflow.py", command], check=False, capture_output=True, text=True
    )
    assert done.returncode in ends, f"local_airflow.py {command}: {done.stdout[-2000:]} {done.stderr[-3000:]}"
    return done.stderr
