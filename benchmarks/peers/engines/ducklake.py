"""DuckLake: DuckDB in this process, the extension from the package index, a DuckDB file as catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from benchmarks.peers.engines import FIELDS, KEY, VALUE, sizes

CAME = ("insert", "update_postimage")


class DuckLake:
    """A table with merge-on-read deletes, changed by MERGE with the guard `s.happened_at > t.happened_at`.

    DuckLake's MERGE takes one UPDATE or DELETE action a statement, so a day is two of them in one transaction.
    """

    settings = "DuckDB file as catalog, zstd, MERGE guarded by happened_at; merge_adjacent_files, rewrite_data_files"

    def __init__(self, folder: Path, *, deduplicate: bool = True) -> None:
        import duckdb  # type: ignore[import-not-found,unused-ignore]
        import duckdb_ext  # type: ignore[import-not-found,unused-ignore]

        (extension,) = Path(next(iter(duckdb_ext.__path__))).rglob("ducklake.duckdb_extension")
        self._folder, self._deduplicate = folder, deduplicate
        self._snapshots: dict[int, int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._con = duckdb.connect()
        self._con.execute(f"load '{extension}'")
        self._con.execute(f"attach 'ducklake:{folder}/catalog.ducklake' as lake (data_path '{folder}/data/')")
        self._con.execute("use lake")
        self._con.execute("call lake.set_option('parquet_compression', 'zstd')")

    def ingest(self, day: int, rows: pa.Table) -> None:
        self._con.register("arrived", rows)
        if day == 0:
            self._con.execute(f"create table t as select {', '.join(FIELDS)} from arrived order by id, code")
        else:
            self._merge()
        self._con.unregister("arrived")
        self._note(day)

    def _merge(self) -> None:
        last = "qualify row_number() over (partition by id, code order by happened_at desc) = 1"
        match = "on t.id = s.id and t.code = s.code when matched and s.happened_at > t.happened_at then"
        updates = ", ".join(f"{name} = s.{name}" for name in FIELDS if name not in KEY)
        self._con.execute("begin")
        try:
            self._con.execute(
                f"create or replace temp table changed as from arrived {last if self._deduplicate else ''}"
            )
            self._con.execute(f"merge into t using (from changed where deleted) s {match} delete")
            self._con.execute(
                f"merge into t using (from changed where not deleted) s {match} update set {updates} "
                f"when not matched then insert ({', '.join(FIELDS)}) values ({', '.join(f's.{n}' for n in FIELDS)})"
            )
            self._con.execute("commit")
        except Exception:
            self._con.execute("rollback")
            raise

    def maintain(self, day: int) -> None:
        self._con.execute("call ducklake_merge_adjacent_files('lake')").fetchall()
        self._con.execute("call ducklake_rewrite_data_files('lake', 't')").fetchall()
        self._note(day)

    def _note(self, day: int) -> None:
        (row,) = self._con.execute("select max(snapshot_id) from lake.snapshots()").fetchall()
        self._snapshots[day] = row[0]

    def as_of(self, day: int) -> pa.Table:
        return self._rows(f"t at (version => {self._snapshots[day]})", "1")

    def changes(self, after: int, upto: int) -> pa.Table:
        first, last = self._snapshots[after] + 1, self._snapshots[upto]
        if first > last:  # nothing was committed between
            return self._rows("t limit 0", "1")
        return self._rows(f"lake.table_changes('t', {first}, {last})", f"if(change_type in {CAME}, 1, -1)")

    def point(self, id: int, code: str) -> pa.Table:
        return self._rows(f"t where id = {id} and code = '{code}'", "1")

    def _rows(self, source: str, multiplicity: str) -> pa.Table:
        columns = ", ".join([*KEY, *VALUE])
        # Through a table in memory: fetched as Arrow directly, a large `table_changes` never ends (DuckDB 1.4.4).
        query = f"select {columns}, cast({multiplicity} as bigint) as multiplicity from {source}"
        self._con.execute(f"create or replace temp table answer as {query}")
        return self._con.execute("from answer").fetch_arrow_table()

    def stored(self) -> dict[str, int]:
        return sizes(self._folder)
