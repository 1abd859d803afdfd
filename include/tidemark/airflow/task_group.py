"""A collection's tasks as a group in a DAG of one's own, whole or in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from airflow.sdk import TaskGroup, chain

from tidemark.airflow.after import after_tasks
from tidemark.airflow.location import Location, location_of
from tidemark.airflow.publish import PublishOperator
from tidemark.airflow.step_tasks import step_and_gate
from tidemark.airflow.task_arguments import task_arguments
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.declared import steps_of
from tidemark.jobs.steps.step import When
from tidemark.model.collection import Collection

if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

PUBLISHED, TABLES, AFTER = "published", "publish_tables", "after"
LOOKED_AT = 10
"""Boundaries of a DAG's schedule that are compared with those of the collection's."""


class TidemarkTaskGroup(TaskGroup):
    """The tasks of a collection's DAG as a group in another: the steps with their gates, `published`, and the functions
    that the collection's file names in `after`.

    `parts` names some of them, in the order of the DAG: `ingest` (of a derived collection `correct`), `seal`, `drain`,
    `compact`, `published`, `publish_tables` (where the file declares some), `after`. A step comes with its gate. Parts
    may be in several groups, also of several DAGs: the state decides who commits. `after` needs `published` beside it.
    Owner, pool, retries and `notify.failure` are those of the collection's file, before what the DAG's `default_args`
    say and after what the group's do; the other options are those of `tidemark_dag`.

    The DAG's runs have to be about intervals: steps of a landed collection work on those of the run (`window_of`). Its
    schedule cuts time where the collection's does, as `CronDataIntervalTimetable("0 0 * * *", "UTC")` does, or into
    several of its intervals; or it is triggered by assets; or by hand (`schedule=None`), with the params `lower` and
    `upper`, if the DAG declares these, or for the last interval that is over. Raises InvalidUsage for a schedule that
    gives runs without an interval (a bare cron string), or that cuts elsewhere; for parts that are none or in another
    order; and outside a DAG.
    """

    def __init__(
        self,
        collection: str | Path | Collection | Location,
        *,
        parts: Sequence[str] | None = None,
        group_id: str | None = None,
        root: str | None = None,
        landing: str | None = None,
        ready_within: timedelta | None = None,
        asks: bool | None = None,
        response_timeout: timedelta | None = None,
        notifiers: Sequence[BaseNotifier] | BaseNotifier = (),
        default_args: dict[str, Any] | None = None,
        **group_options: Any,
    ) -> None:
        location = location_of(collection, root=root, landing=landing)
        chosen = chosen_parts(location, parts)
        arguments: Any = {**task_arguments(location), **(default_args or {})}
        try:
            super().__init__(group_id=group_id or location.name, default_args=arguments, **group_options)
        except RuntimeError:
            raise InvalidUsage(
                f"the group of {location.name} belongs into a DAG: write it below `with DAG(…):`"
            ) from None
        check_runs(self.dag, location)
        tasks = {
            "ready_within": ready_within,
            "asks": asks,
            "response_timeout": response_timeout,
            "notifiers": notifiers,
        }
        with self:
            collection_tasks(location, chosen, tasks)


def collection_tasks(location: Location, parts: Sequence[str], tasks: Mapping[str, Any]) -> None:
    """The tasks of some parts, one behind the other, in the DAG or group being built."""
    made: list[Any] = []
    for part in parts:
        if part == PUBLISHED:
            made.append(PublishOperator(collection=location))
        elif part not in (TABLES, AFTER):
            made.extend(step_and_gate(location, part, **tasks))
    chain(*made)
    if TABLES in parts:
        chain(*made[-1:], *step_and_gate(location, "publish", task_id=TABLES))
    if AFTER in parts and (after := after_tasks(location)):
        made[-1] >> after


def all_parts(location: Location) -> list[str]:
    """The parts of a collection's DAG, in order."""
    steps = steps_of(When.EACH_RUN, derived=location.derived is not None)
    return [*(step.name for step in steps), PUBLISHED, *([TABLES] if location.publishes else []), AFTER]


def chosen_parts(location: Location, parts: Sequence[str] | None) -> list[str]:
    """Some parts of a collection's DAG, or all. InvalidUsage where they are none, or in another order."""
    known = all_parts(location)
    if parts is None:
        return known
    chosen = [parts] if isinstance(parts, str) else list(parts)
    for part in chosen:
        if part not in known:
            raise InvalidUsage(f"{part!r} is no part of the DAG of {location.name}; write some of {', '.join(known)}")
    if chosen != [part for part in known if part in chosen] or not chosen:
        raise InvalidUsage(
            f"the parts of {location.name} are {', '.join(chosen)}; write some, in the order {', '.join(known)}"
        )
    if AFTER in chosen and PUBLISHED not in chosen:
        raise InvalidUsage(f"the part {AFTER} of {location.name} is handed what {PUBLISHED} published; add {PUBLISHED}")
    return chosen


def check_runs(dag: Any, location: Location) -> None:
    """Raise InvalidUsage where the runs of a DAG are about no intervals of a landed collection: as far as its schedule
    says. `published`, too, looks whether those of its run are complete."""
    if location.derived is not None:
        return
    timetable, needed = dag.timetable, Schedule.of(location.collection.landed)
    way_out = f'write schedule=CronDataIntervalTimetable("{needed.expression}", "{needed.zone}")'
    if getattr(timetable, "interval", None) == timedelta():
        raise InvalidUsage(
            f"the runs of the DAG {dag.dag_id} are about no time: its schedule gives empty data intervals, and "
            f"{location.name} is read by intervals of {needed}; {way_out}"
        )
    expression = getattr(timetable, "expression", None)
    zone = str(getattr(timetable, "timezone", "UTC"))
    if expression is None or zone not in available_timezones():
        return  # what its runs are about they say themselves, and each is compared with the schedule
    start, runs = location.collection.landed.start, Schedule(expression, zone)
    for time in islice(runs.after(start), LOOKED_AT):
        if needed.latest(time) != time:
            raise InvalidUsage(
                f"the runs of the DAG {dag.dag_id} begin by {runs}, at {needed.text_of(time)} for one, between "
                f"two intervals of {location.name}, whose schedule is {needed}; {way_out}"
            )
