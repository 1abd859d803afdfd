"""What a seal costs to publish: by reference and by copy, beside the same rows written with the table's own library.

A collection of a million rows (ten if `full`) is sealed, and then so many days, of a hundredth of that each. After each
day the table is brought up to the seal, by a process that has its libraries imported and opens table and state again.
CPU seconds are of the whole process. Objects and bytes are what is new below the root: versions of ours, metadata and
files of the table. The peer appends the arrow table of a day's rows to a table of its own, in the same folder: it has
no frontier to keep and reads nothing of ours.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.feed import Feed, declared, fingerprint_of, write_day
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.steps import Bench, silent
from tidemark.jobs.app import open_job
from tidemark.jobs.steps.publish import publish
from tidemark.model.collection import Envelope
from tidemark.model.publication import Destination, TableFormat

DAYS = 12
WAYS = {
    "Iceberg, by reference": (Envelope.APPEND, Destination(TableFormat.ICEBERG, "db.rows")),
    "Iceberg, by copy": (Envelope.APPEND, Destination(TableFormat.ICEBERG, "db.rows", by_reference=False)),
    "Delta": (Envelope.APPEND, Destination(TableFormat.DELTA, "", by_reference=False)),
    "Delta, keys merged": (Envelope.UPSERT, Destination(TableFormat.DELTA, "", by_reference=False)),
}
REFERENCE = "Iceberg, by reference"


def publishing(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Each way, with a base of a million rows, or of ten million if `full`."""
    rows = 10_000_000 if full else 1_000_000
    say(f"publishing: {rows:,} rows, then {DAYS} days of {rows // 100:,}")
    return {"rows": rows, "days": DAYS, "runs": [in_fresh_process(run, way, rows) for way in WAYS]}


def run(way: str, rows: int) -> dict[str, Any]:
    """One way. AssertionError if the table is not what the collection holds."""
    envelope, destination = WAYS[way]
    feed, small = Feed(envelope, 1, rows, rows), Feed(envelope, DAYS + 1, rows // 100, rows)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        root, landing = Path(folder) / "root", Path(folder) / "landing"
        collection = replace(declared(envelope), publish=(destination,), live_batches=DAYS + 2)
        bench = Bench(collection, root, landing, note=silent)
        first = one_seal(bench, root, landing, feed, 0)
        seals, peers = [], []
        for day in range(1, DAYS + 1):
            seals.append(one_seal(bench, root, landing, small, day))
            table = small.drawn[day].table(envelope).select(["id", "code", "amount", "ratio", "label"])
            peers.append(directly(Path(folder) / "peer", destination, table))
        check(root, destination, bench)
        return {"way": way, "first": first, "seals": seals, "peers": peers}


def one_seal(bench: Bench, root: Path, landing: Path, feed: Feed, day: int) -> dict[str, Any]:
    """A day, and what its publication costs."""
    write_day(landing, feed.interval(day), feed.drawn[day].table(feed.envelope))
    bench.certified_drain(feed.interval(day))
    before = sizes(root)
    job = open_job(str(root), bench.collection.name, bench.job.runner)
    started = time.process_time()
    said = publish(job)
    cpu = time.process_time() - started
    return {"said": str(said).partition("Z: ")[2].rstrip("'}"), "cpu": round(cpu, 4), **written(before, sizes(root))}


def directly(folder: Path, destination: Destination, rows: pa.Table) -> dict[str, Any]:
    """The same rows appended by the table's own library."""
    folder.mkdir(exist_ok=True)
    before = sizes(folder)
    started = time.process_time()
    if destination.format is TableFormat.DELTA:
        from deltalake import write_deltalake

        write_deltalake(str(folder / "table"), rows, mode="append")
    else:
        from pyiceberg.catalog import load_catalog

        places = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}
        catalog = load_catalog("peer", type="sql", **places)
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table_if_not_exists("db.rows", rows.schema).append(rows)
    return {"cpu": round(time.process_time() - started, 4), **written(before, sizes(folder))}


def sizes(folder: Path) -> dict[Path, int]:
    """Every file below a folder but the catalog's database, which a service would keep."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("catalog.db"))
    return {path: path.stat().st_size for path in files}


def written(before: dict[Path, int], after: dict[Path, int]) -> dict[str, int]:
    """What is new."""
    new = after.keys() - before.keys()
    data = sum(after[path] for path in new if path.suffix == ".parquet")
    return {"objects": len(new), "bytes": sum(after[path] for path in new), "bytes_of_rows": data}


def check(root: Path, destination: Destination, bench: Bench) -> None:
    """Hold the table against what the collection holds."""
    import tidemark

    current = tidemark.open(str(root), bench.collection.name).as_of().to_arrow()
    if destination.format is TableFormat.DELTA:
        from deltalake import DeltaTable

        found = DeltaTable(str(root / "_published" / "delta" / bench.collection.name)).to_pyarrow_table()
    else:
        from pyiceberg.catalog import load_catalog

        at = root / "_published"
        places = {"uri": f"sqlite:///{at}/catalog.db", "warehouse": f"file://{at}/iceberg"}
        found = load_catalog("tidemark", type="sql", **places).load_table("db.rows").scan().to_arrow()
    found = found.append_column("_multiplicity", pa.array([1] * found.num_rows, pa.int64()))
    if (said := fingerprint_of(_plain(found))) != (expected := fingerprint_of(current)):
        raise AssertionError(f"the table holds {said}, the collection {expected}")


def _plain(table: pa.Table) -> pa.Table:
    """Readers of tables give texts with long offsets."""
    texts = [name for name in table.schema.names if pa.types.is_large_string(table.schema.field(name).type)]
    for name in texts:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
    return table


def figures(found: dict[str, Any]) -> Figures:
    """The table."""
    return Figures(
        "Publishing",
        f"{found['rows']:,} rows, then {found['days']} days of {found['rows'] // 100:,} each; the median of a seal. "
        "The peer is an append of the same rows by the table's own library.",
        ("way", "first, CPU s", "a seal, CPU s", "peer", "objects", "peer", "KiB", "of rows", "peer"),
        tuple(_row(run) for run in found["runs"]),
    )


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    def middle(of: str, name: str) -> float:
        return median(one[name] for one in run[of])

    kib = (f"{middle(of, name) / 1024:,.0f}" for of, name in _BYTES)
    return (
        run["way"],
        f"{run['first']['cpu']:.2f}",
        f"{middle('seals', 'cpu'):.3f}",
        f"{middle('peers', 'cpu'):.3f}",
        f"{middle('seals', 'objects'):.0f}",
        f"{middle('peers', 'objects'):.0f}",
        *kib,
    )


_BYTES = (("seals", "bytes"), ("seals", "bytes_of_rows"), ("peers", "bytes"))


def targets(found: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """What was aimed at (spec: publishing)."""
    if not found:
        return []
    lines = []
    for one in found["runs"]:
        seals, peers = one["seals"], one["peers"]
        cpu, objects = (median(seal[name] for seal in seals) for name in ("cpu", "objects"))
        if one["way"] == REFERENCE:
            data = max(seal["bytes_of_rows"] for seal in seals)
            met = objects <= 5 and cpu <= 0.1 and not data
            found_words = f"{objects:.0f}, {cpu:.3f} s, {data:,} bytes"
            lines.append(
                ("publish a seal by reference: objects, CPU s, bytes of rows", "5, 0.1 s, 0", found_words, met)
            )
        elif "merged" not in one["way"]:
            ratio = sum(seal["bytes"] for seal in seals) / max(1, sum(peer["bytes"] for peer in peers))
            name = f"publish a seal to {one['way']}: bytes beside the net change written directly"
            lines.append((name, "1.5", f"{ratio:.2f}", ratio <= 1.5))
    return lines
