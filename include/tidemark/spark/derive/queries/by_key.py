"""By key: only what the inputs' changes touch is computed, from the inputs' rows of these keys, and compared with the
current rows; sums that can be subtracted are added up from the changes alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.recipe import CURRENT, DELTA, DIFF, TOUCHED, ByKey, changes_of
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.difference import differing, stored, stored_at
from tidemark.spark.derive.here.diff import (
    Updates,
    compared_with_own,
    desired_of,
    differing_here,
    net_rows,
    own_touched,
)
from tidemark.spark.derive.queries import in_windows
from tidemark.spark.derive.queries.joins import joined_by_changes
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.settings import AS_IT_IS
from tidemark.spark.derive.touched import FEW, Touched, looked_at, own_of, touched_few, touched_here, touched_of
from tidemark.spark.derive.views import Views


def learned(views: Views) -> Updates | None:
    """By what the rows that changes touch differ from what the definition says of them; None where none is touched."""
    rule, recipe = rule_of(views), views.computation.recipe
    if recipe is not None and recipe.joined and (found := joined_by_changes(views, recipe.joined)) is not None:
        return found
    return _touched(views, rule) if rule.delta is None else _grown(views, rule)


def _changed(views: Views) -> list[str]:
    """The inputs of which something changed, or may have."""
    return [input_.name for input_ in views.computation.inputs if input_.previous != input_.upper]


def few_touched(views: Views, rule: ByKey) -> pa.Table | None:
    """The values that changes touch, found by this process; None where they are not few."""
    changed = _changed(views)
    if not all(name in rule.columns for name in changed):
        return None
    return touched_here(views, {name: rule.columns[name] for name in changed})


def _touched(views: Views, rule: ByKey) -> Updates | None:
    """Groups and join keys, recomputed."""
    few = few_touched(views, rule)
    if few is None or few.num_rows > FEW:
        touched = _values_touched(views, rule, _changed(views))
    else:
        touched = touched_few(views, few)
    if touched.is_empty:
        return None
    return compared_with_own(views, definition_of(views, touched), touched, rule.key_columns)


def _values_touched(views: Views, rule: ByKey, changed: Sequence[str]) -> Touched:
    values = [
        queried(views, {changes_of(name): in_windows.changes(views, name)}, rule.touched[name]) for name in changed
    ]
    distinct = reduce(DataFrame.unionAll, values).distinct() if len(values) > 1 else values[0]
    return touched_of(views, distinct, sum(map(views.rows_changed, changed)))


def _grown(views: Views, rule: ByKey) -> Updates | None:
    """Sums of groups by how much they grew."""
    (name,) = (input_.name for input_ in views.computation.inputs)
    grew = queried(views, {changes_of(name): in_windows.changes(views, name)}, rule.delta or "")
    keys = [f"k{at}" for at in range(len(rule.key_columns))]
    delta, few = looked_at(views, grew, views.rows_changed(name))
    touched = Touched(delta.select(*keys), None if few is None else few.select(keys))
    if touched.is_empty:
        return None
    own = own_touched(views, touched.few, rule.key_columns)
    if own is not None:
        current = views.spark.createDataFrame(
            net_rows(own, [column.name for column in stored(views.computation.collection)])
        )
        desired = queried(views, {DELTA: delta, CURRENT: current}, rule.grown or "")
        found = differing_here(views, desired, own, settings=AS_IT_IS)
        if found is not None:
            return found
    return _grown_by_executors(views, rule, delta, own_of(views, touched, rule.key_columns))


def _grown_by_executors(views: Views, rule: ByKey, delta: DataFrame, own: DataFrame) -> DataFrame:
    columns = [F.col(f"`{column.name}`") for column in stored(views.computation.collection)]
    net_rows = own.groupBy(*columns).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) > 0).drop(DIFF)
    desired = queried(views, {DELTA: delta, CURRENT: net_rows}, rule.grown or "")
    return differing(views.computation, [desired_of(views, desired), stored_at(own, views.computation)])


def definition_of(views: Views, touched: Touched) -> DataFrame:
    """The rows of the definition that touched values have."""
    rule = rule_of(views)
    between = None
    if views.computation.definition.windows is not None and {WINDOW_START, WINDOW_END} <= set(rule.key_columns):
        start, end = (f"k{rule.key_columns.index(name)}" for name in (WINDOW_START, WINDOW_END))
        between = touched.between(start, end)
    frames = {
        input_.name: in_windows.rows_of(
            views,
            input_.name,
            touched.ranges(views, input_.name, input_.state.collection, dict(rule.clustered.get(input_.name, ()))),
            between,
        )
        for input_ in views.computation.inputs
    }
    return queried(views, {**frames, TOUCHED: touched.frame}, rule.select)


def rule_of(views: Views) -> ByKey:
    """How it is computed by key."""
    recipe = views.computation.recipe
    assert recipe is not None
    assert recipe.by_key is not None  # the mode says so
    return recipe.by_key
