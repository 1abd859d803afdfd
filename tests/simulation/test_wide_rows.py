"""Rows of a megabyte, within a gibibyte: what a child process has at its peak while days of them go every way a row can
go, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.measure import in_fresh_process
from support.memory import peak_bytes
from support.world import DAY, World, collection, interval
from tests.support import reading
from tests.support.measured import Measure
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Format
from tidemark.storage.stores.local import LocalStore

pytestmark = [pytest.mark.simulation, pytest.mark.measured]

WIDE, DAYS, ROWS = 2**20, 3, 80
GIBIBYTE = 2**30
PIECE = 128 * 2**20
"""No answer comes in a larger batch."""

Said = list[tuple[int, int]]
"""Of each row its key and the day that brought it."""


def text(row: int, day: int) -> str:
    """A megabyte that is like no other and compresses well."""
    return f"{day:02} {row:06} ".ljust(WIDE, "tidemark"[row % 8])


class Wide(World):
    """A collection on files, to which each day's file is landed row by row."""

    def __init__(self, folder: Path, envelope: Envelope) -> None:
        declared = collection(envelope, format=Format.PARQUET, event_time=False, order_by=False, live_batches=2)
        super().__init__(folder / "landing", declared, LocalStore(str(folder / "store")))

    def day(self, day: int, rows: Iterable[tuple[int, str | None]]) -> None:
        """Land rows, of a key and its value, and read them in, up to the seal. A row without a value goes."""
        columns = {"k": pa.int64(), "v": pa.string(), "t": pa.int64(), "gone": pa.bool_()}
        folder = self.landing / str(day * DAY)
        folder.mkdir(parents=True)
        with pq.ParquetWriter(folder / "a.parquet", pa.schema(columns)) as writer:
            for key, value in rows:
                row = {"k": key, "v": value, "t": day * DAY, "gone": value is None}
                writer.write_table(pa.Table.from_pylist([row], pa.schema(columns)))
        self.run(lambda job: ingest(job, interval(day), landing_root=str(self.landing)))
        self.run(lambda job: seal(job, interval(day)))

    def moved(self, day: int) -> None:
        self.run(lambda job: drain(job, interval(day)))
        self.run(lambda job: compact(job, interval(day)))

    def as_of(self) -> Said:
        return said(reading.as_of_batches(self.truth, self.state))

    def changes(self) -> Said:
        return said(reading.changes_batches(self.truth, self.state, after=-1))

    def is_sound(self) -> bool:
        return self.run(lambda job: verify(job, data=True)).sound


def said(batches: Iterable[pa.RecordBatch]) -> Said:
    rows: Said = []
    for batch in batches:
        assert batch.nbytes <= PIECE
        assert pc.all(pc.equal(pc.binary_length(batch.column("v")), WIDE)).as_py()
        starts = pc.utf8_slice_codeunits(batch.column("v"), 0, 10).to_pylist()
        rows += [(int(start.split()[1]), int(start.split()[0])) for start in starts]
    return rows


def appended(folder: Path) -> None:
    """Every day brings rows of every key, so that batches must be merged throughout."""
    wide = Wide(folder, Envelope.APPEND)
    for day in range(DAYS):
        wide.day(day, ((row, text(row, day)) for row in range(ROWS)))
    both = [(row, day) for row in range(ROWS) for day in range(DAYS)]
    assert wide.as_of() == both, "sealed, not drained"
    wide.moved(DAYS - 1)
    wide.day(DAYS, ((row, text(row, DAYS)) for row in range(ROWS)))
    wide.moved(DAYS)
    both = [(row, day) for row in range(ROWS) for day in range(DAYS + 1)]
    assert wide.as_of() == both
    assert wide.changes() == both
    assert wide.is_sound()


def keyed(folder: Path) -> None:
    """A day's values replace those before; in the end a day of narrow tombstones takes away what is wide."""
    wide = Wide(folder, Envelope.UPSERT)
    for day in range(DAYS):
        wide.day(day, ((row, text(row, day)) for row in range(ROWS)))
        if day != 1:
            wide.moved(day)
    last = [(row, DAYS - 1) for row in range(ROWS)]
    assert wide.as_of() == last
    replaced = [(row, day) for row in range(ROWS) for day in range(DAYS - 1)]
    wide.day(DAYS, ((row, None) for row in range(1, ROWS)))
    assert wide.as_of() == last[:1], "tombstones, sealed"
    wide.moved(DAYS)
    assert wide.as_of() == last[:1]
    assert sorted(wide.changes()) == sorted(2 * (replaced + last[1:]) + last[:1])
    assert wide.is_sound()


def dumped(folder: Path) -> None:
    """Every full snapshot says something else of every key."""
    wide = Wide(folder, Envelope.SNAPSHOT)
    for day in range(DAYS):
        wide.day(day, ((row, text(row, day)) for row in range(ROWS)))
    last = [(row, DAYS - 1) for row in range(ROWS)]
    assert wide.as_of() == last
    wide.moved(DAYS - 1)
    assert wide.as_of() == last
    assert wide.is_sound()


def peak_of(work: Callable[[Path], None], folder: Path) -> int:
    work(folder)
    return peak_bytes()


@pytest.mark.parametrize("work", [appended, keyed, dumped])
def test_a_gibibyte_suffices_for_rows_of_a_megabyte(
    tmp_path: Path, work: Callable[[Path], None], measure: Measure
) -> None:
    used = in_fresh_process(peak_of, work, tmp_path)
    measure.below("at the peak", used / 2**20, GIBIBYTE / 2**20, "MiB")
