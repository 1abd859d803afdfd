"""What the statistics in a part's footer tell of its columns: no row is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.fields import found
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.storage.read_many import read_many
from tidemark.storage.stores.store import ObjectStore

FEW = 1
"""So many parts are opened one after the other: of each a store is asked several times, so two at once pay."""


def integer_bounds(store: ObjectStore, part: Part, field: pa.Field) -> tuple[int, int] | None:
    """The bounds of a column of ints, dates (days) or timestamps (µs); None if the part has only nulls there, or had
    the column with a narrower type. Raises Corruption if the file does not tell."""
    with OpenedPart(store, part) as opened:
        ((_, source),) = found(opened.schema, pa.schema([field]))
        if source is None or source.type != field.type:
            return None
        at, metadata = opened.schema.get_field_index(source.name), opened.metadata
        lows, highs = [], []
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(at)
            told = column.statistics
            if told is None or not (told.has_min_max or told.null_count == column.num_values):
                raise Corruption(f"{part.file.key} has no statistics of column {source.name}")
            if told.has_min_max:
                lows.append(int(told.min_raw))
                highs.append(int(told.max_raw))
    return (min(lows), max(highs)) if lows else None


def group_bounds(store: ObjectStore, part: Part, field: pa.Field) -> list[tuple[int, int] | None] | None:
    """The same for each row group, None for one that has only nulls; None in place of all where the part has not the
    column as it is today, or the file does not tell."""
    with OpenedPart(store, part) as opened:
        ((_, source),) = found(opened.schema, pa.schema([field]))
        if source is None or source.type != field.type:
            return None
        at, metadata = opened.schema.get_field_index(source.name), opened.metadata
        bounds: list[tuple[int, int] | None] = []
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(at)
            told = column.statistics
            if told is None or not (told.has_min_max or told.null_count == column.num_values):
                return None
            bounds.append((int(told.min_raw), int(told.max_raw)) if told.has_min_max else None)
    return bounds


def bounds_by_group(
    store: ObjectStore, parts: Sequence[Part], field: pa.Field
) -> list[list[tuple[int, int] | None]] | None:
    """`group_bounds` of each of some parts, read at once; None where one of them has none."""
    found = []
    for bounds in read_many(lambda part: group_bounds(store, part, field), parts, few=FEW):
        if bounds is None:
            return None
        found.append(bounds)
    return found


def none_has_null(store: ObjectStore, parts: Sequence[Part], fields: pa.Schema) -> bool:
    """`has_no_null` of all of some parts, read at once."""
    return all(read_many(lambda part: has_no_null(store, part, fields), parts, few=FEW))


def has_no_null(store: ObjectStore, part: Part, fields: pa.Schema) -> bool:
    """Whether it is told that no row of a part has a null in any of some columns."""
    with OpenedPart(store, part) as opened:
        metadata = opened.metadata
        for _, source in found(opened.schema, fields):
            if source is None:
                return False
            at = opened.schema.get_field_index(source.name)
            for group in range(metadata.num_row_groups):
                told = metadata.row_group(group).column(at).statistics
                if told is None or not told.has_null_count or told.null_count:
                    return False
    return True
