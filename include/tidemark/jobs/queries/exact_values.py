"""Whether all values of a collection stay the same in a wider type; only footers are read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.evolution import bounds_of, newly_bounded, newly_published, widened
from tidemark.storage.sidecars import parts_table

if TYPE_CHECKING:
    import pyarrow as pa

READERS = 16
"""Footers read at once, where values have to be looked at."""


def check_values(job: Job, state: Arrangement, new: Collection) -> None:
    """Raise InvalidUsage for a value at rest that a declaration would not have as it is.

    A column may get wider, and a value differ in the wider type; far times may become something else than they are, or
    be published where no table has them.

    Only footers are read. What is ingested meanwhile makes the redefinition stale, so it is looked at too.
    """
    if state.has_no_data:
        return
    name = state.collection.name
    for old, wide in widened(state.collection, new):
        bounds = bounds_of(old.type, wide.type)
        if bounds is not None and (beyond := _beyond(job, state, old, bounds)):
            raise InvalidUsage(
                f"value column {old.name} of collection {name} cannot change from {old.type} to {wide.type}: {beyond}, "
                f"beyond {bounds[0]} to {bounds[1]}, within which all values stay exact; add a column of another name"
            )
    for column, bounds in newly_bounded(state.collection, new):
        if beyond := _beyond(job, state, column, bounds):
            raise InvalidUsage(
                f"value column {column.name} of collection {name} cannot change what becomes of far times: {beyond}, "
                f"beyond the years 1 to 9999; add a column of another name"
            )
    for column, bounds, format in newly_published(state.collection, new):
        if beyond := _beyond(job, state, column, bounds):
            unit = "days" if column.type is ColumnType.DATE else "us"
            raise InvalidUsage(
                f"collection {name} cannot be published to {format}: column {column.name}: {beyond} {unit} since the "
                "epoch, beyond the years 1 to 9999, which no such table has; publish one that is derived from it and "
                "leaves such times out"
            )


def _beyond(job: Job, state: Arrangement, column: Column, bounds: tuple[int, int]) -> str:
    """Which batch has a value of a column beyond its bounds, and which value; empty where none has."""
    from tidemark.arrow.parts.bounds import integer_bounds

    fields = list(_holders(job, state, column))
    with ThreadPoolExecutor(READERS) as pool:
        extremes = pool.map(lambda field: integer_bounds(job.store, field[1], field[2]), fields)
        for (batch, _, _), values in zip(fields, extremes, strict=True):
            for value in values or ():
                if not bounds[0] <= value <= bounds[1]:
                    return f"batch {batch} holds {value}"
    return ""


def _holders(job: Job, state: Arrangement, column: Column) -> Iterator[tuple[str, Part, pa.Field]]:
    """Batch, part and field of all that may hold a value of the column; also of what facts are ordered by, if by it."""
    from tidemark.arrow.rows.schema import ORDER, unsealed_schema, updates_schema

    ordered = state.collection.order_by == column.name
    for batch in state.batches:
        schema = (updates_schema if batch in state.trace else unsealed_schema)(state.collection)
        names = [column.name, *([ORDER] if ordered and ORDER in schema.names else [])]
        for part in parts_table.parts_of(job.store, [batch]):
            yield from ((batch.id, part, schema.field(name)) for name in names)
