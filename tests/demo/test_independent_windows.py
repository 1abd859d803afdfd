"""The independent windows against answers worked out by hand, and against starts tried one by one."""

from __future__ import annotations

import ast
import itertools
import random
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo import independent_windows as windows
from demo.independent import INSTANT, Key, Value

pytestmark = pytest.mark.pure

MINUTE = timedelta(minutes=1)
EVER = datetime(2014, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    """An instant of the first days of 2013: day and time."""
    return datetime.fromisoformat(f"2013-01-{text}").replace(tzinfo=UTC)


def counted(*flights: tuple[str, int | None], **same: str) -> Counter[tuple[Key, Value]]:
    """Flights as a collection has them, by when they were scheduled and how late they came; arrived, from Newark,
    unless it is said otherwise."""
    fields = {"status": "arrived", "origin": "EWR", "dest": "IAH", "tailnum": "N1"} | same
    return Counter(
        ((at(when), "UA", number), Value(**fields, scheduled_at=at(when), delay_min=delay))
        for number, (when, delay) in enumerate(flights)
    )


def test_an_hour_holds_its_start_and_not_its_end_and_only_what_arrived() -> None:
    flights = counted(("02 10:00", 20), ("02 10:59", 15), ("02 11:00", -4)) + counted(
        ("02 10:30", 99), status="departed"
    )
    flights += counted(("02 10:30", None), origin="JFK")
    assert windows.delays_by_hour(flights, EVER) == {
        ("EWR", at("02 10:00"), at("02 11:00"), 2, 35, 17.5, 20, 1): 1,
        ("EWR", at("02 11:00"), at("02 12:00"), 1, -4, -4.0, -4, 0): 1,
        ("JFK", at("02 10:00"), at("02 11:00"), 1, None, None, None, 0): 1,
    }


def test_an_hour_is_there_six_hours_after_its_end() -> None:
    flights = counted(("02 10:00", 20))
    assert len(windows.delays_by_hour(flights, at("02 17:00"))) == 1
    assert windows.delays_by_hour(flights, at("02 17:00") - INSTANT) == {}


def test_a_half_hour_begins_wherever_it_holds_other_flights() -> None:
    """10:00 and 10:30 are together, for both ends belong to it; 10:31 is so with 10:30 alone."""
    flights = counted(("02 10:00", 10), ("02 10:30", 20), ("02 10:31", 30))
    found = windows.busy_half_hours(flights, EVER)
    starts = {
        at("02 09:30"): (1, 10.0),
        at("02 10:00"): (2, 15.0),
        at("02 10:00") + INSTANT: (1, 20.0),
        at("02 10:01"): (2, 25.0),
        at("02 10:30") + INSTANT: (1, 30.0),
    }
    assert found == {("EWR", start, start + 30 * MINUTE, *values): 1 for start, values in starts.items()}


def test_a_half_hour_is_there_once_its_last_instant_is_six_hours_ago() -> None:
    flights = counted(("02 10:00", 10))
    assert windows.busy_half_hours(flights, at("02 16:00")) == {}
    assert len(windows.busy_half_hours(flights, at("02 16:00") + INSTANT)) == 1


def test_slid_finds_every_set_once_by_its_first_start() -> None:
    """Against all starts there are, tried one by one."""
    chance, origin = random.Random(7), at("02 10:00")
    for _ in range(200):
        size = chance.randrange(6)
        instants = sorted(origin + chance.randrange(20) * INSTANT for _ in range(chance.randrange(8)))
        found = []
        before: list[datetime] = []
        for start in (origin + n * INSTANT for n in range(-10, 30)):
            within = [one for one in instants if start <= one <= start + size * INSTANT]
            if within and within != before:
                found.append((start, within))
            before = within
        slid = windows.slid(instants, size * INSTANT)
        assert [(start, instants[first:after]) for start, first, after in slid] == found


def test_an_aircrafts_day_ends_where_it_rests_for_more_than_eight_hours() -> None:
    flights = counted(("02 10:00", 5), ("02 18:00", -2)) + counted(("03 02:01", None), dest="MIA")
    flights += counted(("02 12:00", 1), tailnum="N2", origin="LGA")
    assert windows.aircraft_days(flights, EVER) == {
        ("N1", at("02 10:00"), at("03 02:00"), 2, "EWR", "IAH", 3, 5): 1,
        ("N1", at("03 02:01"), at("03 10:01"), 1, "EWR", "MIA", None, None): 1,
        ("N2", at("02 12:00"), at("02 20:00"), 1, "LGA", "IAH", 1, 1): 1,
    }


def test_a_flight_between_two_days_makes_one_of_them() -> None:
    ends = counted(("02 10:00", 5), dest="BOS") + counted(("03 02:00", 5), origin="JFK", dest="MIA")
    assert len(windows.aircraft_days(ends, EVER)) == 2
    assert windows.aircraft_days(ends + counted(("02 18:00", 1), dest="ORD"), EVER) == {
        ("N1", at("02 10:00"), at("03 10:00"), 3, "EWR", "MIA", 11, 5): 1
    }


def test_flights_of_one_instant_are_first_and_last_by_their_names() -> None:
    flights = counted(("02 10:00", 1), origin="LGA", dest="ORD") + counted(("02 10:00", 2), origin="EWR", dest="BOS")
    assert [row[3:6] for row in windows.aircraft_days(flights, EVER)] == [(2, "EWR", "ORD")]


def test_an_aircrafts_day_is_there_once_no_flight_can_join_it() -> None:
    flights = counted(("02 10:00", 5))
    assert windows.aircraft_days(flights, at("02 18:00")) == {}
    assert len(windows.aircraft_days(flights, at("02 18:00") + INSTANT)) == 1


def test_a_revision_is_a_change_of_a_window_that_was_there() -> None:
    one, other = ("EWR", 1, 2), ("JFK", 1, 2)
    stages = [Counter(), Counter([(*one, 5)]), Counter([(*one, 6), (*other, 1)]), Counter([(*one, 6), (*other, 1)])]
    assert windows.revisions(stages) == {one: 1, other: 0}
    assert windows.revisions([*stages, Counter([(*other, 1)])]) == {other: 0}
    assert windows.revisions([*stages, Counter([(*other, 1)]), Counter([(*one, 6)])]) == {one: 3}


def test_it_imports_the_standard_library_and_the_other_calculation_only() -> None:
    tree = ast.parse(Path(windows.__file__).read_text())
    named = [[alias.name for alias in node.names] for node in ast.walk(tree) if isinstance(node, ast.Import)]
    imported = {*itertools.chain(*named)}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported - {"demo.independent"} <= sys.stdlib_module_names | {"collections.abc"}
