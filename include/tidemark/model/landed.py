"""The origin of a collection whose rows land as files: envelope, format, source, times, lateness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tidemark.errors import InvalidUsage
from tidemark.model import field_path
from tidemark.model.batching.cutting import Batching
from tidemark.model.column import Column
from tidemark.model.dialect import PLAIN_CSV, Csv, check_compression
from tidemark.model.epoch import unit_of
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.model.kind import ADDITIVE, FULL_SNAPSHOT, KEYED, Kind
from tidemark.model.place import OrderBy, by_connector, columns
from tidemark.model.unavailable import UNAVAILABLE, placeholder


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


DEFAULT_MIN_SHARE = 0.5
# A source loses half of its rows overnight less often than a night's export breaks off.

FIRST_ROW = {Format.PARQUET: ("row", 1), Format.JSONL: ("line", 1), Format.CSV: ("line", 2)}
"""What people count in a file of each format, and the number of its first row: rows from 1, or lines as an editor
counts them, the header included."""


@dataclass(frozen=True)
class Source:
    """Where a collection's delta files land and how to read them.

    `path` is a glob with `{{ ds }}` and the like; `ready` is `exists`, `always` or the name of a marker file;
    `bad_files` says whether an unreadable or wrong file stops its interval or is quarantined while the rest goes on.
    `order_by` puts rows of one key in order that happened at one time; where that is messages' connector, `server` is
    whose they are (empty: not known yet). `units` says what the numbers of some columns count since the epoch (one of
    UNITS each), `decimals` what the texts in decimal columns of messages are: `string`, or `precise` (base64); empty if
    there are none; `column_decimals` says so of some columns, in any envelope. `beyond` says of some columns what
    becomes of times before the year 1 and after 9999: `refuse`, `null` or `clip`. Rows for which `only`, a condition,
    is not true are left out. `table` is that whose messages were taken, as such a condition (empty: not known yet;
    None: declared before 0.7.0, when messages of several tables were not refused, and are not). A full snapshot that
    has fewer than `min_share` of the rows of the one before asks a person (None: DEFAULT_MIN_SHARE, 0: none does).
    `duplicate_files` says what becomes of a file with the bytes of another of its interval, where rows add up:
    `refuse`, `count`, or `skip` (None: declared before 0.7.0, counted).
    `csv` is the dialect of CSV files; `compression` how files of texts are compressed (`auto`: as their names end);
    `rows` the field of a file's one JSON object that has the array of rows (empty: there is no such object).
    `transactions` says whether messages of one transaction are one change, so that facts have theirs, and what they
    lack (False: declared before 0.7.0, or nothing puts messages in order); `unavailable` is what stands for a value
    that the database did not log, as its connector has it (empty: UNAVAILABLE).

    Of some columns: `from_fields` says what they are called in files, the first that is there; `from_paths` that they
    are in a file's path, in a folder `name=value`, or as the group of a pattern; `optional` that they may be missing,
    and null where no row before has what a message lacks.
    `timezones` says whose clock times without an offset are by, `ambiguous` which of two instants is meant (`earlier`,
    `later`; else they are refused), `formats` how texts write times, by the codes of strftime.
    """

    path: str
    format: Format
    envelope: Envelope
    order_by: OrderBy = None
    diff: str = "diff"
    delete_when: str | None = None
    ready: str = "exists"
    bad_files: str = "stop"
    units: tuple[tuple[str, str], ...] = ()
    decimals: str = ""
    min_share: float | None = None
    server: str = ""
    only: str | None = None
    table: str | None = None
    column_decimals: tuple[tuple[str, str], ...] = ()
    beyond: tuple[tuple[str, str], ...] = ()
    duplicate_files: str | None = None
    csv: Csv = PLAIN_CSV
    compression: str = "auto"
    rows: str = ""
    from_fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    from_paths: tuple[tuple[str, str], ...] = ()
    optional: tuple[str, ...] = ()
    timezones: tuple[tuple[str, str], ...] = ()
    ambiguous: tuple[tuple[str, str], ...] = ()
    formats: tuple[tuple[str, str], ...] = ()
    transactions: bool = False
    unavailable: str = ""

    def __post_init__(self) -> None:
        for decimals in (self.decimals or "string", *dict(self.column_decimals).values()):
            if decimals not in ("string", "precise"):
                raise InvalidUsage(f"decimals is {decimals!r}; it must be string or precise")
        if self.decimals and self.envelope is not Envelope.DEBEZIUM:
            raise InvalidUsage(f"decimals belong to the debezium envelope, not to {self.envelope}")
        if self.unavailable and self.envelope is not Envelope.DEBEZIUM:
            raise InvalidUsage(f"unavailable belongs to the debezium envelope, not to {self.envelope}; remove it")
        placeholder(self.unavailable)
        if self.bad_files not in ("stop", "quarantine"):
            raise InvalidUsage(f"bad_files is {self.bad_files!r}; it must be stop or quarantine")
        if self.order_by and self.envelope not in (Envelope.UPSERT, Envelope.DEBEZIUM):
            raise InvalidUsage(f"order_by belongs to the envelopes upsert and debezium, not to {self.envelope}")
        if self.delete_when and self.envelope is not Envelope.UPSERT:
            raise InvalidUsage(f"delete_when belongs to the upsert envelope, not to {self.envelope}")
        if self.envelope is Envelope.DEBEZIUM and self.format is Format.CSV:
            raise InvalidUsage("debezium messages are nested, and csv has no nested values; use jsonl or parquet")
        if self.envelope is Envelope.SNAPSHOT and self.bad_files != "stop":
            raise InvalidUsage(
                "a full snapshot that lacks a file would delete its rows: bad_files is stop for a snapshot"
            )
        if self.min_share is not None and self.envelope is not Envelope.SNAPSHOT:
            raise InvalidUsage(f"min_share belongs to the snapshot envelope, not to {self.envelope}")
        if self.duplicate_files is not None and not self.adds_up:
            raise InvalidUsage(
                f"duplicate_files belongs to the envelopes append and updates, not to {self.envelope}, where the same "
                "rows twice are as once"
            )
        if self.min_share is not None and not 0 <= self.min_share <= 1:
            raise InvalidUsage(f"min_share is {self.min_share:g}; it must be from 0 to 1")
        check_compression(self.compression)
        if self.format is Format.PARQUET and self.compression not in ("auto", "none"):
            raise InvalidUsage("compression belongs to csv and jsonl; parquet is compressed within, and read as it is")
        if self.format is not Format.CSV and self.csv != PLAIN_CSV:
            raise InvalidUsage(f"csv says how CSV is written, and format is {self.format}; remove csv")
        if self.format is not Format.JSONL and self.rows:
            raise InvalidUsage(f"rows names a field of JSON, and format is {self.format}; remove rows")

    @property
    def adds_up(self) -> bool:
        """Whether a row that comes twice counts twice."""
        return self.envelope in (Envelope.APPEND, Envelope.UPDATES)

    def unit_of(self, name: str) -> str | None:
        """What the numbers of a column of times count since the epoch; of messages, its name may say it."""
        return unit_of(name, self.units) if self.envelope is Envelope.DEBEZIUM else dict(self.units).get(name)

    def decimals_of(self, name: str) -> str:
        """What the texts of a column of decimals are: `string` or `precise`."""
        return dict(self.column_decimals).get(name) or self.decimals or "string"

    @property
    def placeholder(self) -> str:
        """What stands for a value that the database did not log."""
        return placeholder(self.unavailable) if self.unavailable else UNAVAILABLE

    def beyond_of(self, name: str) -> str | None:
        """What becomes of a column's times before the year 1 or after 9999; None: those that fit are taken."""
        return dict(self.beyond).get(name)

    def fields_of(self, name: str) -> tuple[str, ...]:
        """What a column is called in files, as a collection file says it; its own name where nothing is said."""
        return dict(self.from_fields).get(name, (name,))

    def places_of(self, name: str) -> tuple[str, ...]:
        """Where a column may be in a row of a file, as paths; none of what only the file's path has."""
        if name in dict(self.from_paths):
            return ()
        names = dict(self.from_fields).get(name)
        if names is None or self.format is Format.CSV:
            return names or (name,)
        return tuple(place for each in names for place in field_path.both(each))

    def first_names_of(self, name: str) -> set[str]:
        """The names of which a file has one that has a column."""
        places = self.places_of(name)
        return set(places) if self.format is Format.CSV else {field_path.steps(place)[0] for place in places}

    def format_of(self, name: str) -> str | None:
        """How texts write the times of a column; None for ISO 8601."""
        return dict(self.formats).get(name)

    def timezone_of(self, name: str) -> str | None:
        """By which clock times of a column without an offset are; None for UTC."""
        return dict(self.timezones).get(name)

    def choice_of(self, name: str) -> str | None:
        """Which instant is meant by a time of a column that is twice, or never; None if it is refused."""
        return dict(self.ambiguous).get(name)

    @property
    def names_columns(self) -> bool:
        """Whether columns may be missing, or are called otherwise in files."""
        return bool(self.from_fields or self.optional)

    @property
    def by_connector(self) -> bool:
        """Whether rows are in order by the fields of the connector that their messages name."""
        return by_connector(self.envelope, self.order_by)

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns by which rows are in order, as far as they are named."""
        return columns(self.envelope, self.order_by)

    @property
    def has_places(self) -> bool:
        """Whether rows are in order by more than one column: by their place, which has the bytes of several."""
        return self.by_connector or (isinstance(self.order_by, tuple) and bool(self.order_by))

    @property
    def least_share(self) -> float:
        """The share of the rows of the full snapshot before that one must have; 0 where nothing is compared."""
        if self.envelope is not Envelope.SNAPSHOT:
            return 0
        return DEFAULT_MIN_SHARE if self.min_share is None else self.min_share


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

    Times in microseconds. Intervals are cut by `schedule`, by the clock of `timezone`, and counted from `start`; `end`
    is exclusive, None means it never ends; completeness stays `grace` behind what was ingested. An interval that begins
    up to `reprocess_for` below what is complete may be read again, which corrects what its files said (0: none may), of
    its rows at most the `corrected_share` (None: many are a warning). `time` and `event_time` name the source columns
    that say when a row was learned and when it happened (None: on arrival; when it was learned).
    `inputs` types the columns that are read and not kept (those two, `order_by`, those of `delete_when`). `batching`
    says when what has landed of an interval that goes on is ingested already (None: at its end).
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
    batching: Batching | None = None
    timezone: str = "UTC"
    kind: Literal["landed"] = "landed"

    @property
    def happened_in(self) -> str | None:
        """The source column that says when a row happened; None if that is when it arrived."""
        return self.event_time or self.time

    def check_cuttable(self) -> None:
        """Raise InvalidUsage unless some files of an interval may be ingested before the others."""
        if KINDS[self.source.envelope].whole_intervals:
            raise InvalidUsage("a full snapshot is all files of its interval together: it cannot be cut into batches")
        if self.source.ready not in ("exists", "always"):
            raise InvalidUsage(
                f"ready: {{marker: {self.source.ready}}} says that no file counts before all are there; batches take "
                "files before, so write ready: exists, and have files moved into the folder when they are whole"
            )

    def completed_by(self, ingested: int) -> int:
        """Up to where the collection is complete once all its intervals were ingested up to a time: less the grace,
        unless no interval is to come that could bring rows of that time."""
        return ingested if self.end is not None and ingested >= self.end else ingested - self.grace

    def complete_before(self, interval: Interval) -> int:
        """Up to where the collection is complete when an interval's turn comes, if its intervals are ingested and
        sealed one by one, in order: 0 for the first. The rows of an interval are judged by it however its ingest was
        grouped with others (docs/decisions/0048)."""
        return 0 if interval.lower <= self.start else max(0, interval.lower - self.grace)

    @property
    def corrected_reach(self) -> int:
        """How far below what is complete a row that is corrected may have happened."""
        return min(MAX_TIME, self.reprocess_for + self.late.reach) if self.reprocess_for else 0
