"""A transaction is one change from the files to the table: rows that change places, parts in other days, and holes."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Shell

BOATS = """\
name: boats
key: [berth]
value: [boat, log]
columns: {berth: int, boat: string, log: string}
start: 2024-01-01
time: arrival
event_time: {column: source.ts_ms}
late: {reemit: {}}
source:
  path: "{{ landing }}/boats/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: debezium
"""
NEW_YEAR = 1_704_067_200_000
HOLE = "__debezium_unavailable_value"


def boat(berth: int, name: str, log: str = "long") -> dict[str, Any]:
    return {"berth": berth, "boat": name, "log": log}


def said(op: str, before: Any, after: Any, lsn: int, tx: int) -> str:
    source = {"connector": "postgresql", "db": "port", "table": "boats", "ts_ms": NEW_YEAR + tx, "txId": tx, "lsn": lsn}
    return json.dumps({"op": op, "before": before, "after": after, "source": source}) + "\n"


def boats(shell: Shell) -> list[tuple[Any, ...]]:
    return [(row["berth"], row["boat"], row["log"]) for row in shell.json("as-of", "boats")["rows"]]


START = said("c", None, boat(1, "Ada"), 1, 1) + said("c", None, boat(2, "Bea"), 2, 2)
SHIFT = [
    said("d", boat(1, "Ada"), None, 3, 3) + said("c", None, boat(2, "Ada"), 3, 3),
    said("u", boat(2, "Bea"), boat(3, "Bea"), 4, 3)
    + said("c", None, boat(9, "x"), 5, 3)
    + said("d", boat(9, "x"), None, 6, 3),
]
SHIFTED = [(2, "Ada", "long"), (3, "Bea", "long")]


def test_rows_that_move_in_one_transaction_stay_however_it_is_cut(shell: Shell) -> None:
    """Its second half comes a day before the first one, and half of it again."""
    shell.ok("init", shell.declared(BOATS))
    shell.land("boats/2024-01-01/a.jsonl", START + SHIFT[1])
    shell.moved("boats", "2024-01-01")
    assert boats(shell) != SHIFTED
    shell.land("boats/2024-01-02/a.jsonl", SHIFT[0] + SHIFT[1])
    shell.moved("boats", "2024-01-02")
    assert boats(shell) == SHIFTED
    assert "before-images" not in shell.ok("status", "boats").out


def test_a_before_image_that_is_not_what_is_stored_is_counted(shell: Shell) -> None:
    shell.ok("init", shell.declared(BOATS))
    shell.land("boats/2024-01-01/a.jsonl", START + said("d", boat(2, "Cid"), None, 3, 3))
    shell.moved("boats", "2024-01-01")
    assert boats(shell) == [(1, "Ada", "long")]
    assert shell.json("status", "boats")["images_unmatched"] == 1
    assert "1 of messages that were not what was stored" in shell.ok("status", "boats").out
    assert "1 before-image of messages that were not what was stored" in shell.ok("log", "boats").out


def test_a_before_image_that_does_not_fit_is_counted_and_the_others_stay_whole(shell: Shell) -> None:
    """One whose log is no date has only its key, as its delete needs; the one beside it removes Zed, not Ada."""
    shell.ok("init", shell.declared(BOATS.replace("log: string", "log: date")))
    ada, bea, zed = (boat(at, name, "2024-01-01") for at, name in ((1, "Ada"), (2, "Bea"), (1, "Zed")))
    brief = said("c", None, zed, 9, 9) + said("d", zed, None, 10, 9)
    odd = said("d", bea | {"log": "odd"}, None, 11, 10)
    shell.land("boats/2024-01-01/a.jsonl", said("c", None, ada, 1, 1) + said("c", None, bea, 2, 2) + brief + odd)
    shell.moved("boats", "2024-01-01")
    assert [row[:2] for row in boats(shell)] == [(1, "Ada")]
    assert shell.json("status", "boats")["images_unmatched"] == 1
    assert "1 before-image of messages that do not fit their columns" in shell.ok("log", "boats").out


def test_a_before_image_that_lacks_what_was_not_logged_is_whole_without_it(shell: Shell) -> None:
    """As the connector of Oracle writes large objects: of two rows of a key it removes the one it names."""
    shell.ok("init", shell.declared(BOATS.replace("envelope: debezium", "envelope: debezium\n  unavailable: n/a")))
    brief = said("c", None, boat(1, "Zed"), 9, 9) + said("d", boat(1, "Zed", "n/a"), None, 10, 9)
    gone = said("d", boat(2, "Bea", "n/a"), None, 11, 10)
    shell.land("boats/2024-01-01/a.jsonl", START + brief + gone)
    shell.moved("boats", "2024-01-01")
    assert boats(shell) == [(1, "Ada", "long")]
    assert shell.json("status", "boats")["images_unmatched"] == 0


def test_a_value_that_was_not_logged_is_that_of_the_row_before_it(shell: Shell) -> None:
    """Also if that comes late; without one the drain waits for a word, and goes on with it."""
    shell.ok("init", shell.declared(BOATS))
    shell.land("boats/2024-01-01/a.jsonl", START + said("u", None, boat(2, "Bea II", HOLE), 4, 4))
    shell.moved("boats", "2024-01-01")
    assert boats(shell) == [(1, "Ada", "long"), (2, "Bea II", "long")]
    shell.land("boats/2024-01-02/a.jsonl", said("u", None, boat(2, "Bea", "late"), 3, 3))
    shell.land("boats/2024-01-02/b.jsonl", said("u", None, boat(3, "Cid", HOLE), 5, 5))
    steps = ("ingest boats --date 2024-01-02", "gate boats unsealed", "seal boats", "gate boats frontier")
    for step in steps:
        shell.ok(*step.split())
    refused = shell.refused("drain", "boats")
    assert "b.jsonl, row 1 lacks column log" in refused
    assert "optional: true" in refused
    shell.ok("init", shell.declared(BOATS.replace("log: string}", "log: {type: string, optional: true}}")))
    shell.ok("drain", "boats")
    shell.ok("gate", "boats", "trace")
    assert boats(shell) == [(1, "Ada", "long"), (2, "Bea II", "late"), (3, "Cid", None)]
