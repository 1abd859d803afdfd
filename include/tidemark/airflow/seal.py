"""The task that seals. Where another run's bad day is in the way the rest of its run is skipped, and its day waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import SkipMixin

from tidemark.airflow.launch import AppRefused
from tidemark.airflow.other_runs import is_found_wrong, is_seen_to
from tidemark.airflow.steps import StepOperator, task_failure
from tidemark.errors import GateFailed, InvalidUsage, TidemarkError, Uncertified, listed
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.seal import seal_result, seal_so_far
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval
from tidemark.plan.blocked import blocking, blocking_own
from tidemark.plan.gate import plan_gate
from tidemark.quality.gates import GATES

JUDGED = (GateFailed.__name__, Uncertified.__name__, InvalidUsage.__name__)
"""How the app ends where a gate does not certify what is in the way, for good."""


class SealOperator(StepOperator, SkipMixin):
    """A step that seals. What is in its way and no gate has certified is gated here, whatever run it came by.

    Where a batch of other intervals does not pass, these have runs of their own: as long as one of them is red, queued
    or running, this one is green. It seals what need not wait for the batch. If its own intervals have to wait, all
    tasks behind it are skipped at once, but for teardowns, and the run that mends the bad one seals these, too; why is
    in the log, and the XCom `waits_for`. Where no such run is to be seen this task fails: somebody has to know.
    """

    def execute(self, context: Any) -> Any:
        """Run the app, and end as its run may; what another run has found wrong is not judged again."""
        if self.location.derived is not None:
            return super().execute(context)
        try:
            own, job = self.span_of(context), self.location.job()
            if self._is_found_wrong(context, job, own):
                return self._sealed_so_far(context, job, own)
            return self._gated_and_sealed(context, job, own)
        except TidemarkError as error:
            raise task_failure(error) from None

    def _gated_and_sealed(self, context: Any, job: Job, own: Interval) -> Any:
        try:
            return super().execute(context)
        except AppRefused as refused:
            if refused.kind not in JUDGED:
                raise
            state = job.log.load().state
            blocked = blocking(state, own.upper)
            if not blocked:  # what was in the way was mended meanwhile, if it was that
                return super().execute(context)
            if not all(self._is_anothers(context, job, state, interval, own) for interval in blocked):
                seal_so_far(job, own)
                raise
        return self._sealed_so_far(context, job, own)

    def _is_found_wrong(self, context: Any, job: Job, own: Interval) -> bool:
        """Whether all that is in the way was found wrong by other runs, which are not green since."""
        if (state := job.log.load().arrangement) is None:
            return False
        blocked = blocking(state, own.upper)
        return bool(blocked) and all(
            not _overlap(interval, own) and is_found_wrong(context, job, state, interval) for interval in blocked
        )

    def _is_anothers(self, context: Any, job: Job, state: Arrangement, interval: Interval, own: Interval) -> bool:
        return not _overlap(interval, own) and (
            is_seen_to(context, state, interval) or is_found_wrong(context, job, state, interval)
        )

    def _sealed_so_far(self, context: Any, job: Job, own: Interval) -> Any:
        """The step's answer, where something is in the way. All behind it is skipped where that concerns the run's own
        intervals; but not where an earlier one is missing, too, as then `published` has the word."""
        head = seal_so_far(job, own)
        result = {"step": self.app, "collection": self.location.name, **seal_result(head, own, Outcome.WAITS)}
        self.log.info("%s", result)
        state = head.state
        waiting = blocking_own(state, own.upper)
        if not waiting or state.hole_below(own.upper):
            return result
        self.log.info("%s", why := _why(state, own, waiting))
        context["ti"].xcom_push(key="waits_for", value=why)
        context["ti"].xcom_push(key="return_value", value=result)
        self.skip(context["ti"], [task for task in self.get_flat_relatives(upstream=False) if not task.is_teardown])
        return result


def _why(state: Arrangement, own: Interval, waiting: Sequence[Interval]) -> str:
    request = plan_gate(state, Gate.UNSEALED, waiting)
    name, batch = state.collection.name, request.names[0][:12] if request else ""
    way_out = GATES[Gate.UNSEALED].out(name, batch, again="clear its run: that seals this one, too")
    bad = listed(sorted(set(waiting)))
    return f"{own} is sealed when {bad} is mended, whose batch {batch} has not passed the unsealed gate: {way_out}"


def _overlap(one: Interval, other: Interval) -> bool:
    return one.lower < other.upper and other.lower < one.upper
