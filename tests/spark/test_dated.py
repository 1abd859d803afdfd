"""No answer depends on the day it is computed: a text without a date is a timestamp nowhere, whatever Spark accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pure.definition.test_dated import WITH, WITHOUT
from tests.spark.support import APPEND, Made
from tests.spark.test_derived import Deriving, select
from tidemark.definition.dated import NO_DATE
from tidemark.errors import InvalidUsage

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

CLOCK = "concat(id % 24, ':30')"
"""A text that is a time of day."""
UNSURE = f"element_at(array({CLOCK}), 1)"
"""The same, of which only Spark knows that it is a text."""
AT = "timestamp_micros(id)"
IMPLICIT = [
    f"CAST({UNSURE} AS timestamp)",
    f"to_timestamp({UNSURE})",
    f"hour({CLOCK})",
    f"date_trunc('hour', {CLOCK})",
    f"date_format({CLOCK}, 'yyyy')",
    f"extract(hour FROM {CLOCK})",
    f"{AT} > {CLOCK}",
    f"{AT} BETWEEN {CLOCK} AND {CLOCK}",
    f"{AT} IN ({CLOCK})",
    f"coalesce({AT}, {CLOCK})",
    f"nvl({AT}, {CLOCK})",
    f"CASE WHEN id > 3 THEN {AT} ELSE {CLOCK} END",
    f"from_utc_timestamp({CLOCK}, 'CET')",
    f"timestampadd(HOUR, 1, {CLOCK})",
    f"months_between({CLOCK}, {AT})",
    f"size(array({AT}, {CLOCK}))",
    f"size(CAST(array({CLOCK}) AS array<timestamp>))",
    f"CAST(parse_json(concat('\"', {CLOCK}, '\"')) AS timestamp)",
    f"variant_get(parse_json(concat('\"', {CLOCK}, '\"')), '$', 'timestamp')",
    "from_json('{\"a\": \"10:30\"}', 'a timestamp').a",
    "from_csv('10:30', 'a timestamp').a",
    f"(SELECT max(hour({CLOCK})) FROM events)",
]
SAFE = [
    f"{AT} > '2024-01-01'",
    f"to_timestamp({CLOCK}, 'H:mm')",
    "from_json('{\"a\": \"2024\"}', 'a timestamp', map('timestampFormat', 'yyyy')).a",
    "year(concat('2024-01-', 1 + id % 9))",
    "date_trunc('hour', timestamp_micros(id))",
]


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, APPEND)
    made.land(1, 300, keys=30)
    made.moved(1)
    made.step("trace", 1)
    return made


def of(events: Made, spark: Any, expression: str) -> Deriving:
    return Deriving(events, spark, "d", select(f"SELECT id, {expression} AS x FROM events"), ("id",))


@pytest.mark.parametrize("expression", IMPLICIT)
def test_a_text_that_spark_takes_for_a_timestamp_by_itself_is_refused(
    spark: Any, events: Made, expression: str
) -> None:
    with pytest.raises(
        InvalidUsage, match=r"definition of d takes a text for a timestamp in .*; write CAST"
    ) as refusal:
        of(events, spark, expression).declared()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize("expression", SAFE)
def test_what_depends_on_no_day_is_taken(spark: Any, events: Made, expression: str) -> None:
    of(events, spark, expression).declared()


def test_a_union_that_makes_a_timestamp_of_a_text_is_refused(spark: Any, events: Made) -> None:
    text = f"SELECT id, {AT} AS x FROM events UNION ALL SELECT id, {CLOCK} AS x FROM events"
    with pytest.raises(InvalidUsage, match="definition of d takes a text for a timestamp in"):
        Deriving(events, spark, "d", select(text), ("id",)).declared()


def test_a_constant_that_is_the_time_it_is_is_refused(spark: Any, events: Made) -> None:
    for expression in ("element_at(array(CAST(concat_ws('', 'no', 'w') AS date)), 1)", "year(concat('to', 'day'))"):
        made = of(events, spark, expression)
        with pytest.raises(InvalidUsage, match=r"the definition of d (depends on the time it is|raises CAST_INVALID)"):
            _run(made)


def _run(made: Deriving) -> None:
    made.declared()
    made.corrected()


def test_a_row_whose_text_has_no_date_raises_and_is_named(spark: Any, events: Made) -> None:
    made = of(events, spark, f"CAST({CLOCK} AS timestamp)")
    made.declared()
    with pytest.raises(InvalidUsage, match=r"CAST_INVALID_INPUT: The value 'no date: \d+:30' .* for the row id \d+"):
        made.corrected()


def test_try_cast_gives_null_for_it_on_any_day(spark: Any, events: Made) -> None:
    made = of(events, spark, f"try_cast({CLOCK} AS timestamp)")
    made.declared()
    made.corrected()
    assert {row[1] for row in made.rows()} == {None}


def test_spark_takes_no_other_text_for_a_day_it_runs_on(spark: Any) -> None:
    """Of texts as columns; and those with a date are what they were."""
    frame = spark.createDataFrame([(text,) for text in (*WITHOUT, *WITH)], "s string")
    guarded = f"try_cast(regexp_replace(s, '{NO_DATE}', 'no date: $0') AS timestamp)"
    rows = frame.selectExpr("s", "string(try_cast(s AS timestamp)) AS plain", f"string({guarded}) AS guarded").collect()
    assert {row.s for row in rows if row.guarded is not None} == {row.s for row in rows if row.plain} - set(WITHOUT)
    assert all(row.guarded in (None, row.plain) for row in rows)
