"""The routes of one collection: its state, what it is, its intervals and its rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import HTTPException, Path, Query, Request, Response
from fastapi.responses import HTMLResponse

from tidemark.airflow import settings
from tidemark.airflow.collection_files import is_declared
from tidemark.airflow.links import BATCHES
from tidemark.airflow.on_time import overdue_seals
from tidemark.airflow.web.choice import LEAST, MOST, USUAL, Choice
from tidemark.airflow.web.cut import cut_runs_of, cut_section
from tidemark.airflow.web.one_at_a_time import Busy, OneAtATime
from tidemark.airflow.web.overview import describe
from tidemark.airflow.web.page import Page, absent_page, collection_page
from tidemark.airflow.web.permissions import MayRead, MaySeeLogs, MaySeeRows, MayStart
from tidemark.airflow.web.range import Range, range_of
from tidemark.airflow.web.recent import RecentPages
from tidemark.airflow.web.responses import LONGEST, Text, html
from tidemark.airflow.web.start import script
from tidemark.airflow.web.stuck import stuck, stuck_runs
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned, find
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.queries.locate import dropped_words
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
First = Annotated[str, Query(alias="from", max_length=LONGEST)]
Last = Annotated[str, Query(alias="to", max_length=LONGEST)]
T = TypeVar("T")


def collection(
    dag_id: str, request: Request, *, may_read: MayRead, logs: MaySeeLogs, may_see: MaySeeRows, may_start: MayStart
) -> HTMLResponse:
    # The DAG of a collection's batches shows the collection, to who may read that one's DAG.
    name = dag_id.removesuffix(BATCHES)
    shown = NAME.fullmatch(name) and (name == dag_id or may_read(name))
    framed = request.headers.get("Sec-Fetch-Dest") == "iframe"
    entry = describe(settings.root(), name, may_read, logs) if shown else None
    more = stuck(stuck_runs(dag_id))
    if entry is None:
        why = dropped_words(settings.root(), name) if shown else ""
        return html(absent_page(name, why, more, declared=bool(shown) and is_declared(name)))
    now = time.time_ns() // 1000
    entry["overdue"] = "".join(one.words(now) for one in overdue_seals(now, of=name).values())
    cut, run_by = None, ""
    if entry.get("by_load") and (runs := cut_runs_of(name)):
        may = may_start(f"{name}{BATCHES}")
        cut, run_by = cut_section(name, entry["by_load"], runs, may_start=may), script() if may else ""
    return html(collection_page(name, entry, more, framed=framed, rows=may_see(name), cut=cut, script=run_by))


async def about(dag_id: str, may_see: MaySeeRows) -> HTMLResponse:
    from tidemark.airflow.web.about import about_page

    rows = may_see(dag_id)
    return await _in_turn(dag_id, lambda pinned: about_page(OpenCollection(pinned), rows=rows))


async def backfill(dag_id: str, may_start: MayStart, first: First = "", last: Last = "") -> HTMLResponse:
    return await _read(partial(_backfill, dag_id, first, last, may_start=may_start(dag_id)))


def _backfill(dag_id: str, first: str, last: str, *, may_start: bool) -> HTMLResponse:
    from tidemark.airflow.web.backfill import backfill_page, refused_page
    from tidemark.airflow.web.subject import runs_of, subject_of

    def answer(found: Pinned | None) -> HTMLResponse:
        if (of := subject_of(dag_id, found)) is None:
            raise HTTPException(404, "there is no collection of this name, and no file that declares it")
        now = time.time_ns() // 1000
        try:
            return html(backfill_page(of, range_of(first, last), now, runs_of(dag_id), may_start=may_start))
        except InvalidUsage as error:
            return html(refused_page(of, str(error)), status=422)

    return _of(dag_id, answer)


def report(dag_id: str, may_read: MayRead, first: First, last: Last) -> HTMLResponse:
    from tidemark.airflow.web.backfill import nothing_yet_page, report_page

    def page(found: Pinned | None) -> Page:
        if found is None and is_declared(dag_id):
            return nothing_yet_page(dag_id)
        return report_page(_there(found), _range(first, last), time.time_ns() // 1000, may_read)

    return html(_of(dag_id, page))


def report_csv(dag_id: str, first: First, last: Last) -> Response:
    from tidemark.airflow.web.backfill import report_file

    now = time.time_ns() // 1000
    text = _of(dag_id, lambda found: report_file(_there(found), _range(first, last), now))
    return Response(text, media_type="text/csv")


def _range(first: str, last: str) -> Range:
    if (found := range_of(first, last)) is None:
        raise InvalidUsage("of which days? ?from=2013-01-01&to=2013-01-31")
    return found


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
    """A page of rows."""
    return await _read(partial(_page_of, name, page, wrong=wrong))


async def _read(answer: Callable[[], HTMLResponse]) -> HTMLResponse:
    """An answer that is read for, once those are that others asked for before."""
    try:
        return await READING.run(answer)
    except Busy:
        retry = {"Retry-After": str(RETRY_AFTER)}
        detail = f"rows are being read for {1 + WAITING} other requests; load the page again in some seconds"
        raise HTTPException(503, detail, retry) from None


def _page_of(name: str, page: Callable[[Pinned], Page], *, wrong: int = 422) -> HTMLResponse:
    """A page of a collection that is there."""
    return html(_of(name, lambda found: page(_there(found)), wrong=wrong))


def _there(found: Pinned | None) -> Pinned:
    if found is None:
        raise HTTPException(404, "there is no collection of this name")
    return found


def _of(name: str, answer: Callable[[Pinned | None], T], *, wrong: int = 422) -> T:
    """What is made of the collection `name` (None: there is none). `wrong` is the status where a request does not fit
    it."""
    try:
        return answer(find(settings.root(), name) if NAME.fullmatch(name) else None)
    except InvalidUsage as error:
        raise HTTPException(wrong, str(error)) from None
    except (TidemarkError, Unavailable, Indeterminate) as error:
        raise HTTPException(503, f"the collection cannot be read: {error}") from None
