"""The peers of questions about time: the same rows, in the same order and row groups, as each of them keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.engines import missing
from tidemark.arrow.parts.writer import ROW_GROUP_ROWS

PEERS = ("duckdb", "ducklake", "polars", "delta")
PEERS_HAVE = (
    "DuckDB, with one thread, and polars read one Parquet file in the same order, DuckLake and delta-rs a table of it."
)


def without_peers() -> bool:
    """Whether some peer is not installed."""
    return any(missing(peer) for peer in PEERS)


class Peers:
    """The rows in one Parquet file at `path`, which DuckDB and polars read, in a table of DuckLake and in one of
    delta-rs, in the same order and with row groups of the same size. Queries are asked of `rows`."""

    def __init__(self, folder: Path, rows: pa.Table, stack: ExitStack) -> None:
        import duckdb
        import duckdb_ext  # type: ignore[import-not-found,unused-ignore]
        from deltalake import DeltaTable, WriterProperties, write_deltalake  # type: ignore[import-not-found,unused-ignore]

        self.path = sorted_file(folder)
        self.rows = f"read_parquet('{self.path}')"
        (extension,) = Path(next(iter(duckdb_ext.__path__))).rglob("ducklake.duckdb_extension")
        self._duckdb = stack.enter_context(duckdb.connect())
        for statement in (
            "SET threads = 1",
            "SET TimeZone = 'UTC'",
            f"LOAD '{extension}'",
            f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS lake (DATA_PATH '{folder}/lake/')",
            "CALL lake.set_option('parquet_compression', 'zstd')",
            f"CALL lake.set_option('parquet_row_group_size', {ROW_GROUP_ROWS})",
            f"CREATE TABLE lake.ticks AS FROM {self.rows}",
        ):
            self._duckdb.execute(statement)
        properties = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_ROWS)
        write_deltalake(f"{folder}/delta", rows, writer_properties=properties)
        self._delta = DeltaTable(f"{folder}/delta")

    @contextmanager
    def of_ducklake(self) -> Iterator[Peers]:
        """Where queries are asked of DuckLake's table."""
        file, self.rows = self.rows, "lake.ticks"
        try:
            yield self
        finally:
            self.rows = file

    def sql(self, query: str, **tables: pa.Table) -> pa.Table:
        """Asked of DuckDB."""
        for name, table in tables.items():
            self._duckdb.register("given", table)
            self._duckdb.sql(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM given")
        return self._duckdb.sql(query.format(rows=self.rows)).to_arrow_table()

    def datafusion(self, query: str) -> pa.Table:
        """Asked of delta-rs."""
        from deltalake import QueryBuilder

        return pa.table(QueryBuilder().register("ticks", self._delta).execute(query.format(rows="ticks")))


def peers_of(folder: Path, rows: pa.Table, stack: ExitStack) -> Peers | None:
    """The rows in one file, in their order; None where no peer is installed."""
    pq.write_table(rows, sorted_file(folder), row_group_size=ROW_GROUP_ROWS, compression="zstd")
    return None if without_peers() else Peers(folder, rows, stack)


def sorted_file(folder: Path) -> Path:
    """Where the rows are in one file."""
    return folder / "sorted.parquet"


def instant(micros: int) -> str:
    """A time in DataFusion's SQL."""
    return f"arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
