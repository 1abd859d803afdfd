"""Where columns are in files, and how their values are written there, in a collection file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.config.collection_file import infer_types, load
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType

pytestmark = pytest.mark.pure

SALES = """\
name: sales
key: [day, id]
value: [at, price, note]
columns:
  day: {type: date, unit: days, beyond: refuse}
  id: int
  at: {type: timestamp, unit: ms, beyond: null}
  price: {type: "decimal(12, 2)", decimals: double}
  seen: {type: timestamp, unit: ns, beyond: clip}
  note: string
start: 2024-01-01
time: arrival
event_time: {column: seen}
source: {path: "{{ landing }}/sales/{{ ds }}/*.csv", format: csv, envelope: upsert}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sales.yaml"


def test_words_of_columns_are_what_the_collection_declares(path: Path) -> None:
    path.write_text(SALES)
    source = load(path).landed.source
    assert source.units == (("day", "days"), ("at", "ms"), ("seen", "ns"))
    assert source.beyond == (("day", "refuse"), ("at", "null"), ("seen", "clip"))
    assert source.column_decimals == (("price", "string"),)
    assert [source.decimals_of(name) for name in ("price", "id")] == ["string", "string"]


def test_both_spellings_of_a_unit_are_one_declaration(path: Path) -> None:
    """And a column's decimals go before those of the source."""
    messages = SALES.replace("csv, envelope: upsert", "jsonl, envelope: debezium, order_by: [], decimals: precise")
    messages = messages.replace("seen", "source.seen").replace("*.csv", "*.jsonl")
    path.write_text(messages)
    in_columns = load(path)
    source = in_columns.landed.source
    assert (source.decimals_of("price"), source.decimals_of("other")) == ("string", "precise")
    for setting, says in (
        ("''", "a text is expected, found"),
        ("'hex:'", "has no bytes"),
        ("'hex:zz'", "bytes of UTF-8"),
    ):
        path.write_text(messages.replace("order_by", f"unavailable: {setting}, order_by"))
        with pytest.raises(InvalidUsage, match=says):
            load(path)
    path.write_text(messages.replace(", unit: ms", "").replace("order_by", "units: {at: ms}, order_by"))
    assert sorted(load(path).landed.source.units) == sorted(in_columns.landed.source.units)


WRONG = [
    (
        "envelope: upsert",
        "envelope: upsert, unavailable: x",
        "14: unavailable belongs to the debezium envelope, not to",
    ),
    ("unit: ms", "unit: minutes", "7: columns.at.unit: 'minutes' is not valid; valid are days, s, ms, us, ns"),
    ("unit: ms", "unit: days", "7: column at is of type timestamp, and its unit is days: declare it date"),
    ("unit: days", "unit: s", "5: column day is of type date, and its unit is s: declare it timestamp"),
    ("id: int", "id: {type: int, unit: ms}", "6: column id is of type int, and its unit is ms: declare it timestamp"),
    ("beyond: null", "beyond: none", "7: columns.at.beyond: 'none' is not valid; valid are refuse, null, clip"),
    ("id: int", "id: {type: int, beyond: clip}", "6: column id is of type int, and beyond belongs to a timestamp or"),
    (
        "beyond: refuse",
        "beyond: clip",
        "5: column day is a key, and beyond: clip would make one of several; write refus",
    ),
    (
        "beyond: refuse",
        "beyond: null",
        "5: column day is a key, and beyond: null would make one of several; write refus",
    ),
    ("beyond: clip", "beyond: null", "9: column seen says when rows are, and is never null; write beyond: refuse or"),
    ("id: int", "id: {type: int, decimals: precise}", "6: column id is of type int, and decimals belong to a decimal("),
    ("decimals: double", "decimals: exact", "8: columns.price.decimals: 'exact' is not valid; valid are precise,"),
    ("{type: timestamp, unit: ms", "{type: timestamp, units: ms", "7: unknown field 'columns.at.units'; did you mean"),
    (
        "envelope: upsert",
        "envelope: upsert, units: {at: ms}",
        "7: column at has the unit ms here and ms in source.unit",
    ),
    ("id: int", "id: {type: int, from: [a, a]}", "6: columns.id.from: 'a' is named twice"),
    ("id: int", "id: {type: int, from: []}", "6: columns.id.from: name one field or more"),
    ("id: int", "id: {type: int, from: 16:00}", "6: 16:00 is a number to the base 60 in YAML 1.1; quote it"),
    ("id: int", "id: {type: int, from: no}", "6: columns.id.from: a name is text, and no is false in YAML; quote it"),
    ("id: int", "id: {type: int, from: [a, 1]}", "6: columns.id.from: a name is text, and 1 is none in YAML; quote it"),
    ("id: int", "id: {type: int, optional: true}", "6: column id is a key, and never null; remove optional"),
    ("id: int", "id: {type: int, optional: 'yes'}", "6: columns.id.optional: true or false is expected, found 'yes'"),
    ("beyond: clip", "optional: true", "9: column seen is a time, and never null; remove optional"),
    ("note: string", "note: {from: a, from_path: b}", "10: column note has from and from_path; write one of them"),
    (
        "note: string",
        "note: {from_path: a=b}",
        "10: columns.note.from_path: 'a=b' is neither the name in a folder NAME",
    ),
    (
        "note: string",
        "note: {from_path: '(a)(b)'}",
        "10: columns.note.from_path: a pattern of at most 500 characters w",
    ),
    (
        "note: string",
        "note: {from_path: '(a'}",
        "10: columns.note.from_path: '(?P<value>a' is not a regular expression",
    ),
    (
        "note: string",
        "note: {timezone: Lisbon}",
        "10: columns.note.timezone: time zone 'Lisbon' is not known; write on",
    ),
    (
        "note: string",
        "note: {type: string, timezone: UTC}",
        "10: column note is of type string, and timezone belongs to",
    ),
    (
        "note: string",
        "note: {type: string, format: '%Y'}",
        "10: column note is of type string, and format belongs to a",
    ),
    ("note: string", "note: {type: date, format: '%d/%m'}", "10: format '%d/%m' does not say which day it is"),
    (
        "note: string",
        "note: {type: date, format: '%Y-%m-%d %H'}",
        "10: format '%Y-%m-%d %H' has %H, and the column is a",
    ),
    (
        "note: string",
        "note: {type: timestamp, format: '%D'}",
        "10: format '%D' has %D, which is no code here; the codes",
    ),
    ("note: string", "note: {type: timestamp, format: '%Y%j%M'}", "10: format '%Y%j%M' has %M without %H or %I"),
    (
        "unit: ms",
        "unit: ms, format: '%Y%j'",
        "7: column at has format, of texts, and unit, of numbers; write one of them",
    ),
    ("unit: ms", "unit: ms, ambiguous: later", "7: column at has ambiguous without a timezone; write timezone, too"),
    (
        "note: string",
        "note: {type: timestamp, timezone: UTC, format: '%Y%j %H%z'}",
        "10: column note has a timezone, and %z in its format, which is an offset; write one of them",
    ),
    ("envelope: upsert", "envelope: upsert, decimals: precise", "14: decimals belong to the debezium envelope, not to"),
]


@pytest.mark.parametrize(("old", "new", "says"), WRONG, ids=[f"{old} -> {new}" for old, new, _ in WRONG])
def test_a_wrong_word_is_refused_in_one_line(path: Path, old: str, new: str, says: str) -> None:
    path.write_text(SALES.replace(old, new, 1))
    with pytest.raises(InvalidUsage) as caught:
        load(path)
    assert str(caught.value).removeprefix(f"{path}:").startswith(says), caught.value


@pytest.mark.parametrize(
    "word",
    [
        *("unit: ms", "beyond: clip", "decimals: precise", "from: a", "from_path: a", "optional: true"),
        *("timezone: UTC", "format: '%Y%j'"),
    ],
)
def test_a_computed_column_is_written_by_no_file(path: Path, word: str) -> None:
    path.write_text(f"name: days\nfrom: sales\nselect: SELECT id, at FROM sales\ncolumns:\n  at: {{{word}}}\n")
    with pytest.raises(
        InvalidUsage, match=rf"5: {word.partition(':')[0]} says how files write a column, and at is comp"
    ):
        load(path)


def test_types_are_inferred_of_fields_by_other_names(path: Path, tmp_path: Path) -> None:
    """And a column that says how its times are written is one of times; one of the path is a text."""
    columns = (
        "{id: {from: 'Id (new)'}, a: {from: address.city}, b: {format: '%d/%m/%Y'}, "
        "c: {timezone: Europe/Lisbon}, region: {from_path: region}}"
    )
    (tmp_path / "a.csv").write_text("Id (new),address.city,b,c\n1,x,31/12/2024,2024-01-01 12:00\n")
    row = {"Id (new)": 1, "address": {"city": "x"}, "b": "31/12/2024", "c": "2024-01-01 12:00"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    for form in ("csv", "jsonl"):
        path.write_text(
            f"name: sales\nkey: [id]\nvalue: [a, b, c, region]\ncolumns: {columns}\nstart: 2024-01-01\ntime: arrival\n"
            f"source: {{path: '{{{{ landing }}}}/*', format: {form}, envelope: append}}\n"
        )
        types = infer_types(path, str(tmp_path / f"a.{form}"))
        assert types == {"id": "int", "a": "string", "b": "date", "c": "timestamp"}
        assert load(path, types=types).type_of("region") is ColumnType.STRING


def test_an_inferred_number_with_a_unit_is_a_time(path: Path, tmp_path: Path) -> None:
    path.write_text(SALES.replace("type: timestamp, unit: ms", "unit: ms"))
    (tmp_path / "a.csv").write_text("day,id,at,price,seen,note\n1,1,5,1.5,5,x\n")
    assert infer_types(path, str(tmp_path / "a.csv")) == {"at": ColumnType.TIMESTAMP}


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 12345678901234567890, 10**39 + 1])
def test_a_whole_number_that_a_float_would_round_is_not_inferred(path: Path, tmp_path: Path, number: int) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"id": each}) + "\n" for each in (7, number)))
    path.write_text(
        "name: sales\nkey: [id]\nstart: 2024-01-01\ntime: arrival\n"
        "source: {path: '{{ landing }}/*', format: jsonl, envelope: append}\n"
    )
    needed = '"decimal(20, 0)"' if number < 10**20 else "json"
    with pytest.raises(InvalidUsage) as caught:
        infer_types(path, str(file))
    assert f"holds {number}, a whole number that a float would round; declare" in str(caught.value)
    assert str(caught.value).endswith(f"columns: {{id: {needed}}}")
