"""The fields of a collection file and what each may hold (docs: the reference of collection files)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tidemark.config import template
from tidemark.config.retention import retention_of
from tidemark.errors import InvalidUsage
from tidemark.model.collection import COLUMN_NAME, FIELD_NAME, NAME, ColumnType, Format
from tidemark.model.instant import from_datetime, parse_duration, parse_instant
from tidemark.model.retention import KEEP_ALL

PRESETS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@quarterly", "@yearly", "@annually")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?-]+")

_T = TypeVar("_T")


def _checked(convert: Callable[[Any], _T]) -> BeforeValidator:
    """A validator that reports our InvalidUsage as pydantic's ValueError, message unchanged."""
    return BeforeValidator(convert)


def _instant(value: Any) -> int:
    if isinstance(value, datetime):
        return _not_negative(from_datetime(value))
    if isinstance(value, date):
        return _not_negative(from_datetime(datetime.combine(value, time())))
    if isinstance(value, int | str) and not isinstance(value, bool):
        return parse_instant(str(value))
    raise InvalidUsage(f"not a time: {value!r}; write 2013-01-02 or 2013-01-02T03:04:05Z")


def _not_negative(micros: int) -> int:
    if micros < 0:
        raise InvalidUsage("a time before 1970-01-01")
    return micros


def _duration(value: Any) -> int:
    if isinstance(value, bool | float) or value is None:
        raise InvalidUsage(f"not a duration: {value!r}; write 30m, 2h or 3d")
    return parse_duration(value)


def _column(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidUsage(f"a column name is text, found {value!r}; quote it")
    if not COLUMN_NAME.fullmatch(value):
        raise InvalidUsage(f"column name {value!r} must match {COLUMN_NAME.pattern}")
    return value


def _field(value: Any) -> str:
    if isinstance(value, str) and "." in value and FIELD_NAME.fullmatch(value):
        return value
    return _column(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidUsage(f"collection name {value!r} must match {NAME.pattern}")
    return value


def _schedule(value: Any) -> str:
    fields = value.split() if isinstance(value, str) else []
    if value in PRESETS or (len(fields) == 5 and all(_CRON_FIELD.fullmatch(field) for field in fields)):
        return " ".join(fields)
    raise InvalidUsage(f"{value!r} is no schedule; write five cron fields or one of {', '.join(PRESETS)}")


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidUsage(f"a path is text, found {value!r}; quote it, as {{{{ starts a mapping in YAML")
    template.check(value)
    return value


def _late(value: Any) -> Any:
    if value is None or isinstance(value, str):
        if value not in ("discard", "next_window", "reemit"):
            _choose(value, ["discard", "next_window", "{reemit: {max_lateness: 3d}}"])
        return {value: {}}
    return value


def _ready(value: Any) -> Any:
    if value in ("exists", "always"):
        return {"marker": value}
    if isinstance(value, dict):
        if value.get("marker") in ("exists", "always"):
            raise InvalidUsage(f"a marker file cannot be called {value['marker']}, which has a meaning here")
        return value
    return _choose(value, ["exists", "always", "{marker: NAME}"])


def _choose(value: Any, choices: Iterable[str]) -> Any:
    raise InvalidUsage(f"{value!r} is not one of {', '.join(choices)}")


def _time(value: Any) -> Any:
    if value == "arrival":
        return None
    if isinstance(value, dict):
        return value
    return _choose(value, ["arrival", "{column: NAME}"])


def _column_section(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    return {"type": value} if isinstance(value, str) else _choose(value, ["a type", "{type: string, was: NAME}"])


ColumnName = Annotated[str, _checked(_column)]
FieldName = Annotated[str, _checked(_field)]
"""A column, or a field within a message: `source.ts_ms`."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ByColumn(_Section):
    """A coordinate read from a column."""

    column: FieldName


class Marker(_Section):
    """An interval has landed when a file of this name is in its folder; `exists` and `always` are no files."""

    marker: Annotated[str, Field(pattern=r"^[^/*?\[\]]+$")]


class Nothing(_Section):
    """A policy without settings: `discard: {}`."""


class Reemit(_Section):
    """Late rows apply, up to `max_lateness` below the seal; without it, however late."""

    max_lateness: Annotated[int, _checked(_duration)] | None = None


class LatePolicy(_Section):
    """Exactly one policy."""

    discard: Nothing | None = None
    next_window: Nothing | None = None
    reemit: Reemit | None = None

    @model_validator(mode="after")
    def _one(self) -> LatePolicy:
        if len(self.model_fields_set) != 1:
            raise InvalidUsage("write one policy: discard, next_window, or {reemit: {max_lateness: 3d}}")
        return self


class ColumnSection(_Section):
    """A column's type (`note: string` for short), and what a value column was called before: `{was: remark}`."""

    type: Literal["bool", "int", "float", "string", "date", "timestamp"] | None = None
    was: ColumnName | None = None


class SourceSection(_Section):
    """Where delta files land, and how to read them."""

    path: Annotated[str, _checked(_path)]
    format: Literal["parquet", "jsonl", "json", "csv"]
    envelope: Literal["append", "updates", "upsert", "debezium", "snapshot"]
    order_by: FieldName | None = None
    diff: ColumnName | None = None
    delete_when: str | None = None
    ready: Annotated[Marker, _checked(_ready)] = Marker(marker="exists")
    bad_files: Literal["stop", "quarantine"] = "stop"
    units: dict[FieldName, Literal["days", "s", "ms", "us", "ns"]] = {}

    @model_validator(mode="after")
    def _diff_belongs_to_updates(self) -> SourceSection:
        if self.diff is not None and self.envelope != "updates":
            raise InvalidUsage(f"diff belongs to the updates envelope, not to {self.envelope}")
        return self

    @property
    def file_format(self) -> Format:
        return Format.JSONL if self.format == "json" else Format(self.format)


class Declaration(_Section):
    """A whole collection file. Times and durations are microseconds already."""

    name: Annotated[str, _checked(_name)]
    key: Annotated[list[ColumnName], Field(min_length=1)]
    value: list[ColumnName] = []
    columns: dict[FieldName, Annotated[ColumnSection, _checked(_column_section)]] = {}
    start: Annotated[int, _checked(_instant)]
    end: Annotated[int, _checked(_instant)] | None = None
    time: Annotated[ByColumn | None, _checked(_time)]
    event_time: ByColumn | None = None
    timelines: list[ColumnName] = []
    source: SourceSection
    schedule: Annotated[str, _checked(_schedule)] = "@daily"
    grace: Annotated[int, _checked(_duration)] = 0
    late: Annotated[LatePolicy, _checked(_late)] = LatePolicy(discard=Nothing())
    quality: list[Annotated[dict[str, Any], Field(min_length=1, max_length=1)]] = []
    compact_ahead: bool = True
    live_batches: Annotated[int, Field(ge=2, le=1000)] = 12
    retention: Annotated[Any, _checked(retention_of)] = KEEP_ALL

    @property
    def types(self) -> dict[str, ColumnType]:
        """The types declared, by column."""
        return {name: ColumnType(column.type) for name, column in self.columns.items() if column.type}

    @property
    def renames(self) -> dict[str, str]:
        """What columns were called before, by what they are called now."""
        return {name: column.was for name, column in self.columns.items() if column.was}

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


_SECTIONS: dict[str, type[BaseModel]] = {
    "source": SourceSection,
    "time": ByColumn,
    "event_time": ByColumn,
    "late": LatePolicy,
    "reemit": Reemit,
    "discard": Nothing,
    "next_window": Nothing,
    "ready": Marker,
}


def field_names(loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """The fields that may stand in the section at `loc` (the empty loc is the file)."""
    of_column = len(loc) == 2 and loc[0] == "columns"
    section = Declaration if not loc else ColumnSection if of_column else _SECTIONS.get(str(loc[-1]))
    return tuple(section.model_fields) if section else ()


def choices(problem: Any) -> tuple[str, ...]:
    """What a literal field may hold, from pydantic's description of a wrong one."""
    return tuple(re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", ""))))
