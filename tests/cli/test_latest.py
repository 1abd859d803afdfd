"""`latest-at`: the latest rows at a time, and of each row of a file; what is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.conftest import Shell

READINGS = """\
name: readings
key: [sensor, place]
value: [speed, seen, step]
columns: {sensor: string, place: int, speed: float, seen: timestamp, step: int, at: timestamp}
start: 2024-01-01
timelines: [seen]
time: {column: at}
source: {path: "{{ landing }}/readings/{{ ds }}/*.jsonl", format: jsonl, envelope: append}
"""


@pytest.fixture
def readings(shell: Shell) -> Shell:
    shell.ok("init", shell.declared(READINGS))
    rows = [("a", 1, 1.5, 1), ("a", 1, 2.5, 3), ("a", 2, None, 2), ("b", 1, 9.0, 5)]
    folder = shell.landing / "readings" / "2024-01-01"
    folder.mkdir(parents=True)
    records = [
        {
            "sensor": sensor, "place": place, "speed": speed, "step": hour,
            "seen": f"2024-01-01T{hour:02}:00:00Z", "at": f"2024-01-01T{hour:02}:30:00Z",
        }
        for sensor, place, speed, hour in rows
    ]  # fmt: skip
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    shell.ok("ingest", "readings", "--date", "2024-01-01")
    shell.ok("gate", "readings", "unsealed")
    shell.ok("seal", "readings")
    return shell


def of(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_the_latest_rows_at_a_time(readings: Shell) -> None:
    asked = ("latest-at", "readings", "--on", "seen", "--at", "2024-01-01T04:00:00Z")
    document = readings.json(*asked)
    assert (document["on"], document["at"], document["at_file"]) == ("seen", "2024-01-01T04:00:00Z", None)
    assert (document["time_text"], document["count"]) == ("2024-01-01T23:59:59.999999Z", 2)
    assert of(document["rows"], "sensor", "place", "speed", "seen") == [
        ("a", 1, 2.5, "2024-01-01T03:00:00Z"),
        ("a", 2, None, "2024-01-01T02:00:00Z"),
    ]
    assert of(readings.json(*asked, "--within", "1h")["rows"], "place") == [(1,)]
    assert of(readings.json(*asked, "--where", "place=2")["rows"], "place") == [(2,)]
    assert of(readings.json(*asked, "--where", "speed < 2")["rows"], "speed") == [(1.5,)]
    each = readings.json(*asked, "--each", "--ties", "speed", "--ties", "step")["rows"]
    assert of(each, "place", "speed", "speed_at", "step_at")[1] == (2, None, None, "2024-01-01T02:00:00Z")
    steps = readings.json("latest-at", "readings", "--on", "step", "--at", "4", "--within", "1")["rows"]
    assert of(steps, "step") == [(3,)]
    assert readings.json(*asked, "--time", "2024-01-01T01:30:00Z")["rows"][0]["speed"] == 1.5
    assert readings.json(*asked, "--event-time", "2024-01-01T01:30:00Z")["rows"][0]["speed"] == 1.5


def test_the_shapes_of_other_answers(readings: Shell) -> None:
    asked = ("latest-at", "readings", "--on", "seen", "--at", "2024-01-01T04:00:00Z")
    text = readings.ok(*asked, "--limit", "1").out
    assert "2 rows by seen at 2024-01-01T04:00:00Z, as known at 2024-01-01T23:59:59.999999Z, version" in text
    assert "1 more, --limit 0 shows all" in text
    lines = readings.ok(*asked, "--format", "csv").out.splitlines()
    assert lines[:2] == ["sensor,place,speed,seen,step", "a,1,2.5,2024-01-01T03:00:00Z,3"]
    assert readings.ok(*asked, "--format", "json").out == readings.ok(*asked, "--json").out


PROBES = """\
id,sensor,place,when,asked
p,a,1,2024-01-01T04:00:00Z,2024-01-01T02:00:00Z
q,b,1,2024-01-02T02:00:00+01:00,2024-01-01T23:00:00Z
r,,1,2024-01-02T00:00:00Z,2024-01-01T23:00:00Z
s,a,1,,2024-01-01T23:00:00Z
p,a,1,2024-01-01T04:00:00Z,2024-01-01T02:00:00Z
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_each_row_of_a_file(readings: Shell, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"probes.{ending}"
    path.write_text(PROBES)
    if ending == "parquet":
        instants = [pa.array([h and h * 3_600_000_000 + 1704067200000000 for h in some]).cast(pa.timestamp("us", "UTC"))
                    for some in ([4, 25, 24, None, 4], [2, 23, 23, 23, 2])]  # fmt: skip
        keys = {"id": list("pqrsp"), "sensor": ["a", "b", None, "a", "a"], "place": [1] * 5}
        pyarrow.parquet.write_table(pa.table({**keys, "when": instants[0], "asked": instants[1]}), path)
    asked = ("latest-at", "readings", "--on", "seen", "--at-file", str(path), "--at-column", "when")
    document = readings.json(*asked)
    assert (document["at"], document["at_file"]) == (None, str(path))
    assert of(document["rows"], "id", "speed", "_at") == [
        ("p", 2.5, "2024-01-01T03:00:00Z"),
        ("q", 9.0, "2024-01-01T05:00:00Z"),
        ("r", None, None),
        ("s", None, None),
        ("p", 2.5, "2024-01-01T03:00:00Z"),
    ]
    known = readings.json(*asked, "--known-at", "asked")
    assert known["time"] is None
    assert of(known["rows"], "id", "speed") == [("p", 1.5), ("q", 9.0), ("r", None), ("s", None), ("p", 1.5)]
    assert "5 rows of" in readings.ok(*asked, "--known-at", "asked").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "sen", "--at", "5"], "timeline: collection readings has no column 'sen'; did you mean 'seen'?"),
        (["--on", "speed", "--at", "5"], "timeline speed of collection readings is of type float; a timeline is"),
        (["--on", "seen", "--at", "noon"], "column seen is of type timestamp; 'noon' is no value of it"),
        (["--on", "seen", "--at", "2024-01-01", "--within", "long"], "not a duration: 'long'"),
        (["--on", "step", "--at", "5", "--within", "1h"], "within is '1h', and timeline step is int"),
        (["--on", "step", "--at", "5", "--time", "2025-01-01"], "outside the readable [since 1970"),
        (["--on", "step", "--at", "5", "--ties", "sped"], "ties: collection readings has no column 'sped'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(readings: Shell, words: list[str], said: str) -> None:
    assert said in readings.refused("latest-at", "readings", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "seen"], "give a time by --at, or a file of keys and times by --at-file"),
        (["--on", "seen", "--at", "5", "--at-file", "x.csv"], "give a time by --at, or a file"),
        (["--on", "seen", "--at", "5", "--known-at", "x"], "--at-column and --known-at are columns of a file"),
        (["--at", "5"], "'--on'"),
    ],
)
def test_options_that_do_not_fit_are_refused(readings: Shell, words: list[str], said: str) -> None:
    assert said in readings.refused("latest-at", "readings", *words, code=2)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.csv",
            "sensor,place\na,1\n",
            "no column 'seen' for the timeline seen; did you mean 'sensor'?",
        ),
        ("a.csv", "sensor,place,seen\na,one,2024-01-01\n", "row 1: column place"),
        ("a.csv", "sensor,place,seen\na,1,soon\n", "row 1: column seen"),
        ("a.csv", "sensor,place,seen,speed\na,1,2024-01-01T00:00:00Z,1\n", "column speed is in the table and in the"),
        ("a.csv", "sensor,place,seen\na,1\n", "a.csv: CSV parse error"),
        ("a.csv", "", "a.csv: Empty CSV file"),
        ("a.parquet", "nothing", "a.parquet: "),
        ("a.txt", "sensor", "a table is read from a .csv or a .parquet file"),
        ("", "", "a table is read from a .csv or a .parquet file"),
    ],
)
def test_files_that_cannot_be_read_are_refused_in_one_line(
    readings: Shell, tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    if name:
        path.write_text(text)
    assert said in readings.refused("latest-at", "readings", "--on", "seen", "--at-file", str(path))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_other_columns_of_a_file_are_shown_as_they_are(readings: Shell, tmp_path: Path, unit: str) -> None:
    seconds = pa.array([5]).cast(pa.timestamp("s"))
    columns = {
        "sensor": ["a"],
        "place": [1],
        "seen": pa.array([1704077999]).cast(pa.timestamp("s")),
        "day": pa.array([86_400_000]).cast(pa.date64()),
        "noon": pa.array([43_200], pa.int32()).cast(pa.time32("s")),
        "took": pa.array([5]).cast(pa.duration(unit)),
        "then": seconds.cast(pa.timestamp(unit)),
        "there": seconds.cast(pa.timestamp(unit, "Europe/Paris")),
    }
    table = pa.table(columns)
    path = tmp_path / "probes.parquet"
    pyarrow.parquet.write_table(table, path)
    [row] = readings.json("latest-at", "readings", "--on", "seen", "--at-file", str(path))["rows"]
    assert (row["day"], row["noon"][:8], row["took"]) == ("1970-01-02", "12:00:00", 5)
    assert (row["then"], row["there"], row["seen"]) == (*["1970-01-01T00:00:05Z"] * 2, "2024-01-01T02:59:59Z")
    assert row["step"] == 1
    path = tmp_path / "probes.csv"
    path.write_text("sensor,place,seen,noon,then\na,1,2024-01-01T04:00:00Z,12:00:00,2024-01-01 04:00:00\n")
    [row] = readings.json("latest-at", "readings", "--on", "seen", "--at-file", str(path))["rows"]
    assert (row["noon"], row["then"], row["step"]) == ("12:00:00", "2024-01-01T04:00:00Z", 3)
