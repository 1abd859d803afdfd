"""A collection file that changes: what `init` brings in, says and refuses."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EVENTS, PEOPLE, Shell
from tests.cli.test_steps import land_people
from tests.support.graph import Graph
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.derived import Definition, Derived

EVOLVED = PEOPLE.replace("[city, born]", "[tag, town]").replace(
    "city: string, born: date,", "town: {type: string, was: city}, tag: int,"
)


def land_renamed(shell: Shell) -> None:
    """Day 3 under the new names: Ann stays in Bern and has a tag, Cid is new."""
    path = shell.land("people/2024-01-03/a.parquet", b"")
    at = pa.array([datetime(2024, 1, 3, 9, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    columns = {"person": [1, 4], "town": ["Bern", "Cork"], "tag": [7, None], "gone": [False, False]}
    pq.write_table(pa.table({**columns, "happened": at, "reported": at}), path)


def test_columns_change_between_two_days(shell: Shell) -> None:
    land_people(shell)
    land_renamed(shell)
    shell.ok("init", shell.declared(PEOPLE))
    shell.moved("people", "2024-01-01", "2024-01-02")
    said = shell.ok("init", shell.declared(EVOLVED), "--json")
    assert (said.document["outcome"], said.document["columns"]) == (
        "redefined",
        ["renamed city to town", "added tag int", "dropped born date"],
    )
    assert "collection people: dropped born date" in said.err
    assert shell.json("init", shell.declared(EVOLVED))["outcome"] == "nothing to do"
    columns = ["person", "town", "tag", "_multiplicity"]
    (first, *_) = shell.json("as-of", "people")["rows"]
    assert list(first) == columns
    shell.moved("people", "2024-01-03")
    rows = [tuple(row.values()) for row in shell.json("as-of", "people")["rows"]]
    assert rows == [(1, "Bern", 7, 1), (3, "Wien", None, 1), (4, "Cork", None, 1)]
    before = shell.json("as-of", "people", "--time", "2024-01-01T23:59:59.999999Z")["rows"]
    assert [tuple(row.values()) for row in before] == [(1, "Rome", None, 1), (2, "Oslo", None, 1)]
    assert shell.json("verify", "people", "--data")["sound"]


ORDERED = """\
name: readings
key: [id]
value: [size, taken]
columns: {id: string, size: int, taken: timestamp, met: timestamp, heard: timestamp, number: int}
start: 2024-01-01
timelines: [taken]
time: {column: heard}
event_time: {column: met}
source: {path: "{{ landing }}/readings/{{ ds }}/*.csv", format: csv, envelope: upsert, order_by: number}
"""


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (("met", "mett"), "readings.yaml:8: {file} has no column mett; did you mean 'met'?"),
        (("heard", "herd"), "readings.yaml:7: {file} has no column herd; did you mean 'heard'?"),
        (("number", "nubmer"), "readings.yaml:9: {file} has no column nubmer; did you mean 'number'?"),
        (("taken", "tooken"), "readings.yaml:6: {file} has no column tooken; did you mean 'taken'?"),
    ],
)
def test_columns_of_times_are_looked_for_in_the_first_file(shell: Shell, edit: tuple[str, str], says: str) -> None:
    wrong = shell.declared(ORDERED.replace(*edit))
    shell.ok("init", wrong)  # nothing has landed yet
    path = shell.land("readings/2024-01-02/a.csv", "id,size,taken,met,heard,number\n")
    assert shell.refused("init", wrong).endswith(says.format(file=path))
    path.write_bytes(b"")
    assert "was not checked" in shell.ok("init", wrong).err


def test_a_declaration_without_rows_changes_in_every_field(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS))
    other = (
        EVENTS.replace("key: [id]", "key: [name]")
        .replace("id: string", "name: int")
        .replace("column: at", "column: heard")
    )
    other = other.replace("at: timestamp", "heard: timestamp").replace("2024-01-01", "2023-06-01")
    other = other.replace("append", "upsert") + "event_time: {column: heard}\nschedule: '@hourly'\n"
    document = shell.json("init", shell.declared(other))
    assert (document["outcome"], document["columns"]) == ("redefined", ["replaced: no row has come yet"])
    shell.events(1, "a,1,10:00:00")
    shell.ok("init", shell.declared(EVENTS))
    shell.ok("ingest", "events", "--date", "2024-01-01")
    assert "start of collection events cannot change" in shell.refused("init", shell.declared(other))


def test_a_change_that_breaks_what_is_derived_is_refused(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS))
    shell.events(1, "a,1,10:00:00")
    shell.ok("ingest", "events", "--date", "2024-01-01")
    origin = Derived(("events",), Definition("SELECT id, sum(amount) AS amount FROM events GROUP BY id"))
    key, value = (Column("id", ColumnType.STRING),), (Column("amount", ColumnType.INT),)
    Graph(shell.root).declare(Collection("sums", key, value, origin))
    added = shell.declared(
        EVENTS.replace("[amount]", "[amount, more]").replace("amount: int", "amount: int, more: int")
    )
    assert shell.ok("explain", added).out.splitlines() == [
        "events, by `tidemark init`: added more int",
        "sums: same",
    ]
    renamed = shell.declared(
        EVENTS.replace("[amount]", "[size]").replace("amount: int", "size: {type: int, was: amount}")
    )
    needed = (
        "needs an edit: events calls amount size now, write size for it in the definition, and size AS amount where it "
        "is a column of the result"
    )
    assert f"sums: {needed}" in shell.ok("explain", renamed).out
    assert shell.refused("init", renamed) == (
        f"this change of events breaks what is derived from it: sums {needed}. Edit that first, or run "
        "`tidemark init FILE --break-derived`"
    )
    (derived,) = shell.json("init", renamed, "--break-derived")["derived"]
    assert (derived["collection"], derived["follows"]) == ("sums", "needs an edit")


SALES = """\
name: sales
key: [id]
value: [at, until, price, seen]
columns:
  id: int
  at: {type: timestamp, unit: ms, beyond: clip}
  until: {type: timestamp, unit: us}
  price: {type: "decimal(12, 2)", decimals: precise}
  seen: {type: timestamp, timezone: Europe/Oslo, ambiguous: later, optional: true}
start: 2024-01-01
time: arrival
source: {path: "{{ landing }}/sales/{{ ds }}/*.jsonl", format: jsonl, envelope: upsert}
"""
FAR = 9223372036825200000


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "unit: ms",
            "unit: s",
            "unit of column at of collection sales cannot change from ms to s; declare a collection",
        ),
        ("beyond: clip", "beyond: null", "beyond of column at of collection sales cannot change from clip to null; "),
        (", beyond: clip", "", "beyond of column at of collection sales cannot change from clip to nothing; "),
        (
            ", decimals: precise",
            "",
            "decimals of column price of collection sales cannot change from precise to string",
        ),
        (
            "unit: us",
            "unit: us, beyond: null",
            f"cannot change what becomes of far times: batch .* holds {FAR}, beyond ",
        ),
        (", unit: us", "", None),
        (
            "unit: us",
            "unit: us, timezone: Europe/Lisbon",
            "timezone of column until of collection sales cannot change ",
        ),
        (", unit: us", ", format: '%Y%j'", "format of column until of collection sales cannot change from ISO 8601 to"),
        ("unit: us", "unit: us, optional: true, from: [until, U]", None),
        (", ambiguous: later", ", ambiguous: earlier", "ambiguous of column seen of collection sales cannot change f"),
        ("Europe/Oslo", "Europe/Paris", "timezone of column seen of collection sales cannot change from Europe/Oslo t"),
    ],
    ids=lambda word: str(word)[:20],
)
def test_rows_at_rest_keep_the_meaning_that_files_had(shell: Shell, old: str, new: str, says: str | None) -> None:
    row = {"id": 1, "at": 2**62 // 1000, "until": FAR, "price": {"scale": 1, "value": "fQ=="}}
    shell.land("sales/2024-01-01/a.jsonl", json.dumps(row) + "\n")
    shell.ok("init", shell.declared(SALES))
    shell.moved("sales", "2024-01-01")
    (stored,) = shell.json("as-of", "sales")["rows"]
    assert (stored["at"], stored["price"]) == ("9999-12-31T23:59:59.999999Z", "12.50")
    changed = shell.declared(SALES.replace(old, new))
    if says is None:
        shell.ok("init", changed)
    else:
        assert re.search(says, shell.refused("init", changed))


def test_far_times_may_be_bounded_where_none_is_at_rest(shell: Shell) -> None:
    shell.land("sales/2024-01-01/a.jsonl", json.dumps({"id": 1, "at": 1, "until": 2, "price": None}) + "\n")
    shell.ok("init", shell.declared(SALES))
    shell.moved("sales", "2024-01-01")
    shell.ok("init", shell.declared(SALES.replace("unit: us", "unit: us, beyond: null")))


def test_what_rows_cannot_follow_is_refused_in_one_line(shell: Shell) -> None:
    land_people(shell)
    shell.ok("init", shell.declared(PEOPLE))
    shell.moved("people", "2024-01-01")
    narrowed = PEOPLE.replace("born: date", "born: int")
    assert shell.refused("init", shell.declared(narrowed)) == (
        "value column born of collection people cannot change from date to int; add a column of another name, or "
        "declare a collection of another name and ingest the files again to have it so"
    )
    assert shell.json("as-of", "people")["rows"][0]["born"] == "1990-01-01"
