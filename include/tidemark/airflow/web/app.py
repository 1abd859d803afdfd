"""The FastAPI sub-app: GET only, and no route without authentication."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag, requires_access_view
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from tidemark.airflow.web import by_collection, by_root
from tidemark.airflow.web.overview import COLLECTIONS
from tidemark.airflow.web.permissions import requires_rows
from tidemark.airflow.web.policy import Protected

_DAG_ID = re.compile(r"[\w.-]{1,250}")
"""As Airflow allows."""


@dataclass(frozen=True)
class Route:
    """A page: what it shows, and to whom. `may` is what else Airflow's auth manager must allow, in words and as the
    dependency that asks it."""

    path: str
    shows: str
    answer: Callable[..., Any]
    may: str
    asks: Callable[..., Any] | None = None


def create_app() -> FastAPI:
    """The app, to be mounted at tidemark.airflow.links.PREFIX."""
    app = FastAPI(
        title="Tidemark",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(requires_access_view(AccessView.WEBSITE)), Depends(possible)],
    )
    for route in ROUTES:
        app.get(route.path, dependencies=[Depends(route.asks)] if route.asks else [])(route.answer)
    app.exception_handler(Exception)(broken)
    # The outermost of all: an error that nothing foresaw is answered outside of the app's own middlewares.
    built = app.build_middleware_stack
    app.build_middleware_stack = lambda: Protected(built())  # type: ignore[method-assign]
    return app


def broken(request: Request, error: Exception) -> JSONResponse:
    """An error of ours: its text may hold anything, and stays in the server's log."""
    return JSONResponse({"detail": "Internal error; the API server's log says which"}, 500)


def possible(request: Request) -> None:
    """Nobody is asked about what no DAG can be called: a database that is, answers with an error."""
    if not _DAG_ID.fullmatch(request.path_params.get("dag_id", "a")):
        raise HTTPException(404, "there is no such DAG")


_OF_READABLE = "nothing more; a collection is shown to who may read its DAG"
_OF_ROWS = "what TIDEMARK_ROWS_FOR says: to edit the DAG, unless it is set"
ROUTES = (
    Route(
        "/",
        f"The collections, with their frontiers, and what waits: {COLLECTIONS} of them by name, those `?after=NAME`; "
        "a table of them, by the column that `?sort=` names.",
        by_root.page,
        _OF_READABLE,
    ),
    Route(
        "/collections.json",
        'The same as JSON; the header `Link` with `rel="next"` names what comes after them.',
        by_root.collections,
        _OF_READABLE,
    ),
    Route(
        "/collections/{dag_id}",
        "One collection; the tab *Tidemark* of its DAG. Where load cuts batches, a button that cuts one now, through "
        "Airflow's API, with the permissions of whoever clicks.",
        by_collection.collection,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/about",
        "What it is: its columns, its key and its definition; to whom TIDEMARK_ROWS_FOR says, some of its rows.",
        by_collection.about,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/backfill",
        "What a backfill of the days `?from=` to `?to=` would read, and a button that starts it through Airflow's API, "
        "with the permissions of whoever clicks.",
        by_collection.backfill,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/report",
        "What came of the days `?from=` to `?to=`: files, rows, late, refused and corrected ones of each, and how far "
        "what is computed from them has followed.",
        by_collection.report,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/report.csv",
        "The same as a file.",
        by_collection.report_csv,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/history",
        "It over time: pictures of how far behind it was, of rows and of late rows, and its versions, a hundred on a "
        "page, those down from `?upto=`.",
        by_collection.history,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/calendar",
        "Its calendar: a cell for each interval that is over, 750 of them, those before `?upto=` (µs).",
        by_collection.calendar,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/intervals/{lower}",
        "The interval that begins at `lower` (µs): what came, what is to do, its versions and runs; to who may read "
        "the logs of the DAG's tasks, its files, too, with why they were refused.",
        by_collection.interval,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/intervals/{lower}/rows",
        "Rows of that interval: some of what it brought, and of what was learned about it since.",
        by_collection.interval_rows,
        _OF_ROWS,
        requires_rows,
    ),
    Route(
        "/collections/{dag_id}/windows",
        "Windows of a collection that is defined by them, as a picture and a table: of a key or all, the last ones or "
        "those of a time range. What is read for it is bounded, and read when the page is opened.",
        by_collection.windows,
        _OF_ROWS,
        requires_rows,
    ),
    Route(
        "/gates/{dag_id}/{gate}",
        "What a run of a gate found, to whom TIDEMARK_ROWS_FOR says with the failing rows; the button *Data docs* on "
        "the tab *Details* of its task.",
        by_root.gate_result,
        "to read the logs of the DAG's tasks",
        requires_access_dag("GET", DagAccessEntity.TASK_LOGS),
    ),
)
"""Everything but these pages is refused; each needs a login that may see Airflow's site (AccessView.WEBSITE)."""
