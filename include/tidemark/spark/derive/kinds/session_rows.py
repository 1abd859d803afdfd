"""Rows as sessions, and these as updates of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.gaps import FAR
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sessions import sessions_of
from tidemark.arrow.rows.columns import Ints
from tidemark.definition.recipe import AggregateColumn, SessionPlan
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import Collection
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import Due, as_stored
from tidemark.spark.derive.here.diff import updates_due
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.views import Views


@dataclass(frozen=True)
class SessionBuilder:
    """How rows become sessions, and these updates of a collection, in order."""

    rule: SessionPlan
    collection: Collection
    due: Due

    @classmethod
    def by(cls, views: Views, rule: SessionPlan) -> SessionBuilder:
        """By a rule of a computation."""
        return cls(rule, views.computation.collection, Due.of(views.computation))

    @property
    def columns(self) -> list[str]:
        """The columns of rows that are needed."""
        of = (one.of for one in self.rule.of_columns or () if one.of is not None)
        return list(dict.fromkeys([*self.rule.by, self.rule.on, *of]))

    def batches(self, rows: pa.Table) -> Batches:
        """Of all rows of their keys. Raises as `sessions_of`."""
        yield from self.of_all(rows, self.rule.on).to_batches()

    def of_all(self, rows: pa.Table, on: str) -> pa.Table:
        """Of all rows of their keys, whose instants are in the column `on`. Raises as `sessions_of`."""
        keys = keys_in(rows, self.rule.by)
        return self.of(rows, micros_of(rows.column(on)), keys.numbers, pa.Table.from_batches([keys.values]))

    def of(self, rows: pa.Table, at: Ints, numbers: Ints, keys: pa.Table) -> pa.Table:
        """Of rows that have some of the keys, which `numbers` say. Raises the same."""
        return self.updates(sessions_of(rows, numbers, at, self.rule.kind, self.rule.of_columns or ()), keys)

    def updates(self, found: pa.RecordBatch | pa.Table, keys: pa.Table) -> pa.Table:
        """Of sessions as `sessions_of` has them, of some of the keys."""
        given = found if isinstance(found, pa.Table) else pa.Table.from_batches([found])
        for name, column in zip(self.rule.by, keys.columns, strict=True):
            given = given.append_column(name, column.take(given.column(GROUP)))
        return updates(self.rule, self.collection, self.due, given, self.rule.of_columns or ())


def updates(
    rule: SessionPlan, collection: Collection, due: Due, found: pa.Table, aggregates: Sequence[AggregateColumn]
) -> pa.Table:
    """Sessions, with the columns of `by`, START and END, as updates of the collection."""
    names = [one.name for one in aggregates]
    given = found.select([*rule.by, START, END, *names])
    return updates_due(collection, due, given.rename_columns([*rule.by, WINDOW_START, WINDOW_END, *names]))


def fits(views: Views, rule: SessionPlan) -> bool:
    """Whether sessions need no query, and the collection holds these columns, and as they come."""
    return rule.of_columns is not None and rule.kind.gap <= FAR and holds(views, rule, rule.of_columns)


def holds(views: Views, rule: SessionPlan, aggregates: Sequence[AggregateColumn]) -> bool:
    """Whether the collection holds sessions with these aggregates, as they come."""
    types = views.types_here(rule.input)
    given = {name: types[name] for name in rule.by} | {WINDOW_START: rule.bound, WINDOW_END: rule.bound}
    given |= {one.name: one.type for one in aggregates}
    fits = as_stored(given, views.computation.collection)
    if not fits:
        views.declines_types()
    return fits
