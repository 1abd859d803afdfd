"""The benchmark of layouts asks each of them the same, and tells what was read."""

from __future__ import annotations

import pytest

from benchmarks import layouts
from benchmarks.peers import timelines as timeline_peers

pytestmark = pytest.mark.pure


def test_each_layout_is_asked_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_peers, "without_peers", lambda: True)
    runs = [layouts.run(every, 100_000) for every in ("none", "1d")]
    plain, placed = ({one["question"]: one for one in run["questions"]} for run in runs)
    assert [one["rows"] for one in plain.values()] == [one["rows"] for one in placed.values()]
    assert placed["one hour"]["bytes_read"] < plain["one hour"]["bytes_read"] / 3
    assert placed["one sensor"]["chunks_read"] > plain["one sensor"]["chunks_read"]
    shown = layouts.figures({"rows": 100_000, "runs": runs})
    assert [row[:2] for row in shown.rows] == [(run["every"], name) for run in runs for name in plain]
    assert {len(row) for row in shown.rows} == {len(shown.headings)}
