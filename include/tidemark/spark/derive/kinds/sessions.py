"""Sessions: what of them each place computes. The kernel is arrow/kernels/windows/sessions.py, both where rows are read
without Spark and where Spark brings them together by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from tidemark.arrow.kernels.windows.sessions import sessions_in_order
from tidemark.arrow.rows.columns import one_batch
from tidemark.definition.recipe import SessionPlan
from tidemark.definition.windows.rows import AT
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import Due
from tidemark.spark.derive.executors.key_ranges import leading
from tidemark.spark.derive.here.rows import RowsByKey
from tidemark.spark.derive.kind import Gathering, Ranged, Refreshed, Shuffled
from tidemark.spark.derive.kinds.session_rows import SessionBuilder, fits, holds, updates
from tidemark.spark.derive.kinds.sessions_near import sessions_touched
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.values import aggregates_over, in_order, values_of
from tidemark.spark.derive.views import Views


@dataclass
class Sessions:
    """Windows of rows that follow one another within a gap."""

    views: Views
    rule: SessionPlan

    @classmethod
    def of(cls, views: Views) -> Self | None:
        rule = views.computation.recipe and views.computation.recipe.windowed
        return cls(views, rule) if isinstance(rule, SessionPlan) else None

    @property
    def input(self) -> str:
        return self.rule.input

    @property
    def on(self) -> str:
        return self.rule.on

    def _made(self) -> SessionBuilder | None:
        """How sessions are made of rows that are projected without Spark, in order of the collection's key."""
        return SessionBuilder.by(self.views, self.rule) if self._in_key_order and fits(self.views, self.rule) else None

    @property
    def _in_key_order(self) -> bool:
        key = [column.name for column in self.views.computation.collection.key]
        return key == [*self.rule.by, WINDOW_START, WINDOW_END]

    def gathering(self) -> Gathering | None:
        made = self._made()
        return None if made is None else RowsByKey.of(self.views, self.input, made.columns, self.rule.by, made.batches)

    def refreshed(self) -> Refreshed | None:
        return sessions_touched(self.views, self.rule)

    def opens(self) -> bool:
        return False  # what it reaches is known once rows are read

    def ranged(self) -> Ranged | None:
        rule, made = self.rule, self._made()
        if made is None:
            return None
        together = leading(self.views.computation, rule.input, {name: name for name in rule.by})
        return Ranged(rule.input, together, rule.on, made.columns, made.batches)

    def shuffled(self) -> Shuffled | None:
        rule, views = self.rule, self.views
        if not rule.by or rule.after is not None or not self._in_key_order:
            return None  # all rows as one key are no work for several
        values = values_of(views, rule, queried(views, {rule.input: views.rows_of(rule.input)}, rule.rows))
        aggregates, due = aggregates_over(rule, values), Due.of(views.computation)
        collection = views.computation.collection
        if not holds(views, rule, aggregates):
            return None

        def made(batches: Batches) -> Batches:
            for found in sessions_in_order(batches, rule.by, AT, rule.kind, aggregates):
                yield one_batch(updates(rule, collection, due, pa.Table.from_batches([found]), aggregates))

        return Shuffled(in_order(values, rule.by), made)
