"""The page of a collection's windows: the picture of some, the same as a table, and links to the others."""

from __future__ import annotations

import html
import re
from asyncio import FIRST_COMPLETED, create_task, gather, run, wait
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlencode
from xml.etree import ElementTree

import pytest
from anyio import to_thread
from httpx import ASGITransport, AsyncClient

import tidemark
from tests.dags.test_web import HOSTILE, check_strict, policy
from tests.support.windowed import HOUR, Windowed
from tidemark.airflow.web import by_collection, windows
from tidemark.airflow.web.choice import Choice
from tidemark.airflow.web.inline import STYLE, inline
from tidemark.airflow.web.one_at_a_time import OneAtATime
from tidemark.airflow.web.page import Page, document
from tidemark.airflow.web.recent import RecentPages
from tidemark.api import excerpt, picture
from tidemark.api.opened import OpenCollection
from tidemark.model.change import Redefined
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.key import key_scalar
from tidemark.plan.excerpt import Weight

PATH = "/collections/hours/windows"


def asking(**choice: str) -> str:
    return f"?{urlencode(choice)}"


def links(page: str) -> dict[str, str]:
    """What links say, and where they lead."""
    found = re.findall(r'<a href="([^"]*)">(.*?)</a>', page)
    return {html.unescape(text): html.unescape(to) for to, text in found}


def rows(page: str) -> list[list[str]]:
    """The cells of the table, without markup."""
    lines = re.findall(r"<tr>(<td.*?)</tr>", page)
    return [[html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td.*?</td>", line)] for line in lines]


def svg_of(page: str) -> ElementTree.Element:
    """The picture; that it is well-formed by itself is the test."""
    (svg,) = re.findall(r"<svg.*?</svg>", page, re.S)
    return ElementTree.fromstring(svg)


def texts(page: str) -> list[str]:
    return [one.text or "" for one in svg_of(page).iter("text")]


def test_the_page_of_a_collection_leads_to_its_windows_and_reads_none(
    client: Any, hours: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpt, "known_windows", lambda *_: pytest.fail("windows were read"))
    page = client.get("/collections/hours").text
    assert links(page)["a picture and a table"] == "hours/windows"
    assert "tumbling windows of 1h on at, for each origin" in page
    assert "a picture and a table" not in client.get("/collections/rows").text + client.get("/").text


def test_the_picture_is_what_a_shell_draws_of_them(client: Any, hours: Windowed, tmp_path: Path) -> None:
    drawn = tmp_path / "a.svg"
    tidemark.open(hours.root, "hours").windows().draw(str(drawn))
    page = client.get(PATH).text
    shown = [one.text for one in ElementTree.parse(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert texts(page) == shown
    assert "EWR" in shown
    assert "corrected after it was there" in shown
    bars = [one.get("d", "").split() for one in svg_of(page).iter("path") if one.get("fill") == "#3b6ea5"]
    plain = [one.get("d", "").split() for one in ElementTree.parse(drawn).iter("{http://www.w3.org/2000/svg}path")]
    assert len(bars) > 96
    assert all(bar in plain for bar in bars)


def test_the_table_tells_what_is_drawn_the_newest_first(client: Any, hours: Windowed) -> None:
    shown = rows(client.get(PATH).text)
    assert len(shown) == 96
    end = "2024-01-02T23:59:59.999999Z"
    assert shown[0] == ["JFK", "2024-01-02T23:00:00Z", "2024-01-03T00:00:00Z", "5", "closed", "", end]
    assert shown[-1] == [
        *("EWR", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z", "40", "closed", f"1 time, last {end}"),
        "2024-01-01T23:59:59.999999Z",
    ]
    assert sum("1 time" in row[5] for row in shown) == 10
    # An aggregate that is null has no height, and is shown as that.
    assert [row[3] for row in rows(client.get(f"{PATH}?value=delay").text)[:2]] == ["null", "null"]


def test_what_is_shown_is_chosen_by_links(client: Any, hours: Windowed) -> None:
    page = client.get(PATH).text
    for chosen, at in (("EWR", 0), ("JFK", 0)):
        of_key = client.get(PATH + links(page)[chosen]).text
        assert {row[at] for row in rows(of_key)} == {chosen}
        assert len(rows(of_key)) == 48
        assert f"<b>{chosen}</b>" in of_key
        assert rows(client.get(PATH + links(of_key)["all"]).text) == rows(page)
    assert "<b>delay</b>" in client.get(PATH + links(page)["delay"]).text
    few = client.get(PATH + links(page)["the last 50"]).text
    assert rows(few) == rows(page)[:50]
    before = client.get(PATH + links(few)["‹ earlier"]).text
    assert rows(few) + rows(before) == rows(page)
    assert links(before)["the newest"] == "?last=50"
    day = client.get(PATH + links(page)["a day"]).text
    assert rows(day) == rows(page)[:48]
    earlier = client.get(PATH + links(day)["‹ earlier"]).text
    assert rows(earlier) == rows(page)[48:]
    assert rows(client.get(PATH + links(earlier)["later ›"]).text) == rows(day)
    nothing = client.get(PATH + links(client.get(PATH + links(earlier)["‹ earlier"]).text)["‹ earlier"]).text
    assert "There is no window of that key and time." in nothing
    assert "the newest" in links(nothing)


KEYS: Sequence[tuple[ValueType, Sequence[Any], Sequence[str]]] = (
    (ColumnType.STRING, [HOSTILE, "", "null", "a\0\n\u202e", "$x^$"], [HOSTILE, "(empty)", "null", "a\\x00\\n\\u202e"]),
    (ColumnType.BYTES, ["", "00ff", HOSTILE.encode().hex()], ["(empty)", "AP8="]),
    (DecimalType(38, 4), [-(10**37), 0, 10**38 - 1], ["0.0000", "9" * 34 + ".9999"]),
    (ColumnType.BOOL, [False, True], ["True", "False"]),
    (ColumnType.DATE, [None, -800_000, 0, 19_000], ["null", "1970-01-01", "-800000"]),
    (ColumnType.JSON, ["null", '{"<b>":1}'], ["null", '{"<b>":1}']),
)


@pytest.mark.parametrize(("of", "keys", "called"), KEYS, ids=[str(of) for of, *_ in KEYS])
def test_keys_of_any_type_are_shown_and_chosen_and_none_is_markup(
    client: Any, locations: Path, of: ValueType, keys: Sequence[Any], called: Sequence[str]
) -> None:
    hours = Windowed(locations / "root", by=[("k", of)])
    hours.tell(*hours.windows([(key,) for key in sorted(keys, key=key_scalar)], range(3)))
    page = client.get(PATH)
    assert len(rows(page.text)) == 3 * len(keys)
    assert len(texts(page.text)) >= len(keys)
    for text in called:
        (name,) = [name for name in links(page.text) if name == text or name[:-1] == text[:39]]
        of_key = client.get(PATH + links(page.text)[name]).text
        assert len(rows(of_key)) == 3
        assert len({row[0] for row in rows(of_key)}) == 1
    check_strict(page)
    for markup in ("<script", "<meta http-equiv", "<b>\\"):
        assert markup not in page.text
    assert not re.search(r"<[^>]* (style|src|on[a-z]+)=", page.text)


def test_a_text_of_any_length_is_cut_and_too_long_a_key_is_no_link(client: Any, locations: Path) -> None:
    hours = Windowed(locations / "root", value=[("words", ColumnType.JSON)])
    long = "k" * 2_000
    hours.tell(*hours.windows([(long,), ("short",)], range(2), (f'"{HOSTILE * 1_000}"',)))
    page = client.get(PATH).text
    assert len(page) < 40_000
    assert "No picture: words is no number of hours" in page
    assert len(rows(page)) == 4
    assert HOSTILE not in page
    assert [name for name in links(page) if name.startswith("k")] == []
    assert "k" * 39 + "…" in page


def test_windows_on_numbers_have_no_days(client: Any, locations: Path) -> None:
    hours = Windowed(locations / "root", by=[], on=ColumnType.INT)
    hours.tell(*hours.windows([()], range(200)[:20]))
    page = client.get(PATH).text
    assert len(rows(page)) == 20
    assert "a day" not in links(page)
    assert '<span class="quiet">what</span>' in page
    assert "all" not in links(page)


def test_a_window_that_no_calendar_reaches_is_in_the_table_alone(client: Any, locations: Path) -> None:
    hours = Windowed(locations / "root")
    far = -80_000_000_000_000_000 // HOUR
    hours.tell(hours.window(("EWR",), far, (1, 1.0)))
    page = client.get(PATH).text
    assert "No picture: a window is outside the years 1000 to 9000" in page
    assert len(rows(page)) == 1


def test_where_there_is_nothing_the_page_says_so(client: Any, locations: Path) -> None:
    hours = Windowed(locations / "root")
    assert "No window has closed yet: nothing is sealed." in client.get(PATH).text
    hours.tell()
    assert "The collection is empty: it has no window." in client.get(PATH).text
    hours.tell(*hours.windows([("EWR",)], range(60, 63)))
    page = client.get(PATH).text
    assert "No window has closed yet; 3 rows of windows that are open wait for it." in page
    assert "<svg" not in page
    check_strict(client.get(PATH))


def test_of_many_windows_those_of_one_key_are_shown_and_the_others_are_found(
    client: Any, locations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Windowed(locations / "root", by=[("tail", ColumnType.INT)])
    hours.tell(*hours.windows([(at,) for at in range(2_000)], range(24)))
    # The sparse index has a key for each 16,384 rows.
    monkeypatch.setattr(windows, "A_LOOK", Weight(20_000, 10**9))
    page = client.get(PATH).text
    assert {row[0] for row in rows(page)} == {"0"}
    assert "more keys than one page shows, so these belong to the first key" in page
    assert [name for name in links(page) if name.isdigit()] == ["682", "1365"]
    gaps = [html.unescape(to) for to in re.findall(r'<a href="([^"]*)">…</a>', page)]
    between = client.get(PATH + gaps[1]).text
    listed = [name for name in links(between) if name.isdigit()]
    assert (len(listed), listed[:3]) == (30, ["1", "23", "46"])
    assert {row[0] for row in rows(client.get(PATH + links(between)["46"]).text)} == {"46"}


def test_a_choice_that_there_is_not_is_refused(client: Any, hours: Windowed) -> None:
    for asked in (
        *({"key": key} for key in ("EWR", "{}", "[", "[1]", "[null,1]", '["a","b"]', "[" * 400, "[1.5]", '[["EWR"]]')),
        *({"above": "[7]"}, {"value": "origin"}, {"value": HOSTILE}, {"last": "7"}, {"last": "x"}),
        *({"from": str(2**63)}, {"to": "now"}, {"key": '["' + "k" * 600 + '"]'}),
    ):
        answer = client.get(PATH + asking(**asked))
        assert answer.status_code == 422, asked
        check_strict(answer)
    for key in ('["LGA"]', "[null]"):
        assert rows(client.get(PATH + asking(key=key)).text) == []


def test_what_is_not_defined_by_windows_has_no_such_page(client: Any, hours: Windowed) -> None:
    for name in ("rows", "nothing", "hours.batches", "Hours"):
        answer = client.get(f"/collections/{name}/windows")
        assert answer.status_code == 404
        check_strict(answer)


def test_who_may_not_see_rows_sees_no_windows_nor_the_way_there(
    client: Any, hours: Windowed, manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    def authorized(self: Any, *, method: str, **_: Any) -> bool:
        return method == "GET"

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", authorized)
    answer = client.get(PATH)
    assert answer.status_code == 403
    check_strict(answer)
    page = client.get("/collections/hours")
    assert page.status_code == 200
    assert "hours/windows" not in page.text


def masks(hours: Windowed, name: str) -> None:
    """Declare a column of the collection masked, and no other."""
    log = hours.job("hours").log
    head = log.load()
    log.commit(head, Redefined(replace(head.state.collection, masked=(name,))))


def test_what_is_masked_is_neither_a_key_nor_a_value_there(client: Any, hours: Windowed) -> None:
    assert "EWR" in client.get(PATH).text
    masks(hours, "delay")
    page = client.get(PATH).text
    assert "delay" not in page
    assert "flights" in page
    assert client.get(PATH + asking(value="delay")).status_code == 422
    masks(hours, "origin")
    page = client.get(PATH).text
    assert "No window is shown: origin is masked." in page
    assert "EWR" not in page


def test_a_page_needs_nothing_from_elsewhere_and_its_links_lead_on_within_the_frame(
    client: Any, hours: Windowed
) -> None:
    answer = client.get(PATH, headers={"Sec-Fetch-Dest": "iframe"})
    check_strict(answer)
    assert policy(answer)["sandbox"] == "allow-top-navigation-by-user-activation allow-same-origin"
    assert not re.search(r"<[^>]* (src|style|on[a-z]+|action|srcset|background|target)=", answer.text)
    assert all(to.startswith(("?", "../")) for to in links(answer.text).values())
    assert links(answer.text)["hours"] == "../hours"
    used = re.findall(r'<use href="([^"]*)"', answer.text)
    assert used
    assert {one.get("id") for one in svg_of(answer.text).iter()} >= {name[1:] for name in used}
    assert 'http-equiv="refresh"' not in answer.text


def test_nothing_of_a_picture_is_let_in_but_what_draws() -> None:
    xlink = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    given = f"""<svg xmlns="http://www.w3.org/2000/svg" {xlink} width="9pt" onload="x()" style="fill: url(https://x)">
      <style>* {{ color: red }}</style><script>alert(1)</script><image href="https://evil.example"/>
      <a href="https://evil.example"><text>gone</text></a><foreignObject><p>gone</p></foreignObject>
      <use xlink:href="https://evil.example#a" clip-path="url(https://evil.example)"/>
      <text style="fill: #000000; background: url(x); text-anchor: end" x="1" onclick="x()">a &lt;b&gt;</text></svg>"""
    assert inline(given.encode(), "what <it> is") == (
        '<svg role="img" width="9pt" fill="url(https://x)"><title>what &lt;it&gt; is</title><use></use>'
        '<text fill="#000000" text-anchor="end" x="1">a &lt;b&gt;</text></svg>'
    )
    assert STYLE in document("", "").html


def test_the_sheet_has_a_colour_of_the_page_for_each_that_windows_are_drawn_in() -> None:
    for colour in (picture._CLOSED, picture._OPEN, picture._CORRECTED):
        assert f'[fill="{colour}"]' in STYLE
        assert f'[stroke="{colour}"]' in STYLE


def test_aggregates_as_large_as_doubles_can_be_break_no_page(client: Any, hours: Windowed) -> None:
    hours.tell(*(hours.window(("EWR",), 48 + at, (1, value)) for at, value in enumerate((1.7e308, -1.7e308, 2.5))))
    page = client.get(PATH + asking(value="delay")).text
    assert [text for text in texts(page) if text.endswith("clipped at ±1e+300: 2 windows")]
    assert [row[3] for row in rows(page)[:3]] == ["2.5", "-1.7e+308", "1.7e+308"]


def test_what_cannot_be_read_is_an_answer(client: Any, hours: Windowed) -> None:
    for part in (hours.root / "hours").rglob("*.parquet"):
        part.write_bytes(b"PAR1")
    answer = client.get(PATH)
    assert answer.status_code == 503
    assert "the collection cannot be read" in answer.json()["detail"]


def test_without_what_draws_there_is_the_table(client: Any, hours: Windowed, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.errors import MissingExtra

    def missing(package: str, extra: str) -> None:
        raise MissingExtra(f"{package} is not installed: pip install '.[{extra}]' (in a checkout of Tidemark)")

    monkeypatch.setattr(picture, "require", missing)
    page = client.get(PATH).text
    assert "No picture: matplotlib is not installed" in page
    assert len(rows(page)) == 96


def test_addresses_hold_what_was_chosen(client: Any, hours: Windowed) -> None:
    page = client.get(PATH + asking(key='["EWR"]', last="50", value="delay")).text
    assert parse_qs(links(page)["a day"].removeprefix("?")) == {
        **{"key": ['["EWR"]'], "last": ["50"], "value": ["delay"]},
        **{"from": ["1704150000000001"], "to": ["1704236400000001"]},
    }


def test_more_requests_than_may_wait_are_refused_at_once_and_occupy_no_thread_of_other_pages(
    client: Any, hours: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of sixty requests one is drawn, three wait, and while that takes as long as it likes, 56 have their answer; other
    pages are served even if they have a single thread between them."""
    free, drawn = Event(), []

    def slow(*asked: Any) -> Page:
        drawn.append(asked)
        assert free.wait(60)
        return document("drawn", "")

    monkeypatch.setattr(windows, "windows_page", slow)
    monkeypatch.setattr(by_collection, "READING", OneAtATime(by_collection.WAITING))

    async def sixty() -> tuple[list[Any], list[Any]]:
        to_thread.current_default_thread_limiter().total_tokens = 1
        over = {"transport": ASGITransport(client.app), "base_url": "http://test", "headers": client.headers}
        async with AsyncClient(**over) as browser:
            asked = {create_task(browser.get(f"{PATH}?from={at}")) for at in range(60)}
            refused: set[Any] = set()
            while len(refused) < 60 - 1 - by_collection.WAITING:
                some, asked = await wait(asked, return_when=FIRST_COMPLETED)
                refused |= some
            assert (await browser.get("/collections/hours")).status_code == 200
            assert len(drawn) == 1
            free.set()
            return [one.result() for one in refused], list(await gather(*asked))

    refused, answered = run(sixty())
    assert [one.status_code for one in answered] == [200] * 4
    assert len(drawn) == 4
    for one in refused:
        assert (one.status_code, one.headers["Retry-After"]) == (503, "5")
        assert "rows are being read for 4 other requests; load the page again" in one.json()["detail"]
        check_strict(one)


def test_work_that_fails_gives_its_place_up(client: Any, hours: Windowed) -> None:
    for _ in range(2 * (1 + by_collection.WAITING)):
        assert client.get(f"{PATH}?last=7").status_code == 422
        assert client.get("/collections/rows/windows").status_code == 404
    assert client.get(PATH).status_code == 200


def test_a_page_is_drawn_once_for_each_version_and_choice(
    client: Any, hours: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def counting(of: OpenCollection, choice: Choice) -> Page:
        drawn.append((of.version, choice.last))
        return plain(of, choice)

    plain = windows.windows_page
    monkeypatch.setattr(windows, "windows_page", counting)
    pages = RecentPages(most=2)
    monkeypatch.setattr(by_collection, "PAGES", pages)
    first = client.get(PATH)
    assert [client.get(PATH).content for _ in range(3)] == [first.content] * 3
    assert client.get(PATH).headers == first.headers
    assert client.get(f"{PATH}?last=50").text != first.text
    before = len(drawn)
    hours.tell(hours.window(("EWR",), 48, (6, 2.5)))
    assert before == 2
    assert rows(client.get(PATH).text)[0][:2] == ["EWR", "2024-01-03T00:00:00Z"]
    assert drawn[2][0] > drawn[0][0]
    # The two that were asked for last are kept, and no more.
    client.get(f"{PATH}?last=50")
    client.get(f"{PATH}?last=200")
    client.get(f"{PATH}?last=50")
    assert [last for _, last in drawn] == [100, 50, 100, 50, 200]
    client.get(PATH)
    assert [last for _, last in drawn] == [100, 50, 100, 50, 200, 100]
    assert len(pages._pages) == 2
