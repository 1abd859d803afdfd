"""Whether a collection holds what its definition says: all of it or some keys are recomputed and compared."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import arrow_type, key_column_of
from tidemark.definition.computation import Differing
from tidemark.definition.recipe import DIFF, TIME
from tidemark.model.collection import Column
from tidemark.model.key import Key
from tidemark.model.window.windows import WINDOW_START
from tidemark.plan.ranges import ranges_of
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.columns import value
from tidemark.spark.derive.difference import stored, there
from tidemark.spark.derive.queries import by_key, by_row, lateness, windows
from tidemark.spark.derive.touched import MOST_RANGES, Touched, touched_of
from tidemark.spark.derive.views import Views

_DESIRED, _ACTUAL = "_desired", "_actual"


def differing_rows(
    views: Views, whole: DataFrame | None, keys: Sequence[Key] | None, most: int
) -> tuple[Differing, ...]:
    """The first `most` rows by which D as of u - 1 differs from the definition over the inputs as consumed; with
    `keys`, of these keys of D only. `whole` is the definition's answer, where that must be asked for all of it."""
    computation = views.computation
    columns = stored(computation.collection)
    desired = _desired(views, keys) if whole is None else _there(views, whole)
    desired = lateness.recomputed(views, desired)
    ranges: Sequence[KeyRange] = ()
    if keys is not None and computation.collection.layout is None:
        ranges = ranges_of(keys, views.groups(computation.name), MOST_RANGES)
    own = lateness.recomputed(views, views.own(ranges).where(F.col(TIME) < computation.upper))
    own = own.select(*map(value, columns), F.col(DIFF))
    if keys is not None:
        some = asked_keys(views, keys)
        desired, own = some.among(desired, _key(views)), some.among(own, _key(views))
    names = [F.col(f"`{column.name}`") for column in columns]
    zero = F.lit(0).cast("long")
    both = desired.select(*names, F.col(DIFF).cast("long").alias(_DESIRED), zero.alias(_ACTUAL)).unionAll(
        own.select(*names, zero.alias(_DESIRED), F.col(DIFF).alias(_ACTUAL))
    )
    summed = both.groupBy(*names).agg(F.sum(_DESIRED).alias(_DESIRED), F.sum(_ACTUAL).alias(_ACTUAL))
    found = summed.where(F.col(_DESIRED) != F.col(_ACTUAL)).limit(most).toArrow()
    return tuple(_differing(found, columns))


def _key(views: Views) -> tuple[str, ...]:
    return tuple(column.name for column in views.computation.collection.key)


def _desired(views: Views, keys: Sequence[Key] | None) -> DataFrame:
    """The rows of the definition that need not be asked for all of it."""
    computation = views.computation
    assert computation.recipe is not None  # of a definition in Python all is asked for
    columns = stored(computation.collection)
    if computation.recipe.by_row is not None:
        rows = by_row.all_of(views).where(F.col(TIME) < computation.upper)
        return rows.select(*map(value, columns), F.col(DIFF))
    assert keys is not None  # else the whole is asked for
    if computation.recipe.windowed is not None:
        rule = computation.recipe.windowed
        touched = touched_of(views, _values_of(views, keys, (*rule.by, WINDOW_START)), len(keys))
        return _there(views, windows.some(views, rule, touched, len(keys)))
    values = _values_of(views, keys, by_key.rule_of(views).key_columns)
    return _there(views, by_key.definition_of(views, touched_of(views, values, len(keys))))


def _values_of(views: Views, keys: Sequence[Key], columns: Sequence[str]) -> DataFrame:
    """Some columns of some keys of D, as k0, k1, …, each once."""
    values = [F.col(f"k{_key(views).index(name)}").alias(f"k{at}") for at, name in enumerate(columns)]
    return asked_keys(views, keys).frame.select(*values).distinct()


def _there(views: Views, rows: DataFrame) -> DataFrame:
    """The rows of the definition that are to be there, once each."""
    columns = stored(views.computation.collection)
    return there(rows, views.computation).select(*map(value, columns), F.lit(1).alias(DIFF))


def can_be_restricted(views: Views) -> bool:
    """Whether some keys of D are computed from less than all of the inputs."""
    recipe = views.computation.recipe
    if recipe is None:
        return False
    if recipe.windowed is not None:
        return windows.can_be_restricted(recipe.windowed)
    return recipe.by_row is not None or (
        recipe.by_key is not None and set(recipe.by_key.key_columns) <= set(_key(views))
    )


def asked_keys(views: Views, keys: Sequence[Key]) -> Touched:
    """Some keys of D, as metadata has them, as values to look up."""
    columns = views.computation.collection.key
    arrays = [key_column_of([key[at] for key in keys], arrow_type(column.type)) for at, column in enumerate(columns)]
    table = pa.table(arrays, [f"k{at}" for at in range(len(columns))])
    return Touched(views.spark.createDataFrame(table), table)


def _differing(found: pa.Table, columns: Sequence[Column]) -> list[Differing]:
    cells = [[str(cell) for cell in plain_values(found.column(column.name))] for column in columns]
    counts = zip(found.column(_DESIRED).to_pylist(), found.column(_ACTUAL).to_pylist(), strict=True)
    names = [column.name for column in columns]
    return [
        Differing(tuple(zip(names, row, strict=True)), desired, actual)
        for row, (desired, actual) in zip(zip(*cells, strict=True), counts, strict=True)
    ]
