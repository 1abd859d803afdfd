"""Lateness for aligned windows: how many rows came too late, and which windows stay as they are stored."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.kernels.windows import judged
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import TIME
from tidemark.model.window.close import closes_at
from tidemark.model.window.lateness import NOT_LATE, Lateness
from tidemark.model.window.statistics import LATE
from tidemark.model.window.windows import WINDOW_END
from tidemark.spark.derive.queries.in_windows import count_late, rule_of
from tidemark.spark.derive.timeline import in_micros, micros
from tidemark.spark.derive.views import Views


def late(views: Views) -> Lateness:
    """How much of what is new came late for windows that no longer took it; nothing where late rows count for ever."""
    rule = rule_of(views)
    if rule is None or rule.assignment.frozen_after is None:
        return NOT_LATE
    if (here := _late_here(views, rule.input)) is not None:
        return here
    (found,) = count_late(views, rule, views.new(rule.input)).collect()
    return Lateness(*(int(found[name]) for name in LATE))


def _late_here(views: Views, name: str) -> Lateness | None:
    """The same by this process; None where that is not judged without Spark, or changes are too many."""
    windows, given = views.lateness, views.computation.input(name)
    changed = None if windows is None else views.rows_changed_here(name)
    if windows is None or changed is None:
        return None
    since = given.consumed if given.previous is None else None
    found = NOT_LATE
    try:
        for rows in changed:
            new = rows if since is None else rows.filter(pa.array(integers(rows, TIME) >= since))
            found += judged.late(new, windows, given.judging)
    except ArithmeticError:
        return None
    return found


def recomputed(views: Views, rows: DataFrame) -> DataFrame:
    """Of rows of windows those that are computed: without the ones that stay as they are stored."""
    upto = kept_upto(views)
    return rows if upto is None else rows.where(F.expr(micros(rows, WINDOW_END)) > upto)


def computed_here(views: Views, rows: pa.Table) -> pa.Table:
    """The same of rows that are here."""
    upto = kept_upto(views)
    return rows if upto is None else rows.filter(pa.array(in_micros(rows, WINDOW_END) > upto))


def kept_upto(views: Views) -> int | None:
    """Windows that end up to here stay as they are stored; None: no window does."""
    windows = views.computation.definition.windows
    if windows is None or windows.counts_late_for is None:
        return None
    (given,) = views.computation.inputs
    since = given.judging.frozen_at
    return None if since is None else since - closes_at(windows.kind, 0, windows.grace) - windows.counts_late_for
