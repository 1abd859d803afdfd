"""What Tidemark answers about the demo's days, in the shape of demo/independent.py, so that the two can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tidemark
from tidemark.model.change import Ingested, Sealed
from tidemark.model.instant import format_instant, from_datetime

DAY = timedelta(days=1)
SHOWN = ("status", "delay_min")
KEY = ["time_hour", "carrier", "flight"]
VALUE = ["status", "origin", "dest", "tailnum", "scheduled_at", "delay_min"]
STATUSES = ("scheduled", "departed", "arrived", "cancelled")


def start_of(day: date) -> int:
    """The first instant of a UTC day, in microseconds."""
    return from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


def figures(flights: tidemark.OpenCollection, *, first: date, days: int) -> list[dict[str, Any]]:
    """The figures of each day, from the collection as it stands."""
    changed = [record.change for record in flights.log.history()]
    seals = {change.complete_below for change in changed if isinstance(change, Sealed)}
    read = [change for change in changed if isinstance(change, Ingested) and not change.corrected]
    return [day_figures(flights, seals, read, first + n * DAY) for n in range(days)]


def day_figures(
    flights: tidemark.OpenCollection, seals: set[int], read: Sequence[Ingested], day: date
) -> dict[str, Any]:
    """One day's run, by what was `read` for it at first, the changes learned on the day, and two as-of reads of its
    last instant."""
    start, end = start_of(day), start_of(day + DAY)
    of_day = [change for change in read if change.fence.interval.lower == start]
    applied = sum(change.rows_late_applied for change in of_day)
    discarded = sum(change.rows_late_discarded for change in of_day)
    learned = flights.changes(after=start - 1, upto=end - 1).to_arrow()
    inserts = pc.sum(pc.cast(pc.greater(learned["diff"], 0), pa.int64())).as_py() or 0
    return {
        "day": day.isoformat(),
        # Days of one run are sealed together.
        "seal": format_instant(end) if end <= max(seals, default=0) else None,
        "rows": sum(change.batch.rows for change in of_day if change.batch) + discarded,
        "late": {"below the seal": applied, "beyond max_lateness": discarded},
        "inserts": inserts,
        "deletes": learned.num_rows - inserts,
        "at_seal": summary(flights.as_of(end - 1, event_time=end - 1, columns=SHOWN).to_arrow()),
        "now": summary(flights.as_of(event_time=end - 1, columns=SHOWN).to_arrow()),
    }


def times_mended(flights: tidemark.OpenCollection) -> int:
    """How often the files of a run were others than it had read before: once by each demo, that lays out the first
    ones again and mends one, and once more by each that follows in the same folder."""
    changed = [record.change for record in flights.log.history()]
    return sum(isinstance(change, Ingested) and change.corrected > 0 for change in changed)


def summary(current: pa.Table) -> dict[str, Any]:
    """How many flights there are, by status, and their delays: sum of minutes, flights with one, mean."""
    counted = current.group_by("status").aggregate([("_multiplicity", "sum")])
    by_status = dict(zip(counted["status"].to_pylist(), counted["_multiplicity_sum"].to_pylist(), strict=True))
    known = current.filter(pc.is_valid(current["delay_min"]))
    count = pc.sum(known["_multiplicity"]).as_py() or 0
    total = pc.sum(pc.multiply(known["delay_min"], known["_multiplicity"])).as_py() or 0
    return {
        "flights": pc.sum(current["_multiplicity"]).as_py() or 0,
        "statuses": {status: by_status.get(status, 0) for status in STATUSES},
        "delay_sum": total,
        "delay_count": count,
        "delay_mean": total / count if count else None,
    }


def known_at(flights: tidemark.OpenCollection, time: int | None, day: date) -> dict[str, Any]:
    """A day's last instant as known at a time (None: now)."""
    end = start_of(day + DAY)
    return summary(flights.as_of(time, event_time=end - 1, columns=SHOWN).to_arrow())


def corrections(flights: tidemark.OpenCollection, after: int) -> Counter[tuple[Any, ...]]:
    """What was learned after a time, as (key, value, event time, diff of +1 or -1)."""
    learned = flights.changes(after=after).to_arrow()
    key, value = learned.select(KEY).to_pylist(), learned.select(VALUE).to_pylist()
    happened = learned["_event_time"].cast(pa.timestamp("us", "UTC")).to_pylist()
    found: Counter[tuple[Any, ...]] = Counter()
    for of, cells, at, diff in zip(key, value, happened, learned["diff"].to_pylist(), strict=True):
        found[(*of.values(),), (*cells.values(),), at, 1 if diff > 0 else -1] += abs(diff)
    return found
