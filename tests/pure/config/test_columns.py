"""The `columns:` section: types, and what value columns were called before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidemark.config.collection_file import load, parse
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, DecimalType

FILE = """\
name: notes
key: [id]
value: [note, day]
columns: %s
start: 2013-01-01
time: {column: at}
source: {path: "/data/*.json", format: json, envelope: append}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.yaml"


def test_columns_are_numbered_as_listed_the_key_first(path: Path):
    path.write_text(FILE % "{day: date, note: {type: string}, id: int}")
    notes = load(path)
    assert notes.key == (Column("id", ColumnType.INT, 1),)
    assert notes.value == (Column("note", ColumnType.STRING, 2), Column("day", ColumnType.DATE, 3))
    assert (notes.dropped, notes.schema, notes.renames) == ((), 0, ())


def test_what_a_column_was_called_is_asked_for(path: Path):
    path.write_text(FILE % "{id: int, note: {type: string, was: remark}, day: {was: made}}")
    assert parse(path).undeclared == ("day",)
    assert load(path, types={"day": ColumnType.DATE}).renames == (("remark", "note"), ("made", "day"))


@pytest.mark.parametrize(("diff", "name"), [("", "diff"), (", diff: change", "change")])
def test_the_diff_of_updates_is_not_to_be_described(path: Path, diff: str, name: str):
    path.write_text(FILE.replace("append", f"updates{diff}") % f"{{id: int, {name}: int}}")
    with pytest.raises(InvalidUsage, match=f"column {name} is the diff of the updates, .*; leave it out"):
        parse(path)
    path.write_text(FILE % "{id: int, diff: int}")
    with pytest.raises(InvalidUsage, match="column diff is in no other field"):
        parse(path)


def test_decimals_bytes_and_json_are_types_of_keys_and_values(path: Path):
    path.write_text(FILE % "\n  id: decimal(38,0)\n  note: {type: 'decimal( 12, 2 )'}\n  day: json")
    declared = load(path)
    assert declared.key == (Column("id", DecimalType(38, 0), 1),)
    assert declared.value == (Column("note", DecimalType(12, 2), 2), Column("day", ColumnType.JSON, 3))


def test_json_is_in_no_order_to_tell_facts_by(path: Path):
    text = FILE.replace("envelope: append", "envelope: upsert, order_by: note")
    path.write_text(text % "{id: int, note: json, day: bytes}")
    with pytest.raises(InvalidUsage, match="order_by column note is json, whose values are in no order"):
        load(path)


def test_messages_say_how_their_decimals_are_written(path: Path):
    text = FILE.replace("envelope: append", "envelope: debezium%s").replace("{column: at}", "{column: source.ts_ms}")
    path.write_text(text % ("{id: int, note: 'decimal(12, 2)', day: int}", ""))
    with pytest.raises(InvalidUsage, match=r"column note is a decimal; say how .* source: \{decimals: precise\}"):
        load(path)
    for written, expected in (("precise", "precise"), ("string", "string"), ("double", "string")):
        path.write_text(text % ("{id: int, note: 'decimal(12, 2)', day: int}", f", decimals: {written}"))
        assert load(path).landed.source.decimals == expected
    path.write_text(FILE.replace("append", "append, decimals: precise") % "{id: int, note: int, day: int}")
    with pytest.raises(InvalidUsage, match="decimals belong to the debezium envelope, not to append"):
        load(path)


def test_an_old_name_declares_no_type(path: Path):
    """So the time is still inferred with the others, not taken for a timestamp."""
    path.write_text(FILE % "{note: {was: remark}}")
    assert parse(path).undeclared == ("id", "note", "day", "at")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("{id: int, note: {was: a}, day: {was: a}}", "column note was a, and day too; correct was"),
        ("{id: int, note: {was: note}}", "column note was note, and note too; correct was"),
        ("{id: {type: int, was: number}}", "column id is not a value column; only those are renamed by was"),
        ("{at: {type: int, was: t}}", "column at is not a value column; only those are renamed by was"),
        ("{id: int, note: {wass: a}}", "unknown field 'columns.note.wass'; did you mean 'was'?"),
        ("{id: int, note: {was: _a}}", "columns.note.was: column name '_a' must match [A-Za-z][A-Za-z0-9_]{0,126}"),
        ("{id: int, note: {type: text}}", "columns.note: 'text' is not valid; did you mean 'string'?"),
        ("{id: 'decimal(39, 2)', note: int}", "columns.id: decimal(39, 2) has 39 digits; a decimal has 1 to 38"),
        (
            "{id: 'decimal(2, 3)', note: int}",
            "columns.id: decimal(2, 3) has 3 digits behind the point; it may have 0 to 2, as many as in all",
        ),
        (
            "{id: 'decimal(2, -1)', note: int}",
            "columns.id: decimal(2, -1) has -1 digits behind the point; it may have 0 to 2, as many as in all",
        ),
        (
            "{id: decimal(12, note: int}",
            (
                "columns.id: 'decimal(12' is no type; write 'decimal(12, 2)': digits in all, digits behind the point "
                "(in quotes within braces)"
            ),
        ),
        (
            "{id: decimal, note: int}",
            (
                "columns.id: 'decimal' is no type; write 'decimal(12, 2)': digits in all, digits behind the point "
                "(in quotes within braces)"
            ),
        ),
        ("{id: byte, note: int}", "columns.id: 'byte' is not valid; did you mean 'bytes'?"),
        ("{id: int, note: 5}", "columns.note: 5 is not one of a type, {type: string, was: NAME}"),
    ],
)
def test_wrong_columns_are_refused_at_their_line(path: Path, columns: str, says: str):
    path.write_text(FILE % columns)
    with pytest.raises(InvalidUsage) as error:
        load(path)
    assert str(error.value) == f"{path}:4: {says}"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("[id]", "[note, diff]", "3: column diff is reserved: `changes` calls its count diff; call it diff_value"),
        ("[Diff]", "[note]", "2: column Diff is reserved: `changes` calls its count diff; call it Diff_value"),
        ("[id]", "[diff, DIFF_VALUE]", "3: column diff is reserved: .*; call it diff_value2"),
        ("[id]", "[note, Note]", "3: columns note and Note differ in case only, which Spark ignores; .* Note_value"),
        ("[id]", "[day, ID]", "3: columns id and ID differ in case only, which Spark ignores; call one ID_value"),
    ],
)
def test_names_that_readers_could_not_distinguish_are_refused_with_another(
    path: Path, key: str, value: str, says: str
) -> None:
    text = FILE.replace("columns: %s\n", "").replace("[id]", key).replace("[note, day]", value)
    path.write_text(text)
    with pytest.raises(InvalidUsage, match=f"^{re.escape(str(path))}:{says}$"):
        parse(path)


def test_what_is_read_and_not_kept_may_be_called_diff(path: Path) -> None:
    path.write_text(FILE.replace("{column: at}", "{column: DIFF}") % "{id: int, note: string, day: date}")
    assert load(path).landed.time == "DIFF"
