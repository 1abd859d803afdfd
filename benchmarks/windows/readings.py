"""Readings of sensors: what windows are built over, and what of it changes.

A reading has a key (`sensor`, `id`), both int64, and a value: `taken_at` (a timestamp) and `amount` (int64). A sensor
reads about once in STEP, at a random microsecond, so that hardly two of its readings are at one instant. All are so far
before the first day on which any is reported that all their windows have closed by then. After the first day a
hundredth of the readings change, by an upsert each: all of some sensors that are neighbours, then every hundredth
reading.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.feed import DAY, START, Ints, write_day
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.interval import Interval

NAME = "readings"
STEP = 60_000_000
"""Microseconds between two readings of a sensor, on average."""
LONG_AGO = 100 * DAY
"""Before the first day: longer than any window."""
CHANGES = ("of neighbours", "scattered")
"""What changes on the days after the first."""


@dataclass(frozen=True)
class Rows:
    """Columns of readings, in order of their key."""

    sensor: Ints
    id: Ints
    taken_at: Ints
    amount: Ints

    def at(self, chosen: Ints | npt.NDArray[np.bool_] | slice) -> Rows:
        return Rows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def table(self, day: int) -> pa.Table:
        """As the columns of a change file."""
        reported_at = np.full(len(self.id), START + day * DAY + DAY // 2)
        instants = {"taken_at": self.taken_at, "reported_at": reported_at}
        of_instants = {name: pa.array(at, pa.timestamp("us", "UTC")) for name, at in instants.items()}
        return pa.table({"sensor": self.sensor, "id": self.id, "amount": self.amount, **of_instants})


@dataclass(frozen=True)
class Readings:
    """`sensors` sensors of `each` readings."""

    sensors: int
    each: int
    seed: int = 1

    @property
    def total(self) -> int:
        return self.sensors * self.each

    @property
    def collection(self) -> Collection:
        source = Source("{{ landing }}/{{ ds }}/*.parquet", Format.PARQUET, Envelope.UPSERT)
        key = (Column("sensor", ColumnType.INT), Column("id", ColumnType.INT))
        value = (Column("taken_at", ColumnType.TIMESTAMP), Column("amount", ColumnType.INT))
        landed = Landed(source, START, time="reported_at", inputs=(Column("reported_at", ColumnType.TIMESTAMP),))
        return Collection(NAME, key, value, landed)

    def interval(self, day: int) -> Interval:
        return Interval(START + day * DAY, START + (day + 1) * DAY)

    @cached_property
    def first(self) -> Rows:
        """What is reported on the first day."""
        chance, span = np.random.default_rng(self.seed), self.each * STEP
        sensor = np.repeat(np.arange(self.sensors), self.each)
        taken_at = np.sort(chance.integers(0, span, (self.sensors, self.each)), axis=1).ravel()
        begins = START - span - LONG_AGO
        return Rows(
            sensor,
            np.tile(np.arange(self.each), self.sensors),
            begins + taken_at,
            chance.integers(0, 1_000_000, self.total),
        )

    def changes(self, day: int) -> npt.NDArray[np.bool_]:
        """Which readings change on a day after the first."""
        rows, middle, hundredth = self.first, self.sensors // 2, max(1, self.sensors // 100)
        neighbours: npt.NDArray[np.bool_] = (rows.sensor >= middle) & (rows.sensor < middle + hundredth)
        scattered: npt.NDArray[np.bool_] = (rows.sensor * self.each + rows.id) % 100 == 7
        return neighbours if day == 1 else scattered

    def changed(self, day: int) -> Rows:
        """What becomes of the readings that change on a day."""
        return self.known(day).at(self.changes(day))

    def known(self, day: int) -> Rows:
        """All readings as they are after a day: those that changed are worth more, and a minute and a bit later."""
        rows = self.first
        for later in range(1, day + 1):
            here = self.changes(later)
            rows = replace(rows, amount=rows.amount + here, taken_at=rows.taken_at + 61_000_003 * here)
        return rows

    def land(self, landing: Path, day: int) -> int:
        """Write a day's files; their bytes."""
        rows = self.changed(day) if day else self.first
        return write_day(landing, self.interval(day), rows.table(day))
