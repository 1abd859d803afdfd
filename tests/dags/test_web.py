"""The plugin's pages: nothing without a login, nothing but reading, no file from outside the docs' folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import PROJECT
from tidemark.airflow.place import place_of
from tidemark.model.arrangement import Fence
from tidemark.model.batch import ObjectRef, UnsealedBatch
from tidemark.model.change import Attempted, Ingested
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval

PATHS = (
    "/",
    "/collections.json",
    "/collections/orders",
    "/gates/orders/unsealed",
    "/docs/orders/unsealed/index.html",
)


@pytest.fixture
def root(places: Path, collections: Path) -> Path:
    """A root with the collection `orders`: one batch of 7 rows, 2 of them late, not vouched for yet."""
    place = place_of(collections / "orders.yaml")
    place.declare()
    log = place.job().log
    fence = Fence("ingest", Interval(parse_instant("2024-01-01"), parse_instant("2024-01-02")), "token")
    batch = UnsealedBatch("b" * 32, fence.interval, ObjectRef("data/x", 1, "0"), 1, 7, 700, 1, 5, 5, 5, 5)
    head = log.commit(log.load(), Attempted(fence)).head  # type: ignore[union-attr]
    log.commit(head, Ingested(fence, batch, None, rows_late_applied=2))
    return places / "root"


@pytest.fixture
def failure(places: Path) -> Path:
    """Data Docs and the report of a gate that failed on a row with markup in it."""
    folder = places / "docs" / "orders" / "unsealed"
    (folder / "validations").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>index</h1>")
    (folder / "validations" / "run.html").write_text("<h1>validation</h1>")
    finding = {
        "rule": "expect_column_values_to_be_in_set(status)",
        "severity": "critical",
        "batch": "b" * 32,
        "passed": False,
        "message": "1 row holds <b>lost</b>",
        "failing": 1,
        "rows": [{"id": 12345, "status": "<script>alert(1)</script>"}],
    }
    report = {"collection": "orders", "gate": "unsealed", "suite": "s", "batches": ["b" * 32], "passed": False}
    (folder / "report.json").write_text(json.dumps(report | {"results": [finding]}))
    (places / "docs" / "orders" / "secret").write_text("no part of any gate's docs")
    return folder


@pytest.fixture(scope="module")
def manager(database: None) -> Any:
    from airflow.api_fastapi.app import create_auth_manager

    manager = create_auth_manager()
    manager.init()
    return manager


@pytest.fixture
def anonymous(manager: Any) -> Any:
    """A browser that has not logged in."""
    from fastapi.testclient import TestClient

    from tidemark.airflow.web.app import create_app

    return TestClient(create_app())


@pytest.fixture
def client(anonymous: Any, manager: Any) -> Iterator[Any]:
    """A browser that has."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = manager.generate_jwt(SimpleAuthManagerUser(username="vera", role="viewer"))
    anonymous.headers["Authorization"] = f"Bearer {token}"
    return anonymous


def test_no_route_answers_without_a_login(anonymous: Any, root: Path, failure: Path) -> None:
    assert {path: anonymous.get(path).status_code for path in PATHS} == dict.fromkeys(PATHS, 401)


def test_every_route_is_in_the_list_and_only_reads(anonymous: Any) -> None:
    routes = {(route.path, *route.methods) for route in anonymous.app.routes}
    assert routes == {
        ("/", "GET"),
        ("/collections.json", "GET"),
        ("/collections/{dag_id}", "GET"),
        ("/gates/{dag_id}/{gate}", "GET"),
        ("/docs/{dag_id}/{gate}/{path:path}", "GET"),
    }


def test_with_a_login_every_route_answers(client: Any, root: Path, failure: Path) -> None:
    assert {path: client.get(path).status_code for path in PATHS} == dict.fromkeys(PATHS, 200)


def test_the_page_shows_where_a_collection_stands(client: Any, root: Path) -> None:
    page = client.get("/").text
    for text in (
        "orders",
        "seal",
        "trace_upper",
        "since",
        "1970-01-01T00:00:00Z",
        "unsealed",
        "7 rows",
        "late, applied",
    ):
        assert text in page
    assert "ingested [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z): 7 rows" in page
    assert 'class="bar unsealed unvouched"' in page


def test_the_same_as_json(client: Any, root: Path) -> None:
    (entry,) = client.get("/collections.json").json()
    assert (entry["collection"], entry["unsealed"]["rows"], entry["late_applied"]) == ("orders", 7, 2)
    assert [batch["level"] for batch in entry["batches"]] == [None]


def test_a_broken_collection_hides_no_other(client: Any, root: Path) -> None:
    broken = root / "broken" / "versions" / "00000000"
    broken.mkdir(parents=True)
    (broken / "000000000001.json").write_text("{}")
    entries = {entry["collection"]: entry for entry in client.get("/collections.json").json()}
    assert "Corruption" in entries["broken"]["error"]
    assert "error" not in entries["orders"]
    assert "Corruption" in client.get("/").text


def test_nothing_is_there_yet(client: Any, places: Path) -> None:
    assert client.get("/collections.json").json() == []
    assert "No collection here yet" in client.get("/").text
    assert "There is no collection orders" in client.get("/collections/orders").text
    assert "No run of this gate has failed" in client.get("/gates/orders/unsealed").text


def test_a_gates_page_shows_the_failing_rows_and_the_way_out_and_runs_nothing(client: Any, failure: Path) -> None:
    answer = client.get("/gates/orders/unsealed")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text
    assert "<script" not in answer.text
    assert "12,345" not in answer.text  # a key is no count
    assert "tidemark quarantine orders bbbbbbbbbbbb" in answer.text
    assert "../../docs/orders/unsealed/validations/run.html" in answer.text
    assert "script-src" not in answer.headers["Content-Security-Policy"].replace("default-src 'none'", "")


def test_data_docs_are_served_and_run_no_script(client: Any, failure: Path) -> None:
    answer = client.get("/docs/orders/unsealed/validations/run.html")
    assert answer.text == "<h1>validation</h1>"
    assert "script-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "validations/../../secret",
        "/etc/passwd",
        "validations",
        "a%00b",
        "x",
    ],
)
def test_no_file_outside_the_docs_is_served(client: Any, failure: Path, path: str) -> None:
    answer = client.get(f"/docs/orders/unsealed/{path}")
    assert answer.status_code == 404
    assert "no part of" not in answer.text


def test_a_link_out_of_the_docs_is_not_followed(client: Any, failure: Path) -> None:
    (failure / "way.html").symlink_to(failure.parent / "secret")
    assert client.get("/docs/orders/unsealed/way.html").status_code == 404


@pytest.mark.parametrize("path", ["/gates/orders/nothing", "/gates/..%2f/unsealed", "/docs/orders/nothing/index.html"])
def test_what_is_no_gate_is_not_found(client: Any, failure: Path, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_plugin_loads_without_the_pages_code() -> None:
    paths = [str(PROJECT / "plugins"), str(PROJECT / "include")]
    code = (
        f"import sys; sys.path[:0] = {paths}; import tidemark_plugin;"
        "print(sorted({'fastapi', 'pyspark', 'great_expectations', 'tidemark.airflow.web.app'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_airflow_takes_the_plugin(project_dags: Any) -> None:
    from airflow import plugins_manager

    names = [view["destination"] for view in plugins_manager._get_ui_plugins()[0] if view["name"] == "Tidemark"]
    assert sorted(names) == ["dag", "nav"]
    links = project_dags.dags["flights"].get_task("gate_unsealed").operator_extra_links
    link = links[0].get_link(project_dags.dags["flights"].get_task("gate_unsealed"), ti_key=None)
    assert [item.name for item in links] == ["Data docs"]
    assert link == "/tidemark/gates/flights/unsealed"
