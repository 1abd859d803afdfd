"""Windows that lie where rows are, by Spark: all of them, or those that changes reach."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemark.definition.recipe import InSessions, Slid
from tidemark.spark.derive.columns import check_fits, our_columns
from tidemark.spark.derive.difference import desired_at, differing, held_at
from tidemark.spark.derive.sessions import all_sessions, touched_sessions
from tidemark.spark.derive.sliding import all_windows, touched_windows
from tidemark.spark.derive.views import Views


def whole(views: Views, rule: Slid | InSessions) -> DataFrame:
    """All windows."""
    frame = all_windows(views, rule) if isinstance(rule, Slid) else all_sessions(views, rule)
    check_fits(views.computation.collection, our_columns(frame.schema))
    return frame


def learned(views: Views, rule: Slid | InSessions) -> DataFrame | None:
    """By what the windows that changes reach differ from those held; None where nothing changed."""
    found = touched_windows(views, rule) if isinstance(rule, Slid) else touched_sessions(views, rule)
    if found is None:
        return None
    desired, own = found
    computation = views.computation
    check_fits(computation.collection, our_columns(desired.schema))
    return differing(computation, [desired_at(desired, computation), held_at(own, computation)])
