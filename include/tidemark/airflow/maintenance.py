"""What a collection needs beside its steps: a collector of what nothing names, and an audit of what is there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, TaskGroup
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark.airflow.collection_files import MAINTENANCE, OVERDUE, right_collections
from tidemark.airflow.factory import OWNER
from tidemark.airflow.gauges import send_gauges
from tidemark.airflow.location import Location, location_of, no_data
from tidemark.airflow.on_time import ON_TIME_DOC, OnTimeOperator
from tidemark.airflow.steps import StepOperator, for_each, task_failure, with_step_defaults
from tidemark.airflow.task_arguments import failure_arguments
from tidemark.errors import TidemarkError
from tidemark.jobs.steps.declared import step_of, steps_of
from tidemark.jobs.steps.step import When
from tidemark.model.collection import Collection

_DOC = """\
# tidemark_maintenance

Daily housekeeping of every collection: {names}. A wrong collection file is left out.

| task | what it does |
|---|---|
| **on_time** | {on_time} |
| **collect_dropped** | {dropped} |
{rows}

A collection that was never created is skipped. The tasks of one collection do not wait for those of another, nor for
any run of a collection's own DAG. `tidemark collect COLLECTION --dry-run` shows in a shell what the next run would do.
Superseded versions can be read for `TIDEMARK_KEEP_VERSIONS` (7d); at least as long an old read finds its objects.
"""

_DROPPED_DOC = (
    "Removes what dropped collections were made of, once it has been listed for the graces of `collect`; until then "
    "`tidemark drop COLLECTION --undo` brings one back."
)

OVERDUE_SCHEDULE = "*/15 * * * *"


class MaintenanceOperator(StepOperator):
    """One step that works on a collection as a whole, without an interval: `app` is its name, `collect` or `audit`, and
    what it takes is an argument. Skipped while there is no collection."""

    def __init__(self, *, collection: str | Path | Collection | Location, app: str, **kwargs: Any) -> None:
        super().__init__(location=location_of(collection), step=app, **kwargs)

    def execute(self, context: Any) -> Any:
        """Run the app; AirflowSkipException if the collection was never created."""
        job = self.location.job()
        if not job.log.exists():
            raise AirflowSkipException(
                f"there is no collection {self.location.name} yet; the first run of its DAG makes it"
            )
        try:
            send_gauges(job.log.load().state, time.time_ns() // 1000)
        except TidemarkError as error:
            raise task_failure(error) from None
        return super().execute(context)


class CollectDroppedOperator(BaseOperator):
    """Collects what dropped collections were made of: no file declares these any more. Metadata only."""

    def __init__(self, *, collections: Sequence[Location], task_id: str = "collect_dropped", **kwargs: Any) -> None:
        super().__init__(task_id=task_id, **with_step_defaults({"doc_md": _DROPPED_DOC, **kwargs}))
        self.locations = list(collections)

    def execute(self, context: Any) -> dict[str, Any]:
        """What each collector did, by name; AirflowFailException, with a line for each, where one failed."""
        from tidemark.jobs.app import open_job
        from tidemark.jobs.queries.locate import dropped

        done, wrong = {}, []
        for root in sorted({location.store_root for location in self.locations}):
            for name in dropped(root):
                step = step_of("collect")
                arguments = {argument.name: argument.initial() for argument in step.arguments}
                try:
                    done[name] = step.function(open_job(root, name, no_data), **step.values(arguments))
                except TidemarkError as error:
                    wrong.append(f"{name}: {error.kind}: {error}")
        if wrong:
            raise AirflowFailException("; ".join(wrong))
        return done


def maintenance_group(
    collection: str | Path | Collection | Location,
    *,
    group_id: str | None = None,
    root: str | None = None,
    **arguments: Any,
) -> TaskGroup:
    """The maintenance tasks of one collection as a group, for a DAG of one's own; `arguments` are the tasks', and those
    their steps declare (`keep_versions`)."""
    location = location_of(collection, root=root)
    with TaskGroup(group_id or location.name) as group:
        for step, own in for_each(steps_of(When.MAINTENANCE), arguments):
            taken = {**failure_arguments(location), **own}
            MaintenanceOperator(task_id=step.name, collection=location, app=step.name, doc_md=step.docs, **taken)
    return group


def maintenance_dag(folder: str | Path | None = None, **dag_options: Any) -> dict[str, DAG]:
    """The DAG `tidemark_maintenance` for every right collection file of a folder (TIDEMARK_COLLECTIONS), by its id, for
    a DAG file's `globals()`; none where there are no collections. `dag_options` go before ours."""
    locations = right_collections(folder)
    rows = "\n".join(f"| **{step.name}** | {step.docs} |" for step in steps_of(When.MAINTENANCE))
    options: dict[str, Any] = {
        "description": "Housekeeping of every collection",
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "catchup": False,
        "max_active_runs": 1,
        # An audit reads everything: two at a time leave room for the steps.
        "max_active_tasks": 2,
        "tags": [OWNER, "maintenance"],
        "doc_md": _DOC.format(
            names=", ".join(f"`{one.name}`" for one in locations), rows=rows, on_time=ON_TIME_DOC, dropped=_DROPPED_DOC
        ),
        **dag_options,
    }
    if not locations:
        return {}
    schedule = options.pop("schedule", "30 3 * * *")
    options["default_args"] = {"owner": OWNER, **(options.get("default_args") or {})}
    with DAG(MAINTENANCE, schedule=schedule, **options) as dag:
        OnTimeOperator(collections=locations)
        CollectDroppedOperator(collections=locations)
        for location in locations:
            maintenance_group(location)
    return {dag.dag_id: dag, **_overdue_dag(locations)}


def _overdue_dag(locations: Sequence[Location]) -> dict[str, DAG]:
    """The DAG that is red while something is overdue; none where no collection says what that is."""
    declaring = [location for location in locations if location.airflow.overdue is not None]
    if not declaring:
        return {}
    names = ", ".join(f"`{location.name}`" for location in declaring)
    with DAG(
        OVERDUE,
        schedule=OVERDUE_SCHEDULE,
        description="Red while an interval is overdue",
        doc_md=f"# {OVERDUE}\n\nLooks every 15 minutes at {names}. {ON_TIME_DOC}\n",
        start_date=datetime(2024, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=[OWNER, "maintenance"],
        default_args={"owner": OWNER},
        # Whoever wrote `overdue` into a file wants to hear of it.
        is_paused_upon_creation=False,
    ) as dag:
        OnTimeOperator(collections=declaring, runs=False, retries=1)
    return {dag.dag_id: dag}
