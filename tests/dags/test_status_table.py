"""The table of collections on the Tidemark page: one line each, by whichever column one looks for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_web import HOSTILE, check_strict
from tidemark.airflow.location import location_of
from tidemark.airflow.web.markup import Markup
from tidemark.airflow.web.status_table import COLUMNS, status_table
from tidemark.model.instant import parse_instant


def entry(name: str, **more: Any) -> dict[str, Any]:
    known = {"collection": name, "complete_below": parse_instant("2024-01-02"), "start": 0, "end": None}
    counts = {"late_applied": 0, "late_discarded": 0, "debt": {"compactions": 0}, "levels": [], "quarantine": []}
    return {**known, **counts, "uncertified": (), **more}


ENTRIES = [
    entry("a", late_applied=5, complete_below=parse_instant("2024-01-03"), overdue="a: 3 January is overdue"),
    entry("b", levels=[{"rows": 2_000_000}, {"rows": 1}], end=parse_instant("2024-01-02")),
    entry("c", late_discarded=7, late_applied=1, quarantine=[1], debt={"compactions": 3}),
    {"collection": "d", "error": f"Corruption: {HOSTILE}"},
]
NOW = parse_instant("2024-01-04T06:30:00Z")


def lines(sort: str = "", **more: Any) -> list[list[str]]:
    """The table's lines, without markup."""
    table = status_table(ENTRIES, NOW, lambda _: Markup("<span>well</span>"), sort=sort, **more)
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in rows]


def test_a_line_says_how_a_collection_stands() -> None:
    heading, a, b, c, d = lines()
    assert heading == ["collection", "status", *(column.heading for column in COLUMNS.values())]
    assert a == ["a", "well", "30 hours", "overdue", "0", "0", "5", "0", "0"]
    assert b == ["b", "well", "ended", "–", "0", "0", "0", "0", "2,000,001"]
    assert c == ["c", "well", "2 days", "–", "1", "0", "8", "3", "0"]
    assert d[0] == "d"
    assert "&lt;script&gt;" in d[1]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", "abcd"),
        ("late", "cabd"),
        ("behind", "cabd"),
        ("overdue", "abcd"),
        ("rows", "bacd"),
        ("debt", "cabd"),
        ("none of these", "abcd"),
    ],
)
def test_it_is_sorted_by_a_column_and_what_cannot_be_read_comes_last(sort: str, names: str) -> None:
    assert "".join(line[0] for line in lines(sort)[1:]) == names


def test_headings_lead_to_the_other_orders_of_the_same_page() -> None:
    table = status_table(ENTRIES, NOW, lambda _: Markup(""), sort="late", after="Z&")
    assert 'href="?after=Z%26&amp;sort=rows"' in table
    assert 'href="?after=Z%26"' in table
    assert "sort=late" not in table, "it is chosen"


def test_the_page_shows_it(client: Any, root: Path, collections: Path) -> None:
    other = collections / "others.yaml"
    other.write_text((collections / "orders.yaml").read_text().replace("name: orders", "name: others"))
    location_of(other).declare()
    answer = client.get("/?sort=late")
    check_strict(answer)
    found = re.findall(r'<td><a href="collections/(\w+)">', answer.text)
    assert found == ["orders", "others"]
    assert client.get("/?sort=" + "x" * 600).status_code == 422


def test_what_is_overdue_is_said_on_its_page_and_in_the_table(client: Any, root: Path, collections: Path) -> None:
    file = collections / "orders.yaml"
    (collections / "stock.yaml").write_text(file.read_text().replace("name: orders", "name: stock"))
    location_of(collections / "stock.yaml").declare()
    assert "overdue by" not in client.get("/").text
    file.write_text(file.read_text() + "airflow: {overdue: 3h}\n")
    page = client.get("/").text
    assert re.search(r'<span class="bad" title="orders: \[[^"]* is overdue by [^"]*">overdue</span>', page)
    assert page.count("overdue by") == 1
    assert "overdue by" in client.get("/collections/orders").text
    assert "overdue by" not in client.get("/collections/stock").text
