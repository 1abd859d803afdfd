"""The change files: what is where, and that two runs lay out the same."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from demo import layout, sales

FIRST, LAST = date(2012, 12, 31), date(2013, 1, 3)
HOUR = datetime(2013, 1, 2, 18, tzinfo=UTC)


@pytest.fixture(scope="module")
def landing(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("landing")
    layout.lay_out(path, first=FIRST, last=LAST)
    return path


def contents(landing: Path) -> dict[str, bytes]:
    return {p.relative_to(landing).as_posix(): p.read_bytes() for p in landing.rglob("*") if p.is_file()}


def flight(**changed: object) -> dict[str, object]:
    whole: dict[str, object] = {"time_hour": HOUR, "minute": 30, "carrier": "UA", "flight": 7, "tailnum": None}
    whole |= {"origin": "EWR", "dest": "IAH", "dep_time": 1301, "dep_delay": 1, "air_time": 60, "arr_delay": -5}
    return whole | changed


def table(*flights: dict[str, object]) -> pa.Table:
    types = dict.fromkeys(["minute", "flight", "dep_time", "dep_delay", "air_time", "arr_delay"], pa.int64())
    types |= dict.fromkeys(["carrier", "tailnum", "origin", "dest"], pa.string()) | {"time_hour": layout.INSTANT}
    return pa.Table.from_pylist(list(flights), schema=pa.schema(list(types.items())))


def test_every_day_holds_one_file_per_airport(landing):
    days = [FIRST + timedelta(days=n) for n in range(4)]
    airports = ["EWR", "JFK", "LGA"]
    laid = [f"flights/{day}/{airport}.parquet" for day in days for airport in airports]
    assert sorted(contents(landing)) == ["carriers/2012-12-31/airlines.csv", *laid]


def test_the_columns_and_their_types(landing):
    schema = pq.read_schema(landing / "flights/2013-01-02/JFK.parquet")
    assert {field.name: str(field.type) for field in schema} == {
        "time_hour": "timestamp[us, tz=UTC]",
        "carrier": "string",
        "flight": "int64",
        "status": "string",
        "origin": "string",
        "dest": "string",
        "tailnum": "string",
        "scheduled_at": "timestamp[us, tz=UTC]",
        "delay_min": "int64",
        "happened_at": "timestamp[us, tz=UTC]",
        "reported_at": "timestamp[us, tz=UTC]",
    }


def test_a_file_holds_what_its_airport_reported_that_day_in_the_order_it_happened(landing):
    for path in sorted(landing.rglob("*.parquet")):
        rows = pq.read_table(path)
        assert {str(at.date()) for at in rows["reported_at"].to_pylist()} == {path.parent.name}
        assert set(rows["origin"].to_pylist()) == {path.stem}
        happened = rows["happened_at"].to_pylist()
        assert happened == sorted(happened)


def test_only_nightly_arrivals_of_the_day_before_are_late(landing):
    late = {}
    for day in (FIRST + timedelta(days=n) for n in range(4)):
        rows = pa.concat_tables(pq.read_table(p) for p in (landing / "flights" / str(day)).iterdir())
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        below = rows.filter(pc.less(rows["happened_at"], pa.scalar(start, layout.INSTANT)))
        late[str(day)] = below.num_rows
        assert set(below["status"].to_pylist()) <= {"arrived"}
        for happened, reported in zip(below["happened_at"].to_pylist(), below["reported_at"].to_pylist(), strict=True):
            assert start - timedelta(hours=2) <= happened < start
            assert reported == happened + timedelta(hours=4)
    assert late == {"2012-12-31": 0, "2013-01-01": 0, "2013-01-02": 113, "2013-01-03": 115}


def test_a_second_run_writes_nothing_and_another_place_gets_the_same_bytes(landing, tmp_path):
    before = contents(landing)
    again = layout.lay_out(landing, first=FIRST, last=LAST)
    assert (again.files, again.written) == (12, 0)
    layout.lay_out(tmp_path, first=FIRST, last=LAST)
    assert contents(tmp_path) == contents(landing) == before


def test_a_damaged_file_is_written_again_and_a_strangers_left_alone(tmp_path):
    layout.lay_out(tmp_path, first=FIRST, last=FIRST)
    wanted = contents(tmp_path)
    (tmp_path / "flights/2012-12-31/JFK.parquet").write_bytes(b"PAR1")
    (tmp_path / "flights/2012-12-31/mended.parquet").write_bytes(b"mine")
    assert layout.lay_out(tmp_path, first=FIRST, last=FIRST).written == 1
    assert contents(tmp_path) == wanted | {"flights/2012-12-31/mended.parquet": b"mine"}


def test_a_day_without_rows_is_an_empty_folder(tmp_path):
    done = layout.lay_out(tmp_path, first=date(2014, 1, 2), last=date(2014, 1, 2))
    assert done == (1, 0, 0, 0)
    assert list((tmp_path / "flights/2014-01-02").iterdir()) == []


def test_the_events_of_single_flights():
    flights = table(
        flight(),
        flight(flight=8, dep_time=None, dep_delay=None, air_time=None, arr_delay=None),
        flight(flight=9, air_time=None, arr_delay=None),
        flight(flight=10, air_time=209),
    )
    found = [
        (e["flight"], e["status"], e["delay_min"], f"{e['happened_at']:%d %H:%M}", f"{e['reported_at']:%d %H:%M}")
        for e in layout.events(flights).to_pylist()
    ]
    assert found == [
        (7, "scheduled", None, "01 00:00", "01 00:00"),
        (7, "departed", 1, "02 18:31", "02 18:31"),
        (7, "arrived", -5, "02 19:31", "02 19:31"),
        (8, "scheduled", None, "01 00:00", "01 00:00"),
        (8, "cancelled", None, "02 18:30", "02 18:30"),
        (9, "scheduled", None, "01 00:00", "01 00:00"),
        (9, "departed", 1, "02 18:31", "02 18:31"),
        (10, "scheduled", None, "01 00:00", "01 00:00"),
        (10, "departed", 1, "02 18:31", "02 18:31"),
        (10, "arrived", -5, "02 22:00", "03 02:00"),
    ]


def test_two_flights_of_one_key_are_refused():
    with pytest.raises(ValueError, match=r"is no key: 2 flights have 1"):
        layout.events(table(flight(), flight(dest="MIA")))


def test_a_flight_without_a_carrier_is_refused():
    with pytest.raises(ValueError, match="1 flights have no carrier"):
        layout.events(table(flight(carrier=None)))


@pytest.mark.parametrize("changed", [{"air_time": 0}, {"dep_delay": -3000}], ids=["no flight time", "a day early"])
def test_events_that_do_not_follow_one_another_are_refused(changed):
    with pytest.raises(ValueError, match="1 events do not happen after"):
        layout.events(table(flight(**changed)))


def test_a_departure_without_a_delay_is_refused():
    with pytest.raises(ValueError, match="events have no time"):
        layout.events(table(flight(dep_delay=None)))


def test_days_in_the_wrong_order_are_refused_in_one_line(tmp_path):
    with pytest.raises(SystemExit, match="--from 2013-01-02 is after --to 2013-01-01"):
        layout.main(["--landing", str(tmp_path), "--from", "2013-01-02", "--to", "2013-01-01"])


def test_the_command_says_what_it_did(tmp_path, capsys):
    asked = ["--landing", str(tmp_path), "--from", "2013-01-02", "--to", "2013-01-02"]
    assert layout.main(asked) == 0
    assert capsys.readouterr().out == "1 days, 2,754 rows, 3 files, 3 of them written now\n"


def test_progress_is_one_line_on_a_terminal(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    layout.lay_out(tmp_path, first=FIRST, last=FIRST)
    assert terminal.getvalue().count("2012-12-31") == 3
    assert "\n" not in terminal.getvalue()


def test_a_file_of_somebody_else_is_not_replaced(tmp_path):
    theirs = tmp_path / "flights" / str(FIRST) / "EWR.parquet", tmp_path / "sales" / "2024-01-01" / "sales.csv"
    for file in theirs:
        file.parent.mkdir(parents=True)
        file.write_text("theirs")
    with pytest.raises(SystemExit, match=r"EWR.parquet is there, and is no file of the demo"):
        layout.lay_out(tmp_path, first=FIRST, last=FIRST)
    with pytest.raises(SystemExit, match=r"sales.csv is there, and is no file of sales"):
        sales.land(tmp_path, days=1)
    assert [file.read_text() for file in theirs] == ["theirs", "theirs"]
    theirs[1].unlink()
    assert sales.land(tmp_path, days=1) == sales.land(tmp_path, days=1) == 500
