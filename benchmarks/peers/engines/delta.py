"""delta-rs: the `deltalake` package in this process, change data feed on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers.engines import FIELDS, KEY, VALUE, sizes

CAME = pa.array(["insert", "update_postimage"])
PLAIN = {pa.string_view(): pa.string()}
MATCH = "t.id = s.id and t.code = s.code"
NEWER = "s.happened_at > t.happened_at"


class DeltaRs:
    """A copy-on-write table, changed by MERGE with the guard `s.happened_at > t.happened_at`."""

    settings = "zstd, change data feed on, MERGE guarded by happened_at; optimize.compact, checkpoints as by default"

    def __init__(self, folder: Path, *, deduplicate: bool = True) -> None:
        from deltalake import WriterProperties  # type: ignore[import-not-found,unused-ignore]

        self._path, self._deduplicate = str(folder), deduplicate
        self._versions: dict[int, int] = {}
        self._writer = WriterProperties(compression="ZSTD")

    def ingest(self, day: int, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        if day == 0:
            feed = {"delta.enableChangeDataFeed": "true"}
            base = rows.select(list(FIELDS)).sort_by([(name, "ascending") for name in KEY])
            write_deltalake(self._path, base, configuration=feed, writer_properties=self._writer)
        else:
            self._merge(last_of_each_key(rows) if self._deduplicate else rows)
        self._note(day)

    def _merge(self, rows: pa.Table) -> None:
        columns = {name: f"s.{name}" for name in FIELDS}
        merge = self._table().merge(rows, MATCH, source_alias="s", target_alias="t", writer_properties=self._writer)
        merge = merge.when_matched_delete(f"s.deleted and {NEWER}").when_matched_update(columns, predicate=NEWER)
        merge.when_not_matched_insert(columns, predicate="not s.deleted").execute()

    def maintain(self, day: int) -> None:
        self._table().optimize.compact(writer_properties=self._writer)
        self._note(day)

    def _note(self, day: int) -> None:
        self._versions[day] = self._table().version()

    def _table(self, version: int | None = None):  # type: ignore[no-untyped-def]
        from deltalake import DeltaTable

        return DeltaTable(self._path, version=version)

    def as_of(self, day: int) -> pa.Table:
        return with_ones(self._table(self._versions[day]).to_pyarrow_table(columns=[*KEY, *VALUE]))

    def changes(self, after: int, upto: int) -> pa.Table:
        first, last = self._versions[after] + 1, self._versions[upto]
        if first > last:  # nothing was committed between
            return self.as_of(upto).slice(0, 0)
        columns = [*KEY, *VALUE, "_change_type"]
        feed = self._table().load_cdf(starting_version=first, ending_version=last, columns=columns)
        rows = pa.table(feed.read_all())
        rows = rows.cast(pa.schema([(f.name, PLAIN.get(f.type, f.type)) for f in rows.schema]))
        came = pc.is_in(rows["_change_type"], value_set=CAME)
        return rows.drop_columns(["_change_type"]).append_column("multiplicity", pc.if_else(came, 1, -1))

    def point(self, id: int, code: str) -> pa.Table:
        rows = self._table().to_pyarrow_table(columns=[*KEY, *VALUE], filters=[("id", "=", id)])
        return with_ones(rows.filter(pc.equal(rows["code"], code)))

    def stored(self) -> dict[str, int]:
        return sizes(Path(self._path))


def with_ones(rows: pa.Table) -> pa.Table:
    return rows.append_column("multiplicity", pa.array([1] * rows.num_rows, pa.int64()))


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """Delta's MERGE refuses two source rows of one key: its guide advises to keep the newest before."""
    ordered = rows.sort_by([("happened_at", "ascending")])
    numbered = ordered.append_column("_at", pa.array(range(ordered.num_rows), pa.int64()))
    return ordered.take(numbered.group_by(list(KEY)).aggregate([("_at", "max")])["_at_max"])
