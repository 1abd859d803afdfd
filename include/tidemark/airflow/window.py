"""The one place where a run of Airflow becomes an interval of time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.instant import from_datetime, parse_instant
from tidemark.model.interval import Interval

NO_WINDOW = (
    "this run has no data interval, no partition, no triggering asset event and no params lower and upper; "
    "trigger it with both, or give the DAG a schedule with data intervals (CronDataIntervalTimetable)"
)


def window_of(context: Mapping[str, Any], *, schedule: str | None = None) -> Interval:
    """The `[lower, upper)` a run is about, from the first of these that it has:

    - the params `lower` and `upper` (ISO 8601 or microseconds), both or neither;
    - its partition: from `partition_date` to the next boundary of `schedule`, or else of the DAG's own cron;
    - its data interval;
    - the events of Tidemark assets that triggered it: all that they newly sealed.

    Raises InvalidUsage where there is none, and for an empty interval, which is what a bare cron string gives.
    """
    explicit = _from_params(context.get("params") or {})
    if explicit is not None:
        return explicit
    if context.get("partition_key") is not None:
        return _from_partition(context, schedule)
    lower, upper = context.get("data_interval_start"), context.get("data_interval_end")
    if lower is not None and upper is not None:
        return _from_bounds(lower, upper)
    events = _from_events(context.get("triggering_asset_events") or {})
    if events is not None:
        return events
    raise InvalidUsage(NO_WINDOW)


def _from_params(params: Mapping[str, Any]) -> Interval | None:
    lower, upper = params.get("lower"), params.get("upper")
    if lower in (None, "") and upper in (None, ""):
        return None
    if lower in (None, "") or upper in (None, ""):
        raise InvalidUsage(f"params lower and upper go together: lower is {lower!r}, upper is {upper!r}")
    return Interval(parse_instant(str(lower)), parse_instant(str(upper)))


def _from_partition(context: Mapping[str, Any], schedule: str | None) -> Interval:
    from tidemark.airflow.schedule import Schedule

    key, start = context["partition_key"], context.get("partition_date")
    cron = schedule or getattr(getattr(context.get("dag"), "timetable", None), "expression", None)
    if start is None or cron is None:
        lacks = "date" if start is None else "known length"
        raise InvalidUsage(f"partition {key!r} has no {lacks}; pass params lower and upper, or window_of(schedule=…)")
    return Schedule(cron).interval_from(from_datetime(start))


def _from_bounds(lower: datetime, upper: datetime) -> Interval:
    if lower == upper:
        raise InvalidUsage(
            f"the data interval of this run is empty, [{lower.isoformat()}, {upper.isoformat()}): a bare cron string "
            "gives such intervals; use CronDataIntervalTimetable, or pass the params lower and upper"
        )
    return Interval(from_datetime(lower), from_datetime(upper))


def _from_events(events: Mapping[Any, Any]) -> Interval | None:
    """One interval over all events of Tidemark's assets: frontiers only advance, so nothing lies between them."""
    from tidemark.airflow.asset import SCHEME

    ours = [held for asset, held in events.items() if str(getattr(asset, "uri", "")).startswith(SCHEME)]
    extras = [event.extra for held in ours for event in held]
    if not extras:
        return None
    return Interval(
        min(parse_instant(extra["lower"]) for extra in extras),
        max(parse_instant(extra["upper"]) for extra in extras),
    )
