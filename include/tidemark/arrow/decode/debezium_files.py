"""Files of Debezium messages, as flat columns: `op`, `after.name`, `source.ts_ms`, and `key.id` of the message's key.

A message is bare, `{"op": …, "before": …, "after": …, "source": …}`, or wrapped, `{"schema": …, "payload": …}`, as
the converters of Kafka Connect write it; or with its key beside it, `{"key": …, "value": …}`, as sinks do. One file
holds one form, seen at its first message. A message that is null has TOMBSTONE as its `op`.
"""

from __future__ import annotations

import json
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import jsonlfile
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.jsonlfile import Field
from tidemark.arrow.decode.parquetfile import opened
from tidemark.arrow.rows.arrays import bools_of, first_true, of_bools, scalar_of
from tidemark.errors import listed
from tidemark.model.collection import Format

TOMBSTONE = "tombstone"
OP = "op"
_BODIES = ("", "payload", "value", "value.payload")
_KEYS = ("key.payload", "key")
_CONNECT = "org.apache.kafka.connect.data."
_DECIMALS = (f"{_CONNECT}Decimal", "io.debezium.data.VariableScaleDecimal")
_UNITS = {
    f"{_CONNECT}Date": "days",
    f"{_CONNECT}Timestamp": "ms",
    "io.debezium.time.Date": "days",
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
"""What the numbers of the logical types of times count since the epoch."""
_NO_OP = (
    "has no op, as a change message of Debezium has; for rows that were flattened (ExtractNewRecordState) use the "
    "upsert envelope"
)

_TEXT_IMAGE = (
    "after is a text, as the connector of MongoDB writes it; flatten messages (ExtractNewDocumentState) and use the "
    "upsert envelope"
)


@dataclass(frozen=True)
class _Form:
    """Where the fields of a message and of its key are."""

    body: str = ""
    key: str = "key"

    def path(self, field: str) -> str:
        if field.startswith("key."):
            return f"{self.key}.{field.removeprefix('key.')}"
        return f"{self.body}.{field}" if self.body else field


@dataclass(frozen=True)
class LogicalType:
    """What the schema of messages says of a field.

    Attributes:
        name: The logical type; of a field without one, the type.
        unit: What its numbers count since the epoch, if they do.
        is_precise: Whether it is a decimal as a whole number.
        scale: The digits behind the point of such a decimal, if all its values have as many.
    """

    name: str
    unit: str | None
    is_precise: bool
    scale: int | None

    @classmethod
    def of_field(cls, field: dict[str, Any]) -> LogicalType:
        name = str(field.get("name") or field.get("type"))
        scale = str(_at(field, "parameters.scale"))
        has_scale = name == _DECIMALS[0] and scale.isdecimal()
        return cls(name, _UNITS.get(name), name in _DECIMALS, int(scale) if has_scale else None)


def read_blocks(
    content: Content, file_format: Format, fields: Sequence[Field], optional: Names[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The fields, block by block; what a message lacks is null. `op` must be among them, and the first.

    Raises BadFile for a file of anything else, and for a field that no message has but for `before.` and `key.`, which
    a connector may leave out, for those that are `optional`, and for `after.` where there are only deletes.
    """
    optional = {field.name for field in fields if field.name in optional or field.name.startswith(("before.", "key."))}
    if file_format is Format.PARQUET:
        return _parquet_blocks(content, fields, optional)
    return _jsonl_blocks(content, fields, optional)


def first_source(content: Content, file_format: Format) -> dict[str, Any] | None:
    """Where the first message that is not null comes from, its `source`; None if all are null."""
    if file_format is Format.JSONL:
        form = _jsonl_form(content, ())
        rows = jsonlfile.parsed_lines(content) if form else ()
        sources = (_at(row, form.path("source")) for _, row in rows if form and _at(row, form.path(OP)) is not None)
        return next((source if isinstance(source, dict) else {} for source in sources), None)
    with opened(content) as file:
        form = _parquet_form(content, file.schema, ())
        paths = {name: form.path(f"source.{name}") for name in ("connector", "snapshot")}
        present = {name: path for name, path in paths.items() if _type_at(file.schema, path) is not None}
        for block in file.blocks([form.path(OP), *present.values()]):
            at = first_true(block.column(0).is_valid())
            if at >= 0:
                return {name: cell[at].as_py() for name, cell in zip(present, block.columns[1:], strict=True)}
    return None


def _jsonl_blocks(content: Content, fields: Sequence[Field], optional: Names[str]) -> Iterator[pa.RecordBatch]:
    form = _jsonl_form(content, fields)
    if form is None:
        return
    names = [field.name for field in fields]
    columns = [replace(field, name=form.path(field.name)) for field in fields]
    tombstones: frozenset[int] | None = None
    unseen, first = {name for name in names if name not in optional}, 0
    for block in jsonlfile.read_blocks(
        content, columns, optional=True, null_line=_null_message(form), json_in_texts=True
    ):
        read = block.rename_columns(names)
        unseen -= {name for name in unseen if read.column(name).null_count < read.num_rows}
        if read.column(OP).null_count:
            if tombstones is None:
                tombstones = frozenset(_null_rows(content, form))
            rows = np.arange(first, first + read.num_rows)
            null = of_bools(np.array([int(row) in tombstones for row in rows], np.bool_))
            read = read.set_column(0, OP, pc.if_else(null, scalar_of(TOMBSTONE, pa.string()), read.column(OP)))
        first += read.num_rows
        yield read
    _check_present(content, form, unseen)


def _parquet_blocks(content: Content, fields: Sequence[Field], optional: Names[str]) -> Iterator[pa.RecordBatch]:
    with opened(content) as file:
        form = _parquet_form(content, file.schema, fields)
        present = {field.name for field in fields if _type_at(file.schema, form.path(field.name)) is not None}
        if missing := [field.name for field in fields if field.name not in {*present, *optional}]:
            has = listed(_names_beside(file.schema, form.path(missing[0])))
            name = missing[0].removeprefix("after.")
            raise BadFile(content.path, f"column {name} is missing; the messages have {has}")
        names = [field.name for field in fields if field.name in present]
        for block in file.blocks([form.path(name) for name in names]):
            read = dict(zip(names, block.columns, strict=True))
            nothing = pa.nulls(block.num_rows)
            yield _with_tombstones(pa.record_batch({field.name: read.get(field.name, nothing) for field in fields}))


def images(content: Content, file_format: Format, most: int) -> list[str]:
    """The fields of after-images: of a file of JSON lines, those of the first `most` messages."""
    if file_format is Format.PARQUET:
        with opened(content) as file:
            return _names_beside(file.schema, _parquet_form(content, file.schema, ()).path("after.any"))
    form = _jsonl_form(content, ())
    rows = islice(jsonlfile.parsed_lines(content), most) if form else ()
    images = [image for _, row in rows if form and isinstance(image := _at(row, form.path("after")), dict)]
    return list(dict.fromkeys(name for image in images for name in image))


def logical_types(content: Content) -> dict[str, LogicalType]:
    """What the fields of after-images are, as the schema of the first message of a file of JSON lines has them; empty
    where messages come without."""
    for _, row in jsonlfile.parsed_lines(content):
        for place in ("schema", "value.schema"):
            if isinstance(schema := _at(row, place), dict):
                after = next(_fields_of(schema, "after"), {})
                return {str(field.get("field")): LogicalType.of_field(field) for field in _fields_of(after)}
        if row is not None:
            break
    return {}


def _fields_of(schema: dict[str, Any], named: str | None = None) -> Iterator[dict[str, Any]]:
    fields = schema.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and named in (None, field.get("field")):
            yield field


def _with_tombstones(block: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that are null but for the message's key are messages that are null."""
    op = block.column(OP)
    if not op.null_count:
        return block
    null = np.ones(block.num_rows, np.bool_)
    for name in block.schema.names:
        if not name.startswith("key."):
            null &= bools_of(block.column(name).is_null())
    op = pc.if_else(of_bools(null), scalar_of(TOMBSTONE, pa.string()), op.cast(pa.string()))
    return block.set_column(0, OP, op)


def _jsonl_form(content: Content, fields: Sequence[Field]) -> _Form | None:
    """The form of the first message that is not null; None if all are."""
    for line, row in jsonlfile.parsed_lines(content):
        for body in _BODIES:
            message = _at(row, body)
            if isinstance(message, dict) and OP in message:
                if isinstance(message.get("after"), str):
                    raise BadFile(content.path, f"line {line}: {_TEXT_IMAGE}")
                return _Form(body, _key_of(fields, lambda path, row=row: isinstance(_at(row, path), dict)))
        if row is not None and not any(_is_null(row, body) for body in _BODIES if body):
            has = f": {listed(row)}" if isinstance(row, dict) else ""
            raise BadFile(content.path, f"line {line}: {_NO_OP}{has}")
    return None


def _parquet_form(content: Content, schema: pa.Schema, fields: Sequence[Field]) -> _Form:
    for body in _BODIES:
        if _type_at(schema, _Form(body).path(OP)) is not None:
            return _Form(body, _key_of(fields, lambda path: _type_at(schema, path) is not None))
    raise BadFile(content.path, f"{_NO_OP}: {listed(schema.names)}")


def _key_of(fields: Sequence[Field], exists: Any) -> str:
    keyed = any(field.name.startswith("key.") for field in fields)
    return next((path for path in _KEYS if keyed and exists(path)), "key")


def _at(row: Any, path: str) -> Any:
    for step in path.split(".") if path else ():
        row = row.get(step) if isinstance(row, dict) else None
    return row


def _is_null(row: Any, body: str) -> bool:
    """Whether a message's place is there, and null."""
    above, _, name = body.rpartition(".")
    parent = _at(row, above)
    return isinstance(parent, dict) and name in parent and parent[name] is None


def _null_rows(content: Content, form: _Form) -> Iterator[int]:
    """Which rows of a file hold no message, a null in its place."""
    steps = form.body.split(".") if form.body else []
    bodies = [".".join(steps[: at + 1]) for at in range(len(steps))]
    for number, (_, row) in enumerate(jsonlfile.parsed_lines(content)):
        if row is None or any(_is_null(row, body) for body in bodies):
            yield number


def _null_message(form: _Form) -> bytes:
    """A line that is read as a message that is null."""
    message: Any = TOMBSTONE
    for step in reversed(form.path(OP).split(".")):
        message = {step: message}
    return json.dumps(message).encode()


def _check_present(content: Content, form: _Form, names: Iterable[str]) -> None:
    """Raise BadFile if no message has one of the fields, not even as null; `after.` only if there is an after-image."""
    absent, images = set(names), False
    for _, row in jsonlfile.parsed_lines(content) if absent else ():
        if isinstance(_at(row, form.path("after")), dict):
            images = True
        absent -= {name for name in absent if _is_null(row, form.path(name)) or _at(row, form.path(name)) is not None}
        if not absent:
            return
    if images and absent:
        raise BadFile(content.path, f"column {sorted(absent)[0].removeprefix('after.')} is in no message")


def _type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """The type of a column within structs; None if there is none."""
    of: Any = pa.struct(list(schema))
    for step in path.split("."):
        at = of.get_field_index(step) if pa.types.is_struct(of) else -1
        if at < 0:
            return None
        of = of.field(at).type
    return of


def _names_beside(schema: pa.Schema, path: str) -> list[str]:
    above = path.rpartition(".")[0]
    of = _type_at(schema, above) if above else pa.struct(list(schema))
    return [field.name for field in of] if of is not None and pa.types.is_struct(of) else list(schema.names)
