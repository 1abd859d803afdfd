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
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from tidemark.arrow.decode import csvfile, debezium, debezium_files, jsonlfile
from tidemark.arrow.decode.columns_in_file import by_column, if_missing, one_each, places_there, type_at
from tidemark.arrow.decode.content import BadFile, Content, fetch
from tidemark.arrow.decode.only import Only
from tidemark.arrow.decode.parquetfile import Opened, opened
from tidemark.arrow.decode.placed import fields_of, placed
from tidemark.arrow.decode.typed import cells, check_values, field_of, place, typed
from tidemark.arrow.rows.allowance import count_decoded
from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.schema import DELETED, ORDER, ROW, source_schema, transaction_fields
from tidemark.errors import listed, plain_line
from tidemark.model.collection import Collection, Column, Envelope, Format, Source
from tidemark.model.condition import text, tree
from tidemark.model.only import fields

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
    for field in transaction_fields(collection):
        schema = schema.insert(schema.get_field_index(ROW), field)
    return schema


def decode(content: Content, collection: Collection) -> Iterator[pa.RecordBatch]:
    """The rows of a file in order, a bounded number of bytes at a time, which are counted (rows/allowance.py).

    Raises BadFile at the first thing that is wrong, also after some rows were given: take them only when all have come.
    Raises Unavailable where memory or storage fail.
    """
    content = replace(content, source=collection.landed.source)
    content.seen.left_out = content.seen.images_unfit = 0
    content.seen.first_rows.clear()
    for rows in _decoded(content, collection):
        count_decoded(rows.nbytes)
        yield rows


def undeclared(content: Content, collection: Collection) -> list[str]:
    """The columns of a file that can be decoded which the declaration does not name, as far as its first lines show."""
    source = collection.landed.source
    columns = [*(column.name for column in source_columns(collection)), *fields(source.only)]
    read = {name for column in columns for name in source.first_names_of(column)}
    names = names_of(content, source, content.seen.first_rows if source.only else None)
    return [plain_line(name, NAME_SHOWN) for name in names if name not in read]


def names_of(content: Content, source: Source, numbers: Sequence[int] | None = None) -> list[str]:
    """The columns of a file, as far as its first lines show, or those numbered; of messages those of their images."""
    content = replace(content, source=source)
    if source.envelope is Envelope.DEBEZIUM:
        return debezium_files.images(content, source.format, LINES_LOOKED_AT, numbers)
    match source.format:
        case Format.PARQUET:
            with opened(content) as file:
                return list(file.schema.names)
        case Format.CSV:
            return csvfile.names(content)
        case Format.JSONL:
            last = LINES_LOOKED_AT if numbers is None else max(numbers, default=-1) + 1
            lines = enumerate(islice(jsonlfile.parsed_lines(content), last))
            rows = [row for number, (_, row) in lines if numbers is None or number in numbers]
            return list(dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row))


def _decoded(content: Content, collection: Collection) -> Iterator[pa.RecordBatch]:
    columns = source_columns(collection)
    content.check_kind()
    if collection.landed.source.envelope is Envelope.DEBEZIUM:
        yield from debezium.decode(content, collection, columns, decoded_schema(collection))
        return
    schema = decoded_schema(collection)
    for block, numbers in _blocks(content, collection, columns):
        arrays = [
            typed(content, collection, column, cells(content, collection, column, block), numbers) for column in columns
        ]
        rows = of_numbers(numbers)
        for column, array in zip(columns, arrays, strict=True):
            check_values(content, collection, column, array, rows)
        if collection.has_places:
            typed_columns = {column.name: array for column, array in zip(columns, arrays, strict=True)}
            arrays.append(placed(content, collection, fields_of(collection, typed_columns), numbers))
        arrays.append(rows)
        if block.num_rows:
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _blocks(
    content: Content, collection: Collection, columns: tuple[Column, ...]
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """The columns of the rows that are taken, with the numbers of these."""
    only, source = Only.of(content, collection), collection.landed.source
    in_path = dict(source.from_paths)
    columns = tuple(column for column in columns if column.name not in in_path)
    if source.format is Format.JSONL:
        read = [field_of(collection, column) for column in columns]
        yield from jsonlfile.read_blocks(content, read, sieve=jsonlfile.Sieve(only.raw, only.keep) if only else None)
        places = {name: source.places_of(name) for name in only.unseen} if only else {}
        if only and only.rows and (missing := sorted(only.unseen - jsonlfile.present(content, places))):
            raise only.refuse(missing[0], "look at the fields that rows have")
        return
    names = {column.name: column for column in (*(only.columns if only else ()), *columns)}
    first = 0
    for block in _all_blocks(content, collection, tuple(names.values())):
        rows = np.arange(first, first + block.num_rows)
        first += block.num_rows
        if only is not None:
            taken = only.keep(block, rows)
            block, rows = block.filter(of_bools(taken)), rows[taken]
        yield block, rows


def _all_blocks(content: Content, collection: Collection, columns: tuple[Column, ...]) -> Iterator[pa.RecordBatch]:
    if collection.landed.source.format is not Format.CSV:
        return _parquet_blocks(content, collection, columns)
    if not collection.landed.source.names_columns:
        return csvfile.read_blocks(content, {column.name: if_missing(collection, column) for column in columns})
    header = csvfile.names(content)
    places = places_there(content, collection, columns, header.__contains__, header)
    blocks = csvfile.read_blocks(content, dict.fromkeys(chain.from_iterable(places.values()), ""))
    return by_column(content, places, blocks, partial(place, content, Format.CSV), pa.string())


def _parquet_blocks(content: Content, collection: Collection, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    with opened(content) as file:
        schema = file.schema
        has = schema.names
        if collection.landed.source.names_columns:
            yield from _named_parquet_blocks(content, collection, columns, file)
            return
        for column in columns:
            if has.count(column.name) != 1:
                what, advice = (
                    ("in the file twice", "") if column.name in has else ("missing", if_missing(collection, column))
                )
                raise BadFile(content.path, f"column {column.name} is {what}; the file has {listed(has)}{advice}")
        for column in columns:
            # A type that cannot be the declared one is refused before any value of it is expanded.
            type_ = schema.field(column.name).type
            typed(content, collection, column, pa.array([], type_), np.arange(0))
        yield from file.blocks([column.name for column in columns])


def _named_parquet_blocks(
    content: Content, collection: Collection, columns: Sequence[Column], file: Opened
) -> Iterator[pa.RecordBatch]:
    """The columns of a file that are called otherwise in it, or may be missing."""
    schema = file.schema
    places = places_there(content, collection, columns, lambda path: type_at(schema, path) is not None, schema.names)
    for column in columns:
        for each in places[column.name]:
            typed(content, collection, column, pa.array([], type_at(schema, each)), np.arange(0))
    blocks = file.blocks(one_each(content, chain.from_iterable(places.values())))
    yield from by_column(content, places, blocks, partial(place, content, Format.PARQUET), pa.null())
