"""A collection of windows below a root, with rows and their corrections, for what reads it: nothing computes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.pure.arrow.samples import of_updates
from tests.support.graph import DAY, START, Graph
from tidemark.arrow.parts.writer import PartWriter
from tidemark.model.batch import DIGEST_MODULUS, UnsealedBatch
from tidemark.model.collection import Collection, Column, ColumnType, ValueType
from tidemark.model.derived import Definition, Derived
from tidemark.model.interval import Interval
from tidemark.model.update import Row, Update
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

HOUR = DAY // 24
BY: tuple[tuple[str, ValueType], ...] = (("origin", ColumnType.STRING),)
VALUE: tuple[tuple[str, ValueType], ...] = (("flights", ColumnType.INT), ("delay", ColumnType.FLOAT))


class Windowed(Graph):
    """The collection `hours`: tumbling windows of an hour over `rows`, by some columns."""

    name = "hours"

    def __init__(
        self,
        root: Path,
        by: Sequence[tuple[str, ValueType]] = BY,
        value: Sequence[tuple[str, ValueType]] = VALUE,
        on: ColumnType = ColumnType.TIMESTAMP,
    ) -> None:
        super().__init__(root)
        key = [Column(name, of) for name, of in (*by, (WINDOW_START, on), (WINDOW_END, on))]
        aggregates = tuple(Aggregate(name, Function.MAX, "x") for name, _ in value)
        windows = Windows(tuple(name for name, _ in by), "at", Tumbling(HOUR), aggregates)
        origin = Derived(("rows",), Definition(windows=windows))
        self.collection = Collection(self.name, tuple(key), tuple(Column(*one) for one in value), origin)
        self.days = 0
        self.declare(self.collection)

    def tell(self, *rows: Update) -> None:
        """One more day of the input, and what its windows are learned to be then; sealed, and drained as far as it is
        due."""
        self.days += 1
        self.land("rows", self.days)
        self.correct(self.name, batch=self._batch(rows) if rows else None)

    def window(self, key: Row, hour: int, value: Row, diff: int = 1) -> Update:
        """The row of a window, emitted when it closes or, if it is closed, on the day that comes next."""
        start = START + hour * HOUR
        time = max(start + HOUR - 1, START + (self.days + 1) * DAY - 1)
        return Update((*key, start, start + HOUR), value, time, time, diff)

    def windows(self, keys: Iterable[Row], hours: Iterable[int], value: Row = (3, 1.5)) -> list[Update]:
        """A window of each key in each hour."""
        hours = list(hours)
        return [self.window(key, hour, value) for key in keys for hour in hours]

    def _batch(self, rows: Sequence[Update]) -> UnsealedBatch:
        table: Any = of_updates(self.collection, rows)
        with PartWriter(
            self.job(self.name).store, "data", table.schema, key_width=len(self.collection.key), facts=False
        ) as writer:
            writer.write(table)
            parts = writer.close()
        times = [row.time for row in rows]
        bounds = (min(times), max(times), min(times), max(times))
        digest = sum(part.digest for part in parts) % DIGEST_MODULUS
        size = sum(part.file.bytes for part in parts)
        interval = Interval(START, START + self.days * DAY)
        return UnsealedBatch(f"{self.days:032}", interval, parts, len(parts), len(rows), size, digest, *bounds)
