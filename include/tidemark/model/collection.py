"""A collection as its owner declares it: columns, envelope, times, lateness. One file in include/collections each."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import count
from typing import Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, format_duration
from tidemark.model.kind import ADDITIVE, FULL_SNAPSHOT, KEYED, Kind
from tidemark.model.retention import KEEP_ALL, Retention

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A collection's name: it becomes an object key, a DAG id and an asset name, so it is narrow on purpose."""
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,126}")
"""A column's name. Names that start with an underscore belong to Tidemark."""
FIELD_NAME = re.compile(rf"{COLUMN_NAME.pattern}(\.[A-Za-z_][A-Za-z0-9_]*)*")
"""What is read from a source and not kept may be a field within a message: `source.ts_ms`."""
SUITES_VERSION = 1
"""Raised when a built-in suite changes, so that certificates of the old one no longer count."""


class ColumnType(StrEnum):
    """Column types without parameters. `int` is int64, `float` IEEE double, `timestamp` UTC microseconds, `date` days
    since the epoch, `json` a JSON value as its canonical text (model/canonical_json.py)."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BYTES = "bytes"
    JSON = "json"


MAX_PRECISION = 38
"""Digits of a decimal: as many as 128 bits hold, whatever the digits are."""


@dataclass(frozen=True)
class DecimalType:
    """Exact decimals: at most `precision` digits, `scale` of them behind the point. What has more is refused, never
    rounded."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_PRECISION:
            raise InvalidUsage(f"{self} has {self.precision} digits; a decimal has 1 to {MAX_PRECISION}")
        if not 0 <= self.scale <= self.precision:
            raise InvalidUsage(
                f"{self} has {self.scale} digits behind the point; it may have 0 to {self.precision}, as many as in all"
            )

    @property
    def whole_digits(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


ValueType = ColumnType | DecimalType
"""What a column holds."""
_DECIMAL = re.compile(r"decimal\(\s*(-?[0-9]{1,4})\s*,\s*(-?[0-9]{1,4})\s*\)")


def parse_type(text: str) -> ValueType:
    """The type of that name: `int`, `decimal(12, 2)`. Raises InvalidUsage for any other text."""
    if match := _DECIMAL.fullmatch(text):
        return DecimalType(int(match[1]), int(match[2]))
    if text.startswith(("decimal", "numeric")):
        raise InvalidUsage(
            f"{text[:40]!r} is no type; write 'decimal(12, 2)': digits in all, digits behind the point "
            "(in quotes where it stands within braces)"
        )
    if text not in set(ColumnType):
        raise InvalidUsage(f"{text[:40]!r} is no type; the types are {', '.join(ColumnType)} and decimal(12, 2)")
    return ColumnType(text)


class Envelope(StrEnum):
    """What a source row says: `append` +1, `updates` a signed diff, `upsert` what a key's value became, `debezium` a
    change message (op, before, after), `snapshot` that it is one of all rows there are."""

    APPEND = "append"
    UPDATES = "updates"
    UPSERT = "upsert"
    DEBEZIUM = "debezium"
    SNAPSHOT = "snapshot"


KINDS: dict[Envelope, Kind] = {
    Envelope.APPEND: ADDITIVE,
    Envelope.UPDATES: ADDITIVE,
    Envelope.UPSERT: KEYED,
    Envelope.DEBEZIUM: KEYED,
    Envelope.SNAPSHOT: FULL_SNAPSHOT,
}
"""What landed rows of each envelope are."""


class Format(StrEnum):
    """File formats of a source. `jsonl` is one JSON object a line."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


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


@dataclass(frozen=True)
class Column:
    """A typed column of the key or the value. Key columns hold no nulls and are never floats.

    `id` is its own for ever in its collection, whatever it is called; 0 until a collection numbers it.
    """

    name: str
    type: ValueType
    id: int = 0

    def __post_init__(self) -> None:
        if not FIELD_NAME.fullmatch(self.name):
            raise InvalidUsage(f"column name {self.name!r} must match {COLUMN_NAME.pattern}")


@dataclass(frozen=True)
class Source:
    """Where a collection's delta files land and how to read them.

    `path` is a glob with `{{ ds }}` and the like; `ready` is `exists`, `always` or the name of a marker file;
    `bad_files` says whether an unreadable or wrong file stops its interval or is quarantined while the rest goes on.
    `units` says what the numbers of some columns count since the epoch (debezium; one of UNITS each), `decimals` what
    the texts in its decimal columns are: `string`, or `precise` (base64); empty if there are none.
    """

    path: str
    format: Format
    envelope: Envelope
    order_by: str | None = None
    diff: str = "diff"
    delete_when: str | None = None
    ready: str = "exists"
    bad_files: str = "stop"
    units: tuple[tuple[str, str], ...] = ()
    decimals: str = ""

    def __post_init__(self) -> None:
        if self.decimals not in ("", "string", "precise"):
            raise InvalidUsage(f"decimals is {self.decimals!r}; it must be string or precise")
        if self.decimals and self.envelope is not Envelope.DEBEZIUM:
            raise InvalidUsage(f"decimals belong to the debezium envelope, not to {self.envelope}")
        if self.bad_files not in ("stop", "quarantine"):
            raise InvalidUsage(f"bad_files is {self.bad_files!r}; it must be stop or quarantine")
        if self.order_by and self.envelope not in (Envelope.UPSERT, Envelope.DEBEZIUM):
            raise InvalidUsage(f"order_by belongs to the envelopes upsert and debezium, not to {self.envelope}")
        if self.delete_when and self.envelope is not Envelope.UPSERT:
            raise InvalidUsage(f"delete_when belongs to the upsert envelope, not to {self.envelope}")
        if self.units and self.envelope is not Envelope.DEBEZIUM:
            raise InvalidUsage(f"units belong to the debezium envelope, not to {self.envelope}")
        if self.envelope is Envelope.DEBEZIUM and self.format is Format.CSV:
            raise InvalidUsage("debezium messages are nested, and csv holds no nested values; use jsonl or parquet")
        if self.envelope is Envelope.SNAPSHOT and self.bad_files != "stop":
            raise InvalidUsage(
                "a full snapshot that lacks a file would delete its rows: bad_files is stop for a snapshot"
            )


@dataclass(frozen=True)
class Late:
    """What happens to source rows of what is complete: `discard` keeps them as dead letters, `next_window` applies them
    as if they had happened at the seal, `reemit` applies them as corrections up to `max_lateness` microseconds below
    what is complete and discards the rest (None: however late)."""

    policy: str = "discard"
    max_lateness: int | None = None

    def __post_init__(self) -> None:
        if self.policy not in ("discard", "next_window", "reemit"):
            raise InvalidUsage(f"late policy {self.policy!r} is not one of discard, next_window, reemit")
        if self.policy != "reemit" and self.max_lateness is not None:
            raise InvalidUsage(f"late: {self.policy} takes no max_lateness; write {{reemit: {{max_lateness: ...}}}}")

    @property
    def reach(self) -> int:
        """How far below what is complete a row that applies may have happened, in microseconds."""
        if self.policy != "reemit":
            return 0
        return MAX_TIME if self.max_lateness is None else self.max_lateness


@dataclass(frozen=True)
class Landed:
    """The origin of a collection whose rows land as files: where and how, when, and what may come late.

    Times in microseconds. Intervals are cut by `schedule` and counted from `start`; `end` is exclusive, None means it
    never ends; completeness stays `grace` behind what was ingested. An interval that begins up to `reprocess_for` below
    what is complete may be read again, which corrects what its files said (0: none may), of its rows at most the
    `corrected_share` (None: many are a warning). `time` and `event_time` name the source columns that say when a row
    was learned and when it happened (None: on arrival; when it was learned).
    `inputs` types the columns that are read and not kept (those two, `order_by`, those of `delete_when`).
    """

    source: Source
    start: int = 0
    end: int | None = None
    time: str | None = None
    event_time: str | None = None
    schedule: str = "@daily"
    grace: int = 0
    late: Late = Late()
    inputs: tuple[Column, ...] = ()
    reprocess_for: int = 0
    corrected_share: float | None = None
    kind: Literal["landed"] = "landed"

    @property
    def corrected_reach(self) -> int:
        """How far below what is complete a row that is corrected may have happened."""
        return min(MAX_TIME, self.reprocess_for + self.late.reach) if self.reprocess_for else 0


Origin = Landed
"""Where a collection's rows come from, discriminated by `kind`. What is made of other collections will be a second
variant of this union: what holds for files only is reached through `Collection.landed`, and nowhere else."""


@dataclass(frozen=True)
class Collection:
    """One collection's declaration: its columns, where its rows come from, and how it is kept.

    `quality` holds the owner's Great Expectations as canonical JSON, one string each. `live_batches` is the budget of
    trace batches: more are merged (plan/compact.py), fewer cost more writing and less reading.

    `value` are the columns users see, `dropped` those they no longer do. `schema` counts how often the columns changed
    (model/evolution.py). `renames` are pairs (old name, new name) that a file asks for; in a state there are none.
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
        countable = {c.name for c in self.value if c.type in (ColumnType.TIMESTAMP, ColumnType.INT)}
        for timeline in self.timelines:
            if timeline not in countable:
                raise InvalidUsage(f"timeline {timeline} is not a timestamp or int column of the value")
        if isinstance(self.origin, Landed):
            self._check_landed(self.origin)

    def _check_landed(self, landed: Landed) -> None:
        order_by = landed.source.order_by
        if order_by and self.type_of(order_by) is ColumnType.JSON:
            raise InvalidUsage(f"order_by column {order_by} is json, whose values are in no order")
        if landed.end is not None and landed.end <= landed.start:
            raise InvalidUsage(f"collection {self.name} ends at {landed.end} before it starts at {landed.start}")
        if not self.kind.tells_times and (landed.time or landed.event_time):
            raise InvalidUsage(
                f"collection {self.name} is made of full snapshots, which are true at the end of their interval; "
                "remove time and event_time columns"
            )
        if not self.kind.tells_times and landed.late != Late():
            raise InvalidUsage(
                f"collection {self.name} is made of full snapshots, of which no row is late; remove late"
            )
        self._check_reprocessed(landed)

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
        """Columns without an id get the next ones: as first declared, 1 and on, the key before the value."""
        ids = count(max((column.id for column in (*self.columns, *self.dropped)), default=0) + 1)
        for name in ("key", "value"):
            numbered = tuple(c if c.id else replace(c, id=next(ids)) for c in getattr(self, name))
            object.__setattr__(self, name, numbered)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.key, *self.value)

    @property
    def stored_value(self) -> tuple[Column, ...]:
        """The value columns of rows at rest, by id: also the dropped ones, null in rows written since."""
        return tuple(sorted((*self.value, *self.dropped), key=lambda column: column.id))

    @property
    def landed(self) -> Landed:
        """The origin, of whoever has to do with files: sources, intervals, lateness."""
        return self.origin

    @property
    def kind(self) -> Kind:
        """What its unsealed rows are and how they become updates (model/kind.py)."""
        match self.origin:
            case Landed():
                return KINDS[self.origin.source.envelope]

    @property
    def lateness(self) -> int:
        """How far below what is complete a row to come may have happened and still apply, in microseconds."""
        match self.origin:
            case Landed():
                return self.origin.late.reach

    def type_of(self, name: str) -> ValueType:
        """The type of a source column: as declared, else int for the diff, else timestamp."""
        return self._types.get(name, ColumnType.INT if name == self.landed.source.diff else ColumnType.TIMESTAMP)

    @cached_property
    def _types(self) -> dict[str, ValueType]:
        return {column.name: column.type for column in (*self.landed.inputs, *self.columns)}

    def suite(self, gate: Gate) -> str:
        """The fingerprint of the suite a gate runs: another one when the built-in or the owner's checks change."""
        share = self.landed.corrected_share
        asked = (self.quality, *(() if share is None else (share,))) if gate.covers is Covers.UNSEALED else ((),)
        text = json.dumps((SUITES_VERSION, gate, *asked), separators=(",", ":"))
        return f"{gate}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
