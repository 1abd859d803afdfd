"""Windows that take late rows for a while only, by Spark: which rows of the input count, once for each window they
count in, and how many came late. All else is computed of these rows as of any others."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.windows import judged
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import TIME
from tidemark.definition.recipe import DIFF, FROZEN, LATE_FOR_ALL, LATE_FOR_SOME, LATE_UPDATES, LEARNED, LatenessFilter
from tidemark.definition.windows.assigned import END, START
from tidemark.model.collection import Column
from tidemark.model.window.close import closes_at
from tidemark.model.window.lateness import NOT_LATE, Lateness
from tidemark.model.window.windows import WINDOW_END
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.timeline import in_micros, learned, micros
from tidemark.spark.derive.under_names import called, repeated
from tidemark.spark.derive.views import Views


def held(views: Views, name: str, ranges: Sequence[KeyRange] = (), between: tuple[int, int] | None = None) -> DataFrame:
    """What an input holds, as `Views.held` tells it: of windows that take late rows for a while only the rows that
    count, with their windows."""
    rule = _rule(views)
    if rule is None:
        return views.held(name, ranges, between)
    rows = _counting(views, rule, views.updates(name, ranges))
    shown = [column for column in rows.columns if column != DIFF]
    summed = rows.groupBy(*(F.col(f"`{column}`") for column in shown)).agg(F.sum(DIFF).alias(DIFF))
    return repeated(summed.where(F.col(DIFF) != 0), name, [*rule.by, START, END], DIFF)


def changes(views: Views, name: str) -> DataFrame:
    """What changed of an input, for who adds it up or looks at it only."""
    rule = _rule(views)
    return views.some_changes(name) if rule is None else _counting(views, rule, views.changes(name))


def empty_rows(given: DataFrame, name: str, rule: LatenessFilter | None) -> DataFrame:
    """No rows, in the columns that a definition sees of an input; of an input without rows."""
    if rule is None:
        return given
    nothing = F.lit(None).cast("long")
    frame = given.withColumns({LEARNED: nothing, DIFF: nothing})
    with called({name: frame}):
        return analysed(frame.sparkSession, name, rule.rows).drop(DIFF, FROZEN)


def late(views: Views) -> Lateness:
    """How much of what is new came late for windows that took it no more; nothing where late rows count for ever."""
    rule = _rule(views)
    if rule is None:
        return NOT_LATE
    if (here := _late_here(views, rule)) is not None:
        return here
    (found,) = asked(views, rule.input, views.new(rule.input), rule.late).collect()
    return Lateness(*(int(found[name]) for name in (LATE_FOR_ALL, LATE_FOR_SOME, LATE_UPDATES)))


def _late_here(views: Views, rule: LatenessFilter) -> Lateness | None:
    """The same by this process; None where that is not judged without Spark, or changes are too many."""
    windows, given = views.lateness, views.computation.input(rule.input)
    changed = None if windows is None else views.rows_changed_here(rule.input)
    if windows is None or changed is None:
        return None
    since = given.consumed if given.previous is None else None
    found = [0, 0, 0]
    try:
        for rows in changed:
            new = rows if since is None else rows.filter(pa.array(integers(rows, TIME) >= since))
            found = [one + more for one, more in zip(found, judged.late(new, windows, given.judging), strict=True)]
    except ArithmeticError:
        return None
    return Lateness(*found)


def computed_anew(views: Views, rows: DataFrame) -> DataFrame:
    """Of rows of windows those that are computed: without the ones that stay as they are held."""
    standing = _standing(views)
    return rows if standing is None else rows.where(F.expr(micros(rows, WINDOW_END)) > standing)


def computed_here(views: Views, rows: pa.Table) -> pa.Table:
    """The same of rows that are here."""
    standing = _standing(views)
    return rows if standing is None else rows.filter(pa.array(in_micros(rows, WINDOW_END) > standing))


def _standing(views: Views) -> int | None:
    """Windows that end up to here stay as they are held; None: no window does."""
    windows = views.computation.definition.windows
    if windows is None or windows.counts_late_for is None:
        return None
    (given,) = views.computation.inputs
    standing = given.judging.standing
    return None if standing is None else standing - closes_at(windows.kind, 0, windows.grace) - windows.counts_late_for


def _rule(views: Views) -> LatenessFilter | None:
    recipe = views.computation.recipe
    return recipe.in_time if recipe else None


def _counting(views: Views, rule: LatenessFilter, updates: DataFrame) -> DataFrame:
    return asked(views, rule.input, updates, rule.rows).where(~F.col(FROZEN)).drop(FROZEN)


def asked(views: Views, name: str, updates: DataFrame, query: str) -> DataFrame:
    """A query over updates of an input, which is told up to where the input was complete when each came."""
    given, rule = views.computation.input(name), _rule(views)
    if rule is not None and rule.moves:
        updates = updates.withColumn(DIFF, _added(rule, given.state.collection.key))
    with called({name: updates.withColumn(LEARNED, learned(given.judging))}):
        return analysed(views.spark, views.computation.name, query)


def _added(rule: LatenessFilter, key: Sequence[Column]) -> SparkColumn:
    """How often a row was added, which is refused where it was taken back."""
    message = F.concat(
        F.lit(f"collection {rule.input} takes back a row of key "),
        F.to_json(F.struct(*(F.col(f"`{column.name}`") for column in key))),
        F.lit(", which late: next_window may have counted in another window; write late: discard, or reemit"),
    )
    return F.when(F.col(DIFF) < 0, F.raise_error(message).cast("long")).otherwise(F.col(DIFF))
