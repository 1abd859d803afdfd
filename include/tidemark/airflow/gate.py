"""The task of a gate. Where the data do not pass, it asks a person what to do, and does it."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from tidemark.airflow import settings
from tidemark.airflow.launch import AppRefused
from tidemark.airflow.links import DataDocsLink
from tidemark.airflow.location import Location
from tidemark.airflow.notify import call_notifiers, notice_of_question, notify
from tidemark.airflow.question import Answer, Answered, Question
from tidemark.airflow.steps import IngestOperator, StepOperator, intervals_of_run, task_failure
from tidemark.errors import GateFailed, InvalidUsage, TidemarkError
from tidemark.model.acceptance import checked_reason
from tidemark.model.collection import Covers, Gate
from tidemark.model.instant import format_duration

if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

    from tidemark.airflow.mended import MendedTrigger

ASKING = ("asks", "response_timeout", "notifiers")
"""The arguments of a gate that are about its question."""


class GateOperator(StepOperator):
    """One gate: certifies what no certificate of the current suite covers, or fails and shows why, row by row. Of
    unsealed batches it looks at those that came with the run's intervals: a bad day is its own run's.

    The unsealed gate asks, where a person can answer, what shall become of data that do not pass: they are accepted for
    a reason, taken out, or read again from a mended file, at once or when it has changed. Meanwhile the task is parked
    without a worker. Whoever may edit the DAG may answer. Without an answer within `response_timeout`
    (TIDEMARK_RESPONSE_TIMEOUT, 1d) it fails. `asks` (TIDEMARK_GATE_ASKS) switches that off; `dag.test()` asks nobody.
    `notifiers` are called with the context whenever it asks, and so is who the collection's file says (`notify`), as no
    failure callback is by then. A task that was cleared or is tried again forgets what was asked, and judges again.

    Starts Spark only for batches too large for the task itself.
    """

    operator_extra_links = (DataDocsLink(),)
    ui_color = "#e8f1ea"

    def __init__(
        self,
        *,
        location: Location,
        gate: Gate,
        asks: bool | None = None,
        response_timeout: timedelta | None = None,
        notifiers: Sequence[BaseNotifier] | BaseNotifier = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(location=location, step="gate", gate=gate, **kwargs)
        self.asks = asks
        self.response_timeout = response_timeout
        self.notifiers = [*notifiers] if isinstance(notifiers, Sequence) else [notifiers]
        self._ingest: IngestOperator | None = None

    def execute(self, context: Any) -> Any:
        """Run the gate. TaskAwaitingInput where it asks."""
        if getattr(context.get("ti"), "try_number", 1) > 1:
            self._read_again_what_was_taken_out(context)
        return self._judge(context)

    def answered(self, context: Any, event: Mapping[str, Any], question: Mapping[str, Any]) -> Any:
        """Do what was answered, and judge. Asks again where the answer cannot be followed. AirflowFailException where
        nobody answered in time, or the answer is to fail."""
        asked = Question.from_dict(question)
        if "error" in event:
            raise AirflowFailException(f"nobody answered within {self._patience()}: {asked.headline}")
        said = Answered.of(event)
        self.log.info("%s answered: %s", said.by, said.answer)
        if said.answer is Answer.FAIL:
            raise AirflowFailException(f"{said.by} left it red: {asked.headline}")
        batches = said.meant(asked.batches)
        if batches is None:
            named = ", ".join(said.batches)
            self._ask(context, asked, f"the answer is about batch {named}, but what fails is {asked.names}")
        match said.answer:
            case Answer.ACCEPT:
                return self._accept(context, asked, said, batches)
            case Answer.QUARANTINE:
                self._take_out(batches)
                return self._judge(context)
            case Answer.MENDED:
                return self._read_again(context, batches)
        self._wait_for_mended(context, asked, batches)

    def changed(self, context: Any, event: Mapping[str, Any], question: Mapping[str, Any]) -> Any:
        """Go on after a wait for a mended file. AirflowFailException if none came."""
        asked = Question.from_dict(question)
        if not event["changed"]:
            raise AirflowFailException(f"no file was mended within {self._patience()}: {asked.headline}")
        return self._read_again(context, asked.batches)

    def on_kill(self) -> None:
        super().on_kill()
        if self._ingest is not None:
            self._ingest.on_kill()

    def args_of_run(self, context: Any) -> list[str]:
        return [*super().args_of_run(context), *self.bounds_of(context)]

    def _judge(self, context: Any) -> Any:
        """Run the gate, and ask where the data do not pass it."""
        try:
            return super().execute(context)
        except AppRefused as refused:
            if refused.kind != GateFailed.__name__ or not refused.details.get("batches") or not self._can_ask():
                raise
            self._ask(context, self._question(context, str(refused), refused.details))

    def _question(self, context: Any, headline: str, details: Mapping[str, Any]) -> Question:
        """What is asked of a failure: about the intervals of the batches that failed."""
        if self.location.derived is not None:
            return Question.of(self.location.name, None, headline, details)
        try:
            unjudged = self.location.job().log.load().state.uncertified
        except TidemarkError as error:
            raise task_failure(error) from None
        zone = self.location.collection.zone
        failed = {each.interval.in_zone(zone) for each in unjudged if each.id in details["batches"]}
        about = sorted(failed) or [self.span_of(context)]
        return Question.of(self.location.name, about, headline, details)

    def _ask(self, context: Any, question: Question, why_again: str = "") -> NoReturn:
        """Put the question, and park. `why_again` says why an answer was not followed."""
        from airflow.sdk.exceptions import TaskAwaitingInput
        from airflow.sdk.execution_time.hitl import upsert_hitl_detail

        if why_again:
            self.log.warning("%s; asking again", why_again)
        self.log.warning("%s", question.headline)
        upsert_hitl_detail(
            ti_id=context["ti"].id,
            options=question.options,
            subject=question.subject,
            body=question.body,
            params=question.params,
        )
        self.log.info("Asking what to do about batch %s; see Required Actions", question.names)
        notice = notice_of_question(question, context)
        call_notifiers(self.notifiers, notice, context)
        notify(self.location.airflow.notify.question, notice, context)
        raise TaskAwaitingInput(
            method_name="answered", kwargs={"question": question.as_dict()}, timeout=self._response_timeout()
        )

    def _accept(self, context: Any, asked: Question, said: Answered, batches: Sequence[str]) -> Any:
        if not asked.acceptable:
            self._ask(context, asked, "what failed is no judgement of data, and cannot be accepted")
        try:
            checked_reason(said.reason)
        except InvalidUsage as error:
            self._ask(context, asked, str(error))
        given = {"accept": ",".join(batches), "reason": said.reason, "by": said.by, "judged_by": asked.suite}
        for name, value in given.items():
            setattr(self, name, value)
        return self._judge(context)

    def _take_out(self, batches: Sequence[str]) -> None:
        """Quarantine those of the batches that are still there, and have files."""
        from tidemark.jobs.steps.quarantine import entries_of, quarantine

        try:
            job = self.location.job()
            head = job.log.load()
            waiting = {batch.id for batch in head.state.pending} | {each.id for each in head.state.without_rows}
            for batch in batches:
                if batch in waiting and (self.location.derived is not None or entries_of(job, head, batch)):
                    self.log.info("%s", quarantine(job, batch))
        except TidemarkError as error:
            raise task_failure(error) from None

    def _read_again(self, context: Any, batches: Sequence[str]) -> Any:
        self._take_out(batches)
        self._ingest_again(context)
        return self._judge(context)

    def _read_again_what_was_taken_out(self, context: Any) -> None:
        """A try that died may have taken a batch out and not read its mended file: this one does. A file that was not
        mended is judged, and asked about, again."""
        if self.location.derived is not None or not self._can_ask():
            return
        try:
            state = self.location.job().log.load().arrangement
            own = self.span_of(context)
        except TidemarkError as error:
            raise task_failure(error) from None
        taken_out = [each.interval for each in state.taken_out] if state else []
        if any(came.lower < own.upper and own.lower < came.upper for came in taken_out):
            self._ingest_again(context)

    def _ingest_again(self, context: Any) -> None:
        """The run's ingest, in this task: idempotent, it reads what no batch holds."""
        self._ingest = ingest = self._ingest_of_run(context)
        try:
            ingest.app_args = [*ingest.fixed_args, *ingest.declared_args(), *ingest.args_of_run(context)]
        except TidemarkError as error:
            raise task_failure(error) from None
        ingest.run_app(context)

    def _ingest_of_run(self, context: Any) -> IngestOperator:
        """As the DAG has it before this task; else one that is like this task."""
        before = self.get_flat_relatives(upstream=True) if self.has_dag() else ()  # type: ignore[no-untyped-call]
        mine = next((one for one in before if isinstance(one, IngestOperator) and one.location == self.location), None)
        if mine is None:
            return IngestOperator(
                task_id=f"{self.task_id}_ingest", location=self.location, launcher=self.launcher, conn_id=self._conn_id
            )
        ingest = copy.copy(mine)
        ingest.render_template_fields(context)
        return ingest

    def _wait_for_mended(self, context: Any, asked: Question, batches: Sequence[str]) -> NoReturn:
        try:
            trigger = self._trigger(context, batches)
        except TidemarkError as error:
            raise task_failure(error) from None
        if not trigger.files:
            self._ask(context, asked, f"the landing has no file of batch {asked.names} that could be mended")
        self.log.info("waiting without a worker for a change of %s", ", ".join(trigger.files))
        meant = {**asked.as_dict(), "batches": list(batches)}
        self.defer(trigger=trigger, method_name="changed", kwargs={"question": meant})
        raise AssertionError("unreachable: defer raises")

    def _trigger(self, context: Any, batches: Sequence[str]) -> MendedTrigger:
        """What waits for a change of one of the batches' files."""
        from tidemark.airflow.mended import MendedTrigger
        from tidemark.config.template import pattern_of
        from tidemark.jobs.steps.quarantine import entries_of

        job = self.location.job()
        head = job.log.load()
        entries = [entry for batch in batches for entry in entries_of(job, head, batch) if entry.replay_of is None]
        landing = self._ingest_of_run(context).landing_of(context)
        collection = self.location.collection
        intervals = intervals_of_run(context, collection)
        patterns = [pattern_of(collection.landed, interval, landing) for interval in intervals]
        until = time.time() + self._response_timeout().total_seconds()
        return MendedTrigger({entry.path: [entry.bytes, entry.token] for entry in entries}, patterns, landing, until)

    def _can_ask(self) -> bool:
        """Whether there is somebody to answer: not where it is switched off, nor in `dag.test()`, which would wait for
        ever."""
        if Gate(str(self.gate)).covers is not Covers.UNSEALED:  # type: ignore[attr-defined]
            return False
        try:
            if not (settings.gate_asks() if self.asks is None else self.asks):
                return False
        except InvalidUsage as error:
            raise task_failure(error) from None
        from airflow.sdk.execution_time import task_runner
        from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

        comms = getattr(task_runner, "SUPERVISOR_COMMS", None)
        return comms is not None and not isinstance(comms, InProcessSupervisorComms)

    def _response_timeout(self) -> timedelta:
        if self.response_timeout is not None:
            return self.response_timeout
        try:
            return settings.response_timeout()
        except InvalidUsage as error:
            raise task_failure(error) from None

    def _patience(self) -> str:
        return format_duration(self._response_timeout() // timedelta(microseconds=1))
