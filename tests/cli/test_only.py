"""Whose rows a source takes: what `only` leaves out is counted wherever rows are, and a second table is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from support.relanded import relanded
from tests.cli.conftest import Shell
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Redefined
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.local import LocalStore

PEOPLE = """\
name: people
key: [id]
value: [city]
columns: {id: int, city: string}
start: 2024-01-01
time: arrival
event_time: {column: source.ts_ms}
late: {reemit: {}}
reprocess_for: 30d
source:
  path: "{{ landing }}/people/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: debezium
"""
TABLE = "source.db = 'shop' AND source.table = 'people'"
ONLY = f'{PEOPLE}  only: "{TABLE}"\n'
NEW_YEAR = 1_704_067_200_000


def said(id: int, city: str, table: str = "people", at: int = 0) -> str:
    source = {"connector": "postgresql", "db": "shop", "table": table, "ts_ms": NEW_YEAR + at, "lsn": at + 1}
    return json.dumps({"op": "c", "before": None, "after": {"id": id, "city": city}, "source": source}) + "\n"


def rows(shell: Shell) -> list[tuple[Any, ...]]:
    return [(row["id"], row["city"]) for row in shell.json("as-of", "people")["rows"]]


def test_what_is_left_out_is_counted_everywhere(shell: Shell) -> None:
    shell.ok("init", shell.declared(ONLY))
    shell.land(
        "people/2024-01-01/a.jsonl", said(7, "Porto") + said(7, "x", "orders") + said(9, "y", "orders", -(10**9))
    )
    done = shell.ok("ingest", "people", "--date", "2024-01-01", "--json").document["results"][0]
    assert (done["rows"], done["left_out"], done["late_discarded"]) == (1, 2, 0), "what is left out is not late"
    shell.land("people/2024-01-02/a.jsonl", said(8, "z", "orders", 86_400_000))
    assert "rows 0, files 1, left out 1" in shell.ok("ingest", "people", "--date", "2024-01-02").out
    shell.moved("people")
    assert rows(shell) == [(7, "Porto")]
    log = shell.ok("log", "people").out
    assert "1 row of 1 file as" in log
    assert "2 left out by `only`" in log
    assert "no rows, 1 left out by `only`" in log, "a day without rows is not an empty one"
    assert shell.json("status", "people")["left_out"] == 3
    assert "3 rows that `only` did not take" in shell.ok("status", "people").out
    again = shell.json("backfill", "people", "--from", "2024-01-01", "--to", "2024-01-02", "--again")
    assert [day["left_out"] for day in again["intervals"]] == [2, 1]


def test_a_file_that_is_read_again_is_counted_as_it_is_now(shell: Shell) -> None:
    shell.ok("init", shell.declared(ONLY))
    shell.land("people/2024-01-01/a.jsonl", said(7, "Porto") + said(7, "x", "orders"))
    shell.moved("people", "2024-01-01")
    shell.land("people/2024-01-01/a.jsonl", said(7, "Faro") + said(7, "x", "orders") + said(8, "y", "orders"))
    done = shell.json("ingest", "people", "--date", "2024-01-01")["results"][0]
    assert (done["corrected"], done["left_out"]) == (1, 1)
    shell.moved("people")
    assert (rows(shell), shell.json("status", "people")["left_out"]) == ([(7, "Faro")], 2)
    shell.ok("init", shell.declared(ONLY.replace("'people'", "'orders'")))
    shell.moved("people", "2024-01-01")
    assert rows(shell) == [(7, "Faro")], "another condition counts for files that are read from then on"


@pytest.mark.parametrize("files", [{"a": "po"}, {"a": "p", "b": "o"}], ids=["one file", "two files"])
def test_messages_of_two_tables_are_refused_with_the_line_to_paste(shell: Shell, files: dict[str, str]) -> None:
    lines = {"p": said(7, "Porto"), "o": said(7, "x", "orders")}
    shell.ok("init", shell.declared(PEOPLE))
    for name, tables in files.items():
        shell.land(f"people/2024-01-01/{name}.jsonl", "".join(lines[each] for each in tables))
    refused = shell.refused("ingest", "people", "--date", "2024-01-01")
    (line,) = re.findall(r"`(only: [^`]*)`", refused)
    if len(files) > 1:
        line = line.replace("'orders'", "'people'")
    changed = shell.ok("init", shell.declared(f"{PEOPLE}  {line}\n"))
    assert "`only` counts for files that are read from now on" in changed.err
    shell.moved("people", "2024-01-01")
    assert rows(shell) == [(7, "Porto")]


def test_a_second_table_is_refused_after_one_was_taken(shell: Shell) -> None:
    shell.ok("init", shell.declared(PEOPLE))
    shell.land("people/2024-01-01/a.jsonl", said(7, "Porto"))
    shell.moved("people", "2024-01-01")
    assert shell.json("init", shell.declared(PEOPLE))["outcome"] == "nothing to do"
    shell.land("people/2024-01-02/a.jsonl", said(7, "x", "orders", 86_400_000))
    refused = shell.refused("ingest", "people", "--date", "2024-01-02")
    assert f"a.jsonl: line 1: messages belong to two tables, {TABLE}, and now" in refused
    (line,) = re.findall(r"`(only: [^`]*)`", refused)
    shell.ok("init", shell.declared(f"{PEOPLE}  {line}\n"))
    shell.moved("people", "2024-01-02")
    shell.ok("init", shell.declared(PEOPLE))
    shell.land("people/2024-01-03/a.jsonl", said(7, "x", "orders", 2 * 86_400_000))
    assert "two tables" in shell.refused("ingest", "people", "--date", "2024-01-03")
    assert rows(shell) == [(7, "Porto")]


def test_a_collection_of_an_earlier_release_goes_on_and_says_so(shell: Shell) -> None:
    shell.ok("init", shell.declared(PEOPLE))
    log = StateLog(LocalStore(str(shell.root / "people")), fresh_id)
    current = log.load().state.collection
    log.commit(log.load(), Redefined(relanded(current, source=replace(current.landed.source, table=None))))
    shell.land("people/2024-01-01/a.jsonl", said(7, "Porto"))
    shell.moved("people", "2024-01-01")
    assert shell.json("init", shell.declared(PEOPLE))["outcome"] == "nothing to do"
    shell.land("people/2024-01-02/a.jsonl", said(8, "Faro", at=86_400_000) + said(9, "x", "orders", 86_400_001))
    noted = shell.ok("ingest", "people", "--date", "2024-01-02").err
    assert "messages belong to two tables" in noted
    assert "declared before 0.7.0" in noted
    assert "write `only: " in noted
    shell.moved("people")
    assert rows(shell) == [(7, "Porto"), (8, "Faro"), (9, "x")]


def test_full_snapshots_are_compared_by_the_rows_that_are_taken(shell: Shell) -> None:
    stock = """\
name: stock
key: [item]
columns: {item: int, shop: string}
start: 2024-01-01
source: {path: "{{ landing }}/stock/{{ ds }}/*.csv", format: csv, envelope: snapshot, only: "shop = 'a'"}
"""
    shell.ok("init", shell.declared(stock))
    for day, shops in (("01", "aab"), ("02", "bbb")):
        lines = "".join(f"{at},{shop}\n" for at, shop in enumerate(shops))
        shell.land(f"stock/2024-01-{day}/a.csv", "item,shop\n" + lines)
    shell.moved("stock", "2024-01-01")
    assert [row["item"] for row in shell.json("as-of", "stock")["rows"]] == [0, 1]
    done = shell.ok("ingest", "stock", "--date", "2024-01-02")
    assert "has no rows: unless" in done.err
    assert "without rows" in shell.ok("log", "stock").out
    assert shell("gate", "stock", "unsealed").code != 0, "nothing of the second is taken: the gate asks"
