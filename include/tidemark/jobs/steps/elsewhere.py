"""Files that were read and have the bytes of a file of another interval: both count, and they are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from tidemark.config.schedule import Schedule
from tidemark.config.template import pattern_of
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import NAMES_SHOWN
from tidemark.model.instant import parse_duration
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry
from tidemark.model.wording import counted
from tidemark.plan.duplicates import has_rows
from tidemark.storage import landing
from tidemark.storage.sidecars import ledger

WITHIN = parse_duration("7d")
"""Microseconds before an interval within which files that come again are looked for."""
MOST_INTERVALS = 200
"""Intervals before it that are looked at, the last ones: a week of hours."""
MOST_ENTRIES = 20_000
"""Files of these that are compared, for some 0.2 s."""


def same_elsewhere(
    job: Job, state: Arrangement, interval: Interval, landing_root: str, read: Sequence[LedgerEntry]
) -> dict[str, Any]:
    """Say which files that were just read a week before has, too; what a result says of them.

    Args:
        job: The attempt, which notes them.
        state: After the reading.
        interval: What was read.
        landing_root: Where files land.
        read: What the ledger has of the files.
    """
    own = {entry.sha256: entry.path for entry in read if has_rows(entry)}
    if not own or not state.collection.landed.source.adds_up:
        return {}
    others = islice(_before(job, state, interval, landing_root), MOST_ENTRIES)
    pairs = sorted((own[entry.sha256], entry) for entry in others if has_rows(entry) and entry.sha256 in own)
    for path, entry in pairs[:NAMES_SHOWN]:
        day = entry.interval.in_zone(state.collection.zone)
        job.note(f"counted again: {path} has the bytes of {entry.path}, which {day} has")
    if len(pairs) > NAMES_SHOWN:
        job.note(f"and {counted(len(pairs) - NAMES_SHOWN, 'file')} more that days before have")
    return {"same_as_before": len(pairs)} if pairs else {}


def _before(job: Job, state: Arrangement, interval: Interval, landing_root: str) -> Iterator[LedgerEntry]:
    """What the ledger has of files of the intervals before one."""
    landed = state.collection.landed
    lower = max(landed.start, interval.lower - WITHIN)
    earlier = Schedule.of(landed).beginning(lower, interval.lower)[-MOST_INTERVALS:] if lower < interval.lower else []
    names: Mapping[str, None] = dict.fromkeys(
        landing.names_begin(pattern_of(landed, each, landing_root), landing_root) for each in reversed(earlier)
    )
    of_these = set(earlier)
    for begins in names:
        entries = ledger.entries(job.store, state.ledger, below=begins)
        yield from (entry for entry in entries if entry.interval in of_these)
