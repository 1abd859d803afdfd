"""Joins by columns that are equal. One input is read as it is, the others are little enough to be in memory: each
row is joined where it is read, in this process or by executors that have the little ones, too (definition/joined.py).

A refresh joins what changed. Few changed rows are joined here with the rows of the other inputs that are equal to them:
these are read by ranges of keys where what is equal leads an input's key, else looked for among all its rows, where
these are few enough.

An example: 2,000,000 flights and 16 carriers. The 16 are read, then the flights batch by batch, and each batch gets
their names: no row is moved, none is sorted. 20,000 flights changed: 20,000 rows and 16 are read, and 20,000 joined
rows written; of the flights nothing else is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Self

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.joined import Side, Values, canonical
from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import integers, one_batch, replaced
from tidemark.arrow.rows.schema import DIFF, arrow_type, key_at_rest, sort_columns
from tidemark.definition.recipe import JoinPlan
from tidemark.definition.ways import Place
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.difference import Due, as_stored
from tidemark.spark.derive.executors.key_ranges import leading
from tidemark.spark.derive.here.diff import diff_against_own, updates_due
from tidemark.spark.derive.here.rows import BUILT_BYTES, RowsByKey
from tidemark.spark.derive.kind import Ranged, Refreshed
from tidemark.spark.derive.queries.joins import SHARE
from tidemark.spark.derive.touched import MOST_BYTES, ranges_holding
from tidemark.spark.derive.views import LITTLE_BYTES, LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views
from tidemark.spark.read import LEAST_TASK_ROWS


@dataclass
class Joins:
    """Inner and left joins of inputs by columns that are equal."""

    views: Views
    plan: JoinPlan

    @classmethod
    def of(cls, views: Views) -> Self | None:
        recipe = views.computation.recipe
        return None if recipe is None or recipe.join is None else cls(views, recipe.join)

    @cached_property
    def input(self) -> str:
        """The one that has the most rows, of those that a left join keeps."""
        return max((name for name in self.plan.columns if name not in self.plan.left), key=self.views.rows_stored)

    @property
    def on(self) -> None:
        return None

    def gathering(self) -> RowsByKey | None:
        builder = self._builder(BUILT_BYTES)
        if builder is None:
            return None
        ours = [self._own_names.get(column.name) for column in self.views.computation.collection.key]
        by = [name for name in takewhile(bool, ours) if name]
        return RowsByKey.of(self.views, self.input, list(builder.called), by, builder.batches)

    def opens(self) -> bool:
        return False  # what it reaches is known once rows are read

    def ranged(self) -> Ranged | None:
        views, name = self.views, self.input
        together = leading(views.computation, name, self._own_names)
        if not together:
            ours, theirs = views.computation.collection, views.computation.input(name).state.collection
            views.declines(f"{name} is in order of {_order(theirs)}, and the join of {_order(ours)}")
            return None
        builder = self._builder(MOST_BYTES)
        return None if builder is None else Ranged(name, together, None, list(builder.called), builder.batches)

    def shuffled(self) -> None:
        """They are not computed so."""

    def _fits(self) -> bool:
        """Whether the collection holds these columns, and as they come."""
        fits = as_stored(self.plan.types, self.views.computation.collection)
        if not fits:
            self.views.declines_types()
        return fits

    @property
    def _own_names(self) -> dict[str, str]:
        """Which of the definition's columns are columns of the one input, or equal to these."""
        own = {called: name for name, called in self.plan.columns[self.input].items()}
        for _ in self.plan.columns:
            for pair in self.plan.equal:
                for one, two in (pair, pair[::-1]):
                    if one in own:
                        own.setdefault(two, own[one])
        return {name: own[called] for name, called in self.plan.shown.items() if called in own}

    def _builder(self, most_bytes: int) -> JoinBuilder | None:
        """What joins rows of the one input with all of the others; None where these are not little."""
        if not self._fits():
            return None
        sides = list[Side]()
        for name, equal, keeps_all in self._order_from(self.input):
            rows = self._rows(name, LEAST_TASK_ROWS, LITTLE_BYTES)
            if rows is None:
                return None
            if (integers(rows, DIFF) < 0).any():
                self.views.declines(f"{name}: a row is there fewer times than none")
                return None
            sides.append(Side(rows, equal, keeps_all=keeps_all))
        computation, called = self.views.computation, self.plan.columns[self.input]
        due, schema = Due.of(computation), self._schema(self.input)
        return JoinBuilder(called, schema, tuple(sides), self.plan, computation.collection, due, most_bytes)

    def _order_from(self, first: str) -> Iterator[tuple[str, list[tuple[str, str]], bool]]:
        """The other inputs in an order in which rows of one can be joined with them, each with the pairs of columns by
        which that is done, and whether rows stay that it has none for: a change of any input before may be joined with
        those after it."""
        columns, left = self.plan.columns, self.plan.left
        reached, rest = {first}, [name for name in columns if name != first and name not in left]
        while rest:
            other, equal = next((name, pairs) for name in rest if (pairs := self._pairs(reached, name)))
            yield other, equal, False
            reached.add(other)
            rest.remove(other)
        yield from ((name, list(pairs), True) for name, pairs in left.items())

    def refreshed(self) -> Refreshed | None:
        views = self.views
        if not self._fits():
            return None
        changed = [name for name in self.plan.columns if views.rows_changed(name)]
        if SHARE * sum(map(views.rows_changed, changed)) > sum(map(views.rows_stored, self.plan.columns)):
            views.declines("too much changed to join the changes alone")
            return None
        if lost := [name for name in changed if name in self.plan.left]:
            views.declines(f"{lost[0]} changed, whose columns a left join takes where there are rows of it")
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
        called, schema = self.plan.columns[name], self._schema(name)
        found = [rows.select([*called, diff]).rename_columns(schema.names).cast(schema) for rows in batches]
        return pa.Table.from_batches(found, schema)

    def _schema(self, name: str) -> pa.Schema:
        called, types = self.plan.columns[name], self.views.types_here(name)
        return pa.schema([*((called[own], arrow_type(types[own])) for own in called), (DIFF, pa.int64())])

    def _term(self, name: str, changes: pa.Table, before: dict[str, pa.Table]) -> pa.Table | None:
        """The changes of an input joined with all others: those in `before` as they were before these changes. None
        where that is more than this process computes."""
        found = one_batch(changes)
        for other, equal, keeps_all in self._order_from(name):
            rows = self._rows_equal(other, found, equal)
            if rows is None:
                return None
            if other in before:
                was = _having(before[other], Values(found, [one for one, _ in equal]), [two for _, two in equal])
                rows = pa.concat_tables([rows, replaced(was, DIFF, -integers(was, DIFF))])
            both = Side(rows, equal, keeps_all=keeps_all).joined(found, most=LEAST_TASK_ROWS)
            if both is None or both.nbytes > MOST_BYTES:
                self.views.declines("more rows are joined with what changed than this process computes")
                return None
            found = both
        return pa.Table.from_batches([found.select(self._columns)])

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

    def _rows_equal(self, name: str, found: pa.RecordBatch, equal: Sequence[tuple[str, str]]) -> pa.Table | None:
        """The rows an input holds that are equal to those found; None where they are too many to be read here."""
        views, own = self.views, {called: one for one, called in self.plan.columns[name].items()}
        columns = [own[two] for _, two in equal]
        few = pa.table([found.column(one) for one, _ in equal], [f"k{at}" for at in range(len(equal))])
        collection = views.computation.input(name).state.collection
        ranges = ranges_holding(few, views, name, collection, dict(zip(columns, few.column_names, strict=True)))
        most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
        return self._rows(name, most_rows, LOOKED_AT_BYTES, ranges, (Values(few, few.column_names), columns))

    def _rows(
        self,
        name: str,
        most_rows: int,
        most_bytes: int,
        ranges: Sequence[KeyRange] = (),
        having: tuple[Values, Sequence[str]] | None = None,
    ) -> pa.Table | None:
        """The rows an input holds in some ranges of keys, those `having` some values in these of its columns, as joined
        rows call its columns; None where they are too many to be in memory."""
        batches = self.views.input_rows_here(name, ranges, most_rows=most_rows, most_bytes=most_bytes)
        if batches is None:
            return None
        rows, size = list[pa.RecordBatch](), 0
        for batch in batches:
            rows.append(batch if having is None else _having(batch, *having))
            size += rows[-1].nbytes
            if size > MOST_BYTES:
                self.views.declines(f"{name}: too many rows are joined with others to be in memory")
                return None
        return self._called(name, rows, MULTIPLICITY)

    def _updates(self, rows: pa.Table) -> pa.Table:
        """Joined rows as updates, in the columns of the definition."""
        computation = self.views.computation
        return _updates(self.plan, computation.collection, Due.of(computation), one_batch(rows))


@dataclass(frozen=True)
class JoinBuilder:
    """Joins rows of one input, whose columns are `called` so in joined rows, as the `schema` has them, with all rows of
    the others, its `sides`: to updates that take `most_bytes`."""

    called: Mapping[str, str]
    schema: pa.Schema
    sides: tuple[Side, ...]
    plan: JoinPlan
    collection: Collection
    due: Due
    most_bytes: int

    def batches(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The updates that rows become, each of which is there as often as it is, in order of all columns. InvalidUsage
        where they are too many."""
        columns = [*(rows.column(name) for name in self.called), of_numbers(np.ones(rows.num_rows, np.int64))]
        found, size = list[pa.RecordBatch](), 0
        for some in self._joined(one_batch(pa.table(columns, self.schema.names).cast(self.schema)), self.sides):
            found.append(one_batch(_updates(self.plan, self.collection, self.due, some)))
            size += found[-1].nbytes
            if size > self.most_bytes:
                raise InvalidUsage(f"joined rows take more than {self.most_bytes >> 20} MiB in memory")
        if found:
            yield from summed(found, sort_columns(self.collection, facts=False), resort=True)

    def _joined(self, rows: pa.RecordBatch, sides: Sequence[Side]) -> Iterator[pa.RecordBatch]:
        """The rows joined with some sides, LEAST_TASK_ROWS at a time at most. InvalidUsage where one is joined with
        more."""
        if not sides:
            yield rows
            return
        both = sides[0].joined(rows, most=LEAST_TASK_ROWS)
        if both is not None:
            yield from self._joined(both, sides[1:])
            return
        if rows.num_rows == 1:
            raise InvalidUsage(f"a row is joined with more than {LEAST_TASK_ROWS:,}")
        for half in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2)):
            yield from self._joined(half, sides)


def _updates(plan: JoinPlan, collection: Collection, due: Due, rows: pa.RecordBatch) -> pa.Table:
    """Joined rows as updates, in the columns of the definition."""
    kept = projected(rows, plan.projection)
    shown = {name: canonical(kept.column(of)) for name, of in plan.shown.items()}
    return replaced(updates_due(collection, due, pa.table(shown)), DIFF, integers(kept, DIFF))


def _having(rows: pa.Table | pa.RecordBatch, among: Values, columns: Sequence[str]) -> pa.Table | pa.RecordBatch:
    """The rows that have some values in their columns."""
    return rows.filter(of_bools(among.numbers(rows, columns) >= 0))


def _order(collection: Collection) -> str:
    return ", ".join(key_at_rest(collection))
