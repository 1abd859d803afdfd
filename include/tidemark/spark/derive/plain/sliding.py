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
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.windows.cells import GROUP, keys_in, windows_in_order
from tidemark.arrow.kernels.windows.instants import micros_of
from tidemark.arrow.kernels.windows.sliding import AT, CHUNK, END, START, Slide, sliding_in_order
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, arrow_type
from tidemark.definition.computation import Written
from tidemark.definition.recipe import Aggregated, Slid
from tidemark.definition.ways import Place
from tidemark.errors import InvalidUsage
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.chunks import chunked, earliest, whole_width
from tidemark.spark.derive.difference import Due, stored
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.parts import Batches, written_in_order
from tidemark.spark.derive.plain.apart import leading, written_apart
from tidemark.spark.derive.plain.rows import windows_built_here
from tidemark.spark.derive.queried import queried
from tidemark.spark.derive.views import Views


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
    made = _made(views)
    if made is None:
        return None
    rule = made.rule
    together = leading(views.computation, rule.input, {name: name for name in rule.by})
    used = [*rule.by, *(one.of for one in made.plain if one.of is not None)]
    found = written_apart(views, rule.input, together, rule.on, used, made.of_all, windows=2)
    if found is not None or not holds_nothing(views.computation):
        return found
    return _through_a_shuffle(views, made)


def _made(views: Views) -> _Made | None:
    """How windows are made that are plain; None for any others."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.windowed
    if not isinstance(rule, Slid) or rule.plain is None or not fits(views, rule, rule.plain):
        return None
    return _Made(rule, rule.plain, Due.of(computation))


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
        for some in windows_in_order(rows, keys.numbers, at, self.rule.kind, self.plain):
            yield self.updates(keys.values.take(some.column(GROUP)).columns, some)

    def updates(self, keys: Sequence[pa.Array], windows: pa.RecordBatch) -> pa.RecordBatch:
        """Windows of some keys as updates, in the columns the definition gives."""
        columns = shown(dict(zip(self.rule.by, keys, strict=True)), windows, self.plain)
        at = pa.array(self.due.times(integers(windows, END)))
        columns |= {TIME: at, EVENT_TIME: at, DIFF: pa.array(np.ones(len(at), np.int64))}
        return pa.RecordBatch.from_pydict(columns)


def shown(by: Mapping[str, pa.Array], windows: pa.RecordBatch, plain: Sequence[Aggregated]) -> dict[str, pa.Array]:
    """The columns that the definition gives of windows with these values of `by`."""
    columns = {**by, WINDOW_START: windows.column(START), WINDOW_END: windows.column(END)}
    return columns | {one.name: windows.column(one.name) for one in plain}


def _through_a_shuffle(views: Views, made: _Made) -> list[Written] | None:
    """What executors wrote of rows that are brought together by chunk; None where something does not fit. Windows never
    go through the JVM."""
    rule, kind = made.rule, made.rule.kind
    slide = Slide(rule.by, kind.size, (), kind.clamp_start_at_zero, whole_width(rule), aggregates=made.plain)
    columns = tuple(dict.fromkeys([*rule.by, *(one.of for one in made.plain if one.of is not None)]))
    recipe = views.computation.recipe
    projection = None if recipe is None else recipe.projection
    columns = columns if projection is None else projection.sources(columns)

    def kernel(batches: Batches) -> Batches:
        counting = (projected(rows, projection) for rows in batches)
        try:
            for windows in sliding_in_order(counting, slide):
                yield made.updates([windows.column(name) for name in rule.by], windows)
        except ArithmeticError as error:
            raise InvalidUsage(str(error)) from None

    try:
        found = written_in_order(_rows_in_order(views, rule, columns), views.computation, kernel)
    except InvalidUsage as why:
        views.declines(str(why))
        return None
    views.place = Place.SHUFFLE
    return found


def _rows_in_order(views: Views, rule: Slid, columns: Sequence[str]) -> DataFrame:
    """The rows of the input that windows are of, with `columns` and AT, in their chunks: those of a key and a chunk
    together, in order of both and of AT."""
    rows = queried(views, {rule.input: views.held(rule.input)}, rule.rows)
    rows = rows.select(*(F.col(f"`{name}`") for name in columns), AT)
    together = [*(F.col(f"`{name}`") for name in rule.by), F.col(CHUNK)]
    ordered = chunked(rows, earliest(rule), whole_width(rule))
    return ordered.repartition(*together).sortWithinPartitions(*together, AT)


def fits(views: Views, rule: Slid, plain: Sequence[Aggregated]) -> bool:
    """Whether the collection holds these columns, as they come, and in order of them; not on event times, where how
    often rows are there is another question."""
    if views.sees_event_times:
        return False
    computation = views.computation
    collection = computation.collection
    rows = pa.schema([(name, arrow_type(of)) for name, of in views.types_here(rule.input).items()])
    bound = pa.int64() if pa.types.is_int64(rows.field(rule.on).type) else pa.timestamp("us", "UTC")
    given = {name: rows.field(name).type for name in rule.by} | {WINDOW_START: bound, WINDOW_END: bound}
    given |= {one.name: arrow_type(one.type) for one in plain}
    held = {column.name: arrow_type(column.type) for column in stored(collection)}
    return held == given and [column.name for column in collection.key] == [*rule.by, WINDOW_START, WINDOW_END]
