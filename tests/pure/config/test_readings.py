"""How the values of a column are written, in a collection file: unit, beyond and decimals."""

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
    path.write_text(messages.replace(", unit: ms", "").replace("order_by", "units: {at: ms}, order_by"))
    assert sorted(load(path).landed.source.units) == sorted(in_columns.landed.source.units)


WRONG = [
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
    ("envelope: upsert", "envelope: upsert, decimals: precise", "14: decimals belong to the debezium envelope, not to"),
]


@pytest.mark.parametrize(("old", "new", "says"), WRONG, ids=[f"{old} -> {new}" for old, new, _ in WRONG])
def test_a_wrong_word_is_refused_in_one_line(path: Path, old: str, new: str, says: str) -> None:
    path.write_text(SALES.replace(old, new, 1))
    with pytest.raises(InvalidUsage) as caught:
        load(path)
    assert str(caught.value).removeprefix(f"{path}:").startswith(says), caught.value


@pytest.mark.parametrize("word", ["unit: ms", "beyond: clip", "decimals: precise"])
def test_a_computed_column_is_written_by_no_file(path: Path, word: str) -> None:
    path.write_text(f"name: days\nfrom: sales\nselect: SELECT id, at FROM sales\ncolumns:\n  at: {{{word}}}\n")
    with pytest.raises(
        InvalidUsage, match=rf"5: {word.partition(':')[0]} says how files write a column, and at is comp"
    ):
        load(path)


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
