"""The computer of derived collections on Spark (jobs/computer.py says what it promises)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemark.definition.computation import Computation, Computed, Differing, Input
from tidemark.definition.recipe import DIFF, Recipe
from tidemark.definition.windows.checked import checked
from tidemark.model.collection import Column, ColumnType
from tidemark.model.derived import Definition
from tidemark.model.key import Key
from tidemark.model.window.lateness import Lateness
from tidemark.spark.derive import python
from tidemark.spark.derive.analysis import analysed, check_function, check_planned, check_same_every_time
from tidemark.spark.derive.columns import named, our_columns
from tidemark.spark.derive.dated import check_dated
from tidemark.spark.derive.footers import none_is_null
from tidemark.spark.derive.kinds.compared import differing_here
from tidemark.spark.derive.muted import muted_task_errors
from tidemark.spark.derive.place import computed
from tidemark.spark.derive.queries import by_row, lateness, windows
from tidemark.spark.derive.queries.answers import whole
from tidemark.spark.derive.queries.compared import can_be_restricted, differing_rows
from tidemark.spark.derive.queries.in_windows import empty_rows
from tidemark.spark.derive.raised import naming
from tidemark.spark.derive.settings import isolated_session
from tidemark.spark.derive.under_names import called, empty
from tidemark.spark.derive.views import Views
from tidemark.spark.lost import worker_loss_as_unavailable

Result = TypeVar("Result")


class SparkComputer:
    """Computes on a Spark session, which is asked for when it is needed; executors open the stores themselves."""

    def __init__(self, session: Callable[[], SparkSession], *, compares_here: bool = False) -> None:
        """With `compares_here` some keys are compared by this process where that is plain and little. Without, Spark
        compares them: another engine than the one that computed them, where one is running anyway."""
        self._session = session
        self._compares_here = compares_here

    def shape(
        self, name: str, definition: Definition, recipe: Recipe | None, inputs: Sequence[Input]
    ) -> tuple[Column, ...]:
        """Find the columns of a definition: those that Spark's analysis of it over empty inputs has.

        Those of a join that the kernel builds are known without Spark, but for JSON, which is text to Spark.
        """
        if recipe and recipe.join and not recipe.hidden and ColumnType.JSON not in recipe.join.types.values():
            return tuple(Column(named(column), recipe.join.types[column]) for column in recipe.columns)
        spark = isolated_session(self._session())
        frames = {input_.name: empty_rows(empty(spark, input_, recipe), input_.name, recipe) for input_ in inputs}
        with called(frames):
            frame = analysed(spark, name, recipe.whole) if recipe else python.answer(name, definition, frames)
            check_same_every_time(name, frame)
            if recipe is None:
                check_function(name, frame)
            check_dated(name, frame)
            check_planned(name, frame)
            return our_columns(frame.schema)

    def compute(self, computation: Computation) -> Computed:
        """Write what differs."""
        with (
            worker_loss_as_unavailable(),
            self._hushing() as session,
            Views(computation, session) as views,
            naming(computation.name, lambda: by_row.row(views) if computation.rows_keep_times else ""),
        ):
            answers = computed(views)
            unplaced, late = _unplaced(views), _late(views)
        return Computed(
            tuple(part for answer in answers for part in answer.parts),
            sum(answer.added for answer in answers),
            sum(answer.retracted for answer in answers),
            views.rows_read,
            views.bytes_read,
            unplaced,
            late,
            views.way,
        )

    def compare(self, computation: Computation, *, keys: Sequence[Key] | None, most: int) -> tuple[Differing, ...]:
        """Rows by which D as of u - 1 differs from its definition, `most` at most."""
        by_row = computation.recipe is not None and computation.recipe.by_row is not None
        with (
            worker_loss_as_unavailable(),
            self._hushing() as session,
            Views(computation, session) as views,
            naming(computation.name, lambda: ""),
        ):
            if self._compares_here and keys is not None:
                here = _differing_here(views, keys, most)
                if here is not None:
                    return here
            session()  # there is no other way to compare, and columns cannot be named before it is there
            restricted = by_row or (keys is not None and can_be_restricted(views))
            return differing_rows(views, None if restricted else whole(views), keys, most)

    def values(self, name: str, given: str, rows: pa.Table, selects: Sequence[str]) -> pa.Table:
        """What selects of single rows give, one after the other."""
        with worker_loss_as_unavailable(), self._hushing() as session, naming(name, lambda: ""):
            spark = isolated_session(session())
            frame = spark.createDataFrame(rows)
            for select in selects:
                with called({given: frame}):
                    frame = analysed(spark, name, select)
            return frame.toArrow()

    @contextmanager
    def _hushing(self) -> Iterator[Callable[[], SparkSession]]:
        """The session, if it is asked for: errors of tasks are muted from then on until the end of the block."""
        with ExitStack() as stack:

            def session() -> SparkSession:
                spark = self._session()
                stack.enter_context(muted_task_errors())
                return spark

            yield session


def _differing_here(views: Views, keys: Sequence[Key], most: int) -> tuple[Differing, ...] | None:
    """The same by this process; None where it cannot compare them."""
    try:
        return differing_here(views, keys, most)
    except ArithmeticError:
        return None


def _late(views: Views) -> Lateness:
    """How much of what is new came late for windows that no longer took it."""
    recipe = views.computation.recipe
    if recipe is not None and recipe.windowed is not None:
        return windows.late(views, recipe.windowed)
    return lateness.late(views)


def _unplaced(views: Views) -> int:
    """Of windows, how many of the rows that were looked at and count are in none, because what they are on is null: of
    what changed those that came less those that went."""
    declared = views.computation.definition.windows
    if declared is None:
        return 0
    if views.unplaced is not None:
        return views.unplaced
    (given,) = views.computation.inputs
    checked_windows = checked(declared, given.shape)
    if checked_windows.happened or none_is_null(given, checked_windows.windows.on):  # an event time is never null
        return 0
    rows = (
        views.changes(given.name)
        if given.previous is not None
        else views.rows_of(given.name).withColumn(DIFF, F.lit(1))
    )
    where = checked_windows.where
    counting = rows.alias(given.name).where(F.lit(True) if where is None else F.expr(where.sql))
    found = counting.where(F.col(f"`{checked_windows.windows.on}`").isNull()).agg(F.sum(DIFF)).first()
    return int((found and found[0]) or 0)
