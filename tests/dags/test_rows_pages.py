"""The pages that show what a collection is, rows of it, and it over time: for whom, how much, and what is masked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import token
from tests.dags.test_calendar import CELL, read
from tests.dags.test_web import check_strict
from tests.support.windowed import Windowed
from tidemark.airflow.location import location_of
from tidemark.errors import FileRefused
from tidemark.model.instant import parse_instant

FIRST = f"/collections/orders/intervals/{parse_instant('2024-01-01')}"


def text_of(answer: Any) -> str:
    """What a page says, with a bar between its pieces."""
    assert answer.status_code == 200, answer.text
    check_strict(answer)
    return re.sub(r"(\s*<[^>]+>\s*)+", "|", answer.text[answer.text.index("<body>") :])


@pytest.fixture
def corrected(client: Any, orders: Path) -> Any:
    """A browser that looks at a collection of two days, of which the first was corrected since."""
    (orders / "orders" / "2024-01-02" / "a.csv").write_text(
        "id,status,amount,happened_at\n2,open,20,2024-01-02T09:00:00Z\n"
    )
    read(orders, 1, 2)
    (orders / "orders" / "2024-01-01" / "a.csv").write_text(
        "id,status,amount,happened_at\n1,paid,11,2024-01-01T09:00:00Z\n12345,open,90,2024-01-01T10:00:00Z\n"
    )
    read(orders, 1, 1)
    return client


def test_what_a_collection_is(corrected: Any) -> None:
    said = text_of(corrected.get("/collections/orders/about"))
    for text in ("|id|int|key|", "|status|string|value|", "|source|", "|late rows|", "|runs|@daily|"):
        assert text in said, text
    assert "|12345|open|90|" in said, "a key is no figure of ours"
    assert "version" in said


def test_a_day_shows_what_it_brought_and_what_was_learned_about_it_since(corrected: Any) -> None:
    said = text_of(corrected.get(f"{FIRST}/rows"))
    brought, since = said.split("What was learned about it since")
    assert "|insert|" in brought
    assert "|1|open|10|" in brought
    assert "12345" not in brought
    assert "|2|open|" not in said, "another day's"
    assert "|-1|1|open|10|" in since
    assert "|1|1|paid|11|" in since
    assert "|1|12345|open|90|" in since
    assert 'href="' + FIRST.rpartition("/")[2] + '/rows"' in corrected.get(FIRST).text


def test_what_is_not_sealed_has_no_rows(client: Any, orders: Path) -> None:
    assert "It is not sealed yet" in text_of(client.get(f"{FIRST}/rows"))
    assert "Nothing is sealed yet" in text_of(client.get("/collections/orders/about"))
    assert "No version" not in text_of(client.get("/collections/orders/history"))


def test_changes_that_are_merged_are_said_to_be(client: Any, orders: Path) -> None:
    file = orders.parent / "collections" / "orders.yaml"
    file.write_text(file.read_text().replace("reprocess_for: 30d\n", "retention: full_merge\n"))
    location_of(file).declare()
    (orders / "orders" / "2024-01-02" / "a.csv").write_text(
        "id,status,amount,happened_at\n2,open,20,2024-01-02T09:00:00Z\n"
    )
    for day in (1, 2):
        read(orders, day, day)
    said = text_of(client.get(f"{FIRST}/rows"))
    brought, since = said.split("What was learned about it since")
    assert "History begins at 2024-01-02T23:59:59.999999Z: older changes are merged." in brought
    assert "History begins at 2024-01-02T23:59:59.999999Z: older changes are merged." in since
    second = text_of(client.get(f"/collections/orders/intervals/{parse_instant('2024-01-02')}/rows"))
    assert "|History begins at 2024-01-02T23:59:59.999999Z, with these rows:|" in second
    assert "|2|open|20|" in second


def test_rows_that_take_too_much_to_find_are_not_read(corrected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.airflow.web.sample.MOST_BYTES", 1)
    said = text_of(corrected.get(f"{FIRST}/rows"))
    assert "which is too much for a page:|tidemark changes orders --after" in said
    assert "|insert|" not in said


def test_values_of_masked_columns_are_on_no_page(corrected: Any, orders: Path) -> None:
    file = orders.parent / "collections" / "orders.yaml"
    text = file.read_text()
    assert " amount: int," in text
    file.write_text(text.replace(" amount: int,", " amount: {type: int, masked: true, description: in cents},"))
    location_of(file).declare()
    about = text_of(corrected.get("/collections/orders/about"))
    assert "|amount|int|value|masked|in cents|" in about
    for page in (about, text_of(corrected.get(f"{FIRST}/rows"))):
        assert "|masked|" in page
        assert not re.search(r"\|(10|11|90)\|", page)


def test_a_masked_time_is_masked_wherever_it_is_shown(client: Any, orders: Path) -> None:
    """Tidemark keeps a row's times in columns of its own, too."""
    file = orders.parent / "collections" / "orders.yaml"
    masked = "happened_at: {type: timestamp, masked: true}"
    file.write_text(file.read_text().replace("happened_at: timestamp", masked))
    location_of(file).declare()
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    late = text_of(client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}"))
    assert re.search(r"\|before its interval\|masked\|masked\|no, a dead letter\|4\|paid\|40\|", late)
    (orders / "orders" / "2024-01-02" / "a.csv").unlink()
    read(orders, 2, 3)
    brought = text_of(client.get(f"{FIRST}/rows"))
    assert "|insert|masked|masked|1|1|open|10|" in brought
    assert "09:00:00" not in brought


def test_values_of_masked_columns_are_not_among_late_rows(client: Any, orders: Path) -> None:
    file = orders.parent / "collections" / "orders.yaml"
    file.write_text(file.read_text().replace(" status: string,", " status: {type: string, masked: true},"))
    location_of(file).declare()
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    said = text_of(client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}"))
    assert "|4|masked|40|" in said
    assert "paid" not in said


@pytest.mark.parametrize(
    ("who_sees", "role", "sees"),
    [
        (None, "viewer", False),
        (None, "user", True),
        ("editors", "viewer", False),
        ("readers", "viewer", True),
        ("nobody", "admin", False),
    ],
)
def test_rows_are_for_whom_the_setting_says(
    corrected: Any, manager: Any, monkeypatch: pytest.MonkeyPatch, who_sees: str | None, role: str, sees: bool
) -> None:
    monkeypatch.delenv("TIDEMARK_ROWS_FOR", raising=False)
    if who_sees:
        monkeypatch.setenv("TIDEMARK_ROWS_FOR", who_sees)
    corrected.headers["Authorization"] = f"Bearer {token(manager, role)}"
    answer = corrected.get(f"{FIRST}/rows")
    assert answer.status_code == (200 if sees else 403)
    assert ("12345" in answer.text) == sees
    assert ("12345" in text_of(corrected.get("/collections/orders/about"))) == sees
    assert ("/rows" in text_of(corrected.get(FIRST)) or "/rows" in corrected.get(FIRST).text) == sees
    if not sees:
        assert "TIDEMARK_ROWS_FOR" in answer.json()["detail"]


def test_a_setting_that_is_none_shows_nothing(corrected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_ROWS_FOR", "everybody")
    browser = type(corrected)(corrected.app, raise_server_exceptions=False)
    browser.headers.update(corrected.headers)
    assert browser.get(f"{FIRST}/rows").status_code == 500


def test_the_history_leads_down_to_its_beginning(corrected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.airflow.web.over_time.LINES", 5)
    found, address = [], "/collections/orders/history"
    while address:
        page = corrected.get(address).text
        found += [int(version) for version in re.findall(r"<tr><td>(\d+)</td>", page)]
        onward = re.search(r'href="(\?upto=\d+)">earlier', page)
        address = f"/collections/orders/history{onward[1]}" if onward else ""
    assert found == list(range(max(found), 0, -1))
    assert corrected.get("/collections/orders/history?upto=0").status_code == 422


def test_the_pictures_have_a_bar_for_each_interval_and_each_seal(corrected: Any) -> None:
    page = corrected.get("/collections/orders/history").text
    assert "2024-01-01: 1 row</title>" in page
    assert "2024-01-02: 1 row</title>" in page
    for heading in ("Rows of each interval", "Late rows of each interval", "Behind, at each seal"):
        assert f"<h3>{heading}</h3>" in page
    assert re.search(r"complete below 2024-01-03T00:00:00Z: \d[\w, ]* behind</title>", page)


def test_a_derived_collection_has_a_calendar_of_its_days(client: Any, hours: Windowed) -> None:
    page = client.get("/collections/hours/calendar")
    check_strict(page)
    found = CELL.findall(page.text)
    assert [(marks, label) for _, marks, _, label in found] == [("complete", "01"), ("complete", "02")]
    assert [said for _, _, said, _ in found] == [
        "2024-01-01: complete, 48 rows added and 0 retracted by 1 run",
        "2024-01-02: complete, 68 rows added and 0 retracted by 1 run",
    ]
    day = text_of(client.get(f"/collections/hours/intervals/{found[1][0]}"))
    assert "|rows added|68|" in day
    assert "|What it brought|" in day
    rows = text_of(client.get(f"/collections/hours/intervals/{found[1][0]}/rows"))
    assert "|-1|EWR|2024-01-01T00:00:00Z|2024-01-01T01:00:00Z|0|" in rows
    assert "|1|EWR|2024-01-01T00:00:00Z|2024-01-01T01:00:00Z|40|" in rows
    first = text_of(client.get(f"/collections/hours/intervals/{found[0][0]}/rows"))
    assert "|History begins at 2024-01-01T23:59:59.999999Z, with these rows:|" in first
    assert "|EWR|2024-01-01T00:00:00Z|2024-01-01T01:00:00Z|0|" in first
    assert "|insert|" not in first
    assert "Rows added and retracted by each run" in client.get("/collections/hours/history").text
    about = text_of(client.get("/collections/hours/about"))
    assert "|computed from|" in about
    assert "`" not in about, "names of columns are set as code"
    assert client.get("/collections/hours/intervals/1").status_code == 404
