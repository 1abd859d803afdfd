"""Sessions by Spark: it gives the values that are aggregated, and brings the rows of a key together in order of their
instants; the kernel computes their sessions as they come (arrow/kernels/windows/sessions.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from tidemark.arrow.kernels.aggregates.groups_in_order import groups_in_order
from tidemark.arrow.kernels.windows.sessions import sessions_in_order
from tidemark.definition.recipe import SessionPlan
from tidemark.definition.windows.rows import AT, END, START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.through_arrow import through
from tidemark.spark.derive.queries.values import aggregates_over, found_by, in_order, shown, values_of
from tidemark.spark.derive.touched import Touched, named
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS


def all_sessions(views: Views, rule: SessionPlan) -> DataFrame:
    """The sessions of all rows of the input."""
    return sessions_in(views, rule)


def sessions_of(views: Views, rule: SessionPlan, keys: Touched) -> DataFrame:
    """The sessions of the rows that have some values in the columns of `by`: k0, k1, …."""
    collection = views.computation.input(rule.input).state.collection
    ranges = keys.ranges(views, rule.input, collection, named(rule.by))
    return sessions_in(views, rule, ranges, chosen=lambda rows: keys.among(rows, rule.by))


def sessions_in(
    views: Views,
    rule: SessionPlan,
    ranges: Sequence[KeyRange] = (),
    between: tuple[int, int] | None = None,
    chosen: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> DataFrame:
    """The sessions of those rows that are `chosen` of what an input holds in some ranges, where it is seen when rows
    happened `between` two instants."""
    frame = views.rows_of(rule.input, ranges, between)
    few = views.rows_stored(rule.input, ranges) <= LEAST_TASK_ROWS
    rows = chosen(queried(views, {rule.input: frame.coalesce(1) if few else frame}, rule.rows))
    values = values_of(views, rule, rows)
    ordered = values.sortWithinPartitions(*(f"`{name}`" for name in rule.by), AT) if few else in_order(values, rule.by)
    by, kind, aggregates = rule.by, rule.kind, aggregates_over(rule, values)
    schema = found_by(rule, values, aggregates)
    return shown(rule, through(ordered, lambda rows: sessions_in_order(rows, by, AT, kind, aggregates), schema))


def sessions_known(views: Views, rule: SessionPlan, rows: DataFrame) -> DataFrame:
    """The sessions of rows that have the START and END of theirs."""
    values = values_of(views, rule, rows)
    keys, aggregates = [*rule.by, START, END], aggregates_over(rule, values)
    schema = found_by(rule, values, aggregates)
    found = through(in_order(values, keys), lambda rows: groups_in_order(rows, keys, AT, aggregates), schema)
    return shown(rule, found)


def keys_of(rule: SessionPlan) -> list[str]:
    """What values of `by` are called beside rows."""
    return [f"k{at}" for at in range(len(rule.by))]
