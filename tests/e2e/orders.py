"""A small collection of orders on a running Airflow, and what it holds."""

from __future__ import annotations

from typing import Any

from tests.e2e.instance import Airflow
from tests.support.reading import as_of
from tidemark.jobs.job import Job, fresh_id
from tidemark.jobs.queries.verify import verify
from tidemark.model.instant import format_instant

ORDERS = """\
name: {name}
key: [id]
value: [amount]
columns: {{id: int, amount: int, at: timestamp}}
start: {start}
end: {end}
time: {{column: at}}
source: {{path: "{{{{ landing }}}}/{name}/{{{{ ds }}}}/*.csv", format: csv, envelope: upsert}}
quality:
  - expect_column_values_to_be_between: {{column: amount, min_value: 0}}
"""
HEADER = ("id", "amount", "at")


def orders(name: str, start: str, end: str) -> str:
    return ORDERS.format(name=name, start=start, end=end)


def amounts(airflow: Airflow, name: str) -> dict[int, int]:
    """The newest complete answer of an orders collection: amount by id."""
    table = as_of(airflow.store(name), airflow.log(name).load().state)
    assert set(table["_multiplicity"].to_pylist()) <= {1}
    return dict(zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True))


def seal_of(airflow: Airflow, name: str) -> str:
    return format_instant(airflow.log(name).load().state.seal)


def sound(airflow: Airflow, name: str) -> bool:
    log = airflow.log(name)

    def no_runner() -> Any:
        raise AssertionError("only metadata is read")

    report = verify(Job(airflow.store(name), log, no_runner, fresh_id()))
    return report.sound
