"""The independent calculation against answers worked out by hand, and brute force on a handful of rows."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from demo import independent
from demo.independent import Change, Key, Row, Value

pytestmark = pytest.mark.pure

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FLIGHT = {
    "dep_time": "1301",
    "dep_delay": "1",
    "arr_delay": "-5",
    "carrier": "UA",
    "flight": "7",
    "origin": "EWR",
    "dest": "IAH",
    "tailnum": "N14228",
    "air_time": "60",
    "minute": "30",
    "time_hour": "2013-01-02T18:00:00Z",
}
KEY: Key = (at("2013-01-02 18:00"), "UA", 7)


def value(status: str, delay: int | None = None, key: Key = KEY) -> Value:
    return Value(status, "EWR", "IAH", "N14228", key[0] + 30 * MINUTE, delay)


def row(status: str, reported: str, happened: str, key: Key = KEY, delay: int | None = None) -> Row:
    return Row(key, value(status, delay, key), at(reported), at(happened))


def reported(**changed: str) -> list[tuple[str, int | None, str, str]]:
    return [
        (r.value.status, r.value.delay_min, f"{r.event_time:%d %H:%M}", f"{r.time:%d %H:%M}")
        for r in independent.reports(FLIGHT | changed)
    ]


def test_a_flight_is_scheduled_the_day_before_then_departs_and_arrives():
    assert reported() == [
        ("scheduled", None, "01 00:00", "01 00:00"),
        ("departed", 1, "02 18:31", "02 18:31"),
        ("arrived", -5, "02 19:31", "02 19:31"),
    ]


@pytest.mark.parametrize(
    ("air_time", "happened", "reported_at"),
    [
        ("208", "02 21:59", "02 21:59"),
        ("209", "02 22:00", "03 02:00"),
        ("328", "02 23:59", "03 03:59"),
        ("329", "03 00:00", "03 00:00"),
    ],
)
def test_only_arrivals_from_22_to_24_are_reported_four_hours_later(air_time, happened, reported_at):
    assert reported(air_time=air_time)[2] == ("arrived", -5, happened, reported_at)


def test_a_departure_at_night_is_reported_at_once():
    assert reported(dep_delay="240", air_time="NA")[1:] == [("departed", 240, "02 22:30", "02 22:30")]


def test_no_departure_time_is_a_cancellation_when_it_was_due():
    assert reported(dep_time="NA", dep_delay="NA", air_time="NA", arr_delay="NA") == [
        ("scheduled", None, "01 00:00", "01 00:00"),
        ("cancelled", None, "02 18:30", "02 18:30"),
    ]


STORY = [
    row("scheduled", "2013-01-01 00:00", "2013-01-01 00:00"),
    row("departed", "2013-01-02 18:31", "2013-01-02 18:31", delay=1),
    row("arrived", "2013-01-03 02:10", "2013-01-02 22:10", delay=-5),
]
SEAL = at("2013-01-03 00:00")


def test_a_late_row_is_learned_at_the_seal_it_missed():
    known = independent.ingest(STORY, last=date(2013, 1, 3))

    assert [r.time for r in known.histories[KEY]] == [STORY[0].time, STORY[1].time, SEAL]
    assert known.rows == {date(2013, 1, 1): 1, date(2013, 1, 2): 1, date(2013, 1, 3): 1}
    assert known.late == {date(2013, 1, 3): {"below the seal": 1}}


def test_a_late_row_changes_the_past_as_known_now_and_not_as_known_then():
    known = independent.ingest(STORY, last=date(2013, 1, 3))
    end = SEAL - independent.INSTANT

    assert independent.as_of(known, event_time=end) == {(KEY, value("arrived", -5)): 1}
    assert independent.as_of(known, time=end, event_time=end) == {(KEY, value("departed", 1)): 1}
    assert independent.as_of(known, time=end) == {(KEY, value("departed", 1)): 1}
    assert independent.as_of(known, event_time=at("2013-01-02 22:09")) == {(KEY, value("departed", 1)): 1}
    assert independent.as_of(known, time=at("2012-12-31 23:59")) == {}


def test_the_changes_of_a_late_row_carry_the_seal_and_its_own_event_time():
    known = independent.ingest(STORY, last=date(2013, 1, 3))
    happened = at("2013-01-02 22:10")

    assert set(independent.changes(known, after=SEAL - independent.INSTANT, upto=SEAL)) == {
        Change(KEY, value("departed", 1), SEAL, happened, -1),
        Change(KEY, value("arrived", -5), SEAL, happened, +1),
    }
    assert independent.changes(known, after=SEAL, upto=SEAL + HOUR) == []


def test_a_row_that_comes_between_two_others_gives_way_where_the_later_one_stands():
    delayed = STORY[1]._replace(time=at("2013-01-04 05:00"))
    known = independent.ingest([STORY[0], STORY[2], delayed], last=date(2013, 1, 4))
    learned = at("2013-01-04 00:00")

    assert set(independent.changes(known, after=SEAL, upto=at("2013-01-04 23:59"))) == {
        Change(KEY, value("scheduled"), learned, delayed.event_time, -1),
        Change(KEY, value("departed", 1), learned, delayed.event_time, +1),
        Change(KEY, value("scheduled"), learned, STORY[2].event_time, +1),
        Change(KEY, value("departed", 1), learned, STORY[2].event_time, -1),
    }


def test_an_unchanged_row_changes_nothing():
    again = STORY[0]._replace(time=at("2013-01-01 05:00"), event_time=at("2013-01-01 05:00"))
    known = independent.ingest([STORY[0], again], last=date(2013, 1, 1))

    assert independent.changes(known, after=STORY[0].time, upto=SEAL) == []
    assert known.rows[date(2013, 1, 1)] == 2


def test_rows_beyond_max_lateness_are_counted_and_left_out():
    happened = at("2013-01-01 00:00")
    rows = [row("departed", f"2013-01-0{day} 06:00", "2013-01-01 00:00") for day in (4, 5)]
    known = independent.ingest(rows, last=date(2013, 1, 5))

    assert known.late == {date(2013, 1, 4): {"below the seal": 1}, date(2013, 1, 5): {"beyond max_lateness": 1}}
    assert known.histories[KEY] == [Row(KEY, value("departed"), happened + 3 * independent.DAY, happened)]


def test_days_that_were_not_run_are_not_known():
    known = independent.ingest(STORY, first=date(2013, 1, 2), last=date(2013, 1, 2))
    assert [r.value.status for r in known.histories[KEY]] == ["departed"]


def test_statuses_at_one_event_time_stand_in_their_order_whatever_order_they_came_in():
    moment = "2013-01-02 10:00"
    rows = [row(status, moment, moment) for status in ("arrived", "scheduled", "departed")]
    for order in itertools.permutations(rows):
        known = independent.ingest(order, last=date(2013, 1, 2))
        assert independent.as_of(known) == {(KEY, value("arrived")): 1}


OTHER: Key = (at("2013-01-02 19:00"), "B6", 12)
CROWD = [
    *STORY,
    row("departed", "2013-01-04 03:00", "2013-01-02 21:00", delay=9),
    row("cancelled", "2013-01-04 04:00", "2013-01-03 12:00"),
    row("scheduled", "2013-01-01 00:00", "2013-01-01 00:00", key=OTHER),
    row("arrived", "2013-01-03 01:00", "2013-01-02 23:00", key=OTHER, delay=3),
    row("departed", "2013-01-03 02:00", "2013-01-02 20:00", key=OTHER, delay=2),
]


def test_changes_add_up_to_the_current_rows_at_every_pair_of_instants():
    known = independent.ingest(CROWD, last=date(2013, 1, 4))
    start = at("2012-12-30 00:00")
    for hours, event_hours in itertools.product(range(24, 145, 3), repeat=2):
        time, event_time = start + hours * HOUR, start + event_hours * HOUR
        total: Counter[tuple[Key, Value]] = Counter()
        for change in independent.changes(known, after=start, upto=time):
            if change.event_time <= event_time:
                total[change.key, change.value] += change.diff
        summed = {entry: n for entry, n in total.items() if n}
        assert summed == independent.as_of(known, time=time, event_time=event_time) == brute(known, time, event_time)


def test_changes_are_those_of_inserting_one_row_at_a_time():
    known = independent.ingest(CROWD, last=date(2013, 1, 4))
    total: Counter[tuple[Key, Value, datetime, datetime]] = Counter()
    for history in known.histories.values():
        placed: list[Row] = []
        for new in sorted(history, key=lambda r: r.time):
            before = max((r for r in placed if r.event_time < new.event_time), key=lambda r: r.event_time, default=None)
            after = min((r for r in placed if r.event_time > new.event_time), key=lambda r: r.event_time, default=None)
            for end, sign in ((new, +1), (after, -1)):
                if end is not None:
                    total[new.key, new.value, new.time, end.event_time] += sign
                    if before is not None:
                        total[new.key, before.value, new.time, end.event_time] -= sign
            placed.append(new)
    wanted = {Change(*change, diff) for change, diff in total.items() if diff}
    assert set(independent.changes(known, after=at("2012-12-30"), upto=at("2013-01-05"))) == wanted


def brute(known: independent.Known, time: datetime, event_time: datetime) -> dict[tuple[Key, Value], int]:
    newest: dict[Key, Row] = {}
    for learned in sorted(itertools.chain(*known.histories.values()), key=lambda r: r.event_time):
        if learned.time <= time and learned.event_time <= event_time:
            newest[learned.key] = learned
    return {(key, last.value): 1 for key, last in newest.items()}


def test_the_figures_of_a_day_worked_out_by_hand():
    known = independent.ingest(STORY, last=date(2013, 1, 3))
    none = dict.fromkeys(independent.STATUSES, 0)
    assert independent.day_figures(known, date(2013, 1, 2)) == {
        "day": "2013-01-02",
        "seal": "2013-01-03T00:00:00Z",
        "rows": 1,
        "late": {"below the seal": 0, "beyond max_lateness": 0},
        "inserts": 1,
        "deletes": 1,
        "at_seal": {
            "flights": 1,
            "statuses": none | {"departed": 1},
            "delay_sum": 1,
            "delay_count": 1,
            "delay_mean": 1.0,
        },
        "now": {"flights": 1, "statuses": none | {"arrived": 1}, "delay_sum": -5, "delay_count": 1, "delay_mean": -5.0},
    }


def test_a_days_changes_hold_those_of_its_late_rows():
    known = independent.ingest(STORY, last=date(2013, 1, 3))
    third = independent.day_figures(known, date(2013, 1, 3))
    assert (third["late"]["below the seal"], third["inserts"], third["deletes"]) == (1, 1, 1)


def test_a_mended_day_differs_by_what_its_rows_become_and_what_they_hid() -> None:
    """United's arrival has another delay, that of MQ is gone: the departure before it stands again."""
    us, them = (at("2013-01-01 10:00"), "UA", 1), (at("2013-01-01 10:00"), "MQ", 2)
    reported = [
        row("departed", "2013-01-01 11:00", "2013-01-01 11:00", us, 5),
        row("arrived", "2013-01-01 12:00", "2013-01-01 12:00", us, 7),
        row("departed", "2013-01-01 11:00", "2013-01-01 11:00", them, 5),
        row("arrived", "2013-01-01 13:00", "2013-01-01 13:00", them, 7),
        row("arrived", "2013-01-02 09:00", "2013-01-02 09:00", (at("2013-01-02 08:00"), "UA", 3), 1),
    ]
    last = date(2013, 1, 2)
    before, after = (independent.ingest(rows, last=last) for rows in (reported, independent.mended(reported)))
    assert independent.corrections(before, after) == {
        (us, value("arrived", 7, us), at("2013-01-01 12:00"), -1): 1,
        (us, value("arrived", 17, us), at("2013-01-01 12:00"), 1): 1,
        (them, value("arrived", 7, them), at("2013-01-01 13:00"), -1): 1,
        (them, value("departed", 5, them), at("2013-01-01 13:00"), 1): 1,
    }
    assert independent.corrections(before, before) == {}


def test_it_imports_the_standard_library_only():
    tree = ast.parse(Path(independent.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_delays_by_carrier_and_flights_with_names_worked_out_by_hand() -> None:
    hour = datetime(2013, 1, 1, 10, tzinfo=UTC)

    def flight_entry(carrier: str, flight: int, status: str, delay: int | None) -> tuple[Key, Value]:
        return (hour, carrier, flight), Value(status, "EWR", "IAH", None, hour, delay)

    flights = Counter(
        {
            flight_entry("UA", 1, "arrived", 10): 1,
            flight_entry("UA", 2, "arrived", 5): 1,
            flight_entry("UA", 3, "departed", 99): 1,
        }
        | {flight_entry("AA", 1, "arrived", None): 1, flight_entry("ZZ", 1, "arrived", 4): 1}
    )
    day = date(2013, 1, 1)
    assert independent.delays_by_carrier(flights) == {
        ("UA", day): (2, 15, 7.5),
        ("AA", day): (1, None, None),
        ("ZZ", day): (1, 4, 4.0),
    }
    named = independent.named_flights(flights)
    assert named[hour, "UA", 1, "United Air Lines Inc.", "arrived", 10] == 1
    assert {row[1] for row in named} == {"UA", "AA"}  # nobody knows what ZZ is called
