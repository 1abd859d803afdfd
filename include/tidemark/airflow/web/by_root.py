"""The routes of all collections, and of gates' results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query, Response
from fastapi.responses import HTMLResponse

from tidemark.airflow import settings
from tidemark.airflow.location import no_data
from tidemark.airflow.on_time import overdue_seals
from tidemark.airflow.web.gates import Shown, gate_page
from tidemark.airflow.web.overview import Overview, overview
from tidemark.airflow.web.page import after_link, overview_page
from tidemark.airflow.web.permissions import MayRead, MaySeeLogs, MaySeeRows
from tidemark.airflow.web.responses import Text, html
from tidemark.errors import TidemarkError
from tidemark.jobs.app import open_job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import NAME, Gate
from tidemark.quality.results import Ran, ResultName, result_name, results_of
from tidemark.storage.stores.store import Indeterminate, Unavailable

Entry = dict[str, Any]


def readable(may_read: MayRead, logs: MaySeeLogs, after: Text = "") -> Overview:
    """Some of the collections that the user may read: the first whose names come after a text."""
    return overview(settings.root(), may_read, logs, after=after)


Readable = Annotated[Overview, Depends(readable)]


def page(found: Readable, after: Text = "", sort: Text = "") -> HTMLResponse:
    now = time.time_ns() // 1000
    overdue = {name: one.words(now) for name, one in overdue_seals(now).items()}
    entries = [_with_overdue(entry, overdue) for entry in found.entries]
    return html(overview_page(settings.root(), entries, after=after, more=found.more, now=now, sort=sort))


def _with_overdue(entry: Entry, overdue: Mapping[str, str]) -> Entry:
    """An entry, with what is overdue of it in words."""
    return entry | {"overdue": overdue.get(entry["collection"], "")}


def collections(found: Readable, response: Response) -> list[Entry]:
    if found.more:
        response.headers["Link"] = f'<collections.json{after_link(found.entries)}>; rel="next"'
    return found.entries


def gate_result(
    dag_id: str,
    gate: str,
    may_see: MaySeeRows,
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
    return html(gate_page(shown, _state(dag_id), rows=may_see(dag_id)))


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
