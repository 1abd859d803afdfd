"""Inner joins by what changed of their inputs (definition/joined.py), by Spark."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import signed, stored
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.views import Views

SHARE = 4
"""At most one of so many rows that the inputs hold may have changed: else what is touched is recomputed."""


def joined_by_changes(views: Views, select: str) -> DataFrame | None:
    """By how much the rows of a join differ, as updates at u - 1; None where too much changed."""
    computation = views.computation
    names = [given.name for given in computation.inputs]
    changed = [name for name in names if views.rows_changed(name)]
    if SHARE * sum(map(views.rows_changed, changed)) > sum(map(views.rows_stored, names)):
        views.declines("too much changed to join the changes alone")
        return None
    now = {name: _now(views, name) for name in names}
    by = {name: _changes(views, name) for name in changed}
    terms = []
    for at, name in enumerate(changed):
        before = {later: now[later].unionByName(_taken_off(by[later])) for later in changed[at + 1 :]}
        terms.append(queried(views, {**now, **before, name: by[name]}, select))
    if not terms:
        return None
    rows = reduce(DataFrame.unionByName, terms)
    check_fits(computation.collection, our_columns(rows.drop(DIFF).schema))
    time = F.lit(computation.upper - 1)
    updates = signed(rows, computation.collection, (time, time, F.col(DIFF)), +1)
    together = [
        F.col(f"`{name}`") for name in (*(one.name for one in stored(computation.collection)), TIME, EVENT_TIME)
    ]
    return updates.groupBy(*together).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)


def _now(views: Views, name: str) -> DataFrame:
    """What an input holds, with DIFF."""
    columns = [F.col(f"`{column}`") for column in views.used(name)]
    return views.rows_of(name).select(*columns, F.lit(1).cast("long").alias(DIFF))


def _changes(views: Views, name: str) -> DataFrame:
    """What changed of an input, with DIFF; computed once."""
    columns = [F.col(f"`{column}`") for column in views.used(name)]
    return views.kept(views.some_changes(name).select(*columns, DIFF))


def _taken_off(changes: DataFrame) -> DataFrame:
    return changes.withColumn(DIFF, -F.col(DIFF))
