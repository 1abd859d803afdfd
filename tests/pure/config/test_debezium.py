"""Collection files of Debezium sources: fields within messages, what their numbers count, types seen in messages."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.config.collection_file import infer_types, load, parse
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, Envelope
from tidemark.model.kind import KEYED

pytestmark = pytest.mark.pure

CUSTOMERS = """\
name: customers
key: [id]
value: [email, born, seen]
columns: {id: int, email: string, born: date, seen: timestamp}
start: 2013-01-01
time: arrival
event_time: {column: source.ts_ms}
source:
  path: "{{ landing }}/customers/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: debezium
  order_by: source.lsn
  units: {born: days, seen: us}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "customers.yaml"


def test_fields_of_messages_are_read_and_not_kept(path: Path) -> None:
    path.write_text(CUSTOMERS)
    customers = load(path)
    assert customers.kind is KEYED
    assert customers.landed.source.envelope is Envelope.DEBEZIUM
    assert (customers.landed.event_time, customers.landed.source.order_by) == ("source.ts_ms", "source.lsn")
    assert customers.landed.inputs == (
        Column("source.ts_ms", ColumnType.TIMESTAMP),
        Column("source.lsn", ColumnType.INT),
    )
    assert customers.landed.source.units == (("born", "days"), ("seen", "us"))


def test_what_orders_may_be_of_any_declared_type(path: Path) -> None:
    path.write_text(
        CUSTOMERS.replace("source.lsn", "source.gtid").replace("{id: int,", "{id: int, source.gtid: string,")
    )
    assert load(path).type_of("source.gtid") is ColumnType.STRING


WRONG = [
    ("format: jsonl", "format: csv", "8: debezium messages are nested, and csv has no nested values"),
    ("column: source.ts_ms", "column: seen", "7: seen is a column of the key or the value, which no delete has"),
    ("order_by: source.lsn", "order_by: id", "12: id is a column of the key or the value, which no delete has"),
    ("order_by: source.lsn", "order_by: source..lsn", "12: source.order_by: column name 'source..lsn' must match"),
    ("order_by: source.lsn", "delete_when: id = 1", "8: delete_when belongs to the upsert envelope, not to debezium"),
    ("seen: us}", "seen: minutes}", "13: source.units.seen: 'minutes' is not valid; valid are days, s, ms, us, ns"),
    ("seen: us}", "left: us}", "13: column left is in no other field"),
    ("born: days", "born: ms", "4: column born is of type date, and its unit is ms: declare it timestamp"),
    ("seen: us}", "email: us}", "4: column email is of type string, and its unit is us: declare it timestamp"),
    ("{id: int,", "{id: int, source.ts_ms: int,", "4: event_time column source.ts_ms is an int and counts ms"),
    ("envelope: debezium", "envelope: upsert", "13: units belong to the debezium envelope, not to upsert"),
    ("value: [email,", "value: [after.email,", "3: value.0: column name 'after.email' must match"),
]


@pytest.mark.parametrize(("old", "new", "says"), WRONG, ids=[new for _, new, _ in WRONG])
def test_a_wrong_file_is_refused_in_one_line(path: Path, old: str, new: str, says: str) -> None:
    path.write_text(CUSTOMERS.replace(old, new, 1))
    with pytest.raises(InvalidUsage) as caught:
        load(path)
    assert str(caught.value).removeprefix(f"{path}:").startswith(says), caught.value


def test_only_messages_have_fields_within(path: Path) -> None:
    text = CUSTOMERS.replace("  units: {born: days, seen: us}\n", "").replace("debezium", "upsert")
    path.write_text(text)
    with pytest.raises(InvalidUsage, match=r"7: column source\.ts_ms is a field within a message, which only"):
        load(path)


UNTYPED = CUSTOMERS.replace("columns: {id: int, email: string, born: date, seen: timestamp}\n", "")
MESSAGE = {
    "op": "c",
    "before": None,
    "after": {"id": 1, "email": "a@b", "born": 3, "seen": 4},
    "source": {"ts_ms": 5, "lsn": 6},
}


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_types_are_inferred_from_the_after_images(path: Path, tmp_path: Path, wrap: bool, file_format: str) -> None:
    path.write_text(UNTYPED.replace("jsonl", file_format))
    record = {"schema": {"type": "struct"}, "payload": MESSAGE} if wrap else MESSAGE
    sample = tmp_path / "sample"
    if file_format == "parquet":
        pq.write_table(pa.Table.from_pylist([record]), sample)
    else:
        sample.write_text("null\n" + json.dumps(record) + "\n")
    assert parse(path).undeclared == ("id", "email", "born", "seen", "source.lsn")
    types = infer_types(path, str(sample))
    assert types == {
        "id": ColumnType.INT,
        "email": ColumnType.STRING,
        "born": ColumnType.DATE,
        "seen": ColumnType.TIMESTAMP,
        "source.lsn": ColumnType.INT,
    }
    assert load(path, types=types).type_of("source.ts_ms") is ColumnType.TIMESTAMP
