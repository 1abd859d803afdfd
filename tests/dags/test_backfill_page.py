"""The page from which a backfill is started: what it shows before, who sees the button, what its script may do, and
the report of what came of it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import token
from tests.dags.test_calendar import read
from tests.dags.test_rows_pages import text_of
from tests.dags.test_web import STRICT, policy
from tests.support.graph import START
from tests.support.windowed import Windowed
from tidemark.airflow.web import subject
from tidemark.airflow.web.backfill import Runs, script
from tidemark.airflow.web.range import range_of
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.model.change import HoldPlaced
from tidemark.model.instant import parse_instant
from tidemark.model.records import Hold

PAGE = "/collections/orders/backfill"
DAYS = "?from=2024-01-01&to=2024-01-05"


def said_of(page: str) -> str:
    """What a page says, but for its script."""
    page = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    return re.sub(r"(\s*<[^>]+>\s*)+", "|", page[page.index("<body>") :])


def request_of(page: str) -> dict[str, Any]:
    """What the button would ask Airflow for."""
    (text,) = re.findall(r'data-request="([^"]*)"', page)
    assert 'data-api="../../../api/v2/backfills" data-dag="../../../api/v2/dags/' in page
    request: dict[str, Any] = json.loads(html.unescape(text))
    return request


def test_it_shows_what_would_be_read_before_anything_is(client: Any, orders: Path) -> None:
    asked = client.get(PAGE)
    assert asked.status_code == 200
    assert "Start the backfill" not in asked.text, "of which days?"
    answer = client.get(PAGE + DAYS)
    said = said_of(answer.text)
    assert (
        "5 intervals in about 1 run|3 have landed; 2 have not landed. An unknown number of rows, about 1 minute."
        in said
    )
    assert "|2024-01-01|landed|1|unknown|" in said
    assert "|2024-01-04|not landed|0|0|" in said
    assert 'value="2024-01-05"' in answer.text
    read(orders, 1, 1)
    assert "1 was ingested before" in said_of(client.get(PAGE + DAYS).text).replace("were", "was")


def test_the_button_asks_airflow_for_what_is_shown(client: Any, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "runs_of", lambda _: Runs(31, 1))
    assert request_of(client.get(PAGE + DAYS).text) == {
        **{"dag_id": "orders", "max_active_runs": 1, "reprocess_behavior": "none", "run_backwards": False},
        **{"from_date": "2024-01-01T00:00:00+00:00", "to_date": "2024-01-05T00:00:00+00:00", "dag_run_conf": {}},
    }


def test_a_request_of_the_button_is_one_that_airflow_takes(client: Any, orders: Path) -> None:
    from airflow.api_fastapi.core_api.datamodels.backfills import BackfillPostBody

    body = BackfillPostBody.model_validate(request_of(client.get(PAGE + DAYS).text))
    assert (body.dag_id, body.from_date.day, body.to_date.day) == ("orders", 1, 5)


def test_a_paused_dag_is_unpaused_too_unless_one_says_no(
    client: Any, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "runs_of", lambda _: Runs(31, 4))
    assert "is paused" not in client.get(PAGE + DAYS).text
    monkeypatch.setattr(subject, "runs_of", lambda _: Runs(31, 4, paused=True))
    page = client.get(PAGE + DAYS).text
    assert '<input type="checkbox" id="unpause" checked="checked">' in page
    assert request_of(page)["max_active_runs"] == 4


def test_who_may_not_run_the_dag_has_neither_button_nor_script(client: Any, manager: Any, orders: Path) -> None:
    client.headers["Authorization"] = f"Bearer {token(manager, 'viewer')}"
    answer = client.get(PAGE + DAYS)
    assert answer.status_code == 200
    assert "3 have landed" in answer.text
    assert "data-request" not in answer.text
    assert "<script" not in answer.text
    assert "script-src" not in policy(answer)
    assert "You may look at it" in answer.text


def test_its_policy_names_the_one_script_and_nothing_else_may_run_or_be_spoken_to(client: Any, orders: Path) -> None:
    answer = client.get(PAGE + DAYS)
    (inline,) = re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.S)
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    directives = policy(answer)
    assert directives["script-src"] == f"'sha256-{digest}'"
    assert (directives["connect-src"], directives["form-action"], directives["default-src"]) == (
        "'self'",
        "'self'",
        "'none'",
    )
    assert {name: answer.headers[name] for name in STRICT} == STRICT
    assert not re.search(r"<[^>]* (src|style|on[a-z]+|srcset|background)=", answer.text)
    assert set(re.findall(r'action="([^"]*)"', answer.text)) == {"backfill"}


def test_the_script_shows_answers_as_text_and_speaks_to_airflow_alone() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|import|</", script())
    assert re.findall(r"\bfetch\(([^,]*),", script()) == ["address"]
    assert re.findall(r"await ask\((.*?), \"", script()) == [
        "button.dataset.api",
        "`${button.dataset.dag}?update_mask=is_paused`",
    ]


def test_a_collection_that_no_run_has_begun_is_shown_by_its_file(client: Any, collections: Path) -> None:
    assert f'href="{PAGE.removeprefix("/collections/")}"' in client.get("/collections/orders").text
    assert "Start the backfill" in client.get(PAGE + DAYS).text
    report = client.get(f"/collections/orders/report{DAYS}")
    assert "No run of it has begun yet" in text_of(report)
    assert 'http-equiv="refresh"' in report.text
    assert client.get("/collections/nobody/backfill").status_code == 404
    assert "/backfill" not in client.get("/collections/nobody").text


def test_a_derived_collection_has_days_and_no_files(client: Any, hours: Windowed) -> None:
    page = client.get(f"/collections/hours/backfill{DAYS}").text
    assert "5 intervals in about 1 run" in page
    assert "have landed" not in page
    assert 'href="calendar" id="report"' in page
    assert client.get(f"/collections/hours/report{DAYS}").status_code == 422


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("?from=2024-01-05&to=2024-01-01", "later than the last"),
        ("?from=yesterday&to=2024-01-01", "is no day; write 2013-01-31"),
        ("?from=%3Cscript%3E&to=2024-01-01", "&lt;script&gt;&#x27; is no day"),
    ],
)
def test_what_is_no_range_is_refused(client: Any, orders: Path, asked: str, said: str) -> None:
    answer = client.get(PAGE + asked)
    assert answer.status_code == 422
    assert said in answer.text
    assert "Look at it first" in answer.text, "it asks again"
    assert "<script" not in answer.text


def test_five_thousand_days_are_looked_at_in_parts(client: Any, collections: Path) -> None:
    file = collections / "orders.yaml"
    file.write_text(re.sub(r"end: .*\n", "", file.read_text().replace("start: 2024-01-01", "start: 2010-01-01")))
    answer = client.get(f"{PAGE}?from=2010-01-01&to=2023-12-31")
    assert "5,113 intervals in about 165 runs" in answer.text
    assert "a page looks at 400 intervals at most" in answer.text


def test_days_outside_the_collection_and_days_to_come_are_none(client: Any, orders: Path) -> None:
    for asked in ("?from=2019-01-01&to=2019-01-05", "?from=2124-01-01&to=2124-01-05"):
        page = client.get(PAGE + asked).text
        assert "No interval of orders that is over begins" in page
        assert "data-request" not in page


def test_a_day_alone_is_a_range() -> None:
    found = range_of("2024-01-01", "")
    assert found is not None
    assert found.address == "?from=2024-01-01&to=2024-01-01"
    with pytest.raises(InvalidUsage):
        range_of("2024-01-02", "2024-01-01")


def test_the_report_counts_each_day_and_is_a_file_too(client: Any, orders: Path) -> None:
    with pytest.raises(FileRefused):
        read(orders, 1, 3)
    answer = client.get(f"/collections/orders/report{DAYS}")
    said = text_of(answer)
    assert "|0 of 5 intervals complete; waits for 2024-01-02: refused: 1 file cannot be taken|" in said
    assert "|2024-01-03|waiting|1|2|0|1|0|0|0|" in said
    assert 'http-equiv="refresh"' in answer.text, "not all of it is done"
    file = client.get(f"/collections/orders/report.csv{DAYS}")
    assert file.headers["content-type"].startswith("text/csv")
    assert file.text.splitlines()[:2] == [
        "lower,upper,status,files,rows,late,dead,refused,corrected,written",
        "2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,ingested,1,1,0,0,0,0,0",
    ]
    assert client.get("/collections/orders/report").status_code == 422
    assert client.get("/collections/nobody/report" + DAYS).status_code == 404
    day = client.get(f"/collections/orders/intervals/{parse_instant('2024-01-03')}").text
    assert 'href="../backfill?from=2024-01-03&amp;to=2024-01-03"' in day


def test_the_report_says_how_far_what_is_computed_has_followed(client: Any, hours: Windowed) -> None:
    log = hours.job("rows").log
    log.commit(log.load(), HoldPlaced(Hold("derived.hours", START)))
    said = text_of(client.get(f"/collections/rows/report{DAYS}"))
    assert "|Computed from it|" in said
    assert re.search(r"\|hours\|2024-01-0\dT[\d:.]+Z\|(all of it|has more to read)\|", said)
