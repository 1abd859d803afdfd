"""What a derived collection learned, day by day: read from its newest versions, without a look at data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from tidemark.config.schedule import Schedule
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Corrected, Quarantined
from tidemark.model.interval import Interval
from tidemark.storage.log.log import StateLog

VERSIONS = 1_000
"""Newest versions that are looked through: some months of days."""
DAYS = Schedule("@daily")


@dataclass(frozen=True)
class DayReport:
    """What a derived collection learned of its inputs within a UTC day: in how many runs, and how many rows these added
    and retracted. A correction of an earlier day is learned on the day that its seal falls on. `complete`: all that its
    inputs learned by the end of the day is in it."""

    interval: Interval
    complete: bool
    runs: int = 0
    added: int = 0
    retracted: int = 0


def day_reports(log: StateLog, state: Arrangement, version: int) -> list[DayReport]:
    """A report of each day, oldest first, from the first run that the newest VERSIONS versions report to the last day
    that any of its runs reached. Batches that were quarantined since do not count."""
    by_day = defaultdict[int, list[Corrected]](list)
    for change in _runs(log, version):
        by_day[DAYS.latest(max(0, change.consumption.upper - 1))].append(change)
    if not by_day:
        return []
    days = DAYS.beginning(min(by_day), max(by_day) + 1)
    readable = min(state.complete_below, state.trace_upper)
    return [_report(day, by_day[day.lower], readable) for day in days]


def _runs(log: StateLog, version: int) -> Iterable[Corrected]:
    taken_out = set[str]()
    for record in islice(log.history(version), VERSIONS):
        change = record.change
        if isinstance(change, Quarantined):
            taken_out.add(change.batch)
        elif isinstance(change, Corrected) and (change.batch is None or change.batch.id not in taken_out):
            yield change


def _report(day: Interval, runs: Sequence[Corrected], readable: int) -> DayReport:
    added, retracted = sum(run.rows_added for run in runs), sum(run.rows_retracted for run in runs)
    return DayReport(day, day.upper <= readable, len(runs), added, retracted)
