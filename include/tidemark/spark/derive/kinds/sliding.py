"""Sliding windows: what of them each place computes. The kernel is arrow/kernels/windows/sliding.py, both where rows
are read without Spark and where Spark brings them together, by chunks of time (queries/chunks.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tidemark.arrow.kernels.windows.sliding import sliding_in_order
from tidemark.definition.recipe import SlidingPlan
from tidemark.definition.ways import Place
from tidemark.spark.derive.difference import Due
from tidemark.spark.derive.executors.key_ranges import leading
from tidemark.spark.derive.here.rows import RowsByKey
from tidemark.spark.derive.kind import Gathering, Ranged, Refreshed, Shuffled
from tidemark.spark.derive.kinds.sliding_near import windows_touched_here
from tidemark.spark.derive.kinds.sliding_rows import SlidingBuilder, fits, updates
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.queries.chunks import chunked, earliest, whole_width
from tidemark.spark.derive.queries.sliding import placed, slide_of, valued
from tidemark.spark.derive.queries.values import in_order
from tidemark.spark.derive.views import Views


@dataclass
class SlidingWindows:
    """Windows of one size that end with each row, or begin behind one."""

    views: Views
    rule: SlidingPlan

    @classmethod
    def of(cls, views: Views) -> Self | None:
        rule = views.computation.recipe and views.computation.recipe.windowed
        return cls(views, rule) if isinstance(rule, SlidingPlan) else None

    @property
    def input(self) -> str:
        return self.rule.input

    @property
    def on(self) -> str:
        return self.rule.on

    def _made(self) -> SlidingBuilder | None:
        """How windows are made of rows that are projected without Spark; None for any others."""
        of_columns = self.rule.of_columns
        if of_columns is None or not fits(self.views, self.rule, of_columns):
            return None
        return SlidingBuilder(self.rule, of_columns, Due.of(self.views.computation))

    def gathering(self) -> Gathering | None:
        made = self._made()
        return None if made is None else RowsByKey.of(self.views, self.input, made.columns, self.rule.by, made.of_all)

    def refreshed(self) -> Refreshed | None:
        found = windows_touched_here(self.views, self.rule)
        return None if found is None else Refreshed(found, Place.HERE)

    def opens(self) -> bool:
        return False  # what it reaches is known once rows are read

    def ranged(self) -> Ranged | None:
        rule, made = self.rule, self._made()
        if made is None:
            return None
        together = leading(self.views.computation, rule.input, {name: name for name in rule.by})
        return Ranged(rule.input, together, rule.on, made.columns, made.of_all, windows=2)

    def shuffled(self) -> Shuffled | None:
        rule, due = self.rule, Due.of(self.views.computation)
        if rule.bounded_lateness is not None:
            return None
        width = whole_width(rule)
        rows = chunked(valued(self.views, rule, placed(self.views, rule)), earliest(rule), width)
        slide = slide_of(self.views, rule, rows, width)
        if not fits(self.views, rule, slide.aggregates):
            return None

        def made(batches: Batches) -> Batches:
            for windows in sliding_in_order(batches, slide):
                yield updates(rule, due, [windows.column(name) for name in rule.by], windows, slide.aggregates)

        return Shuffled(in_order(rows, slide.together), made)
