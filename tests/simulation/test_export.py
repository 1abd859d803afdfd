"""Exports: exact in each format, by partitions, and whole: a reader finds what was there before, or all of it."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import tidemark
from simulation.sea import Sea
from support.typed import CASES, Typed, TypedWorld
from tidemark.api import export as exporting
from tidemark.api import export_place
from tidemark.api.export_place import MARKER
from tidemark.api.opened import OpenCollection
from tidemark.errors import InvalidUsage, Unwritable
from tidemark.model.canonical_json import canonical
from tidemark.model.collection import ColumnType, Envelope

pytestmark = pytest.mark.simulation


def row(k: int, v: str | None, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": 1, "e": 1, **more}


def collection_of(folder: Path, rows: list[dict[str, Any]], **declared: Any) -> OpenCollection:
    sea = Sea(folder, root=folder / "root")
    sea.landed("tides", **declared)
    sea.ingest("tides", 0, ("a", rows))
    return tidemark.open(folder / "root", "tides")


@pytest.fixture
def tides(tmp_path: Path) -> OpenCollection:
    return collection_of(tmp_path, TIDES)


TIDES = [row(1, "low"), row(2, "high"), row(2, "high"), row(3, None), row(4, "a/b=c ü")]
ROWS = Counter({(1, "low"): 1, (2, "high"): 2, (3, None): 1, (4, "a/b=c ü"): 1})


def read(path: Path) -> Counter[Any]:
    """The rows of a file, read by who has nothing of ours."""
    match path.suffix:
        case ".parquet":
            return Counter(tuple(found.values()) for found in pq.read_table(path).to_pylist())
        case ".csv":
            sql = (
                "SELECT * FROM read_csv(?, header=true, nullstr='', allow_quoted_nulls=false, hive_partitioning=false)"
            )
            return Counter(duckdb.execute(sql, [str(path)]).fetchall())
    return Counter(tuple(json.loads(line).values()) for line in path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_each_row_as_often_as_its_multiplicity_says(tmp_path: Path, ending: str) -> None:
    tides = collection_of(tmp_path, [*TIDES, row(5, "")])
    path = tmp_path / f"out.{ending}"
    path.write_text("before")
    with pytest.raises(InvalidUsage, match="is there; say replace"):
        tides.export(path)
    assert path.read_text() == "before"
    written = tides.export(path, replace=True)
    assert (written.rows, written.files, written.path) == (6, 1, path)
    assert read(path) == ROWS + Counter({(5, ""): 1})
    assert tides.as_of(columns=["k"]).export(tmp_path / f"counts.{ending}").rows == 5
    assert tides.export(tmp_path / "few", format=ending, columns=["v"], where="k = 2").rows == 2
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_by_partitions_as_hive_names_them(tides: OpenCollection, tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "out"
    written = tides.export(folder, format=ending, partition_by="v")
    assert (written.rows, written.files) == (5, 4)
    names = sorted(path.name for path in folder.iterdir())
    marker = json.loads((folder / MARKER).read_text())
    assert (marker["format"], marker["versions"]) == (1, {"tides": tides.version})
    assert sorted(marker["files"]) == sorted(f"{name}/rows.{ending}" for name in names if name != MARKER)
    assert names == [MARKER, "v=__HIVE_DEFAULT_PARTITION__", "v=a%2Fb%3Dc %C3%BC", "v=high", "v=low"]
    assert read(folder / "v=high" / f"rows.{ending}") == Counter({(2,): 2})
    if ending == "parquet":
        found = duckdb.sql(f"SELECT k, v FROM read_parquet('{folder}/**/*.parquet', hive_partitioning=true)").fetchall()
        assert Counter(found) == ROWS
        assert pa.dataset.dataset(folder, partitioning="hive").count_rows() == 5
        lazy = polars.scan_parquet(folder, hive_partitioning=True, hidden_file_prefix="_")
        assert lazy.select("k").collect().height == 5


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        (["a", "__HIVE_DEFAULT_PARTITION__"], "v has the text __HIVE_DEFAULT_PARTITION__, which names the folder of"),
        (["", None], "v has rows without a value, and with an empty one"),
        ([None, "a", ""], "v has rows without a value, and with an empty one"),
    ],
)
def test_partitions_with_one_name_for_two_values_are_refused(
    tmp_path: Path, values: list[str | None], refusal: str
) -> None:
    tides = collection_of(tmp_path, [row(k, v) for k, v in enumerate(values)])
    with pytest.raises(InvalidUsage, match=refusal):
        tides.export(tmp_path / "out", format="csv", partition_by="v")
    assert not (tmp_path / "out").exists()
    assert tides.export(tmp_path / "out", format="csv", partition_by="k").files == len(values)


@pytest.mark.parametrize("case", [case for case in CASES if case.envelope is Envelope.APPEND], ids=str)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_every_type_is_exact_and_what_partitions_are_made_of(case: Typed, ending: str, tmp_path: Path) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    opened = tidemark.open(world.root, "tides")
    opened.export(tmp_path / f"out.{ending}")
    expected = opened.as_of().to_arrow().drop_columns(["_multiplicity"])
    if ending == "parquet":
        assert pq.read_table(tmp_path / "out.parquet").sort_by("k").to_pylist() == expected.sort_by("k").to_pylist()
    else:
        shown = {tuple(map(text, found)) for found in exporting.plain_rows(expected)}
        assert set(lines(tmp_path / f"out.{ending}", case)) == shown
    column = "k" if case.role == "key" else "v"
    parts = opened.export(tmp_path / "parts", format=ending, partition_by=column, where=f"{column} IS NOT NULL")
    assert parts.files == expected.num_rows - expected[column].null_count


def text(value: Any) -> str:
    return "" if value is None else str(value)


def lines(path: Path, case: Typed) -> Iterator[tuple[str, ...]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            yield from (tuple(found) for found in list(csv.reader(stream))[1:])
        return
    json_column = ("k" if case.role == "key" else "v") if case.of is ColumnType.JSON else ""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get(json_column) is not None:
            row[json_column] = canonical(json.dumps(row[json_column]))
        yield tuple(map(text, row.values()))


def test_a_folder_is_replaced_only_if_that_is_said(tides: OpenCollection, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    tides.export(folder, format="csv", partition_by="k")
    with pytest.raises(InvalidUsage, match="is there and not empty; say replace"):
        tides.export(folder, format="csv", partition_by="v")
    tides.export(folder, format="csv", partition_by="v", replace=True)
    assert all(path.name.startswith("v=") for path in folder.iterdir() if path.name != MARKER)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _earlier(folder: Path) -> None:
    """An export of a release that wrote no marker."""
    (folder / "out" / MARKER).unlink()


def _linked(folder: Path) -> None:
    (folder / "out").rename(folder / "elsewhere")
    (folder / "out").symlink_to(folder / "elsewhere")


def _linked_inside(folder: Path) -> None:
    (folder / "out" / "v=mine").symlink_to(folder / "root")


NOT_REPLACED: list[tuple[str, Callable[[Path], object], str]] = [
    ("root", lambda _: None, f"root is not replaced, as it has no {MARKER}"),
    ("root/tides", lambda _: None, f"tides is not replaced, as it has no {MARKER}"),
    ("out", _earlier, f"out is not replaced, as it has no {MARKER} .* remove the folder yourself"),
    ("out", lambda folder: (folder / "out" / MARKER).write_text("{"), "out is not replaced"),
    ("out", lambda folder: (folder / "out" / MARKER).write_text('{"format": 2, "files": []}'), "out is not replaced"),
    ("out", lambda folder: (folder / "out" / "notes.txt").touch(), "out/notes.txt is there, which no export wrote"),
    ("out", lambda folder: (folder / "out" / "v=low" / "b.csv").touch(), "v=low/b.csv is there, which no export wrote"),
    ("out", lambda folder: (folder / "out" / ".git").mkdir(), "out/.git is there, which no export wrote"),
    ("out", lambda folder: shutil.move(folder / "root", folder / "out"), "out/root is there, which no export wrote"),
    ("out", _linked, "out is a link to .*elsewhere"),
    ("out", _linked_inside, "out/v=mine is there, which no export wrote"),
    ("/", lambda _: None, "/ has no name of its own"),
    (".", lambda _: None, " has no name of its own"),
    ("out/..", lambda _: None, "out/.. has no name of its own"),
    ("~", lambda _: None, "is your home folder, the folder you are in, or above one"),
    ("home", lambda _: None, "is your home folder, the folder you are in, or above one"),
    ("~nobody-of-this-name/out", lambda _: None, "is no path: "),
    ("out\0", lambda _: None, "is no path: it has a null byte"),
]


@pytest.mark.parametrize(("name", "change", "message"), NOT_REPLACED, ids=lambda each: str(each)[:40])
def test_only_what_an_export_wrote_is_replaced(
    tides: OpenCollection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    change: Callable[[Path], object],
    message: str,
) -> None:
    (tmp_path / "home" / "here").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "here")
    tides.export(tmp_path / "out", format="csv", partition_by="v")
    change(tmp_path)
    before = _files(tmp_path)
    place = name if name[:1] in "/.~" else tmp_path / name
    with pytest.raises(InvalidUsage, match=message) as refused:
        exporting.export(list, tides.schema, place, versions={}, format="csv", partition_by="v", replace=True)
    assert "\n" not in str(refused.value)
    assert _files(tmp_path) == before


def test_what_is_no_plain_file_is_not_replaced(tides: OpenCollection, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidUsage, match="pipe is no plain file; name another place"):
        tides.export(tmp_path / "pipe", format="csv", replace=True)
    (tmp_path / "link.csv").symlink_to("there.csv")
    with pytest.raises(InvalidUsage, match=r"link.csv is a link to there.csv"):
        tides.export(tmp_path / "link.csv", replace=True)


def test_a_file_that_comes_while_an_export_runs_stays(tides: OpenCollection, tmp_path: Path) -> None:
    folder, file = tmp_path / "out", tmp_path / "out.csv"
    tides.export(folder, format="csv", partition_by="v")

    def rows() -> Iterator[pa.RecordBatch]:
        yield from tides.dataset().to_batches()
        (folder / "notes.txt").write_text("mine")
        file.write_text("mine")

    given: dict[str, Any] = {"versions": {}, "format": "csv"}
    with pytest.raises(InvalidUsage, match=r"out/notes.txt is there, which no export wrote"):
        exporting.export(rows, tides.schema, folder, partition_by="k", replace=True, **given)
    assert {name[:2] for name in _files(folder)} == {"_t", "no", "v="}
    file.unlink()
    with pytest.raises(InvalidUsage, match=r"out.csv is there; say replace"):
        exporting.export(rows, tides.schema, file, **given)
    assert file.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


@pytest.mark.parametrize("partitioned", [False, True])
def test_an_export_that_fails_leaves_what_was_there(
    tides: OpenCollection, tmp_path: Path, partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out"
    by = "v" if partitioned else None
    tides.export(place, format="csv", partition_by=by)
    before = {path: path.read_bytes() for path in [place, *place.rglob("*")] if path.is_file()}

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "sync_path", full)
    with pytest.raises(Unwritable, match="out cannot be written: No space left on device"):
        tides.export(place, format="csv", partition_by=by, replace=True)
    assert {path: path.read_bytes() for path in [place, *place.rglob("*")] if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_folders_are_exchanged_in_two_steps_where_the_system_has_no_other_way(
    tides: OpenCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_place.ctypes, "CDLL", lambda *_, **__: object())
    for by in ("k", "v"):
        tides.export(tmp_path / "out", format="csv", partition_by=by, replace=True)
    assert {path.name[:2] for path in (tmp_path / "out").iterdir()} == {"_t", "v="}
    assert tides.export(tmp_path / "new.csv").rows == 5
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("out", {}, "its ending says no format"),
    ("out.xlsx", {}, "its ending says no format"),
    ("out", {"format": "orc"}, "format is 'orc'; write parquet, csv, jsonl"),
    ("out", {"format": "csv", "partition_by": "vv"}, "there is no column 'vv'; did you mean 'v'"),
    ("none/out.csv", {}, "there is no folder"),
    ("root", {"format": "csv"}, "is a folder; name another place"),
    ("file", {"format": "csv", "partition_by": "v", "replace": True}, "is a file; name another place"),
    ("out", {"format": "csv", "partition_by": "v", "columns": ["v"]}, "v is the only column"),
    ("out.csv", {"columns": ["nothing"]}, "has no column 'nothing'"),
    ("out.csv", {"time": "2400-01-01"}, "outside the readable"),
]


@pytest.mark.parametrize(("name", "given", "message"), REFUSED, ids=lambda each: str(each)[:40])
def test_what_cannot_be_exported(
    tides: OpenCollection, tmp_path: Path, name: str, given: dict[str, Any], message: str
) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InvalidUsage, match=message) as refused:
        tides.export(tmp_path / name, **given)
    assert "\n" not in str(refused.value)


def test_a_bucket_and_too_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = collection_of(tmp_path, [row(at, "a") for at in range(9)])
    with pytest.raises(InvalidUsage, match="goes to a folder of this machine"):
        opened.export("s3://bucket/out.csv")
    monkeypatch.setattr(exporting, "MOST_PARTITIONS", 8)
    with pytest.raises(InvalidUsage, match="k has more than 8 values; take a column of fewer"):
        opened.export(tmp_path / "out", format="csv", partition_by="k")
    assert not (tmp_path / "out").exists()


def test_an_empty_answer_is_a_file_with_columns(tides: OpenCollection, tmp_path: Path) -> None:
    assert tides.export(tmp_path / "none.parquet", where="k > 99").rows == 0
    assert pq.read_schema(tmp_path / "none.parquet").types == [pa.int64(), pa.string()]
    assert tides.export(tmp_path / "none.csv", where="k > 99").rows == 0
    assert (tmp_path / "none.csv").read_text() == "k,v\n"
    assert tides.export(tmp_path / "parts", where="k > 99", format="csv", partition_by="v").files == 0
