"""What the statistics in a part's footer say of its columns: no row is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.fields import found
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.chunk.bounds import DAY, Bounds, union
from tidemark.storage.read_many import read_many
from tidemark.storage.stores.store import ObjectStore

FEW = 1
"""So many parts are opened one after the other: of each a store is asked several times, so two at once pay."""


def chunk_bounds(opened: OpenedPart, field: pa.Field, groups: Sequence[int] | None = None) -> list[Bounds | None]:
    """The bounds of a column of bools, ints, dates, timestamps or decimals in some row groups of a part (None: all), by
    Parquet's statistics: in the plain form that keys have, of the type that `field` asks for, whichever the part was
    written with. None where nothing is known, which is so of other types; a part that lacks the column has nulls."""
    ((_, source),) = found(opened.schema, pa.schema([field]))
    asked = range(len(opened.part.groups)) if groups is None else groups
    if source is None:
        return [Bounds(None, None, opened.part.groups[group][1]) for group in asked]
    times = _units(source.type, field.type)
    known = _statistics(opened.metadata, opened.schema.get_field_index(source.name), asked)
    return [None if times is None or each is None else each.times(times) for each in known]


def integer_bounds(store: ObjectStore, part: Part, field: pa.Field) -> tuple[int, int] | None:
    """The bounds of a column of ints, dates (days) or timestamps (µs); None if the part has only nulls there, or had
    the column with a narrower type. Raises Corruption if the file does not say."""
    with OpenedPart(store, part) as opened:
        return bounds_in_footer(opened.metadata, opened.schema, part, field)


def bounds_in_footer(
    metadata: pq.FileMetaData, schema: pa.Schema, part: Part, field: pa.Field
) -> tuple[int, int] | None:
    """As `integer_bounds`, by the footer of a part that was opened before, and the columns it has."""
    ((_, source),) = found(schema, pa.schema([field]))
    if source is None or source.type != field.type:
        return None
    known = list(_statistics(metadata, schema.get_field_index(source.name), range(metadata.num_row_groups)))
    if any(each is None for each in known):
        raise Corruption(f"{part.file.key} has no statistics of column {source.name}")
    return _closed(union(each for each in known if each is not None))


def _statistics(metadata: pq.FileMetaData, at: int, groups: Iterable[int]) -> Iterator[Bounds | None]:
    """The bounds of the column at a place of the file in row groups, in the file's type; None where the file does not
    say."""
    for group in groups:
        column = metadata.row_group(group).column(at)
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            yield None
        elif statistics.has_min_max:
            yield Bounds(_plain(statistics.min_raw), _plain(statistics.max_raw), statistics.null_count)
        else:
            yield Bounds(None, None, statistics.null_count) if statistics.null_count == column.num_values else None


def _plain(raw: bool | int | bytes) -> int:
    """A value of Parquet's statistics; that of a decimal is a big-endian number."""
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def _units(stored: pa.DataType, asked: pa.DataType) -> int | None:
    """How many units of the type asked for are one of the stored type; None where plain values are no whole numbers."""
    whole = (pa.types.is_boolean, pa.types.is_int64)
    if pa.types.is_decimal128(asked):
        scale = stored.scale if pa.types.is_decimal128(stored) else 0 if any(of(stored) for of in whole) else None
        return None if scale is None else int(10 ** (asked.scale - scale))
    if pa.types.is_timestamp(asked):
        return DAY if pa.types.is_date32(stored) else 1
    return 1 if pa.types.is_date32(asked) or any(of(asked) for of in whole) else None


def _closed(bounds: Bounds) -> tuple[int, int] | None:
    return None if bounds.first is None or bounds.last is None else (bounds.first, bounds.last)


def bounds_by_part(store: ObjectStore, parts: Sequence[Part], field: pa.Field) -> Iterator[list[Bounds | None]]:
    """`chunk_bounds` of all row groups of each of some parts, in order; the parts are opened several at a time."""

    def of(part: Part) -> list[Bounds | None]:
        with OpenedPart(store, part) as opened:
            return chunk_bounds(opened, field)

    return read_many(of, parts, few=FEW)


def none_has_null(store: ObjectStore, parts: Sequence[Part], fields: pa.Schema) -> bool:
    """`has_no_null` of all of some parts, read at once."""
    return all(read_many(lambda part: has_no_null(store, part, fields), parts, few=FEW))


def has_no_null(store: ObjectStore, part: Part, fields: pa.Schema) -> bool:
    """Whether the file says that no row of a part has a null in any of some columns."""
    with OpenedPart(store, part) as opened:
        metadata = opened.metadata
        for _, source in found(opened.schema, fields):
            if source is None:
                return False
            at = opened.schema.get_field_index(source.name)
            for group in range(metadata.num_row_groups):
                statistics = metadata.row_group(group).column(at).statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count:
                    return False
    return True
