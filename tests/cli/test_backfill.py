"""A range of days at once: what would be read, what came of each, and what a bad day does to the others."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import EVENTS, STOCK, Shell

RANGE = ("--from", "2024-01-01", "--to", "2024-01-07")


def ten_days(shell: Shell) -> None:
    """A row a day, and on each day one that is late by half a day; nothing came on the third."""
    for day in range(1, 11):
        if day != 3:
            shell.events(day, f"id{day},{day},10:00")
    late = shell.landing / "events" / "2024-01-05" / "late.csv"
    late.write_text("id,amount,at\nlate,1,2024-01-02T10:00:00Z\n")
    (shell.landing / "events" / "2024-01-03").mkdir()


def rows(shell: Shell, name: str) -> Any:
    return shell.json("as-of", name)["rows"]


def test_a_range_is_brought_through_all_steps_and_each_day_reported(events: Shell) -> None:
    ten_days(events)
    report = events.json("backfill", "events", *RANGE, "--intervals", "3")
    assert (report["outcome"], report["complete_below_text"], report["waits_for"]) == (
        "applied",
        "2024-01-08T00:00:00Z",
        None,
    )
    days = {day["lower"][:10]: day for day in report["intervals"]}
    assert [day["status"] for day in days.values()] == ["complete"] * 2 + ["empty"] + ["complete"] * 4
    assert (days["2024-01-05"]["files"], days["2024-01-05"]["rows"], days["2024-01-05"]["dead"]) == (2, 2, 1)
    assert (days["2024-01-03"]["files"], days["2024-01-03"]["rows"]) == (0, 0)
    assert len(rows(events, "events")) == 6

    again = events.json("backfill", "events", *RANGE)
    assert (again["outcome"], again["intervals"]) == ("nothing to do", report["intervals"])
    said = events.ok("backfill", "events", "--from", "2024-01-06", "--to", "2024-01-09").out
    assert "complete below 2024-01-10T00:00:00Z" in said
    assert "4 of 4 intervals complete; complete below" in said


def test_a_bad_day_stops_no_other_and_a_retry_reads_only_it(events: Shell) -> None:
    ten_days(events)
    bad = events.landing / "events" / "2024-01-04" / "a.csv"
    bad.write_text("id,amount,at\nx,many,2024-01-04T10:00:00Z\n")
    said = events("backfill", "events", *RANGE, "--intervals", "2")
    (error,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert said.code == 1
    assert "1 of 2 intervals failed, the other one is done: [2024-01-04T00:00:00Z" in error
    assert "a.csv" in error
    status = events.json("status", "events")
    assert status["complete_below_text"] == "2024-01-03T00:00:00Z"
    assert (status["waiting_for_state"], status["waiting_for_name"]) == ("refused", "2024-01-04")
    assert (
        "2024-01-04: refused: 1 file cannot be taken: events/2024-01-04/a.csv: line 2"
        in events.ok("status", "events").out
    )
    report = json.loads(events("backfill", "events", *RANGE, "--json").out)
    statuses = [day["status"] for day in report["done"]]
    assert statuses == ["complete"] * 2 + ["ingested"] + ["refused"] + ["waiting"] * 3
    assert report["done"][3]["refused"] == 1

    before = events.json("status", "events")["version"]
    bad.write_text("id,amount,at\nx,4,2024-01-04T10:00:00Z\n")
    mended = events.json("backfill", "events", *RANGE)
    assert mended["complete_below_text"] == "2024-01-08T00:00:00Z"
    log = events.json("log", "events", "--all", "-n", str(mended["version"] - before))["versions"]
    ingested = [entry["change"] for entry in log if entry["kind"] == "ingested"]
    assert len(ingested) == 1
    assert "2024-01-04" in ingested[0]


def test_days_that_have_not_landed_are_named(events: Shell) -> None:
    ten_days(events)
    said = events("backfill", "events", "--from", "2024-01-09", "--to", "2024-01-12")
    (error,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert "2 of 4 intervals failed, the other 2 are done" in error
    assert error.count("has not landed") == 2


def test_a_preview_says_what_would_be_read_and_does_nothing(events: Shell) -> None:
    ten_days(events)
    events.ok("backfill", "events", "--date", "2024-01-01")
    before = events.json("status", "events")["version"]
    report = events.json("backfill", "events", "--from", "2024-01-01", "--to", "2024-01-12", "--preview")
    assert (report["asked"], report["complete_before"], report["runs"], report["rows"]) == (12, 1, 1, None)
    landed = [day["landed"] for day in report["intervals"]]
    assert landed == ["landed", "empty", *["landed"] * 7, "not landed", "not landed"]
    assert report["intervals"][3]["files"] == 2
    said = events.ok("backfill", "events", "--from", "2024-01-01", "--to", "2024-01-12", "--preview").out
    assert "11 intervals in 1 run: 8 landed, 1 without files, 2 not landed, 1 complete and left out" in said
    assert "rows unknown; about 1 minute here, 1 as runs of Airflow" in said
    assert events.json("status", "events")["version"] == before


def test_files_that_changed_are_read_again_if_asked(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS + "reprocess_for: 30d\n"))
    ten_days(shell)
    shell.ok("backfill", "events", *RANGE)
    shell.events(2, "id2,2,10:00", "more,7,11:00")
    assert shell.json("backfill", "events", *RANGE)["outcome"] == "nothing to do"
    report = shell.json("backfill", "events", *RANGE, "--again")
    second = report["intervals"][1]
    assert (second["files"], second["rows"], second["corrected"], second["written"]) == (1, 1, 1, 1)
    assert sum("more" in str(row) for row in shell.json("as-of", "events")["rows"]) == 1


def test_a_column_declared_later_is_read_from_files_that_did_not_change(shell: Shell) -> None:
    text = EVENTS + "reprocess_for: 30d\ncorrected_share: 0.0\n"
    shell.ok("init", shell.declared(text))
    for day in range(1, 4):
        shell.land(f"events/2024-01-0{day}/a.csv", f"id,amount,at,via\nx{day},1,2024-01-0{day}T10:00:00Z,web\n")
    days = ("--from", "2024-01-01", "--to", "2024-01-03")
    said = shell.ok("backfill", "events", *days)
    assert said.err.count("nothing declares column via, which 1 file has") == 1
    shell.land("events/2024-01-01/b.csv", "id,amount,at\n")
    shell.ok("backfill", "events", *days, "--again")
    more = text.replace("[amount]", "[amount, via]").replace("amount: int", "amount: int, via: string")
    said = shell.ok("init", shell.declared(more))
    assert (
        "via is in the files from 2024-01-02T00:00:00Z on: `tidemark backfill events --lower 2024-01-02T00:00:00Z "
        "--upper 2024-01-04T00:00:00Z --again --columns via` reads it"
    ) in said.out
    assert shell.ok("log", "events").out.count("columns that nothing declares: via in 1 file") == 1
    (shell.landing / "events" / "2024-01-02" / "a.csv").unlink()
    assert shell.json("backfill", "events", *days, "--again")["outcome"] == "nothing to do"
    said = shell.ok("backfill", "events", *days, "--again", "--columns", "via")
    assert "left as it was: events/2024-01-01/b.csv: column via is missing" in said.err
    assert (
        "1 file cannot be taken as declared today and 1 file gone from the landing: rows of these stay as they are"
        in said.out
    )
    assert "gone: events/2024-01-02/a.csv; its rows stay as they are in via" in said.err
    assert {row["id"]: row["via"] for row in rows(shell, "events")} == {"x1": "web", "x2": None, "x3": "web"}
    assert "again for via as" in shell.ok("log", "events").out
    again = shell.json("backfill", "events", *days, "--again", "--columns", "via")
    assert (again["outcome"], again["left"], again["gone"]) == ("nothing to do", 1, 1)
    assert "say --again, too" in shell.refused("backfill", "events", *days, "--columns", "via", code=2)
    assert "names no column" in shell.refused("ingest", "events", *days, "--columns", ",", code=2)
    assert "did you mean 'via'?" in shell.refused("backfill", "events", *days, "--again", "--columns", "vias")
    assert "leave one of them out" in shell.refused("ingest", "events", *days, "--columns", "via", "--cut", "explicit")


def test_what_makes_no_sense_is_refused_in_one_line(events: Shell) -> None:
    assert "which days?" in events.refused("backfill", "events", code=2)
    assert "swap them" in events.refused("backfill", "events", "--from", "2024-01-05", "--to", "2024-01-01", code=2)
    for option in ("--again", "--preview"):
        said = events.refused("backfill", "events", "--from", "2023-12-01", "--to", "2024-01-01", option)
        assert "it starts 2024-01-01" in said
    events.ok("init", events.declared(STOCK))
    assert "which days?" in events.refused("backfill", "stock", "--preview", code=2)


def test_a_landing_that_is_not_there_is_reported_once(events: Shell) -> None:
    nowhere = str(events.landing / "nowhere")
    said = events("backfill", "events", *RANGE, "--intervals", "2", "--landing", nowhere)
    (error,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert error.count("does not exist") == 2, "of the first intervals, and of all behind them"
    assert "5 of 5 intervals failed, none is done" in error
