"""No table at all: a folder of Parquet a day, written again from the day's files. What knows nothing of rows, keeps no
history and no changes, and what any overwriting of a partition must do at least."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corrections.history import History, as_updates, by_day
from benchmarks.feed import Fingerprint


class PlainParquet:
    settings = "zstd; one file a day, written by pyarrow"
    ways = ("the day overwritten",)

    def __init__(self, folder: Path, history: History) -> None:
        self._folder, self._history = folder, history
        folder.mkdir(parents=True)

    def load(self, landing: Path) -> None:
        for number in range(self._history.days):
            self.correct("", number, landing)

    def correct(self, way: str, number: int, landing: Path) -> None:
        rows = pa.concat_tables([pq.read_table(path) for path in self._history.paths(landing, number)])
        written = self._folder / "new"
        pq.write_table(rows, written, compression="zstd")
        written.replace(self._folder / f"{number:04d}.parquet")

    def settle(self, number: int) -> None:
        """Nothing."""

    def by_day(self) -> list[Fingerprint]:
        rows = pa.concat_tables([pq.read_table(path) for path in sorted(self._folder.iterdir())])
        return by_day(*as_updates(rows, self._history.envelope), self._history.days)

    def close(self) -> None:
        pass
