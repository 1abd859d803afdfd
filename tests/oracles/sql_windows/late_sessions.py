"""Sessions that take late rows for a while only: which row counts in which session follows from all that came before,
in order. So the law says it on the driver (model/window/frozen_sessions.py), and SQL aggregates these rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

from pyspark.sql import SparkSession

from tests.oracles.sql_windows.aggregates import AT, END, START
from tests.oracles.sql_windows.in_time import DIFF, LEARNED, repeated
from tests.oracles.sql_windows.placement import Rows
from tidemark.model.window.contents import Rule, judged_sessions
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import Windows

_numbers = count()
_BEFORE = -(2**62)
"""When rows came of which it is not known when: nothing was complete."""


def judged(spark: SparkSession, windows: Windows, columns: Sequence[str], updates: Rows) -> Rows:
    """The rows that count, with the session of each."""
    kind = windows.kind
    assert isinstance(kind, Session)
    same = ", ".join(f"`{name}`" for name in columns)  # rows are distinguished by all of their columns
    numbered = f"SELECT *, dense_rank() OVER (ORDER BY {same}) AS _value FROM ({updates.sql})"
    by_key: dict[Any, list[Happened]] = defaultdict(list)
    for row in spark.sql(numbered).collect():
        key = tuple(row[name] for name in windows.by)
        learned = _BEFORE if row[LEARNED] is None else row[LEARNED]
        by_key[key].append(Happened(key, row["_value"], row[AT], learned, row[DIFF]))
    counted = [
        (row.value, row.at, *window, row.diff)
        for rows in by_key.values()
        for window, within in judged_sessions(Rule.of(windows), kind, rows).sessions.items()
        for row in within
    ]
    view = f"_sessions_{next(_numbers)}"
    schema = f"_value int, {AT} long, {START} long, {END} long, {DIFF} long"
    spark.createDataFrame(counted, schema).createOrReplaceTempView(view)
    shown = ", ".join([*(f"v.`{name}`" for name in columns), *(f"s.{name}" for name in (AT, START, END, DIFF))])
    values = f"SELECT DISTINCT {same}, _value FROM ({numbered})"
    rows = Rows(f"SELECT {shown} FROM `{view}` s JOIN ({values}) v USING (_value)")
    return repeated([*columns, AT, START, END], rows)
