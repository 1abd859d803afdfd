"""The latest row of each key on a timeline, of those that a read holds: read in one pass, in bounded memory.

Rows outside the span that is asked for, and those that do not fit a condition, are left out before anything is added
up: an update and what takes it back have the same values, so both are kept or neither is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.latest import has_value, newest, whole_keys, within_span
from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.read import ordered_by, rounds_by
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, updates_schema
from tidemark.arrow.runs import Keep, runs_of
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.plan.tasks import ReadTask
from tidemark.storage.stores.store import ObjectStore

AT = "_at"
"""What is behind the name of a column for the time of its value, and what the time of a whole row is called beside a
probe."""


@dataclass(frozen=True)
class Latest:
    """The latest row of each key by `timeline`, in the columns `shown`; with `each` the latest value of each of them.

    Between rows of one time those decide that are greater in the columns `ties`. Of rows that `keep` (None: all) leaves
    once it has looked at the columns `looked_at`.
    """

    timeline: str
    ties: tuple[str, ...]
    shown: tuple[str, ...]
    each: bool
    looked_at: tuple[str, ...] = ()
    keep: Keep | None = None

    def read(self, collection: Collection) -> list[str]:
        """The columns that are read, in their order at rest: the key, and of the value all up to the last one that is
        looked at. What is behind it tells no rows apart whose answers differ."""
        needed = {self.timeline, *self.ties, *self.shown, *self.looked_at}
        value = [column.name for column in collection.stored_value if column not in collection.unseen]
        last = max(at for at, name in enumerate(value) if name in needed)
        return [*(column.name for column in collection.key), *value[: last + 1]]

    def values(self, collection: Collection) -> list[str]:
        """The columns shown that have a time of their own: with `each` all of the value but the timeline."""
        key = {column.name for column in collection.key}
        return [name for name in self.shown if self.each and name not in key and name != self.timeline]


def latest_schema(collection: Collection, ask: Latest) -> pa.Schema:
    """The columns shown; with `each` behind each of the value when that was so."""
    schema, own = updates_schema(collection), ask.values(collection)
    at = schema.field(ask.timeline).type
    fields: list[pa.Field] = []
    for name in ask.shown:
        fields += [schema.field(name), pa.field(f"{name}{AT}", at)] if name in own else [schema.field(name)]
    return pa.schema([field.remove_metadata() for field in fields])


def latest_of(
    store: ObjectStore, task: ReadTask, ask: Latest, lower: int | None, upper: int
) -> Iterator[pa.RecordBatch]:
    """The latest row of each key of a task between two times, both included, in order of the key.

    Raises InvalidUsage, naming the key, for a row between them that is held fewer than zero times.
    """
    collection = task.collection
    key = [column.name for column in collection.key]
    schema = latest_schema(collection, ask)
    targets = [None, *ask.values(collection)]

    def chosen(rows: pa.RecordBatch) -> list[Ints]:
        return [newest(rows, key, ask.timeline, ask.ties, _among(rows, target)) for target in targets]

    def reduce(rows: pa.RecordBatch) -> pa.RecordBatch:
        places = np.unique(np.concatenate(chosen(rows)))
        return rows.take(pa.array(places[places >= 0]))

    for rows in whole_keys(held_rows(store, task, ask, lower, upper), key, reduce):
        found = dict(zip(targets, chosen(rows), strict=True))
        yield pa.RecordBatch.from_arrays(
            [of for name in ask.shown for of in _shown(rows, name, found, ask.timeline)], schema=schema
        )


def held_rows(
    store: ObjectStore, task: ReadTask, ask: Latest, lower: int | None, upper: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a task between two times of the timeline, each once, in order at rest."""
    names = ask.read(task.collection)
    key = [column.name for column in task.collection.key]
    together = ordered_by(task.collection, names)
    resort = together != names
    runs = runs_of(store, task, [*names, DIFF], together, kept_by(ask, lower, upper))
    for batches in rounds_by(together, runs, lambda held: list(summed(held, names, resort=resort))):
        for rows in summed(batches, names, resort=resort):
            negative = np.flatnonzero(integers(rows, DIFF) < 0)
            if len(negative):
                raise below_zero(rows, int(negative[0]), key)
            yield rows


def kept_by(ask: Latest, lower: int | None, upper: int) -> Keep:
    """What leaves the rows that fit, between two times."""

    def keep(rows: pa.RecordBatch) -> pa.RecordBatch:
        inside = within_span(rows, ask.timeline, lower, upper)
        return ask.keep(inside) if ask.keep and inside.num_rows else inside

    return keep


def below_zero(rows: pa.RecordBatch, row: int, key: Sequence[str]) -> InvalidUsage:
    """The refusal of a read that met a row which is held fewer than zero times."""
    named = ", ".join(f"{name}={plain_values(rows.column(name).slice(row, 1))[0]!r}" for name in key)
    return InvalidUsage(
        f"a row of the key {named} is held fewer than zero times, so no row of it can be said to be the latest; "
        "correct the source, or leave the key out by a condition"
    )


def _among(rows: pa.RecordBatch, target: str | None) -> Bools:
    return np.ones(rows.num_rows, bool) if target is None else has_value(rows, target)


def _shown(rows: pa.RecordBatch, name: str, found: dict[str | None, Ints], timeline: str) -> list[pa.Array]:
    """A column of the answer, with its times behind it where it has any."""
    own = name in found
    places = found[name if own else None]
    at = pa.array(places, mask=places < 0)
    return [rows.column(column).take(at) for column in ((name, timeline) if own else (name,))]
