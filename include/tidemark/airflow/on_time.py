"""Whether collections are sealed in time, and whether their runs began: what no run can report that never starts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, DagRunState
from airflow.sdk.exceptions import AirflowFailException

from tidemark.airflow.asset import asset_of
from tidemark.airflow.gauges import send
from tidemark.airflow.location import Location, location_of, state_of
from tidemark.airflow.notify import notice_of_overdue, notify
from tidemark.airflow.other_runs import with_runs
from tidemark.airflow.parsing import collections_folder
from tidemark.airflow.steps import with_step_defaults
from tidemark.config.folder import files_of
from tidemark.config.schedule import MOST_INTERVALS, Schedule
from tidemark.errors import InvalidUsage, TidemarkError, listed
from tidemark.jobs.queries.overdue import Overdue, overdue
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval

STARTED_WITHIN = timedelta(hours=1)
"""How long after its interval's end a run may begin: a scheduler that was restarted needs minutes."""
MOST_NAMED = 5
"""Intervals of a collection that a message names."""
NOTIFIED = "tidemark_overdue"
"""Under which an asset's state store remembers the overdue interval that people were notified of."""
ON_TIME_DOC = (
    "Fails while an interval of a collection has no run although it is over, or is unsealed for longer than `overdue` "
    "in its file says; names the collection and the interval. Green again once that is mended."
)


def overdue_seals(
    now: int, *, folder: str | Path | None = None, root: str | None = None, of: str | None = None
) -> dict[str, Overdue]:
    """What is overdue at `now` (µs) of the collections whose files (TIDEMARK_COLLECTIONS) declare `overdue`, by name;
    `of` asks for one collection only. For pages: files that do not say `overdue` are not parsed, and what cannot be
    read is left out."""
    found = {}
    for location in _declaring(folder, root):
        if of is not None and location.name != of:
            continue
        try:
            late = overdue_seal(location, now)
        except TidemarkError:
            continue
        if late is not None:
            found[location.name] = late
    return found


def overdue_seal(location: Location, now: int) -> Overdue | None:
    """What is overdue of one collection at `now` (µs); None if nothing is, and where its file declares no `overdue`.
    Reads its newest state, and of a derived collection those of its inputs. Raises TidemarkError where these cannot be
    read."""
    after = location.airflow.overdue
    if after is None:
        return None
    state = state_of(location.store_root, location.name)
    declared = [location.collection] if location.derived is None else _landed_below(location)
    return overdue(location.name, state.complete_below if state else 0, declared, after=after, now=now)


def _declaring(folder: str | Path | None, root: str | None) -> list[Location]:
    """The collections of a folder whose files say `overdue`."""
    try:
        files = files_of(collections_folder(folder))
    except InvalidUsage:
        return []
    found = (_location(file, root) for file in files)
    return [one for one in found if one is not None and one.airflow.overdue is not None]


_Parsed = tuple[tuple[int, int], Location | None]
_PARSED: dict[tuple[str, str | None], _Parsed] = {}
"""What files declare, by path and root, and when and how long they were: a page asks every few seconds, and parsing one
takes 15 ms."""
_MOST_PARSED = 1_000


def _location(file: Path, root: str | None) -> Location | None:
    """The collection of a file that says `overdue`; None for others, and for a wrong one, which
    `check_collection_files` reports."""
    from tidemark.config.text import text_of

    key = str(file), root
    try:
        stat = file.stat()
        stamp = stat.st_mtime_ns, stat.st_size
        if key in _PARSED and _PARSED[key][0] == stamp:
            return _PARSED[key][1]
        location = location_of(file, root=root) if "overdue" in text_of(file) else None
    except Exception:
        return None
    if len(_PARSED) >= _MOST_PARSED:
        _PARSED.clear()
    _PARSED[key] = stamp, location
    return location


def _landed_below(location: Location) -> list[Collection]:
    """The landed collections that a derived one is computed from, as they are stored."""
    found: dict[str, Collection] = {}
    seen, ahead = {location.name}, list(location.derived.inputs if location.derived else ())
    while ahead:
        name = ahead.pop()
        if name in seen:
            continue
        seen.add(name)
        state = state_of(location.store_root, name)
        if state is None:
            continue
        if state.collection.is_derived:
            ahead.extend(state.collection.derived.inputs)
        else:
            found[name] = state.collection
    return list(found.values())


class OnTimeOperator(BaseOperator):
    """Looks whether collections are on time, and fails while one is not, in one line for each that names the collection
    and its intervals.

    An interval is *overdue* where its collection's file says `overdue` and that long after its end it is not sealed.
    Its notifiers (`notify: {overdue: …}`) are called once for each oldest overdue interval. With `runs`, an interval
    that was over an hour ago and has no run in the collection's DAG is named, too: of a DAG that is not paused, and has
    the collection's name. Fails without a retry; what cannot be read is a line of its own.
    """

    ui_color = "#f6e3df"

    def __init__(
        self,
        *,
        collections: Sequence[str | Path | Collection | Location],
        runs: bool = True,
        task_id: str = "on_time",
        **kwargs: Any,
    ) -> None:
        self.locations = [location_of(one) for one in collections]
        assets = [asset_of(one.name) for one in self.locations if one.airflow.overdue is not None]
        arguments = with_step_defaults({"doc_md": ON_TIME_DOC, **kwargs})
        super().__init__(task_id=task_id, inlets=assets, **arguments)
        self.runs = runs

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """What is overdue: nothing, or AirflowFailException."""
        now = time.time_ns() // 1000
        wrong = [line for location in self.locations for line in self._wrong(context, location, now)]
        for line in wrong:
            self.log.error("%s", line)
        if wrong:
            raise AirflowFailException("; ".join(wrong))
        self.log.info("%d collections are on time", len(self.locations))
        return []

    def _wrong(self, context: Any, location: Location, now: int) -> list[str]:
        found = []
        try:
            late = overdue_seal(location, now)
            if location.airflow.overdue is not None:
                send(location.name, {"overdue_seconds": (now - late.since) // 1_000_000 if late else 0})
            if late is not None:
                found.append(late.words(now))
                self._notify(context, location, late, now)
            if self.runs and (missing := without_runs(context, location, now)):
                some = listed(missing, MOST_NAMED)
                found.append(
                    f"{location.name}: no run began for {some}; see that the scheduler is up and that no runs of the "
                    f"DAG wait for an answer, then backfill {location.name} from there"
                )
        except TidemarkError as error:
            return [f"{location.name} cannot be looked at: {error.kind}: {error}"]
        return found

    def _notify(self, context: Any, location: Location, late: Overdue, now: int) -> None:
        """Notify people of an overdue interval, unless they were notified of it before, by any DAG."""
        calls = location.airflow.notify.overdue
        if not calls:
            return
        remembered, interval = context["asset_state_store"][asset_of(location.name)], str(late.interval)
        if remembered.get(NOTIFIED) == interval:
            self.log.info("people were notified of %s before", interval)
        elif notify(calls, notice_of_overdue(late, now, context), context):
            remembered.set(NOTIFIED, interval)


def without_runs(context: Mapping[str, Any], location: Location, now: int) -> list[Interval]:
    """The intervals that nobody ingested, were over STARTED_WITHIN before `now` (µs), and have no run at all.

    Of a collection that has ended only those below what was ingested. None of a derived collection, of one that was
    never created, and where the DAG of its name is paused or is not there: it has another name then, or somebody
    stopped it.
    """
    state = None if location.derived else state_of(location.store_root, location.name)
    if state is None or not list(state.ingested) or not _is_active(location.name):
        return []
    landed, due = state.collection.landed, now - STARTED_WITHIN // timedelta(microseconds=1)
    newest = max(one.upper for one in state.ingested)
    schedule = Schedule.of(landed)
    upto = schedule.latest(due) if landed.end is None or landed.end > due else newest
    lower = max(state.complete, landed.start)
    if upto <= lower:
        return []
    try:
        over = schedule.beginning(lower, upto)
    except InvalidUsage:  # more than MOST_INTERVALS: the first of them say enough
        over = schedule.beginning(lower, _some_later(schedule, lower))
    missing = [one for one in over if not state.ingested.covers(one)]
    have = with_runs(context, missing, list(DagRunState), dag_id=location.name)
    return [one for one in missing if one not in have]


def _some_later(schedule: Schedule, lower: int) -> int:
    return lower + (schedule.following(lower) - lower) * (MOST_INTERVALS // 100)


def _is_active(dag_id: str) -> bool:
    """Whether there is a DAG of this id that is not paused."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import GetDag

    try:
        answer: Any = task_runner.SUPERVISOR_COMMS.send(GetDag(dag_id=dag_id))
    except Exception:  # there is none
        return False
    return getattr(answer, "is_paused", True) is False
