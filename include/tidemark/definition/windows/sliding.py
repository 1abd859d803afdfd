"""Sliding windows, compiled: which rows are in any, and of which values of these the aggregates are.

count, sum(fare) where miles > 9      _v1 = CASE WHEN miles > 9 THEN fare END; count, sum(_v1)
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.definition.recipe import BAND, BoundedLateness, SlidingPlan
from tidemark.definition.types import decimal_digits
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.definition.windows.rows import AT, happening
from tidemark.definition.windows.valued import needed, valued_of
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Sliding

_MOST_DIGITS = 22
"""Of a decimal, before and behind the point, of which an average is rounded as Spark does it."""


def slid(declared: Checked) -> SlidingPlan:
    """How sliding windows over an input are computed. Raises InvalidUsage for an average of decimals with too many
    digits."""
    windows, name = declared.windows, declared.input
    assert isinstance(windows.kind, Sliding)
    bounded = windows.counts_late_for is not None
    within = "{at} >= 0" if windows.kind.clamp_start_at_zero else ""
    rows = happening(name, windows.on, declared.on, declared.where.sql if declared.where else "", within)
    for one, of, _ in declared.aggregates:
        if of is not None and one.function is Function.AVG:
            _check_digits(of)
    aggregates, valued = valued_of(declared, (AT, BAND) if bounded else (AT,))
    bound = ColumnType.INT if declared.on is ColumnType.INT else ColumnType.TIMESTAMP
    found = SlidingPlan(name, windows.by, windows.on, windows.kind, rows, valued, aggregates, bound)
    return replace(found, bounded_lateness=_for_a_while(declared, valued)) if bounded else found


def slid_without_queries(rule: SlidingPlan, projected: Checked) -> SlidingPlan:
    """The same over projected rows, where these need no query. Raises LeftToSpark where they do."""
    return replace(rule, of_columns=aggregates_of(projected))


def _for_a_while(declared: Checked, valued: str) -> BoundedLateness:
    windows = declared.windows
    assert windows.counts_late_for is not None
    return BoundedLateness(windows.grace, windows.counts_late_for, needed(declared, valued))


def _check_digits(of: RowExpression) -> None:
    digits = decimal_digits(of.type)
    if digits is not None and sum(digits) > _MOST_DIGITS:
        raise InvalidUsage(
            f"aggregates: the average of {of.sql} in sliding windows has more digits than can be exact; "
            "CAST it as decimal(18, 2)"
        )
