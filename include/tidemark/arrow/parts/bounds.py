"""The least and the greatest integer a part holds of a column, by the statistics in its footer: no row is read."""

from __future__ import annotations

import pyarrow as pa

from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.fields import found
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.storage.stores.store import ObjectStore


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
