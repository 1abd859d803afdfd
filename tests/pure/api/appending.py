"""A collection and its landing, for tests of appenders, and rows of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

import tidemark
from support.inprocess import InProcessRunner
from tests.pure.ingest.landed import listed
from tidemark.arrow.decode.source import decode, fetch
from tidemark.cli import app
from tidemark.cli.command import Settings

NOON = int(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
SECOND = 1_000_000
DAY = 86_400 * SECOND
FILE = """\
name: readings
key: [sensor]
value: [value, measured, uploaded]
columns: {{sensor: string, value: int, measured: timestamp, uploaded: timestamp, seen: timestamp}}
start: 2024-01-01
end: 2024-02-01
time: {{column: seen}}
timelines: [measured, uploaded]
grace: 2m
source: {{path: "{path}", format: {format}, envelope: {envelope}, ready: always}}
"""
PATH = "{{ landing }}/readings/{{ ds }}/*.parquet"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


class Place:
    """A collection and its landing, and what a program does with them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.landing, self.clock = folder, str(folder / "root"), folder / "landing", Clock()
        self.landing.mkdir()

    def declare(self, path: str = PATH, format: str = "parquet", envelope: str = "append", text: str = FILE) -> None:
        (self.folder / "readings.yaml").write_text(text.format(path=path, format=format, envelope=envelope))
        self.run("init", str(self.folder / "readings.yaml"), "--landing", str(self.landing))

    def run(self, *words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--root", self.root], obj=Settings(runner=InProcessRunner))
        assert done.exit_code == 0, done.output
        return done.output

    def appender(self, **options: Any) -> tidemark.Appender:
        options = {"landing": self.landing, "clock": self.clock, **options}
        return tidemark.appender(self.root, "readings", **options)

    def files(self) -> list[Path]:
        return sorted(path for path in self.landing.rglob("*") if path.is_file())

    def landed(self) -> list[Path]:
        """Those that a run would read."""
        return [path for path in self.files() if not path.name.startswith(".")]

    def values(self) -> list[int]:
        """The values of all rows that landed, as the decoder of ingests reads them."""
        declared = tidemark.open(self.root, "readings")._pinned.state.collection
        batches = [batch for path in self.landed() for batch in decode(fetch(listed(path)), declared)]
        return [value for batch in batches for value in batch.column("value").to_pylist()]


def row(value: int, measured: int | None = None, uploaded: int | None = None) -> dict[str, Any]:
    measured = NOON + value if measured is None else measured
    return {"sensor": f"s{value % 3}", "value": value, "measured": measured, "uploaded": uploaded, "seen": NOON}


def table(values: range, measured: Callable[[int], int] = lambda value: NOON + value) -> pa.Table:
    rows = [row(value, measured(value)) for value in values]
    times = [("measured", pa.timestamp("us", "UTC")), ("uploaded", pa.timestamp("us", "UTC"))]
    schema = pa.schema([("sensor", pa.string()), ("value", pa.int32()), *times, ("seen", pa.timestamp("ms", "UTC"))])
    columns = [[each[name] // 1000 if name == "seen" else each[name] for each in rows] for name in schema.names]
    return pa.table(
        [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)], schema=schema
    )
