"""Days of flights, some reported late, and their daily figures by carrier: what a model that merges its last days
forgets.

Each day as many flights are reported; one in LATE_SHARE of them happened one to LATE_DAYS days before. `totals` are
right: all flights reported so far, by carrier and the day they happened on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.feed import DAY, START, Ints
from tidemark.model.instant import format_instant

LATE_SHARE, LATE_DAYS = 50, 10
SCHEMA = "id bigint, carrier string, delay bigint, happened_at timestamp"
TOTALS = "carrier, cast(happened_at as date) as day, count(*) as flights, sum(delay) as delay"
FIRST_DAY = START // DAY
"""In days since the epoch."""
LOOKS_BACK = 3
"""Days a model reads again, today among them."""

Totals = dict[tuple[str, int], tuple[int, int]]


@dataclass(frozen=True)
class Days:
    """`days` days of `rows` flights of `carriers` carriers."""

    days: int
    rows: int
    carriers: int = 200
    seed: int = 1

    @cached_property
    def drawn(self) -> list[tuple[Ints, Ints, Ints]]:
        """Of each day the carriers, delays and microseconds of its flights."""
        chance = np.random.default_rng(self.seed)
        found = []
        for day in range(self.days):
            late = np.where(chance.integers(0, LATE_SHARE, self.rows) == 0, chance.integers(1, LATE_DAYS, self.rows), 0)
            happened = START + (day - np.minimum(late, day)) * DAY + chance.integers(0, DAY, self.rows)
            carrier, delay = chance.integers(0, self.carriers, self.rows), chance.integers(-30, 300, self.rows)
            found.append((carrier, delay, happened))
        return found

    def totals(self) -> Totals:
        """Flights and delay by carrier and the day they happened on, as days since the epoch."""
        carrier, delay, happened = (np.concatenate(columns) for columns in zip(*self.drawn, strict=True))
        group = carrier * 100_000 + happened // DAY
        groups, at = np.unique(group, return_inverse=True)
        flights = np.bincount(at)
        sums = np.bincount(at, weights=delay.astype(float)).astype(np.int64)
        rows = zip(groups.tolist(), flights.tolist(), sums.tolist(), strict=True)
        return {(carrier_of(one // 100_000), one % 100_000): (n, total) for one, n, total in rows}

    def path(self, landing: Path, day: int) -> Path:
        return landing / format_instant(START + day * DAY)[:10] / "flights.parquet"

    def land(self, landing: Path) -> None:
        """Write the files of all days."""
        names = pa.array([carrier_of(number) for number in range(self.carriers)])
        for day, (carrier, delay, happened) in enumerate(self.drawn):
            path = self.path(landing, day)
            path.parent.mkdir(parents=True)
            columns = {
                "id": pa.array(np.arange(day * self.rows, (day + 1) * self.rows)),
                "carrier": names.take(pa.array(carrier)),
                "delay": pa.array(delay),
                "happened_at": pa.array(happened, pa.timestamp("us", "UTC")),
            }
            pq.write_table(pa.table(columns), path, compression="zstd")


def carrier_of(number: int) -> str:
    return f"carrier-{number:03d}"
