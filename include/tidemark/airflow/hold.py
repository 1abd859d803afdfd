"""Holds by tasks: what a DAG reads stays readable while it runs.

with HoldOperator.around(collection="flights", at="{{ data_interval_start }}"):
    report()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator

from tidemark.airflow import settings
from tidemark.airflow.location import no_data
from tidemark.airflow.steps import STEP_DEFAULTS, task_failure, with_step_defaults
from tidemark.errors import TidemarkError
from tidemark.model.instant import parse_duration, parse_instant

LASTS = "2d"
"""How long a task's hold lasts where nobody lets it go: longer than a run takes, so that a dead run holds nothing for
ever."""


class _HoldTask(BaseOperator):
    """Both ends of a hold. `hold` defaults to one of the run's own."""

    template_fields: Sequence[str] = ("collection", "hold")
    ui_color = "#f5efdf"

    def __init__(self, *, collection: str, hold: str = "", root: str | None = None, **kwargs: Any) -> None:
        super().__init__(**with_step_defaults(kwargs))
        self.collection, self.hold, self.root = collection, hold, root

    def job(self) -> Any:
        from tidemark.jobs.app import open_job

        return open_job(self.root or settings.root(), self.collection, no_data)

    def hold_name(self, context: Any) -> str:
        from tidemark.jobs.steps.retain import hold_name

        return self.hold or hold_name(f"{context['dag'].dag_id}.{context['run_id']}")


class HoldOperator(_HoldTask):
    """Keep reads of `collection` from `at` on exact (empty: all that can be read now), for `lasts` or until released.

    Running it again renews the hold. Fails where `at` cannot be read any more, naming the nearest times that can.
    """

    template_fields: Sequence[str] = (*_HoldTask.template_fields, "at", "lasts")

    def __init__(self, *, at: str = "", lasts: str = LASTS, task_id: str = "hold", **kwargs: Any) -> None:
        super().__init__(task_id=task_id, **kwargs)
        self.at, self.lasts = at, lasts

    def execute(self, context: Any) -> dict[str, Any]:
        """Place the hold; what it holds."""
        from tidemark.jobs.steps.retain import hold

        try:
            at = parse_instant(self.at) if self.at else None
            return hold(self.job(), self.hold_name(context), since=at, for_=parse_duration(self.lasts))
        except TidemarkError as error:
            raise task_failure(error) from None

    @classmethod
    def around(cls, *, collection: str, root: str | None = None, hold: str = "", **options: Any) -> Any:
        """A context whose tasks run between placing a hold and letting it go, also where they fail.

        `options` are the placing task's; those of retries and time-outs are the other's too.
        """
        placed = cls(collection=collection, root=root, hold=hold, **options).as_setup()  # type: ignore[no-untyped-call]
        both = {name: value for name, value in options.items() if name in STEP_DEFAULTS}
        released = ReleaseHoldOperator(collection=collection, root=root, hold=hold, **both)
        return released.as_teardown(setups=placed)


class ReleaseHoldOperator(_HoldTask):
    """Let a hold go. Nothing happens if it is gone."""

    def __init__(self, *, task_id: str = "release_hold", **kwargs: Any) -> None:
        super().__init__(task_id=task_id, **kwargs)

    def execute(self, context: Any) -> dict[str, Any]:
        """Let the hold go; the state's version after it."""
        from tidemark.jobs.steps.retain import drop_hold

        try:
            return drop_hold(self.job(), self.hold_name(context), missing_ok=True)
        except TidemarkError as error:
            raise task_failure(error) from None
