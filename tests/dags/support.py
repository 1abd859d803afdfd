"""A small collection, and DAG files as Airflow parses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import shipped
from tests.support.airflow_home import HOME

PROJECT = Path(__file__).resolve().parents[2]

ORDERS = """\
name: orders
key: [id]
value: [status, amount]
columns: {id: int, status: string, amount: int, happened_at: timestamp}
start: 2024-01-01
end: 2024-01-04
time: arrival
event_time: {column: happened_at}
source: {path: "{{ landing }}/orders/{{ ds }}/*.csv", format: csv, envelope: append, ready: exists}
schedule: "@daily"
late: discard
quality:
  - expect_column_values_to_be_in_set: {column: status, value_set: [open, paid]}
"""
"""A small collection of three days."""


DAGS = shipped.copy_project(HOME / "shipped")
"""The DAG files that ship, beside the collections that do."""


def parsed(folder: Path = DAGS) -> Any:
    """The DAG files as Airflow parses them."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=folder)


def run_steps_here(monkeypatch: pytest.MonkeyPatch, *by_spark: str) -> None:
    """Let tasks run their steps in this process, in place of a child: all in Python but those `by_spark`."""
    from tidemark.airflow.small_work import SmallWork, Work
    from tidemark.jobs import app
    from tidemark.jobs.in_process_runner import InProcess

    def here(_: SmallWork, work: Work) -> dict[str, Any]:
        args = app.parser(work.step).parse_args(work.argv)
        job = app.open_job(args.root, args.collection, lambda: InProcess(job.store))
        spark = work.step in by_spark
        return app.run(work.step, args, (lambda: app.app_runner(work.step, args)) if spark else job.runner)

    monkeypatch.setenv("TIDEMARK_SPARK_WHEN", "always")  # no connection is asked for
    monkeypatch.setattr(SmallWork, "run", here)


def token(manager: Any, role: str = "user") -> str:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return str(manager.generate_jwt(SimpleAuthManagerUser(username="vera", role=role)))
