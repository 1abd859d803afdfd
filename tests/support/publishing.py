"""A collection below a local root, published; and what others read of its tables, by none of our code."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import duckdb
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from simulation.script import DAYS
from support.world import World, collection
from tests.support.reading import as_of
from tidemark.jobs.steps.publish import publish
from tidemark.model.collection import Collection, Envelope
from tidemark.model.publication import Destination, TableFormat
from tidemark.storage.stores.local import LocalStore

ICEBERG = Destination(TableFormat.ICEBERG, "db.tides")
COPIED = Destination(TableFormat.ICEBERG, "db.tides", by_reference=False)
DELTA = Destination(TableFormat.DELTA, "", by_reference=False)
_folders = count(1)


def stage(folder: Path, envelope: Envelope, *destinations: Destination, **changes: Any) -> World:
    """A collection in a local store."""
    return staged(folder, collection(envelope, publish=destinations, **{"live_batches": 2, **changes}))


def staged(folder: Path, declared: Collection) -> World:
    at = folder / f"world{next(_folders)}"
    (at / "landing").mkdir(parents=True)
    return World(at / "landing", declared, LocalStore(str(at / "root" / "tides")))


def scripted(folder: Path, envelope: Envelope, *destinations: Destination) -> World:
    """The same, with the days of the script landed."""
    made = stage(folder, envelope, *destinations)
    for day, files in enumerate(DAYS):
        for name, rows in files.items():
            made.land(day, name, rows)
    return made


def root_of(world: World) -> Path:
    return Path(world.truth.url).parent


def published(world: World, *, attempts: int = 8, **asked: Any) -> dict[str, Any]:
    return world.run(lambda job: publish(job, **asked), attempts=attempts)


def kept_rows(world: World, **asked: Any) -> Counter[str]:
    """What the collection contains as far as it is drained: its rows with their multiplicities."""
    rows: Counter[str] = Counter()
    for row in as_of(world.truth, world.state, **{"time": world.state.trace_upper - 1, **asked}).to_pylist():
        rows[shown(row)] += row["_multiplicity"]
    return rows


def shown(row: dict[str, Any]) -> str:
    """A row without what we add to it, as a text that is equal for equal rows, NaN among them."""
    return repr(sorted((name, str(value)) for name, value in row.items() if not name.startswith("_")))


def table_of(world: World) -> Table:
    root = root_of(world) / "_published"
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{quote(str(root))}/catalog.db",
        "warehouse": f"file://{root}/iceberg",
    }
    return load_catalog("tidemark", **properties).load_table("db.tides")


def is_in_catalog(world: World) -> bool:
    try:
        table_of(world)
    except NoSuchTableError:
        return False
    return True


def by_pyiceberg(world: World, snapshot: int | None = None) -> Counter[str]:
    rows = table_of(world).scan(snapshot_id=snapshot).to_arrow()
    assert not [name for name in rows.schema.names if name.startswith("_")], "columns at rest are hidden"
    return Counter(map(shown, rows.to_pylist()))


def files_of(table: Table, snapshot: int | None = None) -> list[Path]:
    """The files that a snapshot names, whosever they are."""
    return [Path(task.file.file_path.removeprefix("file://")) for task in table.scan(snapshot_id=snapshot).plan_files()]


def by_duckdb_over_manifest(world: World) -> Counter[str]:
    """DuckDB reads the files that the table's manifests name, by the table's own field ids."""
    table = table_of(world)
    files = [str(path) for path in files_of(table)]
    if not files:
        return Counter()
    types = {"long": "BIGINT", "double": "DOUBLE", "binary": "BLOB", "string": "VARCHAR", "timestamptz": "TIMESTAMPTZ"}
    fields = ", ".join(
        f"{field.field_id}: {{name: '{field.name}', type: '{types.get(str(field.field_type), field.field_type)}', "
        "default_value: NULL}"
        for field in table.schema().fields
    )
    found = duckdb.sql(f"SELECT * FROM read_parquet({files}, schema = MAP {{{fields}}})").to_arrow_table()
    return Counter(map(shown, found.to_pylist()))


def duckdb_iceberg(folder: Path, world: World) -> Counter[str] | None:
    """DuckDB with its own reader of Iceberg, from a folder with a DuckDB that has one; None without such a folder."""
    import subprocess

    extensions = {path.stem: path for path in folder.rglob("*.duckdb_extension")}
    if not {"iceberg", "avro"} <= extensions.keys():
        return None
    metadata = table_of(world).metadata_location.removeprefix("file://")
    script = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import duckdb, json\n"
        'c = duckdb.connect(config={"allow_unsigned_extensions": "true"})\n'
        f"c.execute(\"LOAD '{extensions['avro']}'\"); c.execute(\"LOAD '{extensions['iceberg']}'\")\n"
        f"r = c.execute(\"SELECT * FROM iceberg_scan('{metadata}')\")\n"
        "names = [d[0] for d in r.description]\n"
        "print(json.dumps([{n: str(v) for n, v in zip(names, row)} for row in r.fetchall()]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    import json

    return Counter(map(shown, json.loads(done.stdout)))


def delta_of(world: World) -> DeltaTable:
    return DeltaTable(str(root_of(world) / "_published" / "delta" / world.state.collection.name))


def by_deltalake(world: World) -> Counter[str]:
    return Counter(map(shown, delta_of(world).to_pyarrow_table().to_pylist()))


def by_duckdb_over_log(world: World) -> Counter[str]:
    """DuckDB reads the files that the table's log names."""
    files = [unquote(uri) for uri in delta_of(world).file_uris()]
    if not files:
        return Counter()
    return Counter(map(shown, duckdb.sql(f"SELECT * FROM read_parquet({files})").to_arrow_table().to_pylist()))


def readers(world: World) -> Iterator[tuple[str, Counter[str]]]:
    """What every reader there is says of every table that there is."""
    declared = {one.format for one in world.state.collection.publish}
    if TableFormat.ICEBERG in declared:
        yield "pyiceberg", by_pyiceberg(world)
        yield "DuckDB over the manifests", by_duckdb_over_manifest(world)
    if TableFormat.DELTA in declared:
        yield "deltalake", by_deltalake(world)
        yield "DuckDB over the log", by_duckdb_over_log(world)


def agree(world: World) -> None:
    """All tables hold what the collection holds."""
    wanted = kept_rows(world)
    for reader, found in readers(world):
        assert found == wanted, reader


def names_no_lost_file(world: World) -> None:
    """Every file that any retained snapshot of the Iceberg table names is there."""
    table = table_of(world)
    for snapshot in table.metadata.snapshots:
        lost = [str(path) for path in files_of(table, snapshot.snapshot_id) if not path.exists()]
        assert not lost, f"snapshot {snapshot.snapshot_id}"


def ours(world: World, files: Iterable[Path]) -> list[str]:
    """Of some files the parts of the collection."""
    folder = Path(world.truth.url)
    return sorted(str(path.relative_to(folder)) for path in files if path.is_relative_to(folder))
