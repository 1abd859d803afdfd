"""Sliding windows made without a query, where they are so plain that they need none. By the driver, where all are built
and the rows are so few that one task would read them: planning and compiling queries would be nearly all the cost. Else
by executors: of rows that are read by their key, or, where that does not tell windows apart, of rows that are brought
together once, by chunk. What makes cells of them makes windows of these, and parts.

Whatever is not as plain as that, or does not fit, is left to the queries, which say what is wrong, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sliding import sliding_in_order, sliding_of
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.definition.computation import Written
from tidemark.definition.recipe import Aggregated, Slid
from tidemark.definition.ways import Place
from tidemark.definition.windows.assigned import END, START
from tidemark.errors import InvalidUsage
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.chunks import chunked, earliest, whole_width
from tidemark.spark.derive.difference import Due, stored
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.parts import Batches, written_in_order
from tidemark.spark.derive.plain.apart import leading, written_apart
from tidemark.spark.derive.plain.rows import windows_built_here
from tidemark.spark.derive.views import Views
from tidemark.spark.derive.windows.sliding import placed, slide_of, valued
from tidemark.spark.derive.windows.valued import in_order


def sliding_built_plainly(views: Views) -> list[Written] | None:
    """What was written of all windows, of a collection that holds nothing; None where that is not plain, or not
    little."""
    made = _made(views)
    if made is None:
        return None
    of = (one.of for one in made.plain if one.of is not None)
    return windows_built_here(views, made.rule, list(dict.fromkeys([*made.rule.by, made.rule.on, *of])), made.of_all)


def sliding_apart(views: Views) -> list[Written] | None:
    """What executors wrote of all windows, or of those that changes reach; None where something does not fit. Where the
    columns `by` lead the input's key rows are read by these. Else, or where rows of one key are many, they go through
    one shuffle, where the collection holds nothing."""
    rule, made = _rule(views), _made(views)
    if made is not None:
        together = leading(views.computation, made.rule.input, {name: name for name in made.rule.by})
        used = [*made.rule.by, *(one.of for one in made.plain if one.of is not None)]
        found = written_apart(views, made.rule.input, together, made.rule.on, used, made.of_all, windows=2)
        if found is not None:
            return found
    if rule is None or rule.for_a_while is not None or not holds_nothing(views.computation):
        return None
    return _through_a_shuffle(views, rule)


def _rule(views: Views) -> Slid | None:
    """How sliding windows are computed; None for any others."""
    recipe = views.computation.recipe
    return recipe.windowed if recipe is not None and isinstance(recipe.windowed, Slid) else None


def _made(views: Views) -> _Made | None:
    """How windows are made of rows that are projected without Spark; None for any others."""
    rule = _rule(views)
    if rule is None or rule.plain is None or not fits(views, rule, rule.plain):
        return None
    return _Made(rule, rule.plain, Due.of(views.computation))


@dataclass(frozen=True)
class _Made:
    """How rows become windows, and these updates, in the columns of `by` and those that are told of a window by its
    states."""

    rule: Slid
    plain: tuple[Aggregated, ...]
    due: Due

    def of_all(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Of all rows of their keys, in order. Raises as the kernel does."""
        keys, at = keys_in(rows, self.rule.by), micros_of(rows.column(self.rule.on))
        for some in sliding_of(rows, keys.numbers, at, self.rule.kind, self.plain):
            yield updates(self.rule, self.due, keys.values.take(some.column(GROUP)).columns, some, self.plain)


def updates(
    rule: Slid, due: Due, keys: Sequence[pa.Array], windows: pa.RecordBatch, aggregates: Sequence[Aggregated]
) -> pa.RecordBatch:
    """Windows of some keys as updates, in the columns the definition gives."""
    columns = shown(dict(zip(rule.by, keys, strict=True)), windows, aggregates)
    at = pa.array(due.times(integers(windows, END)))
    columns |= {TIME: at, EVENT_TIME: at, DIFF: pa.array(np.ones(len(at), np.int64))}
    return pa.RecordBatch.from_pydict(columns)


def shown(by: Mapping[str, pa.Array], windows: pa.RecordBatch, plain: Sequence[Aggregated]) -> dict[str, pa.Array]:
    """The columns that the definition gives of windows with these values of `by`."""
    columns = {**by, WINDOW_START: windows.column(START), WINDOW_END: windows.column(END)}
    return columns | {one.name: windows.column(one.name) for one in plain}


def _through_a_shuffle(views: Views, rule: Slid) -> list[Written] | None:
    """What executors wrote of rows that are brought together by chunk; None where something does not fit. Windows never
    go through the JVM."""
    width, due = whole_width(rule), Due.of(views.computation)
    rows = chunked(valued(views, rule, placed(views, rule)), earliest(rule), width)
    slide = slide_of(views, rule, rows, width)
    if not fits(views, rule, slide.aggregates):
        return None

    def kernel(batches: Batches) -> Batches:
        try:
            for windows in sliding_in_order(batches, slide):
                yield updates(rule, due, [windows.column(name) for name in rule.by], windows, slide.aggregates)
        except ArithmeticError as error:
            raise InvalidUsage(str(error)) from None

    try:
        found = written_in_order(in_order(rows, slide.together), views.computation, kernel)
    except InvalidUsage as why:
        views.declines(str(why))
        return None
    views.place = Place.SHUFFLE
    return found


def fits(views: Views, rule: Slid, aggregates: Sequence[Aggregated]) -> bool:
    """Whether the collection holds these columns, as they come, and in order of them."""
    collection = views.computation.collection
    types = views.types_here(rule.input)
    given = {name: types[name] for name in rule.by} | {WINDOW_START: rule.bound, WINDOW_END: rule.bound}
    given |= {one.name: one.type for one in aggregates}
    held = {column.name: column.type for column in stored(collection)}
    return held == given and [column.name for column in collection.key] == [*rule.by, WINDOW_START, WINDOW_END]
