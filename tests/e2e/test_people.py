"""Who a collection file names is called by a real Airflow: on a failure, a question, a correction, an overdue day, and
with what a run published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.instance import Airflow
from tests.e2e.orders import HEADER, amounts, orders
from tidemark.airflow.question import Answer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

MODULE = """\
import json
import os


def notified(notice, to="all"):
    write([notice.event, to, notice.about, notice.task_id, bool(notice.url)])


def seen(changes):
    write(["seen", sorted((row["id"], row["diff"]) for row in changes.to_pylist())])


def write(line):
    with open(FILE, "a") as file:
        print(json.dumps(line), file=file)
"""
SECTION = """\
reprocess_for: 30d
airflow:
  retries: 0
  overdue: 1h
  partitions: "@daily"
  after: {seal: e2e_people:seen}
  notify:
    failure: e2e_people:notified
    question: {call: e2e_people:notified, with: {to: owners}}
    overdue: e2e_people:notified
    correction: e2e_people:notified
"""
DAY = "[2024-03-01T00:00:00Z, 2024-03-02T00:00:00Z)"
AT = "2024-03-01T10:00:00Z"


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_each_is_notified_of_what_is_theirs(airflow: Airflow) -> None:
    file = airflow.folder / "notices.jsonl"
    config = airflow.folder / "airflow" / "config"  # which Airflow has on its path
    config.mkdir(exist_ok=True)
    (config / "e2e_people.py").write_text(f"FILE = {str(file)!r}\n{MODULE}")
    day = airflow.land("people/2024-03-01/a.csv", HEADER, (1, -1, AT))
    name = airflow.declare(orders("people", "2024-03-01", "2024-03-02").replace("upsert", "append") + SECTION)
    airflow.api.wait_for_dag("tidemark_overdue", seconds=600)

    for number in (1, 2):
        run = airflow.trigger("tidemark_overdue", f"2024-03-0{number}T00:00:00Z", f"2024-03-0{number + 1}T00:00:00Z")
        airflow.ended("tidemark_overdue", run, state="failed")
    once = [f'["overdue", "all", "{DAY}", "on_time", true]']
    assert lines(file) == once, airflow.log_of("tidemark_overdue", run, "on_time", 1)

    airflow.api.unpause(name)
    run = airflow.trigger(name, "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z")
    airflow.question(name, run, "gate_unsealed")
    assert lines(file)[1:] == [f'["question", "owners", "{DAY}", "gate_unsealed", true]']
    airflow.answer(name, run, "gate_unsealed", Answer.FAIL)
    airflow.ended(name, run, state="failed")
    assert lines(file)[2:] == [f'["failure", "all", "{DAY}", "gate_unsealed", true]'], "those behind it did not fail"

    airflow.tidemark("quarantine", name, airflow.log(name).load().state.pending[0].id)
    day.write_text(day.read_text().replace("-1", "10"))
    airflow.clear(name, run)
    airflow.ended(name, run)
    assert lines(file)[3:] == ['["seen", [[1, 1]]]']
    events = airflow.api.call("GET", "/api/v2/assets/events?order_by=-timestamp")["asset_events"]
    assert {event["partition_key"] for event in events if event["name"] == "people.intervals"} == {
        "2024-03-01T00:00:00"
    }

    day.write_text(day.read_text().replace("10,", "11,"))
    airflow.clear(name, run)
    airflow.ended(name, run)
    assert amounts(airflow, name) == {1: 11}
    assert sorted(lines(file)[4:]) == [
        f'["correction", "all", "{AT} to {AT}", "published", true]',
        '["seen", [[1, -1], [1, 1]]]',
    ]
    run = airflow.trigger("tidemark_overdue", "2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z")
    airflow.ended("tidemark_overdue", run)
