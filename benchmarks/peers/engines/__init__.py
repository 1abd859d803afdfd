"""What is compared: one class for each engine, all with the same methods, so that one driver asks all the same.

An engine keeps a table of the benchmark's columns (benchmarks/feed.py): key `id` and `code`, value `amount`, `ratio`
and `label`. It takes in a base, then change files' rows day by day, as upserts and tombstones ordered by
`happened_at`. Peers come from requirements/bench.txt, installed beside the product and not into it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

PEERS_HOME = Path(__file__).resolve().parents[3] / "build" / "peers"
"""Where `make bench PEERS=1` installs the peers."""
ENGINES = {"tidemark": "Tidemark", "ducklake": "DuckLake", "delta": "DeltaRs"}
NEEDS = {
    "tidemark": (),
    "duckdb": ("duckdb",),
    "ducklake": ("duckdb", "duckdb_ext"),
    "delta": ("deltalake",),
    "polars": ("polars",),
    "superintervals": ("superintervals",),
}
KEY = ("id", "code")
VALUE = ("amount", "ratio", "label")
FIELDS = (*KEY, *VALUE, "happened_at", "reported_at")
"""The columns a peer's table has: a guard against older rows needs `happened_at`."""


class Engine(Protocol):
    """One table below a folder of its own. Days count from 0, the base; `after` and `upto` are days."""

    settings: str

    def __init__(self, folder: Path) -> None: ...

    def ingest(self, day: int, rows: pa.Table) -> None:
        """Take in a day's rows, the base's too."""

    def maintain(self, day: int) -> None:
        """What its makers advise to do from time to time: compaction and the like."""

    def as_of(self, day: int) -> pa.Table:
        """Key, value and `multiplicity` (how often; 1) as after a day."""

    def changes(self, after: int, upto: int) -> pa.Table:
        """Key, value and `multiplicity` (+1 came, −1 went) of what changed after one day up to another."""

    def point(self, id: int, code: str) -> pa.Table:
        """The rows of one key, newest state."""

    def stored(self) -> dict[str, int]:
        """Bytes of data and of metadata, and objects, on disk; nothing was deleted."""


def missing(name: str) -> list[str]:
    """The packages an engine needs and does not find."""
    if PEERS_HOME.is_dir() and str(PEERS_HOME) not in sys.path:
        sys.path.append(str(PEERS_HOME))
    return [package for package in NEEDS[name] if find_spec(package) is None]


def opened(name: str, folder: Path, **options: Any) -> Any:
    """A new engine of that name. ModuleNotFoundError if it is not installed."""
    if packages := missing(name):
        raise ModuleNotFoundError(f"{name} needs {', '.join(packages)}: make bench PEERS=1")
    return getattr(import_module(f"benchmarks.peers.engines.{name}"), ENGINES[name])(folder, **options)


def sizes(folder: Path, is_data: str = ".parquet") -> dict[str, int]:
    """Bytes and objects of all files below a folder, data distinguished from metadata by their names."""
    files = [(path.name, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]
    data = sum(size for name, size in files if name.endswith(is_data))
    return {"data": data, "metadata": sum(size for _, size in files) - data, "objects": len(files)}
