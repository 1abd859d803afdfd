"""What an export says of itself: the collection file that reads it back gives the same rows."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidemark
from support.typed import IN_TURN, Typed, TypedWorld
from support.world import World, collection, interval
from tidemark.api.export import Exported, export
from tidemark.api.opened import OpenCollection
from tidemark.api.read_back import ReadBack, name_of
from tidemark.arrow.rows.plain import plain_rows
from tidemark.arrow.rows.schema import arrow_type
from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import NAME, Column, ColumnType, DecimalType, Envelope, Format
from tidemark.model.interval import Interval
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation
_roots = count(1)
_DAY = 86_400_000_000
NEAR: dict[Any, list[Any]] = {
    ColumnType.BOOL: [True, False],
    ColumnType.INT: [2**63 - 1, -(2**63)],
    ColumnType.FLOAT: [float("nan"), float("inf"), float("-inf"), 5e-324, -1e300, 0.1],
    ColumnType.STRING: [
        "null",
        "NaN",
        " a ",
        '"',
        '",\r\n',
        "\r",
        "\0",
        "\ufeff",
        "\u2028",
        "'",
        "\\N",
        "#",
        "😀",
        "1e5",
    ],
    ColumnType.DATE: [-719_162, 2_932_896, 0],
    ColumnType.TIMESTAMP: [-719_162 * _DAY, 2_932_897 * _DAY - 1, 0],
    ColumnType.BYTES: [b"\0", b"\xff\xfe", b"abc"],
    ColumnType.JSON: [
        '{"b":[1.50,null],"a":{}}',
        '"text"',
        '""',
        "0.1",
        "123456789012345678901234567890",
        "true",
        "[]",
    ],
    DecimalType(38, 2): [Decimal("-0.10"), Decimal("9" * 36 + ".99")],
}
FAR: dict[Any, list[Any]] = {
    ColumnType.DATE: [-719_163, 2_932_897, 2**31 - 1, -(2**31)],
    ColumnType.TIMESTAMP: [2**63 - 1, -(2**63) + 1, -719_162 * _DAY - 1],
}
EMPTY: dict[Any, list[Any]] = {ColumnType.STRING: [""], ColumnType.BYTES: [b""]}
_COUNTED: dict[Any, pa.DataType] = {ColumnType.DATE: pa.int32(), ColumnType.TIMESTAMP: pa.int64()}
FORMATS = ["parquet", "jsonl", "csv"]


def rows_of(opened: OpenCollection) -> Counter[str]:
    """The rows as texts, in which one NaN is as another, each as often as it is there."""
    rows: Counter[str] = Counter()
    for *values, times in plain_rows(opened.as_of().to_arrow()):
        rows[repr(values)] += times
    return rows


def moved(world: World, within: Interval) -> None:
    world.run(lambda job: ingest(job, within, landing_root=str(world.landing)))
    for step in (seal, drain):
        world.run(lambda job, step=step: step(job, within))  # type: ignore[misc]


def back(folder: Path, written: Exported) -> OpenCollection:
    """The collection that the declaration of an export makes of it."""
    assert not written.no_declaration
    file = folder / "back.yaml"
    file.write_text(written.declaration, encoding="utf-8")
    declared, root = load(file), f"memory://back{next(_roots)}"
    world = World(folder / "landing", declared, MemoryStore.named(f"{root}/{declared.name}"))
    landed = declared.landed
    (day,) = Schedule(landed.schedule).split(Interval(landed.start, landed.end or 0))
    moved(world, day)
    return tidemark.open(root, declared.name)


def opened_with(folder: Path, values: dict[Any, list[Any]]) -> OpenCollection:
    """A collection with a column of each type, in which each of its values is, and null."""
    columns = [Column(f"c{at}", type) for at, type in enumerate(values)]
    made = collection(Envelope.APPEND, format=Format.PARQUET, value=tuple(columns), masked=("c0",))
    root = f"memory://out{next(_roots)}"
    world = World(folder / "landing", made, MemoryStore.named(f"{root}/tides"))
    most = max(map(len, values.values())) + 1
    table = {name: pa.array([1] * most) for name in ("t", "e")} | {"k": pa.array(range(most))}
    for column in columns:
        stored, cycle = arrow_type(column.type), [None, *values[column.type]]
        raw = _COUNTED.get(column.type, stored)
        table[column.name] = pa.array([cycle[at % len(cycle)] for at in range(most)], raw).cast(stored)
    (world.landing / "0").mkdir(parents=True)
    pq.write_table(pa.table(table), world.landing / "0" / "a.parquet")
    moved(world, interval(0))
    return tidemark.open(root, "tides")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("more", [{}, FAR, EMPTY], ids=["near", "far", "empty"])
def test_every_value_comes_back(tmp_path: Path, ending: str, more: dict[Any, list[Any]]) -> None:
    opened = opened_with(tmp_path, {type: [*values, *more.get(type, [])] for type, values in NEAR.items()})
    place = tmp_path / "a [b] {{ ds }} ü'\".out"
    again = back(tmp_path, opened.export(place, format=ending))
    assert rows_of(again) == rows_of(opened)
    assert sorted(tmp_path.glob(".*")) == []
    assert again.state.collection.masked == ("c0",)


@pytest.mark.parametrize("case", IN_TURN, ids=str)
def test_every_key_and_kind_comes_back(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", [*case.rows(), case.row(0)])
    world.ingested()
    world.moved()
    opened = tidemark.open(world.root, "tides")
    ending = FORMATS[IN_TURN.index(case) % 3]
    # What an ending says of compression is not so of a file of ours.
    again = back(tmp_path, opened.export(tmp_path / f"{ending}.gz", format=ending))
    assert rows_of(again) == rows_of(opened)


@pytest.mark.parametrize(("type", "ending"), [*zip(NEAR, FORMATS * 3, strict=True)], ids=str)
def test_every_partition_comes_back(tmp_path: Path, type: Any, ending: str) -> None:
    opened = opened_with(tmp_path, {type: [*NEAR[type], *FAR.get(type, [])]})
    written = opened.export(tmp_path / "[out]", format=ending, partition_by="c0")
    assert rows_of(back(tmp_path, written)) == rows_of(opened)


REFUSED = [
    ({"partition_by": "k"}, "the key, k, is in the names of its folders alone"),
    ({"partition_by": "v"}, "a folder above it is called v=..., as its own are"),
    ({"columns": ["v"]}, "column k of the key is not in it"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=lambda each: str(each)[:20])
def test_why_no_file_reads_an_export(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    world = TypedWorld(tmp_path, Typed(ColumnType.STRING, "value"))
    world.put(0, "a", [world.case.row(0)])
    world.ingested()
    world.moved()
    (tmp_path / "v=a").mkdir()
    written = tidemark.open(world.root, "tides").export(tmp_path / "v=a" / "out", format="csv", **options)
    assert (written.declaration, written.no_declaration, written.rows) == ("", reason, 1)


def test_what_no_file_reads_is_said(tmp_path: Path) -> None:
    """Only the key of a derived collection may be null."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    rows = pa.RecordBatch.from_pydict({"k": [1, None], "v": ["a", "b"]}, schema=schema)
    read_back = ReadBack(collection(), 0)
    written = export(lambda: [rows], schema, tmp_path / "out.csv", versions={}, read_back=read_back)
    assert (written.declaration, written.rows) == ("", 2)
    assert written.no_declaration == "column k of the key is null in a row, and keys of files never are"


@pytest.mark.parametrize("length", [1, 56, 57, 63])
def test_an_export_is_a_collection_of_another_name(length: int) -> None:
    name = "a" * length
    assert NAME.fullmatch(name_of(name))
    assert name_of(name) != name
