"""What a definition says, by Spark: all of it, or by what that differs from what the collection holds."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemark.model.derived import Mode
from tidemark.model.window.kinds import Sliding
from tidemark.spark.derive import python
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import desired_at, differing, stored_at
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.here.diff import Updates
from tidemark.spark.derive.queries import by_key, by_row, in_windows, lateness, windows
from tidemark.spark.derive.under_names import called
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS


def updates(views: Views) -> Updates | None:
    """The updates of a computation; None where it is known that there are none."""
    computation = views.computation
    match computation.mode:
        case Mode.BY_ROW:
            return by_row.learned(views)
        case Mode.BY_KEY:
            if computation.recipe is None:
                return python.learned(views)
            rule = computation.recipe.windowed
            return by_key.learned(views) if rule is None else windows.learned(views, rule)
        case Mode.WHOLE:
            if computation.rows_keep_times:
                return differing(computation, [by_row.all_of(views), stored_at(views.own(), computation)])
            desired = desired_at(lateness.recomputed(views, whole(views)), computation)
            if holds_nothing(computation):
                return desired  # there is nothing to compare with
            return differing(computation, [desired, stored_at(lateness.recomputed(views, views.own()), computation)])


def builds_few(views: Views) -> bool:
    """Whether windows are computed for the first time, and of so few rows that to shuffle them costs more than it
    spares. Sliding ones are cut into tasks otherwise."""
    computation, declared = views.computation, views.computation.definition.windows
    if declared is None or isinstance(declared.kind, Sliding) or computation.mode is not Mode.WHOLE:
        return False
    rows = sum(views.rows_stored(given.name) for given in computation.inputs) * declared.kind.windows_per_row
    return rows <= LEAST_TASK_ROWS and holds_nothing(computation)


def whole(views: Views) -> DataFrame:
    """All rows of the definition."""
    computation = views.computation
    if computation.recipe is not None and computation.recipe.windowed is not None:
        return windows.whole(views, computation.recipe.windowed)
    frames = {input_.name: in_windows.rows_of(views, input_.name) for input_ in computation.inputs}
    if builds_few(views):
        frames = {name: frame.coalesce(1) for name, frame in frames.items()}
    with called(frames):
        if computation.recipe is None:
            frame = python.answer(computation.name, computation.definition, frames)
        else:
            frame = analysed(views.spark, computation.name, computation.recipe.whole)
    check_fits(computation.collection, our_columns(frame.schema))
    return frame
