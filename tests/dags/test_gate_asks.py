"""A gate whose data do not pass asks a person, parks without a worker, and does what was answered."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput, TaskDeferred
from airflow.sdk.module_loading import import_string
from airflow.sdk.serde import deserialize, serialize

import tidemark
from tests.dags.support import ORDERS, run_steps_here
from tidemark.airflow import batches_dag, mended, tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.airflow.question import Answer, Question
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval

pytestmark = pytest.mark.timeout(300)

DAY = {"lower": "2024-01-01T00:00:00Z", "upper": "2024-01-02T00:00:00Z"}
WHY = "a strike on that day"


@dataclass
class Asks:
    """A day of a collection, and the tasks of its run; `sent` is what they sent to Airflow's supervisor."""

    file: Path
    landing: Path
    sent: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def send(self, msg: Any) -> None:
        self.sent.append(msg)

    @property
    def state(self) -> Any:
        return location_of(self.file).job().log.load().state

    @property
    def rows_by_id(self) -> list[tuple[int, str]]:
        """What the collection holds."""
        rows = tidemark.open(location_of(self.file).store_root, "orders").as_of().to_arrow()
        return sorted(zip(rows["id"].to_pylist(), rows["status"].to_pylist(), strict=True))

    def land(self, status: str = "lost", name: str = "a") -> None:
        folder = self.landing / "orders" / "2024-01-01"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.csv").write_text(
            f"id,status,amount,happened_at\n{ord(name)},{status},10,2024-01-01T09:00:00Z\n"
        )

    def context(self, task: str, number: int = 1) -> dict[str, Any]:
        ti = SimpleNamespace(id=uuid.uuid4(), run_id="r", task_id=task, map_index=-1, try_number=number)
        return {"params": DAY, "ti": ti}

    def task(self, name: str) -> Any:
        return tidemark_dag(self.file, **self.options).get_task(name)

    def run(self, name: str) -> Any:
        return self.task(name).execute(self.context(name))

    def ask(self, number: int = 1) -> dict[str, Any]:
        """Run the gate, which parks; what it goes on with."""
        with pytest.raises(TaskAwaitingInput) as parked:
            self.task("gate_unsealed").execute(self.context("gate_unsealed", number))
        return self.parked(parked.value)

    def parked(self, parked: TaskAwaitingInput) -> dict[str, Any]:
        assert parked.method_name == "answered"
        assert parked.timeout == self.options.get("response_timeout", timedelta(days=1))
        kept: dict[str, Any] = deserialize(serialize(parked.kwargs))
        return kept

    def answer(self, kept: dict[str, Any], answer: Answer, **form: str | None) -> Any:
        event = {
            "chosen_options": [str(answer)],
            "params_input": form,
            "responded_at": datetime.now(UTC),
            "responded_by_user": {"id": "7", "name": "ada"},
            "timedout": False,
        }
        return self.task("gate_unsealed").answered(self.context("gate_unsealed"), event=event, **kept)

    def asked_again(self, kept: dict[str, Any], answer: Answer, **form: str | None) -> dict[str, Any]:
        with pytest.raises(TaskAwaitingInput) as parked:
            self.answer(kept, answer, **form)
        return self.parked(parked.value)


def test_it_says_what_failed_and_what_each_answer_does(asks: Asks) -> None:
    asks.ask()
    (question,) = asks.sent
    (batch,) = asks.state.pending
    assert question.subject == "orders: 1 check failed for [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)"
    assert question.options == [str(answer) for answer in Answer]
    assert question.params["batch"]["value"] == batch.id[:12]
    assert r"**expect\_column\_values\_to\_be\_in\_set\(status\)**" in question.body
    assert "1 row holds lost, not value\\_set \\(open, paid\\)" in question.body
    assert "| id | status | amount |" in question.body
    assert all(f"**{answer}**" in question.body for answer in Answer)


def test_what_rows_hold_is_no_markup(asks: Asks) -> None:
    asks.land("<b>[x](javascript:alert(1))|`", "b")
    asks.run("ingest")
    asks.ask()
    body = asks.sent[0].body
    assert r"\<b\>\[x\]\(javascript\:alert\(1\)\)\|\`" in body
    assert not {"<b>", "](j"} & {body[at : at + 3] for at in range(len(body))}


def test_accepted_it_is_green_and_says_who_and_why(asks: Asks) -> None:
    result = asks.answer(asks.ask(), Answer.ACCEPT, reason=WHY, batch=asks.state.pending[0].id[:12])
    assert result["outcome"] == "applied"
    (kept,) = asks.state.accepted
    assert (kept.by, kept.reason, kept.batch) == ("ada", WHY, asks.state.pending[0].id)
    for task in ("seal", "gate_frontier", "drain", "gate_trace"):
        asks.run(task)
    assert asks.rows_by_id == [(97, "lost")]


def test_a_reason_that_says_nothing_is_asked_for_again(asks: Asks) -> None:
    kept = asks.ask()
    for reason in (None, "", "ok", "x" * 301):
        kept = asks.asked_again(kept, Answer.ACCEPT, reason=reason)
    assert asks.answer(kept, Answer.ACCEPT, reason=WHY)["outcome"] == "applied"


def test_an_answer_about_another_batch_is_asked_for_again(asks: Asks) -> None:
    """Airflow shows the text of the first question, whatever failed since."""
    kept = asks.asked_again(asks.ask(), Answer.ACCEPT, reason=WHY, batch="0123456789ab")
    asks.asked_again(kept, Answer.QUARANTINE, batch="0123456789ab")
    assert (asks.state.accepted, asks.state.quarantined) == ((), ())


def test_quarantined_the_rest_is_judged_and_the_run_goes_on(asks: Asks) -> None:
    kept = asks.ask()
    asks.land("open", "b")
    asks.run("ingest")
    assert asks.answer(kept, Answer.QUARANTINE)["outcome"] == "applied"
    assert len(asks.state.quarantined) == 1
    for task in ("seal", "gate_frontier", "drain", "gate_trace"):
        asks.run(task)
    assert asks.rows_by_id == [(98, "open")]


def test_mended_it_is_read_again_and_judged_in_the_same_task(asks: Asks) -> None:
    kept = asks.ask()
    asks.land("paid")
    assert asks.answer(kept, Answer.MENDED)["outcome"] == "applied"
    for task in ("seal", "gate_frontier", "drain", "gate_trace"):
        asks.run(task)
    assert asks.rows_by_id == [(97, "paid")]


def test_not_mended_it_is_asked_again_about_the_batch_that_is_there_now(asks: Asks) -> None:
    kept = asks.ask()
    again = asks.asked_again(kept, Answer.MENDED)
    (batch,) = asks.state.pending
    assert again["question"]["batches"] == [batch.id] != kept["question"]["batches"]
    assert asks.answer(again, Answer.ACCEPT, reason=WHY)["outcome"] == "applied"


def test_a_mended_file_is_waited_for_without_a_worker(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mended, "FIRST_PAUSE", 0.05)
    with pytest.raises(TaskDeferred) as deferred:
        asks.answer(asks.ask(), Answer.WAIT)
    path, arguments = deferred.value.trigger.serialize()
    trigger = import_string(path)(**arguments)

    async def fired() -> Any:
        waits = asyncio.ensure_future(anext(trigger.run()))
        await asyncio.sleep(0.3)
        assert not waits.done()
        asks.land("paid")
        return (await waits).payload

    event = asyncio.run(asyncio.wait_for(fired(), 30))
    assert event == {"changed": True}
    task = asks.task("gate_unsealed")
    kept = deserialize(serialize(deferred.value.kwargs))
    assert task.changed(asks.context("gate_unsealed"), event=event, **kept)["outcome"] == "applied"
    assert [batch.rows for batch in asks.state.pending] == [1]
    assert len(asks.state.quarantined) == 1


def test_a_file_that_is_never_mended_ends_red(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mended, "FIRST_PAUSE", 0.05)
    asks.options = {"response_timeout": timedelta(seconds=0.5)}
    with pytest.raises(TaskDeferred) as deferred:
        asks.answer(asks.ask(), Answer.WAIT)
    event = asyncio.run(asyncio.wait_for(_event_of(deferred.value.trigger), 30))
    with pytest.raises(AirflowFailException, match=r"no file was mended within .*: gate: GateFailed: "):
        asks.task("gate_unsealed").changed(asks.context("gate_unsealed"), event=event, **deferred.value.kwargs)


async def _event_of(trigger: Any) -> Any:
    return (await anext(trigger.run())).payload


@pytest.mark.parametrize(("broken", "said"), [({"error": "x", "error_type": "timeout"}, "nobody answered within 1d")])
def test_without_an_answer_it_ends_red(asks: Asks, broken: dict[str, Any], said: str) -> None:
    kept = asks.ask()
    with pytest.raises(AirflowFailException, match=said):
        asks.task("gate_unsealed").answered(asks.context("gate_unsealed"), event=broken, **kept)


def test_it_may_be_left_red(asks: Asks) -> None:
    kept = asks.ask()
    with pytest.raises(AirflowFailException, match="ada left it red"):
        asks.answer(kept, Answer.FAIL)


class TestKilled:
    """A try that died anywhere between the answer and the certificate."""

    def test_before_it_did_anything_it_asks_again(self, asks: Asks) -> None:
        first, again = (asks.ask(number)["question"] for number in (1, 2))
        assert (first["batches"], first["suite"]) == (again["batches"], again["suite"])

    def test_behind_the_certificate_there_is_nothing_to_ask(self, asks: Asks) -> None:
        asks.answer(asks.ask(), Answer.ACCEPT, reason=WHY)
        result = asks.task("gate_unsealed").execute(asks.context("gate_unsealed", 2))
        assert result["outcome"] == "nothing to do"

    def test_between_taking_out_and_reading_again_the_next_try_reads(self, asks: Asks) -> None:
        asks.ask()
        quarantine(location_of(asks.file).job(), asks.state.pending[0].id)
        asks.land("paid")
        result = asks.task("gate_unsealed").execute(asks.context("gate_unsealed", 2))
        assert (result["outcome"], [batch.rows for batch in asks.state.pending]) == ("applied", [1])

    def test_between_taking_out_and_judging_the_rest_it_asks_rather_than_to_lose_the_day(self, asks: Asks) -> None:
        asks.ask()
        quarantine(location_of(asks.file).job(), asks.state.pending[0].id)
        asks.ask(number=2)

    def test_an_answer_that_comes_when_all_is_done_by_hand_changes_nothing(self, asks: Asks) -> None:
        kept = asks.ask()
        quarantine(location_of(asks.file).job(), asks.state.pending[0].id)
        asks.land("paid")
        asks.run("ingest")
        assert asks.answer(kept, Answer.QUARANTINE)["outcome"] == "applied"
        assert ([batch.rows for batch in asks.state.pending], len(asks.state.quarantined)) == ([1], 1)


class TestDayWithoutRows:
    """It has no batch; what is asked, accepted and taken out is the reading that brought nothing."""

    @pytest.fixture
    def empty(self, asks: Asks) -> Asks:
        quarantine(location_of(asks.file).job(), asks.state.pending[0].id)
        asks.file.write_text(f"{ORDERS}  - expect_table_row_count_to_be_between: {{min_value: 1}}\n")
        self.land(asks, "")
        asks.run("ingest")
        return asks

    def land(self, asks: Asks, rows: str) -> None:
        (asks.landing / "orders/2024-01-01/a.csv").write_text(f"id,status,amount,happened_at\n{rows}")

    def test_it_is_accepted(self, empty: Asks) -> None:
        kept = empty.ask()
        assert empty.sent[-1].subject == "orders: 1 check failed for [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)"
        assert empty.answer(kept, Answer.ACCEPT, reason=WHY)["outcome"] == "applied"
        for task in ("seal", "gate_frontier", "drain", "gate_trace"):
            empty.run(task)
        assert [one.batch for one in empty.state.accepted] == kept["question"]["batches"]

    def test_without_an_answer_nothing_is_sealed(self, empty: Asks) -> None:
        with pytest.raises(AirflowFailException, match="GateFailed: unsealed gate of orders: expect_table_row_count"):
            empty.run("seal")
        assert empty.state.complete_below == 0

    @pytest.mark.parametrize("dies", [False, True], ids=["it lives", "it dies between taking out and reading"])
    def test_mended_it_is_read_again(self, empty: Asks, dies: bool) -> None:
        kept = empty.ask()
        self.land(empty, "1,paid,10,2024-01-01T09:00:00Z\n")
        if dies:
            quarantine(location_of(empty.file).job(), kept["question"]["batches"][0])
            result = empty.task("gate_unsealed").execute(empty.context("gate_unsealed", 2))
        else:
            result = empty.answer(kept, Answer.MENDED)
        assert (result["outcome"], [batch.rows for batch in empty.state.pending]) == ("applied", [1])

    def test_quarantined_the_run_goes_on(self, empty: Asks) -> None:
        assert empty.answer(empty.ask(), Answer.QUARANTINE)["outcome"] == "nothing to do"
        empty.run("seal")
        assert empty.state.complete_below > 0


class Recorder(BaseNotifier):
    """Keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[Any] = []

    def notify(self, context: Any) -> None:
        self.contexts.append(context)


def test_notifiers_hear_of_every_question(asks: Asks) -> None:
    notifier = Recorder()
    asks.options = {"notifiers": notifier}
    asks.asked_again(asks.ask(), Answer.ACCEPT)
    assert [context["params"] for context in notifier.contexts] == [DAY, DAY]


@pytest.mark.parametrize("how", ["environment", "argument", "nobody there", "dag.test"])
def test_where_nobody_is_to_be_asked_it_fails(asks: Asks, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

    match how:
        case "environment":
            monkeypatch.setenv("TIDEMARK_GATE_ASKS", "off")
        case "argument":
            asks.options = {"asks": False}
        case "nobody there":
            monkeypatch.delattr(task_runner, "SUPERVISOR_COMMS")
        case "dag.test":
            monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", object.__new__(InProcessSupervisorComms))
    with pytest.raises(AirflowFailException, match="GateFailed: unsealed gate of orders"):
        asks.run("gate_unsealed")
    assert asks.sent == []


@pytest.mark.parametrize(("name", "value"), [("GATE_ASKS", "perhaps"), ("RESPONSE_TIMEOUT", "a while")])
def test_a_setting_that_is_none_is_refused(asks: Asks, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"TIDEMARK_{name}", value)
    with pytest.raises(AirflowFailException, match=value):
        asks.run("gate_unsealed")


def test_how_long_it_waits_can_be_set(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_RESPONSE_TIMEOUT", "8h")
    asks.options = {"response_timeout": timedelta(hours=8)}
    asks.ask()
    asks.options = {}
    with pytest.raises(TaskAwaitingInput) as parked:
        asks.run("gate_unsealed")
    assert parked.value.timeout == timedelta(hours=8)


def test_gates_of_what_is_stored_ask_nobody(asks: Asks) -> None:
    asking = {name: asks.task(f"gate_{name}")._can_ask() for name in ("unsealed", "frontier", "trace", "compaction")}
    assert asking == {"unsealed": True, "frontier": False, "trace": False, "compaction": False}


def test_what_is_no_judgement_of_data_cannot_be_accepted(asks: Asks) -> None:
    kept = asks.ask()
    kept["question"]["acceptable"] = False
    asks.asked_again(kept, Answer.ACCEPT, reason=WHY)
    assert asks.state.accepted == ()


def test_rules_that_changed_while_it_was_asked_stop_the_acceptance(asks: Asks) -> None:
    kept = asks.ask()
    asks.file.write_text(
        asks.file.read_text() + "  - expect_column_values_to_be_between: {column: amount, min_value: 90}\n"
    )
    asks.run("ingest")
    with pytest.raises(AirflowFailException, match="the rules have changed from unsealed-"):
        asks.answer(kept, Answer.ACCEPT, reason=WHY)
    assert asks.state.accepted == ()


def test_the_gate_of_a_cut_asks_nobody(asks: Asks) -> None:
    asks.file.write_text(asks.file.read_text() + "batches: {count: 10}\n")
    assert batches_dag(asks.file).get_task("gate_unsealed").asks is False
    assert asks.task("gate_unsealed").asks is None


def test_a_run_over_several_days_asks_about_those_that_failed(asks: Asks) -> None:
    task = asks.task("gate_unsealed")
    context = asks.context("gate_unsealed")
    with pytest.raises(TaskAwaitingInput):
        task.execute({**context, "params": DAY | {"upper": "2024-01-04T00:00:00Z"}})
    assert asks.sent[0].subject == "orders: 1 check failed for [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z)"


def test_its_title_is_short_however_many_days_failed() -> None:
    details = {"suite": "s", "batches": ["b" * 32], "acceptable": True, "failed": [{"rule": "r"}] * 2}
    days = [Interval(day * 86_400_000_000, (day + 1) * 86_400_000_000) for day in (*range(60), 90)]
    question = Question.of("orders", days, "why", details)
    assert question.subject == (
        "orders: 2 checks failed for 61 intervals from 1970-01-01T00:00:00Z to 1970-04-02T00:00:00Z"
    )
    assert Question.from_dict({**question.as_dict(), "failed": details["failed"]}).subject == question.subject
    assert str(days[4]) in question.about
    assert "56 more" in question.about


def test_of_a_derived_collection_no_file_can_be_mended() -> None:
    details = {"suite": "s", "batches": ["b" * 32], "acceptable": True, "failed": []}
    question = Question.of("totals", None, "why", details)
    assert question.options == [str(answer) for answer in (Answer.ACCEPT, Answer.QUARANTINE, Answer.FAIL)]
    assert question.subject == "totals: 0 checks failed for what was computed"
    assert Question.from_dict(question.as_dict()) == question


def test_rows_that_were_computed_are_asked_about_too(
    asks: Asks, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    asks.land("open")
    asks.answer(asks.ask(), Answer.MENDED)
    for task in ("seal", "gate_frontier", "drain", "gate_trace"):
        asks.run(task)
    totals = asks.file.with_name("totals.yaml")
    request.addfinalizer(lambda: SparkSession.getActiveSession().stop())

    run_steps_here(monkeypatch, "correct", "gate")
    totals.write_text(
        "name: totals\nfrom: orders\nselect: SELECT status, sum(amount) AS amount FROM orders GROUP BY status\n"
        "key: [status]\nquality: [{expect_column_values_to_be_between: {column: amount, min_value: 90}}]\n"
    )

    def context(task: str) -> dict[str, Any]:
        run = SimpleNamespace(run_type="manual", run_after=datetime.now(UTC))
        return {**asks.context(task), "params": {}, "dag_run": run}

    def run(task: str) -> Any:
        return tidemark_dag(totals).get_task(task).execute(context(task))

    asks.sent.clear()
    run("correct")
    with pytest.raises(TaskAwaitingInput) as parked:
        run("gate_unsealed")
    assert asks.sent[0].subject == "totals: 1 check failed for what was computed"
    event = {"chosen_options": ["Quarantine"], "params_input": {}, "responded_by_user": {"id": "7", "name": "ada"}}
    gate = tidemark_dag(totals).get_task("gate_unsealed")
    gate.answered(context("gate_unsealed"), event=event, **asks.parked(parked.value))
    state = location_of(totals).job().log.load().state
    assert (state.unsealed, len(state.quarantined), state.consumed) == ((), 1, None)
    run("seal")
    run("correct")
    with pytest.raises(TaskAwaitingInput):
        run("gate_unsealed")
    said = {**event, "chosen_options": ["Accept as it is"], "params_input": {"reason": WHY}}
    gate.answered(
        context("gate_unsealed"), event=said, **asks.parked(parked.value) | {"question": latest(asks, totals)}
    )
    assert location_of(totals).job().log.load().state.accepted[0].reason == WHY


def latest(asks: Asks, file: Path) -> dict[str, Any]:
    """The question about the batch that waits now."""
    state = location_of(file).job().log.load().state
    details = {"suite": state.collection.suite(Gate.UNSEALED), "batches": [state.pending[0].id], "acceptable": True}
    return Question.of("totals", None, "why", {**details, "failed": []}).as_dict()
