"""What has landed of the interval that goes on and is not counted yet, looked at again and again; and when that is to
be ingested. Reads the landing and the state; and rows only where event times cut: the first ones of new files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tidemark.arrow.rows.memory import memory
from tidemark.config.schedule import Schedule
from tidemark.config.template import pattern_of
from tidemark.model.arrangement import Arrangement
from tidemark.model.batching.cutting import Batching, Cutter, Open, Seen
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.change import CUT, Ingested
from tidemark.model.collection import Collection
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status
from tidemark.plan.ingest import left_to_cut
from tidemark.plan.task_size import GUESSED
from tidemark.storage import landing
from tidemark.storage.log.log import StateLog
from tidemark.storage.sidecars import ledger

COMPARED = 200
"""Files counted last, by which the rows of those that come are estimated."""
AGAIN = 600_000_000
"""Microseconds after which files that were announced, and are still not counted, are announced again."""
MOST_OPENED = 20
"""Files whose event times are looked at in one look: the newest ones."""
LOOKED_BACK = 200
"""Versions looked through for a cut by event time; behind them one may be made again, which costs a small batch."""
MOST_PAUSE = 5_000_000
"""Microseconds between two looks, at most: lengths are kept to this."""


@dataclass(frozen=True)
class Due:
    """What is to be ingested now, of an interval that goes on, and why."""

    interval: Interval
    cut: Cut

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        bounds = {"lower": format_instant(self.interval.lower), "upper": format_instant(self.interval.upper)}
        return {**bounds, "cut": self.cut.as_dict()}


def open_interval(collection: Collection, now: int) -> Interval | None:
    """The interval of the schedule that goes on at a time; None before the collection's start, and after its end."""
    landed, schedule = collection.landed, Schedule.of(collection.landed)
    if now < landed.start or (landed.end is not None and now >= landed.end):
        return None
    return schedule.interval_from(schedule.latest(now))


def pause_of(batching: Batching) -> int:
    """How often to look, in microseconds: at least as often as a batch may be cut."""
    return min(batching.least_length or MOST_PAUSE, MOST_PAUSE)


@dataclass
class Arrivals:
    """Remembers between looks how fast files came, and what was announced: nothing that a look at the landing would not
    bring back. `collection` has rules of batching; `listed` lists the landing.

    What was announced is not announced again until it is counted, or AGAIN has passed: who ingests it may have died.
    """

    collection: Collection
    log: StateLog
    landing_root: str
    listed: Callable[..., list[SourceFile]] = landing.list_named
    _interval: Interval | None = None
    _cutter: Cutter | None = None
    _seen: dict[str, str] = field(default_factory=dict)
    _announced: dict[str, tuple[str, int]] = field(default_factory=dict)
    _counted: dict[str, str] = field(default_factory=dict)
    _first_times: dict[tuple[str, str], int | None] = field(default_factory=dict)
    _passed_by: frozenset[str] | None = None
    """The files with which event time passed the interval's end; None: it has not."""
    _rows_per_byte: float | None = None

    def look(self, now: int) -> Due | None:
        """What is due at a time by the clock, in microseconds; None if nothing is. Raises what listing the landing and
        reading the state do."""
        interval = open_interval(self.collection, now)
        if interval != self._interval:
            self._interval, self._seen, self._announced, self._counted = interval, {}, {}, {}
            self._first_times, self._passed_by = {}, None
        if interval is None:
            return None
        files = self._listed(interval)
        self._counted = {file.identity: token for file in files if (token := self._counted.get(file.identity))}
        left = [file for file in files if self._counted.get(file.identity) != file.token]
        # The state is read only where something may have to be done.
        pending = self._pending(interval, left, now) if left else ()
        cutter = self._arrived(files, now)
        size = sum(file.bytes for file in pending)
        opened = min((file.landed_at for file in pending), default=now)
        batch = Open(min(now, opened), round(size * (self._rows_per_byte or 0)), size) if pending else None
        seen = Seen(memory=memory_share(self.collection, size), watermark=self._passes(interval, pending))
        self._cutter, cut = cutter.cut(batch, now, seen)
        if cut is None:
            return None
        self._announced |= {file.identity: (file.token, now) for file in pending}
        return Due(interval, cut)

    def _listed(self, interval: Interval) -> list[SourceFile]:
        pattern = pattern_of(self.collection.landed, interval, self.landing_root)
        within = self.landing_root if landing.below(pattern, self.landing_root) else None
        return self.listed(pattern, self.landing_root, within=within)

    def _pending(self, interval: Interval, files: Sequence[SourceFile], now: int) -> tuple[SourceFile, ...]:
        """Of the files those that a cut would take now, and that were not announced lately."""
        state = self.log.load().arrangement
        known = {} if state is None else ledger.known(self.log.store, state.ledger, [file.identity for file in files])
        if state is not None:
            self._rows_per_byte = _rows_per_byte(self.log, state) or self._rows_per_byte
            if state.ingested.covers(interval):
                return ()
        counted = {file.identity: file.token for file in files if _is_counted(known.get(file.identity))}
        self._counted |= counted
        batching = self.collection.landed.batching
        assert batching is not None  # who has none is not looked at
        some = left_to_cut(files, known, settled_by=now - batching.settle)
        return tuple(file for file in some if not self._was_announced(file, now))

    def _passes(self, interval: Interval, pending: Sequence[SourceFile]) -> bool:
        """Whether event time passes the interval's end with these files, and had not before.

        It passes with a file whose first rows all happened at or after that: a single row far in the future is no such
        file, unless it is alone in it, and what comes after is not cut for it again.
        """
        batching = self.collection.landed.batching
        if batching is None or not batching.watermark:
            return False
        newest = sorted(pending, key=lambda file: file.landed_at)[-MOST_OPENED:]
        past = frozenset(file.identity for file in newest if (self._first_time(file) or 0) >= interval.upper)
        if past and self._passed_by is None:
            # Begun again, it may have been reported by the process before.
            self._passed_by = frozenset() if self._was_cut_by_watermark(interval) else past
        return not past.isdisjoint(self._passed_by or ())

    def _first_time(self, file: SourceFile) -> int | None:
        which = (file.identity, file.token)
        if which not in self._first_times:
            from tidemark.arrow.decode.first_rows import first_event_time  # Arrow: not for whoever parses DAGs

            self._first_times[which] = first_event_time(file, self.collection)
        return self._first_times[which]

    def _was_cut_by_watermark(self, interval: Interval) -> bool:
        for record in islice(self.log.history(), LOOKED_BACK):
            change = record.change
            if isinstance(change, Ingested) and change.fence.step == CUT and change.fence.interval == interval:
                cut = change.cut
                if cut is not None and Reason.WATERMARK in (cut.reason, *cut.also):
                    return True
        return False

    def _was_announced(self, file: SourceFile, now: int) -> bool:
        token, at = self._announced.get(file.identity, ("", 0))
        # A clock that steps back makes nothing wait for ever.
        return token == file.token and 0 <= now - at < AGAIN

    def _arrived(self, files: Sequence[SourceFile], now: int) -> Cutter:
        """With the bytes that are new in the landing, when they landed; what lands from the future has just come. Not
        with their rows: what came before anything was counted would be none of these, and look like a quiet time."""
        batching = self.collection.landed.batching
        assert batching is not None
        cutter = replace(self._cutter or Cutter.of(batching), rows_each=self._rows_per_byte)
        new = [file for file in files if self._seen.get(file.identity) != file.token]
        for file in sorted(new, key=lambda file: file.landed_at):
            cutter = cutter.arrived(min(file.landed_at, now), file.bytes)
        self._seen = {file.identity: file.token for file in files}
        return cutter


def memory_share(collection: Collection, size: int) -> float:
    """Which share of the memory for buffers files of so many bytes are estimated to take, decoded; none is opened."""
    return size * GUESSED[collection.landed.source.format].decoded / memory().maximum


def _is_counted(entry: LedgerEntry | None) -> bool:
    return entry is not None and entry.status is Status.INGESTED


def _rows_per_byte(log: StateLog, state: Arrangement) -> float | None:
    """Rows of a byte in the files that were counted last; None where none was, or they had no row."""
    rows = size = 0
    for run in reversed(state.ledger):
        for entry in islice(ledger.scan(log.store, run), COMPARED):
            if entry.status is Status.INGESTED and entry.replay_of is None and not entry.is_corrected:
                rows, size = rows + entry.rows + entry.rows_late_discarded, size + entry.bytes
        if size:
            return rows / size or None
    return None
