"""The routes of one collection: where it stands, what it is, its intervals and its rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse

from tidemark.airflow import settings
from tidemark.airflow.links import BATCHES
from tidemark.airflow.web.choice import LEAST, MOST, USUAL, Choice
from tidemark.airflow.web.one_at_a_time import Busy, OneAtATime
from tidemark.airflow.web.overview import describe
from tidemark.airflow.web.page import Page, collection_page
from tidemark.airflow.web.permissions import MayRead, MaySeeLogs, MaySeeRows
from tidemark.airflow.web.recent import RecentPages
from tidemark.airflow.web.responses import Text, html
from tidemark.airflow.web.stuck import stuck, stuck_runs
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned, find
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.model.collection import NAME, Collection
from tidemark.storage.stores.store import Indeterminate, Unavailable

WAITING = 3
"""Requests for rows that wait while those of one are read, each for about a second; more are refused at once."""
RETRY_AFTER = 5
"""Seconds after which one that was refused is worth another try: then those that waited have been answered."""
READING = OneAtATime(WAITING)
"""Rows are read and drawn for one request at a time: the same process serves all of Airflow's pages."""
PAGES = RecentPages(most=32)
"""Pages of windows; each has at most 500 of them: some 200 kB."""

Lower = Annotated[int, Path(ge=0, le=MOST)]


def collection(dag_id: str, may_read: MayRead, may_see: MaySeeRows, request: Request) -> HTMLResponse:
    # The DAG of a collection's batches shows the collection, to who may read that one's DAG.
    name = dag_id.removesuffix(BATCHES)
    shown = NAME.fullmatch(name) and (name == dag_id or may_read(name))
    framed = request.headers.get("Sec-Fetch-Dest") == "iframe"
    entry = describe(settings.root(), name, may_read) if shown else None
    more = stuck(stuck_runs(dag_id))
    return html(collection_page(name, entry, more, framed=framed, rows=may_see(name)))


async def about(dag_id: str, may_see: MaySeeRows) -> HTMLResponse:
    from tidemark.airflow.web.about import about_page

    rows = may_see(dag_id)
    return await _in_turn(dag_id, lambda pinned: about_page(OpenCollection(pinned), rows=rows))


def history(dag_id: str, upto: Annotated[int | None, Query(ge=1, le=MOST)] = None) -> HTMLResponse:
    from tidemark.airflow.web.over_time import history_page

    return _page_of(dag_id, lambda pinned: history_page(pinned, time.time_ns() // 1000, upto))


def calendar(dag_id: str, upto: Annotated[int | None, Query(ge=LEAST, le=MOST)] = None) -> HTMLResponse:
    from tidemark.airflow.web.intervals import calendar_of

    return _page_of(dag_id, lambda pinned: calendar_of(pinned, time.time_ns() // 1000, upto))


def interval(dag_id: str, lower: Lower, logs: MaySeeLogs, rows: MaySeeRows) -> HTMLResponse:
    from tidemark.airflow.web.intervals import interval_of

    see = {"logs": logs(dag_id), "rows": rows(dag_id)}
    return _page_of(dag_id, lambda pinned: interval_of(pinned, lower, **see), wrong=404)


async def interval_rows(dag_id: str, lower: Lower) -> HTMLResponse:
    from tidemark.airflow.web.intervals import rows_of

    return await _in_turn(dag_id, lambda pinned: rows_of(pinned, lower), wrong=404)


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
    return await _in_turn(dag_id, lambda pinned: _windows(pinned, choice))


def _windows(pinned: Pinned, choice: Choice) -> Page:
    from tidemark.airflow.web.windows import windows_page  # with Arrow, which other pages do without

    if not _is_of_windows(pinned.state.collection):
        raise HTTPException(404, f"{pinned.name} is not defined by windows")
    return PAGES.page(pinned, choice, lambda: windows_page(OpenCollection(pinned), choice))


def _is_of_windows(of: Collection) -> bool:
    return of.is_derived and of.derived.definition.windows is not None


async def _in_turn(name: str, page: Callable[[Pinned], Page], *, wrong: int = 422) -> HTMLResponse:
    """A page of rows, which waits for those that others asked for before."""
    try:
        return await READING.run(partial(_page_of, name, page, wrong=wrong))
    except Busy:
        retry = {"Retry-After": str(RETRY_AFTER)}
        detail = f"rows are being read for {1 + WAITING} other requests; load the page again in some seconds"
        raise HTTPException(503, detail, retry) from None


def _page_of(name: str, page: Callable[[Pinned], Page], *, wrong: int = 422) -> HTMLResponse:
    """A page of a collection that is there; `wrong` is the status of an answer to a request that fits it not."""
    try:
        pinned = find(settings.root(), name) if NAME.fullmatch(name) else None
        if pinned is None:
            raise HTTPException(404, "there is no collection of this name")
        return html(page(pinned))
    except InvalidUsage as error:
        raise HTTPException(wrong, str(error)) from None
    except (TidemarkError, Unavailable, Indeterminate) as error:
        raise HTTPException(503, f"the collection cannot be read: {error}") from None
