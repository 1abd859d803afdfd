"""A collection as its owner declares it: columns, where its rows come from, how it is kept. One file in
include/collections each."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import count

from tidemark.errors import InvalidUsage
from tidemark.model.column import COLUMN_NAME as COLUMN_NAME
from tidemark.model.column import FIELD_NAME as FIELD_NAME
from tidemark.model.column import HIDDEN_NAME as HIDDEN_NAME
from tidemark.model.column import MASKED as MASKED
from tidemark.model.column import MAX_PRECISION as MAX_PRECISION
from tidemark.model.column import TIMELINE_TYPES as TIMELINE_TYPES
from tidemark.model.column import Column as Column
from tidemark.model.column import ColumnType as ColumnType
from tidemark.model.column import DecimalType as DecimalType
from tidemark.model.column import ValueType as ValueType
from tidemark.model.column import parse_type as parse_type
from tidemark.model.derived import Derived as Derived
from tidemark.model.instant import MAX_TIME, format_duration
from tidemark.model.kind import ADDITIVE, Kind
from tidemark.model.landed import KINDS as KINDS
from tidemark.model.landed import Envelope as Envelope
from tidemark.model.landed import Format as Format
from tidemark.model.landed import Landed as Landed
from tidemark.model.landed import Late as Late
from tidemark.model.landed import Source as Source
from tidemark.model.layout import Layout as Layout
from tidemark.model.local_time import format_local
from tidemark.model.nearest import nearest
from tidemark.model.publication import Destination
from tidemark.model.retention import KEEP_ALL, Retention
from tidemark.model.whole import is_about_whole

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A collection's name: it becomes an object key, a DAG id and an asset name, so it is narrow on purpose."""
AT_REST = ("_bucket", "_time", "_event_time", "_diff", "_source", "_deleted", "_order", "_file", "_row")
"""Columns that all rows at rest have, or facts do, besides those of the key and the value."""
LEARNED = frozenset(("_time", "_commit_timestamp", "_commit_version"))
HAPPENED = frozenset(("_event_time", "_original_event_time", "_lateness"))
"""What is said of when a row was learned, and of when it happened: at rest, in answers and of late rows."""
LEAST_UNSORTED_ROWS, MOST_UNSORTED_ROWS = 1_024, 16_384
"""Between which numbers of rows a chunk may have to end that is not in order of its timelines; at the most it ends
anyway."""
SUITES_VERSION = 1
"""Raised when a built-in suite changes, so that certificates of the old one no longer count."""


class Covers(StrEnum):
    """What a gate certifies: unsealed batches, the frontier, or trace batches."""

    UNSEALED = "unsealed"
    FRONTIER = "frontier"
    TRACE = "trace"


class Gate(StrEnum):
    """The checks between the steps; each leaves a certificate that the next step needs. A batch that one gate has
    certified needs no other gate that covers the same. What each looks at is declared in quality/gates.py."""

    UNSEALED = "unsealed"
    FRONTIER = "frontier"
    TRACE = "trace"
    COMPACTION = "compaction"

    @property
    def covers(self) -> Covers:
        """What it certifies."""
        return COVERED[self]


COVERED = {
    Gate.UNSEALED: Covers.UNSEALED,
    Gate.FRONTIER: Covers.FRONTIER,
    Gate.TRACE: Covers.TRACE,
    Gate.COMPACTION: Covers.TRACE,
}
"""What each gate certifies."""


Origin = Landed | Derived
"""Where a collection's rows come from, discriminated by `kind`. What holds for files only is reached through
`Collection.landed`, what holds for derived collections only through `Collection.derived`, and nowhere else."""


@dataclass(frozen=True)
class Collection:
    """One collection's declaration: its columns, where its rows come from, and how it is kept.

    `quality` holds the owner's Great Expectations as canonical JSON, one string each. `live_batches` is the budget of
    trace batches: more are merged (plan/compact.py), fewer cost more writing and less reading.

    `value` are the columns users see, `dropped` those they no longer do, `hidden` those they never do: a derived
    collection's own counts, stored and merged as any value column, and in no answer. `schema` counts how often the
    columns changed (model/evolution.py). `renames` are pairs (old name, new name) that a file asks for; in a state
    those by which names were exchanged, as names do not show whether that is done. `layout` says by what time rows at
    rest are in order before they are in order of their key; it never changes. A chunk that is not in order of its
    timelines has at most `max_rows_if_unsorted` rows. The values of
    `masked` columns are left out where rows are shown to people who look after the collection: pages, logs, gates.
    `publish` says in which tables others find what it holds, one of a format. `input_columns` identifies the columns of
    its inputs, by name, number and type, over which the columns of a derived collection were found (empty: those that
    its inputs were created with).
    """

    name: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    origin: Origin
    timelines: tuple[str, ...] = ()
    quality: tuple[str, ...] = ()
    compact_ahead: bool = True
    live_batches: int = 12
    retention: Retention = KEEP_ALL
    dropped: tuple[Column, ...] = ()
    schema: int = 0
    renames: tuple[tuple[str, str], ...] = ()
    hidden: tuple[Column, ...] = ()
    layout: Layout | None = None
    max_rows_if_unsorted: int = MOST_UNSORTED_ROWS
    masked: tuple[str, ...] = ()
    publish: tuple[Destination, ...] = ()
    input_columns: str = ""

    def __post_init__(self) -> None:
        self._number_columns()
        if not NAME.fullmatch(self.name):
            raise InvalidUsage(f"collection name {self.name!r} must match {NAME.pattern}")
        if not self.key:
            raise InvalidUsage(f"collection {self.name} has no key column")
        names = [column.name for column in self.columns]
        if dotted := [name for name in names if not COLUMN_NAME.fullmatch(name)]:
            raise InvalidUsage(f"column name {dotted[0]!r} must match {COLUMN_NAME.pattern}")
        if repeated := sorted(name for name, times in Counter(names).items() if times > 1):
            raise InvalidUsage(f"collection {self.name} names columns twice: {', '.join(repeated)}")
        ids = [column.id for column in (*self.key, *self.stored_value)]
        if len(set(ids)) < len(ids):
            raise InvalidUsage(f"collection {self.name} numbers columns twice: {ids}")
        if floats := [column.name for column in self.key if column.type is ColumnType.FLOAT]:
            raise InvalidUsage(
                f"key column {floats[0]} is a float; equality of floats identifies nothing, use int, string or decimal"
            )
        if self.live_batches < 2:
            raise InvalidUsage(f"live_batches is {self.live_batches}; it must be 2 or more")
        countable = {c.name for c in self.value if c.type in TIMELINE_TYPES}
        for timeline in self.timelines:
            if timeline not in countable:
                raise InvalidUsage(f"timeline {timeline} is not a timestamp, date or int column of the value")
        if not LEAST_UNSORTED_ROWS <= self.max_rows_if_unsorted <= MOST_UNSORTED_ROWS:
            raise InvalidUsage(
                f"max_rows_if_unsorted is {self.max_rows_if_unsorted}; it must be {LEAST_UNSORTED_ROWS} to "
                f"{MOST_UNSORTED_ROWS}"
            )
        self._check_hidden()
        self._check_layout()
        match self.origin:
            case Landed():
                self._check_landed(self.origin)
            case Derived():
                self._check_derived(self.origin)

    def _check_hidden(self) -> None:
        names = [column.name for column in self.hidden]
        if wrong := [name for name in names if not HIDDEN_NAME.fullmatch(name) or name in AT_REST]:
            raise InvalidUsage(f"hidden column {wrong[0]!r} must match {HIDDEN_NAME.pattern}, and be none of {AT_REST}")
        if len(set(names)) < len(names):
            raise InvalidUsage(f"collection {self.name} names hidden columns twice: {', '.join(names)}")
        if names and not isinstance(self.origin, Derived):
            raise InvalidUsage(f"collection {self.name} has hidden columns, which only derived collections have")

    def _check_layout(self) -> None:
        if self.layout is None:
            return
        by = self.layout.by
        if by not in self.timelines:
            named = [column.name for column in self.value]
            way = f"; write timelines: [{', '.join([*self.timelines, by])}]" if by in named else nearest(by, named)
            raise InvalidUsage(f"layout by {by}, which is no timeline{way}")
        if self.type_of(by) is ColumnType.DATE:
            raise InvalidUsage(
                f"layout by {by}, which is a date; name a timestamp, or an int of microseconds, or remove layout"
            )
        if isinstance(self.origin, Derived) and self.origin.definition.windows is not None:
            raise InvalidUsage(
                f"collection {self.name} consists of windows, which are found by key and start; remove layout"
            )
        if self.kind.one_value:
            raise InvalidUsage(
                f"collection {self.name} keeps one value per key and finds it by its key, so its rows cannot be laid "
                f"out by {self.layout.by}; give the layout to a collection derived from it: from: {self.name}, "
                f"select: SELECT * FROM {self.name}"
            )

    def _check_derived(self, derived: Derived) -> None:
        if self.name in derived.inputs:
            raise InvalidUsage(f"collection {self.name} is derived from itself; name another input")
        validity, known = derived.validity, {column.name: column.type for column in self.columns}
        for name in () if validity is None else (validity.valid_from, validity.valid_to):
            if name and known.get(name) not in (ColumnType.TIMESTAMP, ColumnType.INT):
                what = f"is {known[name]}" if name in known else "is no column of it"
                raise InvalidUsage(
                    f"validity of collection {self.name} goes by {name}, which {what}; name a timestamp, or an int of "
                    "microseconds"
                )

    def _check_landed(self, landed: Landed) -> None:
        if own := [column.name for column in landed.inputs if not FIELD_NAME.fullmatch(column.name)]:
            raise InvalidUsage(f"column name {own[0]!r} must match {COLUMN_NAME.pattern}")
        for name in landed.source.order_columns:
            if self.type_of(name) is ColumnType.JSON:
                raise InvalidUsage(f"order_by column {name} is json, whose values are in no order")
        if landed.end is not None and landed.end <= landed.start:
            start, end = (format_local(at, landed.timezone) for at in (landed.start, landed.end))
            raise InvalidUsage(f"end {end} is not after start {start}; a collection starts before it ends")
        if not self.kind.has_times and (landed.time or landed.event_time):
            raise InvalidUsage(
                f"collection {self.name} is made of full snapshots, which are true at the end of their interval; "
                "remove time and event_time columns"
            )
        if not self.kind.has_times and landed.late != Late():
            raise InvalidUsage(
                f"collection {self.name} is made of full snapshots, of which no row is late; remove late"
            )
        self._check_reprocessed(landed)
        if landed.batching is not None:
            landed.check_cuttable()
            if landed.batching.watermark and landed.happened_in is None:
                raise InvalidUsage(
                    f"batches: {{watermark: true}} goes by event times, and rows of collection {self.name} bring none; "
                    "declare event_time or time: {column: ...}, or leave watermark out"
                )

    def _check_reprocessed(self, landed: Landed) -> None:
        kept, needed = self.retention.keeps_all_for, landed.corrected_reach
        if not needed or not self.kind.corrects_history or kept is None or kept >= needed:
            return
        endless = needed == MAX_TIME
        lateness = "rows of any lateness" if endless else f"max_lateness {format_duration(landed.late.reach)}"
        raise InvalidUsage(
            f"retention keeps every time for {format_duration(kept)}, "
            f"reprocess_for {format_duration(landed.reprocess_for)} with {lateness} needs "
            f"{'all' if endless else format_duration(needed)}; "
            f"write retention: {'all' if endless else f'[{{keep: all, for: {format_duration(needed)}}}, ...]'}"
        )

    def _number_columns(self) -> None:
        """Columns without an id get the next ones: as first declared, 1 and on, the key first, then the value."""
        ids = count(max((column.id for column in (*self.columns, *self.hidden, *self.dropped)), default=0) + 1)
        for name in ("key", "value", "hidden"):
            numbered = tuple(c if c.id else replace(c, id=next(ids)) for c in getattr(self, name))
            object.__setattr__(self, name, numbered)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.key, *self.value)

    def column(self, name: str) -> Column:
        """The column of a name that it has."""
        return next(column for column in self.columns if column.name == name)

    @property
    def stored_value(self) -> tuple[Column, ...]:
        """The value columns of rows at rest, by id: also the hidden ones, and the dropped ones, null in rows written
        since."""
        return tuple(sorted((*self.value, *self.unseen), key=lambda column: column.id))

    @property
    def unseen(self) -> tuple[Column, ...]:
        """The value columns at rest that no answer has: rows that differ in these alone are one row to users."""
        return (*self.hidden, *self.dropped)

    @property
    def unshown(self) -> frozenset[str]:
        """The columns whose values people are not shown: those that are masked and, where a time of the rows is read
        from one of these, what Tidemark keeps and reports of that time."""
        landed = self.origin if isinstance(self.origin, Landed) else None
        hidden = set(self.masked)
        if landed and landed.time in self.masked:
            hidden |= LEARNED
        if landed and (landed.event_time or landed.time) in self.masked:
            hidden |= HAPPENED
        return frozenset(hidden)

    @property
    def computed_as(self) -> str:
        """What rows of a derived collection follow from and are kept in: its definition, and the numbers of its value
        columns. Another one, and what it holds says nothing of what it is to hold: of a column that went and came back
        no value is left, and columns that exchanged names have each other's."""
        numbers: list[object] = [[column.id for column in columns] for columns in (self.value, self.hidden)]
        numbers += [self.renames] if self.renames else []
        kept = hashlib.sha256(json.dumps(numbers, separators=(",", ":")).encode()).hexdigest()[:8]
        return ".".join(filter(None, (self.derived.fingerprint, kept, self.input_columns)))

    @property
    def is_derived(self) -> bool:
        """Whether its rows are computed from other collections; else they land as files."""
        return isinstance(self.origin, Derived)

    @property
    def landed(self) -> Landed:
        """The origin, of whoever has to do with files: sources, intervals, lateness. InvalidUsage if it is derived."""
        if isinstance(self.origin, Derived):
            inputs = ", ".join(self.origin.inputs)
            raise InvalidUsage(
                f"collection {self.name} is derived, it has no source; its rows follow from {inputs}: "
                f"`tidemark correct {self.name}` brings it up to date"
            )
        return self.origin

    @property
    def derived(self) -> Derived:
        """The origin, of whoever has to do with inputs and definitions. InvalidUsage if it is landed."""
        if isinstance(self.origin, Landed):
            raise InvalidUsage(
                f"collection {self.name} is not derived, its rows land as files: `tidemark ingest {self.name}` reads "
                "them; one that is computed has `from:` and `select:` in its file"
            )
        return self.origin

    @property
    def correctable_for(self) -> int:
        """How far below what is complete an interval may begin whose files may be read again; 0: none may."""
        return 0 if isinstance(self.origin, Derived) else self.origin.reprocess_for

    @property
    def corrected_reach(self) -> int:
        """How far below what is complete a row that is corrected may have happened."""
        return 0 if isinstance(self.origin, Derived) else self.origin.corrected_reach

    @property
    def corrected_share(self) -> float | None:
        """Of the rows of an interval that is read again, at most so many may be corrected; None: many are a warning."""
        return None if isinstance(self.origin, Derived) else self.origin.corrected_share

    @property
    def min_share(self) -> float:
        """The share of the rows of the full snapshot before that one must have; 0 where nothing is compared."""
        return 0 if isinstance(self.origin, Derived) else self.origin.source.least_share

    @cached_property
    def judges_whole(self) -> bool:
        """Whether an expectation is about an interval's whole content, so that one without rows is judged, too."""
        return any(is_about_whole(name) for entry in self.quality for name in json.loads(entry))

    @property
    def order_by(self) -> str | None:
        """The column by which facts of one time are in order, where it is one column."""
        if isinstance(self.origin, Derived) or self.origin.source.has_places:
            return None
        return next(iter(self.origin.source.order_columns), None)

    @property
    def has_places(self) -> bool:
        """Whether facts of one time are in order by a place, the bytes of several fields."""
        return not isinstance(self.origin, Derived) and self.origin.source.has_places

    @property
    def has_transactions(self) -> bool:
        """Whether facts of one transaction are one change of their key (model/transaction.py)."""
        return not isinstance(self.origin, Derived) and self.origin.source.transactions

    @property
    def zone(self) -> str:
        """By whose clock people are shown its intervals; a derived one has none of its own."""
        return "UTC" if isinstance(self.origin, Derived) else self.origin.timezone

    @property
    def start(self) -> int:
        """Where its intervals are counted from; of a derived one, the beginning of time."""
        return 0 if isinstance(self.origin, Derived) else self.origin.start

    @property
    def kind(self) -> Kind:
        """What its unsealed rows are and how they become updates (model/kind.py)."""
        match self.origin:
            case Landed():
                return KINDS[self.origin.source.envelope]
            case Derived():
                return ADDITIVE

    @property
    def lateness(self) -> int:
        """How far below what is complete a row to come may have happened and still apply, in microseconds."""
        match self.origin:
            case Landed():
                return self.origin.late.reach
            case Derived():
                return 0

    def type_of(self, name: str) -> ValueType:
        """The type of a source column: as declared, else int for the diff, else timestamp."""
        if name in self._types:
            return self._types[name]
        return ColumnType.INT if name == self.landed.source.diff else ColumnType.TIMESTAMP

    @cached_property
    def _types(self) -> dict[str, ValueType]:
        inputs = () if isinstance(self.origin, Derived) else self.origin.inputs
        return {column.name: column.type for column in (*inputs, *self.columns)}

    def suite(self, gate: Gate) -> str:
        """The fingerprint of a gate's suite, found once: it is asked for with every change that is folded."""
        return self._suites[gate]

    @cached_property
    def _suites(self) -> dict[Gate, str]:
        return {gate: self._suite(gate) for gate in Gate}

    def _suite(self, gate: Gate) -> str:
        """The fingerprint of the suite a gate runs: another one when the built-in or the owner's checks change."""
        shares: list[object] = [] if self.corrected_share is None else [self.corrected_share]
        # Where none is declared the fingerprint is that of releases without it: their certificates hold.
        declared = None if isinstance(self.origin, Derived) else self.origin.source.min_share
        shares += [] if declared is None else [f"min_share {declared:g}"]
        asked = (self.quality, *shares) if gate.covers is Covers.UNSEALED else ((),)
        text = json.dumps((SUITES_VERSION, gate, *asked), separators=(",", ":"))
        return f"{gate}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
