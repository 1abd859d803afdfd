"""Sliding windows that take late rows for a while only, by Spark: in which bands of starts a row counts
(model/window/bands.py says what these are).

Of an input's updates each goes to the bands that it reaches, and is added up there: what is left are the rows of a
band, of which cells and windows are made as of any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.definition.recipe import BAND, DIFF, LEARNED, BoundedLateness, SlidingPlan
from tidemark.definition.windows.rows import AT
from tidemark.model.window.bands import Bands
from tidemark.spark.derive.timeline import learned, passed
from tidemark.spark.derive.under_names import repeated
from tidemark.spark.derive.views import Views

FROM = "_from"
"""The column of rows that says of which start on windows hold them."""


def bounded_lateness(rule: SlidingPlan) -> BoundedLateness:
    """What it says of late rows, where these count for a while only."""
    assert rule.bounded_lateness is not None
    return rule.bounded_lateness


def bands_of(views: Views, rule: SlidingPlan) -> Bands:
    """The bands of the input's history, as far as that is judged."""
    return bounded_lateness(rule).bands(rule.kind, views.computation.input(rule.input).judging.ends)


def with_learned(views: Views, rule: SlidingPlan, updates: DataFrame) -> DataFrame:
    """Updates of the input, with when they came."""
    return updates.withColumn(LEARNED, learned(views.computation.input(rule.input).judging))


def counting(views: Views, rule: SlidingPlan, placed: DataFrame) -> DataFrame:
    """Of updates at instants those that are not too late for all windows, with FROM."""
    first = F.col(LEARNED) + F.lit(bands_of(views, rule).first(0))
    since = F.greatest(F.col(AT) - F.lit(rule.kind.size), first)  # a null is no greater
    return placed.withColumn(FROM, since).where(F.col(FROM) <= F.col(AT))


def in_bands(views: Views, rule: SlidingPlan, placed: DataFrame) -> DataFrame:
    """The rows of each band that is computed, a row as often as it is there, with BAND; of updates at instants."""
    names = [*bounded_lateness(rule).columns, AT]
    keys = [F.col(f"`{name}`") for name in (*names, BAND)]
    summed = reaching(views, rule, placed, [*names, DIFF]).groupBy(*keys).agg(F.sum(DIFF).alias(DIFF))
    return repeated(summed.where(F.col(DIFF) != 0), rule.input, [*rule.by, AT], DIFF)


def reaching(views: Views, rule: SlidingPlan, placed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Updates at instants, of each these columns and BAND, once for each band that is computed and that it reaches."""
    bands, judging = bands_of(views, rule), views.computation.input(rule.input).judging
    first, last = passed(F.col(FROM), bands.bounds), passed(F.col(AT) + F.lit(1), bands.bounds)
    reached = F.sequence(F.greatest(first, F.lit(bands.frozen_count(judging.frozen_at)).cast("long")), last)
    rows = counting(views, rule, placed).where(last >= bands.frozen_count(judging.frozen_at))
    return rows.select(*(F.col(f"`{name}`") for name in columns), F.explode(reached).alias(BAND))
