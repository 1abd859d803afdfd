"""Statistics of windows by Spark: the input's rows, each with how often it is there and since when, in the windows of a
definition (definition/windows/statistics.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.computation import Computation
from tidemark.definition.recipe import BAND, DIFF, HAPPENED, TIME, SessionPlan, SlidingPlan
from tidemark.definition.windows.rows import AT, END, START
from tidemark.definition.windows.statistics import ARRIVED, COUNT, GREW, KEY, SIZE, Statistics
from tidemark.model.window.statistics import (
    BYTES,
    FIRST_ARRIVAL,
    LAST_ARRIVAL,
    LATE,
    MEAN_BYTES,
    ROWS,
    ROWS_LATE_FOR_ALL,
    ROWS_LATE_FOR_SOME,
    STATISTICS,
    UPDATES_LATE,
)
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.queries import bands, late_sessions, lateness, lost
from tidemark.spark.derive.queries.in_windows import in_windows, late_for_each
from tidemark.spark.derive.queries.null_safe import joined
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.sessions import all_sessions, sessions_known
from tidemark.spark.derive.queries.sliding import all_windows, asked, windows_of
from tidemark.spark.derive.queries.values import values_of
from tidemark.spark.derive.views import Views

_HISTORY, _STATE = "_history", "_state"
_STATE_SQL = f"""aggregate({_HISTORY}, named_struct('n', 0L, 'arrived', 0L, 'grew', 0L), (was, one) -> named_struct(
    'n', was.n + one.{DIFF},
    'arrived', IF(signum(was.n) = signum(was.n + one.{DIFF}), was.arrived, one.{TIME}),
    'grew', IF(signum(was.n) = signum(was.n + one.{DIFF}) AND abs(was.n + one.{DIFF}) < abs(was.n),
               was.grew, one.{TIME})))"""
"""What became of a row by its changes in order: how often it is there, since when without a break, and since when not
more rarely. Changes that were merged up to a time are one change at that time, and give the same result from then
on."""


@dataclass
class Counted(Views):
    """The input of windows with what its statistics are computed from: each different row once. Of the windows `among`
    the values of `by` only, where these are given."""

    statistics: Statistics | None = None
    among: DataFrame | None = None

    def kept(self, frame: DataFrame) -> DataFrame:
        """The frame itself: an answer is read after its views are gone."""
        return frame

    def rows_of(self, name: str, ranges: Sequence[KeyRange] = (), between: tuple[int, int] | None = None) -> DataFrame:
        """The rows of the input that are there, with COUNT, ARRIVED, GREW, SIZE and KEY."""
        return self.there(self.near())

    def near(self) -> DataFrame:
        """All updates of the input, of rows that can be in windows that are asked for."""
        assert self.statistics is not None
        changes = self.changes(self.statistics.input, all_columns=True)
        if self.among is None:
            return changes
        return joined(changes, self.among, self.statistics.by, "left_semi")

    def there(self, updates: DataFrame, *places: str) -> DataFrame:
        """The rows that are there by some updates, with COUNT, ARRIVED, GREW, SIZE and KEY; in each of the places that
        columns of these updates name, by those that count there."""
        assert self.statistics is not None
        own = [F.col(f"`{column}`") for column in (*self.columns, *places)]
        times = updates.select(*own, TIME, DIFF).repartition(*own).groupBy(*own, TIME).agg(F.sum(DIFF).alias(DIFF))
        history = F.sort_array(F.collect_list(F.struct(TIME, DIFF))).alias(_HISTORY)
        rows = times.where(F.col(DIFF) != 0).groupBy(*own).agg(F.sum(DIFF).alias(COUNT), history)
        rows = rows.where(F.col(COUNT) != 0).withColumn(_STATE, F.expr(_STATE_SQL))
        since = [F.col(f"{_STATE}.arrived").alias(ARRIVED), F.col(f"{_STATE}.grew").alias(GREW)]
        size = F.expr(self.statistics.size).cast("long").alias(SIZE)
        return rows.select(*own, COUNT, *since, size, F.expr(self.statistics.key).alias(KEY))

    @property
    def columns(self) -> list[str]:
        """What distinguishes rows."""
        assert self.statistics is not None
        columns = [column.name for column in self.computation.input(self.statistics.input).state.collection.columns]
        return [*columns, HAPPENED] if self.sees_event_times else columns


def with_statistics(
    windows: DataFrame, computation: Computation, statistics: Statistics, *, narrowed: bool = False
) -> DataFrame:
    """Windows with what the input, as consumed, has in each: their own columns, then those of the statistics. Lazy.
    With `narrowed` what else has none of their values of `by` is not looked at."""
    by = [F.col(f"`{name}`") for name in statistics.by]
    among = windows.select(*by).distinct() if by and narrowed else None
    views = Counted(computation, lambda: windows.sparkSession, statistics=statistics, among=among)
    key = [*statistics.by, WINDOW_START, WINDOW_END]
    rows, late = _of_windows(views, statistics, windows)
    found = lateness.recomputed(views, rows)
    if late is not None:
        found = joined(found, late, key, "left").na.fill(0, list(LATE))
    same = reduce(and_, (windows[f"`{name}`"].eqNullSafe(found[f"`{name}`"]) for name in key))
    shown = {name: found[called] for name, called in statistics.called.items()}
    shown[MEAN_BYTES] = shown[BYTES].cast("double") / shown[ROWS].cast("double")
    for name in (FIRST_ARRIVAL, LAST_ARRIVAL):
        shown[name] = F.timestamp_micros(shown[name])
    shown |= {name: F.lit(0).cast("long") if late is None else found[name] for name in LATE}
    own = [windows[f"`{name}`"] for name in windows.columns]
    return windows.join(found, same, "left").select(*own, *(shown[name].alias(name) for name in STATISTICS))


def _of_windows(views: Counted, statistics: Statistics, windows: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """A row for each window of the input, open ones too, in the columns of the recipe; and of each of the `windows`
    for which something came too late how much of that, None where late rows count for ever."""
    name, windowed = statistics.input, statistics.recipe.windowed
    if isinstance(windowed, SlidingPlan) and windowed.bounded_lateness is not None:
        return _of_bands(views, windowed, windows)
    if isinstance(windowed, SessionPlan) and windowed.after is not None:
        return _of_frozen_sessions(views, windowed, windows)
    if isinstance(windowed, SlidingPlan):
        return all_windows(views, windowed), None
    if windowed is not None:
        return all_sessions(views, windowed), None
    rule = statistics.recipe.in_windows
    assert rule is not None  # what is not data-driven is aligned
    if rule.assignment.frozen_after is None:
        return queried(views, {name: in_windows(views, rule, views.rows_of(name))}, statistics.recipe.whole), None
    placed = in_windows(views, rule, views.near(), views.columns)
    rows = queried(views, {name: views.there(placed, AT, START, END)}, statistics.recipe.whole)
    return rows, late_for_each(views, rule, views.near())


def _of_bands(views: Counted, rule: SlidingPlan, windows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The same of sliding windows that take late rows for a while only: a band's windows hold what counts in it."""
    updates = views.near()
    reaching = bands.reaching(views, rule, asked(views, rule, updates), [*views.columns, AT, TIME, DIFF])
    rows = values_of(views, rule, views.there(reaching, AT, BAND))
    late = lost.late_for_each(views, rule, updates, windows)
    total = F.col(ROWS_LATE_FOR_ALL) + F.col(ROWS_LATE_FOR_SOME)
    return windows_of(views, rule, rows), late.withColumn(UPDATES_LATE, total)


def _of_frozen_sessions(views: Counted, rule: SessionPlan, windows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The same of sessions that take late rows for a while only, which a row is late for all of, or for none."""
    judged = late_sessions.judged_updates_of(views, rule, views.near(), [*views.columns, TIME])
    rows = views.there(judged.where(F.col(START).isNotNull()), AT, START, END)
    late = late_sessions.late_for_each(views, rule, judged, windows)
    numbers = {ROWS_LATE_FOR_ALL: F.col(UPDATES_LATE), ROWS_LATE_FOR_SOME: F.lit(0).cast("long")}
    return sessions_known(views, rule, rows), late.withColumns(numbers)
