"""What the fields of a collection file may hold, as values: times in microseconds, sections written out in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ValidationInfo

from tidemark.config import template
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage
from tidemark.model import path_value
from tidemark.model.collection import COLUMN_NAME, FIELD_NAME, NAME, ColumnType, DecimalType, parse_type
from tidemark.model.instant import EPOCH, from_datetime, parse_duration
from tidemark.model.local_time import parse_local
from tidemark.model.zone import zone_named

PRESETS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@quarterly", "@yearly", "@annually")
_TYPES = (*ColumnType, "decimal(12, 2)")
_ELSEWHERE = {
    "datetime": "timestamp",
    "time": "timestamp",
    "double": "float",
    "real": "float",
    "number": "decimal(12, 2)",
    "numeric": "decimal(12, 2)",
    "long": "int",
    "smallint": "int",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "uuid": "string",
    "object": "json",
    "struct": "json",
    "array": "json",
    "map": "json",
    "blob": "bytes",
    "varbinary": "bytes",
}
"""What other systems call a type that we have, where the likeness of names would lead elsewhere."""
_PYTHON = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?-]+")

MAX_SCHEDULE = 1000
"""Characters of a cron expression: every minute of the hour named takes 169."""

_T = TypeVar("_T")


def checked(convert: Callable[[Any], _T]) -> BeforeValidator:
    """A validator that reports our InvalidUsage as pydantic's ValueError, message unchanged."""
    return BeforeValidator(convert)


def _instant(value: Any, info: ValidationInfo) -> int:
    """A time; a date without one is the beginning of that day in the `timezone` of the file."""
    zone = info.data.get("timezone") or "UTC"
    if isinstance(value, datetime):
        if (micros := from_datetime(value)) < 0:
            raise InvalidUsage("a time before 1970-01-01")
        return micros
    if isinstance(value, date) and value < EPOCH.date():
        raise InvalidUsage("a time before 1970-01-01")
    if isinstance(value, date | int | str) and not isinstance(value, bool):
        return parse_local(str(value), zone)
    raise InvalidUsage(f"not a time: {value!r}; write 2013-01-02 or 2013-01-02T03:04:05Z")


def _zone(value: Any) -> str:
    """A zone of the tz database."""
    if not isinstance(value, str):
        raise InvalidUsage(f"a time zone is a name like Europe/Lisbon, and {value!r} is no text in YAML; quote it")
    zone_named(value)
    return value


def duration(value: Any) -> int:
    """Microseconds of a duration as a file writes it."""
    if isinstance(value, bool | float) or value is None:
        raise InvalidUsage(f"not a duration: {value!r}; write 30m, 2h or 3d")
    return parse_duration(value)


def _column(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidUsage(f"a column name is text, found {value!r}; quote it")
    if not COLUMN_NAME.fullmatch(value):
        raise InvalidUsage(f"column name {value!r} must match {COLUMN_NAME.pattern}")
    return value


def _column_in_files(value: Any) -> str:
    try:
        return _column(value)
    except InvalidUsage as error:
        instead = f"; give it another, with its name in files: columns: {{NAME: {{from: {value!r}}}}}"
        raise InvalidUsage(f"{error}{instead if isinstance(value, str) else ''}") from None


def _field(value: Any) -> str:
    if isinstance(value, str) and "." in value and FIELD_NAME.fullmatch(value):
        return value
    return _column(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidUsage(f"collection name {value!r} must match {NAME.pattern}")
    return value


def _schedule(value: Any) -> str:
    fields = value.split() if isinstance(value, str) and len(value) <= MAX_SCHEDULE else []
    if value in PRESETS or (len(fields) == 5 and all(_CRON_FIELD.fullmatch(field) for field in fields)):
        return " ".join(fields)
    of_zone = "; the zone of its clock is timezone: America/New_York" if "TZ=" in str(value) else ""
    raise InvalidUsage(f"{value!r} is no schedule; write five cron fields or one of {', '.join(PRESETS)}{of_zone}")


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidUsage(f"a path is text, found {value!r}; quote it, as {{{{ starts a mapping in YAML")
    template.check(value)
    return value


def late_section(value: Any) -> Any:
    """`late: discard` is short for `{discard: {}}`."""
    if value is None or isinstance(value, str):
        if value not in ("discard", "next_window", "reemit"):
            _choose(value, ["discard", "next_window", "{reemit: {max_lateness: 3d}}"])
        return {value: {}}
    return value


def ready_section(value: Any) -> Any:
    """`ready: exists` and `ready: always` are no names of marker files."""
    if value in ("exists", "always"):
        return {"marker": value}
    if isinstance(value, dict):
        if value.get("marker") in ("exists", "always"):
            raise InvalidUsage(f"a marker file cannot be called {value['marker']}, which has a meaning here")
        if isinstance(value.get("marker"), str) and "{" in value["marker"]:
            template.check(value["marker"])
        return value
    return _choose(value, ["exists", "always", "{marker: NAME}"])


def _choose(value: Any, choices: Iterable[str]) -> Any:
    raise InvalidUsage(f"{value!r} is not one of {', '.join(choices)}")


def rate_section(value: Any) -> Any:
    """`rate_change: 0.5` is short for `rate_change: {by: 0.5}`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        {"by": float(value)} if number else value if isinstance(value, dict) else _choose(value, ["0.5", "{by: 0.5}"])
    )


def time_section(value: Any) -> Any:
    """`time: arrival` is read from no column."""
    if value == "arrival":
        return None
    if isinstance(value, dict):
        return value
    return _choose(value, ["arrival", "{column: NAME}"])


def order_section(value: Any) -> Any:
    """A column, or several, each named once."""
    if not isinstance(value, list):
        return None if value is None else _field(value)
    names = [_field(name) for name in value]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise InvalidUsage(f"column {twice[0]} is named twice")
    return names


_NOT_READ = {
    "avro": "Avro is not read; write Parquet or JSON lines, and format: parquet, or jsonl",
    "orc": "ORC is not read; write Parquet, and format: parquet",
    "xlsx": "a workbook of Excel is not read; save its sheet as CSV, and write format: csv",
    "zip": "a zip archive is not read; unpack it, or compress each file by itself with gzip, and write its format: csv",
    "tsv": 'write format: csv, and csv: {delimiter: "\\t"}',
    "ndjson": "write format: jsonl",
    "gz": "write the format of what is compressed: csv, or jsonl; `compression` is found by the ends of names",
}
_NOT_READ |= {"xls": _NOT_READ["xlsx"], "excel": _NOT_READ["xlsx"], "gzip": _NOT_READ["gz"]}
"""Formats that people have, and what to do."""


def format_word(value: Any) -> Any:
    """A format, or the refusal of one that is not read."""
    if isinstance(value, str) and (advice := _NOT_READ.get(value.lower().lstrip("."))):
        raise InvalidUsage(f"{value!r} is no format here: {advice}")
    return value


def csv_text(value: Any) -> Any:
    """A text of `csv`, which YAML takes for something else without quotes."""
    if isinstance(value, str):
        return value
    raise InvalidUsage(f'a text is expected, found {"nothing" if value is None else repr(value)}; quote it: "#"')


def null_section(value: Any) -> Any:
    """A list of texts, which YAML takes for something else without quotes: NULL, ~, 0, N/A."""
    if not isinstance(value, list):
        said = "nothing" if value is None else repr(value)
        raise InvalidUsage(f'a list of texts is expected, found {said}; write null: ["", "NULL"]')
    for text in value:
        if not isinstance(text, str):
            said = "nothing (as NULL and ~ are in YAML)" if text is None else repr(text)
            raise InvalidUsage(f'a text is expected, found {said}; quote it: ["NULL", "0"]')
    return value


def beyond_word(value: Any) -> Any:
    """`beyond: null` is a word here, though it is nothing in YAML."""
    return "null" if value is None else value


MAX_FIELD = 500
"""Characters of a field's name in a file."""


def from_words(value: Any) -> Any:
    """What a column is called in files: any names."""
    names = value if isinstance(value, list) else [] if value is None else [value]
    if odd := [name for name in names if not isinstance(name, str)]:
        raise InvalidUsage(f"a name is text, and {_no_text(odd[0])} in YAML; quote it")
    if long := [name for name in names if len(name) > MAX_FIELD]:
        raise InvalidUsage(f"a name has at most {MAX_FIELD} characters, and there is one of {len(long[0])}")
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise InvalidUsage(f"{twice[0]!r} is named twice")
    if value == []:
        raise InvalidUsage("name one field or more")
    return value


def _no_text(value: Any) -> str:
    """What is no text. Of `yes`, `no`, `on` and `off` YAML 1.1 makes truths, which is said."""
    return f"{'yes' if value else 'no'} is {str(value).lower()}" if isinstance(value, bool) else f"{value!r} is none"


def path_word(value: Any) -> Any:
    """What of a path is meant: a folder's name, or a pattern."""
    if not isinstance(value, str):
        raise InvalidUsage(f"a folder's name or a pattern is text, and {_no_text(value)} in YAML; quote it")
    path_value.check(value)
    if path_value.is_pattern(value):
        from tidemark.quality.regexes import check_regex

        check_regex(path_value.named(value))
    return value


def column_section(value: Any) -> Any:
    """`note: string` is short for `{type: string}`."""
    if isinstance(value, dict):
        return value
    return {"type": value} if isinstance(value, str) else _choose(value, ["a type", "{type: string, was: NAME}"])


def from_section(value: Any) -> Any:
    """`from: flights` is short for `from: [flights]`; an input is named once."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        _choose(value, ["a collection's name", "[flights, carriers]"])
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise InvalidUsage(f"input {twice[0]} is named twice")
    return names


def text_of_select(value: Any) -> str:
    """A query; not nothing."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidUsage(f"a select is a query of Spark SQL, found {value!r}")
    return value.strip()


def python_definition(value: Any) -> str:
    """`module:function`."""
    return _named(value, "my_definitions:delays")


def function_name(value: Any) -> str:
    """`module:function`, or a class."""
    return _named(value, "my_alerts:page")


def _named(value: Any, example: str) -> str:
    if not isinstance(value, str) or not _PYTHON.fullmatch(value):
        raise InvalidUsage(f"{value!r} names no function; write module:function, as {example}")
    return value


def version_text(value: Any) -> Any:
    """`version: 3` is `'3'`; a float is not what it looks like (1.10 is 1.1)."""
    if isinstance(value, float):
        raise InvalidUsage(f"version {value!r} is a number with a point; quote it")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _type(value: Any) -> Any:
    if not isinstance(value, str):
        return _choose(value, ["a type"])
    try:
        return parse_type(value)
    except InvalidUsage:
        if value.startswith("decimal"):
            raise
        ours = _ELSEWHERE.get(value.lower().split("(")[0].rstrip("0123456789"))
        hint = f"; did you mean {ours!r}?" if ours else nearest(value, list(map(str, _TYPES)))
        raise InvalidUsage(f"{value!r} is not valid{hint}") from None


ColumnName = Annotated[str, checked(_column)]
ColumnInFiles = Annotated[str, checked(_column_in_files)]
Type = Annotated[ColumnType | DecimalType, checked(_type)]
FieldName = Annotated[str, checked(_field)]
"""A column, or a field within a message: `source.ts_ms`."""
Instant = Annotated[int, BeforeValidator(_instant)]
ZoneName = Annotated[str, checked(_zone)]
Duration = Annotated[int, checked(duration)]
CollectionName = Annotated[str, checked(_name)]
Schedule = Annotated[str, checked(_schedule)]
PathTemplate = Annotated[str, checked(_path)]
