"""Whether all values of a collection stay the same in a wider type; only footers are read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column
from tidemark.model.evolution import bounds_of, newly_bounded, widened
from tidemark.storage.sidecars import parts_table

if TYPE_CHECKING:
    import pyarrow as pa

READERS = 16
"""Footers read at once, where values have to be looked at."""


def check_values(job: Job, state: Arrangement, new: Collection) -> None:
    """Raise InvalidUsage for a value at rest that a declaration would not have as it is.

    A column may get wider, and a value differ in the wider type; or far times may become something else than they are.

    Only footers are read. What is ingested meanwhile makes the redefinition stale, so it is looked at too.
    """
    if state.has_no_data:
        return
    for old, wide in widened(state.collection, new):
        bounds = bounds_of(old.type, wide.type)
        if bounds is not None:
            within = f"{bounds[0]} to {bounds[1]}, within which all values stay exact"
            _check_column(job, state, old, bounds, (f"from {old.type} to {wide.type}", within))
    for column, bounds in newly_bounded(state.collection, new):
        _check_column(job, state, column, bounds, ("what becomes of far times", "the years 1 to 9999"))


def _check_column(
    job: Job, state: Arrangement, old: Column, bounds: tuple[int, int], change_and_bounds: tuple[str, str]
) -> None:
    from tidemark.arrow.parts.bounds import integer_bounds

    fields = list(_holders(job, state, old))
    with ThreadPoolExecutor(READERS) as pool:
        extremes = pool.map(lambda field: integer_bounds(job.store, field[1], field[2]), fields)
        for (batch, _, _), values in zip(fields, extremes, strict=True):
            beyond = [value for value in values or () if not bounds[0] <= value <= bounds[1]]
            if beyond:
                change, within = change_and_bounds
                raise InvalidUsage(
                    f"value column {old.name} of collection {state.collection.name} cannot change {change}: batch "
                    f"{batch} holds {beyond[0]}, beyond {within}; add a column of another name"
                )


def _holders(job: Job, state: Arrangement, column: Column) -> Iterator[tuple[str, Part, pa.Field]]:
    """Batch, part and field of all that may hold a value of the column; also of what facts are ordered by, if by it."""
    from tidemark.arrow.rows.schema import ORDER, unsealed_schema, updates_schema

    ordered = state.collection.order_by == column.name
    for batch in state.batches:
        schema = (updates_schema if batch in state.trace else unsealed_schema)(state.collection)
        names = [column.name, *([ORDER] if ordered and ORDER in schema.names else [])]
        for part in parts_table.parts_of(job.store, [batch]):
            yield from ((batch.id, part, schema.field(name)) for name in names)
