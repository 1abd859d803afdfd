"""An Airflow of the benchmark's own: another home, root, landing, port and DAG folder, gone when it is done."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import HOME
from demo.airflow_api import AirflowApi
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

PORT = 8097
"""Where it listens, if that is free."""
RUN_LIMIT_SECONDS = 900
POLL_SECONDS = 1.0


@contextmanager
def own_airflow(folder: Path) -> Iterator[AirflowApi]:
    """A running Airflow whose every file is below `folder`; this process's environment is set to it meanwhile."""
    before = dict(os.environ)
    os.environ.update(_environment(folder))
    try:
        _local_airflow("init")
        _local_airflow("up")
        try:
            yield AirflowApi.local()
        finally:
            _local_airflow("down")
    finally:
        os.environ.clear()
        os.environ.update(before)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    """What tools/env.sh makes of other places, and the benchmark's own DAGs and collections."""
    asked = {
        "PORT": str(_free_port()),
        "TIDEMARK_AIRFLOW_HOME": str(folder / "airflow"),
        "TIDEMARK_ROOT": str(folder / "root"),
        "TIDEMARK_LANDING": str(folder / "landing"),
    }
    printed = subprocess.run([HOME / "tools/run", "env", "-0"], env=os.environ | asked, capture_output=True, check=True)
    variables = dict(line.split("=", 1) for line in printed.stdout.decode().split("\0") if line)
    return variables | {
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "benchmarks" / "dags"),
        "TIDEMARK_COLLECTIONS": str(folder / "collections"),
        "TIDEMARK_DOCS": str(folder / "data-docs"),
        "TIDEMARK_RESIDENT_DIR": str(folder / "resident"),
    }


def _local_airflow(command: str) -> None:
    subprocess.run([sys.executable, HOME / "tools/local_airflow.py", command], check=True, stdout=subprocess.DEVNULL)


def stop_resident() -> None:
    """End the resident Spark of this Airflow, so that the next run finds none."""
    client = [sys.executable, "-m", "tidemark.resident.client", "stop", "--now"]
    said = subprocess.run(client, check=True, capture_output=True, text=True).stdout.strip()
    if said != "stopped":
        raise RuntimeError(f"the next run would not be cold: {said}")


def run_dag(api: AirflowApi, dag: str, name: str, interval: Interval) -> dict[str, Any]:
    """Run a DAG over an interval and wait for its end: its seconds and its tasks', by Airflow's own times.

    `seconds` is from queued to end. CPU seconds are those of everything the Airflow started, itself included. Raises
    RuntimeError if the run fails.
    """
    bounds = {"lower": format_instant(interval.lower), "upper": format_instant(interval.upper)}
    conf = {} if dag == "floor" else bounds
    cpu = _cpu_of_instance()
    body = {"dag_run_id": name, "logical_date": None, "conf": conf}
    api.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)
    deadline = time.monotonic() + RUN_LIMIT_SECONDS
    while (run := api.call("GET", f"/api/v2/dags/{dag}/dagRuns/{name}"))["state"] not in ("success", "failed"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"run {name} of {dag} did not end within {RUN_LIMIT_SECONDS} s")
        _check_tries(api, dag, name)
        time.sleep(POLL_SECONDS)
    after = _cpu_of_instance()
    parts = {part: round(after[part] - before, 1) for part, before in cpu.items()}
    tasks = _check_tries(api, dag, name)
    if run["state"] == "failed":
        raise RuntimeError(f"run {name} of {dag} failed")
    return {
        "seconds": round(_seconds(run["queued_at"], run["end_date"]), 2),
        "cpu_seconds": round(sum(parts.values()), 1),
        "cpu_parts": parts,
        "tasks": {task["task_id"]: round(_seconds(task["start_date"], task["end_date"]), 2) for task in tasks},
    }


def _check_tries(api: AirflowApi, dag: str, name: str) -> list[dict[str, Any]]:
    """The run's tasks in the order they started; RuntimeError if one did not pass at once: its time says nothing."""
    tasks = sorted(api.tasks(dag, name), key=lambda task: task["start_date"] or "9")
    for task in tasks:
        if task["try_number"] > 1 or task["state"] in ("failed", "up_for_retry"):
            raise RuntimeError(f"run {name} of {dag}: {task['task_id']} is {task['state']}: {_why(dag, name, task)}")
    return tasks


def _why(dag: str, name: str, task: Mapping[str, Any]) -> str:
    """What the log of the task's first try says; it is gone with the Airflow."""
    log = Path(os.environ["AIRFLOW_HOME"], "logs", f"dag_id={dag}", f"run_id={name}", f"task_id={task['task_id']}")
    lines = [json.loads(line) for line in (log / "attempt=1.log").read_text().splitlines()]
    errors = [detail["exc_value"] for line in lines for detail in line.get("error_detail") or ()]
    return errors[0] if errors else "its log says nothing"


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _cpu_of_instance() -> dict[str, float]:
    """CPU seconds so far of the live processes of this Airflow and of their ended children, by part: a component, the
    JVM of the resident Spark, or the Python processes of that."""
    from tools.local_airflow import DATABASE, marked, read_running  # reads the environment when it is imported

    running: Mapping[str, Any] | None = read_running()
    spent: dict[str, float] = dict.fromkeys(PARTS, 0.0)
    for process in [*marked(running["instance"]), *DATABASE.processes()] if running else ():
        with suppress(psutil.Error):
            times = process.cpu_times()
            spent[_part(process)] += times.user + times.system + times.children_user + times.children_system
    return spent


PARTS = (
    "scheduler and tasks",
    "api-server",
    "dag-processor",
    "triggerer",
    "database",
    "JVM",
    "resident Python",
    "other",
)


def _part(process: psutil.Process) -> str:
    """What a process is a part of."""
    words = " ".join(process.cmdline())
    if process.name().startswith("java"):
        return "JVM"
    if process.name().startswith("postgres"):
        return "database"
    if "pyspark" in words or "tidemark.resident" in words or "resident" in words:
        return "resident Python"
    named = {"scheduler": "scheduler and tasks", "api-server": "api-server", "api_server": "api-server"}
    named |= {"dag-processor": "dag-processor", "triggerer": "triggerer", "airflow": "scheduler and tasks"}
    return next((part for word, part in named.items() if word in words), "other")
