"""SQL over the collections of a root: the answers of `as_of`, `changes` and `windows`, as DuckDB computes with them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tidemark
from simulation.plain_definitions import windows_of
from simulation.sea import Sea
from support.world import DAY
from tidemark.api.sql import database as sql_database
from tidemark.api.sql import interrupts
from tidemark.errors import InvalidUsage, MissingExtra, TidemarkError
from tidemark.model.collection import Envelope
from tidemark.model.instant import format_instant
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.simulation


def row(k: int, v: str, t: int, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": t, "e": t, "o": 1, "gone": False, **more}


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    """Upserts of two days, which correct each other, and what one may join them with."""
    made = Sea(tmp_path, root=tmp_path / "root")
    made.landed("tides", envelope=Envelope.UPSERT)
    made.landed("ports")
    made.ingest("tides", 0, ("a", [row(1, "low", 1), row(2, "low", 2), row(3, "low", 3)]))
    made.ingest("tides", 1, ("b", [row(2, "high", 12), row(3, "low", 13, gone=True), row(4, "high", 14)]))
    made.ingest("ports", 0, ("a", [row(1, "Cuxhaven", 1), row(2, "Husum", 1), row(2, "Husum", 1)]))
    return made


def rows(sea: Sea, statement: str, *parameters: Any, **more: Any) -> list[tuple[Any, ...]]:
    table = tidemark.sql(str(sea.root), statement, parameters or None, **more).to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def at(instant: int) -> str:
    return format_instant(instant)


def test_a_collection_is_a_table_of_the_rows_it_holds(sea: Sea) -> None:
    assert rows(sea, "SELECT * FROM tides ORDER BY k") == [(1, "low"), (2, "high"), (4, "high")]
    assert rows(sea, "FROM Tides SELECT count(*)") == [(3,)]
    assert rows(sea, 'SELECT "v", count(*) FROM "tides" GROUP BY v ORDER BY 1') == [("high", 2), ("low", 1)]


def test_a_row_of_multiplicity_two_is_two_rows(sea: Sea) -> None:
    assert rows(sea, "SELECT k, v FROM ports ORDER BY k") == [(1, "Cuxhaven"), (2, "Husum"), (2, "Husum")]
    counted = "SELECT k, sum(_multiplicity) FROM as_of('ports', multiplicity => TRUE) GROUP BY k ORDER BY k"
    assert rows(sea, counted) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "table",
    [
        "tides FOR TIMESTAMP AS OF '{then}'",
        "tides FOR SYSTEM_TIME AS OF TIMESTAMP '{then}'",
        "tides TIMESTAMP AS OF '{then}'",
        "tides AT (TIMESTAMP => '{then}')",
        "as_of('tides', '{then}')",
        "as_of('tides', time => {micros})",
        "as_of(collection := 'tides', event_time => '{then}')",
    ],
)
def test_what_was_known_then(sea: Sea, table: str) -> None:
    table = table.format(then=at(9), micros=9)
    assert rows(sea, f"SELECT k, v FROM {table} ORDER BY k") == [(1, "low"), (2, "low"), (3, "low")]
    joined = f"SELECT old.v, tides.v FROM {table} AS old JOIN tides USING (k) ORDER BY k"
    assert rows(sea, joined) == [("low", "low"), ("low", "high")]
    assert rows(sea, f"SELECT tides.k FROM {table} WHERE tides.k = 3") == [(3,)]


def test_what_was_known_by_the_clock(sea: Sea) -> None:
    """Of several tables at once, and in each way to say it: `then` is between two ingests."""
    root, then = str(sea.root), int(sea.clock() * 1_000_000)
    past = tidemark.open(root, "tides").as_of().to_arrow().num_rows
    sea.clock.now += 60
    sea.ingest("tides", 2, ("c", [row(9, "new", 21), row(1, "high", 22)]))
    sea.ingest("ports", 1, ("b", [row(9, "Büsum", 11)]))
    at_once = "SELECT (SELECT count(*) FROM tides), (SELECT count(*) FROM ports)"
    assert rows(sea, at_once) == [(past + 1, 4)]
    assert rows(sea, at_once, committed=then) == [(past, 3)]
    for table in (
        f"tides FOR COMMITTED AS OF '{at(then)}'",
        f"tides COMMITTED AS OF {then}",
        f"tides AT (COMMITTED => TIMESTAMP '{at(then)}')",
        f"as_of('tides', committed => '{at(then)}')",
    ):
        assert rows(sea, f"SELECT count(*) FROM {table}") == [(past,)]
        assert rows(sea, f"SELECT new.v FROM {table} AS old JOIN tides AS new USING (k) WHERE k = 1") == [("high",)]
    learned = f"FROM changes('tides', committed_after => {then}, net => TRUE) SELECT k, v, diff ORDER BY ALL"
    assert rows(sea, learned) == [(1, "high", 1), (1, "low", -1), (9, "new", 1)]
    count = "SELECT count(*) FROM"
    assert rows(sea, f"{count} changes('tides')", committed=then) == rows(
        sea, f"{count} changes('tides', committed_upto => {then})"
    )
    assert rows(sea, f"{count} tides FOR COMMITTED AS OF '2400-01-01'") == [(past + 1,)]
    assert rows(sea, f"{count} tides FOR TIMESTAMP AS OF '{at(9)}'", committed=then) == [(3,)]


def test_a_version_is_the_collection_as_it_was_opened_then(sea: Sea) -> None:
    version = tidemark.open(str(sea.root), "tides").version
    sea.ingest("tides", 2, ("c", [row(9, "new", 21)]))
    assert rows(sea, "SELECT count(*) FROM tides") == [(4,)]
    assert rows(sea, f"SELECT count(*) FROM tides FOR VERSION AS OF {version}") == [(3,)]
    answer = tidemark.sql(str(sea.root), f"SELECT * FROM tides FOR VERSION AS OF {version}")
    assert (answer.versions, answer.complete_below) == ({"tides": version}, 2 * DAY)
    both = tidemark.sql(str(sea.root), f"FROM tides JOIN tides FOR VERSION AS OF {version} AS old USING (k)")
    assert both.versions["tides"] > version
    with pytest.raises(InvalidUsage, match="version 999"):
        rows(sea, "SELECT * FROM tides FOR VERSION AS OF 999")


def test_changes_are_those_of_changes(sea: Sea) -> None:
    found = rows(sea, f"SELECT k, v, _change_type FROM changes('tides', '{at(9)}') ORDER BY k, _change_type, v")
    expected = tidemark.open(str(sea.root), "tides").changes(after=9).to_arrow().select(["k", "v", "_change_type"])
    assert found == sorted(
        ((r["k"], r["v"], r["_change_type"]) for r in expected.to_pylist()), key=lambda r: (r[0], r[2])
    )
    assert rows(sea, "SELECT count(*) FROM changes('tides', NULL, 9)") == [(3,)]
    assert rows(sea, "SELECT k, diff FROM changes('tides', net => TRUE) c ORDER BY k") == [(1, 1), (2, 1), (4, 1)]
    assert rows(sea, "SELECT v FROM changes('tides') WHERE k = 4") == [("high",)]


def test_windows_are_those_of_windows(sea: Sea) -> None:
    counts = Windows((), "event_time", Tumbling(DAY), (Aggregate("n", Function.COUNT),))
    sea.landed("events")
    sea.ingest("events", 0, ("a", [row(1, "a", 3), row(2, "a", 4)]))
    sea.ingest("events", 1, ("b", [row(1, "a", 12)]))
    sea.add(windows_of("by_day", counts, "events"))
    sea.correct("by_day")
    expected = tidemark.open(str(sea.root), "by_day").windows().to_arrow().to_pylist()
    assert expected
    found = tidemark.sql(str(sea.root), "SELECT * FROM windows('by_day') ORDER BY window_start").to_arrow().to_pylist()
    assert found == expected
    with pytest.raises(InvalidUsage, match="tides is not defined by windows"):
        rows(sea, "SELECT * FROM windows('tides')")


def test_parameters_are_values_and_never_text(sea: Sea) -> None:
    assert rows(sea, "SELECT k FROM tides WHERE v = ?", "low' OR 'a' = 'a") == []
    assert rows(sea, "SELECT k FROM tides WHERE v = ? ORDER BY k", "high") == [(2,), (4,)]
    named = tidemark.sql(str(sea.root), "SELECT k FROM tides WHERE k > $least", {"least": 2})
    assert named.to_arrow()["k"].to_pylist() == [4]


def test_one_statement_sees_one_moment(sea: Sea) -> None:
    answer = tidemark.sql(str(sea.root), "SELECT (SELECT count(*) FROM tides) + (SELECT count(*) FROM tides) AS n")
    sea.ingest("tides", 2, ("c", [row(9, "new", 21)]))
    assert answer.to_arrow()["n"].to_pylist() == [6]
    assert answer.to_arrow()["n"].to_pylist() == [6], "also when it is computed again"
    assert answer.versions["tides"] < tidemark.open(str(sea.root), "tides").version
    assert answer.complete_below == 2 * DAY


def test_every_answer_says_what_it_read(sea: Sea) -> None:
    answer = tidemark.sql(str(sea.root), "SELECT t.k FROM tides t JOIN ports USING (k)")
    assert set(answer.versions) == {"tides", "ports"}
    assert answer.complete_below == DAY
    assert "ports at version" in repr(answer)
    assert tidemark.sql(str(sea.root), "SELECT 1 AS one").complete_below is None


def test_what_a_statement_opens_is_explained(tmp_path: Path) -> None:
    made = Sea(tmp_path, root=tmp_path / "root")
    made.landed("tides")
    for day in range(3):
        made.ingest("tides", day, ("a", [row(100 * day + at, "a", day * DAY + 1) for at in range(9)]), until="drain")
    answer = tidemark.sql(str(made.root), "SELECT v FROM tides WHERE k = 105 UNION ALL SELECT v FROM tides")
    narrow, whole = sorted(answer.explain(), key=lambda read: read.parts_opened)
    assert (narrow.parts, narrow.parts_opened, narrow.missed["keys"]) == (3, 1, 2)
    assert narrow.question.endswith("; where (k == 105)")
    assert (whole.parts_opened, whole.columns) == (3, ("v", "_diff"))
    windowless = tidemark.sql(str(made.root), "SELECT count(*) FROM changes('tides') WHERE k = 105")
    assert [read.parts_opened for read in windowless.explain()] == [1]
    assert answer.to_arrow()["v"].to_pylist() == ["a"] * 28


def test_the_shapes_of_an_answer(sea: Sea) -> None:
    answer = tidemark.sql(str(sea.root), "SELECT k, v FROM tides ORDER BY k")
    assert answer.schema.names == ["k", "v"]
    assert answer.to_pandas()["k"].tolist() == [1, 2, 4]
    assert answer.to_polars()["k"].to_list() == [1, 2, 4]
    assert answer.reader().read_all() == answer.to_arrow()
    assert (answer.count(), answer.head(2)["k"].to_pylist()) == (3, [1, 2])
    empty = tidemark.sql(str(sea.root), "SELECT k, v FROM tides WHERE k > 99")
    assert (empty.to_arrow().num_rows, empty.schema.names) == (0, ["k", "v"])


def test_show_and_describe_say_what_there_is(sea: Sea) -> None:
    assert rows(sea, "SHOW TABLES") == [("ports",), ("tides",)]
    assert [found[:2] for found in rows(sea, "DESCRIBE tides")] == [("k", "BIGINT"), ("v", "VARCHAR")]
    assert rows(sea, "SELECT column_name FROM (SUMMARIZE tides)") == [("k",), ("v",)]


def test_columns_of_a_pivot_come_from_rows(sea: Sea) -> None:
    pivot = "PIVOT {} ON v USING count(*) GROUP BY k ORDER BY k"
    assert rows(sea, pivot.format("tides")) == [(1, 0, 1), (2, 1, 0), (4, 1, 0)]
    assert rows(sea, f"SELECT high FROM ({pivot.format('tides')}) WHERE low = 1") == [(0,)]
    assert rows(sea, pivot.format(f"as_of('tides', '{at(9)}')")) == [(1, 1), (2, 1), (3, 1)]
    with pytest.raises(InvalidUsage, match="come from rows, which are not read to explain it; write IN"):
        tidemark.sql(str(sea.root), f"SELECT high FROM ({pivot.format('tides')})").explain()


REFUSED: list[tuple[str, str]] = [
    ("SELECT * FROM tids", "there is no collection tids in .*did you mean 'tides'"),
    ("SELECT * FROM far_away", "there is no collection far_away in .*; there are ports, tides"),
    ("SELECT * FROM changes('tids')", "there is no collection tids .*did you mean 'tides'"),
    ("SELECT * FROM query_table('tides')", "tides is only in a text of the statement; write it as a name"),
    ("SELECT x FROM tides", 'Referenced column "x" not found in FROM clause! Candidate bindings: "k"'),
    ("SELEC 1", 'syntax error at or near "SELEC"'),
    ("SELECT at FROM tides", 'near "FROM"$'),
    ("SELECT k FROM tides ORDER BY at", "near .at.; if at is a name, write it in double quotes"),
    ("SELECT * FROM order", "near .order.; if order is a name, write it in double quotes"),
    ("SELECT 'open", "unterminated"),
    ("", "the statement is empty"),
    ("-- nothing", "the statement is empty"),
    ("SELECT 1; SELECT 2", "there are 2 statements; ask one at a time"),
    ("CREATE TABLE x (a INT)", "CREATE is not asked here: only SELECT reads"),
    ("INSERT INTO tides VALUES (1, 'a')", "INSERT is not asked here"),
    ("DELETE FROM tides", "DELETE is not asked here"),
    ("COPY tides TO '/tmp/x'", "COPY is not asked here"),
    ("ATTACH '/tmp/x'", "ATTACH is not asked here"),
    ("SET memory_limit = '100GB'", "SET is not asked here"),
    ("PRAGMA version", "PRAGMA is not asked here"),
    ("CALL pragma_version()", "CALL is not asked here"),
    ("LOAD httpfs", "LOAD is not asked here"),
    ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
    ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
    ("SELECT * FROM glob('/etc/*')", "disabled by configuration"),
    ("SELECT * FROM '/etc/passwd'", "there is no collection /etc/passwd"),
    ("SELECT * FROM tides FOR TIMESTAMP AS OF 'noon'", "'noon'"),
    ("SELECT * FROM tides FOR TIMESTAMP AS OF now()", "now is no value that can be read here"),
    ("SELECT * FROM tides FOR TIMESTAMP AS OF '2400-01-01'", "outside the readable"),
    ("SELECT * FROM tides FOR TIMESTAMP OF '2013-01-01'", "write FOR TIMESTAMP AS OF and a time"),
    ("SELECT * FROM tides FOR TIMESTAMP AS OF NULL", "is no time"),
    ("SELECT * FROM tides FOR VERSION AS OF '2013-01-01'", "a version is a whole number"),
    ("SELECT * FROM tides FOR COMMITTED AS OF '1969-12-31'", "is outside"),
    ("SELECT * FROM tides FOR COMMITTED AS OF '1970-01-01'", "no commit by then is recorded; the earliest moment"),
    ("SELECT * FROM as_of('tides', 9, committed => 9)", "time is a time of the schedule, and committed of the wall"),
    ("SELECT * FROM changes('tides', 9, committed_after => 9)", "after is a time of the schedule, and committed_after"),
    ("SELECT * FROM tides AT (VERSION => 1", r"the closing \) is missing"),
    ("SELECT * FROM tides AT (VERSION 1)", r"write AT \(VERSION => …\)"),
    ("SELECT * FROM changes(tides)", "tides is no value that can be read here; write it in single quotes"),
    ("SELECT * FROM changes()", "write the name of a collection in single quotes first"),
    ("SELECT * FROM changes('tides', nett => TRUE)", "nett is too many; it is changes"),
    ("SELECT * FROM changes('tides', 1, 2, TRUE, 5)", "one argument is too many; it is changes"),
    ("SELECT * FROM changes('tides', net => 5)", "net is 5; write TRUE or FALSE"),
    ("SELECT * FROM changes('tides' 1)", r"1 where , or \) should be"),
    ("SELECT * FROM changes('tides'", "the end of the statement where"),
    ("SELECT * FROM latest_at('tides')", "write the name of a timeline"),
    ("SELECT * FROM latest_at('tides', 'v', 1)", "of type string; a timeline is"),
    ("SELECT error('stop') FROM tides", "stop"),
    ("SELECT lenght(v) FROM tides", "^there is no scalar function lenght; did you mean 'length'"),
    ("SELECT * FROM chnges('tides')", "^there is no table function chnges; did you mean 'changes'"),
    ("SELECT 1::texxt", "^there is no type texxt"),
    ("CREATE TABLE x AS PIVOT tides ON v", "CREATE is not asked here"),
    ("WITH a AS (SELECT 1) INSERT INTO x PIVOT tides ON v", "INSERT is not asked here"),
    ("UPDATE EXTENSIONS", "UPDATE is not asked here"),
    ("SELECT \0", "null character"),
    ("SELECT '" + "x" * 1_000_001 + "'", "characters; at most 1,000,000"),
]


def test_what_cannot_be_asked_is_refused_in_one_line(sea: Sea) -> None:
    for statement, message in REFUSED:
        with pytest.raises(TidemarkError, match=message) as refused:
            tidemark.sql(str(sea.root), statement).to_arrow()
        assert "\n" not in str(refused.value), statement[:50]
        assert refused.value.exit_code == 1, statement[:50]


def test_a_name_in_a_text_or_a_comment_is_no_table(sea: Sea) -> None:
    text = "SELECT 'tides FOR TIMESTAMP AS OF 1' AS a, 'été' AS b -- changes('nothing')\n /* FROM x AT (VERSION => 1 */"
    assert rows(sea, text) == [("tides FOR TIMESTAMP AS OF 1", "été")]
    assert rows(sea, "WITH changes AS (SELECT 1 AS ports) SELECT ports FROM changes") == [(1,)]


def test_a_collection_that_cannot_be_read_matters_only_if_it_is_asked(sea: Sea) -> None:
    sea.landed("quiet")
    assert rows(sea, "SELECT k AS quiet FROM tides WHERE k = 1") == [(1,)]
    assert list(tidemark.sql(str(sea.root), "SELECT k AS quiet FROM tides").versions) == ["tides"]
    with pytest.raises(InvalidUsage, match="quiet: nothing is sealed yet"):
        rows(sea, "SELECT * FROM quiet")


def test_a_read_that_fails_within_duckdb_is_raised_as_itself(sea: Sea) -> None:
    sea.landed("negative", envelope=Envelope.UPDATES)
    sea.ingest("negative", 0, ("a", [row(1, "debt", 1, d=-2)]))
    sea.ingest("negative", 1, ("b", [row(1, "paid", 12, d=3), row(2, "paid", 12, d=1)]))
    refused = r"the row k 1, v debt has the multiplicity -2, which no table can show; read it with its multiplicity"
    for columns in ("*", "k", "count(*)", "max(v)"):
        with pytest.raises(InvalidUsage, match=refused):
            rows(sea, f"SELECT {columns} FROM negative")
    with pytest.raises(InvalidUsage, match=refused):
        rows(sea, "SELECT ports.v FROM ports JOIN negative USING (k)")
    assert rows(sea, "SELECT count(*) FROM negative WHERE v = 'paid'") == [(4,)], "of rows that are no debt"


def test_memory_is_bounded_by_a_setting(sea: Sea, monkeypatch: pytest.MonkeyPatch) -> None:
    large = "SELECT list(range)::VARCHAR AS everything FROM range(20_000_000)"
    with pytest.raises(InvalidUsage, match="needs more memory than it may use"):
        rows(sea, large, memory="64MiB")
    monkeypatch.setenv("TIDEMARK_SQL_MEMORY", "much")
    with pytest.raises(InvalidUsage, match="TIDEMARK_SQL_MEMORY is 'much'; write at least 32MiB"):
        rows(sea, "SELECT 1")
    with pytest.raises(InvalidUsage, match="memory is '1MiB'; write at least 32MiB"):
        rows(sea, "SELECT 1", memory="1MiB")


ENDLESS = "SELECT count(*) AS n FROM range(100000) a, range(100000) b, range(1000) c WHERE a.range + b.range = c.range"


@pytest.mark.timeout(60)
def test_a_statement_ends_with_its_time(sea: Sea, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidUsage, match="was computed for 300ms and is not done; give it more time"):
        rows(sea, ENDLESS, timeout="300ms")
    answer = tidemark.sql(str(sea.root), "SELECT k FROM tides", timeout="2s")
    assert [time.sleep(2.5) for _ in answer] == [None], "the time of who takes the rows does not count"
    monkeypatch.setenv("TIDEMARK_SQL_TIMEOUT", "soon")
    with pytest.raises(InvalidUsage, match="TIDEMARK_SQL_TIMEOUT: not a duration: 'soon'"):
        rows(sea, "SELECT 1")
    with pytest.raises(InvalidUsage, match="timeout is '0s'; write how long a statement may take"):
        rows(sea, "SELECT 1", timeout="0s")


@pytest.mark.timeout(60)
def test_an_interrupt_ends_a_statement(sea: Sea) -> None:
    answer = tidemark.sql(str(sea.root), ENDLESS)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            answer.to_arrow()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("when", ["before the query has begun", "while the query is handed over"])
def test_an_interrupt_that_comes_early_ends_it(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Before it has begun, DuckDB forgets the interrupt."""
    database, submit, begun = (
        sql_database.Database(sql_database.Limits(2**28)),
        ThreadPoolExecutor.submit,
        threading.Event(),
    )

    def endless() -> Any:
        begun.set()
        time.sleep(0.5 if when.startswith("before") else 0)
        return database.connection.execute(ENDLESS).fetchall()

    def interrupted(self: Any, *_: Any, **__: Any) -> Any:
        begun.wait()
        raise KeyboardInterrupt

    def handed_over(self: ThreadPoolExecutor, work: Callable[[], Any]) -> Any:
        future = submit(self, work)
        return interrupted(self) if work is endless else future

    if when.startswith("before"):
        monkeypatch.setattr(Future, "result", interrupted)
    else:
        monkeypatch.setattr(ThreadPoolExecutor, "submit", handed_over)
    with pytest.raises(KeyboardInterrupt):
        database.run(endless)
    database.close()


@pytest.mark.timeout(60)
def test_an_interrupt_that_was_dropped_on_the_way_ends_the_next_statement() -> None:
    """As by C code that asks Python something, and takes any error for a no."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interrupts.heard():
            database = sql_database.Database(sql_database.Limits(2**28))
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            with pytest.raises(KeyboardInterrupt):
                database.run(lambda: database.connection.execute(ENDLESS).fetchall())
            assert database.run(lambda: database.connection.execute("SELECT 1").fetchall()) == [(1,)]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    database.close()


def test_nothing_is_left_behind(sea: Sea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spilled"
    folder.mkdir()
    made: Callable[..., str] = sql_database.tempfile.mkdtemp
    monkeypatch.setattr(sql_database.tempfile, "mkdtemp", lambda **given: made(dir=folder, **given))
    assert rows(sea, "SELECT count(*) FROM tides") == [(3,)]
    answer = tidemark.sql(str(sea.root), "SELECT * FROM tides")
    assert list(folder.iterdir()) == [], "of an answer that nobody reads"
    next(iter(answer))
    gc.collect()
    assert list(folder.iterdir()) == []


def test_without_duckdb_it_says_what_to_install(sea: Sea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"duckdb is not installed: pip install '\.\[sql\]' \(in a checkout"):
        tidemark.sql(str(sea.root), "SELECT 1")


def test_a_root_without_collections_and_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match="there are no collections in"):
        tidemark.sql(tmp_path, "SELECT * FROM tides")
    with pytest.raises(InvalidUsage):
        tidemark.sql(tmp_path / "nowhere", "SELECT * FROM tides")


def test_a_folder_that_is_no_collection_is_no_table(sea: Sea) -> None:
    assert sea.root is not None
    (sea.root / "other").mkdir()
    with pytest.raises(InvalidUsage, match="there is no collection other in"):
        rows(sea, "SELECT * FROM other")


def test_no_collection_is_looked_into_that_is_not_named(sea: Sea, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand collections are one listing."""

    def looked_into(_: str) -> list[str]:
        raise AssertionError("all collections were looked into")

    monkeypatch.setattr("tidemark.jobs.queries.locate.collections", looked_into)
    assert rows(sea, "SELECT count(*) FROM tides") == [(3,)]


def test_a_database_may_be_let_go_of_by_its_own_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where an answer was read, and is forgotten before the thread has forgotten what it read."""
    made: Callable[..., str] = sql_database.tempfile.mkdtemp
    monkeypatch.setattr(sql_database.tempfile, "mkdtemp", lambda **given: made(dir=tmp_path, **given))
    database = sql_database.Database(sql_database.Limits(2**28))
    database.run(database.close)
    assert list(tmp_path.iterdir()) == []
