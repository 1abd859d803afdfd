"""By key: only what the inputs' changes touch is computed, from the inputs' rows of these keys, and compared with the
rows that stand there; sums that can be subtracted are added up from the changes alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.recipe import DELTA, DIFF, HELD, TOUCHED, ByKey, changes_of
from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import desired_at, differing, held_at, stored
from tidemark.spark.derive.touched import Touched, held_of, touched_of
from tidemark.spark.derive.views import Views, called


def learned(views: Views) -> DataFrame | None:
    """By what the rows of touched values differ from what the definition says of them; None where none is touched."""
    rule = rule_of(views)
    return _touched(views, rule) if rule.delta is None else _grown(views, rule)


def _touched(views: Views, rule: ByKey) -> DataFrame | None:
    """Groups and join keys computed anew."""
    changed = [held.name for held in views.computation.inputs if held.previous != held.upper]
    values = [queried(views, {changes_of(name): views.changes(name)}, rule.touched[name]) for name in changed]
    touched = touched_of(views, reduce(DataFrame.unionAll, values).distinct())
    if touched.is_empty:
        return None
    return _differing(views, definition_of(views, touched), held_of(views, touched, rule.held))


def _grown(views: Views, rule: ByKey) -> DataFrame | None:
    """Sums of groups by how much they grew."""
    (name,) = (held.name for held in views.computation.inputs)
    delta = views.kept(queried(views, {changes_of(name): views.changes(name)}, rule.delta or ""))
    touched = touched_of(views, delta.select(*(f"k{at}" for at in range(len(rule.held)))).distinct())
    if touched.is_empty:
        return None
    own = held_of(views, touched, rule.held)
    columns = [F.col(f"`{column.name}`") for column in stored(views.computation.collection)]
    standing = own.groupBy(*columns).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) > 0).drop(DIFF)
    return _differing(views, queried(views, {DELTA: delta, HELD: standing}, rule.grown or ""), own)


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


def _differing(views: Views, desired: DataFrame, own: DataFrame) -> DataFrame:
    computation = views.computation
    check_fits(computation.collection, our_columns(desired.schema))
    return differing(computation, [desired_at(desired, computation), held_at(own, computation)])


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
