"""Days of files, what the corrected ones say, and what is right after each day, calculated separately.

A corrected file has another amount in CHANGED of its rows, lacks its last row, and has a new one at its end: what a
source does that mends a bug. A row is known by its id and the microsecond it happened at, which no two rows share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.feed import DAY, START, Feed, Fingerprint, Ints, Rows, drawn_day, fingerprint_of
from benchmarks.workload import CurrentRows, plus
from tidemark.model.collection import Envelope
from tidemark.model.instant import format_instant

CHANGED = 10


@dataclass(frozen=True)
class History:
    """`days` days of `rows` rows, each in `files` files."""

    envelope: Envelope
    days: int
    rows: int
    files: int = 4
    seed: int = 1

    @cached_property
    def feed(self) -> Feed:
        return Feed(self.envelope, self.days, self.rows, self.rows * 5, self.seed)

    @property
    def parameters(self) -> dict[str, Any]:
        """What figures say of it."""
        shape = {"days": self.days, "rows_a_day": self.rows, "files_a_day": self.files}
        return {"envelope": str(self.envelope), **shape, "seed": self.seed}

    def day(self, number: int, corrected: Iterable[int] = ()) -> list[Rows]:
        """The rows of each of a day's files; of the days `corrected` the file `corrected_file` says what it says in
        the end."""
        rows = drawn_day(self.feed, number)
        files = [rows.at(chosen) for chosen in np.array_split(np.arange(self.rows), self.files)]
        if number in set(corrected):
            file = self.corrected_file(number)
            files[file] = self._mended(number, files[file])
        return files

    def corrected_file(self, number: int) -> int:
        return number % self.files

    def _mended(self, number: int, rows: Rows) -> Rows:
        chance = np.random.default_rng([self.seed, number, 2])
        amount = rows.amount.copy()
        amount[chance.choice(len(amount) - 1, min(CHANGED, len(amount) - 1), replace=False)] += 1
        new = drawn_day(replace(self.feed, rows=1, seed=self.seed + 1_000), number)
        return Rows.concat([replace(rows, amount=amount).at(np.arange(len(amount) - 1)), new])

    def path(self, landing: Path, number: int, file: int) -> Path:
        day = format_instant(self.feed.interval(number).lower)[:10]
        return landing / day / f"{file:04d}.parquet"

    def paths(self, landing: Path, number: int) -> list[Path]:
        return [self.path(landing, number, file) for file in range(self.files)]

    def land(self, landing: Path, number: int) -> int:
        """Write a day's files; their bytes."""
        return sum(self._write(landing, number, file, rows) for file, rows in enumerate(self.day(number)))

    def correct(self, landing: Path, number: int) -> int:
        """Write the corrected file of a day in place of the one that was there; its bytes."""
        file = self.corrected_file(number)
        return self._write(landing, number, file, self.day(number, [number])[file])

    def _write(self, landing: Path, number: int, file: int, rows: Rows, compression: str = "zstd") -> int:
        path = self.path(landing, number, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.table(self.envelope), path, compression=compression)
        return path.stat().st_size

    def rewrite(self, landing: Path, number: int) -> None:
        """Write a day's files again, other bytes with the same rows."""
        for file, rows in enumerate(self.day(number)):
            self._write(landing, number, file, rows, "snappy")

    def expected(self, corrected: Sequence[int] = ()) -> list[Fingerprint]:
        """The fingerprint of the rows as of the end of each day, once the files of some days are corrected."""
        current = CurrentRows(self.feed)
        return [current.after(Rows.concat(self.day(number, corrected))) for number in range(self.days)]


def by_day(happened: Ints, rows: pa.Table, days: int) -> list[Fingerprint]:
    """The fingerprint as of the end of each day, by updates: rows with columns of key and value and `multiplicity`,
    and the microsecond each happened at."""
    number = (happened - START) // DAY
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(days + 1))
    ordered = rows.take(pa.array(order))
    total: Fingerprint = {}
    found = []
    for start, end in pairwise(ends.tolist()):
        total = plus(total, fingerprint_of(ordered.slice(start, end - start), "multiplicity"))
        found.append(total)
    return found


def as_updates(rows: pa.Table, envelope: Envelope) -> tuple[Ints, pa.Table]:
    """What `by_day` takes, of a table of all rows that were ever reported: of an upsert history each row holds until
    the next of its key."""
    happened = rows["happened_at"].cast(pa.int64()).to_numpy()
    if envelope is not Envelope.UPSERT:
        return happened, _updates(rows, np.ones(rows.num_rows, np.int64))
    order = np.lexsort((happened, rows["id"].to_numpy()))
    rows, happened = rows.take(pa.array(order)), happened[order]
    ids, there = rows["id"].to_numpy(), ~rows["deleted"].to_numpy()
    replaced = np.append(ids[1:] == ids[:-1], False)
    comes, goes = np.flatnonzero(there), np.flatnonzero(there & replaced)
    diffs = np.repeat(np.array([1, -1]), [len(comes), len(goes)])
    return np.append(happened[comes], happened[goes + 1]), _updates(rows.take(pa.array(np.append(comes, goes))), diffs)


def _updates(rows: pa.Table, diffs: Any) -> pa.Table:
    return rows.select(["id", "code", "amount", "ratio", "label"]).append_column("multiplicity", pa.array(diffs))
