"""Groups that executors build through one shuffle, of a collection that holds nothing: where what rows are grouped by
does not lead the input's key, or where they are no windows.

Each task groups what it reads, and only groups go through the shuffle, where the aggregates can be put together
(arrow/kernels/aggregates/parts.py); rows else, in the columns that are needed. An example: the flights of a year by
origin and hour are 336,776 rows and 50,000 groups; a task that reads a day sends 2,000 groups on, of 900 rows.

What does not fit is a row of its own that says so, as a task that raises would be tried again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.arrow.kernels.aggregates.groups import groups_by, groups_in
from tidemark.arrow.kernels.aggregates.parts import merged_groups, part_type, parts_of
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.cuts import wholes
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn, ByKey, GroupPlan, WindowAssignment, WindowedRows
from tidemark.definition.windows.rows import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ValueType
from tidemark.plan.tasks import ReadTask
from tidemark.spark import read
from tidemark.spark.derive.columns import our_type
from tidemark.spark.derive.difference import Due, as_stored
from tidemark.spark.derive.executors.key_ranges import AT_ONCE
from tidemark.spark.derive.here.diff import updates_due
from tidemark.spark.derive.here.rows import repeated
from tidemark.spark.derive.kind import Shuffled
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.queries.in_windows import in_any
from tidemark.spark.derive.queries.values import values_of
from tidemark.spark.derive.touched import MOST_BYTES
from tidemark.spark.derive.views import Views
from tidemark.spark.workers import in_workers
from tidemark.storage import ObjectStore

_MISFIT = "_misfit"
"""The column of what goes through the shuffle that is true of a row that says that something does not fit."""


def groups_shuffled(views: Views, rule: ByKey, grouped: GroupPlan, needed: Sequence[str]) -> Shuffled | None:
    """How executors compute all groups, of the columns that are `needed`; None where the collection's key is not what
    distinguishes groups, or rows are not worth a task."""
    computation = views.computation
    (given,), recipe = computation.inputs, computation.recipe
    if not _is_keyed_by(rule, computation.collection):
        return None
    there = views.range_reads(given.name, len(given.state.collection.key))
    if there is None or not there.tasks:
        return None
    placing = None if recipe is None else recipe.placed
    groups = _Groups.of(grouped, needed, views.types_here(given.name), placing, Due.of(computation))
    schema = groups.schema

    def of_task(store: ObjectStore, task: ReadTask) -> Batches:
        return groups.sent(there.rows(store, task), schema)

    rows = read.mapped(views.spark, there.url, schema, there.tasks, of_task)
    return _shuffled(rows, len(there.tasks), groups, rule, computation.collection)


def values_shuffled(views: Views, rule: ByKey, rows: WindowedRows) -> Shuffled | None:
    """The same of values that Spark gives; None also where the collection holds other columns."""
    computation, grouped = views.computation, rows.grouped
    assert grouped is not None
    if not _is_keyed_by(rule, computation.collection):
        return None
    values = values_of(views, rows, in_any(views, rows, views.rows_of(rows.input), [*rows.columns, AT]))
    bounds = {START: rows.assignment.bound, END: rows.assignment.bound}
    types = {field.name: our_type(field.name, field.dataType) for field in values.schema.fields} | bounds
    given = {name: types[of] for name, of in zip(rule.key_columns, grouped.keys, strict=True)}
    if not as_stored(given | {one.name: one.type for one in grouped.aggregates}, computation.collection):
        views.declines_types()
        return None
    needed = [*grouped.keys, *(name for one in grouped.aggregates for name in (one.of, one.texts) if name)]
    columns = list(dict.fromkeys([*needed, *([grouped.on] if grouped.on else [])]))
    groups = _Groups.of(grouped, columns, types, rows.assignment, Due.of(computation))
    schema = groups.schema

    def of_values(batches: Batches) -> Batches:
        return groups.sent(batches, schema)

    found = values.mapInArrow(in_workers(of_values), from_arrow_schema(schema, prefer_timestamp_ntz=False))
    partitions = int(views.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return _shuffled(found, partitions, groups, rule, computation.collection)


def _is_keyed_by(rule: ByKey, collection: Collection) -> bool:
    """Whether the collection's key are the columns that groups differ in."""
    return {column.name for column in collection.key} == set(rule.key_columns)


def _shuffled(rows: DataFrame, partitions: int, groups: _Groups, rule: ByKey, collection: Collection) -> Shuffled:
    grouped = groups.grouped
    named = dict(zip(rule.key_columns, grouped.keys, strict=True))
    order = [named[column.name] for column in collection.key]
    shown = [*rule.key_columns, *(one.name for one in grouped.aggregates)]
    keys = [F.col(f"`{name}`") for name in order]
    ordered = rows.repartition(partitions, *keys).sortWithinPartitions(*keys)
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
    types: Mapping[str, ValueType]
    at_once: int
    room: int

    @classmethod
    def of(
        cls,
        grouped: GroupPlan,
        columns: Sequence[str],
        types: Mapping[str, ValueType],
        placing: WindowAssignment | None,
        due: Due,
    ) -> Self:
        """Of rows with columns of these types."""
        parts = parts_of(grouped.aggregates, {name: arrow_type(of) for name, of in types.items()})
        return cls(grouped, parts, tuple(columns), placing, due, types, AT_ONCE, MOST_BYTES)

    @property
    def schema(self) -> pa.Schema:
        """The columns of what goes through the shuffle."""
        names = self.columns if self.parts is None else self.grouped.keys
        fields = [(name, arrow_type(self.types[name])) for name in names]
        fields += [(one.name, part_type(one)) for one in self.parts or ()]
        return pa.schema([*fields, (_MISFIT, pa.bool_())])

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
        most = max(1, self.at_once // (self.placing.kind.windows_per_row if self.placing else 1))
        found: list[pa.RecordBatch] = []
        for batch in batches:
            some = repeated(batch, most_bytes=self.room) if MULTIPLICITY in batch.schema.names else batch
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
        for some in wholes(_fitting(batches), order, rows=self.at_once, room=self.room):
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
