"""How many rows a refresh reads, counted before it does, as it counts them itself."""

from __future__ import annotations

from typing import NoReturn

from tidemark.definition.computation import Computation
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode
from tidemark.spark.derive.place import kind_of
from tidemark.spark.derive.views import Views


def rows_of_refresh(computation: Computation) -> int | None:
    """Count the rows of the row groups that a refresh by key opens, without Spark.

    Returns:
        The number; None where only the run finds out: of what has no kernel for groups, or too many changes.
    """
    if computation.mode is not Mode.BY_KEY:
        return None
    with Views(computation, _no_session) as views:
        kind = None if views.lateness else kind_of(views)
        try:
            return views.rows_read if kind is not None and kind.opens() else None
        except (InvalidUsage, ArithmeticError):
            return None


def _no_session() -> NoReturn:
    raise InvalidUsage("what a refresh reads is counted without Spark")
