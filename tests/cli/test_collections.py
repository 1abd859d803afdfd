"""Status, log, late rows, verify, as-of and changes: what they say, as text and as one JSON document."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import EVENTS, PEOPLE, Shell, a_shell
from tests.cli.test_steps import land_events, land_people
from tidemark.jobs.job import collection_store
from tidemark.model.instant import format_instant
from tidemark.storage.log.log import StateLog
from tidemark.storage.sidecars import parts_table


@pytest.fixture(scope="module")
def both_once(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Events and people of two days, the first in the trace, the second unsealed; that of people brings a late row."""
    shell = a_shell(tmp_path_factory.mktemp("once"))
    for text, land in ((EVENTS, land_events), (PEOPLE, land_people)):
        land(shell)
        name = shell.json("init", shell.declared(text))["collection"]
        shell.moved(name, "2024-01-01")
        shell.ok("ingest", name, "--date", "2024-01-02")
    return shell


@pytest.fixture
def two_days(both_once: Shell, tmp_path: Path) -> Shell:
    """A copy for one test: gates take time, copies do not."""
    shutil.copytree(both_once.root, tmp_path / "root")
    return replace(both_once, root=tmp_path / "root")


SHAPES: dict[tuple[str, ...], str] = {
    ("status",): "collections",
    ("log", "events"): "collection versions",
    ("late", "events"): "collection version applied moved discarded replayed files rows",
    ("verify", "events"): "collection version batches objects parts parts_read unverified_parts validations "
    "validations_left rows_read findings sound",
    (
        "as-of",
        "events",
    ): "collection version time time_text committed committed_text event_time event_time_text count rows",
    (
        "range",
        "events",
        "--on",
        "amount",
        "--from",
        "2",
    ): "collection version on from to time time_text committed committed_text event_time event_time_text count rows",
    ("changes", "events"): "collection version after after_text upto upto_text net count rows",
    ("gate", "events", "unsealed"): "step collection gate outcome version suite batches rules warnings docs next_step",
    ("seal", "events", "--date", "2024-01-01"): "step collection results next_step",
    ("ingest", "events", "--date", "2024-01-02"): "step collection results next_step",
    ("drain", "events"): "step collection results next_step",
    ("compact", "events"): "step collection results next_step",
}


@pytest.mark.parametrize("words", SHAPES, ids=lambda words: words[0])
def test_json_is_one_document_and_nothing_else(two_days: Shell, words: tuple[str, ...]) -> None:
    assert set(two_days.json(*words)) == {*SHAPES[words].split()}
    before, *rest = words
    assert set(two_days.ok("--json", before, *rest).document) >= {"collection"} or before == "status"


def test_errors_are_documents_too(events: Shell) -> None:
    said = events("as-of", "events", "--json")
    assert said.code == 1
    message = said.err.splitlines()[-1].removeprefix("error: ")
    assert said.document == {"error": {"kind": "InvalidUsage", "message": message}}


def test_status(two_days: Shell) -> None:
    found = two_days.json("status", "events")
    assert (found["seal_text"], found["trace_upper_text"]) == ("2024-01-02T00:00:00Z",) * 2
    assert found["since"] == 0
    assert (found["unsealed"]["batches"], found["unsealed"]["rows"], len(found["uncertified"])) == (1, 2, 1)
    assert [(level["level"], level["batches"], level["rows"]) for level in found["levels"]] == [(0, 1, 2)]
    written = found["bytes_drained"] + found["bytes_compacted"]
    assert found["write_amplification"] == pytest.approx(written / found["bytes_ingested"], abs=0.001)
    text = two_days.ok("status", "events").out
    for said in ("2024-01-02T00:00:00Z  complete below", "2 rows in 1 batch", "tidemark gate events unsealed"):
        assert said in text


def test_log_says_in_words_what_each_version_changed(two_days: Shell) -> None:
    every = two_days.json("log", "events", "-n", "100", "--all")["versions"]
    assert [entry["version"] for entry in every] == list(range(len(every), 0, -1))
    entries = two_days.json("log", "events", "-n", "100")["versions"]
    folded = [entry for entry in every if entry not in entries]
    assert {entry["kind"] for entry in folded} <= {"attempted", "hold_placed", "hold_dropped"}
    assert f"{len(folded)} versions of attempts and holds between them" in two_days.ok("log", "events", "-n", "100").out
    changes = [entry["change"] for entry in entries]
    assert changes[-1] == "created collection events"
    for said in (
        "ingested [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z): 2 rows of 1 file as ",
        "unsealed gate certified ",
        "sealed to 2024-01-02T00:00:00Z",
        "frontier gate certified all below 2024-01-02T00:00:00Z",
        "drained [1970-01-01T00:00:00Z, 2024-01-02T00:00:00Z): 2 rows as ",
    ):
        assert any(change.startswith(said) for change in changes), said
    assert len(two_days.json("log", "events", "-n", "2")["versions"]) == 2


def test_late_rows_are_listed_with_reason_lateness_and_fate(two_days: Shell) -> None:
    found = two_days.json("late", "people")
    assert (found["applied"], found["discarded"], len(found["rows"])) == (1, 0, 1)
    row = found["rows"][0]
    assert (row["person"], row["_applied"], row["_lateness"]) == (3, True, 4 * 3_600_000_000)
    text = two_days.ok("late", "people").out
    assert "1 late row applied, 0 discarded, in 1 file" in text
    assert "4h" in text
    for filters, count in (
        (["--date", "2024-01-01"], 0),
        (["--date", "2024-01-02"], 1),
        (["--file", "2024-01-02"], 1),
        (["--file", "2024-01-01"], 0),
        (["--batch", found["files"][0]["batch"][:8]], 1),
    ):
        assert two_days.json("late", "people", *filters)["applied"] == count
    assert two_days.json("late", "people", "--limit", "0")["rows"] == []


def a_part(shell: Shell, collection: str = "events") -> Path:
    """The file of a part the state names."""
    store = collection_store(str(shell.root), collection)
    trace = StateLog(store, str).load().state.trace
    return shell.root / collection / parts_table.parts_of(store, trace)[0].file.key


def findings(shell: Shell, *words: str) -> list[dict[str, Any]]:
    said = shell("verify", "events", *words, "--json")
    assert (said.code, said.document["sound"]) == (1, False)
    assert "error: " in said.err
    found: list[dict[str, Any]] = said.document["findings"]
    return found


def test_verify_finds_nothing_in_a_sound_collection(two_days: Shell) -> None:
    assert two_days.json("verify", "events")["findings"] == []
    report = two_days.json("verify", "events", "--data")
    assert (report["batches"], report["parts_read"], report["rows_read"]) == (2, 2, 4)
    assert two_days.ok("verify", "events").out.startswith("sound; version ")


def test_verify_names_a_missing_object(two_days: Shell) -> None:
    part = a_part(two_days)
    part.unlink()
    assert any(finding["rule"] == "object exists" and part.name in finding["detail"] for finding in findings(two_days))
    assert part.name in two_days("verify", "events").out


def test_verify_data_finds_a_flipped_bit_and_names_object_batch_and_rule(two_days: Shell) -> None:
    part = a_part(two_days)
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    assert two_days.json("verify", "events")["sound"], "sizes are as recorded; only reading shows it"
    found = findings(two_days, "--data")
    assert any(part.name in finding["subject"] and part.parent.name in finding["subject"] for finding in found), found


def test_as_of_as_table_csv_and_json(two_days: Shell) -> None:
    text = two_days.ok("as-of", "events").out
    assert "2 rows as known at 2024-01-01T23:59:59.999999Z" in text
    lines = list(csv.reader(io.StringIO(two_days.ok("as-of", "events", "--format", "csv").out)))
    assert lines == [["id", "amount", "_multiplicity"], ["a", "1", "1"], ["b", "2", "1"]]
    assert two_days.ok("as-of", "events", "--format", "json").out == two_days.ok("as-of", "events", "--json").out


NOTES = """\
name: notes
key: [id]
value: [text]
columns: {id: int, text: string}
start: 2024-01-01
time: arrival
source: {path: "{{ landing }}/notes/{{ ds }}/*.jsonl", format: jsonl, envelope: append}
"""


def test_csv_tells_null_from_empty_text(shell: Shell) -> None:
    shell.ok("init", shell.declared(NOTES))
    said = ['{"id": 1, "text": ""}', '{"id": 2, "text": null}', '{"id": 3, "text": "a \\"b\\",\\nc"}']
    shell.land("notes/2024-01-01/a.jsonl", "\n".join(said) + "\n")
    for words in (["ingest", "notes", "--date", "2024-01-01"], ["gate", "notes", "unsealed"], ["seal", "notes"]):
        shell.ok(*words)
    text = shell.ok("as-of", "notes", "--format", "csv").out
    assert text == 'id,text,_multiplicity\n1,"",1\n2,,1\n3,"a ""b"",\nc",1\n'
    assert list(csv.reader(io.StringIO(text)))[3] == ["3", 'a "b",\nc', "1"]


def test_as_of_some_rows(two_days: Shell) -> None:
    assert two_days.json("as-of", "events", "--where", "id=b")["rows"] == [{"id": "b", "amount": 2, "_multiplicity": 1}]
    assert two_days.json("as-of", "events", "--where", "id=b", "--where", "amount=1")["rows"] == []
    limited = two_days.json("as-of", "events", "--limit", "1")
    assert (len(limited["rows"]), limited["count"]) == (1, 2)
    assert "1 more, --limit 0 shows all" in two_days.ok("as-of", "events", "--limit", "1").out
    assert "has no column 'x'" in two_days.refused("as-of", "events", "--where", "x=1")
    assert "'many' is no value of it" in two_days.refused("as-of", "events", "--where", "amount=many")


def test_a_range_of_a_timeline(two_days: Shell) -> None:
    asked = ("range", "events", "--on", "amount", "--from", "2")
    assert two_days.json(*asked)["rows"] == [{"id": "b", "amount": 2, "_multiplicity": 1}]
    assert "1 row with amount from 2, as known at" in two_days.ok(*asked).out
    assert two_days.json(*asked, "--to", "1")["rows"] == []
    backwards = two_days.json("range", "events", "--on", "amount", "--in-order", "--where", "amount < 9")
    assert [row["amount"] for row in backwards["rows"]] == [1, 2]
    assert "did you mean 'amount'?" in two_days.refused("range", "events", "--on", "amuont", "--from", "2")
    assert "a timeline is of type int, date or timestamp" in two_days.refused("range", "events", "--on", "id")
    assert "'many' is no value of it" in two_days.refused("range", "events", "--on", "amount", "--from", "many")


def test_what_a_read_opens(two_days: Shell) -> None:
    for words in (["as-of"], ["changes"], ["range", "--on", "amount"], ["latest-at", "--on", "amount", "--at", "9"]):
        command, *rest = words
        said = two_days.json(command, "events", *rest, "--where", "amount > 7", "--explain")
        assert {"question", "parts", "parts_opened", "chunks", "chunks_read", "bytes", "bytes_read"} < set(said)
        left_out = 0 if command == "changes" else 1
        assert said["chunks_missed"]["values"] == left_out, command
    assert "1 left out by values of columns" in two_days.ok("as-of", "events", "--where", "amount > 7", "--explain").out


def test_changes_that_happened_or_were_learned_in_a_time(two_days: Shell) -> None:
    everything = two_days.json("changes", "events")["rows"]
    assert len(everything) == 2
    for row in everything:
        at = format_instant(row["_event_time"])
        for words in ([f"_event_time={at}"], [f"_event_time >= '{at}' AND _event_time <= '{at}'"]):
            found = two_days.json("changes", "events", "--where", *words)["rows"]
            assert found == [one for one in everything if one["_event_time"] == row["_event_time"]]
        version = row["_commit_version"]
        found = two_days.json("changes", "events", "--where", f"_commit_version <= {version}")["rows"]
        assert found == [one for one in everything if one["_commit_version"] <= version]
    assert two_days.json("changes", "events", "--where", "_event_time < '2000-01-01'")["rows"] == []
    assert "only changes that are not net have it" in two_days.refused(
        "as-of", "events", "--where", "_event_time > '2'"
    )
    refused = two_days.refused("changes", "events", "--net", "--where", "_event_time > '2024-01-01'")
    assert "only changes that are not net have it" in refused
    assert "'soon' is no value of it" in two_days.refused("changes", "events", "--where", "_event_time=soon")
    assert "write '2013-01-02T03:04:05Z'" in two_days.refused("changes", "events", "--where", "_event_time > 5")


def test_a_read_outside_the_frontiers_is_refused_with_both(two_days: Shell) -> None:
    message = two_days.refused("as-of", "events", "--time", "2024-01-02T00:00:00Z")
    assert "[since 1970-01-01T00:00:00Z, seal 2024-01-02T00:00:00Z)" in message


def test_changes(two_days: Shell) -> None:
    for words in (["gate", "events", "unsealed"], ["seal", "events"]):
        two_days.ok(*words)
    found = two_days.json("changes", "events", "--after", "2024-01-01T23:59:59.999999Z")
    said = [(row["id"], row["_change_type"], row["_commit_timestamp"], row["diff"]) for row in found["rows"]]
    assert said == [("a", "insert", "2024-01-02T10:00:00Z", 1), ("c", "insert", "2024-01-02T12:00:00Z", 1)]
    net = two_days.json("changes", "events", "--net")["rows"]
    assert [(row["id"], row["diff"]) for row in net] == [("a", 2), ("b", 1), ("c", 1)]
    assert "learned after the beginning" in two_days.ok("changes", "events").out


def test_one_collection_that_cannot_be_read_hides_no_other_and_is_named(events: Shell) -> None:
    for name in ("damaged", "more"):
        events.ok("init", events.declared(EVENTS.replace("events", name)))
    first = next((events.root / "damaged" / "versions").rglob("*.json"))
    first.write_text("{}")
    said = events("status")
    assert said.code == 1
    assert [line.split()[0] for line in said.out.splitlines() if line.startswith(("events", "more"))] == [
        "events",
        "more",
    ]
    assert "error: collection damaged: " in said.err
    shown = events("status", "--json")
    assert shown.code == 1
    assert [seen["collection"] for seen in shown.document["done"]] == ["events", "more"]
    assert shown.document["error"]["message"].startswith("collection damaged: versions/")
