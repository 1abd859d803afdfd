"""The benchmark of publishing measures every way, holds the table against the collection, and judges by its targets."""

from __future__ import annotations

import pytest

from benchmarks import publishing

pytestmark = pytest.mark.pure


def test_every_way_is_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "DAYS", 2)
    found = {"rows": 2_000, "days": 2, "runs": [publishing.run(way, 2_000) for way in publishing.WAYS]}
    said = {run["way"]: run["seals"][-1]["said"] for run in found["runs"]}
    assert said == {
        "Iceberg, by reference": "1 part named",
        "Iceberg, by copy": "new rows appended",
        "Delta": "new rows appended",
        "Delta, keys merged": "changed keys merged",
    }
    shown = publishing.figures(found)
    assert [row[0] for row in shown.rows] == list(publishing.WAYS)
    assert {len(row) for row in shown.rows} == {len(shown.headings)}
    named, *copied = publishing.targets(found)
    assert named[2].startswith("5, ")
    assert named[2].endswith(", 0 bytes"), "no row is written"
    assert len(copied) == 2
    assert publishing.targets(None) == []
