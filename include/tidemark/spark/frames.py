"""The laws of updates as DataFrame expressions: each has its twin in tidemark/model/update.py.

An updates frame has the key columns, the value columns, `_time`, `_event_time` and `_diff` (all long).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.model.frontier import CompactionFunction

TIMES = ("_time", "_event_time")


def advance(updates: DataFrame, function: CompactionFunction) -> DataFrame:
    """Forward both coordinates by a compaction function."""
    if function.changes_nothing:
        return updates
    return updates.withColumns({name: _forwarded(F.col(name), function) for name in TIMES})


def _forwarded(time: Column, function: CompactionFunction) -> Column:
    """f(time) as an expression: one branch for each rung, from new to old."""
    if not function.rungs:
        return F.greatest(time, F.lit(function.since))
    raised = F.greatest(time, F.lit(function.floor))
    moved = F.when(time >= function.since, time)
    for rung in function.rungs:
        last = raised - raised % rung.interval + (rung.interval - 1)
        moved = moved.when(raised >= rung.lower, last)
    return moved


def consolidate(updates: DataFrame, by: Sequence[str]) -> DataFrame:
    """Sum diffs of rows equal in `by`, drop zeros. A sum beyond a long raises (ANSI mode), it never wraps."""
    return updates.groupBy(*by).agg(F.sum("_diff").alias("_diff")).where(F.col("_diff") != 0)


def between(updates: DataFrame, *, after: int, upto: int, event_upto: int) -> DataFrame:
    """Updates with `after < _time <= upto` and `_event_time <= event_upto`."""
    learned = (F.col("_time") > after) & (F.col("_time") <= upto)
    return updates.where(learned & (F.col("_event_time") <= event_upto))


def snapshot(updates: DataFrame, columns: Sequence[str], *, time: int, event_time: int) -> DataFrame:
    """The collection as known at `time`, as of `event_time`: its columns and `_multiplicity`."""
    held = between(updates, after=-1, upto=time, event_upto=event_time)
    return consolidate(held, columns).withColumnRenamed("_diff", "_multiplicity")


def changes(updates: DataFrame, columns: Sequence[str], *, after: int, upto: int) -> DataFrame:
    """One row per consolidated update with `after < _time <= upto`."""
    some = between(updates, after=after, upto=upto, event_upto=2**63 - 1)
    return consolidate(some, [*columns, *TIMES])


def net_changes(updates: DataFrame, columns: Sequence[str], *, after: int, upto: int) -> DataFrame:
    """What differs between the collection at `after` and at `upto`: the columns and `_diff`."""
    return consolidate(between(updates, after=after, upto=upto, event_upto=2**63 - 1), columns)
