"""Gauges of a collection for whoever watches Airflow's metrics (StatsD, OpenTelemetry, Datadog).

They are sent at the end of each run of its DAG, and daily by maintenance, as a run that never begins sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tidemark.jobs.queries.status import debt
from tidemark.model.arrangement import Arrangement

log = logging.getLogger(__name__)
PREFIX = "tidemark"


def gauges_of(state: Arrangement, now: int) -> dict[str, int]:
    """What is measured of a collection at `now` (µs), by name.

    `behind_seconds`: how long ago it was that all is complete below; 0 where nothing more is to come. `late_rows`:
    source rows that came late since it was created, applied or not. `unsealed_rows` are not drained yet, `quarantined`
    batches were taken out, `merges_due` is what compaction owes.
    """
    collection, totals = state.collection, state.totals
    end = None if collection.is_derived else collection.landed.end
    ended = end is not None and state.complete_below >= end
    return {
        "behind_seconds": 0 if ended else max(0, now - state.complete_below) // 1_000_000,
        "late_rows": totals.rows_late_applied + totals.rows_late_discarded,
        "unsealed_rows": sum(batch.rows for batch in state.pending),
        "quarantined": len(state.quarantined),
        "merges_due": debt(state).compactions,
    }


def send_gauges(state: Arrangement, now: int) -> None:
    """Send what is measured of a collection."""
    send(state.collection.name, gauges_of(state, now))


def send(collection: str, gauges: Mapping[str, int]) -> None:
    """Send some as `tidemark.NAME.COLLECTION`: not every backend has tags. No task fails for want of a metric."""
    from airflow.sdk.observability import stats

    try:
        for name, value in gauges.items():
            stats.gauge(f"{PREFIX}.{name}.{collection}", value)
    except Exception as problem:
        log.warning("the gauges of %s could not be sent: %s", collection, problem)
