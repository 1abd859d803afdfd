"""The place of a message is where the database had it, for every connector, however files are cut and delivered."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.connector_logs import LOGS, messages
from support.relanded import relanded
from tests.pure.ingest.landed import collection as landed
from tests.pure.ingest.landed import decoded
from tests.pure.ingest.landed import write as write_rows
from tidemark.arrow.decode.source import BadFile
from tidemark.arrow.rows.places import Field, places
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.place import Text, another_server

pytestmark = pytest.mark.pure
INT, TEXT = ColumnType.INT, ColumnType.STRING


def collection(
    order_by: Any = "connector", file_format: Format = Format.JSONL, listed: Sequence[Column] = (), server: str = ""
) -> Collection:
    source = Source("/landing/*", file_format, Envelope.DEBEZIUM, order_by, server=server)
    inputs = (Column("source.ts_ms", ColumnType.TIMESTAMP), *listed)
    return Collection(
        "tides", (Column("k", INT),), (Column("v", TEXT),), Landed(source, event_time="source.ts_ms", inputs=inputs)
    )


def write(path: Path, rows: Sequence[Any], of_all: Sequence[Any] = ()) -> Path:
    """A file of JSON lines; of Parquet, if all messages are given from which it gets its schema."""
    if of_all:
        pq.write_table(pa.Table.from_pylist(list(rows), pa.Table.from_pylist(list(of_all)).schema), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def value_of(message: dict[str, Any]) -> str | None:
    """What a message says that the key has."""
    return None if message["op"] == "d" else str(message["after"]["v"])


def in_order(files: Sequence[Path], declared: Collection) -> list[tuple[bytes, str | None]]:
    """The values of files, by place, file and row, each place once."""
    rows = [
        (row["_order"], path.name, row["_row"], row["v"])
        for path in files
        for row in decoded(path, declared).to_pylist()
    ]
    values = [(place, value) for place, _, _, value in sorted(rows)]
    return [value for value, _ in groupby(values)]


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
@pytest.mark.parametrize("log", LOGS)
def test_messages_are_in_the_order_of_their_database(tmp_path: Path, log: str, file_format: Format) -> None:
    said = messages(log)
    right = [value_of(message) for message in said]
    for seed in range(4):
        drawn = random.Random(seed)
        shuffled = drawn.sample(said, len(said))
        cut = drawn.randrange(1, len(said))
        again = drawn.sample(said, len(said) - 1)
        files = [
            write(tmp_path / name, part, said if file_format is Format.PARQUET else ())
            for name, part in zip("cab", (shuffled[:cut], shuffled[cut:], again), strict=True)
        ]
        assert [value for _, value in in_order(files, collection(file_format=file_format))] == right


def test_the_forms_of_messages_have_the_same_places(tmp_path: Path) -> None:
    said = messages("mysql")
    bare = decoded(write(tmp_path / "a", [None, *said]), collection()).to_pylist()[1:]
    wrapped = [{"key": {"k": 1}, "value": {"schema": None, "payload": message}} for message in said]
    beside_keys = decoded(write(tmp_path / "b", wrapped), collection()).to_pylist()[1:]
    assert [row["_order"] for row in beside_keys] == [row["_order"] for row in bare]


def test_a_list_of_fields_orders_by_what_each_is(tmp_path: Path) -> None:
    """A binlog file by its number, and all else as its type."""
    names = ("source.file", "source.pos", "source.row")
    declared = collection(names, listed=[Column(name, TEXT if name == "source.file" else INT) for name in names])
    said = [message for message in messages("mysql") if message["op"] != "r"]
    values = [value for _, value in in_order([write(tmp_path / "a", said[::-1])], declared)]
    assert values == [value_of(message) for message in said]


@pytest.mark.parametrize("file_format", list(Format))
def test_upserts_are_in_order_of_a_list_nulls_first(tmp_path: Path, file_format: Format) -> None:
    declared = landed(Column("v", TEXT), envelope=Envelope.UPSERT, file_format=file_format)
    inputs = (*declared.landed.inputs, Column("batch", TEXT), Column("line", INT))
    declared = relanded(declared, inputs=inputs, source=replace(declared.landed.source, order_by=("batch", "line")))
    pairs = [(None, 9), ("a", None), ("a", -5), ("a", 10), ("ab", 1), ("b", 0)]
    rows = [{"k": 1, "v": str(at), "t": 1, "batch": b, "line": n} for at, (b, n) in enumerate(pairs)]
    table = decoded(write_rows(tmp_path / "f", rows[::-1], declared), declared).to_pylist()
    assert [row["v"] for row in sorted(table, key=lambda row: row["_order"])] == [str(at) for at in range(len(pairs))]


LATER = {"op": "c", "before": None, "after": {"k": 1, "v": "x"}, "transaction": None}


def later(log: str, **source: Any) -> dict[str, Any]:
    """A change after those of a log, whose source says something else."""
    last = messages(log)[-1]["source"]
    return LATER | {"source": {name: value for name, value in (last | source).items() if value != "absent"}}


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no connector": ("mysql", {"connector": None}, "column source.connector is None, and the file's first .* mysql"),
    "another connector": ("mysql", {"connector": "oracle"}, "column source.connector is oracle, and the file's first"),
    "no place": ("mysql", {"file": "absent"}, "column source.file is null, and puts messages of mysql in order"),
    "a failover": ("mysql", {"server_id": 6, "file": "binlog.000001"}, "'mysql binlog 6' .* after a failover .* name"),
    "another log": ("mariadb", {"file": "mariadb-bin.000001"}, "from server 'mysql mariadb-bin'"),
    "no number": ("oracle", {"commit_scn": "12a"}, "column source.commit_scn holds '12a', which is not a whole number"),
    "no LSN": ("sqlserver", {"commit_lsn": "now"}, "column source.commit_lsn holds 'now', which is not hexadecimal"),
    "no pair": ("postgresql", {"sequence": "[7]"}, r"column source.sequence holds '\[7\]', which is not a list of two"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_has_no_place_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    log, source, says = WRONG[wrong]
    said = [*messages(log), later(log, **source)]
    with pytest.raises(BadFile, match=f"line {len(said)}: .*{says}"):
        decoded(write(tmp_path / "f", said), collection())


@pytest.mark.parametrize("connector", [None, "vitess"])
def test_a_connector_without_an_order_is_refused_with_what_can_be_declared(tmp_path: Path, connector: Any) -> None:
    says = r"connector.*those with an order are mysql.*order_by: \[source.lsn\].*order_by: \[\]"
    with pytest.raises(BadFile, match=says):
        decoded(write(tmp_path / "f", [later("mysql", connector=connector)]), collection())


def test_a_file_of_another_server_than_those_before_it_is_refused(tmp_path: Path) -> None:
    said = write(tmp_path / "f", messages("mysql"))
    assert decoded(said, collection(server="mysql binlog 5")).num_rows == len(LOGS["mysql"])
    for server in ("mysql binlog 6", "mysql bin 5", "postgresql"):
        with pytest.raises(BadFile, match=rf"line [12]: messages come from server .*others from '{server}'"):
            decoded(said, collection(server=server))
    assert not any(another_server("mysql binlog 5", server) for server in ("", "mysql", "mysql binlog"))


def test_an_image_that_is_a_text_is_refused_by_the_name_of_who_writes_it(tmp_path: Path) -> None:
    said = [later("mongodb") | {"after": '{"_id": 1}'}]
    with pytest.raises(BadFile, match=r"line 1: after is a text, as the connector of MongoDB.*ExtractNewDocumentState"):
        decoded(write(tmp_path / "f", said), collection())
    with pytest.raises(BadFile, match=r"/p: after is a text, as the connector of MongoDB.*ExtractNewDocumentState"):
        decoded(write(tmp_path / "p", said, said), collection(file_format=Format.PARQUET))


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 255, 256, -256])
KINDS: dict[str, tuple[st.SearchStrategy[Any], pa.DataType, Text | None, Callable[[Any], Any]]] = {
    "int": (NUMBERS, pa.int64(), None, int),
    "float": (st.floats(allow_nan=False).map(lambda x: x + 0.0), pa.float64(), None, float),
    "bool": (st.booleans(), pa.bool_(), None, bool),
    "decimal": (st.decimals(-(10**20), 10**20, places=3), pa.decimal128(38, 3), None, Decimal),
    "text": (st.text(st.sampled_from("\0\1aé\uffff"), max_size=4), pa.string(), None, str.encode),
    "bytes": (st.binary(max_size=4), pa.binary(), None, bytes),
    "number": (st.integers(0, 10**30).map(str) | st.sampled_from(["007", "10", "9"]), pa.string(), Text.NUMBER, int),
}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
def test_places_compare_as_their_fields_do(data: st.DataObject, kinds: list[str]) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | KINDS[kind][0] for kind in kinds)), max_size=12))
    columns = list(zip(*rows, strict=True)) or [() for _ in kinds]
    fields = [
        Field(kind, pa.array([None, *cells], KINDS[kind][1]).slice(1), KINDS[kind][2])
        for kind, cells in zip(kinds, columns, strict=True)
    ]
    as_bytes = places(fields).to_pylist()

    def by_fields(row: tuple[Any, ...]) -> list[Any]:
        return [() if cell is None else (KINDS[kind][3](cell),) for kind, cell in zip(kinds, row, strict=True)]

    pairs = list(zip(as_bytes, rows, strict=True))
    for left, left_row in pairs:
        for right, right_row in pairs:
            assert (left < right) == (by_fields(left_row) < by_fields(right_row)), (left_row, right_row)
