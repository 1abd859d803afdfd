"""The benchmark of SQL asks every statement in every way, and holds the answers against each other."""

from __future__ import annotations

import pytest

from benchmarks import sql

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("batches", sql.BATCHES)
def test_each_statement_is_asked_and_shown(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "TRIES", 1)
    found = {"rows": 20_000, "runs": [sql.run(batches, 20_000)]}
    (run,) = found["runs"]
    assert list(run["questions"]) == list(sql.STATEMENTS)
    assert run["files"] >= batches
    assert 0 < run["cold"] < 60
    shown = sql.figures(found)
    assert {len(row) for row in shown.rows} == {len(shown.headings)}
    assert len(sql.targets(found)) == len(sql.STATEMENTS) + 1
    assert sql.targets(None) == []
