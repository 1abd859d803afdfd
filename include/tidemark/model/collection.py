"""A collection as its owner declares it: columns, envelope, times, lateness. One file in include/collections each."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A collection's name: it becomes an object key, a DAG id and an asset name, so it is narrow on purpose."""
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,126}")
"""A column's name. Names that start with an underscore belong to Tidemark."""
SUITES_VERSION = 1
"""Raised when a built-in suite changes, so that certificates of the old one no longer count."""


class ColumnType(StrEnum):
    """Column types. `int` is int64, `float` IEEE double, `timestamp` UTC microseconds, `date` days since the epoch."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"


class Envelope(StrEnum):
    """What a source row says: `append` +1, `updates` a signed diff, `upsert` what a key's value became."""

    APPEND = "append"
    UPDATES = "updates"
    UPSERT = "upsert"


class Format(StrEnum):
    """File formats of a source. `jsonl` is one JSON object a line."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


class Gate(StrEnum):
    """The checks between the steps; each leaves a certificate the next step needs."""

    UNSEALED = "unsealed"
    FRONTIER = "frontier"
    TRACE = "trace"
    COMPACTION = "compaction"


@dataclass(frozen=True)
class Column:
    """A typed column of the key or the value. Key columns hold no nulls and are never floats."""

    name: str
    type: ColumnType

    def __post_init__(self) -> None:
        if not COLUMN_NAME.fullmatch(self.name):
            raise InvalidUsage(f"column name {self.name!r} must match {COLUMN_NAME.pattern}")


@dataclass(frozen=True)
class Source:
    """Where a collection's delta files land and how to read them.

    `path` is a glob with `{{ ds }}` and the like; `ready` is `exists`, `always` or the name of a marker file;
    `bad_files` says whether an unreadable or wrong file stops its interval or is quarantined while the rest goes on.
    """

    path: str
    format: Format
    envelope: Envelope
    order_by: str | None = None
    diff: str = "diff"
    delete_when: str | None = None
    ready: str = "exists"
    bad_files: str = "stop"

    def __post_init__(self) -> None:
        if self.bad_files not in ("stop", "quarantine"):
            raise InvalidUsage(f"bad_files is {self.bad_files!r}; it must be stop or quarantine")
        if self.envelope is not Envelope.UPSERT and (self.order_by or self.delete_when):
            raise InvalidUsage(f"order_by and delete_when belong to the upsert envelope, not to {self.envelope}")


@dataclass(frozen=True)
class Late:
    """What happens to source rows below the seal: `discard` keeps them as dead letters, `reemit` applies them as
    corrections up to `max_lateness` microseconds below the seal and discards the rest (None: however late)."""

    policy: str = "discard"
    max_lateness: int | None = None

    def __post_init__(self) -> None:
        if self.policy not in ("discard", "reemit"):
            raise InvalidUsage(f"late policy {self.policy!r} is not one of discard, reemit")
        if self.policy == "discard" and self.max_lateness is not None:
            raise InvalidUsage("late: discard takes no max_lateness; write {reemit: {max_lateness: ...}}")

    @property
    def reach(self) -> int:
        """How far below the seal a row may still apply, in microseconds."""
        if self.policy == "discard":
            return 0
        return MAX_TIME if self.max_lateness is None else self.max_lateness


@dataclass(frozen=True)
class Collection:
    """One collection's declaration. Times in microseconds; `end` is exclusive, None means it never ends.

    `quality` holds the owner's Great Expectations as canonical JSON, one string each. `inputs` types the columns that
    are read from the source and not kept (`time`, `event_time`, `order_by`, those of `delete_when`).
    """

    name: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    source: Source
    start: int = 0
    end: int | None = None
    time: str | None = None
    event_time: str | None = None
    timelines: tuple[str, ...] = ()
    schedule: str = "@daily"
    grace: int = 0
    late: Late = Late()
    quality: tuple[str, ...] = ()
    compact_ahead: bool = True
    inputs: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidUsage(f"collection name {self.name!r} must match {NAME.pattern}")
        if not self.key:
            raise InvalidUsage(f"collection {self.name} has no key column")
        names = [column.name for column in self.columns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidUsage(f"collection {self.name} names columns twice: {', '.join(repeated)}")
        if floats := [column.name for column in self.key if column.type is ColumnType.FLOAT]:
            raise InvalidUsage(
                f"key column {floats[0]} is a float; equality of floats identifies nothing, use int or string"
            )
        if self.end is not None and self.end <= self.start:
            raise InvalidUsage(f"collection {self.name} ends at {self.end} before it starts at {self.start}")
        for timeline in self.timelines:
            if timeline not in [c.name for c in self.value if c.type in (ColumnType.TIMESTAMP, ColumnType.INT)]:
                raise InvalidUsage(f"timeline {timeline} is not a timestamp or int column of the value")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.key, *self.value)

    def type_of(self, name: str) -> ColumnType:
        """The type of a source column: as declared, else int for the diff, else timestamp."""
        declared = {column.name: column.type for column in (*self.inputs, *self.columns)}
        return declared.get(name, ColumnType.INT if name == self.source.diff else ColumnType.TIMESTAMP)

    @property
    def keyed(self) -> bool:
        """Whether source rows are facts about a key, resolved at the drain, and not updates already."""
        return self.source.envelope is Envelope.UPSERT

    def suite(self, gate: Gate) -> str:
        """The fingerprint of the suite a gate runs: another one when the built-in or the owner's checks change."""
        owners = self.quality if gate is Gate.UNSEALED else ()
        text = json.dumps([SUITES_VERSION, gate, owners], separators=(",", ":"))
        return f"{gate}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def frozen(self) -> dict[str, Any]:
        """The part of the declaration that data at rest depends on: it cannot change after `init`."""
        names = ("name", "key", "value", "start", "time", "event_time")
        frozen = {field.name: getattr(self, field.name) for field in fields(self) if field.name in names}
        order_by = self.source.order_by
        order = (order_by, self.type_of(order_by)) if order_by else None
        return frozen | {"envelope": self.source.envelope, "order_by": order}
