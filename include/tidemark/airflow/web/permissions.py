"""Who may see what of a collection on the pages: Airflow's auth manager says, asked about the collection's DAG.

Counts, times and names of columns are for who may read the DAG. What a task's log shows anyway, such as files with why
they were refused, is for who may read the logs of its tasks. Rows, which are read from the collection for a page, may
be personal data: TIDEMARK_ROWS_FOR says for whom they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Depends, HTTPException

from tidemark.airflow import settings

Ask = Callable[[str], bool]
"""Whether the user may see something of a collection, by its name."""

_METHOD: dict[settings.RowsFor, ResourceMethod] = {
    settings.RowsFor.READERS: "GET",
    settings.RowsFor.EDITORS: "PUT",
}
"""What must be allowed with the DAG for its collection's rows to be seen."""


def reader(user: GetUserDep) -> Ask:
    """Whether the user may read a collection: its DAG, which is named as it is."""
    return _allowed(user, "GET")


def reader_of_logs(user: GetUserDep) -> Ask:
    """Whether the user may read the logs of the tasks of a collection's DAG."""
    return _allowed(user, "GET", DagAccessEntity.TASK_LOGS)


def reader_of_rows(user: GetUserDep) -> Ask:
    """Whether the user may see rows of a collection, as TIDEMARK_ROWS_FOR says."""
    method = _METHOD.get(settings.rows_for())
    return (lambda _: False) if method is None else _allowed(user, method)


def starter(user: GetUserDep) -> Ask:
    """Whether the user may run a collection's DAG. Airflow's API asks that once more when they do."""
    return _allowed(user, "POST", DagAccessEntity.RUN)


def _allowed(user: GetUserDep, method: ResourceMethod, entity: DagAccessEntity | None = None) -> Ask:
    manager = get_auth_manager()

    def allowed(name: str) -> bool:
        details = DagDetails(id=name)
        return bool(manager.is_authorized_dag(method=method, access_entity=entity, details=details, user=user))

    return allowed


MayStart = Annotated[Ask, Depends(starter)]
MayRead = Annotated[Ask, Depends(reader)]
MaySeeLogs = Annotated[Ask, Depends(reader_of_logs)]
MaySeeRows = Annotated[Ask, Depends(reader_of_rows)]


def requires_rows(dag_id: str, may_see: MaySeeRows) -> None:
    """A page of rows is refused to whom they are not shown."""
    if not may_see(dag_id):
        raise HTTPException(403, f"rows of {dag_id} are {settings.rows_for().words} (TIDEMARK_ROWS_FOR)")
