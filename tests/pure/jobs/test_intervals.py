"""A step for one interval after another: a bad one stops no other, and a failing store stops at once."""

from __future__ import annotations

import pytest

from tidemark.errors import FileRefused, GateFailed, InvalidUsage, NotReady, TidemarkError, Unavailable
from tidemark.jobs.intervals import in_turn
from tidemark.model.interval import Interval

pytestmark = pytest.mark.pure
DAYS = [Interval(day, day + 1) for day in range(30)]


def tried(errors: dict[int, TidemarkError], days: list[Interval] = DAYS[:5]) -> tuple[TidemarkError, list[int]]:
    """What is raised where some days fail, and the days that were done."""
    done: list[int] = []

    def step(one: Interval) -> None:
        if one.lower in errors:
            raise errors[one.lower]
        done.append(one.lower)

    with pytest.raises(TidemarkError) as caught:
        in_turn(days, step, lambda *_: None)
    return caught.value, done


def test_all_are_done_in_order_and_announced_before_they_begin() -> None:
    seen: list[tuple[str, int]] = []
    in_turn(DAYS[:3], lambda one: seen.append(("done", one.lower)), lambda one, number: seen.append(("note", number)))
    assert seen == [("note", 1), ("done", 0), ("note", 2), ("done", 1), ("note", 3), ("done", 2)]


def test_a_bad_day_stops_no_other_and_is_named_at_the_end() -> None:
    error, done = tried({1: FileRefused("a.csv: row 1: bad"), 3: InvalidUsage("b.csv changed")})
    assert done == [0, 2, 4]
    assert type(error) is FileRefused
    first, second = (f"{DAYS[day]}: {said}" for day, said in ((1, "a.csv: row 1: bad"), (3, "b.csv changed")))
    assert str(error) == f"2 of 5 intervals failed, the other 3 are done: {first}; {second}"


@pytest.mark.parametrize("kind", [FileRefused, GateFailed, InvalidUsage, NotReady])
def test_what_is_raised_is_of_the_kind_of_what_was_wrong(kind: type[TidemarkError]) -> None:
    error, done = tried({0: kind("no")})
    assert type(error) is kind
    assert done == [1, 2, 3, 4]
    error, done = tried({0: kind("no"), 1: NotReady("missing")})
    assert type(error) is kind, "what needs a person is reported, beside what may come by itself"
    assert "missing" in str(error)


def test_one_interval_fails_as_it_did() -> None:
    error, _ = tried({0: FileRefused("no")}, DAYS[:1])
    assert str(error) == "no"


def test_a_store_that_fails_stops_at_once() -> None:
    error, done = tried({1: Unavailable("the store is away"), 3: FileRefused("bad")})
    assert str(error) == "the store is away"
    assert done == [0]


def test_of_many_failures_some_are_named() -> None:
    error, done = tried({day: NotReady(f"day {day} is missing") for day in range(30)}, DAYS)
    assert done == []
    assert str(error).startswith("30 of 30 intervals failed, none is done: ")
    assert str(error).count("missing") == 10
    assert str(error).endswith("; and 20 more")


def test_what_is_wrong_with_all_alike_is_said_once() -> None:
    error, _ = tried({day: InvalidUsage("landing /x does not exist") for day in range(30)}, DAYS)
    first = ", ".join(map(str, DAYS[:3]))
    assert str(error) == f"30 of 30 intervals failed, none is done: {first} … and 27 more: landing /x does not exist"
