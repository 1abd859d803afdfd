"""The calendar of a collection: a cell for each interval, and the page behind each."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS
from tests.dags.test_web import check_strict
from tidemark.airflow.location import location_of
from tidemark.airflow.web.calendar import MOST_CELLS, Cell, Shown, calendar_page, shown
from tidemark.airflow.web.range import Range
from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule
from tidemark.errors import FileRefused, GateFailed
from tidemark.jobs import app
from tidemark.jobs.backfill import backfill
from tidemark.jobs.in_process_runner import InProcess
from tidemark.jobs.queries import intervals
from tidemark.jobs.queries.history import history
from tidemark.jobs.queries.status import status
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.plan.day import interval_in_words

CELL = re.compile(r'<a href="intervals/(\d+)" class="cell ([^"]+)" title="([^"]+)">(\d+)</a>')
HOSTILE = "<script>alert(1)</script>"


def read(landing: Path, first: int, last: int) -> None:
    """Bring some days through all steps."""
    location = location_of(Path(landing.parent / "collections" / "orders.yaml"))
    job = app.open_job(location.store_root, "orders", lambda: InProcess(job.store))
    days = [
        Interval(parse_instant(f"2024-01-0{day}"), parse_instant(f"2024-01-0{day + 1}"))
        for day in range(first, last + 1)
    ]
    backfill(job, days, str(landing))


def cells(client: Any) -> dict[str, tuple[list[str], str]]:
    """What the calendar shows, by day: classes and words."""
    answer = client.get("/collections/orders/calendar")
    assert answer.status_code == 200
    check_strict(answer)
    return {label: (marks.split(), said) for _, marks, said, label in CELL.findall(answer.text)}


def test_each_interval_is_a_cell_that_says_how_it_stands(client: Any, orders: Path) -> None:
    assert [marks for marks, _ in cells(client).values()] == [["missing"]] * 5
    with pytest.raises(FileRefused, match="1 of 3 intervals failed"):
        read(orders, 1, 3)
    found = cells(client)
    assert [marks for marks, _ in found.values()] == [
        ["ingested"],
        ["refused"],
        ["waiting", "late"],
        ["missing"],
        ["missing"],
    ]
    assert found["02"][1] == "2024-01-02: refused: 1 file cannot be taken"
    (orders / "orders" / "2024-01-02" / "a.csv").write_text(
        "id,status,amount,happened_at\n2,open,20,2024-01-02T09:00:00Z\n"
    )
    read(orders, 2, 2)
    found = cells(client)
    assert [marks for marks, _ in found.values()] == [
        ["complete"],
        ["complete"],
        ["complete", "late"],
        ["missing"],
        ["missing"],
    ]
    assert found["03"][1] == "2024-01-03: complete, 2 rows of 1 file, 1 late, kept as dead letters"


def test_a_day_that_a_gate_found_wrong_is_marked_until_it_is_mended(client: Any, orders: Path) -> None:
    day = orders / "orders" / "2024-01-02" / "a.csv"
    day.write_text("id,status,amount,happened_at\n2,lost,20,2024-01-02T09:00:00Z\n")
    with pytest.raises(GateFailed, match="lost"):
        read(orders, 1, 2)
    found = cells(client)
    assert [marks for marks, _ in found.values()][:2] == [["ingested"], ["failed"]]
    assert found["02"][1] == "2024-01-02: ingested, and did not pass its gate, 1 row of 1 file"
    page = client.get(f"/collections/orders/intervals/{parse_instant('2024-01-02')}").text
    assert "on the tab Required Actions" in page
    location = location_of(Path(orders.parent / "collections" / "orders.yaml"))
    (bad,) = [
        batch
        for batch in location.job().log.load().state.pending
        if batch.interval.lower == parse_instant("2024-01-02")
    ]
    quarantine(location.job(), bad.id)
    assert "1 batch in quarantine" in cells(client)["02"][1]


def test_a_correction_marks_its_day(client: Any, orders: Path) -> None:
    read(orders, 1, 1)
    (orders / "orders" / "2024-01-01" / "a.csv").write_text(
        "id,status,amount,happened_at\n1,open,10,2024-01-01T09:00:00Z\n9,open,90,2024-01-01T10:00:00Z\n"
    )
    read(orders, 1, 1)
    marks, said = cells(client)["01"]
    assert marks == ["complete", "corrected"]
    assert said == "2024-01-01: complete, 1 row of 1 file, 1 file corrected by 1 row"


def test_the_page_of_a_day_says_what_came_and_what_to_do(client: Any, orders: Path) -> None:
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    second = parse_instant("2024-01-02")
    answer = client.get(f"/collections/orders/intervals/{second}")
    assert answer.status_code == 200
    check_strict(answer)
    assert "orders/2024-01-02/a.csv" in answer.text
    assert HOSTILE not in answer.text
    assert "Mend what was refused" in answer.text
    assert "Backfill it" not in answer.text, "one way out, not two"
    assert "tidemark backfill orders --lower 2024-01-02T00:00:00Z --upper 2024-01-03T00:00:00Z --again" in answer.text
    third = client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}").text
    assert "ingested [2024-01-03" in third
    assert "An earlier interval is missing: backfill that" in third
    assert "tidemark late replay orders" in third
    assert "Late rows" in third
    shown = re.sub(r"<[^>]+>", "|", third[third.index("Late rows") :])
    assert re.search(r"before its interval\|+1d15h\|+2024-01-01T09:00:00Z\|+no, a dead letter\|+4\|+paid\|+40", shown)
    assert "No run of Airflow is about it" in third


def test_files_are_for_who_may_read_logs_and_late_rows_for_who_may_see_rows(client: Any, orders: Path) -> None:
    from tidemark.airflow.web.permissions import reader_of_logs, reader_of_rows

    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    client.app.dependency_overrides[reader_of_rows] = lambda: lambda _: False
    assert "a.csv" in client.get(f"/collections/orders/intervals/{parse_instant('2024-01-02')}").text
    client.app.dependency_overrides[reader_of_logs] = lambda: lambda _: False
    assert "Late rows" not in client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}").text
    text = client.get(f"/collections/orders/intervals/{parse_instant('2024-01-02')}").text
    assert "a.csv" not in text
    assert "are shown to who may read the logs" in text


def test_late_rows_that_are_too_many_are_not_read(client: Any, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    monkeypatch.setattr("tidemark.airflow.web.late.MOST_BYTES", 1)
    text = client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}").text
    assert "1 row, too many for a page" in text
    assert "dead letter</td>" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/collections/nobody/calendar",
        "/collections/nobody/intervals/0",
        "/collections/orders/intervals/1",
        f"/collections/orders/intervals/{2**62}",
        "/collections/orders/intervals/0",
        "/collections/..%2f..%2fetc/calendar",
    ],
)
def test_what_is_not_there_is_not_found(client: Any, orders: Path, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    check_strict(answer)


@pytest.mark.parametrize("path", ["/collections/orders/intervals/-1", "/collections/orders/calendar?upto=x"])
def test_what_is_no_number_is_refused(client: Any, orders: Path, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    check_strict(answer)


def test_a_page_has_two_years_of_days_and_leads_to_the_ones_before(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS.replace("end: 2024-01-04\n", "").replace("2024-01-01", "2000-01-01"))
    landed, now = load(file).landed, parse_instant("2024-06-15T12:00:00Z")
    page = shown(landed, now)
    assert len(page.intervals) == MOST_CELLS
    assert (page.older, page.newer) == (True, False)
    assert page.intervals[-1] == Interval(parse_instant("2024-06-15"), parse_instant("2024-06-16")), "today goes on"
    before = shown(landed, now, page.intervals[0].lower)
    assert (before.older, before.newer) == (True, True)
    assert before.intervals[-1].upper == page.intervals[0].lower
    assert shown(landed, parse_instant("2000-01-01")).intervals == []
    assert len(shown(landed, parse_instant("2000-01-03")).intervals) == 2


def test_ten_thousand_files_are_read_once(client: Any, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.storage.sidecars import ledger

    intervals._READ.clear()
    read(orders, 1, 1)
    read_ledgers: list[int] = []
    entries = ledger.entries

    def counted(*given: Any, below: str = "") -> Any:
        if not below:  # else an ingest looks for the files of its interval
            read_ledgers.append(1)
        return entries(*given, below=below)

    monkeypatch.setattr(ledger, "entries", counted)
    cells(client)
    cells(client)
    assert len(read_ledgers) == 1, "nothing was ingested in between"
    read(orders, 3, 3)
    cells(client)
    assert len(read_ledgers) == 2
    assert sum("/orders" in url for url in intervals._READ) == 1, "of one collection the newest ledger is kept"


@pytest.mark.parametrize(
    ("zone", "lower", "label", "words"),
    [
        ("America/New_York", "2024-03-10T05:00", ("2024-03", "10"), "2024-03-10"),  # 23 hours
        ("America/New_York", "2024-11-03T04:00", ("2024-11", "03"), "2024-11-03"),  # 25 hours
        ("Africa/Cairo", "2024-04-25T22:00", ("2024-04", "26"), "2024-04-26"),  # from 01:00
        ("Asia/Kathmandu", "2024-02-29T18:15", ("2024-03", "01"), "2024-03-01"),
        ("UTC", "2024-03-10", ("2024-03", "10"), "2024-03-10"),
    ],
)
def test_a_cell_has_the_local_day(zone: str, lower: str, label: tuple[str, str], words: str) -> None:
    day = Schedule("@daily", zone).interval_from(parse_instant(lower))
    assert interval_in_words(day) == words
    page = calendar_page("sales", Shown([day], older=False, newer=False), [Cell(day, [], words)], {}).html
    assert (f">{label[0]}<" in page, f">{label[1]}<" in page) == (True, True)


def test_hours_that_clocks_show_twice_have_their_offsets() -> None:
    lower, upper = map(parse_instant, ("2024-11-03T04:00", "2024-11-03T07:00"))
    hours = Schedule("@hourly", "America/New_York").beginning(lower, upper)
    assert [interval_in_words(hour)[11:25] for hour in hours] == ["00:00:00-04:00", "01:00:00-04:00", "01:00:00-05:00"]


def test_a_range_has_local_days(collections: Path) -> None:
    landed = replace(load(collections / "orders.yaml").landed, timezone="America/New_York", start=0, end=None)
    days = Range(date(2024, 3, 10), date(2024, 3, 11)).intervals(landed, parse_instant("2024-03-12T04:00"))
    assert [(day.lower, day.upper) for day in days] == [
        tuple(map(parse_instant, bounds))
        for bounds in (("2024-03-10T05:00", "2024-03-11T04:00"), ("2024-03-11T04:00", "2024-03-12T04:00"))
    ]


def test_every_door_says_the_same_of_a_day(client: Any, orders: Path) -> None:
    """Shell, calendar, its own page, report, status and overview; which file it is goes to who may read logs."""
    from tidemark.airflow.web.permissions import reader_of_logs

    name, what = "2024-01-02", "2024-01-02: refused: 1 file cannot be taken"
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    location = location_of(Path(orders.parent / "collections" / "orders.yaml"))
    head = location.job().log.load()
    seen = status(head, parse_instant("2024-01-06"))
    assert seen.waiting_for is not None
    assert (seen.waiting_for.sentence, seen.waiting_for.detail) == (what, head.state.stopped[0].detail)
    assert cells(client)["02"][1] == what
    pages = {
        "calendar": f"intervals/{parse_instant(name)}",
        "report": f"report?from={name}&to={name}",
        "status": "",
    }
    for page in pages.values():
        shown_text = html.unescape(client.get(f"/collections/orders/{page}".rstrip("/")).text)
        assert what in shown_text, page
    assert f"{what}: orders/2024-01-02/a.csv: " in html.unescape(client.get("/").text)
    client.app.dependency_overrides[reader_of_logs] = lambda: lambda _: False
    for page in (*pages.values(), "../"):
        assert "a.csv" not in client.get(f"/collections/orders/{page}".rstrip("/")).text, page
    heading = re.sub(
        r"<[^>]+>", "", html.unescape(client.get("/collections/orders/report?from=2024-01-01&to=2024-01-03").text)
    )
    assert f"0 of 3 intervals complete; waits for {what}" in heading
    (logged,) = [entry for entry in history(location.job().log) if entry.kind == "refused"]
    assert logged.change == "could not read [2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z): 1 file cannot be taken"
    assert logged.detail == seen.waiting_for.detail
