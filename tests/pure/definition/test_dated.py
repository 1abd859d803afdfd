"""A text that has no date is no timestamp: what is known to be a text is cast so that it cannot be, on any day."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import FLIGHTS, recipe
from tidemark.definition.dated import has_no_date
from tidemark.definition.windows.expressions import row_expression
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure

REFUSED = [
    *("CAST('10:30' AS timestamp)", "'10:30'::timestamp", "timestamp'T10:30'", "timestamp('1:2')"),
    *("to_timestamp(' 10:30 ')", "try_to_timestamp('10:30')", "try_cast('10:30' AS timestamp)", "at > 'T10:00'"),
    *("at BETWEEN '10:00' AND '2020-01-01'", "at IN ('2020-01-01', '10:30')", "coalesce(at, '10:30')"),
    "CASE WHEN Delay > 1 THEN at ELSE '10:30' END",
]
GUARDED = [
    *("CAST(carrier AS timestamp)", "carrier::timestamp", "try_cast(carrier AS timestamp)", "timestamp(carrier)"),
    *("to_timestamp(carrier)", "try_to_timestamp(carrier)", "to_timestamp_ltz(upper(carrier))"),
    *("CAST(carrier || ' 10:30' AS timestamp)", "CAST(concat(carrier, ' ', day) AS timestamp)"),
    *("CAST(concat('no', 'w') AS timestamp)", "CAST(concat('to', 'day') AS date)", "to_date(concat('to', 'day'))"),
    "CAST(CAST(element_at(array(carrier), 1) AS string) AS timestamp)",
]
LEFT = [
    *("CAST('2024-01-01 10:30' AS timestamp)", "timestamp'2024-01-01'", "at > '2024-01-01'", "CAST(day AS timestamp)"),
    *("CAST(id AS timestamp)", "to_timestamp(carrier, 'HH:mm')", "CAST(carrier AS date)"),
    *("CAST(carrier AS timestamp_ntz)", "carrier = '10:30'", "carrier || '10:30'", "carrier LIKE '10:30%'"),
    *("date_format(at, 'yyyy-MM')", "date_trunc('year', at)", "at + INTERVAL '10:30' HOUR TO MINUTE"),
    "from_utc_timestamp(at, '+05:00')",
]
WITHOUT = ["10:30", " 10:30 ", "T10:30", "1:2", "now", "NOW UTC", "today", "yesterday", "\t10:30:00.5"]
WITH = [
    *("2024", "2024-01", "2024-1-2", "+2024-01-01", "-0001-01-01", "2024-01-01T10:30", "epoch", "", " 2024-01-01"),
    *("yyyy", "year", "T", "tuesday"),
]


@pytest.mark.parametrize("expression", REFUSED)
def test_a_time_of_day_in_the_text_of_a_definition_is_refused(expression: str) -> None:
    with pytest.raises(InvalidUsage, match=r"holds '.*' .*, a time of day, to which Spark adds the day on which"):
        recipe(f"SELECT id, {expression} AS x FROM flights")


@pytest.mark.parametrize("expression", GUARDED)
def test_what_is_surely_a_text_is_guarded(expression: str) -> None:
    assert "REGEXP_REPLACE(" in recipe(f"SELECT id, {expression} AS x FROM flights").whole.upper()


@pytest.mark.parametrize("expression", LEFT)
def test_what_depends_on_no_day_is_left_as_it_is(expression: str) -> None:
    assert "REGEXP_REPLACE(" not in recipe(f"SELECT id, {expression} AS x FROM flights").whole.upper()


def test_texts_without_a_date_are_distinguished_from_those_with_one() -> None:
    assert [text for text in WITHOUT if not has_no_date(text)] == []
    assert [text for text in WITH if has_no_date(text)] == []


def test_expressions_of_windows_are_guarded_too() -> None:
    shapes = {"flights": FLIGHTS}
    assert "regexp_replace(" in row_expression("CAST(carrier AS timestamp)", "a", FLIGHTS, shapes).sql.lower()
    with pytest.raises(InvalidUsage, match=r"^a: holds '10:30'"):
        row_expression("at > '10:30'", "a", FLIGHTS, shapes)
