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
from functools import cached_property
from itertools import chain, compress, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import jsonlfile
from tidemark.arrow.decode.columns_in_file import by_column, labelled, one_each, type_at
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.jsonlfile import Field
from tidemark.arrow.decode.messages import FLATTENED, flattened, kind_of
from tidemark.arrow.decode.only import Only
from tidemark.arrow.decode.parquetfile import Opened, opened
from tidemark.arrow.rows.arrays import bools_of, of_bools, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints
from tidemark.errors import listed
from tidemark.model.collection import MAX_PRECISION, ColumnType, Format
from tidemark.model.field_path import DOT, steps
from tidemark.model.only import OP, TABLE_FIELDS, table_of

TOMBSTONE = "tombstone"
_TABLE_NAMES = tuple(name.removeprefix("source.") for name in TABLE_FIELDS)
_MARKERS = ("ts_ms", "status", "ddl", "specversion", "database")
"""Fields of what is no change message and no null, one of each."""
_FIELDS = frozenset({OP, "before", "after", "source", "ts_ms", "ts_us", "ts_ns", "transaction"})
"""Those of change messages."""
_BODIES = ("", "payload", "value", "value.payload")
_KEYS = ("key.payload", "key")
_LOOKED_AT = 100
"""Messages of a file among which one with a row is looked for."""
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
_ANY_SCALE = 10
"""Digits behind the point that are proposed where each value has its own."""
_OTHERS = {
    "io.debezium.time.ZonedTimestamp": "timestamp",
    "io.debezium.time.IsoTimestamp": "timestamp",
    "io.debezium.time.IsoDate": "date",
    "io.debezium.data.Json": "json",
    "io.debezium.data.Bits": "bytes",
    "bytes": "bytes",
}
"""How columns of other logical types, and of types without one, are declared, where texts may be something else."""
_NO_OP = f"has no op, as a change message of Debezium has; {FLATTENED}"

_DOCUMENTS = "flatten messages (ExtractNewDocumentState) and use the upsert envelope"
_TEXT_IMAGE = f"{{}} is a text, as the connector of MongoDB writes it; {_DOCUMENTS}"
_NO_DOCUMENT = f"an update without after, as the connector of MongoDB writes it; {_DOCUMENTS}"


@dataclass(frozen=True)
class _Form:
    """Where the fields of a message and of its key are."""

    body: str = ""
    key: str = "key"
    odd: frozenset[str] = frozenset()
    """The fields that say whose a message is, where the first message has no text in them, or does not have them."""

    def path(self, field: str) -> str:
        if field.startswith("key."):
            return f"{self.key}.{field.removeprefix('key.')}"
        return f"{self.body}.{field}" if self.body else field

    def placed(self, field: Field) -> Field:
        """A field of messages as one of rows."""
        return replace(field, name=self.path(field.name), places=tuple(map(self.path, field.places)))

    def places(self, field: Field) -> list[str]:
        """Where a field of messages may be in a row."""
        return [self.path(place) for place in field.at]


@dataclass(frozen=True)
class LogicalType:
    """What the schema of messages says of a field.

    Attributes:
        name: The logical type; of a field without one, the type.
        unit: What its numbers count since the epoch, if they do.
        is_precise: Whether it is a decimal as a whole number.
        scale: The digits behind the point of such a decimal, if all its values have as many.
        precision: All its digits, if it is known how many.
    """

    name: str
    unit: str | None
    is_precise: bool
    scale: int | None
    precision: int | None = None

    @property
    def declared(self) -> str:
        """How a column of it is declared, where another type than that of its JSON value fits better; else empty."""
        if self.unit:
            return f"{{type: {'date' if self.unit == 'days' else 'timestamp'}, unit: {self.unit}}}"
        if self.is_precise:
            precision = min(self.precision or MAX_PRECISION, MAX_PRECISION)
            scale = _ANY_SCALE if self.scale is None else self.scale
            return f'{{type: "decimal({precision}, {scale})", decimals: precise}}' if scale <= precision else "string"
        return _OTHERS.get(self.name, "")

    @classmethod
    def of_field(cls, field: dict[str, Any]) -> LogicalType:
        name = str(field.get("name") or field.get("type"))
        scale = str(_at(field, "parameters.scale"))
        precision = str(dict(field.get("parameters") or {}).get("connect.decimal.precision"))
        has_scale = name == _DECIMALS[0] and scale.isdecimal()
        return cls(
            name,
            _UNITS.get(name),
            name in _DECIMALS,
            int(scale) if has_scale else None,
            int(precision) if precision.isdecimal() and int(precision) else None,
        )


def read_blocks(
    content: Content,
    file_format: Format,
    fields: Sequence[Field],
    optional: Names[str] = (),
    only: Only | None = None,
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """The fields, block by block, with the numbers of the messages: those that `only` takes, none of them null, or all.

    What a message lacks is null. `op` must be among the fields, and the first.

    Raises BadFile for a file of anything else, and for a field that no message has but for `before.` and `key.`, which
    a connector may leave out, for those that are `optional`, and for `after.` where there are only deletes.
    """
    needless = {field.name for field in fields if field.optional or field.name.startswith(("before.", "key."))}
    if file_format is Format.PARQUET:
        return _parquet_blocks(content, fields, {*optional, *needless}, only)
    return _jsonl_blocks(content, fields, optional, needless, only)


def first_source(content: Content, file_format: Format, only: Only | None = None) -> dict[str, Any] | None:
    """Where the first message comes from that is not null and that `only` takes, its `source`; None without one."""
    at = None
    if only is not None:
        blocks = read_blocks(content, file_format, [Field(OP, ColumnType.STRING, "string")], only=only)
        at = next((int(rows[0]) for _, rows in blocks if len(rows)), None)
        if at is None:
            return None
    sources = _sources(content, file_format, ("connector", "snapshot", "sequence", "txId", "commit_lsn", "gtid"))
    return next((source for row, source in sources if at in (None, row)), None)


def _sources(content: Content, file_format: Format, fields: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The `source` of each message that is not null, with at least the fields that it has, and the message's number."""
    if file_format is Format.JSONL:
        form = _jsonl_form(content, (), may_leave=True)
        for number, (_, row) in enumerate(jsonlfile.parsed_lines(content) if form else ()):
            if form and _at(row, form.path(OP)) is not None:
                source = _at(row, form.path("source"))
                yield number, source if isinstance(source, dict) else {}
        return
    with opened(content) as file:
        form = _parquet_form(content, file.schema, (), may_leave=True)
        paths = {name: form.path(f"source.{name}") for name in fields} if form else {}
        present = {name: path for name, path in paths.items() if type_at(file.schema, path) is not None}
        first = 0
        for block in file.blocks([form.path(OP), *present.values()]) if form else ():
            for at in bools_of(block.column(0).is_valid()).nonzero()[0]:
                cells = zip(present, block.columns[1:], strict=True)
                yield first + int(at), {name: cell[int(at)].as_py() for name, cell in cells}
            first += block.num_rows


def tables(content: Content, file_format: Format) -> Iterator[tuple[int, str]]:
    """The table of each message that names one (`table_of`), with its number. Slow: for few messages."""
    for number, source in _sources(content, file_format, _TABLE_NAMES):
        texts = {f"source.{name}": value for name, value in source.items() if isinstance(value, str)}
        if table := table_of(texts):
            yield number, table


def _no_rows(message: dict[str, Any]) -> str | None:
    """Why a message has no rows as its images, if it is one of documents."""
    if text := next((name for name in ("after", "before") if isinstance(message.get(name), str)), None):
        return _TEXT_IMAGE.format(text)
    is_update = message.get(OP) == "u" and message.get("after") is None
    return _NO_DOCUMENT if is_update and _at(message, "source.connector") == "mongodb" else None


def document(content: Content) -> BadFile | None:
    """The error for the first message of MongoDB without rows, where a file of JSON lines is refused: it may be why."""
    try:
        for line, row in jsonlfile.parsed_lines(content):
            if problem := next((problem for message in _messages_in(row) if (problem := _no_rows(message))), None):
                return BadFile(content.path, f"line {line}: {problem}")
    except BadFile:
        return None
    return None


def names_at(content: Content, file_format: Format, number: int) -> list[str]:
    """The fields of a row, those of the message in it: of Parquet without those of a change message that are null."""
    if file_format is Format.JSONL:
        row = next((row for at, (_, row) in enumerate(jsonlfile.parsed_lines(content)) if at == number), None)
        return list(next(_messages_in(row), {}))
    with opened(content) as file:
        for block in file.blocks(file.schema.names):
            if number < block.num_rows:
                (row,) = block.slice(number, 1).to_pylist()
                return [
                    name for name, value in next(_messages_in(row)).items() if value is not None or name not in _FIELDS
                ]
            number -= block.num_rows
    return []


def _messages_in(row: Any) -> Iterator[dict[str, Any]]:
    """What may be the message of a row, the row itself last."""
    for body in reversed(_BODIES):
        if isinstance(message := _at(row, body), dict):
            yield message


def _jsonl_blocks(
    content: Content, fields: Sequence[Field], extra: Names[str], optional: Names[str], only: Only | None
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    form = _jsonl_form(content, fields, may_leave=only is not None)
    if form is None:
        if only is not None:
            only.leave(sum(not _is_nothing(row) for _, row in jsonlfile.parsed_lines(content)))
        return
    fields = [field for field in fields if field.name not in form.odd & set(extra)]
    names = [field.name for field in fields]
    columns = [form.placed(field) for field in fields]
    nulls = _NullRows(content, form)
    unseen = {name for name in names if name not in optional and name not in extra}
    taken: list[Bools] = []
    for block, rows in jsonlfile.read_blocks(
        content,
        columns,
        optional=True,
        null_line=_null_message(form),
        placeholder=content.source.placeholder,
        sieve=_sieve(form, only, nulls, taken, unseen) if only else None,
    ):
        read = block.rename_columns(names)
        unseen -= {name for name in unseen if read.column(name).null_count < read.num_rows}
        if read.column(OP).null_count:
            null = of_bools(nulls.among(rows))
            read = read.set_column(0, OP, pc.if_else(null, scalar_of(TOMBSTONE, pa.string()), read.column(OP)))
        yield read, rows
    if only is not None:
        _check_only(content, form, only)
    _check_present(content, form, [field for field in fields if field.name in unseen], taken)


def _sieve(form: _Form, only: Only, nulls: _NullRows, taken: list[Bools], unseen: Names[str]) -> jsonlfile.Sieve:
    """Which lines are read whole; as long as fields are `unseen`, the rows of all blocks are noted in `taken`."""
    columns = [*{field.name: field for field in (Field(OP, ColumnType.STRING, "string"), *only.raw)}.values()]

    def keep(block: pa.RecordBatch, rows: Ints) -> Bools:
        read = block.rename_columns([column.name for column in columns])
        is_message = _is_message(read.column(OP))
        if read.column(OP).null_count:
            is_message &= ~nulls.among(rows)
        answers = only.keep(read, rows, is_message)
        if unseen:
            taken.append(answers)
        return answers

    return jsonlfile.Sieve([form.placed(column) for column in columns], keep)


def _is_message(op: pa.Array) -> Bools:
    """Which rows are none of those that were found to be null."""
    op = op if pa.types.is_string(op.type) else op.cast(pa.string())
    return bools_of(pc.not_equal(op, scalar_of(TOMBSTONE, op.type)).fill_null(scalar_of(True, pa.bool_())))


class _NullRows:
    """The rows of a file of JSON lines that hold no message, a null in its place; found when they are asked for."""

    def __init__(self, content: Content, form: _Form) -> None:
        self._content, self._form = content, form

    @cached_property
    def _numbers(self) -> frozenset[int]:
        return frozenset(_null_rows(self._content, self._form))

    def among(self, rows: Ints) -> Bools:
        """Which of some rows these are."""
        return np.array([int(row) in self._numbers for row in rows], np.bool_)


def _parquet_blocks(
    content: Content, fields: Sequence[Field], optional: Names[str], only: Only | None
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    with opened(content) as file:
        form = _parquet_form(content, file.schema, fields, may_leave=only is not None)
        if form is None:
            if only is not None:
                only.leave(file.footer.metadata.num_rows)
            return
        looked_at = only.raw if only else []
        there = {
            field.name: [path for path in form.places(field) if type_at(file.schema, path) is not None]
            for field in (*fields, *looked_at)
        }
        if only and (absent := [field.name for field in looked_at if not there[field.name] and not field.optional]):
            raise only.refuse(
                absent[0], f"the messages have {listed(_names_beside(file.schema, form.path(absent[0])))}"
            )
        if missing := [field for field in fields if not there[field.name] and field.name not in optional]:
            beside = listed(_names_beside(file.schema, form.path(missing[0].name)))
            problem = f"column {_label(missing[0])} is missing; the messages have {beside}{missing[0].if_missing}"
            raise BadFile(content.path, problem)
        every = list(dict.fromkeys([*(field.name for field in (*fields, *looked_at)), *_markers(file, form)]))
        there |= {name: [form.path(name)] for name in every if name not in there}
        names = [name for name in every if there[name]]
        blocks = file.blocks(one_each(content, chain.from_iterable(there[name] for name in names)))
        first = 0
        for block in by_column(content, {name: there[name] for name in names}, blocks, _row, pa.null()):
            rows, nothing = np.arange(first, first + block.num_rows), pa.nulls(block.num_rows)
            first += block.num_rows
            columns = dict(zip(names, block.columns, strict=True))
            read = _with_tombstones(pa.record_batch({name: columns.get(name, nothing) for name in every}))
            if only is not None:
                taken = only.keep(read, rows, _is_message(read.column(OP)))
                read, rows = read.filter(of_bools(taken)), rows[taken]
            yield read, rows


def _row(number: int) -> str:
    return f"row {number + 1}"


def _label(field: Field) -> str:
    """A field of messages for people: as its column is called."""
    return labelled(field.name.removeprefix("after."), [place.removeprefix("after.") for place in field.places])


def _markers(file: Opened, form: _Form) -> list[str]:
    """The fields by which a row without an op is more than nothing, where there may be such a row."""
    metadata, path = file.footer.metadata, form.path(OP)
    at = next((at for at in range(metadata.num_columns) if metadata.schema.column(at).path == path), None)
    if at is None:
        return []
    groups = (metadata.row_group(number).column(at).statistics for number in range(metadata.num_row_groups))
    if all(group is not None and group.has_null_count and not group.null_count for group in groups):
        return []
    return [name for name in _MARKERS if type_at(file.schema, form.path(name)) is not None]


def images(content: Content, file_format: Format, most: int, numbers: Sequence[int] | None = None) -> list[str]:
    """The fields of after-images: of a file of JSON lines, those of the first `most` messages, or of those numbered."""
    if file_format is Format.PARQUET:
        with opened(content) as file:
            form = _parquet_form(content, file.schema, (), may_leave=True)
            return _names_beside(file.schema, form.path("after.any")) if form else []
    form = _jsonl_form(content, (), may_leave=True)
    last = most if numbers is None else max(numbers, default=-1) + 1
    rows = enumerate(islice(jsonlfile.parsed_lines(content), last)) if form else ()
    taken = [row for number, (_, row) in rows if numbers is None or number in numbers]
    images = [image for row in taken if form and isinstance(image := _at(row, form.path("after")), dict)]
    return list(dict.fromkeys(name for image in images for name in image))


def shows_rows(content: Content, file_format: Format) -> bool:
    """Whether one of a file's first messages has an after-image, or nothing is known of them."""
    try:
        return bool(images(content, file_format, _LOOKED_AT))
    except BadFile:
        return True


def only_keys(content: Content, keys: Names[str]) -> BadFile | None:
    """The error for a file of JSON lines that has the keys of messages, which a sink writes beside the messages."""
    try:
        line, row = next(((line, row) for line, row in jsonlfile.parsed_lines(content) if row is not None), (0, None))
    except BadFile:
        return None
    names = next(_messages_in(row), {})
    if not names or not {*names} <= {*keys}:
        return None
    pattern = "with the path match the files of messages alone, as {{ ds }}/*[0-9].json does beside *.keys.json"
    return BadFile(content.path, f"line {line}: has only the key of a message ({', '.join(names)}); {pattern}")


def _as_text(row: Any) -> str | None:
    """Why a row has a message as a text, if it has."""
    texts = {"the line": row, **{body: _at(row, body) for body in ("value", "payload")}}
    where = next((name for name, text in texts.items() if isinstance(text, str) and text.lstrip()[:1] == "{"), None)
    if where is None:
        return None
    converter = "value.converter=org.apache.kafka.connect.json.JsonConverter"
    return f"{where} is a text that has a message in it; have the sink write the message itself: {converter}"


def logical_types(content: Content, first: int = 0) -> dict[str, LogicalType]:
    """What the fields of after-images are, as the schema of the first message of a file of JSON lines has them, from
    row `first` on; empty where messages come without."""
    for _, row in islice(jsonlfile.parsed_lines(content), first, None):
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


def _jsonl_form(content: Content, fields: Sequence[Field], *, may_leave: bool = False) -> _Form | None:
    """The form of the first message that is not null; None if all are, or if all that are not `may_leave`."""
    for line, row in jsonlfile.parsed_lines(content):
        for body in _BODIES:
            message = _at(row, body)
            if isinstance(message, dict) and OP in message:
                if problem := _no_rows(message):
                    raise BadFile(content.path, f"line {line}: {problem}")
                key = _key_of(fields, lambda path, row=row: isinstance(_at(row, path), dict))
                said = message.get("source")
                fields_of: dict[str, Any] = (
                    {f"source.{name}": said[name] for name in said} if isinstance(said, dict) else {}
                )
                not_there = {"source.schema", "source.collection"} - set(fields_of)
                no_text = {name for name in TABLE_FIELDS if not isinstance(fields_of.get(name), str | None)}
                return _Form(body, key, frozenset(no_text | not_there))
        if not _is_nothing(row):
            kind = next((kind for message in _messages_in(row) if (kind := kind_of(message))), None)
            if may_leave and kind and not kind.advice:
                continue
            has = f": {listed(row)}{flattened(row)}" if isinstance(row, dict) else ""
            raise BadFile(content.path, f"line {line}: {kind.refusal if kind else _as_text(row) or _NO_OP + has}")
    return None


def _is_nothing(row: Any) -> bool:
    """Whether a row is a message that is null, wherever a message may be in it."""
    return row is None or any(_is_null(row, body) for body in _BODIES if body)


def _parquet_form(
    content: Content, schema: pa.Schema, fields: Sequence[Field], *, may_leave: bool = False
) -> _Form | None:
    for body in _BODIES:
        if type_at(schema, _Form(body).path(OP)) is not None:
            for image in ("after", "before"):
                if (image_type := type_at(schema, _Form(body).path(image))) and pa.types.is_string(image_type):
                    raise BadFile(content.path, _TEXT_IMAGE.format(image))
            return _Form(body, _key_of(fields, lambda path: type_at(schema, path) is not None))
    bodies = (_names_beside(schema, _Form(body).path(OP)) for body in reversed(_BODIES))
    kind = next((kind for names in bodies if (kind := kind_of(names))), None)
    if may_leave and kind and not kind.advice:
        return None
    raise BadFile(content.path, kind.refusal if kind else f"{_NO_OP}: {listed(schema.names)}{flattened(schema.names)}")


def _key_of(fields: Sequence[Field], exists: Any) -> str:
    keyed = any(field.name.startswith("key.") for field in fields)
    return next((path for path in _KEYS if keyed and exists(path)), "key")


def _at(row: Any, path: str) -> Any:
    for step in steps(path) if path else ():
        row = row.get(step) if isinstance(row, dict) else None
    return row


def _is_null(row: Any, body: str) -> bool:
    """Whether a message's place is there, and null."""
    above, _, name = body.rpartition(".")
    parent, name = _at(row, above), name.replace(DOT, ".")
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


def _check_only(content: Content, form: _Form, only: Only) -> None:
    """Raise BadFile if a field that `only` looks at is in no message; one within what is null may be."""
    absent, messages = {field.name: form.places(field) for field in only.raw if field.name in only.unseen}, False
    for _, row in jsonlfile.parsed_lines(content) if absent else ():
        if _at(row, form.path(OP)) is None:
            continue
        messages = True
        absent = {
            name: paths
            for name, paths in absent.items()
            if not any(_leads_to_null(row, path) or _at(row, path) is not None for path in paths)
        }
    if messages and absent:
        raise only.refuse(sorted(absent)[0], "look at the fields that messages have")


def _leads_to_null(row: Any, path: str) -> bool:
    steps = path.split(".")
    return any(_is_null(row, ".".join(steps[: at + 1])) for at in range(len(steps)))


def _check_present(content: Content, form: _Form, fields: Iterable[Field], taken: Sequence[Bools] = ()) -> None:
    """Raise BadFile if no message has one of the fields, not even as null; `after.` only if there is an after-image.

    Messages are all, or those `taken`, where that is said of each row.
    """
    absent, images = list(fields), False
    lines = jsonlfile.parsed_lines(content) if absent else iter(())
    for _, row in compress(lines, chain.from_iterable(taken)) if taken else lines:
        if isinstance(_at(row, form.path("after")), dict):
            images = True
        absent = [
            field
            for field in absent
            if not any(_is_null(row, path) or _at(row, path) is not None for path in form.places(field))
        ]
        if not absent:
            return
    if images and absent:
        first = min(absent, key=lambda field: field.name)
        raise BadFile(content.path, f"column {_label(first)} is in no message{first.if_missing}")


def _names_beside(schema: pa.Schema, path: str) -> list[str]:
    above = path.rpartition(".")[0]
    of = type_at(schema, above) if above else pa.struct(list(schema))
    return [field.name for field in of] if of is not None and pa.types.is_struct(of) else list(schema.names)
