"""The one place where a run of Airflow becomes an interval of time, or the several of a schedule it consists of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, from_datetime, parse_instant
from tidemark.model.interval import Interval
from tidemark.model.local_time import first_shown, moment_in, parse_local

NO_WINDOW = (
    "this run has no data interval, no partition, no triggering asset event and no params lower and upper; "
    "trigger it with both, or give the DAG a schedule with data intervals (CronDataIntervalTimetable)"
)
AUTOMATED = ("scheduled", "backfill")
"""Runs that are made for an interval: what a person wrote into the form of a backfill is the same for all of them."""


def window_of(context: Mapping[str, Any], *, schedule: str | None = None, timezone: str = "UTC") -> Interval:
    """The `[lower, upper)` a run is about. It may span several intervals of a schedule: `intervals_of` splits it.

    A run that is made for an interval has that one: a scheduled or backfilled run its data interval, a run of a
    partition the time from its date, or that its key says, to the next boundary of `schedule` (by the clock of
    `timezone`), or else of the DAG's own cron. The params `lower` and `upper` (ISO 8601 or microseconds, both or
    neither) may not say otherwise. Of any other run it is the first of these that there is:

    - the params `lower` and `upper`;
    - the data interval;
    - the events of Tidemark assets that triggered it: all that they newly sealed;
    - with a `schedule`, its last interval that was over when a manual run was triggered.

    Raises InvalidUsage where there is none, for params that contradict the run's own interval, and for an empty
    interval, which is what a bare cron string gives.
    """
    by = None if schedule is None else Schedule(schedule, timezone)
    window = _stated(context, by) or _from_events(context)
    if window is None and by and _run(context, "run_type") == "manual":
        window = by.last_before(from_datetime(_run(context, "run_after")))
    if window is None:
        raise InvalidUsage(NO_WINDOW)
    return window


def intervals_of(
    context: Mapping[str, Any], *, schedule: str, timezone: str = "UTC", start: int = 0, end: int | None = None
) -> list[Interval]:
    """The intervals of a schedule that a run is about, in order: those `window_of` consists of.

    The schedule goes by the clock of `timezone`.

    Of a run that asset events triggered, those they completed between `start` and `end` (microseconds): events follow
    each other without gap or overlap, so each interval belongs to one run, however the two schedules differ; the list
    is empty while an interval is still incomplete. Raises InvalidUsage as `window_of`, and where a window begins or
    ends between two intervals.
    """
    by = Schedule(schedule, timezone)
    sealed = None if _stated(context, by) else _from_events(context)
    if sealed is not None:
        return by.completed(max(sealed.lower, start), min(sealed.upper, MAX_TIME if end is None else end))
    return by.split(window_of(context, schedule=schedule, timezone=timezone))


def sealed_by(
    context: Mapping[str, Any], *, schedule: str, timezone: str = "UTC", task_id: str = "seal"
) -> list[Interval]:
    """The intervals of a schedule that a run's seal made complete, in order: for a task behind it.

    The schedule goes by the clock of `timezone`.

    These are the run's own, and those that had waited for it: later days whose runs are over by then. The run's own are
    not among them while an earlier one is missing. `task_id` is the task that sealed (`seal.seal`, where it is in a
    `seal_group`). Run again, a seal names its run's own intervals, and what no drain has moved yet.
    """
    result = context["ti"].xcom_pull(task_ids=task_id) or {}
    by = Schedule(schedule, timezone)
    return [
        interval
        for span in result.get("completed", ())
        for interval in by.completed(parse_instant(span["lower"]), parse_instant(span["upper"]))
    ]


def until_of(context: Mapping[str, Any]) -> int | None:
    """Up to when a run of a derived collection's DAG is to correct it; None: as far as its inputs are.

    A backfill's run says so by its date range: up to the end of its data interval. Any other says so by the param
    `until`. Raises InvalidUsage where both say something else, and for the params `lower` and `upper`, which name
    intervals of files.
    """
    params = context.get("params") or {}
    if given := [name for name in ("lower", "upper") if params.get(name) not in (None, "")]:
        raise InvalidUsage(
            f"the collection is derived: its runs read no intervals; leave {given[0]} out, and say until when to "
            "correct by the param until"
        )
    asked = params.get("until")
    until = None if asked in (None, "") else parse_instant(str(asked))
    upper = context.get("data_interval_end")
    if _run(context, "run_type") != "backfill" or upper is None:
        return until
    end = from_datetime(upper)
    if until not in (None, end):
        raise InvalidUsage(
            f"this run belongs to a backfill until {upper.isoformat()}, but its param until is {asked}: leave it empty"
        )
    return end


def span_of(context: Mapping[str, Any]) -> Interval:
    """The interval that names a run of a derived collection's DAG: from the beginning up to `until_of`, or what the
    events that triggered it say was sealed, or when it was triggered."""
    until = until_of(context)
    if until is not None:
        return Interval(0, max(1, until))
    sealed = _from_events(context)
    if sealed is not None:
        return Interval(0, sealed.upper)
    after = _run(context, "run_after")
    return Interval(0, MAX_TIME if after is None else from_datetime(after))


def _stated(context: Mapping[str, Any], schedule: Schedule | None) -> Interval | None:
    """What a run says itself: the interval it is made for, its params, its data interval."""
    explicit = _from_params(context.get("params") or {}, schedule.zone if schedule else "UTC")
    own = _own(context, schedule)
    if own is not None and explicit not in (None, own):
        raise InvalidUsage(
            f"this run is for {own}, but its params lower and upper say {explicit}: leave them empty, every run of a "
            "backfill has its own; or trigger a single run with them"
        )
    lower, upper = context.get("data_interval_start"), context.get("data_interval_end")
    if own or explicit or lower is None or upper is None:
        return own or explicit
    return _from_bounds(lower, upper)


def _own(context: Mapping[str, Any], schedule: Schedule | None) -> Interval | None:
    """The interval a run is made for, if it is made for one."""
    if context.get("partition_key") is not None:
        return _from_partition(context, schedule)
    lower, upper = context.get("data_interval_start"), context.get("data_interval_end")
    if _run(context, "run_type") not in AUTOMATED or lower is None or upper is None:
        return None
    logical_date = context.get("logical_date")
    if logical_date is not None and logical_date != lower:
        raise InvalidUsage(
            f"this run of {logical_date.isoformat()} was triggered by hand once, for the data interval that begins "
            f"{lower.isoformat()}: delete it, then backfill its day"
        )
    return _from_bounds(lower, upper)


def _run(context: Mapping[str, Any], name: str) -> Any:
    return getattr(context.get("dag_run"), name, None)


def _from_params(params: Mapping[str, Any], zone: str) -> Interval | None:
    lower, upper = params.get("lower"), params.get("upper")
    if lower in (None, "") and upper in (None, ""):
        return None
    if lower in (None, "") or upper in (None, ""):
        raise InvalidUsage(f"params lower and upper go together: lower is {lower!r}, upper is {upper!r}")
    return Interval(parse_local(str(lower), zone), parse_local(str(upper), zone)).in_zone(zone)


def _from_partition(context: Mapping[str, Any], schedule: Schedule | None) -> Interval:
    key = context["partition_key"]
    by = schedule or _schedule_of_dag(context)
    start = context.get("partition_date") or _date_of(key, by.zone if by else "UTC")
    if start is None or by is None:
        lacks = "date" if start is None else "known length"
        raise InvalidUsage(f"partition {key!r} has no {lacks}; pass params lower and upper, or window_of(schedule=…)")
    return by.interval_from(from_datetime(start))


def _schedule_of_dag(context: Mapping[str, Any]) -> Schedule | None:
    timetable = getattr(context.get("dag"), "timetable", None)
    cron = getattr(timetable, "expression", None)
    return None if cron is None else Schedule(cron, str(getattr(timetable, "timezone", "UTC")))


def _date_of(key: str, zone: str) -> datetime | None:
    """When a partition begins that is named by that, as those of `intervals_asset_of` are: their runs have no date.

    A name without an offset from UTC is a time of the zone's clock.
    """
    try:
        date = datetime.fromisoformat(key)
    except ValueError:
        return None
    return moment_in(first_shown(date, zone), zone) if date.tzinfo is None else date


def _from_bounds(lower: datetime, upper: datetime) -> Interval:
    if lower == upper:
        raise InvalidUsage(
            f"the data interval of this run is empty, [{lower.isoformat()}, {upper.isoformat()}): a bare cron string "
            "gives such intervals; use CronDataIntervalTimetable, or pass the params lower and upper"
        )
    return Interval(from_datetime(lower), from_datetime(upper))


def _from_events(context: Mapping[str, Any]) -> Interval | None:
    """One interval over all events of Tidemark's assets: frontiers only advance, so nothing is between them."""
    from tidemark.airflow.asset import SCHEME

    events = context.get("triggering_asset_events") or {}
    ours = [asset_events for asset, asset_events in events.items() if str(getattr(asset, "uri", "")).startswith(SCHEME)]
    extras = [event.extra for asset_events in ours for event in asset_events]
    if not extras:
        return None
    return Interval(
        min(parse_instant(extra["lower"]) for extra in extras),
        max(parse_instant(extra["upper"]) for extra in extras),
    )
