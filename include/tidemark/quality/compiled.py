"""Judges the built-in rules over evidence in plain Python, as Great Expectations judges them over a frame of it.

Great Expectations costs a second to import, a gate's rules take less than a millisecond here. Evidence and rules whose
verdict this module does not know for certain have none, and Great Expectations must be asked: expectations and
arguments that are not in the table below, figures that are neither numbers nor texts. A test compares each field of
both judges' verdicts over random evidence; the audit asks Great Expectations again about each day's evidence.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan, nan
from typing import Any

from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.suites import Rule
from tidemark.quality.verdict import Verdict

Arguments = Mapping[str, Any]
Holds = Callable[..., bool]
"""Whether an expectation holds for one row, by the figures that it is about. None and NaN are nulls."""

MOST_VALUES = 20
"""Failing values that Great Expectations puts into a result."""
INT64 = range(-(2**63), 2**63)
"""Integers that a frame has as they are."""


def judge(rules: Sequence[Rule], evidence: Evidence) -> list[Verdict | None]:
    """Judge each rule over all rows of the evidence.

    Returns:
        The verdicts in the order of the rules; None where only Great Expectations knows.
    """
    return [_verdict(rule, evidence.rows) for rule in rules]


def _verdict(rule: Rule, rows: Sequence[Row]) -> Verdict | None:
    compiled = _EXPECTATIONS.get(rule.expectation)
    holds = compiled(rule.arguments) if compiled else None
    columns = [_column([row[name] for row in rows]) for name in rule.figures]
    with_texts = {any(isinstance(value, str) for value in column or ()) for column in columns}
    # A frame compares numbers with texts in ways of its own.
    if holds is None or None in columns or len(with_texts) > 1 or (True in with_texts and compiled is _between):
        return None
    figures = list(zip(*(column for column in columns if column is not None), strict=True))
    positions = tuple(at for at, values in enumerate(figures) if not holds(*values))
    values = tuple(figures[at] if len(columns) > 1 else figures[at][0] for at in positions[:MOST_VALUES])
    return Verdict(not positions, len(positions), positions, values, None, None, judged=len(rows))


def _column(values: list[Any]) -> list[Any] | None:
    """A figure of all rows as a frame has it: all integers, all floats or all texts, with nulls; None for others."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        return values
    if not kinds <= {int, float} or any(type(value) is int and value not in INT64 for value in values):
        return None
    # One null or one float makes floats of all integers.
    return (
        values
        if kinds == {int} and None not in values
        else [nan if value is None else float(value) for value in values]
    )


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _compare(compares: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Compare as a frame does: beside a float, an integer is one."""
    return compares(float(left), float(right)) if float in (type(left), type(right)) else compares(left, right)


def _between(arguments: Arguments) -> Holds | None:
    bounds = {name: value for name, value in arguments.items() if name != "column"}
    numbers = all(type(value) in (int, float) and not _is_null(value) for value in bounds.values())
    if not bounds or not numbers or not bounds.keys() <= {"min_value", "max_value"}:
        return None
    low, high = bounds.get("min_value", -inf), bounds.get("max_value", inf)
    if low > high:
        return None

    def holds(value: Any) -> bool:
        return _is_null(value) or (_compare(operator.ge, value, low) and _compare(operator.le, value, high))

    return holds


def _null(arguments: Arguments) -> Holds | None:
    return _is_null if arguments.keys() == {"column"} else None


def _pair(compares: Callable[[Any, Any], bool], arguments: Arguments, *more: str) -> Holds | None:
    ignored = arguments.get("ignore_row_if")
    if arguments.keys() != {"column_A", "column_B", "ignore_row_if", *more}:
        return None
    if ignored not in ("neither", "either_value_is_missing"):
        return None

    def holds(left: Any, right: Any) -> bool:
        if _is_null(left) or _is_null(right):
            return bool(ignored != "neither")
        return _compare(compares, left, right)

    return holds


def _equal(arguments: Arguments) -> Holds | None:
    return _pair(operator.eq, arguments)


def _at_least(arguments: Arguments) -> Holds | None:
    return _pair(operator.ge, arguments, "or_equal") if arguments.get("or_equal") is True else None


_EXPECTATIONS: dict[str, Callable[[Arguments], Holds | None]] = {
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_null": _null,
    "expect_column_pair_values_to_be_equal": _equal,
    "expect_column_pair_values_a_to_be_greater_than_b": _at_least,
}
"""What each expectation means; None of arguments that only Great Expectations knows."""
