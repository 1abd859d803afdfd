"""`source.only` in collection files: which fields it may look at, and the types of those that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidemark.config.collection_file import infer_types, load
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType

pytestmark = pytest.mark.pure

FILE = """\
name: people
key: [id]
value: [city, seen]
start: 2024-01-01
time: arrival
source:
  path: "/data/*.json"
  format: json
  envelope: {envelope}
  only: {only}
"""
TYPES = "columns: {id: int, city: string, seen: timestamp, kind: string, at: date}\n"
OF_MESSAGES = "columns: {id: int, city: string, seen: timestamp}\nevent_time: {column: source.ts_ms}\n"
SNAPSHOT = ("time: arrival\n", "")


def loaded(folder: Path, envelope: str, only: str, types: str = TYPES) -> Collection:
    path = folder / "people.yaml"
    used = re.sub(r", (kind|at): \w+", lambda match: match[0] if match[1] in only else "", types)
    text = FILE.format(envelope=envelope, only=json.dumps(only)) + used
    path.write_text(text.replace(*SNAPSHOT) if envelope == "snapshot" else text)
    return load(path)


ALLOWED = [
    *[(each, "kind = 'p' AND at >= '2024-01-01'") for each in ("append", "updates", "upsert", "snapshot")],
    *[(each, "city = 'Porto' OR seen IS NULL") for each in ("append", "updates", "snapshot")],
    ("upsert", "id < 5"),
]


@pytest.mark.parametrize(("envelope", "only"), ALLOWED)
def test_rows_are_chosen_by_any_column_but_values_that_change(tmp_path: Path, envelope: str, only: str) -> None:
    collection = loaded(tmp_path, envelope, only)
    assert collection.landed.source.only == only
    assert {column.name for column in collection.landed.inputs} <= {"kind", "at"}


def test_fields_of_messages_are_what_they_are_compared_with_unless_declared(tmp_path: Path) -> None:
    only = "source.db = 'shop' AND source.server_id IN (1, 2) AND source.ts_ms >= '2024-01-01' AND op IS NOT NULL"
    collection = loaded(tmp_path, "debezium", only, OF_MESSAGES)
    assert set(collection.landed.inputs) == {
        Column("source.ts_ms", ColumnType.TIMESTAMP),
        Column("source.db", ColumnType.STRING),
        Column("source.server_id", ColumnType.INT),
        Column("op", ColumnType.STRING),
    }


DERIVED = "a row that no longer fits would stay as it was; .* a derived collection: from: people, select: SELECT"
REFUSED = [
    ("upsert", "city = 'Porto'", f"only: city is a column of the value, and can change: {DERIVED}"),
    ("debezium", "city = 'Porto'", f"only: city is a column of the value, and can change: {DERIVED}"),
    ("debezium", "id = 5", "only: id is in the images of messages, and can change"),
    ("debezium", "after.kind = 'p'", "only: after.kind is in the images of messages"),
    ("debezium", "before.id = 5", "only: before.id is in the images of messages"),
    ("debezium", "source.table LIKE 'p%'", r"only: expected a comparison, .* \(conditions have no LIKE\)"),
    ("debezium", "source.table =", "only: expected a text in single quotes"),
    ("debezium", "source..table = 'x'", r"only: '\.' is not understood"),
    ("append", "kind = 5", "only compares column kind, of type string, with 5; write a text in single quotes"),
    ("append", "source.table = 'x'", "column source.table is a field within a message, which only the debezium"),
    ("append", "tier = 'x'", "no type for column tier"),
    ("append", "__table = 'x'", "column name '__table' must match"),
]


@pytest.mark.parametrize(("envelope", "only", "says"), REFUSED)
def test_what_it_may_not_be_is_refused_at_its_line(tmp_path: Path, envelope: str, only: str, says: str) -> None:
    with pytest.raises(InvalidUsage, match=r"people.yaml:\d+: .*" + says):
        loaded(tmp_path, envelope, only, OF_MESSAGES if envelope == "debezium" else TYPES)


def test_types_are_inferred_from_the_rows_that_are_taken(tmp_path: Path) -> None:
    path, file = tmp_path / "people.yaml", tmp_path / "a.json"
    path.write_text(FILE.format(envelope="debezium", only="\"source.table = 'people'\""))
    images = [
        ("orders", {"id": "text", "city": {"n": 1}}),
        ("people", {"id": 1, "city": "Porto", "seen": "2024-01-01"}),
    ]
    said = [{"op": "c", "after": image, "source": {"table": table, "ts_ms": 1}} for table, image in images]
    file.write_text("".join(json.dumps(each) + "\n" for each in said))
    types = infer_types(path, str(file))
    assert (types["id"], types["city"]) == (ColumnType.INT, ColumnType.STRING)


def test_a_long_number_in_a_row_that_is_left_out_is_no_column_s(tmp_path: Path) -> None:
    path, file = tmp_path / "people.yaml", tmp_path / "a.json"
    path.write_text(FILE.format(envelope="debezium", only="\"source.table = 'people'\""))
    images = [("orders", {"id": 1, "city": 2**64 + 1, "seen": 1.5}), ("people", {"id": 1, "city": 1.5, "seen": 1.5})]
    said = [{"op": "c", "after": image, "source": {"table": table, "ts_ms": 1}} for table, image in images]
    file.write_text("".join(json.dumps(each) + "\n" for each in said))
    assert infer_types(path, str(file))["city"] is ColumnType.FLOAT
    file.write_text("".join(json.dumps(each).replace("orders", "people") + "\n" for each in said))
    with pytest.raises(InvalidUsage, match=r'city .* a float would round; .*\{city: "decimal\(20, 0\)"\}'):
        infer_types(path, str(file))
