"""What a backfill would read, and how long that takes: before it begins, from the landing's listing and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

from tidemark.config.neighbours import ready_of
from tidemark.config.template import pattern_of
from tidemark.errors import TidemarkError
from tidemark.model.collection import Format, Landed
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.ledger import SourceFile
from tidemark.storage import landing

HERE, IN_AIRFLOW = (1.0, 0.06), (9.0, 0.1)
"""Seconds of a run beside its intervals, and of an interval beside its rows: by the command, and as runs of Airflow
with a warm Spark. On two cores, with files on a local disk: a year of 500 rows a day took 24 s and 144 s."""
ROWS_OF_SECOND = 100_000
MOST_COUNTED = 1_000
"""Parquet files whose own count of rows is read; of more the rows stay unknown."""

LandingStatus = Literal["landed", "empty", "not landed", "unreadable"]


@dataclass(frozen=True)
class ExpectedInterval:
    """What the landing has for an interval, and whether it was `ingested` already. `rows` is None where no file says it
    without being read; `problem` says why the landing could not be looked at."""

    interval: Interval
    landed: LandingStatus
    ingested: bool = False
    files: int = 0
    bytes: int = 0
    rows: int | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601."""
        times = {"lower": format_instant(self.interval.lower), "upper": format_instant(self.interval.upper)}
        counts = {"files": self.files, "bytes": self.bytes, "rows": self.rows}
        return {**times, "ingested": self.ingested, "landed": self.landed, **counts, "problem": self.problem or None}


@dataclass(frozen=True)
class Preview:
    """The intervals that a backfill would read, in `runs`, and about how many seconds that takes: by the command, and
    as runs of Airflow."""

    intervals: tuple[ExpectedInterval, ...]
    runs: int
    seconds: float
    seconds_in_airflow: float

    @property
    def rows(self) -> int | None:
        """The rows of all files; None where that of one is unknown."""
        return None if any(one.rows is None for one in self.intervals) else sum(one.rows or 0 for one in self.intervals)

    def count(self, landed: LandingStatus) -> int:
        """How many of the intervals are so."""
        return sum(one.landed == landed for one in self.intervals)


def preview(
    landed: Landed,
    ingested: IntervalSet,
    intervals: Sequence[Interval],
    landing_root: str,
    *,
    most: int,
    footers: int = MOST_COUNTED,
) -> Preview:
    """What a backfill of some intervals would read, of which some are `ingested`, with at most `most` of them in a run.
    Writes nothing, and judges no file: only its reading shows whether it can be taken. At most so many `footers` of
    Parquet files are read."""
    budget = footers
    found = []
    for interval in intervals:
        expected, budget = _expected(landed, interval, landing_root, budget)
        found.append(replace(expected, ingested=ingested.covers(interval)))
    runs = ceil(len(found) / most)
    rows, read = sum(one.rows or 0 for one in found), sum(one.landed in ("landed", "empty") for one in found)
    by, in_airflow = (
        runs * of_run + read * of_interval + rows / ROWS_OF_SECOND for of_run, of_interval in (HERE, IN_AIRFLOW)
    )
    return Preview(tuple(found), runs, by, in_airflow)


def _expected(landed: Landed, interval: Interval, landing_root: str, budget: int) -> tuple[ExpectedInterval, int]:
    source = landed.source
    pattern = pattern_of(landed, interval, landing_root)
    within = landing_root if landing.below(pattern, landing_root) else None
    try:
        if not landing.is_ready(pattern, ready_of(landed, interval, landing_root), within=within):
            return ExpectedInterval(interval, "not landed", rows=0), budget
        files = landing.list_named(pattern, landing_root, within=within)
    except TidemarkError as error:
        return ExpectedInterval(interval, "unreadable", problem=str(error)), budget
    rows, budget = _rows(files, source.format, budget)
    size = sum(file.bytes for file in files)
    return ExpectedInterval(interval, "landed" if files else "empty", files=len(files), bytes=size, rows=rows), budget


def _rows(files: Sequence[SourceFile], file_format: Format, budget: int) -> tuple[int | None, int]:
    """The rows that files say they have, and how many more may be asked."""
    if not files:
        return 0, budget
    if file_format is not Format.PARQUET or len(files) > budget:
        return None, budget
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    try:
        for file in files:
            with landing.open_source(file.path) as source:
                rows += pq.read_metadata(source).num_rows
    except (TidemarkError, pa.ArrowException, OSError):  # whoever reads it says what is wrong with it
        return None, budget - len(files)
    return rows, budget - len(files)
