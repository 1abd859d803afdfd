"""delta-rs in this process: all rows that were reported, a partition a day; a corrected file by MERGE, or its day
written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corrections.history import History, as_updates, by_day
from benchmarks.feed import Fingerprint
from benchmarks.peers.engines import missing

DIFFERS = " or ".join(f"t.{name} != s.{name}" for name in ("amount", "ratio", "label", "reported_at"))


class DeltaRs:
    settings = "zstd, a partition a day; MERGE by id and happened_at within day and file, rows that are gone deleted"
    ways = ("MERGE", "the day overwritten")

    def __init__(self, folder: Path, history: History) -> None:
        missing("delta")  # makes it importable
        from deltalake import WriterProperties  # type: ignore[import-not-found,unused-ignore]

        self._path, self._history = str(folder), history
        self._writer = WriterProperties(compression="ZSTD")

    def load(self, landing: Path) -> None:
        days = (self._day(number, landing) for number in range(self._history.days))
        self._write(pa.concat_tables(days), "error")

    def correct(self, way: str, number: int, landing: Path) -> None:
        if way != "MERGE":
            self._write(self._day(number, landing), "overwrite", f"day = {number}")
            return
        file = self._history.corrected_file(number)
        rows = self._file(number, file, landing)
        columns = {name: f"s.{name}" for name in rows.column_names}
        merge = self._table().merge(
            rows,
            f"t.day = {number} and t.file = {file} and t.id = s.id and t.happened_at = s.happened_at",
            source_alias="s",
            target_alias="t",
            writer_properties=self._writer,
        )
        merge = merge.when_matched_update(columns, predicate=DIFFERS).when_not_matched_insert(columns)
        merge.when_not_matched_by_source_delete(f"t.day = {number} and t.file = {file}").execute()

    def settle(self, number: int) -> None:
        """Nothing: `optimize` is left to its owner's schedule."""

    def by_day(self) -> list[Fingerprint]:
        rows = self._table().to_pyarrow_table()
        return by_day(*as_updates(rows, self._history.envelope), self._history.days)

    def close(self) -> None:
        pass

    def _table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self._path)

    def _write(self, rows: pa.Table, mode: str, predicate: str | None = None) -> None:
        from deltalake import write_deltalake

        write_deltalake(
            self._path,
            rows,
            mode=mode,
            partition_by=["day"],
            predicate=predicate,
            writer_properties=self._writer,
        )

    def _day(self, number: int, landing: Path) -> pa.Table:
        return pa.concat_tables([self._file(number, file, landing) for file in range(self._history.files)])

    def _file(self, number: int, file: int, landing: Path) -> pa.Table:
        rows = pq.read_table(self._history.path(landing, number, file))
        added = [pa.array([value] * rows.num_rows, pa.int32()) for value in (number, file)]
        return rows.append_column("day", added[0]).append_column("file", added[1])
