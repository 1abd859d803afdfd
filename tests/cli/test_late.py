"""Late rows and dead letters from a shell: listed with their fate, and applied after all, once."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell
from tidemark.cli.late import _late_row
from tidemark.model.landed import FIRST_ROW, Format

CHANGES = """\
name: customers
key: [id]
value: [city]
columns: {id: int, city: string}
start: 2024-01-01
time: arrival
event_time: {column: source.ts_ms}
source:
  path: "{{ landing }}/customers/{{ ds }}/*.jsonl"
  format: jsonl
  envelope: debezium
  order_by: source.lsn
"""
DAY = 86_400_000
NEW_YEAR = 1_704_067_200_000


def message(op: str, id: int, city: str | None, ts_ms: int, lsn: int) -> str:
    image = {"id": id, "city": city}
    before, after = (image, None) if op == "d" else (None, image)
    payload = {"op": op, "before": before, "after": after, "source": {"ts_ms": ts_ms, "lsn": lsn}}
    return json.dumps({"schema": None, "payload": payload}) + "\n"


@pytest.fixture
def late_letters(events: Shell) -> Shell:
    """One day in the trace; the second brings a row of the first, which discard kept."""
    events.events(1, "a,1,10:00")
    events.moved("events", "2024-01-01")
    events.land("events/2024-01-02/a.csv", "id,amount,at\nb,2,2024-01-01T22:00:00Z\nc,3,2024-01-02T10:00:00Z\n")
    events.ok("ingest", "events", "--date", "2024-01-02")
    return events


def test_a_dead_letter_is_replayed_once_and_listed_with_its_batch(late_letters: Shell) -> None:
    shell = late_letters
    text = shell.ok("late", "events").out
    assert "0 late rows applied, 1 discarded, in 1 file" in text
    assert "tidemark late replay events" in text
    first = shell.json("late", "replay", "events")
    assert (first["outcome"], first["rows"], first["moved"], first["left"]) == ("applied", 1, 0, 0)
    assert first["next_step"] == "tidemark gate events unsealed"
    again = shell.ok("late", "replay", "events").out
    assert "nothing to do: 0 dead letters applied" in again
    listed = shell.json("late", "list", "events")
    assert listed == shell.json("late", "events")
    assert (listed["discarded"], listed["replayed"], listed["rows"][0]["_replayed_by"]) == (1, 1, first["batch"])
    text = shell.ok("late", "events").out
    assert "1 discarded (1 replayed)" in text
    assert f"by {first['batch'][:12]}" in text
    assert "0 applied, 1 discarded (1 replayed)" in shell.ok("status", "events").out
    assert f"replayed 1 dead letter as {first['batch'][:12]}" in shell.ok("log", "events").out
    shell.moved("events")
    assert [row["id"] for row in shell.json("as-of", "events")["rows"]] == ["a", "b", "c"]


def test_late_rows_are_listed_by_when_they_happened(late_letters: Shell) -> None:
    """The counts are of these rows, too; the start belongs to the time, the end does not."""
    shell = late_letters
    lines = "".join(f"{id},1,2024-01-01T{hour}:00:00Z\n" for id, hour in (("p", 20), ("q", 21), ("r", 22), ("s", 23)))
    shell.land("events/2024-01-02/b.csv", "id,amount,at\n" + lines)
    shell.ok("ingest", "events", "--date", "2024-01-02")

    def listed(*words: str) -> tuple[list[str], int, list[str]]:
        found = shell.json("late", "list", "events", *words)
        files = [file["path"].rpartition("/")[2] for file in found["files"]]
        return sorted(row["id"] for row in found["rows"]), found["discarded"], files

    assert listed() == (["b", "p", "q", "r", "s"], 5, ["a.csv", "b.csv"])
    start, end = ("--happened-from", "2024-01-01T21:00:00Z"), ("--happened-before", "2024-01-01T22:00:00Z")
    assert listed(*start, *end) == (["q"], 1, ["b.csv"])
    assert listed(*start) == (["b", "q", "r", "s"], 4, ["a.csv", "b.csv"])
    assert listed(*end) == (["p", "q"], 2, ["b.csv"])
    assert listed(*start, "--limit", "1") == (["b"], 4, ["a.csv", "b.csv"])
    assert listed(*start, "--limit", "0", "--file", "b.csv") == ([], 3, ["b.csv"])
    assert listed("--happened-before", "2024-01-01") == ([], 0, [])
    assert "0 discarded, in 0 files" in shell.ok("late", "events", "--happened-before", "2024-01-01").out
    assert "3 more; --limit 10 shows more" in shell.ok("late", "events", *start, "--limit", "1").out
    said = shell.refused("late", "events", "--happened-from", "2024-01-02", "--happened-before", "2024-01-02")
    assert "the first must be earlier" in said
    shell.json("late", "replay", "events", "--file", "b.csv")
    found = shell.json("late", "list", "events", *start, *end)
    assert (found["discarded"], found["replayed"], found["rows"][0]["id"]) == (1, 1, "q")
    assert found["files"][0]["replayed_by"] == [found["rows"][0]["_replayed_by"]]
    assert shell.json("late", "list", "events", "--happened-from", "2024-01-01T00:00:00Z") == (
        shell.json("late", "list", "events")
    )


def test_a_moved_row_and_what_was_left_are_said(shell: Shell) -> None:
    shell.ok("init", shell.declared(CHANGES))
    shell.land("customers/2024-01-01/a.jsonl", message("c", 1, "Oslo", NEW_YEAR + 5, 1))
    shell.moved("customers", "2024-01-01")
    late = message("u", 1, "Rome", NEW_YEAR + 7, 2) + message("d", 1, None, NEW_YEAR + DAY + 9, 3)
    shell.land("customers/2024-01-02/a.jsonl", late + "null\n")
    shell.ok("ingest", "customers", "--date", "2024-01-02")
    refused = shell.ok("late", "replay", "customers").out
    assert "nothing to do: 0 dead letters applied" in refused
    assert "left: 1 dead letter happened up to 2024-01-01T00:00:00.007000Z, and history below 2024-01-01T23" in refused
    assert "--as-now applies it as of the seal" in refused
    assert "1 dead letter applied (1 moved to the seal)" in shell.ok("late", "replay", "customers", "--as-now").out
    shell.moved("customers")
    moved = shell.json("changes", "customers")["rows"]
    assert [(row["city"], row["_change_type"]) for row in moved] == [
        ("Oslo", "insert"),
        ("Oslo", "update_preimage"),
        ("Rome", "update_postimage"),
        ("Rome", "delete"),
    ]


def test_next_window_says_when_a_row_happened(shell: Shell) -> None:
    shell.ok("init", shell.declared(CHANGES + "late: next_window\n"))
    shell.land("customers/2024-01-01/a.jsonl", message("c", 1, "Oslo", NEW_YEAR + 5, 1))
    shell.moved("customers", "2024-01-01")
    shell.land("customers/2024-01-02/a.jsonl", message("u", 1, "Rome", NEW_YEAR + 7, 2))
    result = shell.json("ingest", "customers", "--date", "2024-01-02")["results"][0]
    assert (result["late_applied"], result["late_moved"], result["late_discarded"]) == (1, 1, 0)
    late = shell.json("late", "list", "customers")
    assert late["moved"] == 1
    assert shell.json("late", "list", "customers", "--happened-from", "2024-01-01") == late
    text = shell.ok("late", "customers").out
    assert "1 late row applied (1 moved to the seal), 0 discarded" in text
    assert "2024-01-01T00:00:00.007000Z" in text
    assert "tidemark late replay" not in text
    assert "1 applied (1 moved to the seal), 0 discarded" in shell.ok("status", "customers").out


def test_the_commands_of_late_are_found_by_help(shell: Shell) -> None:
    text = shell.ok("late", "--help").out
    assert "list" in text
    assert "replay" in text
    assert "COLLECTION" in shell.refused("late", code=2)


def test_a_column_named_as_a_word_of_the_table_is_shown_beside_it() -> None:
    metadata = {
        "_replayed_by": None,
        "_reason": "below since",
        "_lateness": 1,
        "_original_event_time": 0,
        "_applied": False,
    }
    shown = _late_row({"id": 1, "reason": "paid", "row": 5, **metadata, "_row": 9}, *FIRST_ROW[Format.PARQUET])
    assert (shown["reason"], shown["reason (column)"]) == ("below since", "paid")
    assert (shown["row"], shown["row (column)"]) == (10, 5)


def test_a_late_row_is_found_by_its_line(late_letters: Shell) -> None:
    """As an editor counts lines: from 1, the header included."""
    (line,) = (line for line in late_letters.ok("late", "events").out.splitlines() if "2024-01-01T22" in line)
    assert line.split()[-1] == "2"
    row = {"_replayed_by": "", "_reason": "", "_lateness": 1, "_original_event_time": 0, "_applied": False, "_row": 0}
    assert [_late_row(row, *FIRST_ROW[of]).popitem() for of in Format] == [("row", 1), ("line", 1), ("line", 2)]
