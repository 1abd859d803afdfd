"""Files of derived collections: what a right one becomes, and the one line each wrong one gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.shipped import collection_files
from tidemark.config.collection_file import load, parse
from tidemark.config.derived_file import DerivedFile
from tidemark.config.inputs import wrong_inputs
from tidemark.config.origin import LANDED as LANDED_ALONE
from tidemark.config.origin import misplaced
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, DecimalType
from tidemark.model.derived import Definition, Derived, Refresh, Validity
from tidemark.model.instant import parse_duration
from tidemark.model.retention import KEEP_ALL

pytestmark = pytest.mark.pure
PROJECT = Path(__file__).resolve().parents[3]

DELAYS = """\
name: delays_by_carrier
from: [flights, carriers]
select: |
  SELECT carrier, date(scheduled_at) AS day, count(*) AS flights, avg(delay) AS delay FROM flights
  JOIN carriers USING (carrier) GROUP BY ALL
"""
SELECT = DELAYS.partition("select: |\n")[2].strip().replace("\n  ", "\n")
ALL = """\
key: [carrier, day]
columns: {delay: "decimal(12, 2)"}
refresh: incremental
history: 1d
max_lag: 30d
retention: [{keep: all, for: 7d}, {keep: 1d}]
live_batches: 5
compact_ahead: false
dag: own
quality: [{expect_column_values_to_not_be_null: {column: flights}}]
"""
SHAPE = (
    Column("carrier", ColumnType.STRING),
    Column("day", ColumnType.DATE),
    Column("flights", ColumnType.INT),
    Column("delay", ColumnType.FLOAT),
)
LANDED = """\
name: flights
key: [id]
columns: {id: int}
start: 2013-01-01
time: arrival
source: {path: "/data/*.json", format: json, envelope: append}
"""


def derived(folder: Path, text: str) -> DerivedFile:
    path = folder / "delays.yaml"
    path.write_text(text)
    file = parse(path)
    assert isinstance(file, DerivedFile)
    return file


def refusal(folder: Path, text: str) -> str:
    """The one line a file is refused with, its path taken off: `12: message`."""
    path = folder / "delays.yaml"
    path.write_text(text)
    with pytest.raises(InvalidUsage) as caught:
        parse(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:"), message
    return message.removeprefix(f"{path}:")


def test_a_file_says_its_name_its_inputs_and_its_definition_without_types(tmp_path: Path) -> None:
    file = derived(tmp_path, DELAYS)
    assert (file.name, file.inputs, file.own_dag, file.key) == (
        "delays_by_carrier",
        ("flights", "carriers"),
        False,
        None,
    )
    assert file.origin == Derived(("flights", "carriers"), Definition(select=SELECT))


def test_one_input_needs_no_list(tmp_path: Path) -> None:
    assert derived(tmp_path, "name: late\nfrom: flights\nselect: SELECT * FROM flights\n").inputs == ("flights",)


def test_everything_it_may_say(tmp_path: Path) -> None:
    file = derived(tmp_path, DELAYS + ALL)
    assert (file.origin.refresh, file.own_dag, file.key) == (Refresh.INCREMENTAL, True, ("carrier", "day"))
    assert (file.origin.history, file.origin.max_lag) == (parse_duration("1d"), parse_duration("30d"))
    built = file.collection(SHAPE)
    assert [(c.name, c.type) for c in built.key] == [("carrier", ColumnType.STRING), ("day", ColumnType.DATE)]
    assert [(c.name, c.type) for c in built.value] == [("flights", ColumnType.INT), ("delay", DecimalType(12, 2))]
    assert (built.live_batches, built.compact_ahead, built.retention == KEEP_ALL) == (5, False, False)
    assert built.origin == file.origin
    assert built.quality == ('{"expect_column_values_to_not_be_null":{"column":"flights"}}',)


def test_the_key_may_be_the_one_the_definition_shows(tmp_path: Path) -> None:
    file = derived(tmp_path, DELAYS)
    assert [c.name for c in file.collection(SHAPE, ("day", "carrier")).key] == ["day", "carrier"]
    grouped = (Column("f", ColumnType.FLOAT), Column("n", ColumnType.INT))
    with pytest.raises(InvalidUsage, match=r"delays.yaml:3: no key: .*, and f is a float, .* group by CAST\(f AS dec"):
        file.collection(grouped, None)
    several = (Column("carrier", ColumnType.STRING), Column("n", ColumnType.INT), Column("f", ColumnType.FLOAT))
    said = r"delays.yaml:3: no key: the definition shows the key \[carrier, f\], and f is a float, .* CAST\(f AS dec"
    with pytest.raises(InvalidUsage, match=said):
        file.collection(several, ("carrier", "f"))
    with pytest.raises(InvalidUsage, match=r"delays.yaml:3: no key: .* write key: \[carrier\]"):
        file.collection(SHAPE)


def test_a_python_definition_has_a_version_and_may_be_computed_by_columns(tmp_path: Path) -> None:
    text = "name: delays\nfrom: flights\npython: my_definitions:delays\nversion: 3\nby: [carrier]\n"
    assert derived(tmp_path, text).origin.definition == Definition(
        function="my_definitions:delays", version="3", by=("carrier",)
    )


def test_rows_may_be_there_for_a_while(tmp_path: Path) -> None:
    text = "name: offers\nfrom: prices\nselect: SELECT * FROM prices\n"
    assert derived(tmp_path, text + "valid_from: a\nvalid_to: b\n").origin.validity == Validity("a", "b")
    month = Validity("a", valid_for=parse_duration("30d"))
    assert derived(tmp_path, text + "valid_from: a\nvalid_for: 30d\n").origin.validity == month
    assert derived(tmp_path, text).origin.validity is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("schedule: '@daily'", "5: schedule: the collection is derived (from: ...): it has no schedule"),
        (
            "timezone: Asia/Tokyo",
            "5: timezone: the collection is derived (from: ...): it is complete by the boundaries",
        ),
        ("source: {}", "5: source: the collection is derived (from: ...): it has no source"),
        ("time: arrival", "5: time: the collection is derived"),
        ("event_time: {column: a}", "5: event_time: the collection is derived"),
        ("late: discard", "5: late: the collection is derived (from: ...): it has no late rows"),
        ("reprocess_for: 30d", "5: reprocess_for: the collection is derived (from: ...): it follows every correction"),
        ("corrected_share: 0.1", "5: corrected_share: the collection is derived"),
        ("grace: 1h", "5: grace: the collection is derived"),
        ("start: 2013-01-01", "5: start: the collection is derived"),
        ("end: 2013-01-01", "5: end: the collection is derived"),
        ("value: [a]", "5: value: the collection is derived"),
        ("refres: auto", "5: unknown field 'refres'; did you mean 'refresh'?"),
        ("inputs: [flights]", "5: unknown field 'inputs'"),
        ("refresh: always", "5: refresh: 'always' is not valid; valid are auto, incremental, whole"),
        ("refresh: incremental\npython: a:b", "6: a definition is a select, a python function or windows, exactly one"),
        ("version: 1", "5: version and by belong to python definitions"),
        ("by: [carrier]", "5: version and by belong to python definitions"),
        ("key: []", "5: key: "),
        ("key: [a, b, a]", "5: column a is named twice in key"),
        ("history: soon", "5: history: "),
        ("max_lag: 0", "5: max_lag is 0"),
        ("valid_from: a\nvalid_for: 0", "6: valid_for is 0"),
        ("valid_for: 30d", "5: valid_for counts from valid_from: name the column"),
        ("valid_for: 1d\nvalid_to: a", "5: valid_for and valid_to both say until when"),
        ("windows: {}", "5: field 'windows.on' is missing"),
    ],
)
def test_what_a_derived_collection_cannot_say_is_refused_at_its_line(tmp_path: Path, written: str, said: str) -> None:
    text = "name: d\nfrom: [a]\nselect: SELECT * FROM a\n\n"
    assert refusal(tmp_path, f"{text}{written}\n").startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: d\nform: [a]\nselect: SELECT 1\n", "2: unknown field 'form'; did you mean 'from'?"),
        ("name: d\nselect: SELECT 1\n", "1: field 'from' is missing"),
        ("name: d\nfrom: [a]\n", "2: a definition is a select, a python function or windows, exactly one of them"),
        ("name: d\nfrom: [a]\nselect: ''\n", "3: select: a select is a query of Spark SQL, found ''"),
        ("name: d\nfrom: [a, b, a]\nselect: SELECT 1\n", "2: from: input a is named twice"),
        ("name: d\nfrom: []\nselect: SELECT 1\n", "2: from: [] is not one of"),
        ("name: d\nfrom: [A-b]\nselect: SELECT 1\n", "2: from.0: collection name 'A-b' must match"),
        ("name: d\nfrom: [a, d]\nselect: SELECT 1\n", "2: d is computed from itself"),
        ("name: d\nfrom: [a]\npython: delays\nversion: '1'\n", "3: python: 'delays' names no function"),
        ("name: d\nfrom: [a]\npython: m:f\n", "3: python definition m:f has no version"),
        ("name: d\nfrom: [a]\npython: m:f\nversion: 1.10\n", "4: version: version 1.1 is a number with a point"),
        ("name: d\nfrom: [a]\npython: m:f\nversion: '1'\nrefresh: incremental\n", "5: refresh: incremental, but"),
        ("name: d\nfrom: [a]\nselect: SELEC * FROM a\n", "3: the select "),
        ("name: d\nfrom: [a]\nselect: SELECT now() FROM a\n", "3: the select "),
        ("name: d\nfrom: [a]\nselect: SELECT 1\n", "3: the select reads no collection"),
        ("name: d\nfrom: [orders]\nselect: SELECT * FROM ordres\n", "3: the select reads ordres, which from does not"),
        ("name: d\nfrom: [a, b]\nselect: SELECT * FROM a\n", "2: from names b, which the select does not read"),
    ],
)
def test_a_wrong_derived_file_is_refused_at_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


@pytest.mark.parametrize("field", ["refresh: auto", "history: 1d", "max_lag: 3d", "select: SELECT 1", "valid_for: 1d"])
def test_what_only_derived_collections_say_is_refused_of_landed_ones(tmp_path: Path, field: str) -> None:
    name = field.partition(":")[0]
    assert refusal(tmp_path, f"{LANDED}{field}\n").startswith(f"7: {name}: belongs to derived collections")


def test_columns_the_definition_does_not_give_are_refused_with_the_nearest(tmp_path: Path) -> None:
    for said, message in (
        ("key: [carier]", r"delays.yaml:6: the definition has no column carier; did you mean 'carrier'"),
        ("columns: {dealy: int}", r"delays.yaml:6: the definition has no column dealy; did you mean 'delay'"),
        ("timelines: [at]", r"delays.yaml:6: the definition has no column at"),
        ("quality: [{expect_column_values_to_not_be_null: {column: gone}}]", r"delays.yaml:6: .*gone"),
    ):
        with pytest.raises(InvalidUsage, match=message):
            derived(tmp_path, f"{DELAYS}{said}\n").collection(SHAPE, ("carrier", "day"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("valid_from: dya", "5: the definition has no column dya; did you mean 'day'?"),
        ("valid_to: carrier", "5: valid_to is the column carrier, a string; it must be a time"),
    ],
)
def test_times_of_validity_are_columns_of_times(tmp_path: Path, said: str, message: str) -> None:
    text = f"name: offers\nfrom: prices\nselect: SELECT * FROM prices\nkey: [carrier]\n{said}\n"
    with pytest.raises(InvalidUsage, match=re.escape(message)):
        derived(tmp_path, text).collection(SHAPE)


def test_a_key_is_never_a_float(tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match=r"delays.yaml:6: key column delay is a float"):
        derived(tmp_path, f"{DELAYS}key: [delay]\n").collection(SHAPE)


def test_the_types_of_a_derived_collection_are_not_asked_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "delays.yaml"
    path.write_text(DELAYS)
    with pytest.raises(InvalidUsage, match=r"delays.yaml:2: delays_by_carrier is derived: .* run `tidemark init"):
        load(path)


def files(folder: Path, **inputs: str) -> list[DerivedFile]:
    """Files of derived collections, each with its inputs: `a="b, c"`."""
    return [
        derived(folder, f"name: {name}\nfrom: [{some}]\nselect: SELECT * FROM {some.replace(',', ' CROSS JOIN ')}\n")
        for name, some in inputs.items()
    ]


def test_inputs_are_declared_in_the_folder(tmp_path: Path) -> None:
    some = files(tmp_path, delays="flihgts", names="flights, carriers")
    wrong = wrong_inputs(some, ["flights", "carriers"])
    assert {name: str(error).partition("delays.yaml")[2] for name, error in wrong.items()} == {
        "delays": ":2: from: no file declares the collection flihgts; did you mean 'flights'?"
    }


def test_cycles_are_refused_in_each_file_of_them_and_nowhere_else(tmp_path: Path) -> None:
    some = files(tmp_path, a="b", b="flights, c", c="a", reads_it="a", outside="flights")
    wrong = wrong_inputs(some, ["flights"])
    assert sorted(wrong) == ["a", "b", "c"]
    assert str(wrong["a"]).endswith(
        "delays.yaml:2: from: a is computed from b, that from c, that from a: no collection is computed from itself"
    )


def test_diamonds_are_no_cycles(tmp_path: Path) -> None:
    assert wrong_inputs(files(tmp_path, left="flights", right="flights", both="left, right"), ["flights"]) == {}


def test_a_cycle_of_many_is_reported_shortly(tmp_path: Path) -> None:
    some = files(tmp_path, **{f"c{at}": f"c{(at + 1) % 100}" for at in range(100)})
    assert str(wrong_inputs(some)["c0"]).partition("from: ")[2].startswith("c0 is computed from c1, that from c2, ")
    assert len(str(wrong_inputs(some)["c0"])) < 400


def test_the_files_of_the_project_and_of_its_how_to_are_right(tmp_path: Path) -> None:
    found = [parse(path) for path in collection_files()]
    assert wrong_inputs(found) == {}
    page = (PROJECT / "docs" / "how-to" / "derived-collections.md").read_text(encoding="utf-8")
    for text in re.findall(r"```yaml\n(name: .*?)```", page, re.DOTALL):
        shown = derived(tmp_path, text)
        assert shown.origin == next(file.origin for file in found if file.name == shown.name)


@pytest.mark.parametrize("field", sorted(LANDED_ALONE))
def test_each_field_of_collections_that_land_is_refused_with_what_holds_instead(field: str) -> None:
    assert misplaced({"from": "flights", field: "x"}) is not None
