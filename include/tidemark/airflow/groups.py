"""Task groups for a DAG of one's own: each is a step's app and the gate behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup

from tidemark.airflow.location import location_of
from tidemark.airflow.step_tasks import step_and_gate
from tidemark.model.collection import Collection


def step_group(
    step: str,
    collection: str | Path | Collection,
    *,
    group_id: str | None = None,
    root: str | None = None,
    landing: str | None = None,
    **arguments: Any,
) -> TaskGroup:
    """Any step of a run, by name, and the gate behind it. Options as `ingest_group`, and the arguments the step
    declares. InvalidUsage if there is no such step."""
    location = location_of(collection, root=root, landing=landing)
    with TaskGroup(group_id or step) as group:
        step_and_gate(location, step, **arguments)
    return group


def ingest_group(collection: str | Path | Collection, **options: Any) -> TaskGroup:
    """`ingest >> gate_unsealed`: the interval's files as one unsealed batch.

    Option of this group: `ready_within`, how long after an interval's end its files are waited for (timedelta). Options
    of all four groups: `group_id`; `root` and `landing` in place of the deployment's; `asks`, `response_timeout` and
    `notifiers` of the gate, as `tidemark_dag`; the rest are arguments of both tasks (retries, pool,
    launcher, …). Groups chain with `>>` in the order ingest, seal, drain, compact.
    """
    return step_group("ingest", collection, **options)


def seal_group(collection: str | Path | Collection, **options: Any) -> TaskGroup:
    """`seal >> gate_frontier`: updates below the interval's end are complete. Options as `ingest_group`."""
    return step_group("seal", collection, **options)


def drain_group(collection: str | Path | Collection, **options: Any) -> TaskGroup:
    """`drain >> gate_trace`: what is sealed moves into the trace. Options as `ingest_group`."""
    return step_group("drain", collection, **options)


def compact_group(collection: str | Path | Collection, **options: Any) -> TaskGroup:
    """`compact >> gate_compaction`: neighbouring trace batches merge. Options as `ingest_group`."""
    return step_group("compact", collection, **options)
