"""Gauges of a collection in Airflow's metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS
from tidemark.airflow import MaintenanceOperator
from tidemark.airflow.gauges import gauges_of, send_gauges
from tidemark.airflow.location import location_of
from tidemark.model.instant import parse_instant

NOW = parse_instant("2024-01-05T00:00:00Z")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    from airflow.sdk.observability import stats

    found: dict[str, float] = {}
    monkeypatch.setattr(stats, "gauge", lambda name, value: found.update({name: value}))
    return found


def state_of(collections: Path) -> Any:
    return location_of(collections / "orders.yaml").job().log.load().state


def test_they_say_how_a_collection_stands(root: Path, collections: Path, sent: dict[str, float]) -> None:
    state = state_of(collections)
    assert gauges_of(state, state.complete_below + 90_000_000) == {
        **{"behind_seconds": 90, "late_rows": 2, "unsealed_rows": 7, "quarantined": 0, "merges_due": 0},
    }
    send_gauges(state, NOW)
    assert sent["tidemark.late_rows.orders"] == 2
    assert set(sent) == {f"tidemark.{name}.orders" for name in gauges_of(state, NOW)}


def test_what_has_ended_is_not_behind(root: Path, collections: Path) -> None:
    from dataclasses import replace

    state = state_of(collections)
    ended = replace(state, complete_below=parse_instant("2024-01-04"), seal=parse_instant("2024-01-04"))
    assert gauges_of(ended, NOW)["behind_seconds"] == 0
    going_on = replace(ended.collection, origin=replace(ended.collection.landed, end=None))
    assert gauges_of(replace(ended, collection=going_on), NOW)["behind_seconds"] == 86_400


def test_a_backend_that_fails_fails_no_task(
    root: Path, collections: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.observability import stats

    def failing(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(stats, "gauge", failing)
    send_gauges(state_of(collections), NOW)
    assert "no route to host" in caplog.text


def test_maintenance_sends_them_too(
    root: Path, collections: Path, sent: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "name: orders" in ORDERS
    task = MaintenanceOperator(task_id="audit", collection=collections / "orders.yaml", app="audit")
    monkeypatch.setattr("tidemark.airflow.steps.StepOperator.execute", lambda *_: {})
    task.execute({})
    assert "tidemark.behind_seconds.orders" in sent
