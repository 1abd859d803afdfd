"""What a collection's file says of all its tasks, as arguments of operators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidemark.airflow.location import Location
from tidemark.airflow.notify import FailureCallback


def task_arguments(location: Location) -> dict[str, Any]:
    """Owner, pool, retries, when Spark is asked, who hears of a failure; what the file does not say is left out."""
    said = location.airflow
    delay = None if said.retry_delay is None else timedelta(microseconds=said.retry_delay)
    arguments = {
        "owner": said.owner,
        "pool": said.pool,
        "retries": said.retries,
        "retry_delay": delay,
        "spark": said.spark,
    }
    return {name: value for name, value in arguments.items() if value is not None} | failure_arguments(location)


def failure_arguments(location: Location) -> dict[str, Any]:
    """Who is notified of a failed task; empty if nobody is."""
    return {"on_failure_callback": FailureCallback(location)} if location.airflow.notify.failure else {}
