"""The last task of a run: report to the rest of Airflow what was newly sealed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark.airflow.asset import asset_of, intervals_asset_of
from tidemark.airflow.documentation import PUBLISHED, PUBLISHED_OF_DERIVED
from tidemark.airflow.gauges import send_gauges
from tidemark.airflow.location import Location, location_of
from tidemark.airflow.notify import notice_of_correction, notify
from tidemark.airflow.other_runs import IN_FLIGHT, with_runs
from tidemark.airflow.steps import intervals_of_run, task_failure, with_step_defaults
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage, TidemarkError, listed
from tidemark.jobs.queries.blocked import blocked_by
from tidemark.jobs.queries.corrected import corrected_between
from tidemark.jobs.queries.followed import followed_between
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Landed
from tidemark.model.instant import format_instant, parse_instant
from tidemark.model.interval import Interval
from tidemark.model.local_time import format_local, moment_in

EVENTS_LOOKED_AT = 20
MOST_NAMED = 5
PARTITION = "%Y-%m-%dT%H:%M:%S"
"""How a partition names an interval: as CronPartitionTimetable does, and the mappers of its days and weeks read."""


class PublishOperator(BaseOperator):
    """One event of the collection's asset for what was sealed, drained and certified since the last event: the end of
    a run, behind the collection's steps.

    Skipped where that is nothing, as after a re-run of a finished interval. A run that died before its event is made
    good by the next: events follow each other without gap or overlap. So that two that end together do not report the
    same, one of these tasks runs at a time, whatever number of the DAG's runs does.

    Fails, without a retry, where the run's own intervals (a derived collection's runs have none) are not complete at
    its end: some interval before them is
    missing, and no run of this DAG that is queued or running is about to ingest it.
    """

    ui_color = "#dfe8f5"

    def __init__(
        self, *, collection: str | Path | Collection | Location, task_id: str = "published", **kwargs: Any
    ) -> None:
        location = location_of(collection)
        asset = asset_of(location.name)
        doc = PUBLISHED_OF_DERIVED if location.derived else PUBLISHED
        # Runs are not enough to count: Airflow counts those of a backfill separately.
        arguments = with_step_defaults({"doc_md": doc, **kwargs, "max_active_tis_per_dag": 1})
        outlets = [asset, *([intervals_asset_of(location.name)] if location.airflow.partitions else [])]
        super().__init__(task_id=task_id, inlets=[asset], outlets=outlets, **arguments)
        self.location = location
        self.event: Mapping[str, Any] = {}

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """What was published: Airflow's OpenLineage provider asks, where it is installed."""
        from tidemark.airflow.lineage import lineage_of_event, operator_lineage

        return operator_lineage(lineage_of_event(self.location, self.event))

    def execute(self, context: Any) -> dict[str, Any]:
        """The event's extra."""
        asset = asset_of(self.location.name)
        before = _last_event(context["inlet_events"][asset])
        lower = parse_instant(before["upper"]) if before else 0
        try:
            state = self.location.job().log.load().state
            send_gauges(state, time.time_ns() // 1000)
            waits = self._waits(context, state)
        except TidemarkError as error:
            raise task_failure(error) from None
        upper = state.certified_trace_upper
        if upper <= lower:
            reached = f"published up to {format_instant(lower)}, the seal is at {format_instant(state.seal)}"
            raise AirflowSkipException(waits or f"nothing changed: {reached}")
        # What is complete is reported as far as it can be read.
        frontiers = {
            "lower": lower,
            "upper": upper,
            "seal": state.seal,
            "complete_below": min(state.complete_below, upper),
        }
        try:
            between = followed_between if self.location.derived else corrected_between
            corrected = between(self.location.job().log, lower, upper).as_dict()
        except TidemarkError as error:
            raise task_failure(error) from None
        extra = {**{name: format_instant(time) for name, time in frontiers.items()}, "corrected": corrected}
        self.event = extra
        context["outlet_events"][asset].extra.update(extra)
        if self.location.airflow.partitions:
            self._publish_intervals(context, extra, before)
        self.log.info("corrected: %s", corrected["changed"])
        if self.location.airflow.notify.correction and _changes_published(extra, before, self.location):
            notice = notice_of_correction(self.location, extra, context)
            notify(self.location.airflow.notify.correction, notice, context)
        return extra

    def _publish_intervals(self, context: Any, extra: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        """A partition of the intervals' asset for each interval that became complete since the last event. Without any
        that asset has no event: of an outlet about which nothing is said Airflow makes one without a partition."""
        intervals, asset = intervals_asset_of(self.location.name), asset_of(self.location.name)
        landed = self.location.collection.landed if self.location.derived is None else None
        reached = [
            _interval_end(parse_instant(event["complete_below"]) if event else 0, landed) for event in (before, extra)
        ]
        schedule = Schedule(str(self.location.airflow.partitions), landed.timezone if landed else "UTC")
        begin = max(reached[0], landed.start if landed else 0)
        try:
            completed = schedule.completed(begin, reached[1]) if begin < reached[1] else []
        except InvalidUsage as error:  # of a schedule that is much finer than the collection's
            raise task_failure(error) from None
        if not completed:
            self.outlets = [asset]
            return
        event = context["outlet_events"][intervals]
        event.extra.update({name: extra[name] for name in ("lower", "upper", "seal", "complete_below")})
        # An hour that clocks show twice is two partitions: their names need the offset.
        named = f"{PARTITION}%z" if schedule.zone != "UTC" and schedule.is_of_every_hour else PARTITION
        event.add_partitions([moment_in(interval.lower, schedule.zone).strftime(named) for interval in completed])
        self.log.info("complete: %s", listed(completed, MOST_NAMED))

    def _waits(self, context: Any, state: Arrangement) -> str | None:
        """What the run's intervals still wait for, though other runs are about to bring it; None if they are complete.

        Raises AirflowFailException if nobody is about to. A derived collection has none: what it holds is read once it
        is drained, and no run leaves it otherwise."""
        if self.location.derived is not None:
            _check_drained(state)
            return None
        some = intervals_of_run(context, self.location.collection)
        collection = state.collection
        zone = collection.landed.timezone
        own = Interval(some[0].lower, some[-1].upper).in_zone(zone)
        complete = min(state.complete_below, state.trace_upper)
        if complete >= own.upper - collection.landed.grace:
            return None
        hole = state.hole_below(own.upper)
        message = f"{own} is not complete: the collection is, below {format_local(state.complete_below, zone)}"
        if hole is None:
            raise AirflowFailException(
                f"{message}, the trace reaches to {format_instant(state.trace_upper)}; clear this run"
            )
        waits = blocked_by(state, time.time_ns() // 1000)
        message += f" and waits for {waits.in_full if waits else hole.in_zone(zone)}"
        missing = self._missing(state, own)
        if missing is not None and len(with_runs(context, missing, IN_FLIGHT)) == len(missing):
            return f"{message}, whose runs are queued or running; the last of them completes this one, too"
        raise AirflowFailException(
            f"{message}, which no run is about to ingest. What this run ingested is kept. Backfill "
            f"{context['dag'].dag_id} from {format_local(hole.lower, zone)} on, then clear this task"
        )

    def _missing(self, state: Arrangement, own: Interval) -> list[Interval] | None:
        """The intervals before the run's own that were not ingested; None if its own are among them."""
        schedule = Schedule.of(self.location.collection.landed)
        try:
            before = schedule.beginning(state.complete, own.upper)
        except InvalidUsage:  # more than anybody has queued
            return None
        missing = [interval for interval in before if not state.ingested.covers(interval)]
        return missing if missing and missing[-1].upper <= own.lower else None


def _check_drained(state: Arrangement) -> None:
    """Raise AirflowFailException if a derived collection holds what is sealed and cannot be read."""
    if state.seal > (upper := state.certified_trace_upper):
        raise AirflowFailException(
            f"{state.collection.name} is known up to {format_instant(state.seal)}, and readable below "
            f"{format_instant(upper)} only; clear this run"
        )


def _last_event(events: Any) -> Mapping[str, Any]:
    """The extra of the last event of ours, empty if there is none; those made by hand, without one, are passed over."""
    newest = events.ascending(False).limit(EVENTS_LOOKED_AT)
    return next((event.extra for event in newest if "upper" in event.extra), {})


def _interval_end(complete_below: int, landed: Landed | None) -> int:
    """Up to where intervals are complete: those that the grace holds back are, once they are sealed."""
    if landed is None or (landed.end is not None and complete_below >= landed.end):
        return complete_below
    return complete_below + landed.grace


def _changes_published(extra: Mapping[str, Any], before: Mapping[str, Any], location: Location) -> bool:
    """Whether an event reports a change of what an earlier one had published. A derived collection also retracts rows
    as it goes on, so of one only what does not get it further counts."""
    corrected = extra["corrected"]
    if not before or not corrected["retracted"] + corrected["added"]:
        return False
    return location.derived is None or extra["complete_below"] == before.get("complete_below")
