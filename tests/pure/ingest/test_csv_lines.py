"""CSV files: byte-order marks, blank lines, and lines without an end."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.pure.ingest.landed import collection, decoded, listed, task
from tidemark.arrow.decode import content
from tidemark.arrow.decode.source import BadFile
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.model.collection import Collection, Column, ColumnType, Format
from tidemark.model.ledger import Status, verdict_applies
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
MARK = "\ufeff"
V = Column("v", ColumnType.STRING)


def keyed_by(of: ColumnType) -> Collection:
    """A collection whose files may have one column: the key."""
    return replace(collection(file_format=Format.CSV, time=None), key=(Column("k", of),))


def read(folder: Path, text: str, declared: Collection) -> dict[str, list[Any]]:
    path = folder / "file.csv"
    path.write_bytes(text.encode())
    return decoded(path, declared).to_pydict()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["v,k,t", '"v",k,t'])
def test_the_mark_of_the_file_is_dropped_and_no_other(tmp_path: Path, header: str, end: str) -> None:
    declared = collection(V, file_format=Format.CSV)
    values = [f"{MARK}a", "b", f"{MARK}{MARK}c", MARK]
    rows = "".join(f"{value},1,1{end}" for value in values)
    for mark in ("", MARK):
        assert read(tmp_path, f"{mark}{header}{end}{rows}", declared)["v"] == values
        assert read(tmp_path, f"{mark}{header}{end}{end}{rows}", declared)["v"] == values


def test_a_second_mark_is_part_of_the_first_name(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="column k is missing"):
        read(tmp_path, f"{MARK}{MARK}k\n1\n", keyed_by(ColumnType.INT))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("rows", "line"), [(["1", "", "2"], 3), (["", "1"], 2), ([""], 2), (["1", '""', "2"], 3)])
def test_a_blank_line_in_a_file_of_one_column_is_an_empty_value(
    tmp_path: Path, rows: list[str], line: int, end: str
) -> None:
    """As `""` was, and an empty field of several: an empty text, or null, which the one column, a key, never is."""
    text = end.join(["k", *rows, ""])
    assert read(tmp_path, text, keyed_by(ColumnType.STRING))["k"] == [row.strip('"') for row in rows]
    with pytest.raises(BadFile, match=f"line {line}: column k is null; a key never is"):
        read(tmp_path, text, keyed_by(ColumnType.INT))


def test_a_blank_line_in_a_file_of_several_columns_is_none(tmp_path: Path) -> None:
    declared = collection(V, file_format=Format.CSV)
    assert read(tmp_path, "\n\nk,v,t\n\n1,a,1\n\n\n2,,1\n\n", declared)["k"] == [1, 2]
    with pytest.raises(BadFile, match="line 6: column k is null"):
        read(tmp_path, "k,v,t\n\n1,a,1\n\n\n,,1\n", declared)


def test_a_file_of_one_column_without_rows_has_none(tmp_path: Path) -> None:
    for text in ("k", "k\n", "\n\nk\r\n"):
        assert read(tmp_path, text, keyed_by(ColumnType.INT)) == {}
    assert read(tmp_path, "k\n1", keyed_by(ColumnType.INT))["k"] == [1]


@pytest.mark.parametrize("file_format", [Format.CSV, Format.JSONL])
@pytest.mark.parametrize("begins", ["", "k,v,t\n1,a,1\n"])
def test_what_has_no_line_ends_is_refused_without_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: Format, begins: str
) -> None:
    """A sparse file of 20 GB was read to its end for a checksum before a look at its first row."""
    read = 0

    def counting(path: str) -> pa.NativeFile:
        class Counting:
            closed = False

            def __init__(self) -> None:
                self._file = pa.OSFile(path)

            def read_buffer(self, size: int | None = None) -> pa.Buffer:
                nonlocal read
                data = self._file.read_buffer(size)
                read += data.size
                return data

            def __enter__(self) -> Counting:
                return self

            def __exit__(self, *error: object) -> None:
                self._file.close()

        return Counting()  # type: ignore[return-value]

    path = tmp_path / "sparse"
    path.write_text(begins)
    os.truncate(path, 20 * 2**30)
    declared = collection(V, file_format=file_format)
    monkeypatch.setattr(content, "open_source", counting)
    answer = ingest_files(MemoryStore(), task(declared, [listed(path)]))
    (entry,) = answer.entries
    assert read <= content.MAX_ROW_BYTES + 2**21
    what = "CSV" if file_format is Format.CSV else "JSON lines"
    assert entry.reason == (
        f"no line ends for 16,777,216 bytes from byte {len(begins)} on, and a row may have no more; is it {what}, "
        "and whole?"
    )
    assert (entry.status, answer.parts, entry.sha256) == (Status.QUARANTINED, (), "")
    assert not verdict_applies(entry, listed(path), declared), "what was not read whole is looked at again"
