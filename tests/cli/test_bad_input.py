"""Bad input: one clear line that names what is wrong and what to do, and nothing is lost."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EVENTS, PEOPLE, Shell
from tidemark.storage.documents.codec import with_checksum


def people(shell: Shell, day: int, **columns: pa.Array) -> Path:
    """A day's file of the people collection, with columns in place of the good ones."""
    moment = pa.scalar(1_704_067_200_000_000 + (day - 1) * 86_400_000_000, pa.timestamp("us", "UTC"))
    good = {
        "person": pa.array([1], pa.int64()),
        "city": pa.array(["Rome"]),
        "born": pa.array([0], pa.date32()),
        "gone": pa.array([False]),
        "happened": pa.array([moment.as_py()], moment.type),
        "reported": pa.array([moment.as_py()], moment.type),
    }
    path = shell.land(f"people/2024-01-{day:02d}/a.parquet", b"")
    pq.write_table(pa.table({name: array for name, array in (good | columns).items() if array is not None}), path)
    return path


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (EVENTS.replace("value:", "values:"), ("events.yaml:3:", "unknown field 'values'", "did you mean 'value'?")),
        (EVENTS.replace("key: [id]\n", ""), ("field 'key' is missing",)),
        (EVENTS.replace("append", "apend"), ("events.yaml:8:", "'apend' is not valid", "did you mean 'append'?")),
        (EVENTS.replace("{column: at}", "{column: at"), ("events.yaml:",)),
        (EVENTS.replace("name: events", "name: Events"), ("'Events' must match",)),
        (EVENTS.replace("id: string", "id: float"), ("key column id is a float",)),
        (
            EVENTS.replace("2024-02-01", "2023-02-01"),
            ("end 2023-02-01T00:00:00Z is not after start 2024-01-01T00:00:00Z",),
        ),
    ],
)
def test_a_wrong_collection_file(shell: Shell, wrong: str, named: tuple[str, ...]) -> None:
    path = shell.files / "events.yaml"
    path.write_text(wrong)
    message = shell.refused("init", str(path))
    assert all(name in message for name in named), message
    assert not shell.root.exists()


def test_a_collection_file_that_is_not_there(shell: Shell) -> None:
    assert "nowhere.yaml" in shell.refused("init", "nowhere.yaml")


def test_what_data_at_rest_depends_on_cannot_change(events: Shell) -> None:
    events.events(1, "a,1,10:00")
    events.ok("ingest", "events", "--date", "2024-01-01")
    message = events.refused("init", events.declared(EVENTS.replace("amount: int", "amount: string")))
    assert "value column amount of collection events cannot change from int to string" in message
    assert "next" in events.ok("init", events.declared(EVENTS.replace("2024-02-01", "2024-03-01"))).out


REFUSED_FILES = {
    "a missing column": ("id,at\na,2024-01-01T00:00:00Z\n", ("column amount",)),
    "a type that changed": ("id,amount,at\na,much,2024-01-01T00:00:00Z\n", ("amount", "much", "int")),
    "an overflow": ("id,amount,at\na,9223372036854775808,2024-01-01T00:00:00Z\n", ("amount", "9223372036854775808")),
    "a negative time": ("id,amount,at\na,1,1969-12-31T23:59:59Z\n", ("at",)),
    "no time": ("id,amount,at\na,1,\n", ("at", "null")),
    "a ragged line": ("id,amount,at\na,1\n", ("2",)),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_a_delta_file_that_cannot_be_taken_stops_its_day(events: Shell, case: str) -> None:
    content, named = REFUSED_FILES[case]
    file = events.land("events/2024-01-01/bad.csv", content)
    good = events.events(1, "a,1,10:00")
    message = events.refused("ingest", "events", "--date", "2024-01-01")
    expected = ("events/2024-01-01/bad.csv: ", "mend the file and run again", *named)
    assert all(name in message for name in expected), message
    kind = events("ingest", "events", "--date", "2024-01-01", "--json").document["error"]["kind"]
    assert kind == "FileRefused", "no gate has seen it"
    assert events.json("status", "events")["rows_ingested"] == 0
    assert ": 1 file cannot be taken: " in events.ok("log", "events").out
    file.write_text(good.read_text().replace("a,1,", "b,1,"))
    assert events.json("ingest", "events", "--date", "2024-01-01")["results"][0]["rows"] == 2


def test_a_delta_file_that_cannot_be_taken_is_set_aside_where_the_collection_says_so(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS.replace("append}", "append, bad_files: quarantine}")))
    shell.land("events/2024-01-01/bad.csv", "id,amount,at\na,1.5,2024-01-01T00:00:00Z\n")
    shell.events(1, "a,1,10:00")
    result = shell.json("ingest", "events", "--date", "2024-01-01")["results"][0]
    assert (result["rows"], result["files"], result["bad_files"]) == (1, 2, 1)


def test_an_empty_day_is_a_normal_day(events: Shell) -> None:
    (events.landing / "events" / "2024-01-01").mkdir(parents=True)
    result = events.json("ingest", "events", "--date", "2024-01-01")
    assert (result["results"][0]["outcome"], result["results"][0]["rows"]) == ("applied", 0)
    assert result["next_step"] == "tidemark seal events"
    assert events.json("seal", "events")["results"][0]["seal_text"] == "2024-01-02T00:00:00Z"


def test_a_day_that_has_not_landed(events: Shell) -> None:
    message = events.refused("ingest", "events", "--date", "2024-01-05")
    assert message == (
        "[2024-01-05T00:00:00Z, 2024-01-06T00:00:00Z) of events has not landed: "
        f"the folder {events.landing}/events/2024-01-05 is not there"
    )


def test_a_day_without_its_marker(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS.replace("envelope:", "ready: {marker: _DONE}, envelope:")))
    shell.land("events/2024-01-05/a.csv", "id,amount,at\n")
    assert shell.refused("ingest", "events", "--date", "2024-01-05").endswith("events/2024-01-05/_DONE is not there")


def test_a_file_in_place_of_a_day(events: Shell) -> None:
    events.land("events/2024-01-05", "")
    assert events.refused("ingest", "events", "--date", "2024-01-05").endswith("events/2024-01-05 is not a folder")


@pytest.mark.parametrize("name", ["a.CSV", "a.csv.gz", "A.Csv.zst"])
def test_a_day_whose_only_file_nearly_matches_is_no_empty_day(events: Shell, name: str) -> None:
    path = events.land(f"events/2024-01-01/{name}", "")
    message = events.refused("ingest", "events", "--date", "2024-01-01")
    assert message.startswith(f"nothing matches {path.parent}/*.csv, and {name} is there: ")
    assert message in events.refused("advance", "events", "--to", "2024-01-02")
    said = events.ok("ingest", "events", "--date", "2024-01-01", "--as-landed")
    assert f"passed over: {name}; source.path does not match them" in said.err
    assert events.ok("ingest", "events", "--date", "2024-01-01").out.startswith("nothing to do")


def test_files_beside_those_that_match_are_named_everywhere(events: Shell) -> None:
    for name in ("a.csv", "B.CSV", "c.csv.gz", "x/d.csv", "_part.csv", ".e.csv"):
        events.land(f"events/2024-01-01/{name}", "id,amount,at\n1,1,2024-01-01T01:00:00Z\n")
    said = events.ok("backfill", "events", "--date", "2024-01-01")
    names = "passed over: B.CSV, c.csv.gz, x/d.csv"
    assert names in said.out
    assert names in said.err
    assert names in events.ok("log", "events").out
    assert events.json("backfill", "events", "--date", "2024-01-01")["intervals"][0]["files_passed_over"] == 3


def test_a_full_snapshot_with_a_file_beside_it_is_refused(shell: Shell) -> None:
    whole = EVENTS.replace("envelope: append", "envelope: snapshot").replace("time: {column: at}\n", "")
    shell.ok("init", shell.declared(whole.replace(", at: timestamp", "")))
    for name in ("a.csv", "B.CSV"):
        shell.land(f"events/2024-01-01/{name}", "id,amount,at\n1,1,2024-01-01T01:00:00Z\n")
    message = shell.refused("ingest", "events", "--date", "2024-01-01")
    assert message.startswith("1 file of a full snapshot match ")
    assert "and B.CSV is there" in message
    shell.ok("ingest", "events", "--date", "2024-01-01", "--as-landed")


def test_a_day_in_a_folder_that_days_share_has_landed_when_its_file_is_there(shell: Shell) -> None:
    marker = 'ready: {marker: "{{ ds }}.done"}, envelope:'
    path = "events/{{ ds }}/*.csv"
    assert path in EVENTS
    shell.ok("init", shell.declared(EVENTS.replace(path, "events/{{ ds }}.csv")))
    shell.land("events/2024-01-01.csv", "id,amount,at\n")
    shell.ok("ingest", "events", "--date", "2024-01-01")
    assert shell.refused("ingest", "events", "--date", "2024-01-02").endswith("events/2024-01-02.csv is not there")
    marked = (
        EVENTS.replace(path, "marked/{{ ds }}*.csv")
        .replace("envelope:", marker)
        .replace("name: events", "name: marked")
    )
    shell.ok("init", shell.declared(marked))
    shell.land("marked/2024-01-01.csv", "id,amount,at\n")
    assert shell.refused("ingest", "marked", "--date", "2024-01-01").endswith("marked/2024-01-01.done is not there")
    shell.land("marked/2024-01-01.done", "")
    shell.ok("ingest", "marked", "--date", "2024-01-01")


def test_an_interval_that_is_not_over_is_not_completed(shell: Shell) -> None:
    now = datetime.now(UTC)
    yesterday, today, tomorrow, after = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 1, 2))
    open_ended = EVENTS.replace("2024-01-01", yesterday).replace("end: 2024-02-01\n", "")
    shell.ok("init", shell.declared(open_ended.replace("envelope:", "ready: always, envelope:")))
    said = shell.json("backfill", "events", "--from", yesterday, "--to", tomorrow)
    assert (said["not_over"], said["complete_below_text"]) == (2, f"{today}T00:00:00Z")
    not_over = "is not over: rows of it may still come"
    assert not_over in shell.refused("ingest", "events", "--date", today)
    assert not_over in shell("backfill", "events", "--date", today).err
    assert not_over in shell.refused("advance", "events", "--to", after)
    assert (
        shell.json("advance", "events", "--to", tomorrow, "--not-over")["complete_below_text"]
        == f"{tomorrow}T00:00:00Z"
    )
    assert (
        shell.json("backfill", "events", "--date", tomorrow, "--not-over")["complete_below_text"]
        == f"{after}T00:00:00Z"
    )


def test_a_day_outside_the_collection(events: Shell) -> None:
    assert "outside collection events" in events.refused("ingest", "events", "--date", "2023-12-31")
    events.land("events/2024-02-01/a.csv", "id,amount,at\n")
    assert "outside collection events" in events.refused("ingest", "events", "--date", "2024-02-01")


def test_a_root_that_is_not_there(shell: Shell) -> None:
    for words in (["status", "events"], ["as-of", "events"], ["status"], ["drain", "events"], ["verify", "events"]):
        assert f"root {shell.root} does not exist" in shell.refused(*words)
    assert not shell.root.exists()


def test_a_root_that_is_a_file(shell: Shell) -> None:
    shell.root.write_text("")
    assert f"{shell.root} is not a folder" in shell.refused("status", "events")
    assert "is not a folder" in shell.refused("init", shell.declared(EVENTS))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_root_that_cannot_be_written(shell: Shell) -> None:
    shell.root.mkdir(mode=0o500)
    assert "no permission" in shell.refused("init", shell.declared(EVENTS))


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that refuses even root")
def test_a_root_where_nobody_may_write(shell: Shell) -> None:
    assert "no permission for /sys/kernel" in shell.refused("init", shell.declared(EVENTS), "--root", "/sys/kernel")


def test_a_collection_that_is_not_there_names_those_that_are(events: Shell) -> None:
    events.ok("init", events.declared(PEOPLE))
    message = events.refused("status", "event")
    assert message == f"no collection event under {events.root}; existing: events, people; did you mean 'events'?"


def test_a_name_no_collection_can_have(events: Shell) -> None:
    assert "'../x' must match" in events.refused("status", "../x")


def test_no_root_at_all(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    message = Shell("", shell.landing, shell.files).refused("status", "events", code=2)  # type: ignore[arg-type]
    assert message == "no root: pass --root or set TIDEMARK_ROOT to a path or s3://bucket/prefix"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["as-of", "events", "--time", "yesterday"], "not a time: 'yesterday'; write 2013-01-02"),
        (["as-of", "events", "--time", "-1"], "is outside"),
        (["changes", "events", "--after", "2024-13-01"], "not a time"),
        (["ingest", "events", "--date", "2024-1-1x"], "not a day"),
        (["windows", "events", "--statistics", "--plot", "x.svg"], "leave --statistics out"),
        (["windows", "events", "--limit", "5", "--plot", "x.svg"], "draws all of them; leave --limit and --format out"),
        (["windows", "events", "--format", "csv", "--plot", "x.svg"], "leave --limit and --format out"),
        (["ingest", "events"], "which interval?"),
        (["ingest", "events", "--date", "2024-01-01", "--lower", "0", "--upper", "5"], "both name intervals"),
        (["ingest", "events", "--from", "2024-01-01"], "belong together"),
        (["gate", "events", "sealed"], "'sealed' is not one of 'unsealed', 'frontier', 'trace', 'compaction'"),
        (["statsu", "events"], "No such command 'statsu'"),
        (
            ["as-of", "events", "--format", "xml"],
            "Invalid value for '--format': 'xml' is not one of 'table', 'json', 'csv'",
        ),
        (["as-of", "events", "--limit", "few"], "'--limit': 'few' is not a whole number"),
        (["as-of", "events", "--limit=few"], "'--limit': 'few' is not a whole number"),
        (["as-of", "events", "--limit", "-1"], "'--limit': '-1' is below 0"),
        (["log", "events", "-n", "0"], "'-n' / '--number': '0' is below 1"),
        (["ingest", "events", "--from", "2024-01-02", "--to", "2024-01-01"], "--from 2024-01-02 is later than --to"),
        (["ingest", "events", "--date", "2024-01-01", "--cut", "soon"], "--cut: 'soon' is no reason"),
        (["collect", "events", "--keep-versions", "soon"], "--keep-versions: not a duration: 'soon'"),
        (["hold", "events", "x", "--for", "soon"], "'--for': not a duration: 'soon'"),
        (["hold", "events", "--for", "7d"], "name the hold:"),
        (["status", "events", "--root", ""], "no root: pass --root or set"),
        (["ingest", "events", "--date", "2024-01-01", "--landing", ""], "no landing: pass --landing or set"),
    ],
)
def test_a_wrong_command_line(events: Shell, words: list[str], named: str) -> None:
    assert named in events.refused(*words, code=2)
    said = events(*words, "--json")
    assert named in said.document["error"]["message"]
    assert said.code == 2


def test_a_wrong_batch(events: Shell) -> None:
    assert "no unsealed or quarantined batch is called 'x'" in events.refused("quarantine", "events", "x")


def test_a_reversed_interval(events: Shell) -> None:
    message = events.refused("seal", "events", "--lower", "2024-01-02", "--upper", "2024-01-01", code=2)
    assert message == "--lower 2024-01-02T00:00:00Z is not before --upper 2024-01-01T00:00:00Z"
    assert "is not before" in events.refused("late", "events", "--lower", "5", "--upper", "5", code=2)


def test_json_is_no_csv(events: Shell) -> None:
    for command in ("as-of", "changes"):
        said = events(command, "events", "--json", "--format", "csv")
        assert said.code == 2
        assert "--json and --format csv" in said.document["error"]["message"]


def test_a_sample_of_nothing_is_said(events: Shell) -> None:
    said = events.ok("init", events.declared(EVENTS), "--sample", "a.csv")
    assert "a.csv is not read: no type is left to infer" in said.err


def test_a_hold_for_no_time(events: Shell) -> None:
    assert "a hold lasts longer than 0s" in events.refused("hold", "events", "x", "--for", "0s")
    assert events.ok("hold", "events").out == "no holds\n"


@pytest.mark.parametrize("command", [("late", "list"), ("late", "replay")])
def test_late_rows_of_no_batch_and_no_file(events: Shell, command: tuple[str, str]) -> None:
    events.events(1, "a,1,10:00")
    events.ok("ingest", "events", "--date", "2024-01-01")
    assert events.refused(*command, "events", "--batch", "zz") == "no file was ingested by a batch zz…"
    message = events.refused(*command, "events", "--file", "2024-01-02/")
    assert message == "no file that was ingested has '2024-01-02/' in its path"
    events.ok(*command, "events", "--file", "2024-01-01/")


COMMANDS = [
    ("status", "events"),
    ("status",),
    ("log", "events"),
    ("verify", "events"),
    ("collect", "events"),
    ("collect", "events", "--dry-run"),
    ("ingest", "events", "--date", "2024-01-01"),
    ("gate", "events", "unsealed"),
    ("seal", "events"),
    ("drain", "events"),
    ("compact", "events"),
    ("as-of", "events"),
    ("as-of", "events", "--explain"),
    ("range", "events", "--on", "amount"),
    ("changes", "events"),
    ("late", "events"),
    ("late", "replay", "events"),
    ("hold", "events", "report"),
    ("quarantine", "events", "a"),
    ("doctor", "events"),
]


def test_what_a_newer_tidemark_wrote_asks_for_an_upgrade(events: Shell) -> None:
    events.events(1, "a,1,00:00:00")
    (version,) = (events.root / "events" / "versions").rglob("*.json")
    version.write_bytes(with_checksum(b'{"format":1000,"entirely":"different"}'))
    before = contents(events.root)
    for words in COMMANDS:
        line = events.refused(*words)
        assert "000000000001.json has format 1000" in line, words
        assert "upgrade Tidemark" in line
    said = events("verify", "events", "--json")
    assert said.document["error"]["kind"] == "UpgradeRequired"
    assert contents(events.root) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("declared", "amounts"), [("", None), ("duplicate_files: count,", [1, 1, 7]), ("duplicate_files: skip,", [1, 7])]
)
def test_a_file_with_the_bytes_of_another_of_its_day(shell: Shell, declared: str, amounts: list[int] | None) -> None:
    shell.ok("init", shell.declared(EVENTS.replace("envelope:", f"{declared} envelope:")))
    rows = "id,amount,at\n1,1,2024-01-01T01:00:00Z\n"
    for name, text in {"a.csv": rows, "b.csv": rows, "c.csv": rows.replace("1,1,", "2,7,"), "d.csv": rows[:13]}.items():
        shell.land(f"events/2024-01-01/{name}", text)
    if amounts is None:
        for _ in range(2):
            message = shell.refused("ingest", "events", "--date", "2024-01-01")
            assert "b.csv: has the bytes of events/2024-01-01/a.csv; remove one of them" in message
        shell.ok("init", shell.declared(EVENTS.replace("envelope:", "duplicate_files: count, envelope:")))
        shell.ok("ingest", "events", "--date", "2024-01-01")
        return
    said = shell.ok("backfill", "events", "--date", "2024-01-01")
    assert "b.csv has the bytes of events/2024-01-01/a.csv" in said.err
    assert ("1 file with the bytes of another" in said.out) is (len(amounts) == 3)
    answer = shell.json("as-of", "events")["rows"]
    assert sorted(row["amount"] for row in answer for _ in range(row["_multiplicity"])) == amounts
    shell.land("events/2024-01-01/e.csv", rows)
    if len(amounts) == 2:
        assert "skipped: events/2024-01-01/e.csv" in shell.ok("ingest", "events", "--date", "2024-01-01").err
        assert shell.ok("ingest", "events", "--date", "2024-01-01").out.startswith("nothing to do")


def test_a_file_that_was_skipped_counts_once_the_other_is_gone(shell: Shell) -> None:
    declared = EVENTS.replace("envelope:", "duplicate_files: skip, bad_files: quarantine, envelope:")
    shell.ok("init", shell.declared(f"{declared}reprocess_for: 3650d\n"))
    files = [shell.land(f"events/2024-01-01/{name}.csv", "id,amount,at\n1,5,2024-01-01T01:00:00Z\n") for name in "ab"]
    shell.ok("ingest", "events", "--date", "2024-01-01")
    files[0].unlink()
    shell.ok("ingest", "events", "--date", "2024-01-01", "--removed")
    shell.ok("advance", "events")
    assert [row["amount"] for row in shell.json("as-of", "events")["rows"]] == [5]


def test_equal_files_are_nothing_where_rows_do_not_add_up(shell: Shell) -> None:
    wrong = EVENTS.replace("envelope: append", "duplicate_files: skip, envelope: upsert")
    assert "duplicate_files belongs to the envelopes append and updates" in shell.refused("init", shell.declared(wrong))
