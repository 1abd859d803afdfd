"""The benchmark of questions about time answers them, and tells what was read."""

from __future__ import annotations

import pytest

from benchmarks import timelines
from benchmarks.peers import timelines as timeline_peers

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("order", timelines.ORDERS)
def test_each_question_is_asked_and_shown(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_peers, "without_peers", lambda: True)
    monkeypatch.setattr(timelines, "PROBES", 100)
    found = timelines.run(order, 40_000)
    asked = {one["question"]: one for one in found["questions"]}
    assert len(asked) == (2 if order == "time" else 4)
    assert all({"tidemark", "without"} <= one["cpu"].keys() for one in asked.values())
    assert 0 < asked["one hour"]["chunks_read"] <= asked["one hour"]["chunks"]
    if order == "sensor":
        assert asked["latest of each sensor"]["rows"] == timelines.SENSORS
        assert asked["latest of one sensor"]["chunks_read"] < asked["latest of one sensor"]["chunks"]
    else:
        assert (asked["one key"]["rows"], asked["one key"]["chunks_read"]) == (1, 1)
        assert 0 < found["cold"] < 60
    shown = timelines.figures({"rows": 40_000, "runs": [found]})
    assert [row[1] for row in shown.rows] == list(asked)
