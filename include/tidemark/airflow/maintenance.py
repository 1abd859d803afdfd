"""What a collection needs beside its steps: a collector of what nothing names, and an audit of what is there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TaskGroup
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.airflow.app_operator import AppOperator
from tidemark.airflow.collection_files import MAINTENANCE, right_collections
from tidemark.airflow.factory import OWNER
from tidemark.airflow.place import Place, place_of
from tidemark.airflow.steps import with_step_defaults
from tidemark.model.collection import Collection

MAINTENANCE_DOCS: Mapping[str, str] = {
    "collect": "Removes superseded versions, replaced batches and leftovers of killed attempts. Lists them in a plan "
    "first (`collect/<n>.json` in the collection's folder); a later run removes what has been listed for an hour "
    "(versions) or a day (objects) and is still named by nothing. Needs no Spark. Safe to run again, any time, also "
    "beside steps, readers and other collectors.",
    "audit": "Reads every row of every part and every object of late rows, and fails if anything is not what was "
    "recorded; the log names each object, batch and rule at fault. Nothing is changed: `tidemark verify COLLECTION "
    "--data` in a shell says the same. Where an object is lost or damaged, restore it from a copy of the store.",
}
"""The tasks of the maintenance DAG for each collection, with what a person finds in the UI beside them."""

_DOC = """\
# tidemark_maintenance

Daily housekeeping of every collection: {names}. A wrong collection file is left out.

| task | what it does |
|---|---|
{rows}

A collection that was never created is skipped. The tasks of one collection do not wait for those of another, nor for
any run of a collection's own DAG. `tidemark collect COLLECTION --dry-run` shows in a shell what the next run would do.
Superseded versions can be read for `TIDEMARK_KEEP_VERSIONS` (7d); at least as long an old read finds its objects.
"""


class MaintenanceOperator(AppOperator):
    """One app that works on a collection as a whole, without an interval. Skipped while there is no collection."""

    def __init__(self, *, place: Place, app: str, **kwargs: Any) -> None:
        self.place = place
        super().__init__(
            app=app, app_args=["--root", place.store_root, "--collection", place.name], **with_step_defaults(kwargs)
        )

    def execute(self, context: Any) -> Any:
        """Run the app; AirflowSkipException if the collection was never created."""
        if not self.place.job().log.newest_version():
            raise AirflowSkipException(
                f"there is no collection {self.place.name} yet; the first run of its DAG makes it"
            )
        return super().execute(context)


def maintenance_group(
    collection: str | Path | Collection | Place,
    *,
    group_id: str | None = None,
    root: str | None = None,
    **arguments: Any,
) -> TaskGroup:
    """The maintenance tasks of one collection as a group, for a DAG of one's own; `arguments` are the tasks'."""
    place = collection if isinstance(collection, Place) else place_of(collection, root=root)
    with TaskGroup(group_id or place.name) as group:
        for app, doc in MAINTENANCE_DOCS.items():
            MaintenanceOperator(task_id=app, place=place, app=app, doc_md=doc, **arguments)
    return group


def maintenance_dag(folder: str | Path | None = None, **dag_options: Any) -> dict[str, DAG]:
    """The DAG `tidemark_maintenance` for every right collection file of a folder (TIDEMARK_COLLECTIONS), by its id, for
    a DAG file's `globals()`; none where there are no collections. `dag_options` go before ours."""
    places = right_collections(folder)
    rows = "\n".join(f"| **{app}** | {doc} |" for app, doc in MAINTENANCE_DOCS.items())
    options: dict[str, Any] = {
        "description": "Housekeeping of every collection",
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "catchup": False,
        "max_active_runs": 1,
        # An audit reads everything: two at a time leave room for the steps.
        "max_active_tasks": 2,
        "tags": [OWNER, "maintenance"],
        "doc_md": _DOC.format(names=", ".join(f"`{place.name}`" for place in places), rows=rows),
        **dag_options,
    }
    if not places:
        return {}
    schedule = options.pop("schedule", "30 3 * * *")
    options["default_args"] = {"owner": OWNER, **(options.get("default_args") or {})}
    with DAG(MAINTENANCE, schedule=schedule, **options) as dag:
        for place in places:
            maintenance_group(place)
    return {dag.dag_id: dag}
