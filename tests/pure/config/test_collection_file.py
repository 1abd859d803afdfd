"""Collection files: what a right one becomes, and the one line each wrong one gets."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.config.collection_file import infer_types, load, parse
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, Format, Layout
from tidemark.model.instant import parse_duration, parse_instant
from tidemark.model.kind import FULL_SNAPSHOT

pytestmark = pytest.mark.pure

FLIGHTS = """\
name: flights
key: [flight_id]
value: [status, origin, scheduled_at, delay_min]
columns: {flight_id: string, status: string, origin: string, scheduled_at: timestamp, delay_min: int}
start: 2013-01-01
end: 2014-01-01
time: {column: reported_at}
event_time: {column: happened_at}
timelines: [scheduled_at]
source:
  path: "{{ landing }}/flights/{{ ds }}/*.parquet"
  format: parquet
  envelope: upsert
  order_by: happened_at
  ready: exists
  delete_when: "status = 'DELETED'"
schedule: "@daily"
grace: 2h
late: {reemit: {max_lateness: 3d}}
quality: [{expect_column_values_to_be_in_set: {column: status, value_set: [scheduled, departed]}}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "flights.yaml"


def refusal(path: Path, text: str) -> str:
    """The one line a file is refused with, its path and number taken off: `12: message`."""
    path.write_text(text)
    with pytest.raises(InvalidUsage) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:"), message
    return message.removeprefix(f"{path}:")


def test_the_example_of_the_design_is_read_field_by_field(path: Path) -> None:
    path.write_text(FLIGHTS)
    flights = load(path)
    assert (flights.name, flights.landed.schedule) == ("flights", "@daily")
    assert flights.key == (Column("flight_id", ColumnType.STRING, 1),)
    assert flights.value[-1] == Column("delay_min", ColumnType.INT, 5)
    assert (flights.landed.start, flights.landed.end) == (parse_instant("2013-01-01"), parse_instant("2014-01-01"))
    assert (flights.landed.time, flights.landed.event_time, flights.timelines) == (
        "reported_at",
        "happened_at",
        ("scheduled_at",),
    )
    assert (flights.landed.late.policy, flights.landed.late.max_lateness) == ("reemit", parse_duration("3d"))
    assert flights.landed.grace == parse_duration("2h")
    assert flights.landed.source.format is Format.PARQUET
    assert flights.landed.source.envelope is Envelope.UPSERT
    assert flights.landed.source.delete_when == "status = 'DELETED'"
    assert flights.type_of("reported_at") is ColumnType.TIMESTAMP
    assert flights.quality == (
        '{"expect_column_values_to_be_in_set":{"column":"status","value_set":["scheduled","departed"]}}',
    )


MINIMAL = """\
name: counts
key: [id]
columns: {id: int}
start: 2013-01-01T00:00:00Z
time: arrival
source: {path: "/data/*.json", format: json, envelope: append}
"""


def test_what_is_left_out_has_its_default(path: Path) -> None:
    path.write_text(MINIMAL)
    counts = load(path)
    assert (counts.landed.time, counts.landed.event_time, counts.landed.end, counts.value) == (None, None, None, ())
    assert counts.landed.source.format is Format.JSONL
    landed = counts.landed
    assert (landed.source.ready, landed.source.bad_files, landed.late.policy) == ("exists", "stop", "discard")


def test_a_layout_and_how_rows_are_cut_are_taken(path: Path) -> None:
    placed = MINIMAL.replace("{id: int}", "{id: int, at: timestamp}") + (
        "value: [at]\ntimelines: [at]\nlayout: {by: at, every: 6h}\nchunks: {max_rows_if_unsorted: 2048}\n"
    )
    path.write_text(placed)
    counts = load(path)
    assert (counts.layout, counts.max_rows_if_unsorted) == (Layout("at", parse_duration("6h")), 2048)
    path.write_text(MINIMAL)
    assert (load(path).layout, load(path).max_rows_if_unsorted) == (None, 16_384)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("late: discard", ("discard", None)),
        ("late: {discard: {}}", ("discard", None)),
        ("late: next_window", ("next_window", None)),
        ("late: {next_window: {}}", ("next_window", None)),
        ("late: reemit", ("reemit", None)),
        ("late: {reemit: {max_lateness: 1h30m}}", ("reemit", 5_400_000_000)),
    ],
)
def test_late_policies(path: Path, written: str, expected: tuple[str, int | None]) -> None:
    path.write_text(MINIMAL + written)
    late = load(path).landed.late
    assert (late.policy, late.max_lateness) == expected


@pytest.mark.parametrize("late", ["reemit", "{reemit: {max_lateness: 3d}}"])
@pytest.mark.parametrize("source", ["envelope: upsert, order_by: n", "envelope: upsert"])
def test_late_facts_are_placed_by_their_event_time_or_refused(path: Path, source: str, late: str) -> None:
    declared = MINIMAL.replace("envelope: append", source) + f"late: {late}\n"
    path.write_text(declared)
    with pytest.raises(
        InvalidUsage, match=r"late: reemit needs event_time for upsert: .* or write late: discard"
    ) as no:
        load(path)
    assert "\n" not in str(no.value)
    path.write_text(declared.replace(f"late: {late}", "late: discard"))
    assert load(path).landed.late.policy == "discard"


def test_a_marker_is_a_named_file(path: Path) -> None:
    path.write_text(MINIMAL.replace("envelope: append", "envelope: append, ready: {marker: _SUCCESS}"))
    assert load(path).landed.source.ready == "_SUCCESS"


@pytest.mark.parametrize("schedule", ["@hourly", "0 6 * * 1-5", "*/15 * * * *"])
def test_schedules(path: Path, schedule: str) -> None:
    path.write_text(f"{MINIMAL.replace('T00:', 'T06:')}schedule: '{schedule}'")
    assert load(path).landed.schedule == schedule


WRONG = [
    # (what of FLIGHTS is replaced, by what, the line and what it says)
    ("key:", "keys:", "2: unknown field 'keys'; did you mean 'key'?"),
    ("  format:", "  fromat:", "12: unknown field 'source.fromat'; did you mean 'format'?"),
    ("max_lateness", "max_latenes", "19: unknown field 'late.reemit.max_latenes'; did you mean 'max_lateness'?"),
    ("{column: reported_at}", "{colunm: reported_at}", "7: unknown field 'time.colunm'; did you mean 'column'?"),
    ("grace: 2h", "zzz: 2h", "18: unknown field 'zzz'; valid are name, key"),
    ("name: flights\n", "", "1: field 'name' is missing"),
    ("  envelope: upsert\n", "", "10: field 'source.envelope' is missing"),
    ("envelope: upsert", "envelope: upsrt", "13: source.envelope: 'upsrt' is not valid; did you mean 'upsert'?"),
    ("format: parquet", "format: parqet", "12: source.format: 'parqet' is not valid; did you mean 'parquet'?"),
    ("grace: 2h", "grace: 2 fortnights", "18: grace: not a duration"),
    ("grace: 2h", "grace: 1.5", "18: grace: not a duration"),
    ("start: 2013-01-01", "start: yesterday", "5: start: not a time"),
    ("start: 2013-01-01", "start: 1969-12-31", "5: start: a time before 1970-01-01"),
    ("end: 2014-01-01", "end: 2012-01-01",
     "6: end 2012-01-01T00:00:00Z is not after start 2013-01-01T00:00:00Z; a collection starts"),
    ("start: 2013-01-01", "start: 2013-01-01T06:00:00",
     "5: collection flights starts at 2013-01-01T06:00:00Z, between"),
    ("end: 2014-01-01", "end: 2013-12-31T12:00:00", "6: collection flights ends at 2013-12-31T12:00:00Z, between"),
    ('schedule: "@daily"', 'schedule: "0 0 30 2 *"', "17: schedule '0 0 30 2 *' has no boundary"),
    ('schedule: "@daily"', 'schedule: "R R * * *"', "17: schedule 'R R * * *' is not a cron expression"),
    ('schedule: "@daily"', 'schedule: "@dayly"', "17: schedule: '@dayly' is no schedule"),
    ('schedule: "@daily"', 'schedule: "* * * *"', "17: schedule: '* * * *' is no schedule"),
    ("delay_min: int}", "delay_min: integer}", "4: columns.delay_min: 'integer' is not valid; did you mean 'int'"),
    ("delay_min: int}", "delay_min: DateTime}",
     "4: columns.delay_min: 'DateTime' is not valid; did you mean 'timestamp'?"),
    ("delay_min: int}", "delay_min: varchar(5)}",
     "4: columns.delay_min: 'varchar(5)' is not valid; did you mean 'string'"),
    ("delay_min: int}", "delay_min: float64}", "4: columns.delay_min: 'float64' is not valid; did you mean 'float'?"),
    ("delay_min: int}", "delay_mi: int}", "4: column delay_mi is in no other field; did you mean 'delay_min'?"),
    (", delay_min: int}", "}", "4: no type for column delay_min; write columns: {delay_min: string}"),
    ("key: [flight_id]", "key: []", "2: key: one or more are expected, found []"),
    ("key: [flight_id]", "key: flight_id", "2: key: a list is expected, found 'flight_id'; write [flight_id]"),
    ("key: [flight_id]", "key: {flight_id: string}", "2: key: a list is expected, found {'flight_id': 'string'}"),
    ("key: [flight_id]", "key:", "2: key: a list is expected, and there is nothing"),
    ("grace: 2h", "compact_ahead: 1", "18: compact_ahead: true or false is expected, found 1"),
    ("grace: 2h", "live_batches: many", "18: live_batches: a whole number is expected, found 'many'"),
    ("grace: 2h", "live_batches: 2.0", "18: live_batches: a whole number is expected, found 2.0"),
    ("grace: 2h", "live_batches: 1", "18: live_batches: it must be 2 or more, found 1"),
    ("grace: 2h", "live_batches: 5000", "18: live_batches: it must be 1000 or less, found 5000"),
    ("grace: 2h", "corrected_share: half", "18: corrected_share: a number is expected, found 'half'"),
    ("quality: [{", "columns: [{", "20: field 'columns' is written twice"),
    ("status = 'DELETED'", "status; 1", "16: delete_when: ';' is not understood at position 7 of"),
    ("delete_when: \"status = 'DELETED'\"", "delete_when: ''", "16: source.delete_when: "),
    ("delete_when: \"status = 'DELETED'\"", "delete_when: 1",
     "16: source.delete_when: a text is expected, found 1; quote"),
    ("{reemit: {max_lateness: 3d}}", "{reemit: 3d}",
     "19: late.reemit: a mapping of max_lateness is expected, found '3d'"),
    ("{reemit: {max_lateness: 3d}}", "{discard: 3d}",
     "19: late.discard: it holds nothing, found '3d'; write {discard: {}}"),
    ("event_time: {column: happened_at}", "event_time: happened_at",
     "8: event_time: a mapping of column is expected, found"),
    ("time: {column: reported_at}", "time: {name: reported_at}",
     "7: unknown field 'time.name'; valid are column (and 1 mistake more, in line 7)"),
    ("key: [flight_id]", "key: [status]", "3: column status is named twice in key and value"),
    ("key: [flight_id]", "key: [_row]", "2: key.0: column name '_row' must match"),
    ("flight_id: string", "flight_id: float", "2: key column flight_id is a float"),
    ("timelines: [scheduled_at]", "timelines: [scheduled]",
     "9: timeline scheduled is not a value column; did you mean"),
    ("timelines: [scheduled_at]", "timelines: [status]", "9: timeline status is not a timestamp, date or int"),
    ("grace: 2h", "layout: {by: scheduled_at, every: 6h}",
     "18: collection flights keeps one value per key and finds it by its key, so its rows cannot be laid out by"),
    ("grace: 2h", "layout: {by: delay_min, every: 6h}",
     "18: layout by delay_min, which is no timeline; write timelines: [scheduled_at, delay_min]"),
    ("grace: 2h", "layout: {by: scheduled_at}", "18: field 'layout.every' is missing"),
    ("grace: 2h", "layout: {by: scheduled_at, every: 0s}", "18: layout every 0; it must be 1 microsecond or more"),
    ("grace: 2h", "layout: {by: scheduled_at, every: 6 hours}", "18: layout.every: "),
    ("grace: 2h", "layout: {on: scheduled_at, every: 6h}", "18: unknown field 'layout.on'; valid are by, every"),
    ("grace: 2h", "layout: scheduled_at", "18: layout: "),
    ("grace: 2h", "chunks: {max_rows_if_unsorted: 100}", "18: chunks.max_rows_if_unsorted: "),
    ("grace: 2h", "chunks: {max_rows_if_unsorted: 20000}", "18: chunks.max_rows_if_unsorted: "),
    ("grace: 2h", "chunks: {max_rows: 1}", "18: unknown field 'chunks.max_rows'; did you mean 'max_rows_if_unsorted'?"),
    ("name: flights", "name: Flights", "1: name: collection name 'Flights' must match"),
    ("name: flights", "name: 7", "1: name: collection name 7 must match"),
    ("{{ ds }}", "{{ day }}", "11: source.path: path"),
    ("{{ ds }}", "..", "11: source.path: path '{{ landing }}/flights/../*.parquet' holds .."),
    ("ready: exists", "ready: exist", "15: source.ready: 'exist' is not one of exists, always, {marker: NAME}"),
    ("status = 'DELETED'", "status is DELETED", "16: delete_when: expected NULL, found 'DELETED' at position 11"),
    ("status = 'DELETED'", "delay_min = 'DELETED'",
     "16: delete_when compares column delay_min, of type int, with 'DELETED'"),
    ("late: {reemit: {max_lateness: 3d}}", "late: {reemit: {}, discard: {}}", "19: late: write one policy"),
    ("late: {reemit: {max_lateness: 3d}}", "late: {next_window: {max_lateness: 3d}}",
     "19: unknown field 'late.next_window.max_lateness'"),
    ("late: {reemit: {max_lateness: 3d}}", "late: drop",
     "19: late: 'drop' is not one of discard, next_window, {reemit:"),
    ("grace: 2h", "windows: []", "18: windows: belongs to derived collections, which say from"),
    ("grace: 2h", "retention: []", "18: retention: [] is no retention; write all, full_merge"),
    ("grace: 2h", "end: 2015-01-01", "18: field 'end' is written twice"),
    ("ready: exists", "ready: {marker: always}", "15: source.ready: a marker file cannot be called always"),
    ("ready: exists", "path: x", "15: field 'path' is written twice"),
    ("time: {column: reported_at}", "time: reported_at",
     "7: time: 'reported_at' is not one of arrival, {column: NAME}"),
    ("order_by: happened_at", "diff: n", "10: source: diff belongs to the updates envelope, not to upsert"),
    ("envelope: upsert", "envelope: append", "10: order_by belongs to the envelopes upsert and debezium"),
    ("quality: [", "quality: [{}, ", "20: quality.0: "),
    ("grace: 2h", "grace: [2h", "19: not YAML: "),
    ("grace: 2h", "\tgrace: 2h", "18: not YAML: a tab; lines begin with spaces: write two in place of each tab"),
    ("  envelope", "\tenvelope", "13: not YAML: a tab; lines begin with spaces"),
    ('"{{ landing }}/flights/{{ ds }}/*.parquet"', "{{ landing }}/flights/{{ ds }}/*.parquet",
     '11: a text with {{ needs quotes: write "{{ landing }}/flights/{{ ds }}/*.parquet"'),
    ('"{{ landing }}/flights/{{ ds }}/*.parquet"', "{{ ds }}",
     '11: a text with {{ needs quotes: write "{{ ds }}"'),
    ('grace: 2h', "grace: {a: x/{{ds}}/y, b: 1}", '18: a text with {{ needs quotes: write "x/{{ds}}/y"'),
    ('grace: 2h', "grace: [{{ ds | upper }}_{{ ts }}]",
     '18: a text with {{ needs quotes: write "{{ ds | upper }}_{{ ts }}"'),
    ('grace: 2h', "grace: {{ ds", "18: a text with {{ needs quotes: quote it as a whole"),
    ('grace: 2h', 'grace: {x: "{{ ds }}"', "19: not YAML: "),
    ("end: 2014-01-01", "end: 2014-13-01", "6: '2014-13-01' is not a value: month must be in 1..12"),
    ("flight_id: string", "flight_id: string, happened_at: string",
     "4: event_time column happened_at is of type string"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), WRONG, ids=[f"{new}"[:40] for _, new, _ in WRONG])
def test_a_wrong_file_is_refused_in_one_line(path: Path, old: str, new: str, says: str) -> None:
    assert old in FLIGHTS
    assert refusal(path, FLIGHTS.replace(old, new, 1)).startswith(says)


STOCK = """\
name: stock
key: [item]
value: [count]
columns: {item: string, count: int, at: timestamp}
start: 2024-01-01
source:
  path: "{{ landing }}/{{ ds }}/*.csv"
  format: csv
  envelope: snapshot
"""


def test_full_snapshots_say_no_times(path: Path) -> None:
    path.write_text(STOCK.replace(", at: timestamp", ""))
    stock = load(path)
    assert stock.kind is FULL_SNAPSHOT
    assert (stock.landed.time, stock.landed.event_time, stock.landed.inputs) == (None, None, ())
    path.write_text(STOCK.replace(", at: timestamp", "").replace("start:", "time: arrival\nstart:"))
    assert load(path) == stock


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("time: {column: at}\n", "10: time: a full snapshot is true at the last instant of its interval; remove it"),
        (
            "event_time: {column: at}\n",
            "10: event_time: a full snapshot is true at the last instant of its interval; remove it",
        ),
        ("late: discard\n", "10: late: no row of a full snapshot is late; remove it"),
        (
            "  bad_files: quarantine\n",
            "10: bad_files: a full snapshot that lacks a file would delete its rows; remove it",
        ),
        ("  order_by: at\n", "6: order_by belongs to the envelopes upsert and debezium, not to snapshot"),
        ("  delete_when: at IS NULL\n", "6: delete_when belongs to the upsert envelope, not to snapshot"),
        ("  diff: count\n", "6: source: diff belongs to the updates envelope, not to snapshot"),
    ],
)
def test_what_full_snapshots_cannot_have_is_refused_at_its_line(path: Path, more: str, says: str) -> None:
    assert refusal(path, STOCK + more).startswith(says)


def test_of_several_mistakes_the_first_is_named_and_where_the_others_are(path: Path) -> None:
    text = FLIGHTS.replace("key:", "keys:").replace("grace: 2h", "grace: soon")
    assert re.match(r"2: unknown field 'keys'.*\(and 1 mistake more, in line 18\)$", refusal(path, text))
    text = text.replace("ready: exists", "redy: exists")
    assert re.match(r"2: unknown field 'keys'.*\(and 2 mistakes more, in lines 15, 18\)$", refusal(path, text))


def test_a_field_that_is_misspelt_is_not_missing_too(path: Path) -> None:
    """`keys` for `key` is one mistake; a field that nothing is like is missing for itself."""
    assert refusal(path, FLIGHTS.replace("key:", "keys:")).endswith("did you mean 'key'?")
    assert refusal(path, FLIGHTS.replace("  envelope: upsert\n", "  zzz: upsert\n")).endswith(
        "(and 1 mistake more, in line 10)"
    )


@pytest.mark.parametrize("text", ["", "[]", "flights", "- name: flights"])
def test_what_is_no_mapping_is_refused(path: Path, text: str) -> None:
    assert refusal(path, text).startswith("1: a collection file is a mapping")


def test_bytes_that_are_not_text_are_refused_with_their_line(path: Path) -> None:
    path.write_bytes(b"name: x\nkey: [\xff]\n")
    with pytest.raises(InvalidUsage, match=r"flights\.yaml:2: not UTF-8"):
        load(path)


def test_an_alias_that_holds_itself_is_refused(path: Path) -> None:
    assert "refers to something around itself" in refusal(path, "name: &a [*a]\n")


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(InvalidUsage, match="there is no such file"):
        load(path)


UNDECLARED = """\
name: events
key: [id]
value: [amount, day, note, ok]
start: 2013-01-01
time: {column: at}
source: {path: "/data/*", format: %s, envelope: upsert, order_by: seq, delete_when: "op = 'd'"}
"""
INFERRED = {
    "id": ColumnType.INT,
    "amount": ColumnType.FLOAT,
    "day": ColumnType.DATE,
    "note": ColumnType.STRING,
    "ok": ColumnType.BOOL,
    "at": ColumnType.TIMESTAMP,
    "seq": ColumnType.INT,
    "op": ColumnType.STRING,
}


def test_types_are_inferred_once_from_a_first_file(path: Path, tmp_path: Path) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    csv.write_text("id,amount,day,note,ok,at,seq,op\n1,1.5,2013-01-01,x,true,2013-01-01T00:00:00Z,1,u\n")
    row = {"id": [1], "amount": [1.5], "note": ["x"], "ok": [True], "seq": [1], "op": ["u"]}
    times = {"day": pa.array([0], pa.date32()), "at": pa.array([0], pa.timestamp("ns"))}
    pq.write_table(pa.table(row | times), parquet)
    for file, file_format in ((csv, "csv"), (parquet, "parquet")):
        path.write_text(UNDECLARED % file_format)
        types = infer_types(path, str(file))
        assert types == INFERRED
        assert load(path, types=types).type_of("seq") is ColumnType.INT
    with pytest.raises(InvalidUsage, match="no type for column id"):
        load(path)


def test_types_of_json_are_inferred_from_its_values(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"id":1,"amount":1.5,"day":"x","note":"x","ok":true,"at":"2013-01-01 00:00:00","seq":1,"op":"u"}\n'
    )
    path.write_text(UNDECLARED % "jsonl")
    assert infer_types(path, str(file)) == INFERRED | {"day": ColumnType.STRING}


@pytest.mark.parametrize("note", ['{"a":1}', "[]", '[1,"a",{"b":[[]]}]', '{"a":[1,{}]}'])
def test_objects_and_arrays_of_json_are_json(path: Path, tmp_path: Path, note: str) -> None:
    """Also those that no type of Arrow holds."""
    file = tmp_path / "a.jsonl"
    row = '{"id":1,"amount":1.5,"day":"x","note":%s,"ok":true,"at":"2013-01-01 00:00:00","seq":1,"op":"u"}\n'
    file.write_text(row % note + row % '{"a":"b"}' if note.startswith("{") else row % note)
    path.write_text(UNDECLARED % "jsonl")
    assert infer_types(path, str(file)) == INFERRED | {"day": ColumnType.STRING, "note": ColumnType.JSON}


def test_types_of_parquet_are_inferred_with_their_digits(path: Path, tmp_path: Path) -> None:
    columns = {
        "id": pa.array([Decimal("1.50")], pa.decimal128(12, 2)),
        "amount": pa.array([1], pa.decimal256(40, 2)),
        "day": pa.array([b"\xff"]),
        "note": pa.array([{"a": [1]}]),
        "ok": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    others = {"at": [datetime(2013, 1, 1)], "seq": [1], "op": ["u"]}  # noqa: DTZ001
    path.write_text(UNDECLARED % "parquet")
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({**columns, **others}), file)
    with pytest.raises(
        InvalidUsage, match=r"column amount of .* is of type decimal256\(40, 2\), which Tidemark does not"
    ):
        infer_types(path, str(file))
    pq.write_table(pa.table({**columns, **others, "amount": pa.array([b"1234"], pa.binary(4))}), file)
    assert infer_types(path, str(file)) == INFERRED | {
        "id": DecimalType(12, 2),
        "amount": ColumnType.BYTES,
        "day": ColumnType.BYTES,
        "note": ColumnType.JSON,
        "ok": ColumnType.JSON,
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id":1}', "no column amount to infer a type from; it has id"),
        ('{"id":null,"amount":1,"day":1,"note":1,"ok":1,"at":1,"seq":1,"op":1}', "column id of .* holds only nulls"),
        ("null", "its first line is not a JSON object"),
        ("PK\x03\x04", "cannot be read to infer types from: is a zip archive"),
        ('{"id":', "cannot be read to infer types from"),
    ],
)
def test_what_cannot_be_inferred_is_refused(path: Path, tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "a.jsonl").write_text(content + "\n")
    path.write_text(UNDECLARED % "jsonl")
    with pytest.raises(InvalidUsage, match=says):
        infer_types(path, str(tmp_path / "a.jsonl"))


def test_declared_types_win_over_inferred_ones(path: Path) -> None:
    path.write_text(MINIMAL)
    assert load(path, types={"id": ColumnType.STRING}).key == (Column("id", ColumnType.INT, 1),)
    assert parse(path).undeclared == ()
