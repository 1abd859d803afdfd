"""Whom a collection file says to notify: of a failure, a question, an overdue interval, a correction."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskAwaitingInput

from tests.dags.support import ORDERS, parsed
from tests.dags.test_bad_day import Days
from tests.dags.test_gate_asks import Asks
from tests.dags.test_on_time import NOON, ingest, states
from tidemark.airflow import check_collection_files, maintenance_dag, on_time, tidemark_dag
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.timeout(300)

ALERTS = """\
from airflow.sdk import BaseNotifier

SEEN = []


def page(notice, channel="all"):
    SEEN.append((channel, notice))


def broken(notice):
    raise OSError("no route to host")


class Chat(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text, to="all"):
        super().__init__()
        self.text, self.to = text, to

    def notify(self, context):
        SEEN.append((self.to, self.text))


READY = Chat("{{ tidemark.subject }}", to="ready")
"""


@pytest.fixture
def alerts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a user's notifiers, by a name of its own."""
    name = f"alerts_{uuid.uuid4().hex[:8]}"
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{name}.py").write_text(ALERTS)
    (folder / "ends_here.py").write_text("raise SystemExit(0)")
    (folder / "ends_at_once.py").write_text("import os\nos._exit(0)")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("TIDEMARK_FUNCTIONS", str(folder))

    class Module:
        @property
        def seen(self) -> list[Any]:
            return list(sys.modules[name].SEEN) if name in sys.modules else []

    Module.__name__ = name
    yield Module()
    sys.modules.pop(name, None)


def name_of(alerts: Any) -> str:
    return type(alerts).__name__


def says(file: Path, text: str) -> None:
    file.write_text(file.read_text() + f"airflow:\n  notify:\n{text}\n")


def test_a_failure_is_reported_with_its_day_and_what_to_do(days: Days, alerts: Any) -> None:
    named = name_of(alerts)
    says(days.file, f"    failure: [{named}:broken, {{call: {named}:page, with: {{channel: data}}}}]")
    days.land(1)
    assert days.run(1)[0] == "success"
    assert alerts.seen == []
    days.land(2, "lost")
    assert days.run(2)[0] == "failed"
    ((channel, notice),) = alerts.seen
    assert (channel, notice.event, notice.collection, notice.task_id) == (
        "data",
        "failure",
        days.name,
        "gate_unsealed",
    )
    day = "[2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z)"
    assert (notice.about, notice.subject) == (day, f"{days.name}: gate_unsealed failed for {day}")
    assert "GateFailed" in notice.text
    assert "clear the task" in notice.text
    assert notice.dag_id == days.name
    assert notice.run_id


def test_a_correction_of_what_was_published_is_reported(days: Days, alerts: Any) -> None:
    named = name_of(alerts)
    chat = f'{{call: {named}:Chat, with: {{text: "{{{{ tidemark.subject }}}} {{{{ conn is defined }}}}"}}}}'
    says(days.file, f"    correction: [{chat}, {named}:broken, {named}:READY, {named}:page]")
    for day in (1, 2):
        days.land(day)
        assert days.run(day)[0] == "success"
    assert alerts.seen == [], "what is new is no correction"
    days.land(1, "paid")
    assert days.run(1)[0] == "success", "one that raises fails no task"
    (text, ready, (_, notice)) = alerts.seen
    subject = f"{days.name}: 1 row retracted and 1 added in what was published"
    assert text == ("all", f"{subject} False"), "it sees no connections"
    assert ready == ("ready", subject)
    assert notice.about == "2024-01-01T09:00:00Z to 2024-01-01T09:00:00Z"
    assert "1 file corrected" in notice.text
    instant = r"2024-01-0\dT[0-9:.]+Z"
    assert re.search(rf"tidemark changes {days.name} --after {instant} --upto {instant}`", notice.text)
    assert not re.search(r"\d{10}", notice.text), "nobody reads microseconds"


def test_a_question_is_reported_once_it_is_asked(asks: Asks, alerts: Any) -> None:
    named = name_of(alerts)
    says(asks.file, f"    question: [{named}:broken, {named}:page]")
    with pytest.raises(TaskAwaitingInput):
        asks.run("gate_unsealed")
    ((_, notice),) = alerts.seen
    assert (notice.event, notice.about) == ("question", "[2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)")
    assert "Accept as it is" in notice.text


def test_an_overdue_interval_is_reported_once(
    collections: Path, database: None, alerts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"late_{uuid.uuid4().hex[:8]}"
    file = collections / f"{name}.yaml"
    text = ORDERS.replace("name: orders", f"name: {name}").replace("end: 2024-01-04\n", "")
    file.write_text(f"{text}airflow: {{overdue: 3h, notify: {{overdue: {name_of(alerts)}:page}}}}\n")
    monkeypatch.setattr(on_time.time, "time_ns", lambda: NOON * 1000)
    ingest(file, 1)
    dags = maintenance_dag()
    for _ in range(2):
        assert states(dags["tidemark_overdue"]) == {"on_time": "failed"}
    assert states(dags["tidemark_maintenance"])["on_time"] == "failed"
    ((_, notice),) = alerts.seen
    assert (notice.event, notice.about) == ("overdue", "[2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z)")
    ingest(file, 2)
    assert states(dags["tidemark_overdue"]) == {"on_time": "success"}
    monkeypatch.setattr(on_time.time, "time_ns", lambda: (NOON + 86_400_000_000) * 1000)
    assert states(dags["tidemark_overdue"]) == {"on_time": "failed"}
    assert [notice.about[:11] for _, notice in alerts.seen] == ["[2024-01-02", "[2024-01-03"]


def test_nothing_is_imported_at_parse_but_where_files_are_checked(collections: Path, alerts: Any) -> None:
    file = collections / "orders.yaml"
    says(file, f"    failure: {name_of(alerts)}:page")
    dag = tidemark_dag(file)
    assert all(task.has_on_failure_callback for task in dag.tasks)
    assert name_of(alerts) not in sys.modules
    check_collection_files(collections)
    assert name_of(alerts) in sys.modules


def test_the_dag_is_serialised_all_the_same(collections: Path, alerts: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    file = collections / "orders.yaml"
    says(file, f"    failure: {name_of(alerts)}:page")
    again = DagSerialization.from_dict(DagSerialization.to_dict(tidemark_dag(file)))
    assert again.get_task("ingest").has_on_failure_callback


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("nowhere_to_be_found:page", "Airflow finds no module nowhere_to_be_found"),
        ("MODULE:pag", "has no pag; did you mean 'page'?"),
        ("MODULE:SEEN", "is no function, but a list"),
        ("{call: MODULE:page, with: {chanel: x}}", "unexpected keyword argument 'chanel'"),
        ("MODULE:Chat", "missing a required argument: 'text'"),
        ("{call: MODULE:READY, with: {to: x}}", "is a notifier already"),
        ("shutil:rmtree", "shutil:rmtree: the module shutil is not in a folder of your code, "),
        ("os:_exit", "of others only notifiers of Airflow can be named"),
        ("tidemark.jobs.steps.drop:drop", "let the deployment name its folder in TIDEMARK_FUNCTIONS"),
        ("ends_here:page", "ends_here:page: cannot be imported: the module ends the process"),
        ("ends_at_once:page", "ends_at_once:page: cannot be imported: the module ends the process"),
    ],
)
def test_a_wrong_name_is_one_line_and_the_dag_stays(collections: Path, alerts: Any, said: str, message: str) -> None:
    file = collections / "orders.yaml"
    says(file, f"    correction:\n      - {name_of(alerts)}:page\n      - {said.replace('MODULE', name_of(alerts))}")
    with pytest.raises(InvalidUsage) as caught:
        check_collection_files(collections)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{file}:{len(file.read_text().splitlines())}: airflow.notify.correction: ")
    assert "\n" not in str(caught.value)
    bag = parsed()
    assert "orders" in bag.dags
    assert len(bag.import_errors) == 1
