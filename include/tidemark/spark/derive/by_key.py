"""By key: only what the inputs' changes touch is computed, from the inputs' rows of these keys, and compared with the
rows that stand there; sums that can be subtracted are added up from the changes alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.recipe import DELTA, DIFF, HELD, TOUCHED, ByKey, changes_of
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.difference import differing, held_at, stored
from tidemark.spark.derive.little import Updates, desired_of, differing_here, held_against, held_here, standing
from tidemark.spark.derive.touched import Touched, held_of, looked_at, touched_of
from tidemark.spark.derive.views import AS_IT_IS, Views, called


def learned(views: Views) -> Updates | None:
    """By what the rows of touched values differ from what the definition says of them; None where none is touched."""
    rule = rule_of(views)
    return _touched(views, rule) if rule.delta is None else _grown(views, rule)


def _touched(views: Views, rule: ByKey) -> Updates | None:
    """Groups and join keys computed anew."""
    changed = [held.name for held in views.computation.inputs if held.previous != held.upper]
    values = [queried(views, {changes_of(name): views.changes(name)}, rule.touched[name]) for name in changed]
    distinct = reduce(DataFrame.unionAll, values).distinct() if len(values) > 1 else values[0]
    touched = touched_of(views, distinct, sum(map(views.rows_changed, changed)))
    if touched.is_empty:
        return None
    return held_against(views, definition_of(views, touched), touched, rule.held)


def _grown(views: Views, rule: ByKey) -> Updates | None:
    """Sums of groups by how much they grew."""
    (name,) = (held.name for held in views.computation.inputs)
    grew = queried(views, {changes_of(name): views.changes(name)}, rule.delta or "")
    keys = [f"k{at}" for at in range(len(rule.held))]
    delta, few = looked_at(views, grew, views.rows_changed(name))
    touched = Touched(delta.select(*keys), None if few is None else few.select(keys))
    if touched.is_empty:
        return None
    own = held_here(views, touched, rule.held)
    if own is not None:
        held = views.spark.createDataFrame(standing(views.computation.collection, own))
        desired = queried(views, {DELTA: delta, HELD: held}, rule.grown or "")
        found = differing_here(views, desired, own, settings=AS_IT_IS)
        if found is not None:
            return found
    return _grown_by_executors(views, rule, delta, held_of(views, touched, rule.held))


def _grown_by_executors(views: Views, rule: ByKey, delta: DataFrame, own: DataFrame) -> DataFrame:
    columns = [F.col(f"`{column.name}`") for column in stored(views.computation.collection)]
    standing = own.groupBy(*columns).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) > 0).drop(DIFF)
    desired = queried(views, {DELTA: delta, HELD: standing}, rule.grown or "")
    return differing(views.computation, [desired_of(views, desired), held_at(own, views.computation)])


def definition_of(views: Views, touched: Touched) -> DataFrame:
    """The rows of the definition that touched values have."""
    rule = rule_of(views)
    frames = {
        held.name: views.held(
            held.name, touched.ranges(views, held.name, held.state.collection, dict(rule.clustered.get(held.name, ())))
        )
        for held in views.computation.inputs
    }
    return queried(views, {**frames, TOUCHED: touched.frame}, rule.select)


def rule_of(views: Views) -> ByKey:
    """How it is computed by key."""
    recipe = views.computation.recipe
    assert recipe is not None
    assert recipe.by_key is not None  # the mode says so
    return recipe.by_key


def queried(views: Views, frames: Mapping[str, DataFrame], query: str) -> DataFrame:
    """A query over some views."""
    with called(frames):
        return analysed(views.spark, views.computation.name, query)
