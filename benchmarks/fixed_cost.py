"""What a run costs however little there is to do: each step and one whole DAG run over a day of 500 changes.

A real Airflow, started for it, runs the DAG that the factory makes of a small upsert collection, gates included.
Seconds are Airflow's own: a run's from queued to end, a task's from start to end, in which its process starts,
imports and works. Runs over other days make each step's plan empty (a day that is done), metadata only (a day
without files) or 500 rows. Beside them the floor: a DAG of as many tasks that do nothing, run in turn with the
others in the same Airflow.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.airflow_instance import own_airflow, run_dag, stop_resident
from benchmarks.feed import START, Feed, fingerprint_of
from demo.airflow_api import AirflowApi
from tests.support.reading import as_of
from tidemark.jobs.job import collection_store, fresh_id
from tidemark.model.collection import Envelope
from tidemark.model.instant import format_instant
from tidemark.storage.log.log import StateLog

CHANGES = 500
WARM_RUNS = 5
LAUNCHERS = ("child", "resident", "submit")
"""Who does the work: a child of the task (`spark: auto`), or Spark by either launcher (`spark: always`)."""

COLLECTION = """
name: changes_{launcher}
key: [id, code]
value: [amount, ratio, label]
columns: {{id: int, code: string, amount: int, ratio: float, label: string, happened_at: timestamp,
          reported_at: timestamp, deleted: bool}}
start: {start}
time: {{column: reported_at}}
event_time: {{column: happened_at}}
source: {{path: "{{{{ landing }}}}/{{{{ ds }}}}/*.parquet", format: parquet, envelope: upsert, order_by: happened_at,
          delete_when: "deleted = TRUE", ready: exists}}
schedule: "@daily"
"""

Run = dict[str, Any]


def fixed_cost(launchers: list[str], say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of the given launchers and of the floor. AssertionError if a collection ends with wrong rows."""
    if unknown := sorted(set(launchers) - set(LAUNCHERS)):
        raise ValueError(f"there is no launcher {unknown[0]!r}; write some of {', '.join(LAUNCHERS)}")
    feed = Feed(Envelope.UPSERT, WARM_RUNS + 2, CHANGES, 3 * CHANGES)
    with tempfile.TemporaryDirectory(prefix="tb-") as name:  # short: a socket's path has 107 bytes
        folder = Path(name)
        _lay_out(folder, feed, launchers)
        say("fixed cost: starting an Airflow")
        with own_airflow(folder) as api:
            for dag in ("floor", *(f"changes_{launcher}" for launcher in launchers)):
                api.wait_for_dag(dag, seconds=120)
            runs = _runs(api, feed, launchers, say)
            task_cpu = _task_cpu()
        for launcher in launchers:
            _check(folder, feed, launcher)
    return {"changes": CHANGES, "dag_runs": runs, "steps": _steps(runs), "task_cpu": task_cpu}


def _task_cpu() -> list[dict[str, Any]]:
    """CPU seconds of each task's process, and what of it was before its work, as the DAGs wrote them down."""
    lines = Path(os.environ["AIRFLOW_HOME"], "task_cpu.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _lay_out(folder: Path, feed: Feed, launchers: list[str]) -> None:
    """Days of changes, and behind them one without files."""
    feed.write(folder / "landing")
    (folder / "landing" / format_instant(feed.interval(feed.days).lower)[:10]).mkdir()
    (folder / "collections").mkdir()
    for launcher in launchers:
        text = COLLECTION.format(launcher=launcher, start=format_instant(START))
        (folder / "collections" / f"changes_{launcher}.yaml").write_text(text)


def _runs(api: AirflowApi, feed: Feed, launchers: list[str], say: Callable[[str], None]) -> list[Run]:
    """Every run, one after the other; warm ones by turns with the floor."""

    def one(dag: str, name: str, day: int) -> Run:
        run = run_dag(api, dag, name, feed.interval(day))
        say(f"fixed cost: {name} {run['seconds']:.1f} s, {run['cpu_seconds']:.1f} CPU s: {run['cpu_parts']}")
        return run

    one("floor", "warm-up", 0)  # what Airflow does once is no run's cost
    resident, floor, warm, child, summaries = "changes_resident", [], [], [], []
    cold = [one(resident, "cold", 0)] if "resident" in launchers else []
    if "child" in launchers:
        one("changes_child", "child-0", 0)  # it creates the collection
    for day in range(1, WARM_RUNS + 1):
        floor.append(one("floor", f"floor-{day}", day))
        if "child" in launchers:
            child.append(one("changes_child", f"child-{day}", day))
        if cold:
            warm.append(one(resident, f"warm-{day}", day))
    summaries.append(_summary("floor", "", floor))
    if child:
        summaries.append(_summary("child", "child", child, plan="500 rows"))
    if cold:
        stop_resident()
        cold.append(one(resident, "cold-again", WARM_RUNS + 1))
        summaries.append(_summary("resident, warm", "resident", warm, plan="500 rows"))
        summaries.append(_summary("resident, cold", "resident", cold))
        empty = one(resident, "no-files", feed.days)
        summaries.append(_summary("resident, a day without files", "resident", [empty], plan="metadata only"))
        done = one(resident, "done", 0)
        summaries.append(_summary("resident, a day that is done", "resident", [done], plan="empty"))
    if "submit" in launchers:
        summaries.append(_summary("submit", "submit", [one("changes_submit", "submit", 0)], plan="500 rows"))
    return summaries


def _steps(runs: list[Run]) -> list[dict[str, Any]]:
    """Each step's own seconds, by what its plan had to do."""
    return [
        {"step": step, "plan": run["plan"], "launcher": run["launcher"], "seconds": seconds}
        for run in runs
        if run["plan"]
        for step, seconds in run["task_seconds"].items()
    ]


def _summary(name: str, launcher: str, runs: list[Run], *, plan: str | None = None) -> Run:
    tasks = {task: [run["tasks"][task] for run in runs] for task in runs[0]["tasks"]}
    return {
        "name": name,
        "launcher": launcher,
        "plan": plan,
        "seconds": [run["seconds"] for run in runs],
        "cpu_seconds": [run["cpu_seconds"] for run in runs],
        "cpu_parts": {part: round(median(run["cpu_parts"][part] for run in runs), 1) for part in runs[0]["cpu_parts"]},
        "tasks": {task: round(median(seconds), 2) for task, seconds in tasks.items()},
        "between_tasks": round(median(run["seconds"] - sum(run["tasks"].values()) for run in runs), 2),
        "task_seconds": tasks,
    }


def _check(folder: Path, feed: Feed, launcher: str) -> None:
    store = collection_store(str(folder / "root"), f"changes_{launcher}")
    found = fingerprint_of(as_of(store, StateLog(store, fresh_id).load().state))
    days = {"child": WARM_RUNS + 1, "resident": feed.days, "submit": 1}[launcher]  # over which it ran
    if found != feed.expected(days):
        raise AssertionError(f"{launcher}: the collection holds {found}, calculated were {feed.expected(days)}")
