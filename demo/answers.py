"""What Tidemark answers about the demo's days, in the shape of demo/independent.py, so that the two can be compared."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tidemark
from tidemark.model.change import Sealed
from tidemark.model.instant import format_instant, from_datetime
from tidemark.storage.sidecars import ledger

DAY = timedelta(days=1)
SHOWN = ("status", "delay_min")
STATUSES = ("scheduled", "departed", "arrived", "cancelled")


def start_of(day: date) -> int:
    """The first instant of a UTC day, in microseconds."""
    return from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


def figures(flights: tidemark.OpenCollection, *, first: date, days: int) -> list[dict[str, Any]]:
    """The figures of each day, from the collection as it stands."""
    seals = {r.change.complete_below for r in flights.log.history() if isinstance(r.change, Sealed)}
    return [day_figures(flights, seals, first + n * DAY) for n in range(days)]


def day_figures(flights: tidemark.OpenCollection, seals: set[int], day: date) -> dict[str, Any]:
    """One day's run, by the ledger, the changes learned on the day, and two as-of reads of its last instant."""
    start, end = start_of(day), start_of(day + DAY)
    entries = [entry for entry in ledger.entries(flights.store, flights.state.ledger) if entry.interval.lower == start]
    applied = sum(entry.rows_late_applied for entry in entries)
    discarded = sum(entry.rows_late_discarded for entry in entries)
    learned = flights.changes(after=start - 1, upto=end - 1).to_arrow()
    inserts = pc.sum(pc.cast(pc.greater(learned["diff"], 0), pa.int64())).as_py() or 0
    return {
        "day": day.isoformat(),
        "seal": format_instant(end) if end in seals else None,
        "rows": sum(entry.rows for entry in entries) + discarded,
        "late": {"below the seal": applied, "beyond max_lateness": discarded},
        "inserts": inserts,
        "deletes": learned.num_rows - inserts,
        "at_seal": summary(flights.as_of(end - 1, event_time=end - 1, columns=SHOWN).to_arrow()),
        "now": summary(flights.as_of(event_time=end - 1, columns=SHOWN).to_arrow()),
    }


def summary(held: pa.Table) -> dict[str, Any]:
    """How many flights are held, by status, and their delays: sum of minutes, flights with one, mean."""
    counted = held.group_by("status").aggregate([("_multiplicity", "sum")])
    by_status = dict(zip(counted["status"].to_pylist(), counted["_multiplicity_sum"].to_pylist(), strict=True))
    known = held.filter(pc.is_valid(held["delay_min"]))
    count = pc.sum(known["_multiplicity"]).as_py() or 0
    total = pc.sum(pc.multiply(known["delay_min"], known["_multiplicity"])).as_py() or 0
    return {
        "flights": pc.sum(held["_multiplicity"]).as_py() or 0,
        "statuses": {status: by_status.get(status, 0) for status in STATUSES},
        "delay_sum": total,
        "delay_count": count,
        "delay_mean": total / count if count else None,
    }
