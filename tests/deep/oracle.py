"""What two small collections must answer, from the rows that were landed and nothing else.

It shares no code with the library, and is a page of arithmetic on purpose: an oracle as clever as what it judges would
prove little.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

APPEND = """\
name: events
key: [id]
value: [amount]
columns: {id: int, amount: int, at: timestamp}
start: 2024-01-01
live_batches: 3
time: {column: at}
source: {path: "{{ landing }}/events/{{ ds }}/*.csv", format: csv, envelope: append}
"""
UPSERT = """\
name: people
key: [id]
value: [amount]
columns: {id: int, amount: int, gone: bool, at: timestamp}
start: 2024-01-01
live_batches: 3
time: {column: at}
source:
  path: "{{ landing }}/people/{{ ds }}/*.csv"
  format: csv
  envelope: upsert
  delete_when: "gone = TRUE"
"""
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass
class Landed:
    """A collection's rows so far: (id, amount, gone, time in µs), no two of one time."""

    text: str
    chance: random.Random
    days: int = 0
    rows: list[tuple[int, int, bool, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.text.split()[1]

    @property
    def upserted(self) -> bool:
        return "upsert" in self.text

    def land(self, landing: Path, rows: int = 200, keys: int = 60) -> str:
        """The files of one more day; the day's date."""
        day = FIRST_DAY + timedelta(days=self.days)
        seconds = sorted(self.chance.sample(range(86_400), rows))
        new = [
            (
                self.chance.randrange(keys),
                self.chance.randrange(-3, 4),
                self.upserted and self.chance.random() < 0.15,
                micros(day + timedelta(seconds=second)),
            )
            for second in seconds
        ]
        folder = landing / self.name / f"{day:%Y-%m-%d}"
        folder.mkdir(parents=True)
        shuffled = self.chance.sample(new, len(new))
        for number, part in enumerate((shuffled[::2], shuffled[1::2])):
            with (folder / f"{number}.csv").open("w", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(["id", "amount", *(["gone"] if self.upserted else []), "at"])
                for key, amount, gone, time in part:
                    at = (_EPOCH + timedelta(microseconds=time)).isoformat()
                    writer.writerow([key, amount, *([str(gone).lower()] if self.upserted else []), at])
        self.rows += new
        self.days += 1
        return f"{day:%Y-%m-%d}"

    def as_of(self, time: int) -> Counter[tuple[int, int]]:
        """The collection as it was known at a time: how often each (id, amount) is in it."""
        seen = [row for row in self.rows if row[3] <= time]
        if not self.upserted:
            return Counter((key, amount) for key, amount, _, _ in seen)
        last = {key: (amount, gone) for key, amount, gone, _ in seen}
        return Counter((key, amount) for key, (amount, gone) in last.items() if not gone)

    def changes(self) -> Counter[tuple[int, int, int]]:
        """Every change there ever was: (id, amount, time) with its multiplicity."""
        if not self.upserted:
            return Counter((key, amount, time) for key, amount, _, time in self.rows)
        found: Counter[tuple[int, int, int]] = Counter()
        now: dict[int, int | None] = {}
        for key, amount, gone, time in self.rows:
            before, after = now.get(key), None if gone else amount
            if before != after:
                for value, diff in ((before, -1), (after, 1)):
                    if value is not None:
                        found[key, value, time] += diff
            now[key] = after
        return found


def counted(table: Any, *columns: str, count: str) -> Counter[tuple[Any, ...]]:
    """A table's rows as the oracle counts them."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        found[tuple(row[name] for name in columns)] += row[count]
    return found
