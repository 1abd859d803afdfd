"""Gates that need no Spark: run in the task itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.jobs import app
from tidemark.jobs.computer import here_or_on_spark
from tidemark.jobs.in_process_runner import ROWS_HERE, InProcess
from tidemark.jobs.steps.declared import STEPS
from tidemark.plan.gate import GateRequest, plan_gate


def gate_here(argv: Sequence[str], *, resident: bool) -> dict[str, Any] | None:
    """The gate's result, or None if an app has to be launched for it: for more than ROWS_HERE rows, for a derived
    collection whose keys only Spark recomputes, and with the resident launcher for whatever Great Expectations must
    judge, because there it is imported already.

    Raises what the gate raises.
    """
    args = app.parser("gate").parse_args(argv)
    job = app.open_job(args.root, args.collection, lambda: InProcess(job.store), attempt=args.attempt)
    interval = app.interval_of(STEPS["gate"], args)
    request = plan_gate(job.log.load().state, args.gate, [interval] if interval else [])
    rows = _rows(request) if request else 0
    judged = request is not None and (rows > 0 or bool(request.empty) or request.upper is not None)
    if rows > ROWS_HERE or (judged and resident):
        return None
    try:
        return app.run("gate", args, lambda: _WithoutSpark(job.store), computer_on=here_or_on_spark)
    except app.NeedsSpark:
        return None


class _WithoutSpark(InProcess):
    """Runs kernels in this process; whoever asks for its session needs an app."""

    @property
    def spark(self) -> Any:
        raise app.NeedsSpark


def _rows(request: GateRequest) -> int:
    return sum(batch.rows for batch in request.unsealed) + sum(batch.rows for batch in request.trace)
