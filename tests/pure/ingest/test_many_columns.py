"""Parquet files of many columns: read a few columns at a time where all at once would take too much memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import collection, content_of, listed, task
from tests.support.child import run_python
from tests.support.measured import Measure
from tidemark.arrow.decode import parquetfile, rowgroups
from tidemark.arrow.decode.parquetfile import opened
from tidemark.arrow.decode.rowgroups import Columns, RowGroup
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.model.collection import Column, ColumnType
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
ROWS = 1_000


@pytest.fixture
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is read so: a few columns at a time, and of their rows some fifty."""
    monkeypatch.setattr(parquetfile, "OPEN_BYTES", -1)
    monkeypatch.setattr(rowgroups, "GROUP_BYTES", 10_000)
    monkeypatch.setattr(parquetfile, "WINDOW_BYTES", 50_000)
    monkeypatch.setattr(parquetfile, "BATCH_BYTES", 20_000)


def many() -> dict[str, pa.Array]:
    """Columns of every kind, with nulls."""
    number = np.arange(ROWS)
    absent = pa.array(number % 7 == 0)
    short, long = pa.array([f"text {n % 90}" for n in number]), pa.array([str(n % 3) * 300 for n in number])
    columns = {
        "k": pa.array(number),
        "all_null": pa.nulls(ROWS, pa.string()),
        "null_at_first": pa.array([None] * (ROWS - 1) + ["x"]),
        "empty": pa.array([""] * ROWS),
        "categories": pa.array([f"c{n % 4}" for n in number]).dictionary_encode(),
        "long_once": pa.array(["y" * 20_000] + ["y"] * (ROWS - 1)),
        "large_string": pa.array([f"{n}" for n in number], pa.large_string()),
        "binary": pa.array([bytes([n % 256]) * (n % 11) for n in number]),
        "day": pa.array(number.astype(np.int32)).cast(pa.date32()),
        "list": pa.array([[f"i{n % 5}"] * (n % 4) for n in number]),
        "struct": pa.array([{"a": int(n), "b": f"b{n % 6}"} for n in number]),
    }
    columns |= {f"short{at}": pa.array(np.roll(short.to_numpy(False), at)) for at in range(20)}
    columns |= {f"long{at}": pa.array(np.roll(long.to_numpy(False), at)) for at in range(3)}
    kept = {"k", "all_null", "null_at_first", "categories", "list", "struct"}
    return {
        name: column if name in kept else pa.compute.if_else(absent, pa.scalar(None, column.type), column)
        for name, column in columns.items()
    }


WRITTEN: dict[str, dict[str, Any]] = {
    "one row group": {},
    "row groups": {"row_group_size": 170},
    "plain": {"use_dictionary": False},
    "leaves its dictionary": {"dictionary_pagesize_limit": 200, "data_page_size": 500, "write_batch_size": 10},
    "shared beginnings": {"use_dictionary": False, "column_encoding": {"long0": "DELTA_BYTE_ARRAY"}},
    "lengths": {"use_dictionary": False, "column_encoding": {"short0": "DELTA_LENGTH_BYTE_ARRAY"}},
    "newer pages": {"data_page_version": "2.0", "store_schema": False},
}


def blocks(path: Path, names: list[str]) -> list[pa.RecordBatch]:
    with opened(content_of(path)) as file:
        return list(file.blocks(names))


def as_read(path: Path, names: list[str]) -> list[list[Any]]:
    """What pyarrow itself reads."""
    table = pq.read_table(path)
    found = {name: table.column(name).to_pylist() for name in table.schema.names}
    for name in ("a", "b"):
        found[f"struct.{name}"] = [row[name] for row in found["struct"]]
    return [found[name] for name in names]


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("path", ["few at a time", "at once"])
def test_what_is_read_is_what_pyarrow_reads(
    tmp_path: Path, request: pytest.FixtureRequest, written: dict[str, Any], path: str
) -> None:
    if path == "few at a time":
        request.getfixturevalue("few_at_a_time")
    table = pa.table(many())
    pq.write_table(table, tmp_path / "file", **written)
    for names in (table.schema.names, ["k"], ["struct.a", "k", "struct.b", "short3"]):
        read = blocks(tmp_path / "file", names)
        assert [block.schema.names for block in read] == [names] * len(read)
        found = [[value for block in read for value in block.column(at).to_pylist()] for at in range(len(names))]
        assert found == as_read(tmp_path / "file", names)


@pytest.mark.usefixtures("few_at_a_time")
def test_a_block_takes_no_more_than_its_bound(tmp_path: Path) -> None:
    """And keeps nothing in memory that it was cut from but what was gathered with it."""
    names = [f"c{at}" for at in range(40)]
    pq.write_table(pa.table({name: [f"{n:06}" for n in range(ROWS)] for name in names}), tmp_path / "file")
    read = blocks(tmp_path / "file", names)
    assert sum(block.num_rows for block in read) == ROWS
    for block in read:
        assert block.nbytes <= 20_000
        assert block.get_total_buffer_size() <= 60_000


@pytest.mark.usefixtures("few_at_a_time")
def test_a_row_that_is_too_large_is_refused_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns count together, read together or not."""
    monkeypatch.setattr(parquetfile, "MAX_ROW_BYTES", 40 * 600)
    names = [f"c{at}" for at in range(40)]
    texts = ["x"] * 150 + ["y" * 650] + ["z"] * 49
    table = {"k": range(200), "t": [1] * 200} | dict.fromkeys(names, texts)
    pq.write_table(
        pa.table({name: list(values) for name, values in table.items()}), tmp_path / "file", row_group_size=100
    )
    declared = collection(*(Column(name, ColumnType.STRING) for name in names))
    (entry,) = ingest_files(MemoryStore(), task(declared, [listed(tmp_path / "file")])).entries
    assert entry.reason == "row 151: has 26,336 bytes; a row may have 24,000"


def a_row_group(sizes: dict[str, int], longest: dict[str, int]) -> tuple[Columns, RowGroup]:
    encodings = {path: frozenset({"PLAIN", "RLE", "RLE_DICTIONARY"}) for path in longest}
    group = RowGroup(1_000, sizes, encodings)
    return Columns({path: [path] for path in sizes}, [group], longest), group


def test_columns_are_read_together_as_far_as_they_fit() -> None:
    sizes = {f"c{at}": 2**20 for at in range(100)} | {"huge": 2**30, "long": 2**20, "last": 10}
    longest = {f"c{at}": 10 for at in range(100)} | {"long": 2**15}
    columns, group = a_row_group(sizes, longest)
    few = list(columns.few_at_a_time(group))
    assert [path for some in few for path in some] == list(sizes)
    assert [len(some) for some in few] == [21, 21, 21, 21, 18, 1]
    assert all(columns.open_bytes(group, some) <= rowgroups.GROUP_BYTES for some in few)


def test_a_column_that_does_not_fit_is_read_alone() -> None:
    columns, group = a_row_group({"a": 10, "wide": 2**26, "b": 10}, {"a": 5, "wide": 2**20, "b": 5})
    assert list(columns.few_at_a_time(group)) == [["a"], ["wide"], ["b"]]


def test_texts_are_read_as_dictionaries_where_they_are_long() -> None:
    longest = {"a": 16_000, "b": 100, "c": 1_000, "d": 17_000, "e": 200}
    columns, _ = a_row_group(dict.fromkeys(longest, 2**20), longest)
    assert columns.dictionaries(list(longest)) == ["a", "d"]
    assert columns.dictionaries(["a", "b"]) == []
    assert columns.dictionaries(["d"]) == ["d"]


INGEST = """
import sys
from pathlib import Path
from tests.pure.ingest.landed import collection, listed, task
from tests.support.memory import peak_bytes
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.model.collection import Column, ColumnType
from tidemark.storage.stores.memory import MemoryStore

columns = int(sys.argv[2])
declared = collection(*(Column(f"c{at}", ColumnType.STRING) for at in range(columns)))
(entry,) = ingest_files(MemoryStore(), task(declared, [listed(Path(sys.argv[1]))])).entries
print(entry.rows, peak_bytes() // 2**20)
"""


@pytest.mark.measured
@pytest.mark.parametrize(("columns", "rows"), [(1_000, 10_000), (5_000, 1_200)])
def test_a_gibibyte_suffices_for_many_columns(tmp_path: Path, measure: Measure, columns: int, rows: int) -> None:
    """Texts that are all different, in one row group: what takes the most."""
    texts = pa.array([f"value-{n:08}" for n in range(rows)])
    numbers = np.arange(rows)
    table = {"k": pa.array(numbers), "t": pa.array(np.ones(rows, np.int64))}
    table |= {f"c{at}": texts.take(pa.array((numbers * 7 + at) % rows)) for at in range(columns)}
    pq.write_table(pa.table(table), tmp_path / "file")
    ingested, peak = run_python(INGEST, str(tmp_path / "file"), str(columns)).split()
    assert int(ingested) == rows
    measure.below(f"the whole process for {columns:,} columns of {rows:,} rows", int(peak), 1_024, "MiB")
