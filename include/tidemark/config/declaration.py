"""The fields of a collection file, landed or derived, and what each may hold.

The string below a field is its text in docs/reference/collection-file.md, which tools/reference.py writes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator
from pydantic.fields import FieldInfo

from tidemark.config.airflow import LISTED as AIRFLOW_LISTED
from tidemark.config.airflow import SECTIONS as AIRFLOW_SECTIONS
from tidemark.config.airflow import AirflowSection
from tidemark.config.batches import SECTIONS as BATCH_SECTIONS
from tidemark.config.batches import BatchesSection
from tidemark.config.publish import SECTIONS as PUBLISH_SECTIONS
from tidemark.config.publish import PublishSection
from tidemark.config.retention import retention_of
from tidemark.config.section import STRICT, Nothing
from tidemark.config.values import (
    CollectionName,
    ColumnInFiles,
    ColumnName,
    Duration,
    FieldName,
    Instant,
    PathTemplate,
    Schedule,
    Type,
    ZoneName,
    beyond_word,
    checked,
    column_section,
    csv_text,
    format_word,
    from_section,
    from_words,
    late_section,
    null_section,
    order_section,
    path_word,
    python_definition,
    ready_section,
    text_of_select,
    time_section,
    version_text,
)
from tidemark.config.windows import SECTIONS as WINDOW_SECTIONS
from tidemark.config.windows import AggregateSection, WindowsSection, aggregate_section
from tidemark.errors import InvalidUsage
from tidemark.model.collection import (
    LEAST_UNSORTED_ROWS,
    MOST_UNSORTED_ROWS,
    Envelope,
    Format,
    Layout,
    Source,
    ValueType,
)
from tidemark.model.derived import Definition, Derived, Refresh, Validity
from tidemark.model.dialect import MOST_SKIPPED, PLAIN_CSV, Csv
from tidemark.model.place import columns
from tidemark.model.publication import Destination
from tidemark.model.retention import KEEP_ALL


class _Section(BaseModel):
    model_config = STRICT


class ByColumn(_Section):
    """A coordinate read from a column."""

    column: FieldName
    """The column's name; of change messages a field's path, as `source.ts_ms`."""


class Marker(_Section):
    """An interval has landed when a file of this name is in its folder; `exists` and `always` are no files."""

    marker: Annotated[str, Field(pattern=r"^[^/*?\[\]]+$")]
    """The file's name, without a folder or wildcards; variables are those of `source.path`: `_{{ ds }}.done`."""


class Reemit(_Section):
    """Late rows apply, up to `max_lateness` below what is complete; without it, however late."""

    max_lateness: Duration | None = None
    """How far below what is complete a row's time may be so that it still applies; left out, any row applies."""


class LatePolicy(_Section):
    """Exactly one policy."""

    discard: Nothing | None = None
    """Not applied; kept as a dead letter that can be replayed."""
    next_window: Nothing | None = None
    """Applied with the seal as both its times; the original is kept beside it."""
    reemit: Reemit | None = None
    """Applied with the event time it has, so that history is put right."""

    @model_validator(mode="after")
    def _one(self) -> LatePolicy:
        if len(self.model_fields_set) != 1:
            raise InvalidUsage("write one policy: discard, next_window, or {reemit: {max_lateness: 3d}}")
        return self


class LayoutSection(_Section):
    """In order of which time rows are kept, before they are in order of their key."""

    by: ColumnName
    """A timeline: a timestamp or an int of microseconds."""
    every: Duration
    """How long a bucket of time is, `6h`: rows of one bucket are in order of their key. The shorter it is, the less is
    read for a stretch of time, and the more for a key."""


class ChunksSection(_Section):
    """How rows at rest are cut into chunks, the least that is read of a part."""

    max_rows_if_unsorted: Annotated[int, Field(ge=LEAST_UNSORTED_ROWS, le=MOST_UNSORTED_ROWS)] = MOST_UNSORTED_ROWS
    """The most rows of a chunk that is not in order of its timelines. Fewer have narrower bounds, so less is read for a
    stretch of time, and cost more to write."""


class ColumnSection(_Section):
    """A column's type (`note: string` for short), and what else is to be said of it."""

    type: Type | None = None
    """`bool`, `int`, `float`, `string`, `date`, `timestamp`, `decimal(12, 2)`, `bytes` or `json`."""
    was: ColumnName | None = None
    """What the column was called before: it is renamed, and no row is rewritten."""
    description: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """What it holds, in a sentence, for people who look at the collection in Airflow."""
    unit: Literal["days", "s", "ms", "us", "ns"] | None = None
    """What its numbers count since the epoch: `days` of a `date`, `s`, `ms`, `us` or `ns` of a `timestamp`. Nanoseconds
    that are no whole microseconds are refused. Texts of CSV are numbers then."""
    beyond: Annotated[Literal["refuse", "null", "clip"] | None, checked(beyond_word)] = None
    """What becomes of times before the year 1 and after 9999, `infinity` among them: `refuse` the file, `null`, or
    `clip` to the first or the last time of these years. Left out, numbers and times of Parquet that fit are taken as
    they are, and texts are refused."""
    from_: Annotated[str | list[str] | None, checked(from_words), Field(alias="from")] = None
    """What it is called in files, any name, or several: `from: [unit price, UnitPrice]`. The first that is there is it,
    of each row of JSON lines, of a whole file of other formats; a null is there. Two that are there and differ are
    refused. A dot belongs to the name, or leads to a field within another one (not in CSV). Of change messages it is a
    name within the images for key and value, else a path in the message."""
    from_path: Annotated[str | None, checked(path_word)] = None
    """Where it is in the path of a file, below the landing: `region` for a folder `region=eu`, or a pattern of RE2 with
    one group, `/store-([0-9]+)/`. A `string` if no type is declared."""
    optional: bool = False
    """Whether it may be missing, of each row of JSON lines, of a whole file of other formats: it is null then, as if
    that was written. What the database did not log of a row (`__debezium_unavailable_value`) is that of the row before
    it, and null where none is known. Not of keys, nor of the times of rows."""
    timezone: ZoneName | None = None
    """By which clock times without an offset are, `America/New_York`; left out, UTC. Numbers with a `unit` count that
    clock, too."""
    ambiguous: Literal["refuse", "earlier", "later"] | None = None
    """With a `timezone`, what a time is that clocks show twice, or never, as they change: `refuse` the file (if left
    out), or the `earlier` or the `later` of two instants."""
    format: Annotated[str, Field(min_length=1)] | None = None
    """How texts write a `date` or a `timestamp`, by the codes of strftime: `%d/%m/%Y`; left out, ISO 8601."""
    decimals: Literal["precise", "string", "double"] | None = None
    """How its decimals are written, for this column and in any envelope: `precise` is base64 of a whole number of the
    last digit of its type, or `{scale, value}`; see `source.decimals`."""
    masked: bool = False
    """Whether its values are left out where rows are shown to people: on the pages in Airflow, in gates' results and in
    the logs of tasks. Who reads the collection itself gets them."""


class CsvSection(_Section):
    """How the CSV files of a source are written, where that is not UTF-8 with commas, double quotes and a header."""

    delimiter: Annotated[str, checked(csv_text)] = ","
    """The character between fields: `";"`, `"|"`, or `"\\t"`, which needs double quotes."""
    quote: Annotated[str, checked(csv_text)] = '"'
    """The character around a field that has a delimiter, a quote or a line break; one within it is written twice. `""`:
    fields have none, and a quote is a character as any other."""
    escape: Annotated[str, checked(csv_text)] = ""
    """The character before a delimiter, quote, line break or itself that is meant as it is: `"\\\\"`. Before any other
    character it is refused, as readers differ about it, unless the field is one of `null`."""
    encoding: Annotated[str, checked(csv_text)] = "utf-8"
    """The encoding of the text by Python's name: `latin-1`, `cp1252`, `utf-16`, `shift_jis`."""
    null: Annotated[list[str] | None, checked(null_section)] = None
    """Which fields without quotes are null, in columns of every type: `["", "NULL", "\\\\N"]`. Left out, an empty field
    is empty in a column of type string, and null in others, quoted or not."""
    decimal: Annotated[str, checked(csv_text)] = "."
    """The decimal point of numbers, `"."` or `","`; another one is refused."""
    thousands: Annotated[str, checked(csv_text)] = ""
    """What groups the digits of numbers by three: `"."`, `","`, `" "` or another character. Numbers without are taken,
    too; groups of other sizes are refused."""
    header: bool = True
    """Whether the first row has the names of the columns. Without one `names` has them."""
    names: list[Annotated[str, Field(min_length=1)]] = []
    """The names of all columns, in order: of files without a header, or in place of one, which must have as many."""
    skip_rows: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0
    """How many lines before the header, or before the first row, are no rows."""
    comment: Annotated[str, checked(csv_text)] = ""
    """The character that begins a line that is no row: `"#"`, in quotes."""

    @model_validator(mode="after")
    def _fits(self) -> CsvSection:
        self.dialect  # noqa: B018  it raises InvalidUsage
        return self

    @cached_property
    def dialect(self) -> Csv:
        """The dialect."""
        said = {name: value for name, value in self if value is not None}
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        return Csv(**{**said, **lists})


class SourceSection(_Section):
    """Where delta files land, and how to read them."""

    path: PathTemplate
    """Where the files of an interval are, a template: `{{ landing }}`, `{{ ds }}`, `{{ lower }}` and `{{ upper }}` are
    known, and `*` and `?` in the last part."""
    format: Annotated[Literal["parquet", "jsonl", "json", "csv"], checked(format_word)]
    """What the files are; `json` and `jsonl` are the same, one object a line, or an array of objects. Texts are UTF-8;
    fields of `csv` are separated by commas, below a header, unless `csv` says otherwise."""
    envelope: Literal["append", "updates", "upsert", "debezium", "snapshot"]
    """What a row says: `append` (it is there), `updates` (it is there `diff` times), `upsert` (its key has this value
    now), `debezium` (change messages), `snapshot` (each interval's files are all there is)."""
    order_by: Annotated[str | list[str] | None, checked(order_section)] = None
    """What orders rows of one key that happened at the same time; ties go by file name and row. A column; several, each
    compared as its type, nulls first: `[batch, line]`; or, of change messages, `connector`: the fields of the connector
    that they name, which is what new collections of them have where nothing is said. `[]`: file name and row alone."""
    diff: ColumnName | None = None
    """The column of multiplicities; of the envelope `updates` only."""
    delete_when: Annotated[str, Field(min_length=1)] | None = None
    """Which rows of `upsert` say that the key is gone, as a condition: `status = 'DELETED'`."""
    only: Annotated[str, Field(min_length=1)] | None = None
    """Which rows of files are taken, as a condition: `source.db = 'shop' AND source.table = 'people'`. Others are left
    out, and counted. It looks at any column (`append`, `updates`, `snapshot`); at those of the key and such as are not
    kept (`upsert`); at fields outside the images (`debezium`). Without it messages of a second table are refused.
    Another condition counts for files that are read from then on."""
    ready: Annotated[Marker, checked(ready_section)] = Marker(marker="exists")
    """When an interval has landed: `exists` (its folder is there; where intervals share one, or the path has no
    wildcard: a file is), `{marker: _SUCCESS}` (that file is), `always` (nothing there is an empty interval). A folder
    without files is an empty interval, too; not one with files that only their case or suffix keeps from matching."""
    bad_files: Literal["stop", "quarantine"] = "stop"
    """What a file that cannot be taken does: `stop` the run, or be put in `quarantine` while the others go on."""
    units: dict[FieldName, Literal["days", "s", "ms", "us", "ns"]] = {}
    """What unit the numbers of a time field are in (`debezium` only): `{ts_ms: ms}`; another spelling of a column's
    `unit`."""
    decimals: Literal["precise", "string", "double"] | None = None
    """How the connector writes decimals, its `decimal.handling.mode` (`debezium` only); a column's `decimals` goes
    before it."""
    unavailable: Annotated[str, Field(min_length=1)] | None = None
    """What the connector writes for a value that the database did not log, its `unavailable.value.placeholder`
    (`debezium` only), a text or `hex:` and its bytes; `__debezium_unavailable_value` if left out. Another one counts
    for files that are read from then on."""
    duplicate_files: Literal["refuse", "count", "skip"] | None = None
    """What becomes of a file with the bytes of another of its interval, where rows add up (`append`, `updates`):
    `refuse` the interval, the default of collections declared since 0.7.0; `count` its rows, too; `skip` it."""
    min_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Which share of the rows of the full snapshot before one must have (`snapshot` only; 0.5 if left out). The gate
    asks about one with fewer, where the one before has 1,000 rows or more, and about one without rows. `0`: never."""
    csv: CsvSection | None = None
    """How CSV files are written, `{delimiter: ";", encoding: latin-1}`. Another dialect counts for files that are read
    from then on."""
    compression: Literal["auto", "none", "gzip", "zstd", "bz2", "lz4", "xz"] = "auto"
    """How files of `csv` and `jsonl` are compressed: `auto` by the ends of their names (`.gz`, `.zst`, `.bz2`, `.lz4`,
    `.xz`), where a file is not compressed that only its name says so; `none`; or how all are, whatever their names."""
    rows: Annotated[str | None, Field(min_length=1)] = None
    """Of JSON files that are one object: its field that has the array of rows, `rows: data`."""

    @model_validator(mode="after")
    def _diff_belongs_to_updates(self) -> SourceSection:
        if self.diff is not None and self.envelope != "updates":
            raise InvalidUsage(f"diff belongs to the updates envelope, not to {self.envelope}")
        return self

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns that put rows in order, as far as they are named."""
        order_by = self.order_by
        return columns(self.envelope, tuple(order_by) if isinstance(order_by, list) else order_by)

    @property
    def file_format(self) -> Format:
        return Format.JSONL if self.format == "json" else Format(self.format)

    @property
    def as_written(self) -> Source:
        """How its files are written, without what their rows mean."""
        envelope = Envelope.APPEND if self.file_format is Format.CSV else Envelope(self.envelope)
        written = Source(self.path, self.file_format, envelope, csv=self.dialect, compression=self.compression)
        return replace(written, rows=self.rows or "")

    @property
    def dialect(self) -> Csv:
        """The dialect of its CSV files."""
        return self.csv.dialect if self.csv else PLAIN_CSV


class Common(_Section):
    """What is said of every collection, wherever its rows come from."""

    name: CollectionName
    """The collection's name, and that of its folder and its asset: lower case letters, digits and `_`, a letter
    first."""
    columns: dict[FieldName, Annotated[ColumnSection, checked(column_section)]] = {}
    """The type of each column, by its name. One that is not declared is inferred once, at `init`: from the first file
    that has landed, or from the definition."""
    timelines: list[ColumnName] = []
    """Columns of the value, timestamps, dates or whole numbers, by which rows are asked for: `range`, `latest_at`, and
    conditions on them. The record of every part has their bounds, so parts outside are not opened; of other columns of
    these types the part's own footer says it. What was written before a column was named here has no record of it."""
    layout: LayoutSection | None = None
    """By which time rows are laid out, `{by: scheduled_at, every: 6h}`, where rows are asked for by time more than by
    key. Fixed at `init`; not for collections that keep one value per key."""
    chunks: ChunksSection = ChunksSection()
    """How rows are cut into chunks."""
    dag: Literal["factory", "own"] = "factory"
    """`own` if a DAG file of yours makes the collection's DAG; the factory makes none then."""
    airflow: AirflowSection = AirflowSection()
    """How Airflow runs it, `{owner: logistics, pool: spark}`."""
    quality: list[Annotated[dict[str, Any], Field(min_length=1, max_length=1)]] = []
    """Expectations of Great Expectations that the unsealed gate checks of every batch, as `{name: {arguments}}`."""
    compact_ahead: bool = True
    """Whether batches whose history is still readable may be merged, their times kept. Off, only history behind `since`
    is."""
    live_batches: Annotated[int, Field(ge=2, le=1000)] = 12
    """How many trace batches compaction keeps at most: fewer are cheaper to read, more are cheaper to write."""
    retention: Annotated[Any, checked(retention_of)] = KEEP_ALL
    """How much history stays readable: `all`, `full_merge`, `adaptive`, `{tiered: {keep_recent: 7}}`, `{time_boundary:
    1h}`, or a ladder, `[{keep: all, for: 7d}, {keep: 1h, for: 30d}, {keep: 1d}]`."""
    publish: PublishSection = PublishSection()
    """In which tables others find what it holds, after each run, `{iceberg: {table: db.flights}}`."""

    @cached_property
    def types(self) -> dict[str, ValueType]:
        """The types declared, by column."""
        return {name: column.type for name, column in self.columns.items() if column.type}

    @cached_property
    def fields(self) -> dict[str, tuple[str, ...]]:
        """What columns are called in files, where that is said."""
        said = ((name, column.from_) for name, column in self.columns.items() if column.from_ is not None)
        return {name: (names,) if isinstance(names, str) else tuple(names) for name, names in said}

    @property
    def masked(self) -> tuple[str, ...]:
        """The columns of key and value whose values people are not shown."""
        return tuple(name for name, column in self.columns.items() if column.masked)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where it is published."""
        return self.publish.destinations

    @property
    def laid_out(self) -> Layout | None:
        """The layout."""
        return Layout(self.layout.by, self.layout.every) if self.layout else None

    @cached_property
    def renames(self) -> dict[str, str]:
        """What columns were called before, by what they are called now."""
        return {name: column.was for name, column in self.columns.items() if column.was}


class Declaration(Common):
    """A collection whose rows land as files. Times and durations are microseconds already."""

    key: Annotated[list[ColumnInFiles], Field(min_length=1)]
    """The columns that say which row is meant."""
    value: list[ColumnInFiles] = []
    """The columns that change. A collection may have none: then it is a changing set of keys."""
    timezone: ZoneName = "UTC"
    """By whose clock intervals are cut, `America/New_York`: the schedule, `{{ ds }}` and the other variables of paths,
    and dates without a time (`start`, `end`, `--date`, `--from`, `--to`) are local. Fixed once there are data."""
    start: Instant
    """Where intervals are counted from. No run is before it, and completeness waits for every interval since."""
    end: Instant | None = None
    """Where intervals end; there are no runs after it."""
    time: Annotated[ByColumn | None, checked(time_section)]
    """When a change was learned: a column (`{column: reported_at}`), or `arrival`, the last instant of the interval
    whose files hold it."""
    event_time: ByColumn | None = None
    """When a change happened at the source, `{column: happened_at}`. Without one, only what was learned when can be
    asked."""
    source: SourceSection
    """Where files of changes land, and how they are read."""
    schedule: Schedule = "@daily"
    """How long an interval is: an expression of cron, or one of Airflow's presets."""
    grace: Duration = 0
    """How far behind the end of an interval completeness stays, so that rows may be that late and still be on time. At
    the collection's end it is over."""
    late: Annotated[LatePolicy, checked(late_section)] = LatePolicy(discard=Nothing())
    """What becomes of rows that happened before their interval, less the grace: `discard` (kept as dead letters),
    `next_window` (applied as of the seal), or `{reemit: {max_lateness: 3d}}` (applied where they belong; where files
    say what keys became, that needs `event_time`)."""
    reprocess_for: Duration = 0
    """How long files may be corrected: where an interval that begins up to so long before what is complete is run
    again, what its files say now replaces what they said, exactly. What that needs is kept as long; 0 keeps nothing,
    and a changed file is refused."""
    corrected_share: Annotated[float | None, Field(ge=0, le=1)] = None
    """Which share of an interval's rows a correction may replace, from 0 to 1: the unsealed gate stops one that takes
    more back. Left out, more than a tenth is a warning."""

    batches: BatchesSection | None = None
    """When files that have landed are ingested before their interval is over: what has come so far, as often as there
    is enough of it. The interval is complete at its end as ever. Left out, an interval is read once, at its end."""

    @cached_property
    def units(self) -> dict[str, str]:
        """What the numbers of columns count, by column, in either spelling."""
        return {**self.source.units, **{name: column.unit for name, column in self.columns.items() if column.unit}}

    @property
    def time_column(self) -> str | None:
        return self.time.column if self.time else None

    @property
    def event_time_column(self) -> str | None:
        return self.event_time.column if self.event_time else None

    @property
    def late_policy(self) -> tuple[str, int | None]:
        (policy,) = self.late.model_fields_set
        return policy, self.late.reemit.max_lateness if self.late.reemit else None


class DerivedDeclaration(Common):
    """A collection that is computed from others: always what its definition says of them, also after they were
    corrected."""

    inputs: Annotated[list[CollectionName], checked(from_section), Field(min_length=1, alias="from")]
    """The collections it is computed from, by name, as the definition calls them; one alone needs no list."""
    select: Annotated[str, checked(text_of_select)] | None = None
    """The definition: a query of Spark SQL over the inputs by their names."""
    python: Annotated[str, checked(python_definition)] | None = None
    """Instead of `select`, `module:function`: a function of the inputs' DataFrames by name, from the folder
    `include/definitions`."""
    version: Annotated[str, checked(version_text), Field(min_length=1)] | None = None
    """Changes with a python definition: another version recomputes everything."""
    by: list[ColumnName] = []
    """Columns for whose values alone a python definition can be computed; without any, only the whole can."""
    windows: WindowsSection | None = None
    """Instead of `select`, windows over the one input: a row for each window in which there are rows."""
    aggregates: dict[ColumnName, Annotated[AggregateSection, checked(aggregate_section)]] = {}
    """The aggregates of each window, by the name of their column: `{flights: count, delay: {avg: delay_min}}`."""
    key: Annotated[list[ColumnName], Field(min_length=1)] | None = None
    """The columns that say which row is meant. Left out, it is inferred where the definition shows it, and frozen."""
    refresh: Literal["auto", "incremental", "whole"] = "auto"
    """How what differs is computed: `auto`, from what changed wherever that is right; `incremental`, refused where only
    the whole can be computed; `whole`, always from all. The rows are the same."""
    history: Duration = 0
    """The step between the frontiers of a first build (`1d`): history is readable from the first of them, and a build
    that is interrupted continues from the last. 0 builds one, the newest."""
    max_lag: Duration | None = None
    """How long after it was corrected last its inputs keep the history it needs; after that it is recomputed. Left
    out, as long as it exists."""
    valid_from: ColumnName | None = None
    """The column that says from when a row is there; without it, as soon as it is known."""
    valid_to: ColumnName | None = None
    """The column that says until when a row is there; null is for ever."""
    valid_for: Duration | None = None
    """For how long from `valid_from` on a row is there, instead of `valid_to`."""

    @property
    def definition(self) -> Definition:
        windows = self.windows.windows(self.aggregates) if self.windows else None
        return Definition(self.select or "", self.python or "", self.version or "", tuple(self.by), windows)

    @property
    def validity(self) -> Validity | None:
        said = (self.valid_from, self.valid_to, self.valid_for)
        return None if said == (None, None, None) else Validity(*said)

    @property
    def origin(self) -> Derived:
        """How it is computed from its inputs. InvalidUsage for a definition that is none."""
        return Derived(
            tuple(self.inputs), self.definition, Refresh(self.refresh), self.history, self.max_lag, self.validity
        )


_SECTIONS: dict[str, type[BaseModel]] = {
    "layout": LayoutSection,
    "chunks": ChunksSection,
    "source": SourceSection,
    "csv": CsvSection,
    "time": ByColumn,
    "event_time": ByColumn,
    "late": LatePolicy,
    "reemit": Reemit,
    "discard": Nothing,
    "next_window": Nothing,
    "ready": Marker,
    **BATCH_SECTIONS,
    **AIRFLOW_SECTIONS,
    **PUBLISH_SECTIONS,
}
"""Sections by the names of the fields that hold them."""


def field_names(loc: tuple[str | int, ...], file: type[Common] = Declaration) -> tuple[str, ...]:
    """The fields that the section at `loc` (the empty loc is the `file`) may have, as a file writes them."""
    section: type[BaseModel] | None
    match loc:
        case ():
            section = file
        case ("columns", _):
            section = ColumnSection
        case ("aggregates", _):
            section = AggregateSection
        case ("windows", *within):
            section = WINDOW_SECTIONS.get(str(within[-1]) if within else "windows")
        case ("airflow", _, str(listed), int()):
            section = AIRFLOW_LISTED.get(listed)
        case _:
            section = _SECTIONS.get(str(loc[-1]))
    return tuple(fields_of(section)) if section else ()


def fields_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a section by the names a file writes: the collection's name, then what it has of its own."""
    shared = Common.model_fields if issubclass(section, Common) else {}
    order = sorted(section.model_fields, key=lambda name: (name != "name", name in shared))
    return {section.model_fields[name].alias or name: section.model_fields[name] for name in order}


def choices(problem: Any) -> tuple[str, ...]:
    """What a literal field may hold, from pydantic's description of a wrong one."""
    return tuple(re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", ""))))
