"""The density of source files is that of the beginning of the largest; of few bytes, and of what is bad, none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from support.world import collection, interval
from tidemark.arrow.kernels import density
from tidemark.arrow.kernels.density import density_of
from tidemark.model.collection import Format
from tidemark.model.ledger import SourceFile
from tidemark.plan.tasks import IngestTask
from tidemark.storage.stores.memory import MemoryStore

ROWS = 20_000


def task(of: Format, *paths: Path) -> IngestTask:
    files = tuple(SourceFile(str(path), path.stat().st_size if path.exists() else 10, "1") for path in paths)
    return IngestTask(collection(format=of), interval(0), files, 0, 0, 0, "b", "data/b")


def written(path: Path, of: Format, text: str) -> Path:
    table = pa.table({"k": list(range(ROWS)), "v": [text] * ROWS, "t": [1] * ROWS, "e": [1] * ROWS})
    match of:
        case Format.CSV:
            pa.csv.write_csv(table, path)
        case Format.PARQUET:
            pq.write_table(table, path)
        case Format.JSONL:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(density, "SAMPLED_BYTES", 1)


@pytest.mark.parametrize("of", Format)
def test_rows_and_decoded_bytes_of_a_file_are_those_of_its_beginning(tmp_path: Path, of: Format) -> None:
    small, large = written(tmp_path / "a", of, "x"), written(tmp_path / "b", of, "word " * 40)
    sample: Any = density_of(MemoryStore(), [task(of, small), task(of, large)])
    larger = max(small, large, key=lambda path: path.stat().st_size)
    assert sample.rows * larger.stat().st_size == pytest.approx(ROWS, rel=0.1)
    assert sample.decoded * larger.stat().st_size == pytest.approx(ROWS * (4 * 8 + 200 + 4 + 8), rel=0.15)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08 gzip", b'k,v,t,e\n1,"never closed'])
def test_a_file_that_cannot_be_read_has_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    for of in Format:
        assert density_of(MemoryStore(), [task(of, path)]) is None
        assert density_of(MemoryStore(), [task(of, tmp_path / "gone")]) is None
