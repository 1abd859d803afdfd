"""From a delta file to tables of declared columns: exact, or refused with one line that says where and why.

    for table in decode(fetch(file), collection): ...

Each table holds the key and value columns, the other columns the envelope needs (times, order_by, diff, those of
delete_when) under their own names, and `_row`, the position in the file from 0. Other columns are ignored. A change
message of Debezium gives a row for each key that it reports on, with `_deleted` (debezium.py). Rows that are in order
by several columns, or by their connector, have their place, `_order` (placed.py).
Nothing is ever rounded, wrapped or guessed (strict.py says what fits what).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
import pyarrow as pa

from tidemark.arrow.decode import csvfile, debezium, debezium_files, jsonlfile
from tidemark.arrow.decode.content import BadFile, Content, fetch
from tidemark.arrow.decode.parquetfile import opened
from tidemark.arrow.decode.placed import fields_of, placed
from tidemark.arrow.decode.typed import check_values, field_of, typed
from tidemark.arrow.rows.allowance import count_decoded
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.schema import DELETED, ORDER, ROW, source_schema
from tidemark.errors import listed, plain_line
from tidemark.model.collection import Collection, Column, Envelope, Format, Source
from tidemark.model.condition import text, tree

__all__ = ["BadFile", "Content", "decode", "fetch", "names_of", "source_columns", "undeclared"]

LINES_LOOKED_AT = 20
"""Of a file of JSON lines, for the names of its columns."""
NAME_SHOWN = 100
"""Characters of a name that a file gives to a column."""


@lru_cache(maxsize=64)  # it is asked for with each file, and there may be many
def source_columns(collection: Collection) -> tuple[Column, ...]:
    """Every column read from a source file, each once: key, value, then what the envelope needs besides."""
    landed, source = collection.landed, collection.landed.source
    names = [landed.time, landed.event_time, *source.order_columns]
    if source.envelope is Envelope.UPDATES:
        names.append(source.diff)
    if source.delete_when:
        names += tree.columns(text.parse(source.delete_when))
    wanted = [*(column.name for column in collection.columns), *(name for name in names if name)]
    ids = {column.name: column.id for column in collection.columns}
    return tuple(Column(name, collection.type_of(name), ids.get(name, 0)) for name in dict.fromkeys(wanted))


@lru_cache(maxsize=64)
def decoded_schema(collection: Collection) -> pa.Schema:
    """The columns of decoded rows."""
    schema, source = source_schema(source_columns(collection)), collection.landed.source
    if source.envelope is Envelope.DEBEZIUM:
        schema = schema.insert(schema.get_field_index(ROW), pa.field(DELETED, pa.bool_()))
    if source.has_places:
        schema = schema.insert(schema.get_field_index(ROW), pa.field(ORDER, pa.binary()))
    return schema


def decode(content: Content, collection: Collection) -> Iterator[pa.RecordBatch]:
    """The rows of a file in order, a bounded number of bytes at a time, which are counted (rows/allowance.py).

    Raises BadFile at the first thing that is wrong, also after some rows were given: take them only when all have come.
    Raises Unavailable where memory or storage fail.
    """
    for rows in _decoded(content, collection):
        count_decoded(rows.nbytes)
        yield rows


def undeclared(content: Content, collection: Collection) -> list[str]:
    """The columns of a file that can be decoded which the declaration does not name, as far as its first lines show."""
    read = {column.name for column in source_columns(collection)}
    return [plain_line(name, NAME_SHOWN) for name in names_of(content, collection.landed.source) if name not in read]


def names_of(content: Content, source: Source) -> list[str]:
    """The columns of a file, as far as its first lines show; of change messages those of the rows in them."""
    if source.envelope is Envelope.DEBEZIUM:
        return debezium_files.images(content, source.format, LINES_LOOKED_AT)
    match source.format:
        case Format.PARQUET:
            with opened(content) as file:
                return list(file.schema.names)
        case Format.CSV:
            return csvfile.names(content)
        case Format.JSONL:
            lines = islice(jsonlfile.parsed_lines(content), LINES_LOOKED_AT)
            return list(dict.fromkeys(name for _, row in lines if isinstance(row, dict) for name in row))


def _decoded(content: Content, collection: Collection) -> Iterator[pa.RecordBatch]:
    columns = source_columns(collection)
    content.check_kind(collection.landed.source.format)
    if collection.landed.source.envelope is Envelope.DEBEZIUM:
        yield from debezium.decode(content, collection, columns, decoded_schema(collection))
        return
    schema = decoded_schema(collection)
    first = 0
    for block in _blocks(content, collection, columns):
        arrays = [typed(content, collection, column, block.column(column.name), first) for column in columns]
        rows = of_numbers(np.arange(first, first + block.num_rows))
        for column, array in zip(columns, arrays, strict=True):
            check_values(content, collection, column, array, rows)
        if collection.has_places:
            typed_columns = {column.name: array for column, array in zip(columns, arrays, strict=True)}
            arrays.append(placed(content, collection, fields_of(collection, typed_columns), first))
        arrays.append(rows)
        first += block.num_rows
        if block.num_rows:
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _blocks(content: Content, collection: Collection, columns: tuple[Column, ...]) -> Iterator[pa.RecordBatch]:
    match collection.landed.source.format:
        case Format.PARQUET:
            return _parquet_blocks(content, collection, columns)
        case Format.CSV:
            return csvfile.read_blocks(content, [column.name for column in columns])
        case Format.JSONL:
            return jsonlfile.read_blocks(content, [field_of(collection, column) for column in columns])


def _parquet_blocks(content: Content, collection: Collection, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    with opened(content) as file:
        schema = file.schema
        has = schema.names
        for column in columns:
            if has.count(column.name) != 1:
                what = "in the file twice" if column.name in has else "missing"
                raise BadFile(content.path, f"column {column.name} is {what}; the file has {listed(has)}")
        for column in columns:
            # A type that cannot be the declared one is refused before any value of it is expanded.
            type_ = schema.field(column.name).type
            typed(content, collection, column, pa.array([], type_), 0)
        yield from file.blocks([column.name for column in columns])
