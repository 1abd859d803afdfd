"""Each component in its turn is killed with -9 in the middle of a backfill: it ends right, without anybody's help."""

from __future__ import annotations

import os
import re
import signal
from datetime import date, timedelta
from itertools import chain
from typing import Any

import psutil
import pytest

from tests.e2e.instance import Airflow
from tests.e2e.orders import HEADER, amounts, orders, seal_of, sound

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

KILLED = (("scheduler", "triggerer"), ("postgres", "dag-processor", "api-server"))
"""What dies on each day of the backfill."""
FIRST = date(2024, 3, 1)


def pid_of(airflow: Airflow, component: str) -> int:
    """Its process; waited for, since a component dies of another's death, too."""
    return int(airflow.until(f"{component} runs", lambda: airflow.components()[component]["pid"]))


def kill(airflow: Airflow, component: str) -> None:
    """SIGKILL its process, and nothing else, and wait for the next one: what it has left is the supervisor's affair."""
    killed = pid_of(airflow, component)
    os.kill(killed, signal.SIGKILL)
    airflow.until(f"{component} is started again", lambda: pid_of(airflow, component) != killed)


def test_the_backfill_ends_right_whichever_component_is_killed(airflow: Airflow) -> None:
    days = [FIRST + timedelta(days=n) for n in range(len(KILLED))]
    for n, day in enumerate(days):
        rows = [(n, n, f"{day}T10:00:00Z"), (100, n, f"{day}T11:00:00Z")]
        airflow.land(f"shaken/{day}/a.csv", HEADER, *rows)
    each_its_run = "airflow: {backfill_intervals: 1, max_active_runs: 1}\n"
    name = airflow.declare(orders("shaken", str(FIRST), str(FIRST + timedelta(days=len(KILLED)))) + each_its_run)
    airflow.api.unpause(name)
    airflow.api.backfill(name, str(days[0]), str(days[-1]))

    def running_task(day: date) -> dict[str, Any] | None:
        for run in airflow.api.runs(name):
            if run["data_interval_start"][:10] == str(day) and run["state"] == "running":
                tasks = airflow.api.tasks(name, run["dag_run_id"])
                return next((task for task in tasks if task["state"] == "running"), None)
        return None

    for components, day in zip(KILLED, days, strict=True):
        airflow.until(f"a task of {day} runs", lambda day=day: running_task(day))
        workers = psutil.Process(pid_of(airflow, "scheduler")).children(recursive=True)
        assert workers, "a task runs without a process"
        for component in components:
            kill(airflow, component)
        if "scheduler" in components:
            assert not any(worker.is_running() for worker in workers), "workers of the killed scheduler are left"

    runs = airflow.until(
        "every day is run",
        lambda: (
            [run for run in airflow.api.runs(name) if run["state"] in ("success", "failed")][len(days) - 1 :]
            and airflow.api.runs(name)
        ),
    )
    assert [(run["data_interval_start"][:10], run["state"]) for run in runs] == [(str(d), "success") for d in days]
    assert amounts(airflow, name) == {**{n: n for n in range(len(days))}, 100: len(days) - 1}
    assert seal_of(airflow, name) == f"{FIRST + timedelta(days=len(days))}T00:00:00Z"
    assert sound(airflow, name)
    for component in chain(*KILLED):
        airflow.until(f"{component} is well", lambda name=component: f"  {name}: healthy;" in airflow.status())
        assert re.search(
            rf"  {component}: .*(killed by|ended with) .*, started again \(\d of 5 times\)", airflow.status()
        )
    assert "NOT healthy" not in airflow.status(healthy=True)
