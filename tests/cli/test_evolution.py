"""A collection file that changes: what `init` brings in, says and refuses."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.conftest import PEOPLE, Shell
from tests.cli.test_steps import land_people

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
