"""The computer of derived collections on Spark (jobs/computer.py says what it promises)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.definition.computation import Computation, Computed, Differing, Input, Written
from tidemark.definition.recipe import DIFF, Recipe
from tidemark.definition.ways import Place
from tidemark.definition.windows.checked import checked
from tidemark.definition.windows.explained import most_of_all
from tidemark.model.collection import Column
from tidemark.model.derived import Definition, Mode
from tidemark.model.key import Key
from tidemark.model.window.kind import Sliding
from tidemark.model.window.lateness import Lateness
from tidemark.spark.derive import by_key, by_row, in_time, python
from tidemark.spark.derive.analysis import analysed, check_function, check_planned, check_same_every_time
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.compared import can_be_restricted, differing_rows
from tidemark.spark.derive.dated import check_dated
from tidemark.spark.derive.difference import desired_at, differing, held_at
from tidemark.spark.derive.footers import holds_nothing, none_is_null
from tidemark.spark.derive.hushed import hushed
from tidemark.spark.derive.little import Updates
from tidemark.spark.derive.parts import written, written_here
from tidemark.spark.derive.plain.compared import differing_here
from tidemark.spark.derive.plain.grouped import groups_apart, groups_built_plainly
from tidemark.spark.derive.plain.sessions import sessions_apart, sessions_built_plainly
from tidemark.spark.derive.plain.sliding import sliding_apart, sliding_built_plainly
from tidemark.spark.derive.raised import naming
from tidemark.spark.derive.settings import IN_ONE_TASK, apart, with_settings
from tidemark.spark.derive.under_names import called, empty
from tidemark.spark.derive.views import Views
from tidemark.spark.derive.windows import lying
from tidemark.spark.lost import noticed
from tidemark.spark.read import LEAST_TASK_ROWS

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
        """The columns of a definition, as Spark's analysis of it over empty inputs finds them."""
        spark = apart(self._session())
        rule = recipe.in_time if recipe else None
        frames = {held.name: in_time.empty_rows(empty(spark, held, recipe), held.name, rule) for held in inputs}
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
            noticed(),
            self._hushing() as session,
            Views(computation, session) as views,
            naming(computation.name, lambda: by_row.row(views) if computation.rows_keep_times else ""),
        ):
            answers = _written(views)
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
            noticed(),
            self._hushing() as session,
            Views(computation, session) as views,
            naming(computation.name, lambda: ""),
        ):
            if self._compares_here and keys is not None:
                here = _unless_inexact(views, lambda views: differing_here(views, keys, most))
                if here is not None:
                    return here
            session()  # there is no other way to compare, and columns cannot be named before it is there
            restricted = by_row or (keys is not None and can_be_restricted(views))
            return differing_rows(views, None if restricted else whole(views), keys, most)

    def values(self, name: str, given: str, rows: pa.Table, selects: Sequence[str]) -> pa.Table:
        """What selects of single rows give, one after the other."""
        with noticed(), self._hushing() as session, naming(name, lambda: ""):
            spark = apart(session())
            frame = spark.createDataFrame(rows)
            for select in selects:
                with called({given: frame}):
                    frame = analysed(spark, name, select)
            return frame.toArrow()

    @contextmanager
    def _hushing(self) -> Iterator[Callable[[], SparkSession]]:
        """The session, if it is asked for: hushed from then on until the end of the block."""
        with ExitStack() as stack:

            def session() -> SparkSession:
                spark = self._session()
                stack.enter_context(hushed())
                return spark

            yield session


def _written(views: Views) -> list[Written]:
    """By this process where it is little, by executors without a query where it is plain, by queries else."""
    for built in (sliding_built_plainly, groups_built_plainly, sessions_built_plainly):
        if (found := _unless_inexact(views, built)) is not None:
            return found
    if (here := _unless_inexact(views, _learned_here)) is not None:
        return written_here(here, views.computation)
    for made in (sliding_apart, groups_apart, sessions_apart):
        if (found := _unless_inexact(views, made)) is not None:
            return found
    updates = _updates(views)
    if updates is None:
        return []
    if not isinstance(updates, DataFrame):
        return written_here(updates, views.computation)
    with with_settings(views.spark, IN_ONE_TASK if _builds_few(views) else {}):
        return written(updates, views.computation)


def _unless_inexact(views: Views, way: Callable[[Views], Result | None]) -> Result | None:
    """What a way gives; None where it cannot compute a value exactly, of which Spark says then what it is."""
    try:
        found = way(views)
    except ArithmeticError as why:
        views.declines(str(why))
        found = None
    if found is None:
        views.place = Place.QUERIES  # wherever it was begun
    return found


def _builds_few(views: Views) -> bool:
    """Whether windows are computed for the first time, and of so few rows that to shuffle them costs more than it
    spares. Sliding ones are cut into tasks otherwise."""
    computation, windows = views.computation, views.computation.definition.windows
    if windows is None or isinstance(windows.kind, Sliding) or computation.mode is not Mode.WHOLE:
        return False
    rows = sum(views.rows_held(given.name) for given in computation.inputs) * most_of_all(windows.kind)
    return rows <= LEAST_TASK_ROWS and holds_nothing(computation)


def _learned_here(views: Views) -> list[pa.RecordBatch] | None:
    """The updates of a computation by key, where it is for this process to compute them."""
    computation = views.computation
    if computation.mode is not Mode.BY_KEY or computation.recipe is None:
        return None
    rule = computation.recipe.windowed
    return by_key.learned_here(views) if rule is None else lying.learned_here(views, rule)


def _updates(views: Views) -> Updates | None:
    """The updates of a computation; None where it is known that there are none."""
    computation = views.computation
    match computation.mode:
        case Mode.BY_ROW:
            return by_row.learned(views)
        case Mode.BY_KEY:
            if computation.recipe is None:
                return python.learned(views)
            rule = computation.recipe.windowed
            return by_key.learned(views) if rule is None else lying.learned(views, rule)
        case Mode.WHOLE:
            if computation.rows_keep_times:
                return differing(computation, [by_row.all_of(views), held_at(views.own(), computation)])
            desired = desired_at(in_time.computed_anew(views, whole(views)), computation)
            if holds_nothing(computation):
                return desired  # there is nothing to compare with
            return differing(computation, [desired, held_at(in_time.computed_anew(views, views.own()), computation)])


def _late(views: Views) -> Lateness:
    """How much of what is new came late for windows that took it no more."""
    recipe = views.computation.recipe
    if recipe is not None and recipe.windowed is not None:
        return lying.late(views, recipe.windowed)
    return in_time.late(views)


def _unplaced(views: Views) -> int:
    """Of windows, how many of the rows that were looked at and count are in none, because what they are on is null: of
    what changed those that came less those that went."""
    windows = views.computation.definition.windows
    if windows is None:
        return 0
    if views.unplaced is not None:
        return views.unplaced
    (given,) = views.computation.inputs
    told = checked(windows, given.shape)
    if told.happened or none_is_null(given, told.windows.on):  # an event time is never null
        return 0
    rows = (
        views.changes(given.name) if given.previous is not None else views.held(given.name).withColumn(DIFF, F.lit(1))
    )
    where = told.where
    counting = rows.alias(given.name).where(F.lit(True) if where is None else F.expr(where.sql))
    found = counting.where(F.col(f"`{told.windows.on}`").isNull()).agg(F.sum(DIFF)).first()
    return int((found and found[0]) or 0)


def whole(views: Views) -> DataFrame:
    """All rows of the definition."""
    computation = views.computation
    if computation.recipe is not None and computation.recipe.windowed is not None:
        return lying.whole(views, computation.recipe.windowed)
    frames = {held.name: in_time.held(views, held.name) for held in computation.inputs}
    if _builds_few(views):
        frames = {name: frame.coalesce(1) for name, frame in frames.items()}
    with called(frames):
        if computation.recipe is None:
            frame = python.answer(computation.name, computation.definition, frames)
        else:
            frame = analysed(views.spark, computation.name, computation.recipe.whole)
    check_fits(computation.collection, our_columns(frame.schema))
    return frame
