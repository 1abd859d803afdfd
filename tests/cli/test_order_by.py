"""The order of change messages: what `init` takes for it, what it says, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

from support.connector_logs import messages
from tests.cli.conftest import Shell

TIDES = """\
name: tides
key: [k]
value: [v]
columns: {k: int, v: string}
start: 2024-01-01
time: arrival
event_time: {column: source.ts_ms}
late: {reemit: {}}
source:
  path: "{{ landing }}/tides/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: debezium
"""
NEW_YEAR = 1_704_067_200_000


def by(order_by: str) -> str:
    return f"{TIDES}  order_by: {order_by}\n"


def lines(said: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(message) + "\n" for message in said)


def of_connector(connector: str | None) -> str:
    source = {"connector": connector, "ts_ms": NEW_YEAR, "lsn": 1}
    return lines([{"op": "c", "before": None, "after": {"k": 1, "v": "x"}, "source": source}])


def test_messages_are_in_the_order_of_their_connector_if_nothing_is_said(shell: Shell) -> None:
    said = messages("mysql", NEW_YEAR)
    shell.ok("init", shell.declared(TIDES))
    shell.land("tides/2024-01-01/a.jsonl", lines(said[::-1]))
    shell.moved("tides", "2024-01-01")
    assert shell.json("as-of", "tides")["rows"] == [{"k": 1, "v": "9", "_multiplicity": 1}]
    for same in (TIDES, by("connector")):
        assert shell.json("init", shell.declared(same))["outcome"] == "nothing to do"
    for other in ("[source.file, source.pos]", "[]", "source.ts_ms"):
        refused = shell.refused("init", shell.declared(by(other)))
        assert f"cannot change from connector to {other}" in refused
        assert "declare a collection of another name" in refused


def test_messages_that_name_no_connector_are_refused_with_what_to_write(shell: Shell) -> None:
    shell.ok("init", shell.declared(TIDES))
    shell.land("tides/2024-01-01/a.jsonl", of_connector(None))
    refused = shell.refused("ingest", "tides", "--date", "2024-01-01")
    assert "a message names no connector" in refused
    assert "order_by: [source.lsn]" in refused
    shell.ok("init", shell.declared(by("[source.lsn]")))
    shell.moved("tides", "2024-01-01")
    assert [row["v"] for row in shell.json("as-of", "tides")["rows"]] == ["x"]


def test_a_first_file_without_a_connector_decides_the_order(shell: Shell) -> None:
    shell.land("tides/2024-01-01/a.jsonl", of_connector("vitess"))
    said = shell.ok("init", shell.declared(TIDES))
    assert "messages name no connector with an order" in said.err
    shell.moved("tides", "2024-01-01")
    assert [row["v"] for row in shell.json("as-of", "tides")["rows"]] == ["x"]
    for same in (TIDES, by("[]")):
        assert shell.json("init", shell.declared(same))["outcome"] == "nothing to do"


def test_positions_alone_are_no_order_of_a_new_collection(shell: Shell) -> None:
    refused = shell.refused("init", shell.declared(by("source.pos")))
    assert "source.pos alone puts messages in a wrong order" in refused
    assert "write `order_by: connector`" in refused
    assert "column source.pos is named twice" in shell.refused("init", shell.declared(by("[source.pos, source.pos]")))


def test_log_positions_without_commits_are_noted(shell: Shell) -> None:
    """`init` says it of the first file, and each ingest once of its files."""
    said, note = messages("postgresql", NEW_YEAR), "source.lsn alone puts those of one time in order"
    bare = [{**message, "source": {**message["source"], "sequence": None}} for message in said]
    for day, file in (("01", said), ("02", bare), ("03", said[:1] + bare[:1])):
        shell.land(f"tides/2024-01-{day}/a.jsonl", lines(file))
    shell.land("tides/2024-01-02/b.jsonl", lines(bare))
    assert note not in shell.ok("init", shell.declared(TIDES)).err
    counts = [shell.ok("ingest", "tides", "--date", f"2024-01-{day}").err.count(note) for day in ("01", "02", "03")]
    assert counts == [0, 1, 0], "rows of a snapshot need no commit"
    shell.land("others/2024-01-01/a.jsonl", lines(bare[1:]))
    assert note in shell.ok("init", shell.declared(TIDES.replace("tides", "others"))).err


def test_dead_letters_keep_their_place(shell: Shell) -> None:
    """They are replayed without their messages."""
    said = messages("mysql", NEW_YEAR)
    shell.ok("init", shell.declared(TIDES.replace("late: {reemit: {}}", "late: discard")))
    shell.land("tides/2024-01-01/a.jsonl", lines(said[1:2]))
    shell.moved("tides", "2024-01-01")
    shell.land("tides/2024-01-02/a.jsonl", lines(said[::-1]))
    shell.moved("tides", "2024-01-02")
    assert shell.json("late", "tides")["discarded"] == len(said)
    shell.ok("late", "replay", "tides", "--as-now")
    shell.moved("tides")
    assert [row["v"] for row in shell.json("as-of", "tides")["rows"]] == ["9"]
