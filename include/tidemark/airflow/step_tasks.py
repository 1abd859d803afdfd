"""The tasks of a step: its app, and the gate behind it, each by the operator that its declaration calls for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidemark.airflow.documentation import gate_doc, step_doc
from tidemark.airflow.gate import ASKING, GateOperator
from tidemark.airflow.location import Location
from tidemark.airflow.seal import SealOperator
from tidemark.airflow.steps import CorrectOperator, IngestOperator, StepOperator, declared_by
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.declared import LANDING, step_of
from tidemark.jobs.steps.step import Step
from tidemark.model.collection import Gate


def step_and_gate(
    location: Location,
    step: str,
    *,
    task_id: str | None = None,
    ready_within: timedelta | None = None,
    **overrides: Any,
) -> list[StepOperator]:
    """The app task `<step>` (or `task_id`), and behind it `gate_<gate>` if it has one, in the DAG or group being made.

    `ready_within` is how long a step that reads what lands waits for it. Of the other arguments those that the step
    declares are its own, those of ASKING the gate's, the others those of both tasks.
    """
    declared = step_of(step)
    if (found := location.origin.kind) != (declared.origin or found):
        raise InvalidUsage(f"{step} is a step of {declared.origin} collections, and {location.name} is {found}")
    mine = {name: overrides.pop(name) for name in declared_by(declared) if name in overrides}
    asking = {name: overrides.pop(name) for name in ASKING if name in overrides}
    waits = {"ready_within": ready_within} if LANDING in declared.arguments else {}
    tasks: list[StepOperator] = [
        _operator_of(declared)(
            task_id=task_id or step,
            location=location,
            step=step,
            doc_md=step_doc(declared),
            **waits,
            **mine,
            **overrides,
        )
    ]
    if declared.gate is not None:
        gate = declared.gate
        tasks.append(
            GateOperator(
                task_id=f"gate_{gate}", location=location, gate=gate, doc_md=gate_doc(gate), **asking, **overrides
            )
        )
        tasks[0] >> tasks[1]
    return tasks


def _operator_of(step: Step) -> type[StepOperator]:
    """What runs a step, by what it declares."""
    if LANDING in step.arguments:
        return IngestOperator
    if step.gate is Gate.FRONTIER:
        return SealOperator
    return CorrectOperator if step.origin == "derived" else StepOperator
