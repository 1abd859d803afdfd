"""Groups that executors build through one shuffle, of a collection that holds nothing: where what rows are grouped by
does not lead the input's key, or where they are no windows.

Each task groups what it reads, and only groups go through the shuffle, where the aggregates can be put together
(arrow/kernels/aggregates/parts.py); rows else, in the columns that are needed. An example: the flights of a year by
origin and hour are 336,776 rows and 50,000 groups; a task that reads a day sends 2,000 groups on, of 900 rows.

What does not fit is a row of its own that says so, as a task that raises would be tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from tidemark.arrow.kernels.aggregates.groups import groups_by, groups_in
from tidemark.arrow.kernels.aggregates.parts import merged_groups, part_type, parts_of
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.cuts import wholes
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn, ByKey, GroupPlan, WindowAssignment
from tidemark.definition.windows.explained import most_of_all
from tidemark.definition.windows.rows import START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.plan.tasks import ReadTask
from tidemark.spark import read
from tidemark.spark.derive.difference import Due
from tidemark.spark.derive.executors.key_ranges import AT_ONCE
from tidemark.spark.derive.here.diff import updates_due
from tidemark.spark.derive.here.rows import repeated
from tidemark.spark.derive.kind import Shuffled
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.touched import MOST_BYTES
from tidemark.spark.derive.views import Views
from tidemark.storage import ObjectStore

_MISFIT = "_misfit"
"""The column of what goes through the shuffle that is true of a row that says that something does not fit."""


def groups_shuffled(views: Views, rule: ByKey, grouped: GroupPlan, needed: Sequence[str]) -> Shuffled | None:
    """How executors compute all groups, of the columns that are `needed`; None where the collection's key is not what
    tells groups apart, or rows are not worth a task."""
    computation = views.computation
    (given,) = computation.inputs
    collection = computation.collection
    if {column.name for column in collection.key} != set(rule.held):
        return None
    there = views.range_reads(given.name, len(given.state.collection.key))
    if there is None or not there.tasks:
        return None
    types = views.types_here(given.name)
    recipe = computation.recipe
    placing = None if recipe is None else recipe.placed
    groups = _Groups(
        grouped,
        parts_of(grouped.aggregates, {name: arrow_type(of) for name, of in types.items()}),
        tuple(needed),
        placing,
        Due.of(computation),
        AT_ONCE,
        MOST_BYTES,
    )
    fields = [(name, arrow_type(types[name])) for name in groups.columns]
    if groups.parts is not None:
        fields = [(name, arrow_type(types[name])) for name in grouped.keys]
        fields += [(one.name, part_type(one)) for one in groups.parts]
    schema = pa.schema([*fields, (_MISFIT, pa.bool_())])

    def of_task(store: ObjectStore, task: ReadTask) -> Batches:
        return groups.sent(there.rows(store, task), schema)

    named = dict(zip(rule.held, grouped.keys, strict=True))
    order = [named[column.name] for column in collection.key]
    shown = [*rule.held, *(one.name for one in grouped.aggregates)]
    rows = read.mapped(views.spark, there.url, schema, there.tasks, of_task)
    keys = [F.col(f"`{name}`") for name in order]
    ordered = rows.repartition(len(there.tasks), *keys).sortWithinPartitions(*keys)
    return Shuffled(ordered, lambda batches: groups.put_together(batches, order, shown, collection))


@dataclass(frozen=True)
class _Groups:
    """How rows, of which these `columns` are needed, become groups of parts of them (`parts` None: they
    stay rows), and these all groups: of so many rows `at_once`, in so many bytes of `room`."""

    grouped: GroupPlan
    parts: tuple[AggregateColumn, ...] | None
    columns: tuple[str, ...]
    placing: WindowAssignment | None
    due: Due
    at_once: int
    room: int

    def sent(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Batches:
        """What goes through the shuffle of rows that are read, each as often as it is there."""
        try:
            for rows in self._rows(batches):
                found = rows if self.parts is None else groups_by(rows, self.grouped.keys, self.parts)
                found = one_batch(found)
                fits = found.append_column(_MISFIT, pa.array(np.zeros(found.num_rows, bool)))
                yield fits.select(schema.names).cast(schema)
        except (InvalidUsage, ArithmeticError):
            yield pa.RecordBatch.from_arrays(
                [pa.array([True if of.name == _MISFIT else None], of.type) for of in schema], schema=schema
            )

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Rows in their windows, so many at a time as are grouped at once."""
        most = max(1, self.at_once // (most_of_all(self.placing.kind) if self.placing else 1))
        found: list[pa.RecordBatch] = []
        for batch in batches:
            some = repeated(batch, most_bytes=self.room)
            if some is None:
                raise InvalidUsage("rows are too many, or one is there fewer times than none")
            for first in range(0, some.num_rows, most):
                piece = some.slice(first, most)
                inside = placed(piece, self.placing) if self.placing and START not in piece.schema.names else piece
                found.append(inside.select(list(self.columns)))
                if sum(one.num_rows for one in found) >= self.at_once // 2:
                    yield pa.Table.from_batches(found)
                    found = []
        if found:
            yield pa.Table.from_batches(found)

    def put_together(
        self, batches: Batches, order: Sequence[str], shown: Sequence[str], collection: Collection
    ) -> Batches:
        """The groups as updates, of what came through the shuffle in order of their keys."""
        for some in wholes(_fitting(batches), _last_begins(order), rows=self.at_once, room=self.room):
            rows = pa.Table.from_batches([some.drop_columns([_MISFIT])])
            if self.parts is None:
                found = groups_in(rows, self.grouped)
            else:
                found = merged_groups(rows, self.grouped.keys, self.grouped.aggregates, self.parts)
            yield sort(
                updates_due(collection, self.due, pa.Table.from_batches([found]).rename_columns(list(shown))),
                [column.name for column in collection.key],
            )


def _fitting(batches: Batches) -> Batches:
    for rows in batches:
        if rows.num_rows and rows.column(_MISFIT).true_count:
            raise InvalidUsage("rows do not fit")
        if rows.num_rows:
            yield rows


def _last_begins(keys: Sequence[str]) -> Callable[[pa.RecordBatch], int]:
    return lambda rows: int(np.flatnonzero(starts(rows, keys))[-1])
