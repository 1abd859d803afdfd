"""Debezium: every form a message may have gives the same facts, and what says too little is refused with its place."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.ingest.landed import decoded, listed
from tidemark.arrow.decode import jsonlfile, parquetfile
from tidemark.arrow.decode.source import BadFile, decode, fetch
from tidemark.arrow.kernels.lateness import LatenessBounds, judge
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

pytestmark = pytest.mark.pure
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

INT, TEXT, AT, DAY = ColumnType.INT, ColumnType.STRING, ColumnType.TIMESTAMP, ColumnType.DATE
TS, LSN = Column("source.ts_ms", AT), Column("source.lsn", INT)
Message = dict[str, Any] | None


def collection(
    file_format: Format = Format.JSONL,
    *,
    key: Sequence[Column] = (Column("id", INT),),
    value: Sequence[Column] = (Column("name", TEXT), Column("n", INT)),
    event_time: Column | None = TS,
    order_by: Column | None = LSN,
    time: Column | None = None,
    units: tuple[tuple[str, str], ...] = (),
) -> Collection:
    order = order_by.name if order_by else None
    source = Source("/landing/*", file_format, Envelope.DEBEZIUM, order, units=units)
    return Collection(
        "customers",
        tuple(key),
        tuple(value),
        Landed(
            source,
            time=time.name if time else None,
            event_time=event_time.name if event_time else None,
            inputs=tuple(column for column in (time, event_time, order_by) if column),
        ),
    )


def message(
    op: str, before: Any = None, after: Any = None, *, ts: int = 5, lsn: int | None = 1, **more: Any
) -> Message:
    return {"before": before, "after": after, "source": {"ts_ms": ts, "lsn": lsn, "db": "x"}, "op": op} | more


def row(id: int | None, name: str | None = None, n: int | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "n": n, "more": [1], **more}


FEED: list[Message] = [
    message("r", None, row(1, "a", 1)),
    message("c", None, row(2, "null", 2), lsn=2),
    message("u", row(1, "a", 1), row(1, "b", 1), ts=6, lsn=3),
    message("u", None, row(1, "c", None), ts=6, lsn=4),
    message("u", row(2, "null", 2), row(3, "moved", 2), ts=7, lsn=5),
    message("d", row(3, "moved", 2), None, ts=8, lsn=6),
    None,
    message("d", row(1), None, ts=8, lsn=7),
]
FACTS = [
    # id, name, n, deleted, event time in ms, order, row
    (1, "a", 1, False, 5, 1, 0),
    (2, "null", 2, False, 5, 2, 1),
    (1, "b", 1, False, 6, 3, 2),
    (1, "c", None, False, 6, 4, 3),
    (2, None, None, True, 7, 5, 4),
    (3, "moved", 2, False, 7, 5, 4),
    (3, None, None, True, 8, 6, 5),
    (1, None, None, True, 8, 7, 7),
]


def bare(value: Message) -> Any:
    return value


def wrapped(value: Message) -> Any:
    return {"schema": {"type": "struct"}, "payload": value}


def keyed(value: Message) -> Any:
    """As sinks write a record: the key beside the value."""
    images = [] if value is None else [value["after"], value["before"]]
    known = next((image["id"] for image in images if image), None)
    return {"key": {"id": known}, "value": value}


def keyed_and_wrapped(value: Message) -> Any:
    beside = keyed(value)
    return {"key": {"schema": {"type": "struct"}, "payload": beside["key"]}, "value": wrapped(value)}


FORMS = [bare, wrapped, keyed, keyed_and_wrapped]


def write(path: Path, records: Sequence[Any], file_format: Format) -> Path:
    if file_format is Format.JSONL:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        emptied = [record if record is not None else {} for record in records]
        pq.write_table(pa.Table.from_pylist(emptied, schema=parquet_schema(emptied)), path, row_group_size=3)
    return path


def parquet_schema(records: Sequence[Any]) -> pa.Schema:
    """The columns any record has: rows without one hold null there."""
    return pa.unify_schemas(
        [pa.Table.from_pylist([record]).schema for record in records if record], promote_options="permissive"
    )


def facts(found: pa.Table) -> list[tuple[Any, ...]]:
    order = ("id", "name", "n", "_deleted", "source.ts_ms", "source.lsn", "_row")
    millis = found.column("source.ts_ms").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    columns = [millis if name == "source.ts_ms" else found.column(name) for name in order]
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    return sorted(rows, key=lambda one: (one[-1], not one[3]))


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_message_says_the_same(tmp_path: Path, file_format: Format, form: Any) -> None:
    path = write(tmp_path / "file", [form(value) for value in FEED], file_format)
    assert facts(decoded(path, collection(file_format))) == FACTS


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
def test_without_before_images_only_the_keys_of_deletes_are_needed(tmp_path: Path, file_format: Format) -> None:
    feed = [value if value is None or value["op"] == "d" else value | {"before": None} for value in FEED]
    # Debezium without before-images: a key change comes as a delete and an insert.
    feed[4:5] = [message("d", row(2), None, ts=7, lsn=5), message("c", None, row(3, "moved", 2), ts=7, lsn=5)]
    path = write(tmp_path / "file", feed, file_format)
    assert [fact[:-1] for fact in facts(decoded(path, collection(file_format)))] == [fact[:-1] for fact in FACTS]


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
@pytest.mark.parametrize("form", [keyed, keyed_and_wrapped])
def test_a_delete_without_any_before_image_goes_by_the_message_key(
    tmp_path: Path, file_format: Format, form: Any
) -> None:
    records = [form(message("c", None, row(4, "x", 1))), form(message("d", row(4)))]
    for record in records:
        body = record["value"].get("payload", record["value"])
        del body["before"]
    path = write(tmp_path / "file", records, file_format)
    found = facts(decoded(path, collection(file_format)))
    assert found == [(4, "x", 1, False, 5, 1, 0), (4, None, None, True, 5, 1, 1)]


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
@pytest.mark.parametrize("form", FORMS)
def test_places_are_counted_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: Format, form: Any
) -> None:
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", 300)
    monkeypatch.setattr(parquetfile, "BATCH_ROWS", 2)
    declared = collection(file_format)
    path = write(tmp_path / "file", [form(value) for value in FEED * 3], file_format)
    blocks = list(decode(fetch(listed(path)), declared))
    assert len(blocks) > 3
    found = facts(pa.Table.from_batches(blocks))
    assert found == [(*fact[:-1], fact[-1] + len(FEED) * again) for again in range(3) for fact in FACTS]
    path = write(tmp_path / "file", [form(value) for value in [*FEED * 3, message("t")]], file_format)
    where = "line 25" if file_format is Format.JSONL else "row 25"
    with pytest.raises(BadFile, match=f"{where}: op t truncates"):
        list(decode(fetch(listed(path)), declared))


KEY2 = (Column("id", INT), Column("part", TEXT))


def test_a_key_of_several_columns_moves_when_any_of_them_does(tmp_path: Path) -> None:
    feed = [
        message("u", row(1, part="a"), row(1, "same", part="a")),
        message("u", row(1, part="a"), row(1, "moved", part="b")),
        message("d", row(1, part="b")),
    ]
    found = decoded(write(tmp_path / "file", feed, Format.JSONL), collection(key=KEY2))
    said = sorted(
        zip(*(found.column(name).to_pylist() for name in ("_row", "part", "_deleted", "name")), strict=True),
        key=lambda one: (one[0], not one[2]),
    )
    assert said == [(0, "a", False, "same"), (1, "a", True, None), (1, "b", False, "moved"), (2, "b", True, None)]


MICROS = 1_357_000_000_123_456
TIMES: list[tuple[str, dict[str, Any], tuple[tuple[str, str], ...], int]] = [
    ("source.ts_ms", {"source": {"ts_ms": MICROS // 1000}}, (), MICROS // 1000 * 1000),
    ("ts_ms", {"ts_ms": MICROS // 1000}, (), MICROS // 1000 * 1000),
    ("ts_us", {"ts_us": MICROS}, (), MICROS),
    ("source.ts_ns", {"source": {"ts_ns": MICROS * 1000}}, (), MICROS),
    ("source.at", {"source": {"at": MICROS // 1_000_000}}, (("source.at", "s"),), MICROS // 1_000_000 * 1_000_000),
    ("source.ts_ms", {"source": {"ts_ms": MICROS}}, (("source.ts_ms", "us"),), MICROS),
]


@pytest.mark.parametrize(("name", "fields", "units", "expected"), TIMES, ids=[f"{t[0]} {t[2]}" for t in TIMES])
@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
def test_event_times_count_what_their_name_or_the_declaration_says(
    tmp_path: Path, file_format: Format, name: str, fields: Any, units: Any, expected: int
) -> None:
    declared = collection(file_format, event_time=Column(name, AT), order_by=None, units=units)
    path = write(tmp_path / "file", [{"op": "c", "before": None, "after": row(1, "a", 1)} | fields], file_format)
    judged = judge(decoded(path, declared).to_batches()[0], declared, LatenessBounds(0, 0, 0, 0), path="p")
    assert judged.applied.column("_event_time").to_pylist() == [expected]


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
def test_values_that_count_since_the_epoch_are_read_as_declared(tmp_path: Path, file_format: Format) -> None:
    value = (Column("born", DAY), Column("seen", AT), Column("left", AT))
    units = (("born", "days"), ("seen", "us"), ("left", "ms"))
    path = write(
        tmp_path / "file",
        [message("c", None, {"id": 1, "born": -1, "seen": 1_000_001, "left": None, "name": "x"})],
        file_format,
    )
    found = decoded(path, collection(file_format, value=value, units=units)).to_pylist()[0]
    assert (str(found["born"]), found["seen"].isoformat(), found["left"]) == (
        "1969-12-31",
        "1970-01-01T00:00:01.000001+00:00",
        None,
    )


OK = message("c", None, row(1, "a", 1))
REFUSED: list[tuple[str, list[Any], str]] = [
    ("truncate", [OK, message("t")], "^line 2: op t truncates the table and does not say which keys"),
    ("other op", [OK, message("x")], "^line 2: op 'x' is not one of c "),
    ("op missing", [OK, {"after": row(1)}], "^line 2: there is no op in the message$"),
    ("empty object", [OK, {}], "^line 2: there is no op in the message$"),
    ("flattened", [{"id": 1, "name": "a", "n": 1}], "^line 1: has no op, .* use the upsert envelope: id, name, n$"),
    ("another form", [OK, wrapped(OK)], "^line 2: there is no op in the message$"),
    ("no after-image", [OK, message("u", row(1))],
     r"^line 2: an insert or update has an after-image with the key \(id\)$"),
    ("after is a text", [OK, message("c", None, "{}")], "^line 2: after is a text, as the connector of MongoDB"),
    ("before is a text", [OK, message("d", "{}")], "^line 2: before is a text, as the connector of MongoDB"),
    ("not JSON after a text", ['{"op":', message("d", "{}")], "^line 1: not JSON: "),
    ("document without after", [OK, message("u") | {"source": {"ts_ms": 1, "lsn": 1, "connector": "mongodb"}}],
     "^line 2: an update without after, as the connector of MongoDB"),
    ("no key at all", [OK, message("d")],
     r"^line 2: op d has the key \(id\) neither in a before-image nor in a message key$"),
    ("key null in the before-image", [OK, message("d", row(None, "a"))], r"^line 2: op d has the key \(id\) neither"),
    ("no event time", [OK, message("c", None, row(1), ts=None)],
     "^line 2: column source.ts_ms is null; a time never is$"),
    ("negative event time", [None, message("c", None, row(1), ts=-1)], "^line 2: .* a time before 1970: -1000 µs$"),
    ("wrong type", [OK, message("c", None, row(1, "a", "x"))],
     "^line 2: column after.n is declared int and holds 'x'$"),
    ("written twice", ['{"op":"c","after":{"id":1,"id":2}}'], "^line 1: column after.id is written twice$"),
    ("not JSON", [OK, '{"op":'], "^line 2: not JSON: .*truncated"),
    ("value in no message", [message("c", None, {"id": 1, "name": "a"})], "^column n is in no message; if it may be"),
    ("order in no message", [OK | {"source": {"ts_ms": 1}}], "^column source.lsn is in no message; if it "),
    ("not logged", [OK, message("u", None, row(1, "__debezium_unavailable_value"))],
     "^line 2: column name holds __debezium_unavailable_value: the after-image is not whole; set REPLICA IDENTITY"),
]  # fmt: skip


@pytest.mark.parametrize(("records", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_says_too_little_is_refused_with_its_place(tmp_path: Path, records: list[Any], says: str) -> None:
    path = tmp_path / "file"
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    with pytest.raises(BadFile) as refusal:
        decoded(path, collection())
    assert re.search(says, refusal.value.reason), refusal.value.reason


def test_numbers_without_a_unit_are_refused_with_what_to_declare(tmp_path: Path) -> None:
    value = (Column("seen", AT),)
    for file_format in (Format.JSONL, Format.PARQUET):
        path = write(tmp_path / "file", [message("c", None, {"id": 1, "seen": 5})], file_format)
        with pytest.raises(
            BadFile, match=r"declared timestamp.*; if it counts since the epoch, write columns: {seen: {unit: ms}}$"
        ):
            decoded(path, collection(file_format, value=value))


def test_nanoseconds_that_would_be_lost_are_refused(tmp_path: Path) -> None:
    record = {"op": "c", "after": row(1, "a", 1), "ts_ns": 1001}
    path = write(tmp_path / "file", [record], Format.JSONL)
    with pytest.raises(BadFile, match=r"column ts_ns .* nanoseconds that would be lost: 1001 ns since the epoch"):
        decoded(path, collection(event_time=Column("ts_ns", AT), order_by=None))


BAD_PARQUET: list[tuple[str, list[Any], str]] = [
    ("flattened", [{"id": 1, "name": "a"}], "^has no op, .*: id, name$"),
    (
        "value missing",
        [message("c", None, {"id": 1, "name": "a"})],
        "^column n is missing; the messages have id, name; if it ",
    ),
    ("time missing", [OK | {"source": {"lsn": 1}}], "^column source.ts_ms is missing; the messages have lsn$"),
    ("truncate", [OK, message("t")], "^row 2: op t truncates"),
    ("op missing", [OK, {"after": row(1)}], "^row 2: there is no op in the message$"),
    ("wrong type", [message("c", None, row(1, "a", "x"))], "^column n is declared int, the file has string$"),
    (
        "delete without any key",
        [{name: value for name, value in message("d").items() if name != "before"}, OK],  # type: ignore[union-attr]
        r"^row 1: op d has the key \(id\) neither in a before-image nor in a message key$",
    ),
    ("op of another type", [OK | {"op": 1}], "^column op is declared string, the file has int64$"),
]


@pytest.mark.parametrize(("records", "says"), [case[1:] for case in BAD_PARQUET], ids=[case[0] for case in BAD_PARQUET])
def test_parquet_that_says_too_little_is_refused(tmp_path: Path, records: list[Any], says: str) -> None:
    with pytest.raises(BadFile) as refusal:
        decoded(write(tmp_path / "file", records, Format.PARQUET), collection(Format.PARQUET))
    assert re.search(says, refusal.value.reason), refusal.value.reason


IDS = st.integers(0, 3)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["upsert", "delete", "move", "tombstone"]), IDS, IDS, st.sampled_from("ab"), IDS, IDS),
    max_size=12,
)


@QUICK
@given(changes=CHANGES, form=st.sampled_from(FORMS), file_format=st.sampled_from([Format.JSONL, Format.PARQUET]))
def test_a_feed_says_what_the_same_feed_says_as_upserts(
    tmp_path: Path, changes: list[Any], form: Any, file_format: Format
) -> None:
    """Facts at rest: key, value, deleted, times, order, file; all but the row, as a moved key takes two upserts."""
    feed: list[Any] = []
    upserts: list[dict[str, Any]] = []

    def says(id: int, name: str | None, n: int | None, ts: int, lsn: int, gone: bool) -> None:
        upserts.append({"id": id, "name": name, "n": n, "at": ts * 1000, "lsn": lsn, "gone": gone})

    for kind, id, other, name, ts, lsn in changes:
        if kind == "tombstone":
            feed.append(None)
        elif kind == "delete":
            feed.append(message("d", row(id, name, 1), ts=ts, lsn=lsn))
            says(id, None, None, ts, lsn, gone=True)
        else:
            before = row(id if kind == "upsert" else other, "z", 9)
            feed.append(message("u", before, row(id, name, ts), ts=ts, lsn=lsn))
            if before["id"] != id:
                says(before["id"], None, None, ts, lsn, gone=True)
            says(id, name, ts, ts, lsn, gone=False)
    if all(value is None for value in feed):
        return
    path = write(tmp_path / "messages", [form(value) for value in feed], file_format)
    flat = tmp_path / "upserts"
    flat.write_text("".join(json.dumps(upsert) + "\n" for upsert in upserts))
    as_upserts = Collection(
        "customers",
        (Column("id", INT),),
        (Column("name", TEXT), Column("n", INT)),
        Landed(
            Source("/landing/*", Format.JSONL, Envelope.UPSERT, "lsn", delete_when="gone = TRUE"),
            event_time="at",
            inputs=(Column("at", INT), Column("lsn", INT), Column("gone", ColumnType.BOOL)),
        ),
    )
    declared = collection(file_format)
    if not {value["op"] for value in feed if value} - {"d"}:
        return  # Parquet of deletes alone has no type for an after-image
    assert applied(path, declared) == applied(flat, as_upserts)


def applied(path: Path, declared: Collection) -> list[tuple[Any, ...]]:
    """What is kept of a file, in order of arrival."""
    table = pa.table(
        judge(decoded(path, declared).to_batches()[0], declared, LatenessBounds(0, 0, 0, 7), path="p").applied
    )
    rows = sorted(table.to_pylist(), key=lambda one: (one["_row"], not one["_deleted"]))
    return [tuple(value for name, value in one.items() if name != "_row") for one in rows]


MONEY = DecimalType(12, 2)
EXACT = (Column("price", MONEY), Column("data", ColumnType.BYTES), Column("doc", ColumnType.JSON))


def exact_values(tmp_path: Path, rows: Any, decimals: str, file_format: Format = Format.JSONL) -> list[dict[str, Any]]:
    """What the after-images, of decimals, bytes and json by an id, are taken for."""
    declared = collection(file_format, value=EXACT)
    declared = relanded(declared, source=replace(declared.landed.source, decimals=decimals))
    images = [message("c", None, {"id": 1} | image) for image in rows]
    found = decoded(write(tmp_path / "file", images, file_format), declared)
    return found.select(["price", "data", "doc"]).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.PARQUET])
def test_decimals_bytes_and_json_come_as_connectors_write_them(tmp_path: Path, file_format: Format) -> None:
    """`1234` is a number, and the base64 of another: which one is said by the collection file."""
    rows = [{"price": "1234", "data": "/wA=", "doc": '{"b": 1.0, "a": []}'}, {"price": None, "data": None, "doc": None}]
    nothing = {"price": None, "data": None, "doc": None}
    if file_format is Format.PARQUET:
        rows = [each | {"data": each["data"] and b"\xff\x00"} for each in rows]
    exact = {"data": b"\xff\x00", "doc": '{"a":[],"b":1}'}
    assert exact_values(tmp_path, rows, "string", file_format) == [{"price": Decimal("1234.00"), **exact}, nothing]
    in_units = int.from_bytes(b64decode("1234"), "big", signed=True)
    in_units = Decimal(in_units).scaleb(-2)
    assert exact_values(tmp_path, rows, "precise", file_format) == [{"price": in_units, **exact}, nothing]


def test_precise_decimals_are_signed_and_bounded(tmp_path: Path) -> None:
    def price(count: int, width: int = 6) -> Any:
        encoded = b64encode(count.to_bytes(width, "big", signed=True)).decode()
        return exact_values(tmp_path, [{"price": encoded, "data": None, "doc": None}], "precise")[0]["price"]

    assert [price(n) for n in (0, -1, 10**12 - 1, -(10**12) + 1)] == [
        Decimal(n).scaleb(-2) for n in (0, -1, 10**12 - 1, -(10**12) + 1)
    ]
    assert price(-5, 16) == Decimal("-0.05")
    with pytest.raises(BadFile, match=r"line 1: column price .* 1,000,000,000,000 units of its last digit"):
        price(10**12)
    for value in ("12.5", "1", 12.5):
        with pytest.raises(BadFile, match=r"line 1: column (after.)?price is declared (bytes|decimal.*) and holds"):
            exact_values(tmp_path, [{"price": value, "data": None, "doc": None}], "precise")


@pytest.mark.parametrize("of", ["data", "doc"])
def test_what_the_database_did_not_log_is_no_value_of_any_type(tmp_path: Path, of: str) -> None:
    values = {"price": None, "data": None, "doc": None}
    unavailable = "__debezium_unavailable_value"
    values[of] = b64encode(unavailable.encode()).decode() if of == "data" else unavailable
    with pytest.raises(
        BadFile, match=rf"column (after\.)?{of} (holds {unavailable}|is declared json and holds no JSON)"
    ):
        exact_values(tmp_path, [values], "string")


CONNECT, TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
MEANT = [
    # type and logical type of the field, its value, how the file declares it, what is taken
    ("bytes", f"{CONNECT}Decimal", "ATk=", MONEY, {"decimals": "precise"}, Decimal("3.13")),
    ("struct", "io.debezium.data.VariableScaleDecimal", {"scale": 1, "value": "ATk="}, MONEY, {"decimals": "precise"},
     Decimal("31.30")),
    ("string", None, "3.13", MONEY, {"decimals": "string"}, Decimal("3.13")),
    ("int32", f"{TIME}Date", 3, DAY, {"units": "days"}, 3),
    ("int32", f"{CONNECT}Date", 3, DAY, {"units": "days"}, 3),
    ("int64", f"{TIME}Timestamp", 3, AT, {"units": "ms"}, 3000),
    ("int64", f"{CONNECT}Timestamp", 3, AT, {"units": "ms"}, 3000),
    ("int64", f"{TIME}MicroTimestamp", 3, AT, {"units": "us"}, 3),
    ("int64", f"{TIME}NanoTimestamp", 3000, AT, {"units": "ns"}, 3),
    ("string", f"{TIME}ZonedTimestamp", "1970-01-01T00:00:00.000003Z", AT, {}, 3),
    ("string", f"{TIME}IsoDate", "1970-01-04Z", DAY, {}, 3),
    ("int64", f"{TIME}MicroTime", 3, INT, {}, 3),
    ("int32", f"{TIME}Year", 1999, INT, {}, 1999),
    ("string", f"{TIME}ZonedTime", "12:00:00Z", TEXT, {}, "12:00:00Z"),
    ("string", "io.debezium.data.Enum", "new", TEXT, {}, "new"),
    ("string", "io.debezium.data.Uuid", "6f5a2a5e-0b5e-4d4e-8a3c-0d9f5f1c2b3a", TEXT, {},
     "6f5a2a5e-0b5e-4d4e-8a3c-0d9f5f1c2b3a"),
    ("string", "io.debezium.data.Json", '{"b": 1.0, "a": 2}', ColumnType.JSON, {}, '{"a":2,"b":1}'),
    ("bytes", "io.debezium.data.Bits", "BQ==", ColumnType.BYTES, {}, b"\5"),
    ("array", None, ["a", None], ColumnType.JSON, {}, '["a",null]'),
    ("map", None, {"b": None}, ColumnType.JSON, {}, '{"b":null}'),
]  # fmt: skip


MISTAKEN = [
    ("bytes", f"{CONNECT}Decimal", "1234", MONEY, {"decimals": "string"},
     "(decimals: string), the messages' schema has org.apache.kafka.connect.data.Decimal; write decimals: precise"),
    ("double", None, 3.13, MONEY, {"decimals": "precise"},
     "(decimals: precise), the messages' schema has double; write decimals: string"),
    ("int64", f"{TIME}MicroTimestamp", 3, AT, {"units": "ms"},
     "(unit: ms), the messages' schema has io.debezium.time.MicroTimestamp; write unit: us"),
]  # fmt: skip


def logical(path: Path, case: tuple[Any, ...]) -> pa.Table:
    """What is taken of a message that comes with its schema and has a field `x` of a logical type."""
    kind, name, value, declared_type, words, _ = case
    field = {"field": "x", "type": kind, "name": name, "parameters": {"scale": "2"}}
    after = {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int64"}, field]}
    with_schema = {"schema": {"fields": [after]}, "payload": message("c", None, {"id": 1, "x": value})}
    declared = collection(value=(Column("x", declared_type),))
    units = (("x", words["units"]),) if "units" in words else ()
    source = replace(declared.landed.source, units=units, decimals=words.get("decimals", ""))
    return decoded(write(path / "file", [with_schema], Format.JSONL), relanded(declared, source=source))


@pytest.mark.parametrize("case", MEANT, ids=lambda case: f"{case[1] or case[0]}"[-30:])
def test_logical_types_are_what_they_mean(tmp_path: Path, case: tuple[Any, ...]) -> None:
    column = logical(tmp_path, case).column("x")
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if case[3] is DAY else pa.int64())
    assert column.to_pylist() == [case[5]]


@pytest.mark.parametrize("case", MISTAKEN, ids=lambda case: f"{case[1] or case[0]}"[-30:])
def test_a_number_that_is_declared_as_another_one_is_refused(tmp_path: Path, case: tuple[Any, ...]) -> None:
    """Where messages come with their schema: the value alone would be taken."""
    with pytest.raises(BadFile) as refusal:
        logical(tmp_path, case)
    assert refusal.value.reason == f"column x is declared {case[3]} {case[5]}"


def test_the_scale_of_a_message_s_schema_is_the_declared_one(tmp_path: Path) -> None:
    """Units of another digit would be numbers a hundred times as large."""

    def with_scale(scale: int) -> dict[str, Any]:
        of_decimal = {
            "field": "price",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": str(scale)},
        }
        after = {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int64"}, of_decimal]}
        payload = message("c", None, {"id": 1, "price": "ATk=", "data": None, "doc": None})
        return {"schema": {"type": "struct", "fields": [after]}, "payload": payload}

    declared = collection(value=EXACT)
    declared = relanded(declared, source=replace(declared.landed.source, decimals="precise"))
    (row,) = decoded(write(tmp_path / "file", [with_scale(2)], Format.JSONL), declared).to_pylist()
    assert row["price"] == Decimal("3.13")
    with pytest.raises(BadFile, match=r"column price is declared decimal\(12, 2\), the messages' schema has scale 4"):
        decoded(write(tmp_path / "file", [with_scale(4)], Format.JSONL), declared)
