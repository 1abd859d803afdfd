"""What windows of aligned kinds are on Spark: what the law says, in every mode, bit by bit; and what Spark's own
windows say."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tests.pure.definition.inputs import FLIGHTS
from tests.spark.test_definition_modes import (
    Row,
    Rows,
    Seen,
    answer,
    engine,
    grown,
    less,
    queried,
    random_inputs,
    restricted,
    summed,
    touched,
)
from tests.support.budget import budget
from tidemark.definition.recipe import Recipe, changes_of
from tidemark.definition.windows.aligned import analysed_windows
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.judged import Judging
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Tumbling
from tidemark.model.window.windows import Windows
from tidemark.spark.derive.queries.in_windows import once_for_each

pytestmark = pytest.mark.spark
__all__ = ["engine"]

HOUR = 3_600_000_000
NAMES = [column.name for column in FLIGHTS.columns]
ALL = (
    Aggregate("rows", Function.COUNT),
    Aggregate("given", Function.COUNT, "Delay"),
    Aggregate("total", Function.SUM, "miles"),
    Aggregate("fares", Function.SUM, "fare"),
    Aggregate("least", Function.MIN, "Delay"),
    Aggregate("most", Function.MAX, "miles"),
    Aggregate("mean", Function.AVG, "fare"),
    Aggregate("means", Function.AVG, "miles"),
    Aggregate("earliest", Function.FIRST, "fare"),
    Aggregate("latest", Function.LAST, "tags", "id > 4"),
    Aggregate("ids", Function.COLLECT, "id", "id > 4"),
    Aggregate("different", Function.COUNT_DISTINCT, "id"),
    Aggregate("about", Function.APPROX_DISTINCT, "id"),
    Aggregate("median", Function.APPROX_QUANTILE, "miles", at=0.5),
    Aggregate("p90", Function.APPROX_QUANTILE, "Delay", "id > 4", 0.9),
)
SUBTRACTED = (
    Aggregate("rows", Function.COUNT),
    Aggregate("given", Function.COUNT, "Delay", "id > 4"),
    Aggregate("some", Function.COUNT, where="id > 4"),
    Aggregate("total", Function.SUM, "id", "id > 4"),
    Aggregate("fares", Function.SUM, "fare"),
    Aggregate("mean", Function.AVG, "fare"),
)
CASES = {
    "tumbling": Windows(("carrier",), "at", Tumbling(10 * HOUR, -HOUR), ALL, where="id > 1"),
    "before 1970": Windows(("carrier",), "Delay", Tumbling(7, 3), SUBTRACTED, where="id > 1"),
    "dates, of all": Windows((), "day", Cumulate(48 * HOUR, 12 * HOUR, HOUR), SUBTRACTED, where="id > 1"),
    "hopping": Windows(("carrier",), "at", Hopping(10 * HOUR, 4 * HOUR, 1), SUBTRACTED, where="id > 1"),
    "sampling": Windows(("carrier", "day"), "at", Hopping(HOUR, 3 * HOUR, sampling=True), ALL[:4], where="id > 1"),
    "clocks go back": Windows((), "at", Calendar(Unit.DAY, "America/Havana"), ALL[:1], where="id > 1"),
    "no midnight": Windows(("carrier",), "at", Calendar(Unit.DAY, "America/Sao_Paulo"), SUBTRACTED, where="id > 1"),
    "midnight twice": Windows((), "at", Calendar(Unit.DAY, "America/St_Johns"), ALL[:1], where="id > 1"),
    "no day": Windows((), "at", Calendar(Unit.DAY, "Pacific/Apia"), ALL[:1], where="id > 1"),
    "weeks": Windows((), "at", Calendar(Unit.WEEK, "America/New_York"), ALL[:1], where="id > 1"),
    "quarters of ints": Windows((), "Delay", Calendar(Unit.QUARTER, "Asia/Tokyo"), ALL[:1], where="id > 1"),
}
CHANGES = ("2018-11-04 03", "2018-11-04 05", "2010-11-07 02:31", "2010-11-07 03", "2011-12-30 10", "2026-03-08 07")
"""About when clocks change in these zones, UTC."""


def flights(chance: random.Random) -> tuple[Rows, Rows]:
    """Flights, and changes of them, of days on which clocks change."""
    old, changes = random_inputs(chance)
    at = {row: _near(chance) for row in sorted({*old["flights"], *changes["flights"]}, key=repr)}
    place = NAMES.index("at")
    moved = [
        Counter({(*row[:place], at[row], *row[place + 1 :]): count for row, count in rows["flights"].items()})
        for rows in (old, changes)
    ]
    return moved[0], moved[1]


def _near(chance: random.Random) -> datetime:
    about = datetime.fromisoformat(chance.choice(CHANGES)).replace(tzinfo=UTC)
    return about + timedelta(minutes=chance.choice([-1500, -60, -59, -31, -1, 0, 1, 29, 59, 60, 61, 1441]))


def law(windows: Windows, rows: Rows) -> Rows:
    """The windows of rows, by the law."""
    places = {name: at for at, name in enumerate(NAMES)}
    happened = [
        Happened(tuple(row[places[name]] for name in windows.by), row, _micros(row[places[windows.on]]), 0, count)
        for row, count in rows.items()
        if row[places["id"]] > 1
    ]
    found = window_rows(
        windows,
        happened,
        lambda one, row: row[places[one.of]],
        lambda one, row: not one.where or row[places["id"]] > 4,
    )
    return Counter({(*key, *window, *map(_plain, values)): 1 for key, window, values in found})


def _micros(at: Any) -> int | None:
    if isinstance(at, datetime):
        return from_datetime(at)
    return from_datetime(datetime(at.year, at.month, at.day, tzinfo=UTC)) if isinstance(at, date) else at


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return from_datetime(value)
    return f"{value + 0.0!r}" if isinstance(value, float) else value


def visible(frame: Any, recipe: Recipe) -> Rows:
    """The rows of a definition, without what is hidden."""
    rows = frame.select(*recipe.columns).toArrow().to_pylist()
    return Counter(tuple(map(_plain, row.values())) for row in rows)


def once_for_each_window(recipe: Recipe) -> Seen:
    """The flights, and what changed of them, as the recipe's queries see them."""
    rule = recipe.in_windows
    assert rule is not None

    def seen(spark: Any) -> None:
        views = {name: spark.table(name) for name in (changes_of("flights"), "flights")}
        for name, frame in views.items():
            frame.createOrReplaceTempView("flights")
            rows = once_for_each(spark.sql(rule.rows), rule.assignment, Judging(0, ()))
            rows.createOrReplaceTempView(name)

    return seen


@pytest.mark.parametrize(
    "case",
    budget(ci=["dates, of all", "hopping", "no midnight", "no day"], deep=list(CASES)),
)
def test_windows_are_what_the_law_says_in_every_mode(engine: Any, case: str) -> None:
    windows, chance = CASES[case], random.Random(case)
    recipe = analysed_windows(windows, FLIGHTS)
    assert recipe.key == (*windows.by, "window_start", "window_end")
    rule = recipe.by_key
    assert rule is not None
    assert set(rule.key_columns) == set(recipe.key)
    assert (rule.delta is not None) == (windows.aggregates in (SUBTRACTED, ALL[:1]))
    old, changed = flights(chance)
    changes: dict[str, Rows] = {"flights": changed, "carriers": Counter[Row]()}
    new = {"flights": summed(old, changed), "carriers": Counter[Row]()}
    seen = once_for_each_window(recipe)
    current = queried(engine, {"flights": old, "carriers": Counter()}, recipe.whole, seen)
    before, after = answer(current), queried(engine, new, recipe.whole, seen)
    assert visible(after, recipe) == law(windows, new["flights"])
    expected = less(answer(after), before)
    assert expected, "the changes change something"
    places = [recipe.columns.index(name) for name in rule.key_columns]
    keys, desired = touched(engine, rule, new, changes, seen)
    assert less(desired, restricted(before, places, keys)) == expected
    assert keys <= {tuple(row[at] for at in places) for row in {*before, *desired}}, "windows no change is in"
    if rule.delta is not None:
        keys, desired = grown(engine, rule, current, changes, seen)
        assert less(desired, restricted(before, places, keys)) == expected


def test_windows_are_those_of_spark(engine: Any) -> None:
    """Its `window` of the same rows."""
    inputs = {"flights": flights(random.Random(7))[0], "carriers": Counter[Row]()}
    ours = Windows(("carrier",), "at", Hopping(10 * HOUR, 5 * HOUR, HOUR), ALL[:2])
    theirs = """SELECT carrier, window.start AS window_start, window.end AS window_end, count(*) AS rows,
                count(Delay) AS given FROM flights
                GROUP BY carrier, window(at, '10 hours', '5 hours', '1 hour')"""
    recipe = analysed_windows(ours, FLIGHTS)
    found = answer(queried(engine, inputs, recipe.whole, once_for_each_window(recipe)))
    assert found == answer(queried(engine, inputs, theirs))
