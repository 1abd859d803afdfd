"""The steps of a collection as Airflow tasks: an app, then the gate that vouches for what it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark.airflow import settings
from tidemark.airflow.app_operator import AppOperator
from tidemark.airflow.documentation import GATE_DOCS, STEP_DOCS
from tidemark.airflow.landing import landing_of_run
from tidemark.airflow.links import DataDocsLink
from tidemark.airflow.place import Place
from tidemark.airflow.window import window_of
from tidemark.errors import REFUSED, TidemarkError
from tidemark.model.collection import Gate
from tidemark.model.instant import format_instant

GATE_AFTER = {"ingest": Gate.UNSEALED, "seal": Gate.FRONTIER, "drain": Gate.TRACE, "compact": Gate.COMPACTION}
"""The steps in their order, each with the gate behind it."""

STEP_DEFAULTS: Mapping[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=30),
    "execution_timeout": timedelta(hours=6),
}
"""Five retries, 15 s to 4 min apart: time for a lost race or a store that is away for a while. What a retry cannot help
is not retried. A step of more than six hours hangs; at 100,000 rows/s it would have read 2 billion."""


def with_step_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator was given, and STEP_DEFAULTS for what its user says nothing of: neither there nor in the
    `default_args` of the DAG and the groups around it, which Airflow has put among the arguments by then.

    Whoever sets `retry_delay` sets the pace: ours neither stretches nor caps it.
    """
    said = {**(arguments.get("default_args") or {}), **arguments}
    pace = ("retry_exponential_backoff", "max_retry_delay") if "retry_delay" in said else ()
    ours = {name: value for name, value in STEP_DEFAULTS.items() if name not in said and name not in pace}
    return {**ours, **arguments}


class StepOperator(AppOperator):
    """One step of one collection, over the interval of the run (`window_of`).

    Idempotent: running it again, after whatever end, does what is left to do. Returns the app's result.
    """

    overwrite_rtif_after_execution = True  # shows the interval among the rendered arguments

    def __init__(self, *, place: Place, step: str, more_args: Sequence[str] = (), **kwargs: Any) -> None:
        self.place = place
        self.fixed_args = ["--root", place.store_root, "--collection", place.name, *more_args]
        super().__init__(app=step, app_args=self.fixed_args, **with_step_defaults(kwargs))

    def execute(self, context: Any) -> Any:
        """Run the app. AirflowFailException (no retry) where the run names no interval."""
        try:
            self.app_args = [*self.fixed_args, *self.args_of_run(context)]
        except TidemarkError as error:
            raise task_failure(error) from None
        return super().execute(context)

    def args_of_run(self, context: Any) -> list[str]:
        """The arguments only the run knows."""
        interval = window_of(context, schedule=self.place.collection.schedule)
        return ["--lower", format_instant(interval.lower), "--upper", format_instant(interval.upper)]


class IngestOperator(StepOperator):
    """Ingest the files of the run's interval; creates the collection first, or redefines it where its file changed.

    The param `landing` of a run stands in for the landing of the deployment, within what the deployment allows
    (`landing_of_run`).
    """

    def __init__(self, *, place: Place, **kwargs: Any) -> None:
        file = ("--file", place.file) if place.file else ()
        super().__init__(place=place, step="ingest", more_args=file, **kwargs)

    def args_of_run(self, context: Any) -> list[str]:
        if self.place.file is None:
            self.place.declare()
        landing = landing_of_run(context["params"].get("landing"), self.place.landing)
        return [*super().args_of_run(context), "--landing", landing]


class GateOperator(StepOperator):
    """One gate: vouches for what no certificate of the current suite covers, or fails and shows why, row by row.

    Starts Spark only for batches too large for the task itself; with the resident launcher the warm process serves it.
    """

    operator_extra_links = (DataDocsLink(),)
    ui_color = "#e8f1ea"

    def __init__(self, *, place: Place, gate: Gate, **kwargs: Any) -> None:
        self.gate = gate
        super().__init__(place=place, step="gate", more_args=("--gate", str(gate)), **kwargs)

    def _without_spark(self, argv: list[str]) -> dict[str, Any] | None:
        from tidemark.airflow.gate_here import gate_here

        return gate_here(argv, resident=settings.launcher(self.launcher) == "resident")


def task_failure(error: TidemarkError) -> AirflowException:
    """What a task raises for an error: retried only where that helps."""
    kind: type[AirflowException] = AirflowFailException if error.exit_code == REFUSED else AirflowException
    return kind(f"{error.kind}: {error}")


def step_and_gate(place: Place, step: str, **overrides: Any) -> tuple[StepOperator, GateOperator]:
    """The app task `<step>` and behind it `gate_<gate>`, in the DAG or group being built."""
    gate = GATE_AFTER[step]
    app: StepOperator
    if step == "ingest":
        app = IngestOperator(task_id=step, place=place, doc_md=STEP_DOCS[step], **overrides)
    else:
        app = StepOperator(task_id=step, place=place, step=step, doc_md=STEP_DOCS[step], **overrides)
    check = GateOperator(task_id=f"gate_{gate}", place=place, gate=gate, doc_md=GATE_DOCS[gate], **overrides)
    app >> check
    return app, check
