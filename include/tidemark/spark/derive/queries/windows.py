"""Data-driven windows by Spark, sliding ones and sessions: all of them, or those that changes reach."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemark.definition.recipe import SessionPlan, SlidingPlan
from tidemark.model.window.lateness import NOT_LATE, Lateness
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.here.diff import Updates, compared
from tidemark.spark.derive.queries import late_sessions, lost
from tidemark.spark.derive.queries.lateness import computed_here, recomputed
from tidemark.spark.derive.queries.sessions import all_sessions, sessions_of
from tidemark.spark.derive.queries.sliding import all_windows, touched_windows, windows_near
from tidemark.spark.derive.queries.touched_sessions import touched_sessions
from tidemark.spark.derive.touched import Touched
from tidemark.spark.derive.views import Views


def whole(views: Views, rule: SlidingPlan | SessionPlan) -> DataFrame:
    """All windows."""
    if isinstance(rule, SlidingPlan):
        frame = all_windows(views, rule)
    else:
        frame = (all_sessions if rule.after is None else late_sessions.all_sessions)(views, rule)
    check_fits(views.computation.collection, our_columns(frame.schema))
    return frame


def can_be_restricted(rule: SlidingPlan | SessionPlan) -> bool:
    """Whether some windows are computed from less than all of the input."""
    return isinstance(rule, SlidingPlan) or bool(rule.by)


def some(views: Views, rule: SlidingPlan | SessionPlan, keys: Touched, count: int) -> DataFrame:
    """Windows, among which are all that have one of some keys, so many as `count`: k0, k1, … are the columns of `by`,
    and where the window starts."""
    if isinstance(rule, SlidingPlan):
        frame = windows_near(views, rule, keys, count)
    else:
        frame = (sessions_of if rule.after is None else late_sessions.sessions_of)(views, rule, keys)
    check_fits(views.computation.collection, our_columns(frame.schema))
    return frame


def late(views: Views, rule: SlidingPlan | SessionPlan) -> Lateness:
    """How much of what is new came late for windows that no longer took it; nothing where late rows count for ever."""
    if isinstance(rule, SessionPlan):
        return late_sessions.late(views)
    return lost.late(views, rule) if rule.bounded_lateness is not None else NOT_LATE


def learned(views: Views, rule: SlidingPlan | SessionPlan) -> Updates | None:
    """By what the windows that changes reach differ from those stored; None where nothing changed."""
    if isinstance(rule, SlidingPlan):
        found = touched_windows(views, rule)
    else:
        found = (touched_sessions if rule.after is None else late_sessions.touched_sessions)(views, rule)
    if found is None:
        return None
    here = None if found.here is None else computed_here(views, found.here)
    return compared(
        views, recomputed(views, found.desired), rule.by, here, lambda: recomputed(views, found.own_frame())
    )
