"""A button on a collection's page cuts a batch now: who sees it, what it asks of Airflow, what the page says then."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import token
from tests.dags.test_batches import cut as cut
from tests.dags.test_batches import ingested, land, run_of
from tests.dags.test_web import STRICT, policy
from tidemark.airflow import batches_dag
from tidemark.airflow.web import by_collection
from tidemark.airflow.web.cut import CutRuns, Run, cut_runs_of

PAGE = "/collections/orders"
BEGAN = datetime(2024, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
RUNS = CutRuns(
    False,
    [
        Run("manual__2", "running", BEGAN, None),
        Run("manual__1", "failed", BEGAN, BEGAN + timedelta(seconds=75)),
        Run("manual__0", "queued", None, None),
    ],
)


@pytest.fixture
def page(client: Any, cut: Path, locations: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives the page of `orders`, cut by load, of which somebody has cut a batch; and the runs that Airflow has."""
    land(locations)
    ingested(batches_dag(cut).get_task("ingest"), run_of(run_after=datetime.now(UTC) + timedelta(seconds=1)))

    def shown(runs: CutRuns | None = RUNS) -> Any:
        monkeypatch.setattr(by_collection, "cut_runs_of", lambda name: runs if name == "orders" else None)
        return client.get(PAGE)

    return shown


def test_the_button_asks_airflow_for_a_run_of_the_batches_and_the_page_says_what_became(page: Any) -> None:
    from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody

    answer = page()
    (request,) = re.findall(r'data-request="([^"]*)"', answer.text)
    assert (
        'data-api="../../api/v2/dags/orders.batches/dagRuns" data-dag="../../api/v2/dags/orders.batches"' in answer.text
    )
    body = TriggerDAGRunPostBody.model_validate(json.loads(html.unescape(request)))
    assert (body.logical_date, body.conf) == (None, {})
    said = re.sub(r"(\s*<[^>]+>\s*)+", "|", answer.text)
    assert "its interval is over: every 1s, or 1 bytes; or when somebody asks.|Cut a batch now|" in said
    assert "|manual__2|running|2024-01-01T12:00:00Z|" in said
    assert "|manual__1|failed|2024-01-01T12:00:00Z|1m15s|manual__0|queued|not yet|" in said
    assert re.search(
        r"so far: 1 row of 1 file as \w+; cut by bytes, also time and explicit; 1 key; [\d,]+ bytes, [\d,]+ a row",
        said,
    )
    assert 'id="unpause"' not in answer.text
    assert 'id="unpause"' in page(CutRuns(True, [])).text


def test_its_policy_names_the_one_script(page: Any) -> None:
    answer = page()
    (inline,) = re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    assert policy(answer)["script-src"] == f"'sha256-{digest}'"
    assert (policy(answer)["connect-src"], policy(answer)["form-action"]) == ("'self'", "'none'")
    assert {name: answer.headers[name] for name in STRICT} == STRICT


def test_who_may_not_run_the_dag_has_neither_button_nor_script(page: Any, client: Any, manager: Any) -> None:
    client.headers["Authorization"] = f"Bearer {token(manager, 'viewer')}"
    answer = page()
    assert "You may look at it, and not cut" in answer.text
    assert "<script" not in answer.text
    assert "data-request" not in answer.text


def test_there_is_none_where_airflow_has_no_such_dag_or_nothing_is_cut(page: Any, cut: Path) -> None:
    assert cut_runs_of("orders") is None, "no such DAG is in the database"
    assert "Cut a batch" not in page(None).text
