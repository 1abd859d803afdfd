"""Windows by Spark SQL alone: all of them, computed whole from the rows of the input.

For each kind one query gives rows their windows (`placement.py`), and one query for all kinds aggregates them
(`aggregates.py`). Nothing is incremental, and nothing is imported of what computes windows in the product; sums are
made exact, and names resolved, as in any derived select.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tests.oracles.sql_windows.aggregates import grouped, happening
from tests.oracles.sql_windows.in_time import counting, repeated
from tests.oracles.sql_windows.late_sessions import judged
from tests.oracles.sql_windows.placement import Rows, in_sessions, placed, slid
from tidemark.definition.recipe import HAPPENED, InputShape
from tidemark.model.collection import Column, ColumnType
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.windows import Windows

UPDATE = "_update"


@dataclass(frozen=True)
class Input:
    """A collection whose updates are the view `updates` of a session: its columns, and HAPPENED, LEARNED, `_diff` and
    UPDATE, a number of its own for each."""

    name: str
    columns: tuple[Column, ...]
    updates: str = "updates"

    def shape(self, windows: Windows) -> InputShape:
        """Its rows as the windows see them."""
        more = (Column(HAPPENED, ColumnType.TIMESTAMP),) if self.on(windows).name == HAPPENED else ()
        return InputShape(self.name, (*self.columns, *more), ())

    def on(self, windows: Windows) -> Column:
        """The column that windows are on."""
        if windows.is_on_event_time(column.name for column in self.columns):
            return Column(HAPPENED, ColumnType.TIMESTAMP)
        return next(column for column in self.columns if column.name == windows.on)


def windows_sql(spark: SparkSession, given: Input, windows: Windows, wide: Collection[str] = ()) -> str:
    """A query that gives all rows of the windows, in the columns of the collection they are; `wide` as `grouped`."""
    shape, on = given.shape(windows), given.on(windows)
    names = [column.name for column in shape.columns]
    rows = rows_in_windows(spark, given, windows, shape, on, names)
    return f"WITH `{given.name}` AS ({rows.sql}) {grouped(windows, shape, on, wide)}"


def rows_in_windows(
    spark: SparkSession, given: Input, windows: Windows, shape: InputShape, on: Column, names: list[str]
) -> Rows:
    """The rows of the input, once for each window they are in."""
    kind = windows.kind
    if windows.counts_late_for is None:
        there = repeated(names, Rows(f"SELECT * FROM `{given.updates}`"))
        rows = Rows(f"WITH `{given.name}` AS ({there.sql}) {happening(windows, shape, on)}")
        if isinstance(kind, Sliding):
            return slid(kind, windows.by, rows)
        return in_sessions(kind, windows.by, rows) if isinstance(kind, Session) else placed(kind, rows)
    seen = f"SELECT * FROM `{given.updates}`"
    updates = Rows(f"WITH `{given.name}` AS ({seen}) {happening(windows, shape, on)}")
    if isinstance(kind, Session):
        return judged(spark, windows, names, updates)
    return counting(windows, names, updates)
