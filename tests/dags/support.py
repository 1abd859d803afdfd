"""A small collection, and DAG files as Airflow parses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def parsed(folder: Path = PROJECT / "dags") -> Any:
    """The DAG files as Airflow parses them."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=folder)
