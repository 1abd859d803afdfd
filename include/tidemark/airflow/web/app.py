"""The FastAPI sub-app: GET only, and no route without authentication."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from tidemark.airflow import settings
from tidemark.airflow.links import BATCHES
from tidemark.airflow.location import no_data
from tidemark.airflow.web.choice import LEAST, MOST, USUAL, Choice
from tidemark.airflow.web.gates import Shown, gate_page
from tidemark.airflow.web.one_at_a_time import Busy, OneAtATime
from tidemark.airflow.web.overview import COLLECTIONS, Overview, describe, overview
from tidemark.airflow.web.page import Page, after_link, collection_page, overview_page
from tidemark.airflow.web.policy import Protected
from tidemark.airflow.web.recent import RecentPages
from tidemark.airflow.web.stuck import stuck, stuck_runs
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned, find
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.app import open_job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import NAME, Collection, Gate
from tidemark.quality.results import Ran, ResultName, result_name, results_of
from tidemark.storage.stores.store import Indeterminate, Unavailable

LONGEST = 500
"""Characters of a run's or a task's id: Airflow allows 250."""

WAITING = 3
"""Requests for windows that wait while one is drawn, each for about a second; more are refused at once."""
RETRY_AFTER = 5
"""Seconds after which one that was refused is worth another try: then those that waited have been answered."""
DRAWING = OneAtATime(WAITING)
"""Windows are read and drawn for one request at a time: the same process serves all of Airflow's pages."""
PAGES = RecentPages(most=32)
"""Each has at most 500 windows: some 200 kB."""

_DAG_ID = re.compile(r"[\w.-]{1,250}")
"""As Airflow allows."""

Entry = dict[str, Any]
Text = Annotated[str, Query(max_length=LONGEST)]


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


def reader(user: GetUserDep) -> Callable[[str], bool]:
    """Whether the user may read a collection: its DAG, which is named as it is."""
    manager = get_auth_manager()

    def may_read(name: str) -> bool:
        return bool(manager.is_authorized_dag(method="GET", details=DagDetails(id=name), user=user))

    return may_read


def reader_of_rows(user: GetUserDep) -> Callable[[str], bool]:
    """Whether the user may see a collection's rows: the logs of its DAG, which show some."""
    manager = get_auth_manager()

    def may_see(name: str) -> bool:
        asked = DagDetails(id=name)
        return bool(
            manager.is_authorized_dag(method="GET", access_entity=DagAccessEntity.TASK_LOGS, details=asked, user=user)
        )

    return may_see


MaySee = Annotated[Callable[[str], bool], Depends(reader_of_rows)]
MayRead = Annotated[Callable[[str], bool], Depends(reader)]


def readable(may_read: MayRead, after: Text = "") -> Overview:
    """Some of the collections that the user may read: the first whose names come after a text."""
    return overview(settings.root(), may_read, after=after)


Readable = Annotated[Overview, Depends(readable)]


def page(found: Readable, after: Text = "", sort: Text = "") -> HTMLResponse:
    now = time.time_ns() // 1000
    return _html(overview_page(settings.root(), found.entries, after=after, more=found.more, now=now, sort=sort))


def collections(found: Readable, response: Response) -> list[Entry]:
    if found.more:
        response.headers["Link"] = f'<collections.json{after_link(found.entries)}>; rel="next"'
    return found.entries


def collection(dag_id: str, may_read: MayRead, may_see: MaySee, request: Request) -> HTMLResponse:
    # The DAG of a collection's batches shows the collection, to who may read that one's DAG.
    name = dag_id.removesuffix(BATCHES)
    shown = NAME.fullmatch(name) and (name == dag_id or may_read(name))
    framed = request.headers.get("Sec-Fetch-Dest") == "iframe"
    entry = describe(settings.root(), name, may_read) if shown else None
    more = stuck(stuck_runs(dag_id))
    return _html(collection_page(name, entry, more, framed=framed, rows=may_see(name)))


async def windows(
    dag_id: str,
    value: Text = "",
    key: Text = "",
    last: int = USUAL,
    lower: Annotated[int | None, Query(alias="from", ge=LEAST, le=MOST)] = None,
    upper: Annotated[int | None, Query(alias="to", ge=LEAST, le=MOST)] = None,
    above: Text = "",
    below: Text = "",
) -> HTMLResponse:
    """Some windows of a collection that is defined by them, chosen by links on the page."""
    choice = Choice(value, key, last, lower, upper, above, below)
    try:
        return await DRAWING.run(partial(_windows, dag_id, choice))
    except Busy:
        retry = {"Retry-After": str(RETRY_AFTER)}
        detail = f"windows are being drawn for {1 + WAITING} other requests; load the page again in some seconds"
        raise HTTPException(503, detail, retry) from None


def _windows(dag_id: str, choice: Choice) -> HTMLResponse:
    from tidemark.airflow.web.windows import windows_page  # with Arrow, which other pages do without

    try:
        pinned = find(settings.root(), dag_id) if NAME.fullmatch(dag_id) else None
        if pinned is None or not _is_of_windows(pinned.state.collection):
            raise HTTPException(404, "there is no collection of this name that is defined by windows")
        return _html(PAGES.page(pinned, choice, lambda: windows_page(OpenCollection(pinned), choice)))
    except InvalidUsage as error:
        raise HTTPException(422, str(error)) from None
    except (TidemarkError, Unavailable, Indeterminate) as error:
        raise HTTPException(503, f"the windows cannot be read: {error}") from None


def calendar(dag_id: str, upto: Annotated[int | None, Query(ge=LEAST, le=MOST)] = None) -> HTMLResponse:
    from tidemark.airflow.web.intervals import calendar_of

    return _by_interval(dag_id, lambda pinned: calendar_of(pinned, time.time_ns() // 1000, upto))


def interval(dag_id: str, lower: Annotated[int, Path(ge=0, le=MOST)], may_see: MaySee) -> HTMLResponse:
    from tidemark.airflow.web.intervals import interval_of

    return _by_interval(dag_id, lambda pinned: interval_of(pinned, lower, rows=may_see(dag_id)))


def _by_interval(name: str, page: Callable[[Pinned], Page]) -> HTMLResponse:
    """A page of a collection that lands, by its intervals."""
    try:
        pinned = find(settings.root(), name) if NAME.fullmatch(name) else None
        if pinned is None or pinned.state.collection.is_derived:
            raise HTTPException(404, "there is no collection of this name whose rows land")
        return _html(page(pinned))
    except InvalidUsage as error:
        raise HTTPException(404, str(error)) from None
    except (TidemarkError, Unavailable, Indeterminate) as error:
        raise HTTPException(503, f"the collection cannot be read: {error}") from None


def _is_of_windows(of: Collection) -> bool:
    return of.is_derived and of.derived.definition.windows is not None


def gate_result(
    dag_id: str,
    gate: str,
    run: Text = "",
    task: Text = "",
    index: int = -1,
    attempt: Annotated[int, Query(alias="try")] = 0,
    result: Text = "",
) -> HTMLResponse:
    """One run's result by its name (`result`) or by the task instance that ran it; without either the newest."""
    if not NAME.fullmatch(dag_id) or gate not in list(Gate):
        raise HTTPException(404, "there is no such gate")
    chosen = result_name(result)
    if result and chosen is None:
        raise HTTPException(404, "there is no such result")
    try:
        shown = _shown(dag_id, gate, Ran("", run, task, index, attempt) if run else None, chosen)
    except (TidemarkError, Unavailable, Indeterminate) as error:
        raise HTTPException(503, f"the gate's results cannot be read: {error}") from None
    return _html(gate_page(shown, _state(dag_id)))


_OF_READABLE = "nothing more; a collection is shown to who may read its DAG"
ROUTES = (
    Route(
        "/",
        f"The collections, with their frontiers, and what waits: {COLLECTIONS} of them by name, those `?after=NAME`; "
        "a table of them, by the column that `?sort=` names.",
        page,
        _OF_READABLE,
    ),
    Route(
        "/collections.json",
        'The same as JSON; the header `Link` with `rel="next"` names what comes after them.',
        collections,
        _OF_READABLE,
    ),
    Route(
        "/collections/{dag_id}",
        "One collection; the tab *Tidemark* of its DAG.",
        collection,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/calendar",
        "Its calendar: a cell for each interval that is over, 750 of them, those before `?upto=` (µs).",
        calendar,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    Route(
        "/collections/{dag_id}/intervals/{lower}",
        "The interval that begins at `lower` (µs): what came, what is to do, its versions and runs; to who may read "
        "the logs of the DAG's tasks, its files, too, with why they were refused.",
        interval,
        "to read the DAG",
        requires_access_dag("GET"),
    ),
    # What failed is shown row by row, as in the task's log: who may not read that may not read this. Nor the rows that
    # are windows.
    Route(
        "/collections/{dag_id}/windows",
        "Windows of a collection that is defined by them, as a picture and a table: of a key or all, the last ones or "
        "those of a stretch of time. What is read for it is bounded, and read when the page is opened.",
        windows,
        "to read the logs of the DAG's tasks",
        requires_access_dag("GET", DagAccessEntity.TASK_LOGS),
    ),
    Route(
        "/gates/{dag_id}/{gate}",
        "What a run of a gate found, failing rows too; the button *Data docs* on the tab *Details* of its task.",
        gate_result,
        "to read the logs of the DAG's tasks",
        requires_access_dag("GET", DagAccessEntity.TASK_LOGS),
    ),
)
"""Everything but these pages is refused; each needs a login that may see Airflow's site (AccessView.WEBSITE)."""


def _shown(collection: str, gate: str, asked: Ran | None, chosen: ResultName | None) -> Shown:
    results = results_of(settings.root())
    names = list(results.names(collection, gate)) if results else []
    if asked:
        chosen = next((name for name in names if name.digest == asked.digest), None)
    elif chosen is None:
        chosen = names[0] if names else None
    document = results.load(collection, gate, chosen) if results and chosen else None
    said = f"try {asked.try_number} of task {asked.task_id} in run {asked.run_id}" if asked else ""
    return Shown(collection, gate, names, chosen, document, said or ("this run" if chosen else ""))


def _state(name: str) -> Arrangement | None:
    try:
        return open_job(settings.root(), name, no_data).log.load().arrangement
    except (TidemarkError, Unavailable, Indeterminate):
        return None


def _html(page: Page) -> HTMLResponse:
    return HTMLResponse(page.html, headers={"Content-Security-Policy": page.policy})
