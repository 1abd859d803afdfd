"""Sessions that are so plain that they need no query. By this process all of few rows, where none is held yet, as
starting Spark, planning and compiling would be nearly all the cost. More by executors, which go over rows in order of
key and instant and write what these come to, so that no session goes through the JVM. Those that few changes reach:
sessions_near.py.

Whatever is not as plain as that, or does not fit, is left to the queries, which say what is wrong, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.gaps import FAR
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sessions import sessions_in_order, sessions_of
from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.definition.computation import Written
from tidemark.definition.recipe import Aggregated, InSessions
from tidemark.definition.ways import Place
from tidemark.definition.windows.assigned import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import Due, stored
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.little import updates_due
from tidemark.spark.derive.parts import Batches, written_in_order
from tidemark.spark.derive.plain.apart import leading, written_apart
from tidemark.spark.derive.plain.rows import windows_built_here
from tidemark.spark.derive.queried import queried
from tidemark.spark.derive.views import Views
from tidemark.spark.derive.windows.valued import aggregates_over, in_order, values_of


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
    rule, made = _rule(views), _made(views)
    if made is not None:
        together = leading(views.computation, made.rule.input, {name: name for name in made.rule.by})
        used = [*made.rule.by, *(one.of for one in made.rule.plain or () if one.of is not None)]
        found = written_apart(views, made.rule.input, together, made.rule.on, used, made.batches)
        if found is not None:
            return found
    # All rows as one key are no work for several.
    if rule is None or not rule.by or rule.after is not None or not holds_nothing(views.computation):
        return None
    return _through_a_shuffle(views, rule)


def _rule(views: Views) -> InSessions | None:
    """How sessions are computed of which a collection is in order; None for any others."""
    recipe, collection = views.computation.recipe, views.computation.collection
    if recipe is None or not isinstance(recipe.windowed, InSessions):
        return None
    in_key_order = [column.name for column in collection.key] == [*recipe.windowed.by, WINDOW_START, WINDOW_END]
    return recipe.windowed if in_key_order else None


def _made(views: Views) -> Made | None:
    """How sessions are made of rows that are projected without Spark, in order of their key; None for any others."""
    rule = _rule(views)
    return None if rule is None or not fits(views, rule) else Made.by(views, rule)


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
        """Of all rows of their keys. Raises as `sessions_of`."""
        yield from self.of_all(rows, self.rule.on).to_batches()

    def of_all(self, rows: pa.Table, on: str) -> pa.Table:
        """Of all rows of their keys, whose instants are in the column `on`. Raises as `sessions_of`."""
        keys = keys_in(rows, self.rule.by)
        return self.of(rows, micros_of(rows.column(on)), keys.numbers, pa.Table.from_batches([keys.values]))

    def of(self, rows: pa.Table, at: Ints, numbers: Ints, keys: pa.Table) -> pa.Table:
        """Of rows that have some of the keys, which `numbers` say. Raises the same."""
        return self.updates(sessions_of(rows, numbers, at, self.rule.kind, self.rule.plain or ()), keys)

    def updates(self, found: pa.RecordBatch | pa.Table, keys: pa.Table) -> pa.Table:
        """Of sessions as `sessions_of` has them, of some of the keys."""
        told = found if isinstance(found, pa.Table) else pa.Table.from_batches([found])
        for name, column in zip(self.rule.by, keys.columns, strict=True):
            told = told.append_column(name, column.take(told.column(GROUP)))
        return updates(self.rule, self.collection, self.due, told, self.rule.plain or ())


def _through_a_shuffle(views: Views, rule: InSessions) -> list[Written] | None:
    """What executors wrote of rows that are brought together by key; None where something does not fit. Sessions never
    go through the JVM."""
    values = values_of(views, rule, queried(views, {rule.input: views.held(rule.input)}, rule.rows))
    aggregates, due, collection = aggregates_over(rule, values), Due.of(views.computation), views.computation.collection
    if not _holds(views, rule, aggregates):
        return None

    def kernel(batches: Batches) -> Batches:
        try:
            for found in sessions_in_order(batches, rule.by, AT, rule.kind, aggregates):
                yield one_batch(updates(rule, collection, due, pa.Table.from_batches([found]), aggregates))
        except ArithmeticError as error:
            raise InvalidUsage(str(error)) from None

    try:
        found = written_in_order(in_order(values, rule.by), views.computation, kernel)
    except InvalidUsage as why:
        views.declines(str(why))
        return None
    views.place = Place.SHUFFLE
    return found


def updates(
    rule: InSessions, collection: Collection, due: Due, found: pa.Table, aggregates: Sequence[Aggregated]
) -> pa.Table:
    """Sessions, with the columns of `by`, START and END, as updates of the collection."""
    names = [one.name for one in aggregates]
    told = found.select([*rule.by, START, END, *names])
    return updates_due(collection, due, told.rename_columns([*rule.by, WINDOW_START, WINDOW_END, *names]))


def fits(views: Views, rule: InSessions) -> bool:
    """Whether sessions need no query, and the collection holds these columns, and as they come."""
    return rule.plain is not None and rule.kind.gap <= FAR and _holds(views, rule, rule.plain)


def _holds(views: Views, rule: InSessions, aggregates: Sequence[Aggregated]) -> bool:
    types = views.types_here(rule.input)
    told = {name: types[name] for name in rule.by} | {WINDOW_START: rule.bound, WINDOW_END: rule.bound}
    told |= {one.name: one.type for one in aggregates}
    return told == {column.name: column.type for column in stored(views.computation.collection)}
