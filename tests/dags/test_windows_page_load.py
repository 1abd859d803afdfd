"""The page of windows when many ask for it: what is drawn once, who waits, who is refused, and who must not notice."""

from __future__ import annotations

from asyncio import FIRST_COMPLETED, create_task, gather, run, wait
from threading import Event
from typing import Any

import pytest
from anyio import to_thread
from httpx import ASGITransport, AsyncClient

from tests.dags.test_web import check_strict
from tests.dags.test_windows_page import PATH, rows
from tests.support.windowed import Windowed
from tidemark.airflow.web import by_collection, windows
from tidemark.airflow.web.choice import Choice
from tidemark.airflow.web.one_at_a_time import OneAtATime
from tidemark.airflow.web.page import Page, document
from tidemark.airflow.web.recent import RecentPages
from tidemark.api.opened import OpenCollection


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
