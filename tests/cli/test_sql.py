"""`tidemark sql`: a statement, a pipe, a file, and a prompt on a real terminal."""

from __future__ import annotations

import csv
import json
import os
import pty
import select
import signal
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Shell
from tidemark import sql

START = "from tidemark.cli import app; app()"
INCLUDE = Path(__file__).parents[2] / "include"


@pytest.fixture
def asked(events: Shell) -> Shell:
    """A shell with two days of events."""
    events.events(1, "a,1,08:00", "b,5,09:00")
    events.events(2, "a,2,08:00", '"é ""x""",,09:00')
    for day in ("2024-01-01", "2024-01-02"):
        events.moved("events", day)
    return events


def test_a_statement_is_answered_with_what_it_read(asked: Shell) -> None:
    said = asked.ok("sql", "SELECT id, sum(amount) AS total FROM events GROUP BY id ORDER BY id")
    assert [line.split() for line in said.out.splitlines()[2:5]] == [["a", "3"], ["b", "5"], ["é", '"x"']]
    assert "3 rows of events at version" in said.out
    assert "complete below 2024-01-03T00:00:00Z" in said.out
    sums = asked.json("sql", "SELECT sum(amount) AS total, sum(amount) * 10::HUGEINT ** 30 AS large FROM events")[
        "rows"
    ]
    assert sums == [{"total": 8, "large": 8e30}]
    document = asked.json("sql", "SELECT id FROM events FOR TIMESTAMP AS OF '2024-01-01T12:00:00Z' ORDER BY id")
    assert (document["rows"], document["count"]) == ([{"id": "a"}, {"id": "b"}], 2)
    assert document["complete_below_text"] == "2024-01-03T00:00:00Z"
    assert list(document["collections"]) == ["events"]


def test_each_read_answers_as_it_did_by_the_clock(events: Shell) -> None:
    for day in (1, 2):
        events.events(day, f"a,{day},08:00", "b,5,09:00")
        events.moved("events", f"2024-01-0{day}")
    sealed = next(e for e in events.json("log", "events")["versions"] if e["kind"] == "sealed")
    then, before = sealed["written_at_text"], f"{sealed['written_at'] - 1}us"
    events.events(3, "c,7,08:00")
    events.moved("events", "2024-01-03")
    for command, *options in (
        ("as-of", "events"),
        ("range", "events", "--on", "amount"),
        ("sql", "SELECT id, amount FROM events"),
        ("changes", "events"),
    ):
        clock = "--committed-upto" if command == "changes" else "--committed"
        now, past, first_day = (
            events.json(command, *options, *more)["count"] for more in ((), (clock, then), (clock, before))
        )
        assert (now, first_day) == (past + 1, 2), command
    assert events.json("changes", "events", "--committed-after", then)["count"] == 1
    document = events.json("as-of", "events", "--committed", then)
    assert (document["committed_text"], document["time_text"]) == (then, "2024-01-02T23:59:59.999999Z")
    said = events.ok("as-of", "events", "--committed", then).out
    assert f"as known at 2024-01-02T23:59:59.999999Z, the newest at {then} by the clock" in said
    both = events.refused("as-of", "events", "--committed", then, "--time", "2024-01-02")
    assert both == "time is a time of the schedule, and committed of the wall clock; give one of them"
    early = events.refused("export", "events", "--to", "x.csv", "--committed", "1970-01-02")
    assert "no commit by then is recorded; the earliest moment that can be asked is 20" in early


def test_what_is_opened_is_explained(asked: Shell) -> None:
    said = asked.ok("sql", "SELECT amount FROM events WHERE id = 'b'", "--explain").out
    assert "chunks read" in said
    assert 'where (id == "b")' in said
    assert asked.json("sql", "SELECT amount FROM events", "--explain")["reads"][0]["parts"] == 2


def test_csv_and_a_limit(asked: Shell) -> None:
    said = asked.ok("sql", "SELECT id, amount FROM events ORDER BY id, amount", "--format", "csv", "--limit", "3")
    assert said.out == "id,amount\na,1\na,2\nb,5\n"
    assert "1 row of no collection" not in asked.ok("sql", "SELECT 1 AS one").out


def test_types_that_no_collection_has_are_shown(asked: Shell) -> None:
    shown = "[1, 2] AS l, {'a': DATE '2024-01-01'} AS s, TIME '12:00' AS t, TIMESTAMP_NS '2024-01-01' AS n, NULL AS z"
    (row,) = asked.json("sql", f"SELECT {shown}")["rows"]
    assert row == {
        "l": "[1, 2]",
        "s": '{"a": "2024-01-01"}',
        "t": "12:00:00.000000",
        "n": "2024-01-01T00:00:00Z",
        "z": None,
    }


def test_what_is_piped_in_is_the_statement(asked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from tidemark.cli import app

    answer = CliRunner().invoke(
        app, ["--root", str(asked.root), "sql", "--format", "csv"], input="SELECT count(*) AS n FROM events\n"
    )
    assert answer.stdout == "n\n4\n"


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_file_appears_whole(asked: Shell, ending: str) -> None:
    out = asked.files / f"found.{ending}"
    out.write_text("before")
    document = asked.json("sql", "SELECT id, amount FROM events ORDER BY id, amount", "--out", str(out), "--replace")
    assert (document["rows"], document["file"]) == (4, str(out))
    match ending:
        case "parquet":
            found = [tuple(row.values()) for row in pq.read_table(out).to_pylist()]
        case "csv":
            found = [("a", 1), ("a", 2), ("b", 5), ('é "x"', None)]
            assert out.read_text() == 'id,amount\na,1\na,2\nb,5\n"é ""x""",\n'
        case _:
            found = [tuple(json.loads(line).values()) for line in out.read_text().splitlines()]
    assert found == [("a", 1), ("a", 2), ("b", 5), ('é "x"', None)]
    assert [path.name for path in asked.files.glob(".*")] == []


def test_a_file_that_fails_leaves_what_was_there(asked: Shell) -> None:
    out = asked.files / "found.csv"
    out.write_text("before")
    refused = asked.refused(
        "sql", "SELECT CASE WHEN amount = 2 THEN error('stop') ELSE id END FROM events", "--out", str(out), "--replace"
    )
    assert "stop" in refused
    assert "is there; say replace" in asked.refused("sql", "SELECT 1", "--out", str(out))
    assert out.read_text() == "before"
    assert [path.name for path in asked.files.glob(".*")] == []


def test_what_does_not_fit_together_is_refused(asked: Shell) -> None:
    out = str(asked.files / "x.csv")
    assert "its ending says no format" in asked.refused("sql", "SELECT 1", "--out", f"{out}.txt")
    assert "--replace is for the file of --out" in asked.refused("sql", "SELECT 1", "--replace", code=2)
    assert "leave --limit and --format out" in asked.refused("sql", "SELECT 1", "--out", out, "--limit", "3", code=2)
    assert "did you mean 'events'" in asked.refused("sql", "SELECT * FROM event")
    assert "write at least 32MiB" in asked.refused("sql", "SELECT 1", "--memory", "lots")
    assert "there is no folder" in asked.refused("sql", "SELECT 1", "--out", str(asked.files / "none" / "x.csv"))


REFUSED = "CAST(… AS VARCHAR)"
"""What is said of a type whose values Arrow would have otherwise, whatever the format."""
TYPES = {
    # an expression: its type in Parquet, None if there is none; its text
    "interval 1 day": (None, "[0, 1, 0]"),
    "[interval 1 day, null]": (None, "[[0, 1, 0], null]"),
    "{'a': interval 1 day}": (None, '{"a": [0, 1, 0]}'),
    "map {'a': interval 1 day}": (None, '[["a", [0, 1, 0]]]'),
    "union_value(a := 1)": (None, "1"),
    "[union_value(a := 'é')]": (None, '["é"]'),
    "struct_pack()": (None, "{}"),
    "'101'::bit": (REFUSED, ""),
    "{'a': ['101'::bit]}": (REFUSED, ""),
    "'12:00:00+02'::timetz": (REFUSED, ""),
    "1::bignum": (REFUSED, ""),
    "340282366920938463463374607431768211455::uhugeint": (REFUSED, ""),
    "1::variant": (REFUSED, ""),
    "170141183460469231731687303715884105727::hugeint": (
        "decimal128(38, 0)",
        "170141183460469231731687303715884105727",
    ),
    "'6222e92b-d1f4-403c-9887-a180cbf9606a'::uuid": ("string", "6222e92b-d1f4-403c-9887-a180cbf9606a"),
    "'a'::enum('a', 'b')": ("dictionary<values=string, indices=uint8, ordered=0>", "a"),
    "map {'a': 1}": ("map<string, int32 ('x')>", '[["a", 1]]'),
    "[null, '\\xff'::blob]": ("list<element: binary>", '[null, "/w=="]'),
    "['infinity'::timestamp, '2020-01-01']": (
        "list<element: timestamp[us]>",
        '["9223372036854775807", "2020-01-01T00:00:00Z"]',
    ),
    "['2020-01-01 00:00:00.000000001'::timestamp_ns]": ("list<element: timestamp[ns]>", '["2020-01-01T00:00:00Z"]'),
    "row(1, 'nan'::double)": ("struct<element1: int32, element2: double>", '{"element1": 1, "element2": "nan"}'),
}


@pytest.mark.parametrize(
    ("expression", "type_", "text"), [(expression, *case) for expression, case in TYPES.items()], ids=TYPES
)
def test_a_file_has_every_type_of_duckdb_or_says_why_not(
    shell: Shell, expression: str, type_: str | None, text: str
) -> None:
    for ending in ("parquet", "csv", "jsonl"):
        out = shell.files / f"x.{ending}"
        words = ("sql", f"SELECT {expression} AS x", "--out", str(out))
        if type_ == REFUSED or (ending == "parquet" and type_ is None):
            refused = shell.refused(*words)
            assert refused.startswith("column x is of type ")
            assert (REFUSED in refused) == (type_ == REFUSED)
            assert not out.exists()
            continue
        shell.ok(*words)
        if ending == "parquet":
            assert str(pq.read_schema(out).field("x").type) == type_
        elif ending == "csv":
            assert list(csv.reader(out.open(encoding="utf-8"))) == [["x"], [text]]
        else:
            assert json.loads(out.read_text(encoding="utf-8")) == {"x": text}
            by_value = sql(str(shell.root), f"SELECT {expression} AS x, 1 AS y")
            assert by_value.export(shell.files / "parts", format="jsonl", partition_by="x").files == 1


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, root: Path, state: Path) -> None:
        self.pid, self._descriptor = pty.fork()
        if not self.pid:  # pragma: no cover (the child)
            os.environ.update(PYTHONPATH=str(INCLUDE), XDG_STATE_HOME=str(state), TERM="dumb")
            os.execv(sys.executable, [sys.executable, "-c", START, "--root", str(root), "sql"])

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing of it is left, whatever became of the test."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def interrupted(self) -> None:
        """Interrupt what runs; once more, as a person does, where a busy machine did not hear it."""
        self.type("\x03")
        try:
            self.until("interrupted", seconds=30)
        except AssertionError:
            self.type("\x03")
            self.until("interrupted")

    def until(self, message: str, seconds: float = 60) -> str:
        """What is shown until `message` is."""
        found, end = "", time.monotonic() + seconds
        while message not in found:
            assert time.monotonic() < end, f"{message!r} did not come: {found!r}"
            if select.select([self._descriptor], [], [], 0.2)[0]:
                found += os.read(self._descriptor, 4096).decode(errors="replace")
        return found


def test_a_prompt_on_a_terminal(asked: Shell, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Terminal(asked.root, state) as terminal:
        terminal.until("tidemark> ")
        terminal.type("SELECT id,\n")
        terminal.until("     ...> ")
        terminal.type("amount FROM eve\t WHERE amount = 5;\n")
        assert "1 row of events at version" in terminal.until("complete below 2024-01-03T00:00:00Z")
        terminal.type("SELECT * FROM nowhere;\n")
        terminal.until("error: there is no collection nowhere")
        terminal.type("SELECT length(repeat('x', 1900000000));\n")
        terminal.until("error: the statement needs more memory than it may use")
        terminal.type(".tables\n")
        terminal.until("events\r\n")
        terminal.type("SELECT count(*) FROM range(10000000) a, range(1000000) b WHERE a.range + b.range = 7;\n")
        time.sleep(1)
        terminal.interrupted()
        terminal.type(".help\n")
        terminal.until("Each collection is a table")
        terminal.type(".quit\n")
        assert os.waitpid(terminal.pid, 0)[1] == 0
    history = state / "tidemark" / "sql_history"
    assert "amount FROM events WHERE amount = 5;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
