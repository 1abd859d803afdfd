"""Refuses definitions in which Spark takes a text for a timestamp, where nothing sees to it that the text has a date:
of one without, it makes a timestamp of the day on which it runs (definition/dated.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame

from tidemark.definition.dated import NO_DATE, has_no_date
from tidemark.errors import InvalidUsage, plain_line

_TIMESTAMP = re.compile(r"\btimestamp\b(?!_ntz)")
_TEXT = re.compile(r"\b(string|variant|varchar|char)\b")
_READERS = frozenset({"CsvToStructs", "JsonToStructs", "XmlToStructs"})
"""Expressions that read texts by an option, `timestampFormat`, and without it as a cast does."""


def check_dated(name: str, frame: DataFrame) -> None:
    """Raise InvalidUsage for a definition that takes a text for a timestamp, whatever the text is."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    if "timestamp" not in plan.toJSON():
        return
    for expression in _expressions(plan):
        if _is_undated(expression):
            text = plain_line(expression.sql(), 120)
            raise InvalidUsage(
                f"the definition of {name} takes a text for a timestamp in {text}: of a text without a date, as 10:30, "
                "Spark makes one of the day on which it runs; write CAST(CAST(… AS string) AS timestamp) around the "
                "text, which raises for such a row, or to_timestamp(…, 'yyyy-MM-dd HH:mm:ss')"
            )


def _is_undated(expression: Any) -> bool:
    kind = str(expression.getClass().getSimpleName())
    if kind in _READERS:
        read = _TIMESTAMP.search(expression.dataType().simpleString())
        return read is not None and "timestampformat" not in str(expression.options().toString()).lower()
    if kind == "VariantGet":
        return _TIMESTAMP.search(expression.dataType().simpleString()) is not None
    if kind != "Cast" or not _TIMESTAMP.search(expression.dataType().simpleString()):
        return False
    given = expression.child()
    of = str(given.dataType().simpleString())
    if not _TEXT.search(of) or of == expression.dataType().simpleString():
        return False
    match str(given.getClass().getSimpleName()):
        case "Literal":
            return given.value() is not None and has_no_date(str(given.value().toString()))
        case "RegExpReplace":
            return str(given.regexp().toString()) != NO_DATE
    return True


def _expressions(plan: Any) -> Iterator[Any]:
    """All expressions of a plan, and of the subqueries in them, as the casts that they are."""
    jvm: Any = SparkContext._jvm
    nodes = [jvm.org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions.apply(plan)]
    while nodes:
        node = nodes.pop()
        nodes += _items(node.children())
        stack = _items(node.expressions())
        while stack:
            expression = stack.pop()
            yield expression
            stack += _items(expression.children())
            if str(expression.getClass().getSimpleName()) in (
                "Exists",
                "LateralSubquery",
                "ListQuery",
                "ScalarSubquery",
            ):
                yield from _expressions(expression.plan())


def _items(some: Any) -> list[Any]:
    return [some.apply(at) for at in range(some.size())]
