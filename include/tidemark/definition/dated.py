"""Texts that are taken for timestamps have a date: of a time of day alone, as '10:30', Spark makes one of the day on
which it runs, so an answer would depend on that.

A cast of what is known to be a text is written so that a text without a date cannot be cast: a word is put before it.
`CAST` then raises for the row, and `try_cast` gives null, whenever it runs. What is not known to be a text here, and
is one to Spark, is refused when Spark has analysed the definition (spark/derive/dated.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from tidemark.definition.functions import name_of
from tidemark.definition.recipe import InputShape
from tidemark.definition.relations import types_of
from tidemark.definition.types import type_of

NO_DATE = "(?i)^[^0-9a-z+-]*(t[0-9]|[0-9]+:|(now|today|tomorrow|yesterday)([^0-9a-z]|$))"
"""How a text begins that Spark gives the day, or the time, at which it runs: T10:30, 10:30, now, today, tomorrow,
yesterday. A date begins with a year."""
_SAID = "no date: $0"
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ltz", "timestampltz"})
_TIMES = frozenset({*_TIMESTAMPS, "date", "timestamp_ntz", "timestampntz"})
_TO_TIMESTAMP = frozenset({"timestamp", "to_timestamp", "to_timestamp_ltz", "try_to_timestamp"})
_TO_TIME = frozenset({*_TO_TIMESTAMP, "date", "to_date", "to_timestamp_ntz", "try_to_date"})
_TEXTS = frozenset({"format_string", "lpad", "printf", "repeat", "replace", "rpad", "split_part", "space"})
"""Functions that give texts, besides those whose type is known."""


def has_no_date(text: str) -> bool:
    """Whether Spark gives a text the day, or the time, at which it runs."""
    return re.match(NO_DATE, text) is not None


def dated(query: exp.Query, shapes: Mapping[str, InputShape]) -> exp.Query:
    """The resolved query, in which what is surely a text is only cast to a timestamp if it has a date; and to a date,
    if it is a constant, for of these alone Spark replaces words by the time at which it runs."""
    for select in query.find_all(exp.Select):
        casts = [one for one in select.find_all(exp.Cast, exp.Func) if one.parent_select is select and _target(one)]
        types = types_of(select, shapes) if casts else {}
        for one in casts:
            given = one.this if isinstance(one, exp.Cast) else one.expressions[0]
            if isinstance(given.unnest(), exp.Literal):
                continue  # seen already (definition/clock.py)
            constant = given.find(exp.Column) is None
            if _is_text(given, types) and (constant or _target(one) == "timestamp"):
                given.replace(_guarded(given))
    return query


def _target(node: exp.Expr) -> str:
    """What a node makes of its argument: a timestamp, another time, or neither (empty)."""
    if isinstance(node, exp.Cast):
        of = node.to.sql(dialect="spark").lower()
        return "timestamp" if of in _TIMESTAMPS else "time" if of in _TIMES else ""
    name = name_of(node)
    if name in _TO_TIME and len(node.expressions) == 1:
        return "timestamp" if name in _TO_TIMESTAMP else "time"
    return ""


def _is_text(node: exp.Expr, types: Mapping[tuple[str, str], str]) -> bool:
    of = type_of(node, types)
    if of:
        return of == "string" or of.startswith(("varchar", "char"))
    if name_of(node) == "concat":  # of arrays it is one, and of bytes
        return any(_is_text(one, types) for one in node.expressions)
    return name_of(node) in _TEXTS


def _guarded(text: exp.Expr) -> exp.Expr:
    pattern, said = exp.Literal.string(NO_DATE), exp.Literal.string(_SAID)
    return exp.Anonymous(this="regexp_replace", expressions=[text.copy(), pattern, said])
