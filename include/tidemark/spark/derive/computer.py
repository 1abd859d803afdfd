"""The computer of derived collections on Spark (jobs/computer.py says what it promises)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.definition.computation import Computation, Computed, Differing, Input, Written
from tidemark.definition.recipe import DIFF, Recipe
from tidemark.definition.windows.checked import checked
from tidemark.model.collection import Column
from tidemark.model.derived import Definition, Mode
from tidemark.model.update import Row
from tidemark.spark.derive import by_key, by_row, lying, python
from tidemark.spark.derive.analysis import analysed, check_function, check_same_every_time
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.compared import can_be_restricted, differing_rows
from tidemark.spark.derive.difference import desired_at, differing, held_at
from tidemark.spark.derive.hushed import hushed
from tidemark.spark.derive.little import Updates
from tidemark.spark.derive.parts import written, written_here
from tidemark.spark.derive.raised import naming
from tidemark.spark.derive.views import Views, apart, called, empty


class SparkComputer:
    """Computes on a Spark session; executors open the stores themselves."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def shape(
        self, name: str, definition: Definition, recipe: Recipe | None, inputs: Sequence[Input]
    ) -> tuple[Column, ...]:
        """The columns of a definition, as Spark's analysis of it over empty inputs finds them."""
        spark = apart(self.spark)
        frames = {held.name: empty(spark, held) for held in inputs}
        with called(frames):
            frame = analysed(spark, name, recipe.whole) if recipe else python.answer(name, definition, frames)
            check_same_every_time(name, frame)
            if recipe is None:
                check_function(name, frame)
            return our_columns(frame.schema)

    def compute(self, computation: Computation) -> Computed:
        """Write what differs."""
        with (
            hushed(),
            Views(computation, apart(self.spark)) as views,
            naming(computation.name, lambda: by_row.row(views) if computation.rows_keep_times else ""),
        ):
            updates = _updates(views)
            answers = [] if updates is None else _written(updates, computation)
            unplaced = _unplaced(views)
        return Computed(
            tuple(part for answer in answers for part in answer.parts),
            sum(answer.added for answer in answers),
            sum(answer.retracted for answer in answers),
            views.rows_read,
            views.bytes_read,
            unplaced,
        )

    def compare(self, computation: Computation, *, keys: Sequence[Row] | None, most: int) -> tuple[Differing, ...]:
        """Rows by which D as of u - 1 differs from its definition, `most` at most."""
        by_row = computation.recipe is not None and computation.recipe.by_row is not None
        with hushed(), Views(computation, apart(self.spark)) as views, naming(computation.name, lambda: ""):
            restricted = by_row or (keys is not None and can_be_restricted(views))
            return differing_rows(views, None if restricted else whole(views), keys, most)


def _written(updates: Updates, computation: Computation) -> list[Written]:
    return written(updates, computation) if isinstance(updates, DataFrame) else written_here(updates, computation)


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
            desired = by_row.all_of(views) if computation.rows_keep_times else desired_at(whole(views), computation)
            return differing(computation, [desired, held_at(views.own(), computation)])


def _unplaced(views: Views) -> int:
    """Of windows, how many of the rows that were looked at and count are in none, because what they are on or by is
    null: of what changed those that came less those that went."""
    windows = views.computation.definition.windows
    if windows is None:
        return 0
    (given,) = views.computation.inputs
    rows = (
        views.changes(given.name) if given.previous is not None else views.held(given.name).withColumn(DIFF, F.lit(1))
    )
    where = checked(windows, given.shape).where
    counting = rows.alias(given.name).where(F.lit(True) if where is None else F.expr(where.sql))
    null = reduce(or_, (F.col(f"`{name}`").isNull() for name in (windows.on, *windows.by)))
    found = counting.where(null).agg(F.sum(DIFF)).first()
    return int((found and found[0]) or 0)


def whole(views: Views) -> DataFrame:
    """All rows of the definition."""
    computation = views.computation
    if computation.recipe is not None and computation.recipe.windowed is not None:
        return lying.whole(views, computation.recipe.windowed)
    frames = {held.name: views.held(held.name) for held in computation.inputs}
    with called(frames):
        if computation.recipe is None:
            frame = python.answer(computation.name, computation.definition, frames)
        else:
            frame = analysed(views.spark, computation.name, computation.recipe.whole)
    check_fits(computation.collection, our_columns(frame.schema))
    return frame
