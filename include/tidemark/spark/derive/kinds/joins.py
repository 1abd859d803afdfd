"""Inner joins, refreshed by what changed of their inputs (definition/joined.py says why that is enough). Few changed
rows are joined here with the rows of the other inputs that are equal to them: these are read by ranges of keys where
what is equal leads an input's key, else looked for among all its rows, where these are few enough.

An example: 20,000 of 2,000,000 flights changed, joined with 16 carriers. 20,000 rows and 16 are read, and 20,000
joined rows written; of the flights nothing else is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.joined import joined
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import integers, one_batch, replaced
from tidemark.arrow.rows.schema import DIFF, arrow_type
from tidemark.definition.recipe import JoinPlan
from tidemark.definition.ways import Place
from tidemark.spark.derive.difference import as_stored
from tidemark.spark.derive.here.diff import as_updates, diff_against_own
from tidemark.spark.derive.kind import Refreshed
from tidemark.spark.derive.queries.joins import SHARE
from tidemark.spark.derive.touched import MOST_BYTES, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.read import LEAST_TASK_ROWS


@dataclass
class Joins:
    """Inner joins of inputs by columns that are equal."""

    views: Views
    plan: JoinPlan

    @classmethod
    def of(cls, views: Views) -> Self | None:
        recipe = views.computation.recipe
        return None if recipe is None or recipe.join is None else cls(views, recipe.join)

    @property
    def input(self) -> str:
        return next(iter(self.plan.columns))

    @property
    def on(self) -> None:
        return None

    def gathering(self) -> None:
        """Joins are built by Spark."""

    def ranged(self) -> None:
        """They are not computed so."""

    def shuffled(self) -> None:
        """They are not computed so."""

    def refreshed(self) -> Refreshed | None:
        views = self.views
        if not as_stored(self.plan.types, views.computation.collection):
            views.declines_types()
            return None
        changed = [name for name in self.plan.columns if views.rows_changed(name)]
        if SHARE * sum(map(views.rows_changed, changed)) > sum(map(views.rows_stored, self.plan.columns)):
            views.declines("too much changed to join the changes alone")
            return None
        changes = {name: found for name in changed if (found := self._changes(name)) is not None}
        if len(changes) < len(changed):
            return None
        terms = list[pa.Table]()
        for at, name in enumerate(changed):
            before = {later: changes[later] for later in changed[at + 1 :]}
            term = self._term(name, changes[name], before)
            if term is None:
                return None
            terms.append(term)
        found = self._updates(pa.concat_tables(terms)) if terms else None
        return Refreshed([] if found is None else diff_against_own(views, found, found.slice(0, 0)), Place.HERE)

    def _changes(self, name: str) -> pa.Table | None:
        """What changed of an input, as joined rows call it, with DIFF; None where it is more than this process
        reads."""
        changed = self.views.changes_here(name)
        return None if changed is None else self._called(name, changed, DIFF)

    def _called(self, name: str, batches: Iterable[pa.RecordBatch], diff: str) -> pa.Table:
        """Rows of an input as joined rows call its columns, with DIFF."""
        called, types = self.plan.columns[name], self.views.types_here(name)
        fields = [(called[own], arrow_type(types[own])) for own in called]
        schema = pa.schema([*fields, (DIFF, pa.int64())])
        found = [rows.select([*called, diff]).rename_columns(schema.names).cast(schema) for rows in batches]
        return pa.Table.from_batches(found, schema)

    def _term(self, name: str, changes: pa.Table, before: dict[str, pa.Table]) -> pa.Table | None:
        """The changes of an input joined with all others: those in `before` as they were before these changes. None
        where that is more than this process computes."""
        found, reached, rest = changes, {name}, [one for one in self.plan.columns if one != name]
        while rest:
            other, equal = next((one, pairs) for one in rest if (pairs := self._pairs(reached, one)))
            rows = self._rows(other, found, equal)
            if rows is None:
                return None
            if other in before:
                was = _among(before[other], found, equal)
                rows = pa.concat_tables([rows, replaced(was, DIFF, -integers(was, DIFF))])
            both = joined(found, rows, equal, most=LEAST_TASK_ROWS)
            if both is None or both.nbytes > MOST_BYTES:
                self.views.declines("more rows are joined with what changed than this process computes")
                return None
            found, reached = both, {*reached, other}
            rest.remove(other)
        return found.select(self._columns)

    @property
    def _columns(self) -> list[str]:
        """The columns of joined rows, in one order for all terms."""
        return [*(name for called in self.plan.columns.values() for name in called.values()), DIFF]

    def _pairs(self, reached: set[str], other: str) -> list[tuple[str, str]]:
        """The columns of inputs that were `reached`, and those of another that must equal them."""
        ours = {name for one in reached for name in self.plan.columns[one].values()}
        theirs = set(self.plan.columns[other].values())
        both = (pair for one, two in self.plan.equal for pair in ((one, two), (two, one)))
        return [(one, two) for one, two in both if one in ours and two in theirs]

    def _rows(self, name: str, found: pa.Table, equal: list[tuple[str, str]]) -> pa.Table | None:
        """The rows an input holds that may be equal to those found; None where they are too many to be read here."""
        views, own = self.views, {called: one for one, called in self.plan.columns[name].items()}
        few = pa.table({own[two]: found.column(one) for one, two in equal})
        columns = {column: column for column in few.column_names}
        collection = views.computation.input(name).state.collection
        ranges = ranges_holding(few, views, name, collection, columns)
        most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
        batches = views.input_rows_here(name, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
        if batches is None:
            return None
        rows, size = list[pa.RecordBatch](), 0
        for batch in _having(batches, few):
            rows, size = [*rows, batch], size + batch.nbytes
            if size > MOST_BYTES:
                views.declines(f"{name}: too many rows are joined with what changed")
                return None
        return self._called(name, rows, MULTIPLICITY)

    def _updates(self, rows: pa.Table) -> pa.Table:
        """Joined rows as updates, in the columns of the definition."""
        kept = pa.Table.from_batches([projected(one_batch(rows), self.plan.projection)])
        shown = {name: _canonical_floats(kept.column(of)) for name, of in self.plan.shown.items()}
        return replaced(as_updates(self.views, pa.table(shown)), DIFF, integers(kept, DIFF))


def _having(batches: Iterable[pa.RecordBatch], few: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows that have a value of each column of few, in that column."""
    values = {name: few.column(name).unique() for name in few.column_names}
    for rows in batches:
        among = [np.asarray(pc.is_in(rows.column(name), of)) for name, of in values.items()]
        yield rows.filter(pa.array(np.logical_and.reduce(among)))


def _among(rows: pa.Table, found: pa.Table, equal: list[tuple[str, str]]) -> pa.Table:
    """The rows that may be equal to some."""
    few = pa.table({two: found.column(one) for one, two in equal})
    return pa.Table.from_batches(list(_having(rows.to_batches(), few)), rows.schema)


def _canonical_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as collections hold them: -0.0 is 0.0, a NaN is the one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.if_else(pc.equal(column, 0.0), 0.0, column)
    return pc.if_else(pc.is_nan(numbers), float("nan"), numbers)
