"""A producer's way into a collection's landing folder: rows in order of arrival, a file for each chunk of them."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from warnings import warn

import pyarrow as pa

from tidemark.api.row_batches import RowReader
from tidemark.arrow.parts.timelines import plain_ints
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.encode import encode
from tidemark.config.schedule import Schedule
from tidemark.config.template import of_any_interval, pattern_of
from tidemark.errors import CommitUnknown, InvalidUsage, TidemarkError
from tidemark.model.chunk.cuts import Appender as Cutter
from tidemark.model.chunk.cuts import Arrival, Cut, CutReason, CutRules
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.storage import landing

LEAD = 10_000_000
"""So long before an interval is over its files go to the next one: a run may list its folder as soon as it is."""
_COMPACTED = 1024
"""Rows that came one by one are put together once they are so many: alone each takes kilobytes."""


@dataclass(frozen=True)
class LandedChunk:
    """A file that has landed, in the files of `interval`. `reason` says why the chunk ended, `also` which other reasons
    applied; its rows are the producer's from number `first` on."""

    path: str
    first: int
    rows: int
    reason: str
    also: tuple[str, ...]
    interval: Interval


@dataclass(frozen=True)
class Target:
    """Where a producer's files go: of which collection, below which landing, by which clock (microseconds)."""

    collection: Collection
    landing_root: str
    producer: str
    clock: Callable[[], int]

    def place(self, first: int, rows: int) -> tuple[Interval, str, str]:
        """The interval whose files a chunk is among if it lands now, its folder, and its name, which no other has."""
        now, end = self.clock(), self.collection.landed.end
        interval = self._interval(now + LEAD if end is None or now >= end else min(now + LEAD, end - 1))
        pattern = pattern_of(self.collection.landed, interval, self.landing_root)
        return interval, *landing.place_for(pattern, f"{self._lead}{first:012d}-{first + rows - 1:012d}")

    def landed_rows(self) -> int:
        """How many rows of the producer have landed, by the names of all its files."""
        own = re.compile(re.escape(self._lead) + r"(\d{12,})-(\d{12,})(?!\d)")
        pattern = of_any_interval(self.collection.landed.source.path, self.landing_root)
        found = (own.search(path.rpartition("/")[2]) for path in landing.names_below(pattern))
        return max((int(match[2]) + 1 for match in found if match), default=0)

    @property
    def _lead(self) -> str:
        return f"chunk.{self.producer}."

    def _interval(self, now: int) -> Interval:
        landed, schedule = self.collection.landed, self._schedule
        if now < landed.start or (landed.end is not None and now >= landed.end):
            end = "" if landed.end is None else f" and ends at {schedule.text_of(landed.end)}"
            raise InvalidUsage(
                f"no interval of {self.collection.name} takes rows at {schedule.text_of(now)}: it starts at "
                f"{schedule.text_of(landed.start)}{end}"
            )
        lower = schedule.latest(now)
        return Interval(max(landed.start, lower), schedule.following(lower)).in_zone(landed.timezone)

    @cached_property
    def _schedule(self) -> Schedule:
        return Schedule.of(self.collection.landed)


class Appender:
    """Rows on their way into a landing folder. `tidemark.appender` makes one; it belongs to one thread.

    Rows wait in memory until their chunk ends, and are then one file, which appears whole or not at all. A call that
    raises has taken none of its rows, and may be made again. What waits in memory when the process dies is lost.
    """

    def __init__(self, target: Target, rules: CutRules, position: int) -> None:
        self._target, self._cutter = target, Cutter(rules)
        self._reader = RowReader(target.collection)
        self._datatypes = {column.name: str(column.type) for column in self._reader.columns}
        self._waiting = _Rows()
        self._ended: deque[_Ended] = deque()
        self._news: list[LandedChunk] = []
        self._taken = self._position = position
        self._closed = False

    @property
    def producer(self) -> str:
        """Whose rows these are; its name is in the files' names."""
        return self._target.producer

    @property
    def position(self) -> int:
        """How many rows of this producer have landed, those of earlier appenders of its name included: the number of
        the row to go on with after a crash."""
        return self._position

    @property
    def taken(self) -> int:
        """How many rows of this producer were taken: those that landed, and those that wait in memory."""
        return self._taken

    def append(self, rows: Mapping[str, Any] | pa.RecordBatch | pa.Table) -> list[LandedChunk]:
        """Take a row, as a dict by column, or the rows of an Arrow batch or table, in order; the files that landed.

        Columns are those of the collection's files; one that is absent is null. Raises InvalidUsage, naming the column
        and what is nearest, for what its files may not hold; Unavailable and CommitUnknown where an earlier chunk could
        not land: nothing of this call was taken then.
        """
        batch = self._reader.of_row(rows) if isinstance(rows, Mapping) else self._reader.of_arrow(_checked(rows))
        self._land_due()
        self._take(batch, self._target.clock())
        with suppress(TidemarkError):  # the rows are taken: whatever hinders their file is reported by the next call
            self._land()
        return self._take_news()

    def tick(self) -> list[LandedChunk]:
        """Land what waited long enough. `append` does so, too; whoever may be silent for long calls this meanwhile."""
        self._land_due()
        return self._take_news()

    def flush(self) -> list[LandedChunk]:
        """Land all rows that were taken: they are durable when this returns."""
        self._check_open()
        self._cut(CutReason.FLUSH)
        self._land()
        return self._take_news()

    def close(self) -> list[LandedChunk]:
        """Land all rows that were taken, and take no more. Where that fails it stays open, and may be called again."""
        if not self._closed:
            self._cut(CutReason.END)
            self._land()
            self._closed = True
        return self._take_news()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<appender of {self._target.collection.name} as {self.producer}, row {self._taken}>"

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidUsage(f"the appender of {self._target.collection.name} is closed; open another one")

    def _land_due(self) -> None:
        """Land what could not land before, and then what waited long enough."""
        self._check_open()
        self._land()
        if self._cutter.is_due(self._target.clock()):
            self._cut(CutReason.AGE)
            self._land()

    def _take(self, batch: pa.RecordBatch, now: int) -> None:
        """Cut the rows of a batch into chunks, by the law; those of the last one wait."""
        start, size = 0, -(-batch.nbytes // max(1, batch.num_rows))
        lines = {name: plain_ints(batch.column(name)).to_pylist() for name in self._target.collection.timelines}
        for at in range(batch.num_rows):
            times = {name: line[at] for name, line in lines.items() if line[at] is not None}
            self._cutter, cuts = self._cutter.appended(Arrival(times, self._datatypes, size), now)
            for cut in cuts:
                length = cut.chunk.rows - self._waiting.rows
                self._waiting.add(batch.slice(start, length))
                start += length
                self._end(cut)
        self._taken += batch.num_rows
        self._waiting.add(batch.slice(start))

    def _cut(self, reason: CutReason) -> None:
        self._cutter, cut = self._cutter.closed(reason)
        if cut is not None:
            self._end(cut)

    def _end(self, cut: Cut) -> None:
        """What waits becomes a file that is to land."""
        first = self._ended[-1].first + self._ended[-1].cut.chunk.rows if self._ended else self._position
        landed = self._target.collection.landed
        self._ended.append(_Ended(first, cut, encode(self._waiting.take(), self._reader.columns, landed.source)))

    def _land(self) -> None:
        """Land the files that are to land, in order. Raises what the storage says where one cannot."""
        while self._ended:
            ended, rows = self._ended[0], self._ended[0].cut.chunk.rows
            # A file that may have landed keeps its place: in another one its rows would count twice.
            place = ended.place or self._target.place(ended.first, rows)
            interval, folder, name = place
            try:
                landing.land(folder, name, ended.data)
            except CommitUnknown:
                ended.place = place
                raise
            self._ended.popleft()
            self._position += rows
            cut, path = ended.cut, f"{folder}/{name}"
            self._news.append(LandedChunk(path, ended.first, rows, cut.reason.value, (*map(str, cut.also),), interval))
            if self._target.clock() >= interval.upper:
                warn(
                    f"{path} landed after {interval} was over: a run may have listed the folder before; run "
                    f"`tidemark ingest` for that interval again",
                    stacklevel=3,
                )

    def _take_news(self) -> list[LandedChunk]:
        landed, self._news = self._news, []
        return landed


@dataclass
class _Ended:
    """A chunk as a file that is to land, and where it may have landed already."""

    first: int
    cut: Cut
    data: bytes
    place: tuple[Interval, str, str] | None = None


class _Rows:
    """Batches of rows that wait, put together now and then."""

    def __init__(self) -> None:
        self.rows = 0
        self._loose: list[pa.RecordBatch] = []
        self._whole: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.rows += batch.num_rows
            self._loose.append(batch)
        if len(self._loose) >= _COMPACTED:
            self._whole.append(one_batch(pa.Table.from_batches(self._loose)))
            self._loose = []

    def take(self) -> pa.Table:
        rows = pa.Table.from_batches([*self._whole, *self._loose])
        self.__init__()  # type: ignore[misc]
        return rows


def _checked(rows: Any) -> pa.RecordBatch | pa.Table:
    if not isinstance(rows, pa.RecordBatch | pa.Table):
        raise InvalidUsage(
            f"a row is a dict by column, rows are an Arrow batch or table; this is {type(rows).__name__}"
        )
    return rows


def clock() -> int:
    """The time by this machine, in microseconds since 1970."""
    return time.time_ns() // 1000
