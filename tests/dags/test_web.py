"""The plugin's pages: nothing without a login, nothing but reading, nothing that a value could make of them."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import PROJECT, token
from tidemark.airflow.links import PREFIX, DataDocsLink
from tidemark.airflow.location import location_of
from tidemark.airflow.web import overview
from tidemark.jobs import app
from tidemark.jobs.in_process_runner import InProcess
from tidemark.jobs.steps.drop import drop
from tidemark.model.acceptance import Acceptance, AcceptedFailure
from tidemark.model.arrangement import Fence
from tidemark.model.batch import ObjectRef, UnsealedBatch
from tidemark.model.change import Attempted, Certified, HoldPlaced, Ingested, Quarantined
from tidemark.model.collection import Gate
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.model.records import Hold
from tidemark.quality.results import Results, ran
from tidemark.storage.documents.codec import with_checksum
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.private import open_private

PATHS = (
    "/",
    "/collections.json",
    "/collections/orders",
    "/collections/orders/about",
    "/collections/orders/history",
    "/collections/orders/report?from=2024-01-01&to=2024-01-02",
    "/collections/orders/report.csv?from=2024-01-01&to=2024-01-02",
    "/collections/orders/calendar",
    f"/collections/orders/intervals/{parse_instant('2024-01-01')}/rows",
    f"/collections/orders/intervals/{parse_instant('2024-01-01')}",
    "/gates/orders/unsealed",
)
BACKFILL = "/collections/orders/backfill?from=2024-01-01&to=2024-01-02"
"""The one page with a form and a script: its policy is tests/dags/test_backfill_page.py's."""
HOSTILE = '<meta http-equiv="refresh" content="0;url=https://evil.example/"><script>alert(1)</script>'
RUN = "manual__2024-01-01T00:00:00+00:00/../x y?&"
"""More than Airflow allows in a run's id by default."""


def orders_with_a_batch(file: Path) -> None:
    location = location_of(file)
    location.declare()
    log = location.job().log
    fence = Fence("ingest", Interval(parse_instant("2024-01-01"), parse_instant("2024-01-02")), "token")
    location.job().store.create("data/x", b"x")
    batch = UnsealedBatch("b" * 32, fence.interval, ObjectRef("data/x", 1, "0"), 1, 7, 700, 1, 5, 5, 5, 5)
    head = log.commit(log.load(), Attempted(fence)).head  # type: ignore[union-attr]
    log.commit(head, Ingested(fence, batch, None, rows_late_applied=2))


def kept(
    locations: Path, *, run: str = RUN, attempt: int = 1, now: int = 1, outcome: str = "failed", **more: Any
) -> None:
    """A kept result of the gate, of a batch that the collection holds: a check that passed, one that did not."""
    passed = {
        **{"rule": "sorted", "severity": "critical", "batch": "b" * 32, "passed": True, "message": "", "rows": []},
        **{"failing": None, "asked": f"asked {HOSTILE}", "observed": "rows_out_of_order 0"},
    }
    wrong = {
        **{"rule": f"in_set({HOSTILE})", "severity": "critical", "batch": "b" * 32, "passed": False, "failing": 1},
        **{"message": f"1 row holds {HOSTILE}", "rows": [{"id": 12345, HOSTILE: HOSTILE}]},
        **{"asked": f"in_set: notes {HOSTILE}", "observed": "1 of 2 unexpected"},
    }
    results = [passed] if outcome == "passed" else [wrong, passed]
    document = {"collection": "orders", "gate": "unsealed", "suite": "s", "batches": ["b" * 32], "error": None}
    who = ran(f"{run}/ingest.gate_unsealed/-1/{attempt}/ffff")
    result = {**document, "results": results, **more}
    Results(open_private(str(locations / "docs"))).keep(result, who, outcome, now * 1_000_000)


@pytest.fixture
def failure(locations: Path) -> None:
    """The result of a gate that failed on a row with markup in it."""
    kept(locations)


def test_no_route_answers_without_a_login(anonymous: Any, root: Path, failure: None) -> None:
    wrong = ("/gates/orders/unsealed?try=x", "/collections/orders/windows", "/collections/x/windows?last=y")
    for path in (*PATHS, BACKFILL, *wrong):
        answer = anonymous.get(path)
        assert answer.status_code == 401, path
        check_strict(answer)


def test_every_route_is_in_the_list_and_only_reads(anonymous: Any) -> None:
    routes = {(route.path, *route.methods) for route in anonymous.app.routes}
    assert routes == {
        ("/", "GET"),
        ("/collections.json", "GET"),
        ("/collections/{dag_id}", "GET"),
        ("/collections/{dag_id}/about", "GET"),
        ("/collections/{dag_id}/backfill", "GET"),
        ("/collections/{dag_id}/report", "GET"),
        ("/collections/{dag_id}/report.csv", "GET"),
        ("/collections/{dag_id}/history", "GET"),
        ("/collections/{dag_id}/calendar", "GET"),
        ("/collections/{dag_id}/intervals/{lower}/rows", "GET"),
        ("/collections/{dag_id}/intervals/{lower}", "GET"),
        ("/collections/{dag_id}/windows", "GET"),
        ("/gates/{dag_id}/{gate}", "GET"),
    }


def test_the_page_shows_where_a_collection_stands(client: Any, root: Path) -> None:
    page = client.get("/collections/orders").text
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
    assert 'class="bar unsealed uncertified"' in page


SETTLED = {"waiting_for": None, "quarantine": [], "uncertified": [], "trace_upper": 21, "seal": 21}
SETTLED |= {"complete_below_text": "midnight", "seal_text": "midnight", "end": None}
CERTIFIED = {"uncertified": [], "next_step": "tidemark do this"}
CORRECTABLE = {"correctable_from": 5, "correctable_from_text": "last Tuesday", "reprocess_bytes": 12345}
PASSED_BY = {"id": "c" * 32, "interval": "[1, 2)", "rows": 3, "may_be_released": False}
UNFINISHED = '<span class="quiet">Not finished: next is </span>'


@pytest.mark.parametrize(
    ("more", "shown", "hidden"),
    [
        ({}, (f"{UNFINISHED}<code>tidemark gate orders unsealed</code>",), ("Corrections", "ahead, not due yet")),
        (SETTLED, ("<b>Complete below midnight</b>.", "Nothing blocks it."), ("What to do",)),
        (SETTLED | {"end": 0}, ("<b>It has ended, and is complete below midnight</b>.",), ()),
        (
            SETTLED | {"seal_text": "an hour later"},
            ("<b>Complete below midnight, and corrections are known up to an hour later</b>.",),
            (),
        ),
        (CORRECTABLE, ("can be run again from", "last Tuesday", "kept for that alone", "12,345 bytes"), ()),
        (CERTIFIED, ("<b>Nothing of it is sealed yet</b>.",), ()),
        (
            {"waiting_for": "[1, 2)", "waiting_for_words": "[1, 2): missing", "waiting_for_lower": 1},
            ("Waits for [1, 2): missing", '<a href="orders/intervals/1" class="button">What to do</a>'),
            (),
        ),
        (
            {"ahead": {"batches": 1, "rows": 1234, "bytes": 5}},
            ('ahead, not due yet</td><td class="number">1,234</td>',),
            (),
        ),
        (
            SETTLED | {"quarantine": [PASSED_BY]},
            (
                '<span class="good">Nothing blocks it.</span>',
                "<h3>In quarantine</h3>",
                "may be ingested again: clear the run of its interval",
            ),
            ("tidemark release",),
        ),
    ],
)
def test_a_page_says_how_a_collection_stands(
    client: Any, root: Path, more: dict[str, Any], shown: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    from tidemark.airflow.web.page import collection_page

    (entry,) = client.get("/collections.json").json()
    page = collection_page("orders", entry | more).html
    assert [text for text in shown if text not in page] == []
    assert [text for text in hidden if text in page] == []


def test_the_same_as_json(client: Any, root: Path) -> None:
    (entry,) = client.get("/collections.json").json()
    assert (entry["collection"], entry["unsealed"]["rows"], entry["late_applied"]) == ("orders", 7, 2)
    assert [batch["level"] for batch in entry["batches"]] == [None]


@pytest.fixture
def five(locations: Path, collections: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Five collections where a page shows two; the names of those that are read."""
    for name in ("a", "b", "c", "d", "e"):
        file = collections / f"{name}.yaml"
        file.write_text((collections / "orders.yaml").read_text().replace("name: orders", f"name: {name}"))
        location_of(file).declare()
    monkeypatch.setattr(overview, "COLLECTIONS", 2)
    read: list[str] = []
    found = overview.find
    monkeypatch.setattr(overview, "find", lambda root, name: (read.append(name), found(root, name))[1])
    return read


def names_on(page: str) -> list[str]:
    """The collections of a page, in their order."""
    return re.findall(r'<td><a href="collections/(\w+)">', page)


def test_a_page_shows_some_collections_and_reads_one_more(client: Any, five: list[str]) -> None:
    """However many there are: it loads itself again every few seconds."""
    assert names_on(client.get("/").text) == ["a", "b"]
    assert five == ["a", "b", "c"]


def test_every_collection_is_on_one_page_and_each_page_leads_to_the_next_and_the_first(
    client: Any, five: list[str]
) -> None:
    pages, address = [], "/"
    while address:
        page = client.get(address).text
        pages.append(names_on(page))
        assert (' href="./">first collections' in page) == (address != "/")
        onward = re.search(r' href="(\?after=[^"]+)">collections after (\w+)', page)
        assert onward is None or onward[2] == pages[-1][-1]
        address = f"/{onward[1]}" if onward else ""
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert "No collection comes after z&lt;b&gt;." in client.get("/", params={"after": "z<b>"}).text


def test_the_json_names_what_comes_next_in_a_header(client: Any, five: list[str]) -> None:
    named, address = [], "/collections.json"
    while address:
        answer = client.get(address)
        named += [entry["collection"] for entry in answer.json()]
        address = f"/{answer.links['next']['url']}" if "next" in answer.links else ""
    assert named == ["a", "b", "c", "d", "e"]
    assert five == ["a", "b", "c", "c", "d", "e", "e"]


def bars(page: str) -> dict[str, list[tuple[str, float, float]]]:
    """Of each lane what its bars say, and where they begin and end in percent."""
    lanes = re.findall(r'<div class="lane"><span class="quiet">([^<]*)</span>(.*?)</div>', page)
    bar = r'<svg x="([\d.]+)%" width="([\d.]+)%" height="22"><title>[^<]*</title><rect[^>]*></rect><text[^>]*>([^<]*)<'
    by_lane = {lane: re.findall(bar, drawn) for lane, drawn in lanes}
    return {lane: [(says, float(x), float(x) + float(w)) for x, w, says in found] for lane, found in by_lane.items()}


def test_every_batch_is_a_bar_that_can_be_seen(client: Any, root: Path) -> None:
    """A correction has an interval of a microsecond at the right end of all."""
    from tidemark.airflow.web.page import collection_page

    (entry,) = client.get("/collections.json").json()
    (batch,) = entry["batches"]
    day, whole = 86_400_000_000, {**batch, "level": 0, "lower": 0, "upper": 8 * 86_400_000_000, "rows": 30}
    tick = {**whole, "lower": 8 * day, "upper": 8 * day + 1, "rows": 4}
    ahead = {**whole, "level": None, "ahead": True, "lower": 7 * day, "upper": 8 * day, "rows": 12}
    unsealed = {**ahead, "ahead": False, "rows": 20}
    page = collection_page("orders", entry | {"start": 0, "batches": [whole, tick, unsealed, ahead]}).html
    shown = bars(page)
    assert [says for says, _, _ in shown["level 0"]] == ["30 rows", "4 rows"]
    assert all(0 <= begins < ends <= 100.001 for lane in shown.values() for _, begins, ends in lane)
    assert shown["unsealed"] == [("20 rows", 87.5, 100.0)], "no other batch stands before it"
    assert shown["ahead"] == [("12 rows", 87.5, 100.0)]


def test_batches_of_one_interval_are_one_bar(client: Any, root: Path) -> None:
    """As of a day that is ingested by load: drawn one by one the last would hide the others."""
    from tidemark.airflow.web.page import collection_page

    (entry,) = client.get("/collections.json").json()
    (batch,) = entry["batches"]
    day = 86_400_000_000
    first = {**batch, "lower": 0, "upper": day, "rows": 1200, "bytes": 10, "certified": True}
    second = {**first, "rows": 30, "bytes": 5, "certified": False}
    other = {**first, "lower": day, "upper": 2 * day, "rows": 4}
    page = collection_page("orders", entry | {"start": 0, "batches": [second, other, first]}).html
    assert bars(page)["unsealed"] == [("1,230 rows in 2 batches", 0.0, 50.0), ("4 rows", 50.0, 100.0)]
    assert "1,230 rows, 15 bytes, 2 batches, 1 of them not certified yet" in page


def test_holds_of_what_is_computed_from_it_hide_no_change(client: Any, root: Path, collections: Path) -> None:
    """Each of their runs moves one; those of people are shown."""
    log = location_of(collections / "orders.yaml").job().log
    for at in range(30):
        log.commit(log.load(), HoldPlaced(Hold(f"derived.sums{at % 7}", at)))
    log.commit(log.load(), HoldPlaced(Hold("month-end", 5)))
    (entry,) = client.get("/collections.json").json()
    said = [change["change"].partition(" [")[0] for change in entry["changes"]]
    assert said == ["placed hold month-end at 1970-01-01T00:00:00.000005Z", "ingested", "created collection orders"]


def test_what_is_in_quarantine_is_named_with_the_way_out_and_hides_nothing(
    client: Any, root: Path, collections: Path
) -> None:
    job = location_of(collections / "orders.yaml").job()
    file = LedgerEntry("orders/a.csv", 1, "0", "0", Interval(0, 1), Status.FREED, "b" * 32)
    job.log.commit(job.log.load(), Quarantined("b" * 32, ledger.save_run(job.store, "ledger/x", [file])))
    page = client.get("/collections/orders").text
    assert "<h3>In quarantine</h3>" in page
    for text in ("bbbbbbbbbbbb", "[2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)", "clear the run of its interval"):
        assert text in page
    assert "<code>tidemark release orders bbbbbbbbbbbb</code>" in page
    assert re.search(r"next is </span><code>tidemark (ingest|seal) ", page)


def test_a_broken_collection_hides_no_other(client: Any, root: Path) -> None:
    broken = root / "broken" / "versions" / "00000000"
    broken.mkdir(parents=True)
    (broken / "000000000001.json").write_text("{}")
    entries = {entry["collection"]: entry for entry in client.get("/collections.json").json()}
    assert "Corruption" in entries["broken"]["error"]
    assert "error" not in entries["orders"]
    assert "Corruption" in client.get("/").text


def test_a_collection_of_a_newer_tidemark_says_upgrade(client: Any, root: Path) -> None:
    newer = root / "newer" / "versions" / "00000000"
    newer.mkdir(parents=True)
    (newer / "000000000001.json").write_bytes(with_checksum(b'{"format":1000,"entirely":"different"}'))
    entries = {entry["collection"]: entry for entry in client.get("/collections.json").json()}
    assert entries["newer"]["error"].startswith("UpgradeRequired: versions/")
    assert "upgrade Tidemark" in client.get("/").text
    assert "error" not in entries["orders"]


def test_the_dag_of_its_batches_shows_the_collection(client: Any, root: Path) -> None:
    assert client.get("/collections/orders.batches").text == client.get("/collections/orders").text
    assert "There is no collection :" in client.get("/collections/.batches").text


def test_no_link_in_airflows_frame_leads_out_of_it(client: Any, root: Path) -> None:
    """The frame allows no navigation of what is around it: such a link does nothing when it is clicked."""
    framed = {"Sec-Fetch-Dest": "iframe"}
    links = re.findall(r'href="([^"]*)"', client.get("/", headers=framed).text)
    assert [link for link in links if not link.startswith("?sort=")] == ["collections/orders"]
    assert re.findall(r'href="([^"]*)"', client.get("/collections/orders", headers=framed).text) == [
        "orders/calendar",
        "orders/about",
        "orders/backfill",
        "orders/history",
        "../",
    ]
    assert 'href="../../dags/orders"' in client.get("/collections/orders").text
    assert 'target="_top"' not in client.get("/").text + client.get("/collections/orders").text


def test_the_page_of_a_dropped_collection_says_so(client: Any, root: Path, collections: Path) -> None:
    (collections / "orders.yaml").unlink()
    job = app.open_job(str(root), "orders", lambda: InProcess(job.store))
    drop(job, "orders", others=(), folder=collections)
    assert "Collection orders was dropped; `tidemark drop orders --undo`" in client.get("/collections/orders").text


def test_nothing_is_there_yet(client: Any, locations: Path) -> None:
    assert client.get("/collections.json").json() == []
    assert "No collection here yet" in client.get("/").text
    assert "There is no collection orders" in client.get("/collections/orders").text
    assert "No result of this gate is kept" in client.get("/gates/orders/unsealed").text


def of_run(client: Any, attempt: int = 1, run: str = RUN) -> Any:
    """The page behind the button of a task instance."""

    class Key:
        run_id, task_id, map_index, try_number = run, "ingest.gate_unsealed", -1, attempt

    class Task:
        gate, location = "unsealed", type("Location", (), {"name": "orders"})

    link = DataDocsLink().get_link(Task(), ti_key=Key())
    return client.get(link.removeprefix(PREFIX))


def test_a_gates_page_shows_rows_checks_and_the_way_out_and_no_markup_of_theirs(client: Any, failure: None) -> None:
    page = of_run(client).text
    assert page.count(html.escape(HOSTILE)) == 8
    assert HOSTILE not in page
    assert "<script" not in page
    assert "<meta http-equiv" not in page
    assert "12,345" not in page  # a key is no count
    for text in ("tidemark quarantine orders bbbbbbbbbbbb", "1 of 1 rows", "rows_out_of_order 0", "try 1"):
        assert text in page
    assert html.escape(RUN) in page


def test_what_was_not_asked_is_no_check_that_passed(client: Any, locations: Path) -> None:
    asked = {"rule": "rows", "batch": "b1", "severity": "critical", "passed": True, "observed": "0"}
    unasked = asked | {"rule": "mean", "not_asked": True, "observed": "not asked: there are no rows"}
    kept(locations, outcome="passed", results=[asked, unasked])
    page = of_run(client).text
    assert "1 check of s on 1 batch" in page
    assert '<span class="quiet">not asked</span>' in page
    assert (page.count('<span class="good">passed</span>'), "there are no rows" in page) == (1, True)


def test_the_button_leads_to_the_very_run_and_try(client: Any, locations: Path, root: Path) -> None:
    kept(locations, attempt=1, now=1)
    kept(locations, attempt=2, now=2, outcome="passed")
    kept(locations, run="another", now=3, outcome="nothing", results=[], batches=[])
    first, second, third = of_run(client, 1).text, of_run(client, 2).text, of_run(client, 1, "another").text
    assert '<p class="bad">failed</p>' in first
    assert 'a later run of this gate <a href="?result=' in first
    assert '<p class="good">passed</p>' in second
    assert "1 check of s on 1 batch" in second
    assert "rows_out_of_order 0" in second
    assert "had been certified before" in third
    assert "No result of try 3 of task ingest.gate_unsealed" in of_run(client, 3).text
    (other,) = set(re.findall(r'href="(\?result=0+1000000-[^"]*)"', second))
    assert '<p class="bad">failed</p>' in client.get(f"/gates/orders/unsealed{other}").text


def test_the_page_says_what_became_of_the_batch_since(
    client: Any, locations: Path, collections: Path, root: Path
) -> None:
    kept(locations)
    job = location_of(collections / "orders.yaml").job()
    log = job.log
    assert "not certified, and nothing behind it runs" in of_run(client).text
    head = log.load()
    log.commit(head, Certified(Gate.UNSEALED, head.state.collection.suite(Gate.UNSEALED), ("b" * 32,), None))
    assert "passes now under the suite of today" in of_run(client).text
    file = LedgerEntry("orders/a.csv", 1, "0", "0", Interval(0, 1), Status.FREED, "b" * 32)
    log.commit(log.load(), Quarantined("b" * 32, ledger.save_run(job.store, "ledger/x", [file])))
    assert "mended since: it was quarantined" in of_run(client).text


def test_the_page_says_who_accepted_a_batch_and_why_also_when_it_is_gone(
    client: Any, locations: Path, collections: Path, root: Path
) -> None:
    why = f"a strike on that day {HOSTILE}"
    one = Acceptance("b" * 32, Interval(0, 1), "s", "ada", 7, why, 1, (AcceptedFailure("rows", 2),))
    kept(locations, outcome="passed", accepted=[one.words])
    job = location_of(collections / "orders.yaml").job()
    head = job.log.load()
    certified = Certified(Gate.UNSEALED, head.state.collection.suite(Gate.UNSEALED), ("b" * 32,), None, (one,))
    job.log.commit(head, certified)
    said = html.escape(f"accepted by ada at 1970-01-01T00:00:00.000007Z: {why} (failed: rows, 2 rows)")
    assert of_run(client).text.count(said) == 2, "what this run did, and what is so now"
    assert "a strike on that day" in client.get("/collections/orders").text, "the newest versions are on the page"


def test_a_gate_that_could_not_run_says_why(client: Any, locations: Path) -> None:
    kept(locations, outcome="refused", results=[], batches=[], error=f"quality[0]: {HOSTILE}")
    page = of_run(client).text
    assert "could not run" in page
    assert f"quality[0]: {html.escape(HOSTILE)}" in page


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"results": [5], "batches": null, "kept_at": 0}'])
def test_what_is_left_of_a_torn_result_is_no_error(client: Any, locations: Path, torn: str) -> None:
    kept(locations)
    (file,) = (locations / "docs" / "orders" / "unsealed").iterdir()
    file.write_text(torn)
    assert of_run(client).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        *("result=../secret", "result=..%2fsecret", "result=/etc/passwd", "result=a%00b", "result=x"),
        "result=0000000001000000-" + "0" * 32 + "-passed/../../secret",
    ],
)
def test_a_result_is_asked_for_by_its_name_alone(client: Any, failure: None, locations: Path, query: str) -> None:
    (locations / "docs" / "orders" / "secret").write_text("no result of any gate")
    answer = client.get(f"/gates/orders/unsealed?{query}")
    assert answer.status_code == 404
    assert "no result of any" not in answer.text


STRICT = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}


def policy(answer: Any) -> dict[str, str]:
    directives = (
        directive.strip().partition(" ") for directive in answer.headers["content-security-policy"].split(";")
    )
    return {name: value for name, _, value in directives}


def check_strict(answer: Any) -> None:
    assert {name: answer.headers[name] for name in STRICT} == STRICT
    directives = policy(answer)
    assert (directives["default-src"], directives["base-uri"], directives["form-action"]) == (
        "'none'",
        "'none'",
        "'none'",
    )
    assert directives["frame-ancestors"] == "'self'"  # Airflow shows the pages in a frame
    assert not {"script-src", "img-src", "connect-src", "font-src"} & set(directives)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "allow-forms" not in directives["sandbox"]
    assert "allow-popups" not in directives["sandbox"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_the_strict_policy(client: Any, root: Path, failure: None, path: str) -> None:
    assert client.get(path).status_code == 200
    check_strict(client.get(path))


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nowhere", 404), ("/gates/orders/nothing", 404), ("/gates/orders/unsealed?try=x", 422), ("/docs/orders", 404)],
)
def test_errors_carry_it_too(client: Any, root: Path, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    check_strict(answer)
    check_strict(client.post("/"))


def test_what_nothing_foresaw_carries_it_too_and_shows_nothing_of_it(
    manager: Any, locations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient

    from tidemark.airflow.web import app, by_collection

    def fails(*_: Any) -> Any:
        raise RuntimeError("<script>of a stack trace</script>")

    monkeypatch.setattr(by_collection, "describe", fails)
    client = TestClient(app.create_app(), raise_server_exceptions=False)
    client.headers["Authorization"] = f"Bearer {token(manager)}"
    answer = client.get("/collections/orders")
    assert answer.status_code == 500
    assert "<script" not in answer.text
    check_strict(answer)


def test_results_that_cannot_be_read_are_an_answer(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", "gopher://nowhere")
    answer = client.get("/gates/orders/unsealed")
    assert answer.status_code == 503
    assert "write a local path or s3://" in answer.json()["detail"]


def test_a_page_needs_nothing_from_elsewhere(client: Any, root: Path, failure: None) -> None:
    """One style sheet within it, which its policy names by its digest; no address but links to be clicked."""
    day = f"/collections/orders/intervals/{parse_instant('2024-01-01')}"
    for path in ("/", "/collections/orders", "/collections/orders/calendar", day, "/gates/orders/unsealed"):
        answer = client.get(path)
        (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.S)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert policy(answer)["style-src"] == f"'sha256-{digest}'"
        assert not re.search(r"<[^>]* (src|style|on[a-z]+|action|srcset|background)=", answer.text)
        assert not re.search(r"url\(|@import", style)
        links = re.findall(r'href="([^"]*)"', answer.text)
        assert links
        assert all(
            re.fullmatch(r"(\.\./|collections/|orders/|intervals/|backfill|\?result=|\?sort=|\d+/rows).*", link)
            for link in links
        )


def test_only_pages_that_load_themselves_again_keep_their_origin(client: Any, root: Path, failure: None) -> None:
    assert "allow-same-origin" in policy(client.get("/"))["sandbox"]
    assert policy(client.get("/gates/orders/unsealed"))["sandbox"] == "allow-top-navigation-by-user-activation"
    assert policy(client.get("/collections.json"))["sandbox"] == ""


@pytest.mark.parametrize(
    "name", ["orders%00", "a b", "%3Cb%3E", "a" * 251, "%22orders%22", "orders%27", "%F0%9F%98%80"]
)
@pytest.mark.parametrize("path", ["/collections/{}", "/collections/{}/windows", "/gates/{}/unsealed"])
def test_what_no_dag_can_be_called_is_not_found_and_asked_of_nobody(
    client: Any, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    """Airflow's database refuses a zero byte with an error that would be ours."""
    from airflow.models.dag import DagModel

    monkeypatch.setattr(DagModel, "get_team_name", lambda *_, **__: pytest.fail("the database was asked"))
    answer = client.get(path.format(name))
    assert answer.status_code == 404
    check_strict(answer)


@pytest.mark.parametrize("path", ["/gates/orders/nothing", "/gates/..%2f/unsealed", "/gates/Orders/unsealed"])
def test_what_is_no_gate_is_not_found(client: Any, failure: None, path: str) -> None:
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
