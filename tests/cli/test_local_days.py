"""Days by the clock of a time zone, from the file of a day to what people are shown of it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell

SALES = """\
name: sales
key: [id]
value: [at]
columns: {id: int, at: timestamp}
timezone: America/New_York
start: 2024-03-09
time: arrival
event_time: {column: at}
late: discard
source: {path: "{{ landing }}/sales/{{ ds }}/*.csv", format: csv, envelope: append}
"""
SUNDAY = "[2024-03-10T00:00:00-05:00, 2024-03-11T00:00:00-04:00)"
"""A day of 23 hours."""


@pytest.fixture
def sales(shell: Shell) -> Shell:
    """Three days that have landed: the last one with an evening row of the day before it, which is late."""
    path = shell.files / "sales.yaml"
    path.write_text(SALES)
    shell.json("init", str(path))
    shell.land("sales/2024-03-09/a.csv", b"id,at\n1,2024-03-10T03:00:00Z\n")
    shell.land("sales/2024-03-10/a.csv", b"id,at\n2,2024-03-10T05:00:00Z\n3,2024-03-11T03:59:59Z\n")
    shell.land("sales/2024-03-11/a.csv", b"id,at\n4,2024-03-11T04:00:00Z\n5,2024-03-11T03:59:59Z\n")
    return shell


def test_a_row_of_a_local_day_is_on_time_in_the_file_of_that_day(sales: Shell) -> None:
    answer = sales.json("advance", "sales", "--to", "2024-03-12")
    assert answer["complete_below_text"] == "2024-03-12T04:00:00Z"
    assert [step["interval"] for step in answer["steps"] if "interval" in step][1] == SUNDAY
    assert sorted(row["id"] for row in sales.json("as-of", "sales")["rows"]) == [1, 2, 3, 4]
    # What was known then is asked for in UTC: at five in the morning of the second day the first one was over.
    rows = sales.json("as-of", "sales", "--time", "2024-03-10T05:00:00Z")["rows"]
    assert [row["id"] for row in rows] == [1]
    assert [row["id"] for row in sales.json("late", "sales", "--date", "2024-03-11")["rows"]] == [5]


@pytest.mark.parametrize(
    "span",
    [
        ["--date", "2024-03-10"],
        ["--from", "2024-03-10", "--to", "2024-03-10"],
        ["--lower", "2024-03-10", "--upper", "2024-03-11"],
        ["--lower", "2024-03-10T05:00:00Z", "--upper", "2024-03-11T00:00:00-04:00"],
    ],
)
def test_dates_without_a_time_are_local(sales: Shell, span: list[str]) -> None:
    (result,) = sales.json("ingest", "sales", *span)["results"]
    assert (result["interval"], result["rows"]) == (SUNDAY, 2)


def test_people_are_shown_local_days(sales: Shell) -> None:
    assert sales.json("status", "sales")["next_step"] == "tidemark ingest sales --date 2024-03-09"
    sales.json("ingest", "sales", "--date", "2024-03-10")
    assert f"ingested {SUNDAY}: 2 rows" in sales.json("log", "sales")["versions"][0]["change"]
    sales.json("gate", "sales", "unsealed")
    hole = "[2024-03-09T00:00:00-05:00, 2024-03-10T00:00:00-05:00)"
    assert sales.json("seal", "sales", "--date", "2024-03-10")["results"][0]["waiting_for"] == hole
    between = sales.refused("ingest", "sales", "--lower", "2024-03-10T00:00:00Z", "--upper", "2024-03-11")
    assert (
        "schedule @daily in America/New_York; write 2024-03-09T00:00:00-05:00 or 2024-03-10T00:00:00-05:00" in between
    )
    before = sales.refused("ingest", "sales", "--date", "2024-03-08")
    assert "starts 2024-03-09T00:00:00-05:00 and ends never" in before


def test_the_zone_is_fixed_by_the_first_data(sales: Shell) -> None:
    path = sales.files / "sales.yaml"
    path.write_text(SALES.replace("America/New_York", "America/Toronto"))
    sales.json("init", str(path))
    sales.json("ingest", "sales", "--date", "2024-03-10")
    path.write_text(SALES)
    assert "timezone" in (said := sales.refused("init", str(path)))
    assert "America/Toronto" in said
    assert "America/New_York" in said
