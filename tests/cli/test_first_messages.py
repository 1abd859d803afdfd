"""A first day as connectors and sinks write it: `init` finds the rows among other things, or says what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Shell

SHOP = """\
name: shop
key: [id]
value: [paid]
start: 2024-01-01
time: arrival
event_time: {column: source.ts_ms}
late: {reemit: {}}
source:
  path: "{{ landing }}/shop/{{ ds }}/*.json"
  format: json
  envelope: debezium
"""
NEW_YEAR = 1_704_067_200_000


def said(paid: Any, id: Any = 1, table: str = "orders") -> dict[str, Any]:
    source = {
        "connector": "postgresql",
        "table": table,
        "ts_ms": NEW_YEAR,
        "lsn": 9,
        "txId": 3,
        "sequence": '["1","9"]',
    }
    return {"op": "c", "before": None, "after": {"id": id, "paid": paid}, "source": source}


BESIDE: dict[str, list[Any]] = {
    "heartbeats": [{"ts_ms": NEW_YEAR}],
    "transaction markers": [{"status": "BEGIN", "id": "571:53", "event_count": None, "ts_ms": NEW_YEAR}],
    "schema changes": [{"source": {}, "ts_ms": NEW_YEAR, "ddl": "CREATE TABLE", "tableChanges": []}],
    "tombstones": [None],
    "messages of the log": [{"op": "m", "ts_ms": NEW_YEAR, "source": {"ts_ms": NEW_YEAR}, "message": {"prefix": "x"}}],
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_comes_before_the_first_row_shows_no_types(shell: Shell, what: str) -> None:
    shell.land("shop/2024-01-01/a.json", "".join(json.dumps(row) + "\n" for row in BESIDE[what]))
    shell.land("shop/2024-01-01/b.json", json.dumps(said("12.50")))
    shell.ok("init", shell.declared(SHOP + """  only: "op IN ('c', 'u', 'd', 'r')"\n"""))
    shell.ok("advance", "shop", "--to", "2024-01-02")
    assert shell.ok("as-of", "shop", "--format", "csv").out == "id,paid,_multiplicity\n1,12.50,1\n"


WAYS_OUT = [
    # a file, and what `init` says of it
    ([said(1), said(2, "w-open", "signals")], "now source.table = 'signals'; to take the first alone write `only:"),
    (
        [{"key": '{"id": 1}', "value": json.dumps(said(1))}],
        "line 1: value is a text that has a message in it; have the",
    ),
    ([{"specversion": "1.0", "type": "x", "source": "y", "data": {}}], "is a CloudEvent; have the connector write"),
]


@pytest.mark.parametrize(("rows", "says"), WAYS_OUT, ids=[says[:20] for _, says in WAYS_OUT])
def test_a_first_file_without_rows_of_one_table_is_refused_with_the_way_out(
    shell: Shell, rows: list[Any], says: str
) -> None:
    shell.land("shop/2024-01-01/a.json", "".join(json.dumps(row) + "\n" for row in rows))
    assert says in shell.refused("init", shell.declared(SHOP))


def test_a_file_of_keys_and_a_name_that_is_none_are_refused_with_the_way_out(shell: Shell) -> None:
    refused = shell.refused("init", shell.declared(SHOP.replace("[id]", "[_id]")))
    assert "columns: {NAME: {from: '_id'}}" in refused
    shell.land("shop/2024-01-01/orders+0+0000000000.json", json.dumps(said(1)))
    shell.land("shop/2024-01-01/orders+0+0000000000.keys.json", json.dumps({"id": 1}))
    shell.ok("init", shell.declared(SHOP))
    refused = shell.refused("ingest", "shop", "--date", "2024-01-01")
    assert "has only the key of a message (id); with the path match the files of messages alone" in refused
    shell.ok("init", shell.declared(SHOP.replace("*.json", "*[0-9].json")))
    shell.moved("shop", "2024-01-01")


def test_what_the_schema_of_messages_says_of_a_column_is_said(shell: Shell) -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    decimal = {
        "field": "paid",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": parameters,
    }
    after = {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}, decimal]}
    shell.land("shop/2024-01-01/a.json", json.dumps({"schema": {"fields": [after]}, "payload": said("BOI=")}))
    instead = '{type: "decimal(10, 2)", decimals: precise}'
    assert f"of org.apache.kafka.connect.data.Decimal: write {instead}" in shell.ok("init", shell.declared(SHOP)).out
    shell.ok("init", shell.declared(f"{SHOP}columns: {{id: int, paid: {instead}}}\n"))
    shell.ok("advance", "shop", "--to", "2024-01-02")
    assert shell.ok("as-of", "shop", "--format", "csv").out == "id,paid,_multiplicity\n1,12.50,1\n"


def test_transactions_are_not_netted_without_an_order(shell: Shell) -> None:
    shell.land("shop/2024-01-01/a.json", json.dumps(said(1)))
    assert (
        "takes each message of a transaction alone" in shell.ok("init", shell.declared(SHOP + "  order_by: []\n")).err
    )
