"""The FastAPI sub-app: GET only, and no route without authentication."""

from __future__ import annotations

import mimetypes
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.responses import HTMLResponse

from tidemark.airflow import settings
from tidemark.airflow.web.gates import docs_file, folder_of, gate_page
from tidemark.airflow.web.overview import describe, overview
from tidemark.airflow.web.page import collection_page, overview_page
from tidemark.model.collection import NAME

OURS = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
DATA_DOCS = "default-src 'self'; style-src 'self' 'unsafe-inline' https:; font-src https:; script-src 'none'"
"""Data Docs show values of source files, which anyone may have written: no script runs on a page of this origin. Their
styles come from elsewhere; without a way there they are plain, and readable."""

Entry = dict[str, Any]


def create_app() -> FastAPI:
    """The app, to be mounted at tidemark.airflow.links.PREFIX."""
    app = FastAPI(
        title="Tidemark",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(requires_access_view(AccessView.WEBSITE))],
    )
    app.get("/")(page)
    app.get("/collections.json")(collections)
    app.get("/collections/{dag_id}", dependencies=[Depends(requires_access_dag("GET"))])(collection)
    # What failed is shown row by row, as in the task's log: who may not read that may not read this.
    may_read_logs = [Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))]
    app.get("/gates/{dag_id}/{gate}", dependencies=may_read_logs)(gate_report)
    app.get("/docs/{dag_id}/{gate}/{path:path}", dependencies=may_read_logs)(data_docs)
    return app


def readable(user: GetUserDep) -> list[Entry]:
    """The collections whose DAG the user may read; a DAG is named as its collection."""
    manager = get_auth_manager()

    def may_read(name: str) -> bool:
        return bool(manager.is_authorized_dag(method="GET", details=DagDetails(id=name), user=user))

    return overview(settings.root(), may_read)


def page(entries: Annotated[list[Entry], Depends(readable)]) -> HTMLResponse:
    return _html(overview_page(settings.root(), entries))


def collections(entries: Annotated[list[Entry], Depends(readable)]) -> list[Entry]:
    return entries


def collection(dag_id: str) -> HTMLResponse:
    entry = describe(settings.root(), dag_id) if NAME.fullmatch(dag_id) else None
    return _html(collection_page(dag_id, entry))


def gate_report(dag_id: str, gate: str) -> HTMLResponse:
    if folder_of(dag_id, gate) is None:
        raise HTTPException(404, f"there is no gate {gate} of {dag_id}")
    return _html(gate_page(dag_id, gate))


def data_docs(dag_id: str, gate: str, path: str) -> Response:
    file = docs_file(dag_id, gate, path)
    if file is None:
        raise HTTPException(404, f"the data docs of gate {gate} of {dag_id} have no page {path}")
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return Response(file.read_bytes(), media_type=kind, headers=_headers(DATA_DOCS))


def _html(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers=_headers(OURS))


def _headers(policy: str) -> dict[str, str]:
    return {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
