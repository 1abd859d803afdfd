"""Sessions that are so plain that they need no query. By this process all of few rows, where none is held yet, as
starting Spark, planning and compiling would be nearly all the cost. More by executors, which go over rows in order of
key and instant and write what these come to, so that no session goes through the JVM. Those that few changes reach:
sessions_near.py.

Whatever is not as plain as that, or does not fit, is left to the queries, which say what is wrong, too."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.told_sessions import told_sessions, whole_sessions
from tidemark.arrow.kernels.windows.cells import GROUP, keys_in
from tidemark.arrow.kernels.windows.instants import micros_of
from tidemark.arrow.kernels.windows.sessions import FAR
from tidemark.arrow.kernels.windows.sliding import END, START
from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.definition.computation import Written
from tidemark.definition.recipe import InSessions
from tidemark.definition.ways import Place
from tidemark.definition.windows.assigned import AT
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType
from tidemark.model.expression import Projection
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import Due, stored
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.little import updates_due
from tidemark.spark.derive.parts import Batches, written_in_order
from tidemark.spark.derive.plain.apart import AT_ONCE, leading, written_apart
from tidemark.spark.derive.plain.rows import windows_built_here
from tidemark.spark.derive.queried import queried
from tidemark.spark.derive.touched import MOST_BYTES
from tidemark.spark.derive.views import Views


def sessions_built_plainly(views: Views) -> list[Written] | None:
    """What was written of all sessions, of a collection that holds nothing; None where that is not plain."""
    made = _made(views)
    if made is None:
        return None
    of = (one.of for one in made.rule.plain or () if one.of is not None)
    return windows_built_here(views, made.rule, list(dict.fromkeys([*made.rule.by, made.rule.on, *of])), made.batches)


def sessions_apart(views: Views) -> list[Written] | None:
    """What executors wrote of all sessions, or of those that changes reach; None where something does not fit. Where
    the columns `by` lead the input's key rows are read by these. Else, or where rows of one key are many, they go
    through one shuffle, where the collection holds nothing."""
    made = _made(views)
    if made is None:
        return None
    rule = made.rule
    together = leading(views.computation, rule.input, {name: name for name in rule.by})
    used = [*rule.by, *(one.of for one in rule.plain or () if one.of is not None)]
    found = written_apart(views, rule.input, together, rule.on, used, made.batches)
    # All rows as one key are no work for several.
    if found is not None or not rule.by or not holds_nothing(views.computation):
        return found
    return _through_a_shuffle(views, made)


def _made(views: Views) -> Made | None:
    """How sessions are made that are plain, in order of their key; None for any others."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.windowed
    if not isinstance(rule, InSessions) or not fits(views, rule):
        return None
    if [column.name for column in computation.collection.key] != [*rule.by, WINDOW_START, WINDOW_END]:
        return None
    return Made.by(views, rule)


@dataclass(frozen=True)
class Made:
    """How rows become sessions, and these updates of a collection, in order."""

    rule: InSessions
    collection: Collection
    due: Due

    @classmethod
    def by(cls, views: Views, rule: InSessions) -> Made:
        """By a rule of a computation."""
        return cls(rule, views.computation.collection, Due.of(views.computation))

    def batches(self, rows: pa.Table) -> Batches:
        """Of all rows of their keys. Raises as `told_sessions`."""
        yield from self.of_all(rows, self.rule.on).to_batches()

    def of_all(self, rows: pa.Table, on: str) -> pa.Table:
        """Of all rows of their keys, whose instants are in the column `on`. Raises as `told_sessions`."""
        keys = keys_in(rows, self.rule.by)
        return self.of(rows, micros_of(rows.column(on)), keys.numbers, pa.Table.from_batches([keys.values]))

    def of(self, rows: pa.Table, at: Ints, numbers: Ints, keys: pa.Table) -> pa.Table:
        """Of rows that have some of the keys, which `numbers` say. Raises the same."""
        return self.updates(told_sessions(rows, numbers, at, self.rule.kind, self.rule.plain or ()), keys)

    def updates(self, found: pa.RecordBatch | pa.Table, keys: pa.Table) -> pa.Table:
        """Of sessions as `told_sessions` has them, of some of the keys."""
        plain = self.rule.plain or ()
        columns = [column.take(found.column(GROUP)) for column in keys.columns]
        columns += [found.column(name) for name in (START, END, *(one.name for one in plain))]
        names = [*self.rule.by, WINDOW_START, WINDOW_END, *(one.name for one in plain)]
        return updates_due(self.collection, self.due, pa.table(columns, names))


def _through_a_shuffle(views: Views, made: Made) -> list[Written] | None:
    """What executors wrote of rows that are brought together by key; None where something does not fit."""
    rule, recipe = made.rule, views.computation.recipe
    projection = None if recipe is None else recipe.projection

    def kernel(batches: Batches) -> Batches:
        counting = (projected(rows, projection) for rows in batches)
        try:
            for rows in whole_sessions(counting, rule.by, AT, rule.kind, rows=AT_ONCE, room=MOST_BYTES):
                yield one_batch(made.of_all(pa.Table.from_batches([rows]), AT))
        except ArithmeticError as error:
            raise InvalidUsage(str(error)) from None

    try:
        found = written_in_order(_rows_in_order(views, rule, projection), views.computation, kernel)
    except InvalidUsage as why:
        views.declines(str(why))
        return None
    views.place = Place.SHUFFLE
    return found


def _rows_in_order(views: Views, rule: InSessions, projection: Projection | None) -> DataFrame:
    """The rows of the input that are in sessions, in the columns that are needed, with AT: those of a key together, in
    order of their instants."""
    columns = tuple(dict.fromkeys([*rule.by, *(one.of for one in rule.plain or () if one.of is not None)]))
    columns = columns if projection is None else projection.sources(columns)
    rows = queried(views, {rule.input: views.held(rule.input)}, rule.rows)
    keys = [F.col(f"`{name}`") for name in rule.by]
    told = rows.select(*(F.col(f"`{name}`") for name in columns), AT)
    return told.repartition(*keys).sortWithinPartitions(*keys, AT)


def fits(views: Views, rule: InSessions) -> bool:
    """Whether sessions are plain, and the collection holds these columns, and as they come."""
    if rule.plain is None or rule.kind.gap > FAR:
        return False
    types = views.types_here(rule.input)
    bound = ColumnType.INT if types[rule.on] is ColumnType.INT else ColumnType.TIMESTAMP
    told = {name: types[name] for name in rule.by} | {WINDOW_START: bound, WINDOW_END: bound}
    told |= {one.name: one.type for one in rule.plain}
    return told == {column.name: column.type for column in stored(views.computation.collection)}
