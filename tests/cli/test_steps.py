"""Every step by hand, strictly in order, through three envelopes and three formats."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EVENTS, PEOPLE, STOCK, InProcess, Shell
from tidemark.errors import InvalidUsage
from tidemark.jobs import app
from tidemark.jobs.job import collection_store


def land_events(shell: Shell) -> None:
    shell.events(1, "a,1,10:00", "b,2,11:00")
    shell.events(2, "a,1,10:00", "c,3,12:00")


def land_stock(shell: Shell) -> None:
    """Day 2 takes the pen's price back and gives another."""
    days = {1: [("pen", 1, 1.5, 1), ("ink", 2, 9.0, 2)], 2: [("pen", 1, 1.5, -1), ("pen", 1, 1.75, 1)]}
    for day, rows in days.items():
        names, at = ("item", "shelf", "price", "change"), f"2024-01-{day:02d}T09:00:00Z"
        lines = [json.dumps(dict(zip(names, row, strict=True)) | {"at": at}) for row in rows]
        shell.land(f"stock/2024-01-{day:02d}/a.jsonl", "\n".join(lines) + "\n")


def land_people(shell: Shell) -> None:
    """Day 2 brings Ann's move, Bob's end, and a row that happened on day 1: late, and applied."""

    def at(day: int, hour: int) -> datetime:
        return datetime(2024, 1, day, hour, tzinfo=UTC)

    days = {
        1: [(1, "Rome", False, at(1, 8), at(1, 9)), (2, "Oslo", False, at(1, 8), at(1, 9))],
        2: [
            (1, "Bern", False, at(2, 8), at(2, 9)),
            (2, None, True, at(2, 7), at(2, 9)),
            (3, "Wien", False, at(1, 20), at(2, 1)),
        ],
    }
    for day, rows in days.items():
        path = shell.land(f"people/2024-01-{day:02d}/a.parquet", b"")
        names = ("person", "city", "gone", "happened", "reported")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        moments = pa.timestamp("us", "UTC")
        table = {
            **columns,
            "born": [date(1990, 1, 1)] * len(rows),
            "happened": pa.array(columns["happened"], moments),
            "reported": pa.array(columns["reported"], moments),
        }
        pq.write_table(pa.table(table), path)


def land_a_third_day(shell: Shell, name: str) -> None:
    """One row more: with it there are more batches than a budget of two."""
    if name == "events":
        shell.events(3, "d,4,09:00")
    elif name == "stock":
        row = {"item": "rag", "shelf": 3, "price": 2.5, "change": 1, "at": "2024-01-03T09:00:00Z"}
        shell.land("stock/2024-01-03/a.jsonl", json.dumps(row) + "\n")
    else:
        moment = pa.array([datetime(2024, 1, 3, 8, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        row = {"person": [4], "city": ["Kiel"], "born": [date(1990, 1, 1)], "gone": [False]}
        table = pa.table({**row, "happened": moment, "reported": moment})
        pq.write_table(table, shell.land("people/2024-01-03/a.parquet", b""))


COLLECTIONS = {"events": (EVENTS, land_events), "stock": (STOCK, land_stock), "people": (PEOPLE, land_people)}
CURRENT = {
    ("events", 1): [("a", 1, 1), ("b", 2, 1)],
    ("events", 2): [("a", 1, 2), ("b", 2, 1), ("c", 3, 1)],
    ("events", 3): [("a", 1, 2), ("b", 2, 1), ("c", 3, 1), ("d", 4, 1)],
    ("stock", 1): [("ink", 2, 9.0, 2), ("pen", 1, 1.5, 1)],
    ("stock", 2): [("ink", 2, 9.0, 2), ("pen", 1, 1.75, 1)],
    ("stock", 3): [("ink", 2, 9.0, 2), ("pen", 1, 1.75, 1), ("rag", 3, 2.5, 1)],
    ("people", 1): [(1, "Rome", "1990-01-01", 1), (2, "Oslo", "1990-01-01", 1)],
    ("people", 2): [(1, "Bern", "1990-01-01", 1), (3, "Wien", "1990-01-01", 1)],
    ("people", 3): [(1, "Bern", "1990-01-01", 1), (3, "Wien", "1990-01-01", 1), (4, "Kiel", "1990-01-01", 1)],
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_three_days_from_init_to_compact(shell: Shell, name: str) -> None:
    text, land = COLLECTIONS[name]
    land(shell)
    land_a_third_day(shell, name)
    shell.ok("init", shell.declared(text + "live_batches: 2\n"))
    for day in (1, 2, 3):
        shell.moved(name, f"2024-01-{day:02d}")
        rows = shell.json("as-of", name)["rows"]
        assert sorted(tuple(row.values()) for row in rows) == CURRENT[name, day]
    one = CURRENT[name, 3][0]
    by_first_key = ("--where", f"{next(iter(rows[0]))}={one[0]}")
    assert [tuple(row.values()) for row in shell.json("as-of", name, *by_first_key)["rows"]] == [one]
    assert shell.json("status", name)["debt"]["compactions"] == 1
    assert shell.json("compact", name)["results"][0]["merges"] == 1
    shell.ok("gate", name, "compaction")
    assert sorted(tuple(row.values()) for row in shell.json("as-of", name)["rows"]) == CURRENT[name, 3]
    first_day = shell.json("as-of", name, "--time", "2024-01-01T23:59:59.999999Z")["rows"]
    assert sorted(tuple(row.values()) for row in first_day) == CURRENT[name, 1]
    assert shell.json("verify", name, "--data")["sound"]
    assert shell.json("status", name)["next_step"] == f"tidemark ingest {name} --date 2024-01-04"


def test_the_next_step_named_leads_from_init_to_the_end(events: Shell) -> None:
    """Doing what `status` says, again and again, brings a collection through all its steps."""
    land_events(events)
    land_a_third_day(events, "events")
    events.ok("init", events.declared(EVENTS + "live_batches: 2\n"))
    done = []
    while (following := events.json("status", "events")["next_step"]) != "tidemark ingest events --date 2024-01-04":
        words = following.split()[1:]
        done.append(" ".join(words))
        events.ok(*words)
        assert len(done) < 24, done
    day = ["gate events unsealed", "seal events", "gate events frontier", "drain events", "gate events trace"]
    one, two, three = (f"ingest events --date 2024-01-0{number}" for number in (1, 2, 3))
    assert done == [one, *day, two, *day, three, *day, "compact events", "gate events compaction"]


def test_every_step_a_second_time_does_nothing(events: Shell) -> None:
    land_events(events)
    events.moved("events", "2024-01-01", "2024-01-02")
    version = events.json("status", "events")["version"]
    for words in (
        ["ingest", "events", "--from", "2024-01-01", "--to", "2024-01-02"],
        ["seal", "events"],
        ["drain", "events"],
        ["compact", "events"],
    ):
        assert {result["outcome"] for result in events.json(*words)["results"]} == {"nothing to do"}
    for gate in ("unsealed", "frontier", "trace", "compaction"):
        assert events.json("gate", "events", gate)["outcome"] == "nothing to do"
    assert "nothing to do" in events.ok("init", events.declared(EVENTS)).out
    assert events.json("status", "events")["version"] == version


def test_a_step_without_its_gate_is_refused_with_the_gate_to_run(events: Shell) -> None:
    land_events(events)
    events.ok("ingest", "events", "--date", "2024-01-01")
    assert events.refused("seal", "events").endswith("`tidemark gate events unsealed`")
    events.ok("gate", "events", "unsealed")
    events.ok("seal", "events")
    said = events("drain", "events", "--json")
    assert (said.code, said.document["error"]["kind"]) == (1, "Uncertified")
    assert said.document["error"]["run"] == "tidemark gate events frontier"


def test_days_by_range_and_what_was_done_before_one_fails(events: Shell) -> None:
    land_events(events)
    said = events("ingest", "events", "--from", "2024-01-01", "--to", "2024-01-03", "--json")
    assert (said.code, said.document["error"]["kind"]) == (1, "NotReady")
    assert [result["rows"] for result in said.document["done"]] == [2, 2]
    shown = events("ingest", "events", "--from", "2024-01-01", "--to", "2024-01-03")
    assert shown.out.count("nothing to do [2024-01-0") == 2


def test_an_interval_of_several_days_is_read_day_by_day(events: Shell) -> None:
    land_events(events)
    events.events(3, "d,4,12:00")
    results = events.json("ingest", "events", "--lower", "2024-01-01", "--upper", "2024-01-04")["results"]
    assert [result["rows"] for result in results] == [2, 2, 1], "only the first day's folder was read"
    assert len({result["batch"] for result in results}) == 3
    again = events.json("ingest", "events", "--lower", "2024-01-02", "--upper", "2024-01-04")["results"]
    assert [result["outcome"] for result in again] == ["nothing to do"] * 2


@pytest.mark.parametrize("step", ["ingest", "seal", "drain", "compact"])
def test_an_interval_between_two_of_the_schedule_is_refused(events: Shell, step: str) -> None:
    message = events.refused(step, "events", "--lower", "2024-01-01", "--upper", "2024-01-02T12:00:00")
    assert "ends at 2024-01-02T12:00:00Z, between two boundaries of schedule @daily" in message
    assert "write 2024-01-02T00:00:00Z or 2024-01-03T00:00:00Z" in message
    message = events.refused(step, "events", "--lower", "2024-01-01T00:00:00.000001", "--upper", "2024-01-03")
    assert "write 2024-01-01T00:00:00Z or 2024-01-02T00:00:00Z" in message


def test_the_app_reads_several_days_as_what_they_are(events: Shell) -> None:
    land_events(events)
    places = ["--root", str(events.root), "--collection", "events", "--landing", str(events.landing)]

    def ingest(lower: str, upper: str) -> Any:
        args = app.parser("ingest").parse_args([*places, "--lower", lower, "--upper", upper])
        return app.run("ingest", args, lambda: InProcess(collection_store(str(events.root), "events")))

    result = ingest("2024-01-01", "2024-01-03")
    assert (result["outcome"], result["intervals"], result["batches"], result["rows"]) == ("applied", 2, 2, 4)
    assert ingest("2024-01-01", "2024-01-03")["outcome"] == "nothing to do"
    with pytest.raises(InvalidUsage, match="between two boundaries"):
        ingest("2024-01-01", "2024-01-02T01:00")
    with pytest.raises(InvalidUsage, match="between two boundaries"):
        app.run("seal", app.parser("seal").parse_args([*places[:4], "--lower", "0", "--upper", "5"]), InProcess)


def test_the_seal_waits_for_a_missing_day(events: Shell) -> None:
    land_events(events)
    events.ok("ingest", "events", "--date", "2024-01-02")
    events.ok("gate", "events", "unsealed")
    missing = "[2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)"
    assert events.json("seal", "events", "--date", "2024-01-02")["results"][0]["waiting_for"] == missing
    assert events.json("status", "events")["waiting_for"] == missing
    assert "tidemark ingest events --date 2024-01-01" in events.refused("seal", "events")
    events.ok("ingest", "events", "--date", "2024-01-01")
    events.ok("gate", "events", "unsealed")
    assert events.json("seal", "events", "--date", "2024-01-01")["results"][0]["seal_text"] == "2024-01-03T00:00:00Z"


def test_a_bad_batch_is_quarantined_mended_and_released(events: Shell) -> None:
    events.events(1, "a,1,10:00")
    batch = events.json("ingest", "events", "--date", "2024-01-01")["results"][0]["batch"]
    assert events.json("quarantine", "events", batch[:6])["batch"] == batch
    assert events.json("status", "events")["quarantined"] == [batch]
    events.ok("release", "events", batch)
    said = events.ok("quarantine", "events", batch).out.rstrip()
    assert said.endswith("next: mend its files, then tidemark ingest events --date 2024-01-01")
    events.events(1, "a,1,10:00", "b,2,11:00")
    assert events.json("ingest", "events", "--date", "2024-01-01")["results"][0]["rows"] == 2
    assert "events/2024-01-01/a.csv was ingested again as batch" in events.refused("release", "events", batch)


def test_a_batch_that_failed_is_accepted_and_status_and_log_say_by_whom_and_why(shell: Shell) -> None:
    expectation = "quality:\n  - expect_column_values_to_be_between: {column: amount, max_value: 10}\n"
    shell.ok("init", shell.declared(EVENTS + expectation))
    shell.events(1, "a,1,10:00", "b,77,11:00")
    batch = shell.json("ingest", "events", "--date", "2024-01-01")["results"][0]["batch"]
    accept = ("--accept", batch[:8], "--reason", "--- a strike on that day", "--by", "ada")
    assert f"{batch[:12]} of [2024-01-01T00:00:00Z" in shell.ok("gate", "events", "unsealed", *accept).out
    said = "accepted by ada at "
    assert said in shell.ok("status", "events").out
    assert said in shell.ok("log", "events").out
    (kept,) = shell.json("status", "events")["accepted"]
    assert (kept["batch"], kept["reason"]) == (batch, "--- a strike on that day")
    assert shell.json("gate", "events", "unsealed", *accept)["outcome"] == "nothing to do"
    shell.ok("seal", "events")
    assert shell.json("status", "events")["accepted"] == [kept]


def test_types_are_inferred_once_from_the_first_file_and_frozen(shell: Shell) -> None:
    undeclared = EVENTS.replace("columns: {id: string, amount: int, at: timestamp}\n", "")
    assert "no file has landed" in shell.refused("init", shell.declared(undeclared))
    shell.events(1, "a,1,10:00:00")
    created = shell.json("init", shell.declared(undeclared))
    assert created["inferred"] == created["types"] == {"id": "string", "amount": "int", "at": "timestamp"}
    shell.land("events/2023-12-31/a.csv", "id,amount,at\na,1.5,2023-12-31T00:00:00Z\n")
    again = shell.json("init", shell.declared(undeclared))
    assert (again["outcome"], again["inferred"]) == ("nothing to do", {})
    sample = shell.land("elsewhere.csv", "id,amount,at\na,1.5,2023-12-31T00:00:00Z\n")
    other = undeclared.replace("name: events", "name: other")
    assert shell.json("init", shell.declared(other), "--sample", str(sample))["types"]["amount"] == "float"


def test_a_failing_gate_stops_shows_the_rows_and_leads_out(shell: Shell) -> None:
    expectation = "quality:\n  - expect_column_values_to_be_between: {column: amount, max_value: 10}\n"
    shell.ok("init", shell.declared(EVENTS + expectation))
    shell.events(1, "a,1,10:00", "b,77,11:00")
    batch = shell.json("ingest", "events", "--date", "2024-01-01")["results"][0]["batch"]
    said = shell("gate", "events", "unsealed", "--json")
    assert (said.code, said.document["error"]["kind"]) == (1, "GateFailed")
    assert f"tidemark quarantine events {batch[:12]}" in said.document["error"]["message"]
    assert "77" in said.err
    assert "unsealed gate" in shell.refused("seal", "events")
    assert "at least 10 are needed" in shell.refused(
        "gate", "events", "unsealed", *("--accept", batch, "--by", "ada", "--reason", "ok")
    )
    shell.ok("quarantine", "events", batch[:12])
    shell.events(1, "a,1,10:00", "b,7,11:00")
    shell.moved("events", "2024-01-01")
    assert [row["amount"] for row in shell.json("as-of", "events")["rows"]] == [1, 7]


def test_what_has_landed_of_a_day_that_goes_on_is_taken_and_says_why(shell: Shell) -> None:
    file = shell.declared(EVENTS + "batches: {count: 2, settle: 0s}\n")
    shell.ok("init", file)
    shell.events(1, "a,1,10:00")
    said = shell.ok("ingest", "events", "--date", "2024-01-01", "--cut", "explicit").out
    assert "cut explicit; 1 key; " in said
    assert "cut by explicit" in shell.ok("log", "events").out
    assert (
        shell.json("ingest", "events", "--date", "2024-01-01", "--cut", "count")["results"][0]["outcome"]
        == "nothing to do"
    )
    shell.land("events/2024-01-01/b.csv", "id,amount,at\nb,2,2024-01-01T11:00:00Z\n")
    (result,) = shell.json("ingest", "events", "--date", "2024-01-01")["results"]
    assert (result["rows"], result["cut"]) == (1, {"reason": "end_of_input"})
    assert "cut" not in shell.ok("log", "events", "-n", "1").out
    slip = shell.refused("ingest", "events", "--date", "2024-01-02", "--cut", "explcit", code=2)
    assert "did you mean 'explicit'" in slip
