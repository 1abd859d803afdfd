"""The fields of a collection file and what each may hold (docs: the reference of collection files)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tidemark.config.retention import retention_of
from tidemark.config.values import (
    CollectionName,
    ColumnName,
    Duration,
    FieldName,
    Instant,
    PathTemplate,
    Schedule,
    Type,
    checked,
    column_section,
    late_section,
    ready_section,
    time_section,
)
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Format, ValueType
from tidemark.model.retention import KEEP_ALL


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

    max_lateness: Duration | None = None


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

    type: Type | None = None
    was: ColumnName | None = None


class SourceSection(_Section):
    """Where delta files land, and how to read them."""

    path: PathTemplate
    format: Literal["parquet", "jsonl", "json", "csv"]
    envelope: Literal["append", "updates", "upsert", "debezium", "snapshot"]
    order_by: FieldName | None = None
    diff: ColumnName | None = None
    delete_when: str | None = None
    ready: Annotated[Marker, checked(ready_section)] = Marker(marker="exists")
    bad_files: Literal["stop", "quarantine"] = "stop"
    units: dict[FieldName, Literal["days", "s", "ms", "us", "ns"]] = {}
    decimals: Literal["precise", "string", "double"] | None = None

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

    name: CollectionName
    key: Annotated[list[ColumnName], Field(min_length=1)]
    value: list[ColumnName] = []
    columns: dict[FieldName, Annotated[ColumnSection, checked(column_section)]] = {}
    start: Instant
    end: Instant | None = None
    time: Annotated[ByColumn | None, checked(time_section)]
    event_time: ByColumn | None = None
    timelines: list[ColumnName] = []
    source: SourceSection
    schedule: Schedule = "@daily"
    dag: Literal["factory", "own"] = "factory"
    grace: Duration = 0
    late: Annotated[LatePolicy, checked(late_section)] = LatePolicy(discard=Nothing())
    quality: list[Annotated[dict[str, Any], Field(min_length=1, max_length=1)]] = []
    compact_ahead: bool = True
    live_batches: Annotated[int, Field(ge=2, le=1000)] = 12
    retention: Annotated[Any, checked(retention_of)] = KEEP_ALL

    @cached_property
    def types(self) -> dict[str, ValueType]:
        """The types declared, by column."""
        return {name: column.type for name, column in self.columns.items() if column.type}

    @cached_property
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
