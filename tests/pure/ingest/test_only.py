"""`only`: which rows of a file are taken, and messages of a second table where nothing says which."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.relanded import relanded
from tests.pure.ingest.landed import listed
from tidemark.arrow.decode import jsonlfile
from tidemark.arrow.decode.content import BadFile
from tidemark.arrow.decode.source import Content, decode, fetch, undeclared
from tidemark.model import only
from tidemark.model.collection import (
    Collection,
    Column,
    ColumnType,
    DecimalType,
    Envelope,
    Format,
    Landed,
    Source,
)
from tidemark.model.ledger import rules_of

pytestmark = pytest.mark.pure

INT, TEXT = ColumnType.INT, ColumnType.STRING
PEOPLE = "source.db = 'shop' AND source.table = 'people'"
KEPT = ("id", "city")


def declared(condition: str | None, envelope: Envelope, form: Format, **more: Any) -> Collection:
    fields = [Column(name, only.implied(condition or "", name)) for name in only.fields(condition)]
    source = Source("/landing/*", form, envelope, only=condition, table="", **more)
    inputs = tuple(column for column in fields if column.name not in KEPT)
    return Collection("people", (Column("id", INT),), (Column("city", TEXT),), Landed(source, inputs=inputs))


def message(id: Any, city: Any = None, table: str | None = "people", op: str = "c", **source: Any) -> dict[str, Any]:
    image = {"id": id, "city": city}
    said = {"connector": "postgresql", "db": "shop", "table": table, "ts_ms": 1, "lsn": 1} | source
    return {"op": op, "before": image if op == "d" else None, "after": None if op == "d" else image, "source": said}


def wrapped(row: Any) -> dict[str, Any]:
    return {"schema": None, "payload": row}


HEARTBEAT = {"ts_ms": 5}
MARKER = {"status": "BEGIN", "id": "1:2", "ts_ms": 5, "event_count": None, "data_collections": None}
SCHEMA_CHANGE = {"source": {"db": "shop"}, "ts_ms": 5, "databaseName": "shop", "ddl": "DROP", "tableChanges": []}
CLOUD_EVENT = {
    "id": "1",
    "source": "/debezium",
    "specversion": "1.0",
    "type": "io.debezium",
    "data": {"payload": {"op": "c"}},
}
MAXWELL = {"database": "shop", "table": "people", "type": "insert", "ts": 1, "xid": 1, "data": {"id": 1}}
CANAL = {"data": [{"id": "1"}], "database": "shop", "es": 1, "isDdl": False, "table": "people", "type": "INSERT"}


def land(path: Path, rows: list[Any], form: Format) -> Path:
    if form is Format.PARQUET:
        pq.write_table(pa.Table.from_struct_array(pa.array(rows)), path, row_group_size=2)
    elif form is Format.CSV:
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = [",".join(str(row.get(name, "")) for name in names) for row in rows]
        path.write_text("\n".join([",".join(names), *cells]) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path, collection: Collection) -> tuple[Content, list[tuple[Any, ...]]]:
    """A file once it is decoded, and its rows: key, value, number."""
    content = fetch(listed(path))
    batches = list(decode(content, collection))
    return content, [(row["id"], row["city"], row["_row"]) for batch in batches for row in batch.to_pylist()]


DEBEZIUM = [message(7, "Porto"), message(7, "x", "orders"), message(8, "Braga"), message(8, "y", "people", db="test")]
ROWS = [
    {"id": 1, "city": "Porto", "kind": "p"},
    {"id": 2, "city": "x", "kind": "o"},
    {"id": 3, "city": "Faro", "kind": "p"},
]
TAKEN: list[tuple[str, Envelope, str, list[Any], list[int], int]] = [
    ("of one table", Envelope.DEBEZIUM, PEOPLE, DEBEZIUM, [0, 2], 2),
    ("of several", Envelope.DEBEZIUM, "source.table IN ('people', 'orders')", DEBEZIUM, [0, 1, 2, 3], 0),
    ("of none", Envelope.DEBEZIUM, "source.table = 'carts'", DEBEZIUM, [], 4),
    ("no truncate", Envelope.DEBEZIUM, "op != 't'", [message(1, "a"), message(None, op="t")], [0], 1),
    (
        "null is not it",
        Envelope.DEBEZIUM,
        "NOT source.table = 'orders'",
        [message(1, "a"), message(2, "b", None)],
        [0],
        1,
    ),
    *[
        (f"any row of {each}", each, "kind = 'p'", ROWS, [0, 2], 1)
        for each in Envelope
        if each is not Envelope.DEBEZIUM
    ],
    ("a value", Envelope.APPEND, "city != 'x' AND id < 3", ROWS, [0], 2),
    ("a key", Envelope.UPSERT, "id BETWEEN 2 AND 3", ROWS, [1, 2], 1),
]


@pytest.mark.parametrize(
    ("case", "form"),
    [(each, form) for each in TAKEN for form in Format if (each[1], form) != (Envelope.DEBEZIUM, Format.CSV)],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_rows_for_which_it_is_true_are_taken_and_others_counted(tmp_path: Path, case: Any, form: Format) -> None:
    _, envelope, condition, rows, taken, left_out = case
    rows = [row | {"diff": 1} for row in rows] if envelope is Envelope.UPDATES else rows
    path = land(tmp_path / "file", rows, form)
    content, rows_read = read(path, declared(condition, envelope, form))
    images = [row.get("after") or row for row in rows]
    assert rows_read == [(images[at]["id"], images[at]["city"], at) for at in taken]
    assert content.seen.left_out == left_out
    again = list(decode(content, declared(condition, envelope, form)))
    assert (sum(batch.num_rows for batch in again), content.seen.left_out) == (len(taken), left_out), "counted once"


def test_what_is_left_out_may_be_of_any_type_and_any_other_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its columns are not looked at, nor is it a message of the connector or the server that the others are of."""
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", 300)
    other = message("a text", {"no": "text"}, "orders", connector="mysql", file="log.1", server_id=5)
    rows: list[Any] = [HEARTBEAT, other, None, MARKER, message(7, "Porto"), SCHEMA_CHANGE, MAXWELL, message(8, op="d")]
    for name, lines in (("bare", rows), ("wrapped", [wrapped(row) for row in rows])):
        path = land(tmp_path / name, lines, Format.JSONL)
        collection = declared(PEOPLE, Envelope.DEBEZIUM, Format.JSONL, order_by="connector")
        content, rows_read = read(path, collection)
        assert rows_read == [(7, "Porto", 4), (8, None, 7)]
        assert content.seen.left_out == 5, "the tombstone says nothing, and is not counted"
        assert content.seen.servers == {"postgresql"}
        assert undeclared(content, collection) == []


def with_schema(table: str, unit: str, scale: int, image: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"field": "seen", "name": f"io.debezium.time.{unit}"},
        {"field": "price", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": str(scale)}},
    ]
    said = {"connector": "postgresql", "db": "shop", "table": table}
    payload = {"op": "c", "before": None, "after": image, "source": said}
    return {"schema": {"type": "struct", "fields": [{"field": "after", "fields": fields}]}, "payload": payload}


def test_what_is_left_out_does_not_say_how_columns_are_written(tmp_path: Path) -> None:
    """The schema of the first message that is taken is checked; and it is seen how that writes its decimals."""
    value = (Column("seen", ColumnType.TIMESTAMP), Column("price", DecimalType(12, 2)))
    said = {"units": (("seen", "ms"),), "column_decimals": (("price", "precise"),)}
    collection = replace(declared(PEOPLE, Envelope.DEBEZIUM, Format.JSONL, **said), value=value)
    orders = with_schema("orders", "MicroTimestamp", 4, {"id": "x", "seen": 1, "price": "MDk="})
    price = {"scale": 1, "value": "ew=="}
    people = with_schema("people", "Timestamp", 2, {"id": 1, "seen": 1000, "price": price})
    (batch,) = decode(fetch(listed(land(tmp_path / "a", [orders] * 30 + [people], Format.JSONL))), collection)
    (row,) = batch.to_pylist()
    assert (row["id"], row["price"], row["_row"]) == (1, Decimal("12.30"), 30)
    assert row["seen"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    wrong = with_schema("people", "NanoTimestamp", 2, {"id": 1, "seen": 1000, "price": price})
    path = land(tmp_path / "b", [people | {"payload": orders["payload"]}, wrong], Format.JSONL)
    with pytest.raises(BadFile, match=r"seen is declared timestamp \(unit: ms\), .*NanoTimestamp; write unit: ns"):
        list(decode(fetch(listed(path)), collection))


@pytest.mark.parametrize("form", list(Format))
def test_a_condition_looks_at_numbers_as_the_times_that_they_count(tmp_path: Path, form: Format) -> None:
    """As it looks at any other column: a far one is null, so that it is not true."""
    condition = "seen >= '1970-01-01T00:00:01Z'"
    rows = [{"id": at, "city": "Porto", "seen": seen} for at, seen in enumerate([999, 1000, 2**62])]
    said = {"units": (("seen", "ms"),), "beyond": (("seen", "null"),)}
    collection = declared(condition, Envelope.APPEND, form, **said)
    collection = relanded(collection, inputs=())
    collection = replace(collection, value=(*collection.value, Column("seen", ColumnType.TIMESTAMP)))
    content, read_rows = read(land(tmp_path / "file", rows, form), collection)
    assert (read_rows, content.seen.left_out) == ([(1, "Porto", 1)], 2)


@pytest.mark.parametrize("form", [Format.JSONL, Format.PARQUET])
def test_a_file_without_messages_is_left_out(tmp_path: Path, form: Format) -> None:
    content, rows_read = read(land(tmp_path / "file", [HEARTBEAT] * 3, form), declared(PEOPLE, Envelope.DEBEZIUM, form))
    assert (rows_read, content.seen.left_out) == ([], 3)


FIELD = r"^only: {} is in no row, so that all would be left out"
TWO = (
    "^{} 2: messages belong to two tables, source.db = 'shop' AND source.table = 'people', and now {}; to take the "
    r"first alone write `only: \"source.db = 'shop' AND source.table = 'people'\"` below source: and run init"
)
ORDERS = "source.db = 'shop' AND source.table = 'orders'"
LEAVES_OUT = 'to leave such out write `only: "op IS NOT NULL"` below source: and run init$'
REFUSED: list[tuple[str, str | None, list[Any], str]] = [
    ("a second table", None, [message(7, "a"), message(8, "b", "orders")], TWO.format("(line|row)", ORDERS)),
    ("another database", None, [message(7, "a"), message(8, "b", db="x")], TWO.format("(line|row)", ".* = 'x' AND .*")),
    ("a condition that names no table", "op != 't'", [message(7, "a"), message(8, "b", "orders")],
     TWO.format("(line|row)", ORDERS)),
    ("a misspelt field", "source.tabel = 'people'", [message(7, "a")], FIELD.format("source.tabel")),
    ("a heartbeat", None, [HEARTBEAT, HEARTBEAT], f"is a heartbeat of Debezium; {LEAVES_OUT}"),
    ("a marker", None, [MARKER], f"is a transaction marker of Debezium; {LEAVES_OUT}"),
    ("a schema change", None, [SCHEMA_CHANGE], f"is a schema change of Debezium; {LEAVES_OUT}"),
    ("a CloudEvent", PEOPLE, [CLOUD_EVENT], "is a CloudEvent; have the connector write its messages without"),
    ("Maxwell", PEOPLE, [MAXWELL], "is a message of Maxwell; .* use the upsert envelope, delete_when: "),
    ("Canal", PEOPLE, [CANAL], "is a message of Canal; .* use the upsert envelope, delete_when: "),
    ("a log message", None, [message(7, "a"), message(None, op="m", table="")], "2: op m is a message of the log, of"),
    ("a later heartbeat", None, [message(7, "a"), HEARTBEAT], f" 2: is a heartbeat of Debezium; {LEAVES_OUT}"),
    ("a wrapped marker", None, [wrapped(message(7, "a")), wrapped(MARKER)], " 2: is a transaction marker"),
]  # fmt: skip
IN_LINES: list[tuple[str, str | None, list[Any], str]] = [
    ("another type", None, [message(7, "a"), message("x", "b", "orders")], TWO.format("line", ORDERS)),
    (
        "no column of it",
        PEOPLE,
        [message(7, "x", "orders"), {**message(1), "after": {"id": 1}}],
        "^column city is in no",
    ),
    ("a value of another type", "source.table = 5", [message(7, "a")], "^line 1: column source.table is declared int"),
]
FLAT: list[tuple[str, str | None, list[Any], str]] = [
    ("a misspelt column", "kindd = 'p'", ROWS, "kindd"),
    ("a row that is taken", "kind = 'p'", [*ROWS, {"id": "x", "city": "y", "kind": "p"}], "id is declared int"),
]


@pytest.mark.parametrize(
    ("case", "form"),
    [
        *((case, form) for case in REFUSED for form in (Format.JSONL, Format.PARQUET)),
        *((case, Format.JSONL) for case in (*IN_LINES, *FLAT)),
        *((case, Format.CSV) for case in FLAT),
        (FLAT[0], Format.PARQUET),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_what_is_no_row_of_it_is_refused_by_name(tmp_path: Path, case: Any, form: Format) -> None:
    _, condition, rows, says = case
    envelope = Envelope.APPEND if case in FLAT else Envelope.DEBEZIUM
    with pytest.raises(BadFile) as refusal:
        read(land(tmp_path / "file", rows, form), declared(condition, envelope, form))
    assert re.search(says, refusal.value.reason), refusal.value.reason


def test_a_table_that_was_taken_before_is_known(tmp_path: Path) -> None:
    """Also where columns of the other one are not those that are declared."""
    collection = declared(None, Envelope.DEBEZIUM, Format.JSONL)
    of_people = relanded(collection, source=replace(collection.landed.source, table=PEOPLE))
    before = relanded(collection, source=replace(collection.landed.source, table=None))
    for row in (message(1, "a", "orders"), message("x", "a", "orders")):
        path = land(tmp_path / "file", [row], Format.JSONL)
        with pytest.raises(BadFile, match=f"line 1: messages belong to two tables, {PEOPLE}, and now {ORDERS}"):
            read(path, of_people)
    path = land(tmp_path / "file", [message(1, "a", "orders"), message(2, "b")], Format.JSONL)
    content, rows = read(path, before)
    assert (len(rows), content.seen.tables) == (2, {PEOPLE, ORDERS}), "of one declared before it is noted"
    odd = only.table_of({"source.db": "a'b", "source.table": 'o"b'})
    assert only.line(odd) == "only: \"source.db = 'a''b' AND source.table = 'o\\\"b'\""
    assert only.fields(odd) == ("source.db", "source.table")


def test_a_verdict_goes_with_the_condition() -> None:
    verdicts = {rules_of(declared(each, Envelope.DEBEZIUM, Format.JSONL)) for each in (None, PEOPLE, ORDERS)}
    assert len(verdicts) == 3
